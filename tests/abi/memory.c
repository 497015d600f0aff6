// SPDX-License-Identifier: MIT
/*
 * Buffer objects and address spaces: zeroed memory, the capacity and its
 * bookkeeping, mmap, split mappings, and that one file reaches nothing of
 * another.
 */
#include "tests/abi/abi.h"

#define MIB (1ull << 20)

static struct drm_spyre_memory_info memory_info(int fd)
{
	struct drm_spyre_memory_info info = { 0 };
	struct drm_spyre_dev_query q = { .type = DRM_SPYRE_DEV_QUERY_MEMORY,
		.size = sizeof(info), .pointer = (uintptr_t)&info };

	need(!call(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q), "DEV_QUERY");
	return info;
}

static bool all_zero(const uint8_t *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

static int fill(int fd, uint32_t queue, uint64_t va, uint64_t size, uint8_t value)
{
	static uint64_t point;
	static uint32_t syncobj;
	static int owner = -1;
	struct drm_spyre_cb cb = { .type = DRM_SPYRE_CB_FILL, .dst = va, .size = size,
				   .pattern_size = 1, .pattern = { value } };

	if (owner != fd)
		syncobj = syncobj_create(fd);
	owner = fd;
	return submit_wait(fd, queue, &cb, 1, 0, syncobj, ++point);
}

static void test_zeroed(int fd)
{
	int round;

	for (round = 0; round < 2; round++) {
		uint32_t bo = bo_create(fd, 4 * MIB, DRM_SPYRE_BO_DEVICE);
		uint8_t *map = bo_map(fd, bo, 4 * MIB);

		ok(all_zero(map, 4 * MIB), "memory reads as zero, round %d", round);
		memset(map, 0xc3, 4 * MIB);
		munmap(map, 4 * MIB);
		gem_close(fd, bo);
	}
}

static void test_mmap(int fd)
{
	uint32_t bo = bo_create(fd, PAGE, DRM_SPYRE_BO_HOST);
	struct drm_spyre_bo_mmap_offset args = { .handle = bo };
	uint8_t *a = bo_map(fd, bo, PAGE), *b = bo_map(fd, bo, PAGE);
	void *map;

	a[17] = 99;
	ok(b[17] == 99, "two mappings show the same memory");
	need(!call(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), "BO_MMAP_OFFSET");
	map = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, args.offset);
	ok(map == MAP_FAILED, "no mapping of more than the BO (%s)", strerror(errno));
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	ok(map == MAP_FAILED, "no mapping of an offset that is not a BO's (%s)", strerror(errno));
	gem_close(fd, bo);
	ok(a[17] == 99, "a mapping outlives its handle");
	munmap(a, PAGE);
	munmap(b, PAGE);
}

static void test_capacity(int fd)
{
	struct drm_spyre_memory_info before = memory_info(fd), info;
	struct drm_spyre_bo_create big = { .flags = DRM_SPYRE_BO_DEVICE };
	uint32_t bo;

	bo = bo_create(fd, 3 * MIB, DRM_SPYRE_BO_DEVICE);
	info = memory_info(fd);
	ok(info.used == before.used + 3 * MIB && info.context_used == before.context_used + 3 * MIB &&
	   info.free + info.used == info.total, "a device BO counts");
	big.size = info.free + PAGE;
	gives(-ENOSPC, fd, DRM_IOCTL_SPYRE_BO_CREATE, &big, "a page more than is free");
	big.size = info.free;
	gives(0, fd, DRM_IOCTL_SPYRE_BO_CREATE, &big, "all that is free");
	ok(memory_info(fd).free == 0, "then nothing is free");
	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, bo, 0, MIB, MIB), "VM_BIND");
	gem_close(fd, big.handle);
	gem_close(fd, bo);
	ok(memory_info(fd).used == before.used + 3 * MIB, "a mapped BO counts without its handle");
	vm_bind(fd, DRM_SPYRE_VM_UNMAP, 0, 0, 0, MIB, MIB);
	ok(memory_info(fd).used == before.used && memory_info(fd).context_used == before.context_used,
	   "all is given back");
	bo = bo_create(fd, MIB, DRM_SPYRE_BO_HOST);
	ok(memory_info(fd).used == before.used, "a host BO does not count");
	gem_close(fd, bo);
}

