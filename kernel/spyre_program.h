/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_PROGRAM_H
#define SPYRE_PROGRAM_H

#include <linux/kref.h>

#include "model/program.h"

struct drm_device;
struct drm_file;
struct spyre_file;

/**
 * struct spyre_program_object - a verified program in the card's memory
 */
struct spyre_program_object {
	/** @ref: held by the handle and by jobs. */
	struct kref ref;
	/** @owner: file to which its memory is charged. */
	struct spyre_file *owner;
	/** @image: the kernel's own copy. */
	void *image;
	/** @charged: bytes that are charged. */
	u64 charged;
	/** @base: as the verifier derived it. */
	struct spyre_program base;
};

/* Returns a program of @sfile with a reference, or NULL. */
struct spyre_program_object *spyre_program_lookup(struct spyre_file *sfile, u32 handle);
void spyre_program_put(struct spyre_program_object *program);

int spyre_ioctl_program_create(struct drm_device *drm, void *data, struct drm_file *file);
int spyre_ioctl_program_destroy(struct drm_device *drm, void *data, struct drm_file *file);

#endif
