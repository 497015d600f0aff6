/* SPDX-License-Identifier: MIT */
/* Export and import of dma-bufs, with foreign peers where the machine has them. */
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "dmabuf-peers.h"
#include "memory.h"

#define VA (2048 * MIB)
#define SIZE (4 * MIB)

static void pattern(void *p, uint64_t bytes, uint32_t seed)
{
	uint64_t i;

	for (i = 0; i < bytes / 4; i++)
		((uint32_t *)p)[i] = (uint32_t)i * 2654435761u + seed;
}

static uint64_t wrong(const void *p, uint64_t bytes, uint32_t seed)
{
	uint64_t i, bad = 0;

	for (i = 0; i < bytes / 4; i++)
		bad += ((const uint32_t *)p)[i] != (uint32_t)i * 2654435761u + seed;
	return bad;
}

static int export_fd(int fd, uint32_t handle, uint32_t flags)
{
	int dmabuf = -1;

	if (drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC | flags, &dmabuf))
		tap_bail("PRIME export: %s", strerror(errno));
	return dmabuf;
}

static void test_export(int fd, int other, struct abi_queue *q)
{
	struct abi_buf a = abi_buf(fd, SIZE, DRM_SPYRE_BO_DEVICE, VA);
	int dmabuf = export_fd(fd, a.handle, DRM_RDWR), readonly;
	struct drm_spyre_cb cb = abi_cb_fill32(VA, PAGE, 0x77);
	struct drm_spyre_bo_info info;
	uint32_t handle = 0;
	uint32_t *p;
	void *bad;

	tap_eq(memory_resident(fd, a.handle), 0, "export: allocates no memory");
	tap_eq(memory_fdinfo(fd, "drm-shared-lpddr5"), SIZE, "export: fdinfo counts it as shared");
	p = mmap(NULL, SIZE - PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, PAGE);
	tap_ok(p != MAP_FAILED, "export: the dma-buf can be mapped, from its second page");
	tap_eq(memory_resident(fd, a.handle), 0, "export: mmap allocates no memory");
	pattern(a.map, SIZE, 1);
	tap_ok(peer_sync(dmabuf, true, true), "export: DMA_BUF_IOCTL_SYNC start");
	tap_ok(!memcmp(p, (uint8_t *)a.map + PAGE, SIZE - PAGE),
	       "export: a write to the BO shows in the dma-buf");
	p[0] = 0x1234;
	tap_ok(peer_sync(dmabuf, false, true), "export: DMA_BUF_IOCTL_SYNC end");
	tap_eq(((uint32_t *)a.map)[PAGE / 4], 0x1234,
	       "export: a write to the dma-buf shows in the BO");
	bad = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, dmabuf, SIZE);
	tap_ok(bad == MAP_FAILED && errno == EINVAL, "export: mmap past its end gives EINVAL");
	bad = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, dmabuf, 0);
	tap_ok(bad == MAP_FAILED && errno == EINVAL, "export: MAP_PRIVATE gives EINVAL");
	close(dmabuf);

	tap_ok(!drmPrimeFDToHandle(other, dmabuf = export_fd(fd, a.handle, DRM_RDWR), &handle),
	       "export: another file of the card imports it");
	tap_ok(!memory_info(other, handle, &info) && info.flags == DRM_SPYRE_BO_DEVICE,
	       "export: the import is a device BO");
	tap_ret(abi_run(q, &cb, 1), 0, "export: FILL through one file");
	tap_eq(((uint32_t *)abi_mmap(other, handle, PAGE))[0], 0x77,
	       "export: the other file sees the fill");
	abi_gem_close(other, handle);
	close(dmabuf);
	abi_unbind(fd, VA, SIZE);
	abi_buf_free(fd, &a);
	tap_ok(p[1] == 1 + (uint32_t)(PAGE / 4 + 1) * 2654435761u,
	       "export: a mapping outlives handle and dma-buf");
	munmap(p, SIZE - PAGE);

	a = abi_buf(fd, PAGE, DRM_SPYRE_BO_HOST, 0);
	readonly = export_fd(fd, a.handle, 0);
	bad = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, readonly, 0);
	tap_ok(bad == MAP_FAILED && errno == EACCES,
	       "export: without DRM_RDWR a writable mapping gives EACCES");
	close(readonly);
	abi_buf_free(fd, &a);
}

