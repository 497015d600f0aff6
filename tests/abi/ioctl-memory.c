/* SPDX-License-Identifier: MIT */
/* abi-ioctl: DEV_QUERY, BO_CREATE, BO_MMAP_OFFSET, VM_BIND. */
#include "ioctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t query_size[] = {
	[DRM_SPYRE_DEV_QUERY_CARD] = sizeof(struct drm_spyre_card_info),
	[DRM_SPYRE_DEV_QUERY_MEMORY] = sizeof(struct drm_spyre_memory_info),
	[DRM_SPYRE_DEV_QUERY_COUNTERS] = sizeof(struct drm_spyre_counters),
	[DRM_SPYRE_DEV_QUERY_CONTEXT] = sizeof(struct drm_spyre_context_info),
};

static int dev_query(int fd, uint32_t type, uint32_t *size, void *pointer)
{
	struct drm_spyre_dev_query args = { .type = type, .size = *size, .pointer = PTR(pointer) };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args);

	*size = args.size;
	return ret;
}

static bool all(const uint8_t *p, size_t n, uint8_t a, uint8_t b)
{
	while (n && (*p == a || *p == b))
		p++, n--;
	return !n;
}

static void test_query_type(int fd, uint32_t type)
{
	uint32_t known = query_size[type], size = 0xa5a5a5a5;
	uint8_t buffer[512], *edge;

	tap_ret(dev_query(fd, type, &size, NULL), 0, "DEV_QUERY %u: size only", type);
	tap_eq(size, known, "DEV_QUERY %u: the header's size", type);

	memset(buffer, 0xa5, sizeof(buffer));
	size = 8;
	tap_ret(dev_query(fd, type, &size, buffer), 0, "DEV_QUERY %u: older, shorter struct", type);
	tap_eq(size, known, "DEV_QUERY %u: shorter: the size is the kernel's", type);
	tap_ok(all(buffer + 8, 500, 0xa5, 0xa5),
	       "DEV_QUERY %u: shorter: nothing past it is written", type);

	memset(buffer, 0xa5, sizeof(buffer));
	size = 256;
	tap_ret(dev_query(fd, type, &size, buffer), 0, "DEV_QUERY %u: newer, longer struct", type);
	tap_eq(size, known, "DEV_QUERY %u: longer: the size is the kernel's", type);
	tap_ok(all(buffer + known, 256 - known, 0, 0xa5) && all(buffer + 256, 256, 0xa5, 0xa5),
	       "DEV_QUERY %u: longer: zeros past the kernel's struct", type);

	memset(buffer, 0xa5, sizeof(buffer));
	size = 0;
	tap_ret(dev_query(fd, type, &size, buffer), 0,
		"DEV_QUERY %u: a buffer of too few bytes", type);
	tap_ok(all(buffer, sizeof(buffer), 0xa5, 0xa5),
	       "DEV_QUERY %u: a buffer of too few bytes is not written", type);

	edge = abi_guard(known);
	size = known;
	tap_ret(dev_query(fd, type, &size, edge), 0, "DEV_QUERY %u: buffer ends at page end", type);
	size = known;
	tap_ret(dev_query(fd, type, &size, edge + 1), -EFAULT,
		"DEV_QUERY %u: buffer extends past its page",
		type);
	size = known;
	tap_ret(dev_query(fd, type, &size, abi_hole()), -EFAULT, "DEV_QUERY %u: unmapped", type);
	abi_guard_free(edge, known);
}

