/* SPDX-License-Identifier: MIT */
/* Buffer objects, accounting, the address space, and isolation between files. */
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

static bool all32(const uint32_t *p, size_t bytes, uint32_t value)
{
	size_t i;

	for (i = 0; i < bytes / 4; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void test_bo(int fd, uint32_t flags, const char *kind)
{
	struct abi_buf a = abi_buf(fd, MIB, flags, 0);
	uint8_t *again;
	uint32_t handle;
	int i;

	tap_ok(all32(a.map, MIB, 0), "%s BO: reads as zero", kind);
	memset(a.map, 0x5a, MIB);
	again = abi_mmap(fd, a.handle, MIB);
	tap_ok(again && all32((uint32_t *)again, MIB, 0x5a5a5a5a),
	       "%s BO: two mappings show the same memory",
	       kind);
	munmap(a.map, MIB);
	a.map = again;
	tap_ok(all32(a.map, MIB, 0x5a5a5a5a), "%s BO: the second mapping outlives the first", kind);
	handle = a.handle;
	abi_gem_close(fd, handle);
	memset(a.map, 0x77, MIB);
	tap_ok(all32(a.map, MIB, 0x77777777), "%s BO: a mapping outlives the handle", kind);
	munmap(a.map, MIB);
	for (i = 0; i < 8; i++) {
		a = abi_buf(fd, MIB, flags, 0);
		if (!all32(a.map, MIB, 0))
			break;
		memset(a.map, 0xff, MIB);
		abi_buf_free(fd, &a);
	}
	tap_eq(i, 8, "%s BO: contents of freed memory are never visible", kind);
}

static void test_map_limits(int fd, int other)
{
	struct abi_buf a = abi_buf(fd, 2 * PAGE, DRM_SPYRE_BO_HOST, 0);
	struct drm_spyre_bo_mmap_offset args = { .handle = a.handle };
	void *p;

	abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args);
	p = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, (off_t)args.offset);
	tap_ok(p == MAP_FAILED && errno == EINVAL, "mmap of more than the BO gives EINVAL");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	tap_ok(p == MAP_FAILED && errno == EINVAL, "mmap at offset 0 gives EINVAL");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)args.offset + (1ll << 45));
	tap_ok(p == MAP_FAILED && errno == EINVAL, "mmap at an offset without a BO gives EINVAL");
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, other, (off_t)args.offset);
	tap_ok(p == MAP_FAILED && errno == EACCES, "mmap of another file's BO gives EACCES");
	abi_buf_free(fd, &a);
}

static void test_accounting(int fd)
{
	struct drm_spyre_memory_info start = abi_memory(fd), now;
	struct abi_prog prog = abi_prog_add(1, 4);
	uint32_t a, b, host, program;

	if (abi_bo(fd, 5 * PAGE, DRM_SPYRE_BO_DEVICE, &a) ||
	    abi_bo(fd, MIB, DRM_SPYRE_BO_HOST, &host))
		tap_bail("BO_CREATE");
	now = abi_memory(fd);
	tap_eq(now.used - start.used, 5 * PAGE, "accounting: device BOs count, host BOs do not");
	tap_eq(now.context_used - start.context_used, 5 * PAGE, "accounting: the file is charged");
	tap_eq(now.used + now.free, now.total, "accounting: free + used = total");
	program = abi_prog_create(fd, &prog);
	tap_ok(abi_memory(fd).used > now.used, "accounting: a program is charged");
	abi_prog_destroy(fd, program);
	tap_ok(abi_memory_settles(fd, now.used), "accounting: destroying it releases the charge");
	tap_ret(abi_bo(fd, now.free + PAGE, DRM_SPYRE_BO_DEVICE, &b), -ENOSPC,
		"accounting: a page more than is free gives ENOSPC");
	tap_eq(abi_memory(fd).used, now.used, "accounting: the refused call is not charged");
	tap_ret(abi_bo(fd, now.free, DRM_SPYRE_BO_DEVICE, &b), 0,
		"accounting: all free memory can be allocated");
	tap_eq(abi_memory(fd).free, 0, "accounting: nothing is free then");
	abi_gem_close(fd, b);
	abi_gem_close(fd, a);
	abi_gem_close(fd, host);
	tap_ok(abi_memory_settles(fd, start.used), "accounting: back at the start");
}

