/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_SUBMIT_H
#define SPYRE_SUBMIT_H

struct drm_device;
struct drm_file;

int spyre_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file);

#endif
