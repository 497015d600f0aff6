// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports of the card about itself: DEV_QUERY, sysfs attributes of the
 * platform device and fdinfo of an open node.
 */
#include <linux/capability.h>
#include <linux/device.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

#include <drm/drm_print.h>

#include "spyre_bo.h"
#include "spyre_device.h"

/* To which the card's load is rounded for those who may not see exact totals. */
#define SPYRE_LOAD_NS (10 * NSEC_PER_MSEC)

/*
 * Totals of a card grow with each job by numbers that give away the shapes of
 * what it computed, whoever submitted it.
 */
static bool counters_paranoid = true;
module_param(counters_paranoid, bool, 0444);
MODULE_PARM_DESC(counters_paranoid,
		 "exact totals of a card's work are for CAP_PERFMON and root alone (1)");

bool spyre_counters_are_private(void)
{
	return counters_paranoid;
}

static bool spyre_may_see_counters(void)
{
	return !counters_paranoid || perfmon_capable();
}

void spyre_query_card(struct spyre_device *spyre, struct drm_spyre_card_info *info)
{
	info->index = spyre->index;
	info->num_cores = spyre->num_cores;
	info->lx_bytes = SPYRE_LX_BYTES;
	info->stick_bytes = SPYRE_STICK_BYTES;
	info->clock_khz = SPYRE_CLOCK_HZ / 1000;
	info->program_version = SPYRE_PROG_VERSION;
	info->lpddr_bytes = spyre->lpddr_bytes;
	info->generation = spyre->generation;
	strscpy((char *)info->unit, spyre_unit_name(spyre->engine.host.unit), sizeof(info->unit));
	export_uuid(info->uuid, &spyre->uuid);
	info->vf = spyre->vf;
	info->num_vfs = READ_ONCE(spyre->card.num_vfs);
}

void spyre_query_memory(struct spyre_file *sfile, struct drm_spyre_memory_info *info)
{
	info->total = sfile->spyre->lpddr_bytes;
	info->free = spyre_lpddr_free(sfile);
	info->used = info->total - info->free;
	info->context_used = atomic64_read(&sfile->used);
}

void spyre_query_counters(struct spyre_device *spyre, struct drm_spyre_counters *info)
{
	struct spyre_engine_stats stats;

	spyre_card_read_stats(spyre, &stats);
	info->timestamp_ns = ktime_get_ns();
	info->busy_ns = stats.busy_ns;
	info->jobs = stats.jobs;
	info->errors = stats.errors;
	info->cycles = stats.cost.cycles;
	info->macs = stats.cost.macs;
	info->bytes_read = stats.cost.bytes_read;
	info->bytes_written = stats.cost.bytes_written;
	spyre_card_read_power(spyre, &info->power_mw, &info->temperature_mc);
}

/* The same of one context, for those who may not see the card's. */
static void spyre_query_own_counters(struct spyre_file *sfile, struct drm_spyre_counters *info)
{
	struct drm_spyre_context_info own = {};

	spyre_query_context(sfile, &own);
	info->timestamp_ns = ktime_get_ns();
	info->busy_ns = own.busy_ns;
	info->jobs = own.jobs;
	info->errors = own.errors;
	info->cycles = own.cycles;
	info->macs = own.macs;
	info->bytes_read = own.bytes_read;
	info->bytes_written = own.bytes_written;
	spyre_card_read_power(sfile->spyre, &info->power_mw, &info->temperature_mc);
}