/* --- the address space, observed by COPY into a host-visible BO --- */
#define VA (256 * MIB)

static struct abi_queue queue;
static struct abi_buf probe;	/* mapped at VA / 2, target of copies */

/* Reads the first word at a device address; returns the errno of reading it. */
static int peek(uint64_t va, uint32_t *value)
{
	struct drm_spyre_cb cb = abi_cb_copy(probe.va, va, STICK);
	int ret = abi_run(&queue, &cb, 1);

	*value = *(uint32_t *)probe.map;
	return ret;
}

static void shows(const char *what, uint64_t va, uint32_t want)
{
	uint32_t value = 0;
	int ret = peek(va, &value);

	if (ret)
		tap_ret(ret, 0, "VM: %s", what);
	else
		tap_eq(value, want, "VM: %s", what);
}

static void hole(const char *what, uint64_t va)
{
	uint32_t value;

	tap_ret(peek(va, &value), -EFAULT, "VM: %s", what);
}

static void test_map_unmap(int fd, struct abi_buf *a, struct abi_buf *b)
{
	const uint64_t segment = 1ull << DRM_SPYRE_SEGMENT_SHIFT;

	tap_ret(abi_bind(fd, a->handle, 0, VA, 8 * PAGE, 0), 0, "VM: map 8 pages of a");
	shows("page 0 of a", VA, 0xa0);
	shows("page 7 of a", VA + 7 * PAGE, 0xa7);
	hole("behind it is nothing", VA + 8 * PAGE);
	tap_ret(abi_unbind(fd, VA + 2 * PAGE, 2 * PAGE), 0, "VM: unmap pages 2 and 3");
	shows("page 1 stays", VA + PAGE, 0xa1);
	hole("page 2 is gone", VA + 2 * PAGE);
	hole("page 3 is gone", VA + 3 * PAGE);
	shows("page 4 stays, at its offset", VA + 4 * PAGE, 0xa4);
	tap_ret(abi_bind(fd, b->handle, PAGE, VA + 5 * PAGE, PAGE, 0), 0,
		"VM: map page 1 of b over page 5");
	shows("page 4 is a's", VA + 4 * PAGE, 0xa4);
	shows("page 5 is b's", VA + 5 * PAGE, 0xb1);
	shows("page 6 is a's", VA + 6 * PAGE, 0xa6);
	tap_ret(abi_bind(fd, b->handle, 0, VA, 8 * PAGE, 0), 0, "VM: map b over all and the hole");
	shows("page 2 is b's", VA + 2 * PAGE, 0xb2);
	shows("page 7 is b's", VA + 7 * PAGE, 0xb7);
	tap_ret(abi_unbind(fd, VA - 16 * PAGE, 64 * PAGE), 0, "VM: unmap more than is mapped");
	hole("all is gone", VA);
	hole("to the last page", VA + 7 * PAGE);
	tap_ret(abi_bind(fd, a->handle, 0, 8 * segment - 8 * PAGE, 8 * PAGE, 0), 0,
		"VM: the last pages of the last segment");
	shows("they work", 8 * segment - PAGE, 0xa7);
	tap_ret(abi_bind(fd, a->handle, 0, PAGE, PAGE, 0), 0, "VM: the page after page 0");
	shows("it works", PAGE, 0xa0);
	tap_ret(abi_bind(fd, a->handle, 0, 3 * segment, PAGE, 0), 0,
		"VM: the first page of segment 3");
	shows("it works too", 3 * segment, 0xa0);
	abi_unbind(fd, 8 * segment - 8 * PAGE, 8 * PAGE);
	abi_unbind(fd, PAGE, PAGE);
	abi_unbind(fd, 3 * segment, PAGE);
}

