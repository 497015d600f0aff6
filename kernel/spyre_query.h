/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_QUERY_H
#define SPYRE_QUERY_H

#include <drm/spyre_accel.h>
#include <linux/types.h>

struct drm_device;
struct drm_file;
struct spyre_device;
struct spyre_file;

void spyre_query_card(struct spyre_device *spyre, struct drm_spyre_card_info *info);
void spyre_query_memory(struct spyre_file *sfile, struct drm_spyre_memory_info *info);
void spyre_query_counters(struct spyre_device *spyre, struct drm_spyre_counters *info);
/* The totals of one context; power and temperature are the card's. */
void spyre_query_own_counters(struct spyre_file *sfile, struct drm_spyre_counters *info);
/* Returns true if only users with CAP_PERFMON can read exact totals. */
bool spyre_counters_are_private(void);
/* Returns true if the calling thread can read them. */
bool spyre_may_see_counters(void);
int spyre_ioctl_dev_query(struct drm_device *drm, void *data, struct drm_file *file);

#endif
