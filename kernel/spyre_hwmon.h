/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_HWMON_H
#define SPYRE_HWMON_H

struct spyre_device;

/* Registers the card's sensors: before its node; they are removed before the engine ends. */
int spyre_hwmon_start(struct spyre_device *spyre);
void spyre_hwmon_stop(struct spyre_device *spyre);

#endif