static void test_readonly(int fd, struct abi_buf *a)
{
	struct drm_spyre_cb cb = abi_cb_fill32(VA + PAGE, STICK, 0xbad);

	abi_bind(fd, a->handle, 0, VA, 8 * PAGE, DRM_SPYRE_VM_MAP_READONLY);
	tap_ret(abi_run(&queue, &cb, 1), -EFAULT, "VM: FILL of a read-only mapping");
	cb = abi_cb_copy(VA + PAGE, probe.va, STICK);
	tap_ret(abi_run(&queue, &cb, 1), -EFAULT, "VM: COPY into a read-only mapping");
	shows("it can be read and is as it was", VA + PAGE, 0xa1);
	abi_bind(fd, a->handle, 2 * PAGE, VA + 2 * PAGE, PAGE, 0);
	tap_ret(abi_run(&queue, &cb, 1), -EFAULT,
		"VM: a writable page in it leaves the page before read-only");
	cb = abi_cb_fill32(VA + 5 * PAGE, STICK, 0xbad);
	tap_ret(abi_run(&queue, &cb, 1), -EFAULT, "VM: the pages after it stay read-only");
	cb = abi_cb_fill32(VA + 2 * PAGE, STICK, 0xa2);
	tap_ret(abi_run(&queue, &cb, 1), 0, "VM: the page itself is writable");
	abi_unbind(fd, VA, 8 * PAGE);
}

static void test_mapping_keeps_memory(int fd)
{
	struct drm_spyre_memory_info start = abi_memory(fd);
	struct abi_buf a = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VA);

	*(uint32_t *)a.map = 0xc0ffee;
	munmap(a.map, PAGE);
	abi_gem_close(fd, a.handle);
	shows("a mapping outlives the handle", VA, 0xc0ffee);
	tap_eq(abi_memory(fd).used - start.used, PAGE,
	       "VM: the memory of a closed BO stays counted while mapped");
	abi_unbind(fd, VA, PAGE);
	tap_ok(abi_memory_settles(fd, start.used), "VM: unmapping frees it");
}

static void test_vm(int fd)
{
	struct abi_buf a = abi_buf(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE, 0);
	struct abi_buf b = abi_buf(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE, 0);
	uint32_t i;

	for (i = 0; i < 8; i++) {
		((uint32_t *)a.map)[i * PAGE / 4] = 0xa0 + i;
		((uint32_t *)b.map)[i * PAGE / 4] = 0xb0 + i;
	}
	test_map_unmap(fd, &a, &b);
	test_readonly(fd, &a);
	test_mapping_keeps_memory(fd);
	abi_buf_free(fd, &a);
	abi_buf_free(fd, &b);
}

static void test_isolation(int fd, int other)
{
	struct abi_buf a = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VA), mine;
	struct abi_prog prog = abi_prog_add(1, 4);
	uint32_t program = abi_prog_create(fd, &prog);
	struct abi_queue q = abi_queue(other, 0);
	uint64_t args[3];
	struct drm_spyre_cb cb;
	uint32_t syncobj = abi_syncobj(fd);
	struct drm_spyre_queue_query query = { .queue_id = queue.id };
	struct drm_spyre_bo_mmap_offset offset = { .handle = a.handle };

	*(uint32_t *)a.map = 0x5ec2e7;
	/* Handles count from 1 in each file: uses one that only @fd has. */
	while (a.handle <= q.results.handle + 2)
		if (abi_bo(fd, PAGE, DRM_SPYRE_BO_DEVICE, &a.handle))
			tap_bail("BO_CREATE");
	offset.handle = a.handle;
	tap_ret(abi_ioctl(other, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &offset), -ENOENT,
		"isolation: a BO handle of another file");
	tap_ret(abi_bind(other, a.handle, 0, VA, PAGE, 0), -ENOENT,
		"isolation: binding a BO of another file");
	tap_ret(abi_prog_destroy(other, program), -ENOENT, "isolation: a program of another file");
	abi_queue_destroy(other, q.id);
	if (queue.id != q.id)
		tap_ret(abi_ioctl(other, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), -ENOENT,
			"isolation: a queue of another file");
	query.queue_id = q.id;
	tap_ret(abi_ioctl(other, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), -ENOENT,
		"isolation: queue ids are per file");
	abi_queue_create(other, 0, 0, &q.id);
	cb = abi_cb_fill32(VA, STICK, 1);
	tap_ret(abi_run(&q, &cb, 1), -EFAULT, "isolation: an address mapped by another file");
	mine = abi_buf(other, PAGE, DRM_SPYRE_BO_DEVICE, VA);
	args[0] = args[1] = args[2] = VA;
	cb = abi_cb_exec(program, args, 3);
	tap_ret(abi_run(&q, &cb, 1), -ENOENT, "isolation: running a program of another file");
	cb = abi_cb_fill32(VA, PAGE, 0x33333333);
	tap_ret(abi_run(&q, &cb, 1), 0, "isolation: the same address in both files");
	tap_eq(*(uint32_t *)mine.map, 0x33333333, "isolation: only this file's memory is written");
	shows("isolation: and not in the other file", VA, 0x5ec2e7);
	abi_prog_destroy(fd, program);
	drmSyncobjDestroy(fd, syncobj);
	abi_buf_free(other, &mine);
	abi_queue_free(&q);
	abi_unbind(fd, VA, PAGE);
	munmap(a.map, PAGE);
}

