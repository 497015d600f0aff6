/* SPDX-License-Identifier: MIT */
/* Other drivers that export dma-bufs: udmabuf, the system heap, vgem. */
#ifndef TESTS_ABI_DMABUF_PEERS_H
#define TESTS_ABI_DMABUF_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct peer {
	const char *name;
	int fd;			/* dma-buf */
	uint64_t size;
	void *map;		/* of the dma-buf, in this process */
	int device;		/* the driver's node */
	uint32_t handle;	/* vgem: of the buffer */
};

/* These return NULL on success, else the reason for a SKIP line. */
const char *peer_udmabuf(struct peer *peer, uint64_t size);
const char *peer_heap(struct peer *peer, uint64_t size);
const char *peer_vgem(struct peer *peer, uint64_t size);
void peer_free(struct peer *peer);

/* DMA_BUF_IOCTL_SYNC around an access of this process. */
bool peer_sync(int dmabuf, bool start, bool write);
/* Opens a vgem node; returns -1 if there is none. */
int peer_vgem_open(void);
/*
 * Adds a fence to a vgem buffer, signalled by peer_vgem_signal() or after 10 s;
 * returns 0 on failure.
 */
uint32_t peer_vgem_fence(const struct peer *vgem, bool write);
bool peer_vgem_signal(const struct peer *vgem, uint32_t fence);
/*
 * Exports the fences of a dma-buf that an access must wait for as a sync_file;
 * returns -1 on failure.
 */
int peer_sync_file(int dmabuf, bool write);

#endif /* TESTS_ABI_DMABUF_PEERS_H */
