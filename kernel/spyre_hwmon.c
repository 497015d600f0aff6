// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modelled temperature, power and energy as hwmon sensors, for sensors(1) and
 * similar tools.  Only a PF has them; they include the work of its VFs.
 */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/hwmon.h>

#include "spyre_card.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_hwmon.h"
#include "spyre_query.h"

#define SPYRE_POWER_CAP_MW 75000u

static umode_t spyre_hwmon_is_visible(const void *data, enum hwmon_sensor_types type, u32 attr,
				      int channel)
{
	/* The energy is a sum of exact totals. */
	return type == hwmon_energy && spyre_counters_are_private() ? 0400 : 0444;
}

static int spyre_hwmon_read(struct device *dev, enum hwmon_sensor_types type, u32 attr,
			    int channel, long *value)
{
	struct spyre_device *spyre = dev_get_drvdata(dev);
	u32 milliwatt, millicelsius;

	switch (type) {
	case hwmon_energy:
		*value = spyre_card_read_energy(spyre);
		return 0;
	case hwmon_power:
		if (attr == hwmon_power_cap) {
			*value = SPYRE_POWER_CAP_MW * 1000l;
			return 0;
		}
		spyre_card_read_power(spyre, &milliwatt, &millicelsius);
		*value = milliwatt * 1000l;
		return 0;
	case hwmon_temp:
		spyre_card_read_power(spyre, &milliwatt, &millicelsius);
		*value = millicelsius;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int spyre_hwmon_read_string(struct device *dev, enum hwmon_sensor_types type, u32 attr,
				   int channel, const char **text)
{
	*text = type == hwmon_temp ? "card (modelled)" : "board (modelled)";
	return 0;
}

static const struct hwmon_channel_info *const spyre_hwmon_channels[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_LABEL),
	HWMON_CHANNEL_INFO(power, HWMON_P_AVERAGE | HWMON_P_CAP | HWMON_P_LABEL),
	HWMON_CHANNEL_INFO(energy, HWMON_E_INPUT | HWMON_E_LABEL),
	NULL
};

static const struct hwmon_ops spyre_hwmon_ops = {
	.is_visible = spyre_hwmon_is_visible,
	.read = spyre_hwmon_read,
	.read_string = spyre_hwmon_read_string,
};

static const struct hwmon_chip_info spyre_hwmon_chip = {
	.ops = &spyre_hwmon_ops,
	.info = spyre_hwmon_channels,
};

int spyre_hwmon_start(struct spyre_device *spyre)
{
	struct device *hwmon;

	if (spyre->pf)
		return 0;
	hwmon = hwmon_device_register_with_info(spyre->drm.dev, "spyre", spyre,
						&spyre_hwmon_chip, NULL);
	if (IS_ERR(hwmon))
		return PTR_ERR(hwmon);
	spyre->hwmon = hwmon;
	return 0;
}

void spyre_hwmon_stop(struct spyre_device *spyre)
{
	if (spyre->hwmon)
		hwmon_device_unregister(spyre->hwmon);
	spyre->hwmon = NULL;
}
