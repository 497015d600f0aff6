/* SPDX-License-Identifier: MIT */
/* Memory of buffer objects: when it is allocated, its contents, and how it is reported. */
#define _GNU_SOURCE	/* mremap() */
#include "abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "user.h"

#define VA (1024 * MIB)
#define GRANULE (2 * MIB)	/* one touch may allocate this much */

static void test_info(int fd)
{
	struct drm_spyre_bo_info info;
	uint32_t device, host;

	if (abi_bo(fd, 5 * PAGE + 1, DRM_SPYRE_BO_DEVICE, &device) ||
	    abi_bo(fd, PAGE, DRM_SPYRE_BO_HOST, &host))
		tap_bail("BO_CREATE");
	tap_ret(memory_info(fd, device, &info), 0, "info: device BO");
	tap_ok(info.flags == DRM_SPYRE_BO_DEVICE && info.size == 6 * PAGE && !info.resident,
	       "info: its flags and size, nothing resident");
	tap_ret(memory_info(fd, host, &info), 0, "info: host BO");
	tap_ok(info.flags == DRM_SPYRE_BO_HOST && info.size == PAGE && !info.resident,
	       "info: its flags and size, nothing resident");
	abi_gem_close(fd, device);
	tap_ret(memory_info(fd, device, &info), -ENOENT, "info: a handle that was closed");
	tap_ret(memory_info(fd, NEVER, &info), -ENOENT, "info: an unknown handle");
	tap_ret(memory_info(fd, 0, &info), -ENOENT, "info: handle 0");
	abi_gem_close(fd, host);
}

static void test_lazy_touch(int fd)
{
	struct abi_buf a = abi_buf(fd, 64 * MIB, DRM_SPYRE_BO_DEVICE, 0);
	volatile uint8_t *p = a.map;
	uint64_t now;

	tap_eq(memory_resident(fd, a.handle), 0, "lazy: mmap alone allocates no memory");
	tap_eq(p[40 * MIB], 0, "lazy: a page reads as zero");
	now = memory_resident(fd, a.handle);
	tap_ok(now >= PAGE && now <= GRANULE,
	       "lazy: reading allocates the page and few others (%llu KiB)",
	       (unsigned long long)now >> 10);
	p[40 * MIB] = 1;
	tap_eq(memory_resident(fd, a.handle), now, "lazy: writing the same page allocates nothing");
	madvise((void *)(p + 40 * MIB), PAGE, MADV_DONTNEED);
	tap_eq(p[40 * MIB], 1, "lazy: MADV_DONTNEED keeps the content");
	memset(a.map, 0x31, 64 * MIB);
	tap_eq(memory_resident(fd, a.handle), 64 * MIB,
	       "lazy: touching every page makes all resident");
	abi_buf_free(fd, &a);
}

static void test_lazy_work(int fd, struct abi_queue *q)
{
	struct abi_buf a = abi_buf(fd, 256 * MIB, DRM_SPYRE_BO_DEVICE, VA);
	struct drm_spyre_cb cb = abi_cb_fill32(VA + 100 * MIB, STICK, 0x11);
	uint32_t *p = a.map;
	uint64_t now;

	tap_eq(memory_resident(fd, a.handle), 0, "lazy: VM_BIND allocates no memory");
	tap_ret(abi_run(q, &cb, 1), 0, "lazy: FILL of a stick in the middle of 256 MiB");
	now = memory_resident(fd, a.handle);
	tap_ok(now && now <= GRANULE, "lazy: FILL allocates at most 2 MiB (%llu KiB)",
	       (unsigned long long)now >> 10);
	tap_ret(abi_run(q, &cb, 1), 0, "lazy: the same FILL again");
	tap_eq(memory_resident(fd, a.handle), now, "lazy: the second FILL allocates nothing");
	cb = abi_cb_fill32(VA + 102 * MIB - STICK, 2 * STICK, 0x22);
	tap_ret(abi_run(q, &cb, 1), 0, "lazy: FILL across a 2 MiB boundary");
	tap_ok(memory_resident(fd, a.handle) <= now + 2 * GRANULE, "lazy: it allocates both sides");
	tap_ok(p[100 * MIB / 4] == 0x11 && p[100 * MIB / 4 + 32] == 0 &&
	       p[102 * MIB / 4 - 32] == 0x22 && p[102 * MIB / 4 + 31] == 0x22 &&
	       p[102 * MIB / 4 + 32] == 0, "lazy: the mapping shows what the card wrote");
	p[200 * MIB / 4] = 0x33;
	cb = abi_cb_copy(VA, VA + 200 * MIB, STICK);
	tap_ret(abi_run(q, &cb, 1), 0, "lazy: COPY of what the mapping wrote");
	tap_eq(p[0], 0x33, "lazy: the card sees it");
	abi_unbind(fd, VA, a.size);
	abi_buf_free(fd, &a);
}

