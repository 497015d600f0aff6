// SPDX-License-Identifier: MIT
/*
 * Every ioctl of the driver: each flag, pad, size, pointer and handle wrong
 * once, structs that end where a page does, and nothing uninitialised in what
 * comes back.
 */
#include "tests/abi/abi.h"

#define BAD_POINTER 0x10ull

static int fd;

/* A struct whose last byte is the last of a page; the next one is not there. */
static void *page_end(const void *bytes, size_t size)
{
	static uint8_t *page;

	if (!page) {
		page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		need(page != MAP_FAILED, "mmap");
		munmap(page + PAGE, PAGE);
	}
	memcpy(page + PAGE - size, bytes, size);
	return page + PAGE - size;
}

static void test_query(void)
{
	struct drm_spyre_card_info card;
	struct drm_spyre_memory_info memory;
	struct drm_spyre_counters counters;
	struct drm_spyre_dev_query q = { 0 };
	uint8_t longer[sizeof(card) + 8];

	gives(0, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY for the size");
	ok(q.size == sizeof(card), "card info has %u bytes", q.size);
	q.pointer = (uintptr_t)&card;
	gives(0, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY card");
	ok(card.num_cores >= 1 && card.num_cores <= 32 && card.stick_bytes == 128 &&
	   card.lx_bytes == 2 << 20 && card.clock_khz == 1500000 && card.lpddr_bytes &&
	   card.unit[0], "card info: %u cores, unit %s", card.num_cores, card.unit);

	q = (struct drm_spyre_dev_query){ .size = 4, .pointer = (uintptr_t)longer };
	memset(longer, 0xaa, sizeof(longer));
	gives(0, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY with a short buffer");
	ok(longer[4] == 0xaa && q.size == sizeof(card), "writes no byte more than asked");
	q.size = sizeof(longer);
	gives(0, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY with a long buffer");
	ok(longer[sizeof(card)] == 0xaa && q.size == sizeof(card), "writes what it knows");

	q = (struct drm_spyre_dev_query){ .type = DRM_SPYRE_DEV_QUERY_MEMORY,
		.size = sizeof(memory), .pointer = (uintptr_t)&memory };
	gives(0, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY memory");
	ok(memory.free + memory.used == memory.total && memory.total == card.lpddr_bytes,
	   "free + used = total");
	q = (struct drm_spyre_dev_query){ .type = DRM_SPYRE_DEV_QUERY_COUNTERS,
		.size = sizeof(counters), .pointer = (uintptr_t)&counters };
	gives(0, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY counters");
	ok(counters.timestamp_ns <= now_ns() && counters.power_mw, "counters have a time and power");

	q.type = 3;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY of an unknown type");
	q = (struct drm_spyre_dev_query){ .size = 64, .pointer = BAD_POINTER };
	gives(-EFAULT, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q, "DEV_QUERY into nowhere");
	gives(-EFAULT, fd, DRM_IOCTL_SPYRE_DEV_QUERY, (void *)BAD_POINTER, "argument nowhere");
}

static void test_bo(void)
{
	struct drm_spyre_bo_create c = { .size = 1, .flags = DRM_SPYRE_BO_HOST };
	struct drm_spyre_bo_mmap_offset m;

	gives(0, fd, DRM_IOCTL_SPYRE_BO_CREATE, page_end(&c, sizeof(c)), "BO_CREATE at a page end");
	gives(0, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE of a byte");
	ok(c.size == PAGE && c.handle, "is a page with a handle");

	m = (struct drm_spyre_bo_mmap_offset){ .handle = c.handle, .pad = 1 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &m, "BO_MMAP_OFFSET pad");
	m = (struct drm_spyre_bo_mmap_offset){ .handle = 0 };
	gives(-ENOENT, fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &m, "BO_MMAP_OFFSET of handle 0");
	m = (struct drm_spyre_bo_mmap_offset){ .handle = 12345, .offset = ~0ull };
	gives(-ENOENT, fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &m, "BO_MMAP_OFFSET of no BO");
	ok(m.offset == 0, "its output is cleared");

	c = (struct drm_spyre_bo_create){ .size = 0, .flags = DRM_SPYRE_BO_HOST };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE size 0");
	c = (struct drm_spyre_bo_create){ .size = PAGE };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE without a kind");
	c = (struct drm_spyre_bo_create){ .size = PAGE, .flags = 3, .handle = 77 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE of both kinds");
	ok(c.handle == 0, "its output is cleared");
	c = (struct drm_spyre_bo_create){ .size = PAGE, .flags = 1u << 31 | 1 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE unknown flag");
	c = (struct drm_spyre_bo_create){ .size = ~0ull, .flags = DRM_SPYRE_BO_HOST };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE of 2^64 - 1 bytes");
	c = (struct drm_spyre_bo_create){ .size = 1ull << 37, .flags = DRM_SPYRE_BO_DEVICE };
	gives(-ENOSPC, fd, DRM_IOCTL_SPYRE_BO_CREATE, &c, "BO_CREATE of more than the card has");
}

/* What VM_BIND says to one operation. */
static void bind_gives(int expected, struct drm_spyre_vm_bind_op op, const char *what)
{
	struct drm_spyre_vm_bind b = {
		.ops = { .stride = sizeof(op), .count = 1,
			 .array = (uintptr_t)page_end(&op, sizeof(op)) },
		.done = 99,
	};

	gives(expected, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND %s", what);
	if (b.done != !expected)
		ok(false, "done is %u", b.done);
}

static void test_bind_ops(uint32_t bo, uint32_t host)
{
	const struct drm_spyre_vm_bind_op good = {
		.op = DRM_SPYRE_VM_MAP, .handle = bo, .va = PAGE, .range = 2 * PAGE,
	};
	struct drm_spyre_vm_bind_op op;

#define BAD(errno_, what, ...) do { op = good; __VA_ARGS__; bind_gives(-(errno_), op, what); } while (0)
	bind_gives(0, good, "map");
	BAD(EINVAL, "unknown op", op.op = 2);
	BAD(EINVAL, "unknown flag", op.flags = 2);
	BAD(EINVAL, "pad", op.pad = 1);
	BAD(ENOENT, "handle 0", op.handle = 0);
	BAD(ENOENT, "no such handle", op.handle = 4711);
	BAD(EINVAL, "of a host BO", op.handle = host);
	BAD(EINVAL, "range 0", op.range = 0);
	BAD(EINVAL, "odd range", op.range = 100);
	BAD(EINVAL, "odd va", op.va = PAGE + 128);
	BAD(EINVAL, "odd offset", op.bo_offset = 128);
	BAD(EINVAL, "page 0", op.va = 0);
	BAD(EINVAL, "past the last segment", op.va = 8ull << 34);
	BAD(EINVAL, "va at the end of 64 bits", op.va = ~0ull & ~(PAGE - 1));
	BAD(EINVAL, "across two segments", op.va = (1ull << 34) - PAGE);
	BAD(EINVAL, "past the BO's end", op.bo_offset = 15 * PAGE);
	BAD(EINVAL, "offset past the BO", op.bo_offset = 17 * PAGE);
	BAD(EINVAL, "offset that overflows", op.bo_offset = ~0ull & ~(PAGE - 1));
	BAD(EINVAL, "range that overflows", op.range = ~0ull & ~(PAGE - 1));
	BAD(EINVAL, "unmap with a flag", op.op = 1, op.handle = 0, op.flags = 1);
	BAD(EINVAL, "unmap with a handle", op.op = 1);
	BAD(EINVAL, "unmap with an offset", op.op = 1, op.handle = 0, op.bo_offset = PAGE);
	op = (struct drm_spyre_vm_bind_op){ .op = DRM_SPYRE_VM_UNMAP, .va = PAGE,
					    .range = 64 * PAGE };
	bind_gives(0, op, "unmap more than is mapped");
#undef BAD
}

static void test_bind(void)
{
	uint32_t bo = bo_create(fd, 16 * PAGE, DRM_SPYRE_BO_DEVICE);
	uint32_t host = bo_create(fd, PAGE, DRM_SPYRE_BO_HOST);
	struct drm_spyre_vm_bind_op ops[2] = {
		{ .op = DRM_SPYRE_VM_MAP, .handle = bo, .va = PAGE, .range = PAGE },
		{ .op = DRM_SPYRE_VM_MAP, .handle = bo, .va = 4 * PAGE, .range = PAGE, .pad = 1 },
	};
	struct drm_spyre_vm_bind b = {
		.ops = { .stride = sizeof(ops[0]), .count = 2, .array = (uintptr_t)ops },
	};
	uint8_t longer[sizeof(ops[0]) + 8] = { 0 };

	test_bind_ops(bo, host);
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND whose second op is bad");
	ok(b.done == 1, "the first one stands");
	b.flags = 1;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND flags");
	b.flags = 0;
	b.ops.count = 0;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND without ops");
	b.ops.count = 4097;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND with too many ops");
	b.ops.count = 1;
	b.ops.stride = sizeof(ops[0]) - 8;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND with a short stride");
	b.ops.array = (uintptr_t)longer;
	b.ops.stride = sizeof(longer);
	memcpy(longer, &ops[0], sizeof(ops[0]));
	gives(0, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND with longer structs, zero at the end");
	longer[sizeof(longer) - 1] = 1;
	gives(-E2BIG, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND with a field of the future");
	b.ops = (struct drm_spyre_array){ sizeof(ops[0]), 1, BAD_POINTER };
	gives(-EFAULT, fd, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND ops nowhere");
}

static void test_program(void)
{
	struct image image;
	struct drm_spyre_program_create p;
	struct drm_spyre_program_destroy d;

	image_add(&image, 4, 1);
	p = (struct drm_spyre_program_create){ .data = (uintptr_t)image.bytes, .size = image.size };
	gives(0, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, page_end(&p, sizeof(p)), "PROGRAM_CREATE");
	memset(&p.stop, 0xaa, sizeof(p) - offsetof(typeof(p), stop));
	p.pad = 0;
	gives(0, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE with dirty outputs");
	ok(p.handle && !p.stop && !p.stop_step && !p.stop_core && !p.stop_instr && !p.stop_view &&
	   !p.stop_value && !p.stop_limit && p.cycles, "all outputs are set, %llu cycles",
	   (unsigned long long)p.cycles);
	d = (struct drm_spyre_program_destroy){ .handle = p.handle, .pad = 1 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &d, "PROGRAM_DESTROY pad");
	d.pad = 0;
	gives(0, fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &d, "PROGRAM_DESTROY");
	gives(-ENOENT, fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &d, "PROGRAM_DESTROY again");
	d.handle = 0;
	gives(-ENOENT, fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &d, "PROGRAM_DESTROY of handle 0");

	p = (struct drm_spyre_program_create){ .data = (uintptr_t)image.bytes, .size = image.size,
					       .flags = 1 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE flags");
	p.flags = 0;
	p.pad = 1;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE pad");
	p.pad = 0;
	p.size = 0;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE size 0");
	p.size = (64ull << 20) + 1;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE too large");
	p.size = image.size;
	p.data = BAD_POINTER;
	gives(-EFAULT, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE of no memory");
	p.data = (uintptr_t)image.bytes;
	p.size = image.size - 8;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE truncated");
	ok(p.stop == SPYRE_STOP_TRUNCATED && !p.handle, "the verifier says truncated");
	p.size = image.size;
	((struct spyre_prog_operand *)(image.bytes + sizeof(struct spyre_prog_header)))->extent += 128;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p, "PROGRAM_CREATE wrong extent");
	ok(p.stop == SPYRE_STOP_EXTENT && p.stop_value == 640 && p.stop_limit == 512,
	   "the verifier says extent, %llu against %llu", (unsigned long long)p.stop_value,
	   (unsigned long long)p.stop_limit);
}

static void test_queue(void)
{
	struct drm_spyre_queue_create c = { .flags = 1 };
	struct drm_spyre_queue_query q;
	struct drm_spyre_queue_destroy d;

	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c, "QUEUE_CREATE flags");
	c = (struct drm_spyre_queue_create){ .priority = 2, .queue_id = 5 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c, "QUEUE_CREATE priority");
	ok(!c.queue_id, "its output is cleared");
	c = (struct drm_spyre_queue_create){ .timeout_ms = 60001 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c, "QUEUE_CREATE timeout");
	c = (struct drm_spyre_queue_create){ .priority = 1, .timeout_ms = 60000 };
	gives(0, fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, page_end(&c, sizeof(c)), "QUEUE_CREATE");
	gives(0, fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c, "QUEUE_CREATE again");
	ok(c.queue_id, "its id is %u", c.queue_id);

	memset(&q, 0xaa, sizeof(q));
	q.queue_id = c.queue_id;
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &q, "QUEUE_QUERY pad");
	memset(&q, 0xaa, sizeof(q));
	q.queue_id = c.queue_id;
	q.pad = 0;
	gives(0, fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &q, "QUEUE_QUERY");
	ok(q.state == DRM_SPYRE_QUEUE_OK && !q.error && !q.submitted && !q.completed,
	   "a new queue is fine and empty");
	q.queue_id = 0;
	gives(-ENOENT, fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &q, "QUEUE_QUERY of queue 0");

	d = (struct drm_spyre_queue_destroy){ .queue_id = c.queue_id, .pad = 1 };
	gives(-EINVAL, fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &d, "QUEUE_DESTROY pad");
	d.pad = 0;
	gives(0, fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &d, "QUEUE_DESTROY");
	gives(-ENOENT, fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &d, "QUEUE_DESTROY again");
}

static void test_queue_limit(void)
{
	struct drm_spyre_queue_create c = { 0 };
	int other = node_open(), created = 0, ret;

	while (!(ret = call(other, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c)) && created < 1000)
		created++;
	ok(ret == -ENOSPC && created == 256, "a file may have 256 queues (%d, %s)", created,
	   strerror(-ret));
	close(other);
}

int main(void)
{
	fd = node_open();
	test_query();
	test_bo();
	test_bind();
	test_program();
	test_queue();
	test_queue_limit();
	close(fd);
	return done_testing();
}