static void test_query_values(int fd)
{
	struct drm_spyre_card_info card;
	struct drm_spyre_memory_info memory = abi_memory(fd);
	struct drm_spyre_counters counters;
	uint32_t size = sizeof(card);
	uint64_t before = abi_now_ns();

	memset(&card, 0xa5, sizeof(card));
	dev_query(fd, DRM_SPYRE_DEV_QUERY_CARD, &size, &card);
	tap_ok(card.index < DRM_SPYRE_MAX_CARDS, "card: index %u", card.index);
	tap_ok(card.num_cores >= 1 && card.num_cores <= 32, "card: %u cores", card.num_cores);
	tap_eq(card.lx_bytes, 2 * MIB, "card: LX scratchpad");
	tap_eq(card.stick_bytes, STICK, "card: stick");
	tap_eq(card.clock_khz, 1500000, "card: clock");
	tap_ok(card.program_version >= 1 && card.program_version < 1000, "card: program version");
	tap_eq(card.lpddr_bytes, memory.total, "card: capacity is the memory's total");
	tap_ok(memchr(card.unit, 0, sizeof(card.unit)) && card.unit[0], "card: unit \"%.16s\"",
	       card.unit);
	tap_ok(!all(card.uuid, 16, 0, 0) && !all(card.uuid, 16, 0xa5, 0xa5), "card: has a uuid");
	tap_eq(memory.free + memory.used, memory.total, "memory: free + used = total");
	tap_ok(memory.context_used <= memory.used,
	       "memory: the file's share is at most the free memory");
	size = sizeof(counters);
	memset(&counters, 0xa5, sizeof(counters));
	dev_query(fd, DRM_SPYRE_DEV_QUERY_COUNTERS, &size, &counters);
	tap_ok(counters.timestamp_ns >= before && counters.timestamp_ns <= abi_now_ns(),
	       "counters: CLOCK_MONOTONIC");
	tap_ok(counters.power_mw >= 1000 && counters.power_mw <= 75000, "counters: %u mW",
	       counters.power_mw);
	tap_ok(counters.temperature_mc >= 1000 && counters.temperature_mc <= 110000,
	       "counters: %u m°C", counters.temperature_mc);
}

void test_dev_query(int fd)
{
	struct drm_spyre_dev_query args = { .type = DRM_SPYRE_DEV_QUERY_CARD };
	uint32_t type, size = 0;

	test_pointer(fd, "DEV_QUERY", DRM_IOCTL_SPYRE_DEV_QUERY, &args, 0);
	for (type = 0; type < 4; type++)
		test_query_type(fd, type);
	tap_ret(dev_query(fd, 4, &size, NULL), -EINVAL, "DEV_QUERY: unknown type");
	tap_ret(dev_query(fd, ~0u, &size, NULL), -EINVAL, "DEV_QUERY: type ~0");
	test_query_values(fd);
}

void test_bo_create(int fd)
{
	struct drm_spyre_bo_create args = { .size = 1, .flags = DRM_SPYRE_BO_HOST, .handle = 77 };
	uint64_t total = abi_memory(fd).total;
	static const uint32_t bad_flags[] = { 0, 3, 4, 5, 1u << 31, ~0u };
	uint32_t h, i;

	test_pointer(fd, "BO_CREATE", DRM_IOCTL_SPYRE_BO_CREATE, &args, 0);
	for (i = 0; i < sizeof(bad_flags) / sizeof(bad_flags[0]); i++)
		tap_ret(abi_bo(fd, PAGE, bad_flags[i], &h), -EINVAL, "BO_CREATE: flags 0x%x",
			bad_flags[i]);
	tap_ret(abi_bo(fd, 0, DRM_SPYRE_BO_DEVICE, &h), -EINVAL, "BO_CREATE: device, size 0");
	tap_ret(abi_bo(fd, 0, DRM_SPYRE_BO_HOST, &h), -EINVAL, "BO_CREATE: host, size 0");
	tap_ret2(abi_bo(fd, ~0ull, DRM_SPYRE_BO_DEVICE, &h), -EINVAL, -ENOSPC,
		 "BO_CREATE: device, size 2^64 - 1 (rounds to 0)");
	tap_ret2(abi_bo(fd, ~0ull, DRM_SPYRE_BO_HOST, &h), -EINVAL, -ENOMEM,
		 "BO_CREATE: host, size 2^64 - 1 (rounds to 0)");
	tap_ret2(abi_bo(fd, 1ull << 63, DRM_SPYRE_BO_DEVICE, &h), -EINVAL, -ENOSPC,
		 "BO_CREATE: device, size 2^63");
	tap_ret2(abi_bo(fd, 1ull << 63, DRM_SPYRE_BO_HOST, &h), -EINVAL, -ENOMEM,
		 "BO_CREATE: host, size 2^63");
	tap_ret(abi_bo(fd, total + 1, DRM_SPYRE_BO_DEVICE, &h), -ENOSPC,
		"BO_CREATE: a byte more than the card has");
	args = (struct drm_spyre_bo_create){ .size = 1, .flags = DRM_SPYRE_BO_DEVICE,
					     .handle = 0xa5a5a5a5 };
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_CREATE, &args), 0, "BO_CREATE: one byte");
	tap_eq(args.size, PAGE, "BO_CREATE: the size is rounded up to a page");
	tap_ok(args.handle && args.handle != 0xa5a5a5a5, "BO_CREATE: a handle");
	abi_gem_close(fd, args.handle);
}

