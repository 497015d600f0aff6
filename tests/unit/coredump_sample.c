// SPDX-License-Identifier: MIT
/* A job of three control blocks, the second of which, an EXEC, has operands. */
#include <string.h>

#include <drm/spyre_coredump.h>

#include "model/program.h"
#include "tests/order.h"
#include "tests/unit/coredump_sample.h"
#include "tools/spyre/coredump.h"

struct writer {
	uint8_t *data;
	size_t at;
	uint32_t sections;
};

static void put(struct writer *w, const void *data, size_t bytes)
{
	memcpy(w->data + w->at, data, bytes);
	w->at += (bytes + 7) & ~(size_t)7;
}

static void section(struct writer *w, uint32_t type, uint32_t index, const void *data,
		    size_t bytes, size_t whole)
{
	struct drm_spyre_coredump_section head = {
		.type = type, .index = index, .bytes = bytes, .whole = whole,
	};

	coredump_order(COREDUMP_SECTION, &head);
	put(w, &head, sizeof(head));
	put(w, data, bytes);
	w->sections++;
}

/* Writes one or several structs of a type. */
static void structs(struct writer *w, uint32_t type, uint32_t index, void *data, size_t bytes)
{
	uint8_t *at = data;

	while (at < (uint8_t *)data + bytes)
		at += coredump_order(type, at);
	section(w, type, index, data, bytes, bytes);
}

#define STRUCT(w, type, index, value) structs(w, type, index, &(value), sizeof(value))

static void order_view(struct spyre_view *view)
{
	order_le(&view->operand, 1, 2);
	order_le(&view->offset, 1 + SPYRE_MAX_DIMS + SPYRE_MAX_LOOPS, 8);
}

/* One loop around one phase of one core: a MOVE from operand 1 to 0. */
static size_t image(uint8_t *to)
{
	struct {
		struct spyre_prog_header header;
		struct spyre_prog_operand operands[2];
		struct spyre_prog_step steps[3];
		struct spyre_prog_stream stream;
		struct spyre_instr instr;
		struct spyre_view views[2];
	} program = {
		.header = { .magic = SPYRE_PROG_MAGIC, .version = SPYRE_PROG_VERSION,
			    .num_cores = 1, .size = sizeof(program), .num_operands = 2,
			    .num_steps = 3, .num_streams = 1,
			    .instr_bytes = sizeof(program.instr) + sizeof(program.views) },
		.operands = { { .extent = 8192, .flags = SPYRE_OPERAND_WRITE },
			      { .extent = 8192, .flags = SPYRE_OPERAND_READ } },
		.steps = { { .kind = SPYRE_STEP_LOOP, .count = 7 },
			   { .kind = SPYRE_STEP_PHASE, .num_streams = 1 },
			   { .kind = SPYRE_STEP_END } },
		.stream = { .core = 0, .num_instrs = 1 },
		.instr = { .opcode = SPYRE_OP_MOVE, .num_dims = 2, .num_views = 2,
			   .count = { 64, 2 }, .lanes = 64 },
		.views = { { .operand = 0 }, { .operand = SPYRE_VIEW_LX, .offset = 0x80 } },
	};

	order_le(&program.header.magic, 1, 4);
	order_le(&program.header.version, 2, 2);
	order_le(&program.header.size, 1, 8);
	order_le(&program.header.num_operands, 6, 4);
	for (int i = 0; i < 2; i++) {
		order_le(&program.operands[i].extent, 1, 8);
		order_le(&program.operands[i].flags, 1, 4);
		order_view(&program.views[i]);
	}
	order_le(program.steps, 4 * 3, 4);
	order_le(&program.stream, 4, 4);
	order_le(&program.instr.opcode, 2, 2);
	order_le(program.instr.count, SPYRE_MAX_DIMS, 4);
	order_le(&program.instr.lanes, 1, 4);
	memcpy(to, &program, sizeof(program));
	return sizeof(program);
}

