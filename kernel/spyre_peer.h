/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peers: device memory of another card or virtual function, as a BO of this one.
 *
 * PEER_COPY is its only use.  The copy runs on the card that was asked; the other
 * card's engine takes no part in it, so its users wait for nothing.  Its memory stays
 * charged to the file that allocated it, and exists as long as the peer BO does, even
 * if that file is closed.  A copy fails (-ENOLINK) if the other card is gone or was
 * reset, or if the context that owns the memory has failed.
 */
#ifndef SPYRE_PEER_H
#define SPYRE_PEER_H

#include <linux/types.h>

#include "model/peer.h"

struct dma_buf;
struct drm_device;
struct drm_file;
struct drm_gem_object;
struct spyre_bo;
struct spyre_device;
struct spyre_job;

/* Imports a dma-buf of another device's BO of device memory. */
struct drm_gem_object *spyre_peer_import(struct drm_device *drm, struct dma_buf *dmabuf);
void spyre_peer_free(struct spyre_bo *bo);
/* Returns the BO that has the memory: that of the other device, or @bo itself. */
struct spyre_bo *spyre_peer_far(struct spyre_bo *bo);

/*
 * Returns a BO to copy from or to, of this device or a peer, with a reference; -ENOENT,
 * -EINVAL for host memory, -EACCES if it is to be written and its dma-buf is read-only.
 */
struct spyre_bo *spyre_peer_lookup(struct drm_file *file, u32 handle, bool write);
/* Returns 0, or -ENOLINK if work on the memory of @far must not begin or go on. */
int spyre_peer_check(const struct spyre_bo *far);
/* Returns -ENOLINK if one of the job's copies must not begin or go on, else 0. */
int spyre_peer_check_job(const struct spyre_job *job);
/* Returns the way from @spyre to the memory of @far. */
enum spyre_link spyre_peer_link(const struct spyre_device *spyre, const struct spyre_bo *far);

#endif