static void test_outlives_file(void)
{
	int mine = abi_open(), dmabuf, fd = abi_open();
	struct abi_buf a = abi_buf(mine, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	uint64_t used = abi_memory(fd).used;
	uint32_t *p;

	*(uint32_t *)a.map = 0xbeef;
	dmabuf = export_fd(mine, a.handle, DRM_RDWR);
	munmap(a.map, PAGE);
	close(mine);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, dmabuf, 0);
	tap_ok(p != MAP_FAILED && *p == 0xbeef, "a dma-buf outlives its file");
	tap_eq(abi_memory(fd).used, used, "memory of a dma-buf stays counted");
	munmap(p, PAGE);
	close(dmabuf);
	tap_ok(abi_memory_settles(fd, used - PAGE), "closing the dma-buf frees the memory");
	close(fd);
}

/* vgem imports a spyre buffer: attaching populates all of it. */
static void test_foreign_importer(int fd)
{
	struct abi_buf a = abi_buf(fd, SIZE, DRM_SPYRE_BO_DEVICE, 0);
	int vgem = peer_vgem_open(), dmabuf;
	struct drm_mode_map_dumb map = { 0 };
	void *p;

	if (vgem < 0) {
		tap_skip("no vgem node can be opened", "export to vgem");
		abi_buf_free(fd, &a);
		return;
	}
	dmabuf = export_fd(fd, a.handle, DRM_RDWR);
	tap_ok(!drmPrimeFDToHandle(vgem, dmabuf, &map.handle), "export to vgem");
	tap_eq(memory_resident(fd, a.handle), SIZE, "export to vgem: pins all of it");
	pattern(a.map, SIZE, 7);
	drmIoctl(vgem, DRM_IOCTL_MODE_MAP_DUMB, &map);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, vgem, (off_t)map.offset);
	if (p != MAP_FAILED) {
		tap_eq(wrong(p, SIZE, 7), 0, "export to vgem: vgem maps the same memory");
		munmap(p, SIZE);
	}
	close(vgem);
	close(dmabuf);
	abi_buf_free(fd, &a);
}

static void refused(int fd, struct abi_queue *q, const struct peer *peer, uint32_t handle)
{
	struct drm_spyre_bo_mmap_offset offset = { .handle = handle };
	struct drm_spyre_dma raw = abi_dma_raw(DRM_SPYRE_DMA_H2D, SIZE);
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct drm_spyre_submit submit = {
		.queue_id = q->id, .cbs = { sizeof(cb), 1, PTR(&cb) }, .result_handle = handle,
	};

	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &offset), -EINVAL,
		"%s: no mmap offset on this node", peer->name);
	tap_ret(abi_bind(fd, handle, 0, 2 * VA, PAGE, 0), -EINVAL,
		"%s: cannot be mapped on the card", peer->name);
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_SUBMIT, &submit), -EINVAL,
		"%s: cannot hold results", peer->name);
	cb = abi_cb_dma_bo(&raw, VA, handle, PAGE, SIZE);
	tap_ret(abi_run(q, &cb, 1), -EINVAL, "%s: a span past its end", peer->name);
	cb = abi_cb_dma_bo(&raw, VA, handle, UINT64_MAX - PAGE + 1, PAGE);
	tap_ret(abi_run(q, &cb, 1), -EINVAL, "%s: a span that wraps around", peer->name);
}