static void test_split(int fd)
{
	uint32_t queue = queue_create(fd, 0, 0);
	uint32_t a = bo_create(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE);
	uint32_t b = bo_create(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE);
	uint8_t *map_a = bo_map(fd, a, 8 * PAGE), *map_b = bo_map(fd, b, 8 * PAGE);
	const uint64_t va = 3ull << 34;

	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, a, 0, va, 8 * PAGE), "VM_BIND");
	ok(!vm_bind(fd, DRM_SPYRE_VM_UNMAP, 0, 0, 0, va + 2 * PAGE, PAGE), "unmap from the middle");
	ok(!fill(fd, queue, va, 2 * PAGE, 1) && !fill(fd, queue, va + 3 * PAGE, 5 * PAGE, 2),
	   "what is left on both sides works");
	ok(map_a[0] == 1 && map_a[2 * PAGE - 1] == 1 && map_a[2 * PAGE] == 0 &&
	   map_a[3 * PAGE - 1] == 0 && map_a[3 * PAGE] == 2 && map_a[8 * PAGE - 1] == 2,
	   "and is what it was");
	ok(fill(fd, queue, va + 2 * PAGE, PAGE, 3) == -EFAULT, "the hole is one");
	ok(fill(fd, queue, va, 8 * PAGE, 3) == -EFAULT, "nothing reaches across it");

	ok(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, b, 4 * PAGE, va + PAGE, 4 * PAGE),
	   "map over the end of one and the start of another");
	ok(!fill(fd, queue, va + PAGE, 4 * PAGE, 7), "the new mapping works");
	ok(all_zero(map_b, 4 * PAGE) && map_b[4 * PAGE] == 7 && map_b[8 * PAGE - 1] == 7,
	   "with its offset");
	ok(!fill(fd, queue, va, PAGE, 8) && !fill(fd, queue, va + 5 * PAGE, 3 * PAGE, 9) &&
	   map_a[0] == 8 && map_a[PAGE] == 1 && map_a[5 * PAGE] == 9 && map_a[4 * PAGE] == 2,
	   "the old ones are cut");

	ok(!vm_bind(fd, DRM_SPYRE_VM_MAP, DRM_SPYRE_VM_MAP_READONLY, a, 0, va, 8 * PAGE),
	   "map read-only over all");
	vm_bind(fd, DRM_SPYRE_VM_UNMAP, 0, 0, 0, va + 4 * PAGE, PAGE);
	ok(fill(fd, queue, va, PAGE, 1) == -EFAULT && fill(fd, queue, va + 5 * PAGE, PAGE, 1) == -EFAULT,
	   "split read-only mappings stay read-only");
	munmap(map_a, 8 * PAGE);
	munmap(map_b, 8 * PAGE);
	gem_close(fd, a);
	gem_close(fd, b);
}