void test_bo_mmap_offset(int fd)
{
	struct drm_spyre_bo_mmap_offset args = { .offset = 0xa5 };
	uint32_t h;

	if (abi_bo(fd, PAGE, DRM_SPYRE_BO_HOST, &h))
		tap_bail("BO_CREATE");
	args.handle = h;
	test_pointer(fd, "BO_MMAP_OFFSET", DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args, 0);
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), 0, "BO_MMAP_OFFSET");
	tap_ok(args.offset && args.offset % PAGE == 0, "BO_MMAP_OFFSET: a page offset");
	args.pad = 1;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), -EINVAL,
		"BO_MMAP_OFFSET: pad");
	args = (struct drm_spyre_bo_mmap_offset){ .handle = 0 };
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), -ENOENT,
		"BO_MMAP_OFFSET: handle 0");
	args.handle = NEVER;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), -ENOENT,
		"BO_MMAP_OFFSET: unknown handle");
	abi_gem_close(fd, h);
	args.handle = h;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), -ENOENT,
		"BO_MMAP_OFFSET: closed handle");
}

static int bind_array(int fd, uint32_t stride, uint32_t count, const void *array, uint32_t flags,
		      uint32_t *done)
{
	struct drm_spyre_vm_bind args = {
		.ops = { .stride = stride, .count = count, .array = PTR(array) },
		.flags = flags,
		.done = 0xa5a5a5a5,
	};
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_VM_BIND, &args);

	*done = args.done;
	return ret;
}

static void refuse_op(int fd, const char *what, struct drm_spyre_vm_bind_op op, int want)
{
	uint32_t done;

	tap_ret(bind_array(fd, sizeof(op), 1, &op, 0, &done), want, "VM_BIND op: %s", what);
	tap_eq(done, 0, "VM_BIND op: %s: nothing done", what);
}

/* The good operation, with one field changed. */
#define MAP_WITH(...) ({ \
	struct drm_spyre_vm_bind_op op_ = good; \
	__VA_ARGS__; \
	op_; })

