/* SPDX-License-Identifier: MIT */
/* Calls that concern files, buffers and addresses. */
#include "failnth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#define SPARE_VA (FAIL_VA + 16 * MIB)

static int call_open(struct fail_ctx *c)
{
	static char node[PATH_MAX];
	char device[NAME_MAX];

	if (!node[0])
		abi_find(node, sizeof(node), device, sizeof(device));
	c->file = open(node, O_RDWR | O_CLOEXEC);
	return c->file < 0 ? -errno : 0;
}

static void undo_file(struct fail_ctx *c)
{
	close(c->file);
}

static int query(struct fail_ctx *c, uint32_t type)
{
	struct drm_spyre_dev_query args = {
		.type = type, .size = FAIL_BYTES, .pointer = PTR(c->user),
	};

	return abi_ioctl(c->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args);
}

static int call_query_card(struct fail_ctx *c)
{
	return query(c, DRM_SPYRE_DEV_QUERY_CARD);
}

static int call_query_memory(struct fail_ctx *c)
{
	return query(c, DRM_SPYRE_DEV_QUERY_MEMORY);
}

static int call_query_counters(struct fail_ctx *c)
{
	return query(c, DRM_SPYRE_DEV_QUERY_COUNTERS);
}

static int call_query_context(struct fail_ctx *c)
{
	return query(c, DRM_SPYRE_DEV_QUERY_CONTEXT);
}

static int call_bo_device(struct fail_ctx *c)
{
	return abi_bo(c->fd, FAIL_BYTES, DRM_SPYRE_BO_DEVICE, &c->handle);
}

static int call_bo_host(struct fail_ctx *c)
{
	return abi_bo(c->fd, FAIL_BYTES, DRM_SPYRE_BO_HOST, &c->handle);
}

static void close_handle(struct fail_ctx *c)
{
	abi_gem_close(c->fd, c->handle);
}

static void prepare_bo(struct fail_ctx *c)
{
	int ret = call_bo_device(c);

	if (ret)
		tap_bail("BO_CREATE: %s", strerror(-ret));
}

static int call_close(struct fail_ctx *c)
{
	struct drm_gem_close args = { .handle = c->handle };
	int ret = abi_ioctl(c->fd, DRM_IOCTL_GEM_CLOSE, &args);

	if (!ret)
		c->handle = 0;
	return ret;
}

static int call_mmap_offset(struct fail_ctx *c)
{
	struct drm_spyre_bo_mmap_offset args = { .handle = c->handle };

	return abi_ioctl(c->fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args);
}

static int call_bo_info(struct fail_ctx *c)
{
	struct drm_spyre_bo_info args = { .handle = c->handle };

	return abi_ioctl(c->fd, DRM_IOCTL_SPYRE_BO_INFO, &args);
}

static int call_mmap(struct fail_ctx *c)
{
	struct drm_spyre_bo_mmap_offset args = { .handle = c->handle };
	int ret = abi_ioctl(c->fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args);

	if (ret)
		return ret;
	c->map = mmap(NULL, FAIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd,
		      (off_t)args.offset);
	return c->map == MAP_FAILED ? -errno : 0;
}

static void unmap(struct fail_ctx *c)
{
	munmap(c->map, FAIL_BYTES);
}

static void prepare_map(struct fail_ctx *c)
{
	prepare_bo(c);
	if (call_mmap(c))
		tap_bail("mmap of a BO: %s", strerror(errno));
}

static void release_map(struct fail_ctx *c)
{
	unmap(c);
	close_handle(c);
}

static sigjmp_buf out;

static void on_bus_error(int signal)
{
	siglongjmp(out, signal);
}

/* A page that cannot be allocated is a SIGBUS, or the kernel retries. */
static int call_fault(struct fail_ctx *c)
{
	struct sigaction act = { .sa_handler = on_bus_error }, old;
	volatile uint8_t *p = c->map;
	volatile int ret = 0;
	uint32_t i;

	sigaction(SIGBUS, &act, &old);
	if (!sigsetjmp(out, 1))
		for (i = 0; i < FAIL_BYTES; i += PAGE)
			p[i] = 1;
	else
		ret = -ENOMEM;
	sigaction(SIGBUS, &old, NULL);
	return ret;
}

static int call_map(struct fail_ctx *c)
{
	return abi_bind(c->fd, c->handle, 0, SPARE_VA, FAIL_BYTES, 0);
}

