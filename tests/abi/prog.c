/* SPDX-License-Identifier: MIT */
#include "prog.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct spyre_view stick_view(uint16_t operand)
{
	return (struct spyre_view){
		.operand = operand,
		.format = SPYRE_FMT_SEN169_FP16,
		.lanes = SPYRE_LANES_ALL,
		.stride = { STICK },
	};
}

struct abi_prog abi_prog_add(uint32_t cores, uint32_t sticks)
{
	uint64_t extent = (uint64_t)cores * sticks * STICK;

	return (struct abi_prog){
		.cores = cores,
		.core_step = (uint64_t)sticks * STICK,
		.num_operands = 3,
		.operands = {
			{ .extent = extent, .flags = SPYRE_OPERAND_WRITE },
			{ .extent = extent, .flags = SPYRE_OPERAND_READ },
			{ .extent = extent, .flags = SPYRE_OPERAND_READ },
		},
		.instr = {
			.opcode = SPYRE_OP_SFU,
			.func = SPYRE_FUNC_ADD,
			.num_dims = 1,
			.num_views = 3,
			.count = { sticks },
			.lanes = 64,
		},
		.views = { stick_view(0), stick_view(1), stick_view(2) },
	};
}

struct abi_prog abi_prog_long(void)
{
	struct abi_prog p = abi_prog_add(1, ABI_LONG_BYTES / STICK);

	/* 8192 sticks, 65535 x 64 times: half of the work bound of 2^36 steps. */
	p.num_loops = 2;
	p.loops[0] = 65535;
	p.loops[1] = 64;
	return p;
}

struct abi_prog abi_prog_cheap(void)
{
	struct abi_prog p = abi_prog_add(1, 1);

	p.num_operands = 2;
	p.instr = (struct spyre_instr){
		.opcode = SPYRE_OP_MOVE,
		.num_dims = 3,
		.num_views = 2,
		.count = { 65535, 65535, 8 },
		.lanes = 64,
	};
	p.views[0].stride[0] = 0;
	p.views[1].stride[0] = 0;
	return p;
}

static uint8_t *append(uint8_t *at, const void *data, size_t bytes)
{
	memcpy(at, data, bytes);
	return at + bytes;
}

static uint8_t *append_steps(uint8_t *at, const struct abi_prog *p)
{
	struct spyre_prog_step step;
	uint32_t i;

	for (i = 0; i < p->num_loops; i++) {
		step = (struct spyre_prog_step){ .kind = SPYRE_STEP_LOOP, .count = p->loops[i] };
		at = append(at, &step, sizeof(step));
	}
	step = (struct spyre_prog_step){ .kind = SPYRE_STEP_PHASE, .num_streams = p->cores };
	at = append(at, &step, sizeof(step));
	for (i = 0; i < p->num_loops; i++) {
		step = (struct spyre_prog_step){ .kind = SPYRE_STEP_END };
		at = append(at, &step, sizeof(step));
	}
	return at;
}

void *abi_prog_encode(const struct abi_prog *p, uint64_t *size)
{
	uint32_t instr_bytes = sizeof(p->instr) + p->instr.num_views * sizeof(p->views[0]);
	struct spyre_prog_header header = {
		.magic = SPYRE_PROG_MAGIC,
		.version = SPYRE_PROG_VERSION,
		.num_cores = (uint16_t)p->cores,
		.num_operands = p->num_operands,
		.num_steps = 2 * p->num_loops + 1,
		.num_streams = p->cores,
		.lx_bytes = p->lx_bytes,
		.lx_kept = p->lx_kept,
		.instr_bytes = instr_bytes * p->cores,
	};
	struct spyre_view view;
	uint8_t *image, *at;
	uint32_t i, v;

	header.size = sizeof(header) + p->num_operands * sizeof(p->operands[0]) +
		      header.num_steps * sizeof(struct spyre_prog_step) +
		      p->cores * sizeof(struct spyre_prog_stream) + header.instr_bytes;
	image = malloc(header.size);
	if (!image)
		tap_bail("no memory");
	at = append(image, &header, sizeof(header));
	at = append(at, p->operands, p->num_operands * sizeof(p->operands[0]));
	at = append_steps(at, p);
	for (i = 0; i < p->cores; i++) {
		struct spyre_prog_stream stream = {
			.core = i, .num_instrs = 1, .offset = i * instr_bytes
		};

		at = append(at, &stream, sizeof(stream));
	}
	for (i = 0; i < p->cores; i++) {
		at = append(at, &p->instr, sizeof(p->instr));
		for (v = 0; v < p->instr.num_views; v++) {
			view = p->views[v];
			view.offset += i * p->core_step;
			at = append(at, &view, sizeof(view));
		}
	}
	*size = header.size;
	return image;
}

int abi_prog_load(int fd, const void *image, uint64_t size, struct drm_spyre_program_create *args)
{
	/* Makes bytes that the kernel does not write detectable. */
	memset(args, 0xa5, sizeof(*args));
	args->data = PTR(image);
	args->size = size;
	args->flags = 0;
	args->pad = 0;
	return abi_ioctl(fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, args);
}

uint32_t abi_prog_create(int fd, const struct abi_prog *p)
{
	struct drm_spyre_program_create args;
	uint64_t size;
	void *image = abi_prog_encode(p, &size);
	int ret = abi_prog_load(fd, image, size, &args);

	free(image);
	if (ret)
		tap_bail("PROGRAM_CREATE: %s; stop %u at %u.%u.%u.%u: %llu, limit %llu",
			 strerror(-ret), args.stop, args.stop_step, args.stop_core,
			 args.stop_instr, args.stop_view, (unsigned long long)args.stop_value,
			 (unsigned long long)args.stop_limit);
	return args.handle;
}

uint64_t abi_prog_ns(const struct abi_prog *p)
{
	const uint64_t extent = p->operands[0].extent, va = 64 * MIB;
	const uint64_t args[3] = { va, va + extent, va + 2 * extent };
	const int fd = abi_open();
	struct abi_buf mem = abi_buf(fd, 3 * extent, DRM_SPYRE_BO_DEVICE, va);
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cb = abi_cb_exec(abi_prog_create(fd, p), args, 3);
	uint64_t ns;

	/* The first run warms the caches. */
	if (abi_run(&q, &cb, 1) || abi_run(&q, &cb, 1))
		tap_bail("the program does not run");
	ns = abi_results(&q)->end_ns - abi_results(&q)->start_ns;
	abi_queue_free(&q);
	abi_buf_free(fd, &mem);
	close(fd);
	return ns ? ns : 1;
}

int abi_prog_destroy(int fd, uint32_t handle)
{
	struct drm_spyre_program_destroy args = { .handle = handle };

	return abi_ioctl(fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &args);
}

uint16_t abi_dl16(int n)
{
	unsigned int m = n < 0 ? -n : n, exponent = 31 + 9;

	if (!m)
		return 0;
	while (m < 512) {
		m <<= 1;
		exponent--;
	}
	/* 512 itself is 1.0 x 2^9: the leading one is implicit. */
	return (uint16_t)((n < 0 ? 0x8000 : 0) | exponent << 9 | (m & 511));
}