static void test_vm_bind_map(int fd, struct drm_spyre_vm_bind_op good, uint32_t host)
{
	const uint64_t segment = 1ull << DRM_SPYRE_SEGMENT_SHIFT, size = 4 * PAGE;

	refuse_op(fd, "unknown op", MAP_WITH(op_.op = 2), -EINVAL);
	refuse_op(fd, "op ~0", MAP_WITH(op_.op = ~0u), -EINVAL);
	refuse_op(fd, "unknown flag", MAP_WITH(op_.flags = 2), -EINVAL);
	refuse_op(fd, "flag 31", MAP_WITH(op_.flags = 1u << 31), -EINVAL);
	refuse_op(fd, "pad", MAP_WITH(op_.pad = 1), -EINVAL);
	refuse_op(fd, "handle 0", MAP_WITH(op_.handle = 0), -ENOENT);
	refuse_op(fd, "unknown handle", MAP_WITH(op_.handle = NEVER), -ENOENT);
	refuse_op(fd, "a host BO", MAP_WITH(op_.handle = host), -EINVAL);
	refuse_op(fd, "range 0", MAP_WITH(op_.range = 0), -EINVAL);
	refuse_op(fd, "range not of pages", MAP_WITH(op_.range = PAGE + 128), -EINVAL);
	refuse_op(fd, "va not of pages", MAP_WITH(op_.va += 128), -EINVAL);
	refuse_op(fd, "offset not of pages", MAP_WITH(op_.bo_offset = 128; op_.range = PAGE),
		  -EINVAL);
	refuse_op(fd, "page 0", MAP_WITH(op_.va = 0), -EINVAL);
	refuse_op(fd, "range past the BO", MAP_WITH(op_.range = size + PAGE), -EINVAL);
	refuse_op(fd, "offset at the BO's end", MAP_WITH(op_.bo_offset = size; op_.range = PAGE),
		  -EINVAL);
	refuse_op(fd, "offset + range past the BO", MAP_WITH(op_.bo_offset = PAGE), -EINVAL);
	refuse_op(fd, "offset + range wraps to 0", MAP_WITH(op_.bo_offset = 0 - size), -EINVAL);
	refuse_op(fd, "range that wraps", MAP_WITH(op_.bo_offset = PAGE; op_.range = 0 - PAGE),
		  -EINVAL);
	refuse_op(fd, "va + range wraps", MAP_WITH(op_.va = 0 - size), -EINVAL);
	refuse_op(fd, "over a segment's end", MAP_WITH(op_.va = segment - PAGE), -EINVAL);
	refuse_op(fd, "behind the last segment", MAP_WITH(op_.va = 8 * segment), -EINVAL);
	refuse_op(fd, "over the last one's end", MAP_WITH(op_.va = 8 * segment - PAGE), -EINVAL);
	refuse_op(fd, "va 2^63", MAP_WITH(op_.va = 1ull << 63), -EINVAL);
}

static void test_vm_bind_unmap(int fd)
{
	struct drm_spyre_vm_bind_op good = {
		.op = DRM_SPYRE_VM_UNMAP, .va = 16 * MIB, .range = 4 * PAGE,
	};
	const uint64_t segment = 1ull << DRM_SPYRE_SEGMENT_SHIFT;

	refuse_op(fd, "UNMAP with a handle", MAP_WITH(op_.handle = 1), -EINVAL);
	refuse_op(fd, "UNMAP with an offset", MAP_WITH(op_.bo_offset = PAGE), -EINVAL);
	refuse_op(fd, "UNMAP with a flag", MAP_WITH(op_.flags = DRM_SPYRE_VM_MAP_READONLY),
		  -EINVAL);
	refuse_op(fd, "UNMAP with pad", MAP_WITH(op_.pad = 1), -EINVAL);
	refuse_op(fd, "UNMAP of range 0", MAP_WITH(op_.range = 0), -EINVAL);
	refuse_op(fd, "UNMAP, va not of pages", MAP_WITH(op_.va += 1), -EINVAL);
	refuse_op(fd, "UNMAP, range not of pages", MAP_WITH(op_.range += 1), -EINVAL);
	refuse_op(fd, "UNMAP, range wraps", MAP_WITH(op_.range = 0 - PAGE), -EINVAL);
	refuse_op(fd, "UNMAP over a segment's end", MAP_WITH(op_.va = segment - PAGE), -EINVAL);
	tap_ret(abi_unbind(fd, 512 * MIB, MIB), 0, "VM_BIND op: UNMAP of an unmapped range");
}

