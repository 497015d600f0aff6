/* SPDX-License-Identifier: MIT */
/* Other drivers that export dma-bufs: udmabuf, the system heap, vgem. */
#define _GNU_SOURCE
#include "dmabuf-peers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "abi.h"

/* vgem's own ioctls; libdrm has no header for them. */
struct vgem_fence_attach {
	uint32_t handle;
	uint32_t flags;		/* 1: write */
	uint32_t out_fence;
	uint32_t pad;
};

struct vgem_fence_signal {
	uint32_t fence;
	uint32_t flags;
};

#define VGEM_FENCE_ATTACH DRM_IOWR(DRM_COMMAND_BASE + 1, struct vgem_fence_attach)
#define VGEM_FENCE_SIGNAL DRM_IOW(DRM_COMMAND_BASE + 2, struct vgem_fence_signal)

static const char *peer_map(struct peer *peer)
{
	peer->map = mmap(NULL, peer->size, PROT_READ | PROT_WRITE, MAP_SHARED, peer->fd, 0);
	if (peer->map != MAP_FAILED)
		return NULL;
	peer->map = NULL;
	peer_free(peer);
	return "its dma-buf cannot be mapped";
}

const char *peer_udmabuf(struct peer *peer, uint64_t size)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };

	*peer = (struct peer) { .name = "udmabuf", .fd = -1, .size = size };
	peer->device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (peer->device < 0)
		return "/dev/udmabuf cannot be opened";
	create.memfd = (uint32_t)memfd_create("peer", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (ftruncate((int)create.memfd, (off_t)size) ||
	    fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		tap_bail("memfd: %s", strerror(errno));
	peer->fd = ioctl(peer->device, UDMABUF_CREATE, &create);
	close((int)create.memfd);
	if (peer->fd < 0) {
		peer_free(peer);
		return "UDMABUF_CREATE fails";
	}
	return peer_map(peer);
}

const char *peer_heap(struct peer *peer, uint64_t size)
{
	struct dma_heap_allocation_data data = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };

	*peer = (struct peer) { .name = "system heap", .fd = -1, .size = size };
	peer->device = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
	if (peer->device < 0)
		return "/dev/dma_heap/system cannot be opened";
	if (ioctl(peer->device, DMA_HEAP_IOCTL_ALLOC, &data)) {
		peer_free(peer);
		return "DMA_HEAP_IOCTL_ALLOC fails";
	}
	peer->fd = (int)data.fd;
	return peer_map(peer);
}

int peer_vgem_open(void)
{
	char path[32];
	int i, fd;

	for (i = 0; i < 16; i++) {
		drmVersionPtr version;
		bool found;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		version = drmGetVersion(fd);
		found = version && !strcmp(version->name, "vgem");
		drmFreeVersion(version);
		if (found)
			return fd;
		close(fd);
	}
	return -1;
}

const char *peer_vgem(struct peer *peer, uint64_t size)
{
	struct drm_mode_create_dumb dumb = {
		.height = 1, .width = (uint32_t)(size / 4), .bpp = 32,
	};

	*peer = (struct peer) { .name = "vgem", .fd = -1, .size = size };
	peer->device = peer_vgem_open();
	if (peer->device < 0)
		return "no vgem node can be opened";
	if (drmIoctl(peer->device, DRM_IOCTL_MODE_CREATE_DUMB, &dumb) ||
	    drmPrimeHandleToFD(peer->device, dumb.handle, DRM_CLOEXEC | DRM_RDWR, &peer->fd)) {
		peer_free(peer);
		return "vgem makes no dma-buf";
	}
	peer->handle = dumb.handle;
	return peer_map(peer);
}

void peer_free(struct peer *peer)
{
	if (peer->map)
		munmap(peer->map, peer->size);
	if (peer->fd >= 0)
		close(peer->fd);
	if (peer->device >= 0)
		close(peer->device);
	peer->map = NULL;
	peer->fd = -1;
	peer->device = -1;
}

bool peer_sync(int dmabuf, bool start, bool write)
{
	struct dma_buf_sync sync = {
		.flags = (start ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END) |
			 (write ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ),
	};

	return !drmIoctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync);
}

uint32_t peer_vgem_fence(const struct peer *vgem, bool write)
{
	struct vgem_fence_attach attach = { .handle = vgem->handle, .flags = write };

	return drmIoctl(vgem->device, VGEM_FENCE_ATTACH, &attach) ? 0 : attach.out_fence;
}

bool peer_vgem_signal(const struct peer *vgem, uint32_t fence)
{
	struct vgem_fence_signal signal = { .fence = fence };

	return !drmIoctl(vgem->device, VGEM_FENCE_SIGNAL, &signal);
}

int peer_sync_file(int dmabuf, bool write)
{
	struct dma_buf_export_sync_file args = {
		.flags = write ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ, .fd = -1,
	};

	return drmIoctl(dmabuf, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &args) ? -1 : args.fd;
}