/* More ranges, overlapping in more ways, than a buffer has windows. */
static void test_many_ranges(int fd, struct abi_queue *q)
{
	const uint64_t size = 32 * MIB - PAGE;
	struct abi_buf a = abi_buf(fd, size, DRM_SPYRE_BO_DEVICE, VA);
	uint32_t *want = calloc(1, size), bad = 0, failed = 0;
	uint64_t from, bytes, i, n = 0;

	for (from = MIB / 2; from < size; from += 3 * MIB) {
		for (bytes = PAGE; from + bytes < size; bytes = bytes * 3 + STICK) {
			struct drm_spyre_cb cb;

			n++;
			cb = abi_cb_fill32(VA + from, bytes, (uint32_t)n);
			failed += abi_run(q, &cb, 1) != 0;
			for (i = 0; i < bytes / 4; i++)
				want[from / 4 + i] = (uint32_t)n;
		}
	}
	for (i = 0; i < size / 4; i++)
		bad += ((uint32_t *)a.map)[i] != want[i];
	tap_ok(!failed && n > 50,
	       "ranges: %llu overlapping fills all complete", (unsigned long long)n);
	tap_eq(bad, 0, "ranges: every byte has the value of the last fill");
	tap_eq(memory_resident(fd, a.handle), size, "ranges: resident never exceeds the size");
	free(want);
	abi_unbind(fd, VA, size);
	abi_buf_free(fd, &a);
}

static void test_mappings(int fd)
{
	struct abi_buf a = abi_buf(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE, 0);
	struct drm_spyre_bo_mmap_offset args = { .handle = a.handle };
	uint32_t *first = a.map, i, *second, *moved;
	int status = 0;
	pid_t pid;
	void *p;

	for (i = 0; i < 8; i++)
		first[i * PAGE / 4] = 0xa0 + i;
	abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args);
	second = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)args.offset);
	munmap(second, 3 * PAGE);
	munmap(second + 5 * PAGE / 4, PAGE);
	tap_ok(second[3 * PAGE / 4] == 0xa3 && second[4 * PAGE / 4] == 0xa4 &&
	       second[6 * PAGE / 4] == 0xa6, "mmap: split by munmap before the first access");
	moved = mremap(second + 6 * PAGE / 4, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       abi_hole());
	tap_ok(moved != MAP_FAILED && moved[0] == 0xa6 && moved[PAGE / 4] == 0xa7,
	       "mmap: moved by mremap before the first access");
	p = mremap(first, 8 * PAGE, 9 * PAGE, MREMAP_MAYMOVE);
	tap_ok(p == MAP_FAILED, "mmap: mremap cannot grow it");
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, (off_t)args.offset);
	tap_ok(p == MAP_FAILED && errno == EINVAL, "mmap: MAP_PRIVATE gives EINVAL");
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)args.offset);
	tap_ok(p != MAP_FAILED && *(uint32_t *)p == 0xa0, "mmap: mapping only the first part");
	munmap(p, 2 * PAGE);

	pid = fork();
	if (!pid) {
		first[0] = 0xc41d;
		_exit(first[PAGE / 4] != 0xa1);
	}
	waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status) && first[0] == 0xc41d,
	       "mmap: writes of a child are visible");
	if (moved != MAP_FAILED)
		munmap(moved, 2 * PAGE);
	munmap(second + 3 * PAGE / 4, 2 * PAGE);
	abi_buf_free(fd, &a);
}

