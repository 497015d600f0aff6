/* SPDX-License-Identifier: MIT */
/* abi-ioctl: each field of each type of control block, invalid in turn. */
#include "ioctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prog.h"

#define VA (64 * MIB)
#define BYTES (16 * PAGE)

static struct abi_queue queue;
static struct abi_buf device, host;
static uint32_t program, num_tests_with_index;

/* The invalid block is the second of three, so that its index is significant. */
static void refuse(int fd, const char *what, const struct drm_spyre_cb *cb, int want)
{
	struct drm_spyre_cb cbs[3] = { abi_cb_timestamp(), *cb, abi_cb_timestamp() };
	uint32_t error_cb = 0;

	tap_ret(abi_submit(&queue, cbs, 3, &error_cb), want, "cb: %s", what);
	num_tests_with_index += want && error_cb == 1;
	if (want && error_cb != 1)
		tap_ok(false, "cb: %s: error_cb is %u, expected 1", what, error_cb);
}

enum field { PROGRAM, NUM_ARGS, ARGS, DESC, DST, SRC, SIZE, HOST_ADDR, HOST_HANDLE, PATTERN_SIZE,
	     HOST_OFFSET, PATTERN_0, PATTERN_1, FIELDS };

static const char *const field_names[FIELDS] = {
	"program", "num_args", "args", "desc", "dst", "src", "size", "host_addr", "host_handle",
	"pattern_size", "host_offset", "pattern[0]", "pattern[1]",
};

static void set_field(struct drm_spyre_cb *cb, enum field field)
{
	switch (field) {
	case PROGRAM: cb->program = program; break;
	case NUM_ARGS: cb->num_args = 1; break;
	case ARGS: cb->args = PTR(cb); break;
	case DESC: cb->desc = PTR(cb); break;
	case DST: cb->dst = VA; break;
	case SRC: cb->src = VA; break;
	case SIZE: cb->size = STICK; break;
	case HOST_ADDR: cb->host_addr = PTR(cb); break;
	case HOST_HANDLE: cb->host_handle = host.handle; break;
	case PATTERN_SIZE: cb->pattern_size = 4; break;
	case HOST_OFFSET: cb->host_offset = 64; break;
	case PATTERN_0: cb->pattern[0] = 1; break;
	case PATTERN_1: cb->pattern[1] = 1; break;
	case FIELDS: break;
	}
}

#define F(field) (1u << (field))

/* Flags, reserved and every field that the type does not use. */
static void refuse_unused(int fd, const char *type, const struct drm_spyre_cb *good, uint32_t uses)
{
	struct drm_spyre_cb cb;
	char what[64];
	int i;

	for (i = 0; i < FIELDS; i++) {
		if (uses & F(i))
			continue;
		cb = *good;
		set_field(&cb, i);
		snprintf(what, sizeof(what), "%s does not use %s", type, field_names[i]);
		refuse(fd, what, &cb, -EINVAL);
	}
	for (i = 0; i < 3; i++) {
		cb = *good;
		cb.reserved[i] = 1ull << 63;
		snprintf(what, sizeof(what), "%s, reserved[%d]", type, i);
		refuse(fd, what, &cb, -EINVAL);
	}
	cb = *good;
	cb.flags = 1;
	snprintf(what, sizeof(what), "%s, flags", type);
	refuse(fd, what, &cb, -EINVAL);
	snprintf(what, sizeof(what), "%s, nothing wrong", type);
	refuse(fd, what, good, 0);
}

#define REFUSE(want, what, ...) do { \
	struct drm_spyre_cb c = good; \
	__VA_ARGS__; \
	refuse(fd, what, &c, want); \
} while (0)

static void test_types(int fd)
{
	struct drm_spyre_cb good = abi_cb_timestamp();

	REFUSE(-EINVAL, "type 0", c.type = 0);
	REFUSE(-EINVAL, "type 7", c.type = 7);
	REFUSE(-EINVAL, "type ~0", c.type = ~0u);
	refuse_unused(fd, "TIMESTAMP", &good, 0);
}

