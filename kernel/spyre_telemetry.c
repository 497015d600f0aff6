// SPDX-License-Identifier: GPL-2.0-only
/*
 * sysfs attributes of the platform device.
 */
#include <linux/device.h>
#include <linux/math64.h>
#include <linux/stddef.h>
#include <linux/sysfs.h>

#include <drm/spyre_accel.h>

#include "spyre_card.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_events.h"
#include "spyre_lpddr.h"
#include "spyre_query.h"
#include "spyre_stats.h"
#include "spyre_telemetry.h"

/* The card's load is rounded to this for readers without access to exact totals. */
#define SPYRE_LOAD_NS (10 * NSEC_PER_MSEC)

/* One decimal number per file; docs/uapi.md lists them. */
#define SPYRE_ATTR(name, value)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)\
{											\
	struct spyre_device *spyre = dev_get_drvdata(dev);				\
											\
	return sysfs_emit(buf, "%llu\n", (u64)(value));					\
}											\
static DEVICE_ATTR_RO(name)

/* Returns the field of struct drm_spyre_counters at @offset. */
static u64 spyre_counter(struct spyre_device *spyre, size_t offset)
{
	struct drm_spyre_counters counters = {};

	spyre_query_counters(spyre, &counters);
	return *(const u64 *)((const char *)&counters + offset);
}

static u64 spyre_busy_ns(struct spyre_device *spyre)
{
	const u64 busy = spyre_counter(spyre, offsetof(struct drm_spyre_counters, busy_ns));

	return spyre_may_see_counters() ? busy : div_u64(busy, SPYRE_LOAD_NS) * SPYRE_LOAD_NS;
}

static u32 spyre_power(struct spyre_device *spyre)
{
	u32 power, temperature;

	spyre_card_read_power(spyre, &power, &temperature);
	return power;
}

static u32 spyre_temperature(struct spyre_device *spyre)
{
	u32 power, temperature;

	spyre_card_read_power(spyre, &power, &temperature);
	return temperature;
}

SPYRE_ATTR(card_index, spyre->index);
SPYRE_ATTR(vf, spyre->vf);
SPYRE_ATTR(total_vfs, spyre_card_total_vfs(spyre));
SPYRE_ATTR(num_cores, spyre->num_cores);
SPYRE_ATTR(lx_bytes, spyre ? SPYRE_LX_BYTES : 0);
SPYRE_ATTR(stick_bytes, spyre ? SPYRE_STICK_BYTES : 0);
SPYRE_ATTR(clock_khz, spyre ? SPYRE_CLOCK_HZ / 1000 : 0);
SPYRE_ATTR(lpddr_total, spyre->lpddr_bytes);
SPYRE_ATTR(lpddr_used, spyre_card_lpddr_used(spyre));
SPYRE_ATTR(lpddr_free, spyre->lpddr_bytes - spyre_card_lpddr_used(spyre));
SPYRE_ATTR(lpddr_peak, spyre_lpddr_peak(spyre));
SPYRE_ATTR(generation, spyre->generation);
SPYRE_ATTR(busy_ns, spyre_busy_ns(spyre));
#define COUNTER(name, key) \
	SPYRE_ATTR(name, spyre_counter(spyre, offsetof(struct drm_spyre_counters, name)));
SPYRE_COUNTERS(COUNTER)
SPYRE_ATTR(power_mw, spyre_power(spyre));
SPYRE_ATTR(temperature_mc, spyre_temperature(spyre));

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *spyre = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%pUb\n", &spyre->uuid);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t unit_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *spyre = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", spyre_unit_name(spyre->engine.host.unit));
}
static DEVICE_ATTR_RO(unit);

static ssize_t events_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *spyre = dev_get_drvdata(dev);

	return spyre_events_show(&spyre->card_events, buf);
}
static DEVICE_ATTR_RO(events);

static ssize_t context_events_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *spyre = dev_get_drvdata(dev);

	return spyre_events_show(&spyre->context_events, buf);
}
static DEVICE_ATTR_RO(context_events);

static ssize_t num_vfs_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *spyre = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u\n", READ_ONCE(spyre->card.num_vfs));
}

static ssize_t num_vfs_store(struct device *dev, struct device_attribute *attr, const char *buf,
			     size_t size)
{
	unsigned int count;
	int ret;

	ret = kstrtouint(buf, 0, &count);
	if (!ret)
		ret = spyre_card_set_vfs(dev_get_drvdata(dev), count);
	return ret ?: size;
}
static DEVICE_ATTR_RW(num_vfs);

static struct attribute *spyre_attrs[] = {
	&dev_attr_card_index.attr,
	&dev_attr_vf.attr,
	&dev_attr_num_vfs.attr,
	&dev_attr_total_vfs.attr,
	&dev_attr_num_cores.attr,
	&dev_attr_lx_bytes.attr,
	&dev_attr_stick_bytes.attr,
	&dev_attr_clock_khz.attr,
	&dev_attr_lpddr_total.attr,
	&dev_attr_lpddr_used.attr,
	&dev_attr_lpddr_free.attr,
	&dev_attr_lpddr_peak.attr,
	&dev_attr_generation.attr,
	&dev_attr_busy_ns.attr,
#define POINTER(name, key) &dev_attr_##name.attr,
	SPYRE_COUNTERS(POINTER)
#undef POINTER
	&dev_attr_power_mw.attr,
	&dev_attr_temperature_mc.attr,
	&dev_attr_uuid.attr,
	&dev_attr_events.attr,
	&dev_attr_context_events.attr,
	&dev_attr_unit.attr,
	NULL
};

/* Attributes that only root can read if counters are private. */
static bool spyre_attr_is_exact(const struct attribute *attr)
{
#define IS(name, key) attr == &dev_attr_##name.attr ||
	return SPYRE_COUNTERS(IS) attr == &dev_attr_context_events.attr;
#undef IS
}

static umode_t spyre_attr_is_visible(struct kobject *kobj, struct attribute *attr, int index)
{
	struct spyre_device *spyre = dev_get_drvdata(kobj_to_dev(kobj));

	/* A VF is not split again. */
	if (spyre->pf && (attr == &dev_attr_num_vfs.attr || attr == &dev_attr_total_vfs.attr))
		return 0;
	return spyre_counters_are_private() && spyre_attr_is_exact(attr) ? 0400 : attr->mode;
}

static const struct attribute_group spyre_group = {
	.attrs = spyre_attrs,
	.is_visible = spyre_attr_is_visible,
};

const struct attribute_group *spyre_groups[] = { &spyre_group, NULL };