static void write_state(struct writer *w)
{
	struct drm_spyre_coredump_info info = {
		.release = "6.12.0-test", .driver = "spyre_vdev", .comm = "a\x1b[31mname",
		.pid = 4711, .monotonic_ns = 5000000000, .realtime_ns = 1700000000000000000,
	};
	struct drm_spyre_context_info context = {
		.id = 17, .state = DRM_SPYRE_CONTEXT_FAULTED, .error = -14, .jobs = 9, .errors = 2,
	};
	struct drm_spyre_memory_info memory = { .total = 1 << 30, .used = 4096 };
	struct drm_spyre_counters counters = { .jobs = 12, .temperature_mc = 41500 };
	struct drm_spyre_card_info card = {
		.index = 1, .num_cores = 32, .unit = "avx2", .uuid = { 0xab, 0xcd }, .vf = 3,
	};
	struct drm_spyre_coredump_fault fault = {
		.fault = DRM_SPYRE_FAULT_ACCESS, .error = -14, .stop = SPYRE_STOP_DMA_RANGE,
		.stop_name = "DMA_RANGE", .queue = 5, .job = 6, .cb = 1, .num_cbs = 3,
		.start_ns = 1000, .ns = 2000000, .timeout_ns = 10000000000,
	};

	STRUCT(w, DRM_SPYRE_COREDUMP_INFO, 0, info);
	STRUCT(w, DRM_SPYRE_COREDUMP_FAULT, 1, fault);
	STRUCT(w, DRM_SPYRE_COREDUMP_CARD, 0, card);
	STRUCT(w, DRM_SPYRE_COREDUMP_MEMORY, 0, memory);
	STRUCT(w, DRM_SPYRE_COREDUMP_COUNTERS, 0, counters);
	STRUCT(w, DRM_SPYRE_COREDUMP_CONTEXT, 0, context);
}

static void write_job(struct writer *w)
{
	struct drm_spyre_coredump_cb fill = {
		.type = DRM_SPYRE_CB_FILL, .dst = 0x8000, .size = 4096, .pattern_size = 4,
	}, exec = {
		.type = DRM_SPYRE_CB_EXEC, .num_operands = 2, .program_bytes = 2048, .cycles = 99,
	}, transfer = {
		.type = DRM_SPYRE_CB_DMA, .dst = 0x400000080, .size = 512,
	};
	struct drm_spyre_coredump_operand operands[2] = {
		{ .address = 0x400000000, .extent = 8192, .flags = 2 },
		{ .address = 0x400002000, .extent = 8192, .flags = 1 },
	};
	struct drm_spyre_dma dma = {
		.num_dims = 2, .dim = { { .count = 4, .host_stride = 128 },
					{ .count = 64, .host_stride = 2 } },
		.flags = DRM_SPYRE_DMA_BOX,
		.bound = { { .limit = 640, .coef = { 256, 4 } } },
	};
	struct drm_spyre_coredump_queue queues[2] = {
		{ .context = 17, .queue = 5, .error = -14, .submitted = 6, .completed = 6 },
		{ .context = 18, .queue = 1, .submitted = 3, .completed = 2, .job = 3 },
	};
	uint8_t program[1024];
	size_t bytes = image(program);

	STRUCT(w, DRM_SPYRE_COREDUMP_CB, 0, fill);
	STRUCT(w, DRM_SPYRE_COREDUMP_CB, 1, exec);
	STRUCT(w, DRM_SPYRE_COREDUMP_OPERANDS, 1, operands);
	STRUCT(w, DRM_SPYRE_COREDUMP_CB, 2, transfer);
	STRUCT(w, DRM_SPYRE_COREDUMP_DMA, 2, dma);
	section(w, DRM_SPYRE_COREDUMP_PROGRAM, 1, program, bytes, 2048);
	section(w, 999, 0, "of a later kernel", 17, 17);
	STRUCT(w, DRM_SPYRE_COREDUMP_QUEUES, 0, queues);
}

size_t coredump_sample(uint8_t data[COREDUMP_SAMPLE_MAX])
{
	struct drm_spyre_coredump_header header = {
		.magic = DRM_SPYRE_COREDUMP_MAGIC,
		.version = DRM_SPYRE_COREDUMP_VERSION,
		.header_bytes = sizeof(header),
	};
	struct writer w = { .data = data, .at = sizeof(header) };

	memset(data, 0, COREDUMP_SAMPLE_MAX);
	write_state(&w);
	write_job(&w);
	header.size = w.at;
	header.num_sections = w.sections;
	coredump_order(0, &header);
	memcpy(data, &header, sizeof(header));
	return w.at;
}