static void test_prime(int fd, int other)
{
	struct abi_buf a = abi_buf(fd, 2 * PAGE, DRM_SPYRE_BO_DEVICE, 0);
	struct drm_spyre_memory_info before = abi_memory(fd);
	uint32_t handle = 0, same = 0;
	int buf_fd = -1;
	uint32_t *p;

	*(uint32_t *)a.map = 0xfeed;
	tap_ok(!drmPrimeHandleToFD(fd, a.handle, DRM_CLOEXEC | DRM_RDWR, &buf_fd),
	       "PRIME: export");
	tap_ok(!drmPrimeFDToHandle(fd, buf_fd, &same) && same == a.handle,
	       "PRIME: import into the same file is the same handle");
	tap_ok(!drmPrimeFDToHandle(other, buf_fd, &handle), "PRIME: import into another file");
	p = abi_mmap(other, handle, 2 * PAGE);
	tap_ok(p && *p == 0xfeed, "PRIME: both handles name the same memory");
	tap_ret(abi_bind(other, handle, 0, VA, 2 * PAGE, 0), 0, "PRIME: can be mapped on the card");
	tap_eq(abi_memory(fd).used, before.used, "PRIME: counted once");
	abi_unbind(other, VA, 2 * PAGE);
	munmap(p, 2 * PAGE);
	close(buf_fd);
	abi_gem_close(fd, a.handle);
	p = abi_mmap(other, handle, 2 * PAGE);
	tap_ok(p && *p == 0xfeed, "PRIME: outlives the exporter's handle");
	munmap(p, 2 * PAGE);
	munmap(a.map, 2 * PAGE);
	abi_gem_close(other, handle);
	tap_ok(abi_memory_settles(fd, before.used - 2 * PAGE),
	       "PRIME: freed with the last reference");
}

/* The file is closed first; its mappings in this process stay readable. */
static void test_close_with_maps(int fd)
{
	uint64_t used = abi_memory(fd).used;
	int mine = abi_open();
	struct abi_buf dev = abi_buf(mine, MIB, DRM_SPYRE_BO_DEVICE, VA);
	struct abi_buf host = abi_buf(mine, MIB, DRM_SPYRE_BO_HOST, 0);

	memset(dev.map, 1, MIB);
	memset(host.map, 2, MIB);
	close(mine);
	tap_ok(all32(dev.map, MIB, 0x01010101) && all32(host.map, MIB, 0x02020202),
	       "close: mappings stay valid");
	munmap(dev.map, MIB);
	munmap(host.map, MIB);
	tap_ok(abi_memory_settles(fd, used), "close: memory comes back with the last mapping");
}

int main(void)
{
	int fd = abi_open(), other = abi_open();
	uint64_t used = abi_memory(fd).used;
	int third;

	test_bo(fd, DRM_SPYRE_BO_DEVICE, "device");
	test_bo(fd, DRM_SPYRE_BO_HOST, "host");
	test_map_limits(fd, other);
	test_accounting(fd);
	queue = abi_queue(fd, 0);
	probe = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VA / 2);
	test_vm(fd);
	test_isolation(fd, other);
	test_prime(fd, other);
	abi_buf_free(fd, &probe);
	abi_queue_free(&queue);
	close(fd);
	close(other);
	third = abi_open();
	test_close_with_maps(third);
	tap_ok(abi_memory_settles(third, used),
	       "memory in use at the end equals that at the start");
	tap_eq(abi_memory(third).context_used, 0, "a new file owns nothing");
	return tap_done();
}
