/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_RESET_H
#define SPYRE_RESET_H

struct drm_device;
struct drm_file;
struct spyre_device;
struct spyre_file;

void spyre_reset_init(struct spyre_device *spyre);
/* Files that a reset makes stale. */
void spyre_reset_add_file(struct spyre_file *sfile);
void spyre_reset_remove_file(struct spyre_file *sfile);
int spyre_ioctl_reset(struct drm_device *drm, void *data, struct drm_file *file);

#endif