int spyre_ioctl_dev_query(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_device *spyre = to_spyre_device(drm);
	struct drm_spyre_dev_query *args = data;
	const u32 size = args->size;
	union {
		struct drm_spyre_card_info card;
		struct drm_spyre_memory_info memory;
		struct drm_spyre_counters counters;
		struct drm_spyre_context_info context;
	} info = {};

	switch (args->type) {
	case DRM_SPYRE_DEV_QUERY_CARD:
		args->size = sizeof(info.card);
		break;
	case DRM_SPYRE_DEV_QUERY_MEMORY:
		args->size = sizeof(info.memory);
		break;
	case DRM_SPYRE_DEV_QUERY_COUNTERS:
		args->size = sizeof(info.counters);
		break;
	case DRM_SPYRE_DEV_QUERY_CONTEXT:
		args->size = sizeof(info.context);
		break;
	default:
		return -EINVAL;
	}
	if (!args->pointer)
		return 0;

	if (args->type == DRM_SPYRE_DEV_QUERY_CARD)
		spyre_query_card(spyre, &info.card);
	else if (args->type == DRM_SPYRE_DEV_QUERY_MEMORY)
		spyre_query_memory(to_spyre_file(file), &info.memory);
	else if (args->type == DRM_SPYRE_DEV_QUERY_CONTEXT)
		spyre_query_context(to_spyre_file(file), &info.context);
	else if (spyre_may_see_counters())
		spyre_query_counters(spyre, &info.counters);
	else
		spyre_query_own_counters(to_spyre_file(file), &info.counters);

	if (copy_to_user(u64_to_user_ptr(args->pointer), &info, min(size, args->size)))
		return -EFAULT;
	return 0;
}

void spyre_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_memory_info memory;

	drm_printf(p, "drm-engine-spyre:\t%llu ns\n", (u64)atomic64_read(&sfile->busy_ns));
	drm_printf(p, "drm-cycles-spyre:\t%llu\n", (u64)atomic64_read(&sfile->cycles));
	drm_printf(p, "spyre-pinned:\t%llu KiB\n", (u64)atomic64_read(&sfile->pinned) >> 10);

	spyre_bo_show_fdinfo(p, file);

	/* Keys above count handles; these are DEV_QUERY's numbers. */
	spyre_query_memory(sfile, &memory);
	drm_printf(p, "spyre-capacity-lpddr5:\t%llu KiB\n", memory.total >> 10);
	drm_printf(p, "spyre-used-lpddr5:\t%llu KiB\n", memory.used >> 10);
	drm_printf(p, "spyre-free-lpddr5:\t%llu KiB\n", memory.free >> 10);
	drm_printf(p, "spyre-owned-lpddr5:\t%llu KiB\n", memory.context_used >> 10);
}

/* One decimal number per file; docs/uapi.md lists them. */
#define SPYRE_ATTR(name, value)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)\
{											\
	struct spyre_device *spyre = dev_get_drvdata(dev);				\
											\
	return sysfs_emit(buf, "%llu\n", (u64)(value));					\
}											\
static DEVICE_ATTR_RO(name)

static struct spyre_engine_stats spyre_stats(struct spyre_device *spyre)
{
	struct spyre_engine_stats stats;

	spyre_card_read_stats(spyre, &stats);
	return stats;
}

static u64 spyre_busy_ns(struct spyre_device *spyre)
{
	const u64 busy = spyre_stats(spyre).busy_ns;

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
SPYRE_ATTR(generation, spyre->generation);
SPYRE_ATTR(busy_ns, spyre_busy_ns(spyre));
SPYRE_ATTR(jobs, spyre_stats(spyre).jobs);
SPYRE_ATTR(errors, spyre_stats(spyre).errors);
SPYRE_ATTR(cycles, spyre_stats(spyre).cost.cycles);
SPYRE_ATTR(macs, spyre_stats(spyre).cost.macs);
SPYRE_ATTR(bytes_read, spyre_stats(spyre).cost.bytes_read);
SPYRE_ATTR(bytes_written, spyre_stats(spyre).cost.bytes_written);
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
	&dev_attr_generation.attr,
	&dev_attr_busy_ns.attr,
	&dev_attr_jobs.attr,
	&dev_attr_errors.attr,
	&dev_attr_cycles.attr,
	&dev_attr_macs.attr,
	&dev_attr_bytes_read.attr,
	&dev_attr_bytes_written.attr,
	&dev_attr_power_mw.attr,
	&dev_attr_temperature_mc.attr,
	&dev_attr_uuid.attr,
	&dev_attr_unit.attr,
	NULL
};

/* Those that only root may read if counters are private. */
static bool spyre_attr_is_exact(const struct attribute *attr)
{
	return attr == &dev_attr_jobs.attr || attr == &dev_attr_errors.attr ||
	       attr == &dev_attr_cycles.attr || attr == &dev_attr_macs.attr ||
	       attr == &dev_attr_bytes_read.attr || attr == &dev_attr_bytes_written.attr;
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