static void test_vm_bind_stride(int fd, struct drm_spyre_vm_bind_op good)
{
	struct {
		struct drm_spyre_vm_bind_op op;
		uint64_t more[2];
	} longer[2] = { { good, { 0 } }, { good, { 0 } } };
	struct drm_spyre_vm_bind_op *edge;
	uint32_t done;

	tap_ret(bind_array(fd, sizeof(longer[0]), 2, longer, 0, &done), 0,
		"VM_BIND: newer, longer elements with zero tails");
	tap_eq(done, 2, "VM_BIND: longer elements: both done");
	longer[1].more[1] = 1;
	tap_ret(bind_array(fd, sizeof(longer[0]), 2, longer, 0, &done), -E2BIG,
		"VM_BIND: longer element with a nonzero tail");
	tap_ret(bind_array(fd, 0, 1, &good, 0, &done), -EINVAL, "VM_BIND: stride 0");
	tap_ret(bind_array(fd, sizeof(good) - 8, 1, &good, 0, &done), -EINVAL,
		"VM_BIND: stride shorter than the first version");
	tap_ret2(bind_array(fd, ~0u & ~7u, 2, &good, 0, &done), -EINVAL, -EFAULT,
		 "VM_BIND: stride of 4 GiB");
	tap_ret(bind_array(fd, sizeof(good), 4097, &good, 0, &done), -EINVAL,
		"VM_BIND: 4097 operations");
	tap_ret(bind_array(fd, sizeof(good), ~0u, &good, 0, &done), -EINVAL,
		"VM_BIND: 2^32 - 1 operations");
	tap_ret(bind_array(fd, sizeof(good), 0, &good, 0, &done), -EINVAL,
		"VM_BIND: no operations");
	tap_ret(bind_array(fd, sizeof(good), 1, NULL, 0, &done), -EFAULT, "VM_BIND: array NULL");
	tap_ret(bind_array(fd, sizeof(good), 1, abi_hole(), 0, &done), -EFAULT,
		"VM_BIND: array unmapped");
	tap_ret(bind_array(fd, sizeof(good), 2, (void *)(uintptr_t)(0 - sizeof(good)), 0, &done),
		-EFAULT, "VM_BIND: array wraps");
	edge = abi_guard(sizeof(good));
	*edge = good;
	tap_ret(bind_array(fd, sizeof(good), 1, edge, 0, &done), 0,
		"VM_BIND: array ends at its page's end");
	tap_ret(bind_array(fd, sizeof(good), 2, edge, 0, &done), -EFAULT,
		"VM_BIND: array extends past its page");
	tap_ret(bind_array(fd, sizeof(good), 1, &good, 2, &done), -EINVAL, "VM_BIND: flags");
	abi_guard_free(edge, sizeof(good));
}

static void test_vm_bind_many(int fd, struct drm_spyre_vm_bind_op good)
{
	struct drm_spyre_vm_bind_op *ops = calloc(4096, sizeof(*ops));
	uint32_t done, i;

	for (i = 0; i < 4096; i++) {
		ops[i] = good;
		ops[i].range = PAGE;
		ops[i].va = 32 * MIB + i * 2 * PAGE;
	}
	tap_ret(bind_array(fd, sizeof(*ops), 4096, ops, 0, &done), 0, "VM_BIND: 4096 operations");
	tap_eq(done, 4096, "VM_BIND: 4096 done");
	ops[100].pad = 1;
	tap_ret(bind_array(fd, sizeof(*ops), 200, ops, 0, &done), -EINVAL,
		"VM_BIND: operation 100 of 200 is bad");
	tap_eq(done, 100, "VM_BIND: the 100 before it are mapped");
	free(ops);
	abi_unbind(fd, 32 * MIB, 4096 * 2 * PAGE);
}

void test_vm_bind(int fd)
{
	struct drm_spyre_vm_bind_op good = {
		.op = DRM_SPYRE_VM_MAP, .va = 16 * MIB, .range = 4 * PAGE,
	};
	struct drm_spyre_vm_bind args = {
		.ops = { .stride = sizeof(good), .count = 1, .array = PTR(&good) },
	};
	uint32_t host;

	if (abi_bo(fd, 4 * PAGE, DRM_SPYRE_BO_DEVICE, &good.handle) ||
	    abi_bo(fd, 4 * PAGE, DRM_SPYRE_BO_HOST, &host))
		tap_bail("BO_CREATE");
	test_pointer(fd, "VM_BIND", DRM_IOCTL_SPYRE_VM_BIND, &args, 0);
	test_vm_bind_map(fd, good, host);
	test_vm_bind_unmap(fd);
	test_vm_bind_stride(fd, good);
	test_vm_bind_many(fd, good);
	abi_unbind(fd, good.va, good.range);
	abi_gem_close(fd, good.handle);
	abi_gem_close(fd, host);
}
