/* SPDX-License-Identifier: MIT */
/*
 * Unplugs the card (sysfs unbind) while a program runs and memory is mapped. Runs
 * last, since the node is a new one afterwards.
 */
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "dmabuf-peers.h"
#include "prog.h"

#define DRIVER "/sys/bus/platform/drivers/spyre_vdev/"

static sigjmp_buf out;

static void on_bus_error(int signal)
{
	siglongjmp(out, signal);
}

/* Reads and writes a whole mapping: data, zeros or SIGBUS, never an oops. */
static void touch(const char *what, struct abi_buf *buf)
{
	struct sigaction act = { .sa_handler = on_bus_error }, old;
	volatile uint8_t *p = buf->map;
	volatile uint64_t i = 0;

	sigaction(SIGBUS, &act, &old);
	if (!sigsetjmp(out, 1))
		for (; i < buf->size; i += PAGE)
			p[i] = (uint8_t)(p[i] + 1);
	sigaction(SIGBUS, &old, NULL);
	tap_ok(true, "unplugged: %s: %s", what,
	       i < buf->size ? "SIGBUS" : "still readable and writable");
}

struct waiter {
	struct abi_queue *queue;
	int ret;
};

/* Waits from before the unplug until after it. */
static void *wait_long(void *arg)
{
	struct waiter *w = arg;

	w->ret = abi_wait_point(w->queue->fd, w->queue->syncobj, w->queue->point, 60000);
	return NULL;
}

static void test_calls_fail(int fd, struct abi_queue *q, uint32_t program)
{
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD };
	struct drm_spyre_queue_query state = { .queue_id = q->id };
	struct drm_gem_close gem = { .handle = 1 };
	uint32_t handle;
	int file;

	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query), -ENODEV, "unplugged: DEV_QUERY");
	tap_ret(abi_bo(fd, PAGE, DRM_SPYRE_BO_DEVICE, &handle), -ENODEV, "unplugged: BO_CREATE");
	tap_ret(abi_bind(fd, 1, 0, MIB, PAGE, 0), -ENODEV, "unplugged: VM_BIND");
	tap_ret(abi_submit(q, &cb, 1, NULL), -ENODEV, "unplugged: SUBMIT");
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &state), -ENODEV,
		"unplugged: QUEUE_QUERY");
	tap_ret(abi_queue_destroy(fd, q->id), -ENODEV, "unplugged: QUEUE_DESTROY");
	tap_ret(abi_prog_destroy(fd, program), -ENODEV, "unplugged: PROGRAM_DESTROY");
	tap_ret(abi_wait(q, 0), -ENODEV, "unplugged: SYNCOBJ_TIMELINE_WAIT");
	tap_ret(abi_ioctl(fd, DRM_IOCTL_GEM_CLOSE, &gem), -ENODEV, "unplugged: GEM_CLOSE");
	tap_ok(drmPrimeHandleToFD(fd, 1, DRM_CLOEXEC, &file) && errno == ENODEV,
	       "unplugged: PRIME");
}

/* Shared buffers: one exported and mapped, one imported. */
struct shared {
	int file;
	int dmabuf;
	struct abi_buf exported;	/* its map belongs to the dma-buf */
	struct peer peer;
	bool has_peer;
};

static void shared_make(struct shared *b)
{
	uint32_t handle;

	b->file = abi_open();
	b->dmabuf = -1;
	b->exported = (struct abi_buf) { .size = MIB };
	if (abi_bo(b->file, MIB, DRM_SPYRE_BO_DEVICE, &b->exported.handle) ||
	    drmPrimeHandleToFD(b->file, b->exported.handle, DRM_CLOEXEC | DRM_RDWR, &b->dmabuf))
		tap_bail("PRIME export");
	b->exported.map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, b->dmabuf, 0);
	b->has_peer = !peer_udmabuf(&b->peer, MIB) &&
		      !drmPrimeFDToHandle(b->file, b->peer.fd, &handle);
}

static void shared_check(struct shared *b)
{
	struct abi_buf again = b->exported;

	touch("dma-buf mapped before", &b->exported);
	again.map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, b->dmabuf, 0);
	tap_ok(again.map != MAP_FAILED && *(uint8_t *)again.map == 1,
	       "unplugged: a dma-buf can still be mapped, and has its content");
	munmap(again.map, MIB);
	close(b->file);
	tap_eq(*(uint8_t *)b->exported.map, 1, "unplugged: the dma-buf outlives its file");
	munmap(b->exported.map, MIB);
	close(b->dmabuf);
	if (!b->has_peer) {
		tap_skip("no udmabuf", "unplugged: an imported buffer is released");
		return;
	}
	memset(b->peer.map, 9, MIB);
	tap_eq(*(uint8_t *)b->peer.map, 9, "unplugged: an imported buffer is released");
	peer_free(&b->peer);
}