static void test_import(int fd, struct abi_queue *q, struct abi_buf *dev, struct peer *peer)
{
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, SIZE);
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_D2H, SIZE);
	uint64_t used = abi_memory(fd).used;
	struct drm_spyre_bo_info info;
	struct drm_spyre_cb cb;
	uint32_t handle = 0, again = 0;
	int back = -1;

	if (!tap_ok(!drmPrimeFDToHandle(fd, peer->fd, &handle), "%s: import", peer->name))
		return;
	tap_ret(memory_info(fd, handle, &info), 0, "%s: BO_INFO", peer->name);
	tap_ok(info.flags == (DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORTED) && info.size == SIZE,
	       "%s: an imported host BO of its size", peer->name);
	tap_eq(abi_memory(fd).used, used, "%s: takes no device memory", peer->name);
	tap_ok(!drmPrimeFDToHandle(fd, peer->fd, &again) && again == handle,
	       "%s: imported again it is the same handle", peer->name);
	tap_ok(!drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC, &back), "%s: export again", peer->name);
	close(back);

	peer_sync(peer->fd, true, true);
	pattern(peer->map, SIZE, 3);
	peer_sync(peer->fd, false, true);
	memset(dev->map, 0, SIZE);
	cb = abi_cb_dma_bo(&up, dev->va, handle, 0, SIZE);
	tap_ret(abi_run(q, &cb, 1), 0, "%s: H2D", peer->name);
	tap_eq(wrong(dev->map, SIZE, 3), 0, "%s: H2D bit for bit", peer->name);
	pattern(dev->map, SIZE, 5);
	cb = abi_cb_dma_bo(&down, dev->va, handle, 0, SIZE);
	tap_ret(abi_run(q, &cb, 1), 0, "%s: D2H", peer->name);
	peer_sync(peer->fd, true, false);
	tap_eq(wrong(peer->map, SIZE, 5), 0, "%s: D2H bit for bit", peer->name);
	peer_sync(peer->fd, false, false);
	refused(fd, q, peer, handle);

	/* The card's reference is enough, and then that of the mapping of this process. */
	close(peer->fd);
	peer->fd = -1;
	cb = abi_cb_dma_bo(&up, dev->va, handle, 0, SIZE);
	tap_ret(abi_run(q, &cb, 1), 0, "%s: works after its descriptor is closed", peer->name);
	abi_gem_close(fd, handle);
	tap_ret(abi_run(q, &cb, 1), -ENOENT, "%s: fails after its handle is closed", peer->name);
}

typedef const char *(*peer_fn)(struct peer *peer, uint64_t size);

static void test_peer(int fd, struct abi_queue *q, struct abi_buf *dev, peer_fn make)
{
	struct peer peer;
	const char *why = make(&peer, SIZE);

	if (why) {
		tap_skip(why, "import from %s", peer.name);
		return;
	}
	test_import(fd, q, dev, &peer);
	peer_free(&peer);
}

static void test_hostile(int fd)
{
	uint32_t handle = 0;
	int pipes[2];

	tap_ok(drmPrimeFDToHandle(fd, -1, &handle) && errno == EBADF, "import of fd -1 gives EBADF");
	if (pipe(pipes))
		tap_bail("pipe");
	tap_ok(drmPrimeFDToHandle(fd, pipes[0], &handle) && errno == EINVAL,
	       "import of a pipe gives EINVAL");
	tap_ok(drmPrimeFDToHandle(fd, fd, &handle) && errno == EINVAL,
	       "import of the node's own descriptor gives EINVAL");
	close(pipes[0]);
	close(pipes[1]);
}

/* --- fences of vgem, which signal when this program decides --- */
struct late {
	const struct peer *peer;
	uint32_t fence;
	uint32_t seed;
};

static void *write_late(void *arg)
{
	struct late *late = arg;

	abi_sleep_ms(200);
	pattern(late->peer->map, SIZE, late->seed);
	peer_vgem_signal(late->peer, late->fence);
	return NULL;
}

static bool ready(int dmabuf, short events)
{
	struct pollfd p = { .fd = dmabuf, .events = events };

	return poll(&p, 1, 0) == 1 && p.revents & events;
}

/* A job that waits for a fence of @gate, as a syncobj. */
static uint32_t gate_syncobj(int fd, const struct peer *gate)
{
	uint32_t syncobj = abi_syncobj(fd);
	int file = peer_sync_file(gate->fd, true);

	if (file < 0 || drmSyncobjImportSyncFile(fd, syncobj, file))
		tap_bail("sync_file of a dma-buf");
	close(file);
	return syncobj;
}