/* Informational: the kernel decides whether to use huge pages. */
static void test_huge(int fd)
{
	uint64_t before = memory_key("/proc/vmstat", "thp_file_alloc");
	uint64_t faults = memory_key("/proc/vmstat", "pgfault");
	struct abi_buf a = abi_buf(fd, 64 * MIB, DRM_SPYRE_BO_DEVICE, 0);

	memset(a.map, 1, a.size);
	tap_note("huge pages: %llu of 32; page faults: %llu; mapping at %p",
		 (unsigned long long)(memory_key("/proc/vmstat", "thp_file_alloc") - before),
		 (unsigned long long)(memory_key("/proc/vmstat", "pgfault") - faults), a.map);
	abi_buf_free(fd, &a);
}

/* free + used = total in every query; a file's numbers include the memory reserved from it. */
static bool numbers_agree(int fd, int other)
{
	struct drm_spyre_memory_info m = abi_memory(fd), o = abi_memory(other);
	uint64_t used = memory_sysfs("lpddr_used");

	return m.used + m.free == m.total && m.context_used + o.context_used == used &&
	       memory_sysfs("lpddr_total") == m.total && used + memory_sysfs("lpddr_free") == m.total &&
	       m.used >= used && m.used - used <= (user_is_root() ? 0 : m.total / 16) &&
	       memory_fdinfo(fd, "spyre-capacity-lpddr5") == m.total &&
	       memory_fdinfo(fd, "spyre-used-lpddr5") == m.used &&
	       memory_fdinfo(fd, "spyre-free-lpddr5") == m.free &&
	       memory_fdinfo(fd, "spyre-owned-lpddr5") == m.context_used &&
	       memory_fdinfo(fd, "drm-total-lpddr5") == m.context_used;
}

static void test_capacity(int fd, int other)
{
	struct drm_spyre_memory_info start = abi_memory(fd);
	const uint64_t step = (start.total / 7) & ~(PAGE - 1);
	uint32_t handles[16], count = 0, disagreed = 0, theirs;
	int ret;

	if (abi_bo(other, 3 * PAGE, DRM_SPYRE_BO_DEVICE, &theirs))
		tap_bail("BO_CREATE");
	while (count < 16) {
		ret = abi_bo(fd, step, DRM_SPYRE_BO_DEVICE, &handles[count]);
		if (ret)
			break;
		count++;
		disagreed += !numbers_agree(fd, other);
	}
	tap_ret(ret, -ENOSPC, "capacity: buffers until the card is full");
	tap_ok(count >= 6 && abi_memory(fd).free < step, "capacity: %u of a seventh fit", count);
	tap_eq(memory_fdinfo(fd, "drm-resident-lpddr5"), 0, "capacity: none of them is resident");
	while (count) {
		abi_gem_close(fd, handles[--count]);
		disagreed += !numbers_agree(fd, other);
	}
	tap_eq(disagreed, 0, "capacity: DEV_QUERY, sysfs and fdinfo agree at each step");
	abi_gem_close(other, theirs);
	tap_eq(abi_memory(fd).used, start.used, "capacity: back at the start");
}

/* Allocates all memory that @fd may have, halving the free size; returns the number of BOs. */
static uint32_t take_all(int fd)
{
	uint32_t handle, count = 0;
	uint64_t size;

	while ((size = abi_memory(fd).free)) {
		if (size > 64 * PAGE)
			size = size / 2 & ~(PAGE - 1);
		if (abi_bo(fd, size, DRM_SPYRE_BO_DEVICE, &handle))
			return 0;
		count++;
	}
	return count;
}