static void test_exec(int fd)
{
	uint64_t args[3] = { VA, VA + PAGE, VA + 2 * PAGE }, bad[3];
	struct drm_spyre_cb good = abi_cb_exec(program, args, 3);
	uint64_t *edge = abi_guard(sizeof(args));

	refuse_unused(fd, "EXEC", &good, F(PROGRAM) | F(NUM_ARGS) | F(ARGS));
	REFUSE(-ENOENT, "EXEC, program 0", c.program = 0);
	REFUSE(-ENOENT, "EXEC, unknown program", c.program = NEVER);
	REFUSE(-EINVAL, "EXEC, an argument too few", c.num_args = 2);
	REFUSE(-EINVAL, "EXEC, an argument too many", c.num_args = 4);
	REFUSE(-EINVAL, "EXEC, 2^32 - 1 arguments", c.num_args = ~0u);
	REFUSE(-EFAULT, "EXEC, args NULL", c.args = 0);
	REFUSE(-EFAULT, "EXEC, args unmapped", c.args = PTR(abi_hole()));
	memcpy(edge, args, sizeof(args));
	REFUSE(0, "EXEC, args end at their page's end", c.args = PTR(edge));
	REFUSE(-EFAULT, "EXEC, args run off their page", c.args = PTR(edge + 1));
	memcpy(bad, args, sizeof(bad));
	bad[2] += 64;
	REFUSE(-EINVAL, "EXEC, operand not at a stick", c.args = PTR(bad));
	bad[2] = 0;
	REFUSE(-EFAULT, "EXEC, operand at 0", c.args = PTR(bad));
	bad[2] = VA + BYTES;
	REFUSE(-EFAULT, "EXEC, operand not mapped", c.args = PTR(bad));
	bad[2] = VA + BYTES - STICK;
	REFUSE(-EFAULT, "EXEC, operand's tail not mapped", c.args = PTR(bad));
	bad[2] = 0 - (uint64_t)STICK;
	REFUSE(-EFAULT, "EXEC, operand at the end of 64 bits", c.args = PTR(bad));
	abi_guard_free(edge, sizeof(args));
}

static void test_copy(int fd)
{
	struct drm_spyre_cb good = abi_cb_copy(VA, VA + PAGE, PAGE);

	refuse_unused(fd, "COPY", &good, F(DST) | F(SRC) | F(SIZE));
	REFUSE(-EINVAL, "COPY, size 0", c.size = 0);
	REFUSE(-EFAULT, "COPY, size past the mapping", c.size = BYTES);
	REFUSE(-EFAULT, "COPY, size 2^64 - 1", c.size = ~0ull);
	REFUSE(-EFAULT, "COPY, size wraps", c.size = 0 - VA);
	REFUSE(-EFAULT, "COPY, dst not mapped", c.dst = VA - PAGE);
	REFUSE(-EFAULT, "COPY, src not mapped", c.src = VA + BYTES);
	REFUSE(-EFAULT, "COPY, dst 0", c.dst = 0);
	REFUSE(-EFAULT, "COPY, dst at the end of 64 bits", c.dst = 0 - PAGE);
}

static void test_fill(int fd)
{
	struct drm_spyre_cb good = abi_cb_fill32(VA, PAGE, 1);

	refuse_unused(fd, "FILL", &good,
		      F(DST) | F(SIZE) | F(PATTERN_SIZE) | F(PATTERN_0) | F(PATTERN_1));
	REFUSE(-EINVAL, "FILL, pattern_size 0", c.pattern_size = 0);
	REFUSE(-EINVAL, "FILL, pattern_size 3", c.pattern_size = 3);
	REFUSE(-EINVAL, "FILL, pattern_size 32", c.pattern_size = 32);
	REFUSE(-EINVAL, "FILL, pattern_size ~0", c.pattern_size = ~0u);
	REFUSE(0, "FILL, pattern_size 16", c.pattern_size = 16);
	REFUSE(-EINVAL, "FILL, size 0", c.size = 0);
	REFUSE(-EINVAL, "FILL, size not of whole patterns", c.size = PAGE + 2);
	REFUSE(-EINVAL, "FILL, more pattern than pattern_size", c.pattern[1] = 1);
	REFUSE(-EFAULT, "FILL, size past the mapping", c.size = BYTES + 4);
	REFUSE(-EFAULT, "FILL, size wraps", c.size = 0 - VA);
	REFUSE(-EFAULT, "FILL, dst not mapped", c.dst = VA + BYTES);
	REFUSE(-EFAULT, "FILL, dst 0", c.dst = 0);
}