static void unbind(struct fail_ctx *c)
{
	abi_unbind(c->fd, SPARE_VA, FAIL_BYTES);
}

static void prepare_mapped(struct fail_ctx *c)
{
	prepare_bo(c);
	if (call_map(c))
		tap_bail("VM_BIND");
}

/* Splits a mapping in two. */
static int call_unmap_middle(struct fail_ctx *c)
{
	return abi_unbind(c->fd, SPARE_VA + PAGE, PAGE);
}

static int call_replace_middle(struct fail_ctx *c)
{
	return abi_bind(c->fd, c->dev.handle, 0, SPARE_VA + 2 * PAGE, PAGE,
			DRM_SPYRE_VM_MAP_READONLY);
}

static void release_mapped(struct fail_ctx *c)
{
	unbind(c);
	close_handle(c);
}

static int call_map_async(struct fail_ctx *c)
{
	struct drm_spyre_vm_bind_op op = {
		.op = DRM_SPYRE_VM_MAP,
		.handle = c->handle,
		.va = SPARE_VA,
		.range = FAIL_BYTES,
	};
	struct drm_spyre_sync done = {
		.handle = c->queue.syncobj,
		.flags = DRM_SPYRE_SYNC_SIGNAL,
		.point = c->queue.point + 1,
	};
	struct drm_spyre_vm_bind args = {
		.ops = { .stride = sizeof(op), .count = 1, .array = PTR(&op) },
		.flags = DRM_SPYRE_VM_BIND_ASYNC,
		.syncs = { .stride = sizeof(done), .count = 1, .array = PTR(&done) },
	};
	int ret = abi_ioctl(c->fd, DRM_IOCTL_SPYRE_VM_BIND, &args);

	if (!ret)
		c->queue.point++;
	return ret;
}

static int call_export(struct fail_ctx *c)
{
	return drmPrimeHandleToFD(c->fd, c->handle, DRM_CLOEXEC | DRM_RDWR, &c->file) ?
	       -errno : 0;
}

static void prepare_import(struct fail_ctx *c)
{
	prepare_bo(c);
	if (call_export(c))
		tap_bail("PRIME_HANDLE_TO_FD: %s", strerror(errno));
}

static int call_import(struct fail_ctx *c)
{
	return drmPrimeFDToHandle(c->other, c->file, &c->imported) ? -errno : 0;
}

static void undo_import(struct fail_ctx *c)
{
	abi_gem_close(c->other, c->imported);
}

static void release_import(struct fail_ctx *c)
{
	close(c->file);
	close_handle(c);
}

const struct fail_call fail_memory_calls[] = {
	{ "open", NULL, call_open, undo_file, NULL, false },
	{ "DEV_QUERY of the card", NULL, call_query_card, NULL, NULL, false },
	{ "DEV_QUERY of memory", NULL, call_query_memory, NULL, NULL, false },
	{ "DEV_QUERY of counters", NULL, call_query_counters, NULL, NULL, false },
	{ "DEV_QUERY of the context", NULL, call_query_context, NULL, NULL, false },
	{ "BO_CREATE, device", NULL, call_bo_device, close_handle, NULL, true },
	{ "BO_CREATE, host", NULL, call_bo_host, close_handle, NULL, true },
	{ "GEM_CLOSE", prepare_bo, call_close, NULL, close_handle, false },
	{ "BO_INFO", prepare_bo, call_bo_info, NULL, close_handle, false },
	{ "BO_MMAP_OFFSET", prepare_bo, call_mmap_offset, NULL, close_handle, false },
	{ "mmap", prepare_bo, call_mmap, unmap, close_handle, false },
	{ "page fault", prepare_map, call_fault, NULL, release_map, false },
	{ "VM_BIND, map", prepare_bo, call_map, unbind, close_handle, false },
	{ "VM_BIND, unmap that splits", prepare_mapped, call_unmap_middle, NULL, release_mapped, false },
	{ "VM_BIND, map that splits", prepare_mapped, call_replace_middle, NULL, release_mapped, false },
	{ "VM_BIND, asynchronous", prepare_bo, call_map_async, unbind, close_handle, false },
	{ "PRIME_HANDLE_TO_FD", prepare_bo, call_export, undo_file, close_handle, true },
	{ "PRIME_FD_TO_HANDLE", prepare_import, call_import, undo_import, release_import, true },
	{ 0 }
};