static void test_unplug(const char *device)
{
	struct shared shared;
	int fd = abi_open(), idle = abi_open(), export = -1;
	struct abi_prog prog = abi_prog_long();
	struct abi_buf dev = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, 64 * MIB);
	struct abi_buf host = abi_buf(fd, MIB, DRM_SPYRE_BO_HOST, 0);
	struct abi_buf untouched = abi_buf(idle, MIB, DRM_SPYRE_BO_HOST, 0);
	uint32_t program = abi_prog_create(fd, &prog);
	uint64_t args[3] = { dev.va, dev.va + ABI_LONG_BYTES, dev.va + 2 * ABI_LONG_BYTES };
	struct abi_queue q = abi_queue(fd, 60000);
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);
	struct drm_spyre_cb_result *r = abi_results(&q);
	struct waiter waiter = { .queue = &q, .ret = 1 };
	pthread_t thread;
	uint64_t start;

	shared_make(&shared);
	memset(r, 0, PAGE);
	memset(host.map, 3, MIB);
	/* A sync_file outlives the device's file: its fence must still signal. */
	tap_ret(abi_submit(&q, &cb, 1, NULL), 0, "a long program runs");
	abi_submit(&q, &cb, 1, NULL);
	drmPrimeHandleToFD(fd, host.handle, DRM_CLOEXEC | DRM_RDWR, &export);
	if (pthread_create(&thread, NULL, wait_long, &waiter))
		tap_bail("pthread_create");
	abi_sleep_ms(100);
	start = abi_now_ns();
	tap_ret(abi_write_file(DRIVER "unbind", device), 0, "unbind of %s", device);
	tap_ok(abi_now_ns() - start < 10000000000ull, "unbind takes %llu ms",
	       (unsigned long long)(abi_now_ns() - start) / 1000000);
	pthread_join(thread, NULL);
	tap_ret(waiter.ret, 0, "unplugged: a wait that began before ends, the fence has signalled");
	tap_ok(abi_now_ns() - start < 15000000000ull,
	       "unplugged: it ends without waiting for the work");
	tap_eq(r[0].state, DRM_SPYRE_CB_DONE, "unplugged: the running block's result");
	tap_ret2(r[0].status, -ENODEV, -ECANCELED, "unplugged: its status");
	tap_eq(r[1].state, 0, "unplugged: results that were not asked for are untouched");
	test_calls_fail(fd, &q, program);
	test_calls_fail(idle, &q, program);
	touch("device memory", &dev);
	touch("host memory", &host);
	touch("memory never touched before", &untouched);
	shared_check(&shared);
	close(export);
	munmap(dev.map, dev.size);
	munmap(q.results.map, q.results.size);
	close(fd);
	close(idle);
	touch("host memory after close", &host);
	munmap(host.map, host.size);
	munmap(untouched.map, untouched.size);
	tap_ret(abi_write_file(DRIVER "bind", device), 0, "bind of %s", device);
}

static void test_works_again(void)
{
	char node[PATH_MAX], device[NAME_MAX];
	struct drm_spyre_cb cb = abi_cb_fill32(MIB, PAGE, 0x600d);
	struct abi_queue q;
	struct abi_buf mem;
	int fd, i;

	/* udev or devtmpfs creates the node with a short delay. */
	for (i = 0; i < 100; i++) {
		if (abi_find(node, sizeof(node), device, sizeof(device)) && !access(node, R_OK))
			break;
		abi_sleep_ms(50);
	}
	fd = abi_open();
	q = abi_queue(fd, 0);
	mem = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, MIB);
	tap_ret(abi_run(&q, &cb, 1), 0, "bound again: work runs");
	tap_eq(*(uint32_t *)mem.map, 0x600d, "bound again: its result is right");
	abi_buf_free(fd, &mem);
	abi_queue_free(&q);
	tap_ok(abi_memory_settles(fd, 0), "bound again: no memory is in use");
	close(fd);
}

int main(void)
{
	char node[PATH_MAX], device[NAME_MAX];
	int i;

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		tap_skip_all("no accel node of spyre_vdev");
	if (getuid())
		tap_skip_all("unbinding needs root");
	for (i = 0; i < 3; i++) {
		test_unplug(device);
		test_works_again();
	}
	return tap_done();
}