static void test_foreign_fence(int fd, struct abi_queue *q, struct abi_buf *dev, struct peer *peer,
			       uint32_t handle)
{
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, SIZE);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&up, dev->va, handle, 0, SIZE);
	struct late late = { .peer = peer, .seed = 11 };
	pthread_t thread;

	pattern(peer->map, SIZE, 10);
	late.fence = peer_vgem_fence(peer, true);
	tap_ok(late.fence, "fences: vgem writes the buffer");
	pthread_create(&thread, NULL, write_late, &late);
	tap_ret(abi_run(q, &cb, 1), 0, "fences: H2D of the buffer");
	tap_eq(wrong(dev->map, SIZE, 11), 0, "fences: H2D reads vgem's last write");
	pthread_join(thread, NULL);
}

static void test_own_fence(int fd, struct abi_queue *q, struct abi_buf *dev, struct peer *peer,
			   struct peer *gate, uint32_t handle)
{
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, SIZE);
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_D2H, SIZE);
	struct drm_spyre_cb write = abi_cb_dma_bo(&down, dev->va, handle, 0, SIZE);
	struct drm_spyre_cb read = abi_cb_dma_bo(&up, dev->va, handle, 0, SIZE);
	struct abi_queue second = abi_queue(fd, 0);
	uint32_t held = peer_vgem_fence(gate, true), fence;
	struct drm_spyre_sync wait = { .handle = gate_syncobj(fd, gate) }, none = { 0 };

	tap_ok(ready(peer->fd, POLLOUT), "fences: the buffer is idle");
	tap_ret(abi_submit_sync(q, &read, 1, wait, none), 0, "fences: a job that reads it, held back");
	tap_ok(ready(peer->fd, POLLIN) && !ready(peer->fd, POLLOUT),
	       "fences: the buffer is ready for readers, not for writers");
	tap_ok(!peer_vgem_fence(peer, true), "fences: vgem's write fence is refused");

	/* While jobs use it, another driver's fence delays a job, but not SUBMIT. */
	fence = peer_vgem_fence(peer, false);
	tap_ok(fence, "fences: vgem's read fence is accepted");
	tap_ret(abi_submit(&second, &write, 1, NULL), 0, "fences: a job that writes it");
	tap_ok(!ready(peer->fd, POLLIN), "fences: the buffer is not ready for readers");
	tap_ok(peer_vgem_signal(gate, held), "fences: the reader's wait signals");
	tap_ret(abi_wait(q, 5000), 0, "fences: the reader completes");
	tap_ret(abi_wait(&second, 50), -ETIME, "fences: the writer waits for vgem's reader");
	tap_ok(peer_vgem_signal(peer, fence), "fences: vgem's reader ends");
	tap_ret(abi_wait(&second, 5000), 0, "fences: the writer completes");
	tap_ok(ready(peer->fd, POLLOUT), "fences: the buffer is idle again");
	drmSyncobjDestroy(fd, wait.handle);
	abi_queue_free(&second);
}

static void test_fences(int fd, struct abi_queue *q, struct abi_buf *dev)
{
	struct peer peer, gate;
	const char *why = peer_vgem(&peer, SIZE);
	uint32_t handle = 0;

	if (why) {
		tap_skip(why, "fences of another driver");
		return;
	}
	if (peer_vgem(&gate, PAGE) || drmPrimeFDToHandle(fd, peer.fd, &handle))
		tap_bail("vgem");
	test_foreign_fence(fd, q, dev, &peer, handle);
	test_own_fence(fd, q, dev, &peer, &gate, handle);
	abi_gem_close(fd, handle);
	peer_free(&peer);
	peer_free(&gate);
}

int main(void)
{
	int fd = abi_open(), other = abi_open();
	struct abi_queue q = abi_queue(fd, 0);
	struct abi_buf dev;

	test_export(fd, other, &q);
	test_outlives_file();
	test_foreign_importer(fd);
	dev = abi_buf(fd, SIZE, DRM_SPYRE_BO_DEVICE, VA);
	test_peer(fd, &q, &dev, peer_udmabuf);
	test_peer(fd, &q, &dev, peer_heap);
	test_peer(fd, &q, &dev, peer_vgem);
	test_fences(fd, &q, &dev);
	test_hostile(fd);
	abi_queue_free(&q);
	return tap_done();
}
