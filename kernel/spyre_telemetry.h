/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_TELEMETRY_H
#define SPYRE_TELEMETRY_H

struct attribute_group;

/* Attributes of the platform device. */
extern const struct attribute_group *spyre_groups[];

#endif