static void test_peer(int fd, uint32_t direction)
{
	struct drm_spyre_peer_copy copy = {
		.direction = direction, .handle = device.handle, .offset = PAGE, .rows = 3,
		.row_bytes = 100, .stride = 200, .local_stride = 300,
	};
	struct drm_spyre_cb good = { .type = DRM_SPYRE_CB_PEER_COPY, .desc = PTR(&copy) };
	const bool write = direction == DRM_SPYRE_PEER_WRITE;
	struct drm_spyre_peer_copy *edge = abi_guard(sizeof(copy));
	const char *type = write ? "PEER_COPY write" : "PEER_COPY read";

	*(write ? &good.src : &good.dst) = VA + 4 * PAGE;
	refuse_unused(fd, type, &good, F(DESC) | (write ? F(SRC) : F(DST)));
	REFUSE(-EFAULT, "PEER_COPY, desc NULL", c.desc = 0);
	REFUSE(-EFAULT, "PEER_COPY, desc unmapped", c.desc = PTR(abi_hole()));
	*edge = copy;
	REFUSE(0, "PEER_COPY, desc ends at its page's end", c.desc = PTR(edge));
	REFUSE(-EFAULT, "PEER_COPY, desc runs off its page", c.desc = PTR(edge) + 1);
	REFUSE(-EINVAL, "PEER_COPY, the BO's rows overlap the address's",
	       *(write ? &c.src : &c.dst) = VA + PAGE + 99);
	REFUSE(-EFAULT, "PEER_COPY, address 0", c.dst = c.src = 0);
	REFUSE(-EFAULT, "PEER_COPY, address not mapped",
	       *(write ? &c.src : &c.dst) = VA + BYTES);
	REFUSE(-EFAULT, "PEER_COPY, address at the end of 64 bits",
	       *(write ? &c.src : &c.dst) = ~0ull);
	abi_guard_free(edge, sizeof(copy));
}

static void test_dma(int fd, uint8_t direction)
{
	struct drm_spyre_dma desc = abi_dma_raw(direction, PAGE);
	struct drm_spyre_cb good = abi_cb_dma_bo(&desc, VA, host.handle, 0, PAGE);
	bool h2d = direction == DRM_SPYRE_DMA_H2D;
	struct drm_spyre_dma *edge = abi_guard(sizeof(desc));
	/* Far below the end of user space on any kernel. */
	void *low = mmap((void *)(1ull << 40), PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	const char *type = h2d ? "DMA H2D" : "DMA D2H";

	refuse_unused(fd, type, &good, F(DESC) | F(SIZE) | F(HOST_HANDLE) | F(HOST_ADDR) |
		      F(HOST_OFFSET) | (h2d ? F(DST) : F(SRC)));
	REFUSE(-EINVAL, "DMA, host_handle and host_addr", c.host_addr = PTR(&desc));
	REFUSE(-EINVAL, "DMA, host_addr with host_offset", c.host_handle = 0;
	       c.host_addr = PTR(host.map); c.host_offset = 64);
	REFUSE(-EFAULT, "DMA, desc NULL", c.desc = 0);
	REFUSE(-EFAULT, "DMA, desc unmapped", c.desc = PTR(abi_hole()));
	*edge = desc;
	REFUSE(0, "DMA, desc ends at its page's end", c.desc = PTR(edge));
	REFUSE(-EFAULT, "DMA, desc runs off its page", c.desc = PTR(edge) + 1);
	REFUSE(-ENOENT, "DMA, unknown host BO", c.host_handle = NEVER);
	REFUSE(-EINVAL, "DMA, device BO as the host's", c.host_handle = device.handle);
	REFUSE(-EINVAL, "DMA, size 0", c.size = 0);
	REFUSE(-EINVAL, "DMA, span past the BO", c.size = BYTES + 1);
	REFUSE(-EINVAL, "DMA, offset + size past the BO", c.host_offset = BYTES - PAGE + 1);
	REFUSE(-EINVAL, "DMA, offset + size wraps", c.host_offset = 0 - PAGE);
	REFUSE(-EFAULT, "DMA, no host memory", c.host_handle = 0);
	REFUSE(-EFAULT, "DMA, host memory unmapped", c.host_handle = 0;
	       c.host_addr = PTR(abi_hole()));
	/* A process that may pin without limit gets the error of the missing memory. */
	if (low == MAP_FAILED)
		tap_bail("mmap at 2^40: %s", strerror(errno));
	REFUSE(geteuid() ? -ENOMEM : -EFAULT,
	       "DMA, host span of 2^39 bytes, one page of it mapped", c.host_handle = 0;
	       c.host_addr = PTR(low); c.size = 1ull << 39);
	REFUSE(-EFAULT, "DMA, host span past user space", c.host_handle = 0;
	       c.host_addr = PTR(edge) & ~(PAGE - 1); c.size = 1ull << 62);
	REFUSE(-EFAULT, "DMA, host memory of the kernel", c.host_handle = 0;
	       c.host_addr = 0xffff888000000000ull);
	REFUSE(-EFAULT, "DMA, host span wraps", c.host_handle = 0; c.host_addr = 0 - PAGE;
	       c.size = 2 * PAGE);
#define DEVICE(c) (*(h2d ? &(c).dst : &(c).src))
	REFUSE(-EINVAL, "DMA, device address not at a stick", DEVICE(c) += 64);
	REFUSE(-EFAULT, "DMA, device address 0", DEVICE(c) = 0);
	REFUSE(-EFAULT, "DMA, device range not mapped", DEVICE(c) = VA + BYTES);
	REFUSE(-EFAULT, "DMA, device range's tail not mapped", DEVICE(c) = VA + BYTES - STICK);
	REFUSE(-EFAULT, "DMA, device address at the end of 64 bits",
	       DEVICE(c) = 0 - (uint64_t)STICK);
#undef DEVICE
	abi_guard_free(edge, sizeof(desc));
	munmap(low, PAGE);
}

#define DESC_WITH(want, what, ...) do { \
	struct drm_spyre_dma d = desc; \
	__VA_ARGS__; \
	REFUSE(want, "DMA desc, " what, c.desc = PTR(&d)); \
} while (0)