/* A user with two files allocates everything it may; another one still gets its share. */
static void test_shares(int fd)
{
	const uint64_t total = abi_memory(fd).total, share = total / 128 & ~(PAGE - 1);
	uint64_t used = abi_memory(fd).used, free;
	uint32_t handle;
	int a, again, b;

	if (!user_is_root()) {
		tap_skip("needs root, to change to two users", "shares: of two users");
		return;
	}
	a = user_open(USER_A);
	again = user_open(USER_A);
	b = user_open(USER_B);
	tap_ok(abi_memory(a).free >= total - total / 16 - PAGE,
	       "shares: one user may allocate most of the memory");
	tap_ret(abi_bo(a, abi_memory(a).free + PAGE, DRM_SPYRE_BO_DEVICE, &handle), -ENOSPC,
		"shares: a page more than the reported free size: ENOSPC");
	tap_ok(take_all(a) > 0, "shares: the reported free size can be allocated");
	tap_eq(abi_memory(again).free, 0, "shares: another file of the user has nothing free");
	tap_ret(abi_bo(again, PAGE, DRM_SPYRE_BO_DEVICE, &handle), -ENOSPC,
		"shares: a page for it: ENOSPC");
	tap_eq(abi_memory(b).free, share, "shares: another user has its share free");
	tap_ret(abi_bo(b, share, DRM_SPYRE_BO_DEVICE, &handle), 0,
		"shares: the other user allocates its share");
	tap_ret(abi_bo(b, PAGE, DRM_SPYRE_BO_DEVICE, &handle), -ENOSPC,
		"shares: a page beyond its share: ENOSPC");
	free = abi_memory(fd).free;
	tap_ok(free > 0, "shares: the remaining memory is free for root");
	tap_ret(abi_bo(fd, free, DRM_SPYRE_BO_DEVICE, &handle), 0,
		"shares: root allocates all of it");
	tap_eq(memory_sysfs("lpddr_free"), 0, "shares: the card is full");
	abi_gem_close(fd, handle);
	close(a);
	close(again);
	close(b);
	tap_ok(abi_memory_settles(fd, used), "shares: closing the files frees all memory");
}

static void test_fdinfo(int fd)
{
	struct abi_buf device = abi_buf(fd, 4 * MIB, DRM_SPYRE_BO_DEVICE, 0);
	struct abi_buf host = abi_buf(fd, 8 * MIB, DRM_SPYRE_BO_HOST, 0);

	memset(device.map, 1, 4 * MIB);
	*(uint8_t *)host.map = 1;
	tap_eq(memory_fdinfo(fd, "drm-total-lpddr5"), 4 * MIB, "fdinfo: total-lpddr5");
	tap_eq(memory_fdinfo(fd, "drm-resident-lpddr5"), 4 * MIB, "fdinfo: resident-lpddr5");
	tap_eq(memory_fdinfo(fd, "drm-shared-lpddr5"), 0, "fdinfo: shared-lpddr5");
	tap_eq(memory_fdinfo(fd, "drm-total-memory"), 8 * MIB, "fdinfo: total-memory, host BOs");
	tap_eq(memory_fdinfo(fd, "drm-resident-memory"), memory_resident(fd, host.handle),
	       "fdinfo: resident-memory counts the touched pages");
	abi_buf_free(fd, &device);
	abi_buf_free(fd, &host);
}

int main(void)
{
	int fd = abi_open(), other = abi_open();
	struct abi_queue q;

	/* Earlier programs may still be releasing memory. */
	abi_memory_settles(fd, 0);
	test_info(fd);
	test_capacity(fd, other);
	test_shares(fd);
	test_fdinfo(fd);
	q = abi_queue(fd, 0);
	test_lazy_touch(fd);
	test_lazy_work(fd, &q);
	test_many_ranges(fd, &q);
	test_mappings(fd);
	test_huge(fd);
	abi_queue_free(&q);
	return tap_done();
}