/* What one file owns, seen from another. */
static void test_isolation(int fd)
{
	struct image image;
	uint32_t bo = bo_create(fd, 4 * PAGE, DRM_SPYRE_BO_DEVICE), other_queue;
	uint64_t args[3] = { PAGE, PAGE, PAGE };
	struct drm_spyre_bo_mmap_offset m = { .handle = bo };
	struct drm_spyre_program_destroy pd;
	struct drm_spyre_queue_query qq = { .queue_id = queue_create(fd, 0, 0) };
	struct drm_spyre_cb cb = { .type = DRM_SPYRE_CB_EXEC, .num_args = 3,
				   .args = (uintptr_t)args };
	struct drm_gem_close gc = { .handle = bo };
	int other = node_open();
	void *map;

	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, bo, 0, PAGE, 4 * PAGE), "VM_BIND");
	image_add(&image, 1, 1);
	cb.program = pd.handle = program_create(fd, &image);
	pd.pad = 0;

	ok(vm_bind(other, DRM_SPYRE_VM_MAP, 0, bo, 0, PAGE, PAGE) == -ENOENT,
	   "a BO handle means nothing to another file");
	gives(-ENOENT, other, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &m, "BO_MMAP_OFFSET of a foreign BO");
	gives(-EINVAL, other, DRM_IOCTL_GEM_CLOSE, &gc, "GEM_CLOSE of a foreign BO");
	gives(0, fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &m, "BO_MMAP_OFFSET of the own BO");
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, m.offset);
	ok(map == MAP_FAILED && errno == EACCES, "the offset does not map for another file (%s)",
	   strerror(errno));
	gives(-ENOENT, other, DRM_IOCTL_SPYRE_QUEUE_QUERY, &qq, "QUEUE_QUERY of a foreign queue");
	gives(-ENOENT, other, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &pd, "PROGRAM_DESTROY of a foreign one");
	other_queue = queue_create(other, 0, 0);
	ok(submit(other, other_queue, &cb, 1, 0, 0, 0) == -ENOENT, "a foreign program does not run");
	cb = (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_FILL, .dst = PAGE, .size = 128,
				    .pattern_size = 1 };
	ok(submit(other, other_queue, &cb, 1, 0, 0, 0) == -EFAULT,
	   "a foreign device address is not mapped");
	ok(submit(fd, qq.queue_id, &cb, 1, 0, 0, 0) == 0, "the own one is");
	close(other);
	gem_close(fd, bo);
}

/* Sharing on purpose: a dma-buf between two files of the card. */
static void test_share(int fd)
{
	int other = node_open(), memfd;
	uint32_t bo = bo_create(fd, PAGE, DRM_SPYRE_BO_DEVICE);
	uint8_t *map = bo_map(fd, bo, PAGE);
	struct drm_prime_handle out = { .handle = bo, .flags = DRM_CLOEXEC | DRM_RDWR }, in = { 0 };
	uint32_t queue;

	gives(0, fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &out, "PRIME_HANDLE_TO_FD");
	in.fd = out.fd;
	gives(0, other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &in, "PRIME_FD_TO_HANDLE");
	ok(!vm_bind(other, DRM_SPYRE_VM_MAP, 0, in.handle, 0, PAGE, PAGE), "maps in the other file");
	queue = queue_create(other, 0, 0);
	ok(!fill(other, queue, PAGE, PAGE, 0x77) && map[100] == 0x77, "what it writes is seen here");
	close(other);
	ok(map[PAGE - 1] == 0x77, "the BO outlives the other file");
	memfd = memfd_create("x", MFD_CLOEXEC);
	in.fd = memfd;
	ok(call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &in) < 0, "a file that is no dma-buf is refused");
	close(memfd);
	close(out.fd);
	munmap(map, PAGE);
	gem_close(fd, bo);
}

static void test_fdinfo(int fd)
{
	char path[64], text[4096] = "";
	uint32_t bo = bo_create(fd, 2 * MIB, DRM_SPYRE_BO_DEVICE);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	need(file, path);
	need(fread(text, 1, sizeof(text) - 1, file) > 0, path);
	fclose(file);
	ok(strstr(text, "drm-driver:\tspyre_vdev\n") && strstr(text, "drm-client-id:\t") &&
	   strstr(text, "drm-engine-spyre:\t") && strstr(text, "drm-cycles-spyre:\t") &&
	   strstr(text, "drm-total-lpddr5:\t2 MiB\n") && strstr(text, "drm-resident-lpddr5:\t0\n"),
	   "fdinfo has the driver, the client, time, cycles and memory");
	gem_close(fd, bo);
}

int main(void)
{
	int fd = node_open();
	struct drm_spyre_memory_info before = memory_info(fd), after;

	test_fdinfo(fd);
	test_zeroed(fd);
	test_mmap(fd);
	test_capacity(fd);
	test_split(fd);
	test_isolation(fd);
	test_share(fd);
	close(fd);
	fd = node_open();
	after = memory_info(fd);
	ok(after.used == before.used && after.context_used == 0, "close gives all memory back");
	close(fd);
	return done_testing();
}