static void test_dma_desc(int fd)
{
	struct drm_spyre_dma desc = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_cb good = abi_cb_dma_bo(&desc, VA, host.handle, 0, PAGE);

	DESC_WITH(-EINVAL, "direction 2", d.direction = 2);
	DESC_WITH(-EINVAL, "direction 255", d.direction = 255);
	DESC_WITH(-EINVAL, "D2H with the address in dst", d.direction = DRM_SPYRE_DMA_D2H);
	DESC_WITH(-EINVAL, "host_format 0", d.host_format = 0);
	DESC_WITH(-EINVAL, "host_format 21", d.host_format = 21);
	DESC_WITH(-EINVAL, "host_format 255", d.host_format = 255);
	DESC_WITH(-EINVAL, "device_format 0", d.device_format = 0);
	DESC_WITH(-EINVAL, "device_format 255", d.device_format = 255);
	DESC_WITH(-EINVAL, "no dimension", d.num_dims = 0);
	DESC_WITH(-EINVAL, "9 dimensions", d.num_dims = 9);
	DESC_WITH(-EINVAL, "9 bounds", d.num_bounds = 9);
	DESC_WITH(-EINVAL, "pad[0]", d.pad[0] = 1);
	DESC_WITH(-EINVAL, "pad[1]", d.pad[1] = 1);
	DESC_WITH(-EINVAL, "unknown flag", d.flags = 1 << 1);
	DESC_WITH(-EINVAL, "pad of dimension 0", d.dim[0].pad = 1);
	DESC_WITH(-EINVAL, "pad of dimension 1", d.dim[1].pad = 1);
	DESC_WITH(-EINVAL, "count 0", d.dim[0].count = 0);
	DESC_WITH(-EINVAL, "last count 0", d.dim[1].count = 0);
	DESC_WITH(-EINVAL, "more lanes than a stick may have", d.dim[1].count = 257);
	DESC_WITH(-EFAULT, "more device bytes than are mapped", d.dim[0].count = 4096);
	DESC_WITH(-EINVAL, "device bytes past 64 bits", d.num_dims = 8;
		  for (int i = 0; i < 7; i++) d.dim[i].count = 1u << 31; d.dim[7].count = 32);
	/* Products that wrap to small numbers modulo 2^64: 2^64 itself, and 2^64 + 4. */
	DESC_WITH(-EINVAL, "device bytes that wrap to 0", d.num_dims = 4;
		  for (int i = 0; i < 4; i++) d.dim[i].host_stride = 0;
		  d.dim[0].count = 1u << 31; d.dim[1].count = 8; d.dim[2].count = 1u << 30;
		  d.dim[3].count = 1);
	DESC_WITH(-EINVAL, "device bytes that wrap to 16", d.num_dims = 4;
		  for (int i = 0; i < 4; i++) d.dim[i].host_stride = 0;
		  d.dim[0].count = 1718039348; d.dim[1].count = 5; d.dim[2].count = 2147418113;
		  d.dim[3].count = 1);
}

void test_submit_cb(int fd)
{
	struct abi_prog p = abi_prog_add(1, 4);

	queue = abi_queue(fd, 0);
	device = abi_buf(fd, BYTES, DRM_SPYRE_BO_DEVICE, VA);
	host = abi_buf(fd, BYTES, DRM_SPYRE_BO_HOST, 0);
	program = abi_prog_create(fd, &p);
	test_types(fd);
	test_exec(fd);
	test_copy(fd);
	test_fill(fd);
	test_peer(fd, DRM_SPYRE_PEER_READ);
	test_peer(fd, DRM_SPYRE_PEER_WRITE);
	test_dma(fd, DRM_SPYRE_DMA_H2D);
	test_dma(fd, DRM_SPYRE_DMA_D2H);
	test_dma_desc(fd);
	tap_ok(num_tests_with_index > 100, "cb: error_cb has the index of the bad block, %u times",
	       num_tests_with_index);
	tap_ret(abi_wait(&queue, 10000), 0, "cb: the valid blocks have run");
	tap_eq(abi_queue_query(fd, queue.id).error, 0, "cb: no refused block ran");
	abi_prog_destroy(fd, program);
	abi_buf_free(fd, &device);
	abi_buf_free(fd, &host);
	abi_queue_free(&queue);
}
