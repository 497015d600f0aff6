// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verifier as built into the module: it accepts a small valid program, and
 * rejects it by the rule of each field that is wrong.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../model/program.h"

#define TEST_CORES 2
#define TEST_ITERATIONS 3
#define TEST_STICKS 4
#define TEST_LX 1024
#define TEST_EXTENT ((TEST_ITERATIONS - 1) * 1024 + TEST_STICKS * SPYRE_STICK_BYTES)

/*
 * A loop around one phase of two cores: the first adds two operands, the
 * second loads one of them into its scratchpad.  All parts are multiples of 8.
 */
struct verify_image {
	struct spyre_prog_header h;
	struct spyre_prog_operand op[3];
	struct spyre_prog_step step[3];
	struct spyre_prog_stream stream[2];
	struct spyre_instr add;
	struct spyre_view add_view[3];
	struct spyre_instr move;
	struct spyre_view move_view[2];
};

static void verify_view(struct spyre_view *view, u16 operand, u64 offset, u64 per_iteration)
{
	*view = (struct spyre_view) {
		.operand = operand,
		.format = SPYRE_FMT_SEN169_FP16,
		.lanes = SPYRE_LANES_ALL,
		.offset = offset,
		.stride = { SPYRE_STICK_BYTES },
		.loop_stride = { per_iteration },
	};
}

static void verify_good(struct verify_image *image)
{
	const u32 instr_bytes = sizeof(*image) - offsetof(struct verify_image, add);
	const u32 add_bytes = offsetof(struct verify_image, move) -
			      offsetof(struct verify_image, add);
	u32 i;

	*image = (struct verify_image) {
		.h = {
			.magic = SPYRE_PROG_MAGIC, .version = SPYRE_PROG_VERSION,
			.num_cores = TEST_CORES, .size = sizeof(*image), .num_operands = 3,
			.num_steps = 3, .num_streams = 2, .lx_bytes = TEST_LX,
			.instr_bytes = instr_bytes,
		},
		.step = {
			{ .kind = SPYRE_STEP_LOOP, .count = TEST_ITERATIONS },
			{ .kind = SPYRE_STEP_PHASE, .num_streams = 2 },
			{ .kind = SPYRE_STEP_END },
		},
		.stream = {
			{ .core = 0, .num_instrs = 1 },
			{ .core = 1, .num_instrs = 1, .offset = add_bytes },
		},
		.add = {
			.opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_ADD, .num_dims = 1,
			.num_views = 3, .count = { TEST_STICKS }, .lanes = 64,
		},
		.move = {
			.opcode = SPYRE_OP_MOVE, .num_dims = 1, .num_views = 2,
			.count = { TEST_STICKS }, .lanes = 64,
		},
	};
	for (i = 0; i < 3; i++) {
		image->op[i].extent = TEST_EXTENT;
		image->op[i].flags = i ? SPYRE_OPERAND_READ : SPYRE_OPERAND_WRITE;
		verify_view(&image->add_view[i], i, 0, 1024);
	}
	verify_view(&image->move_view[0], SPYRE_VIEW_LX,
		    TEST_LX - TEST_STICKS * SPYRE_STICK_BYTES, 0);
	verify_view(&image->move_view[1], 2, 0, 1024);
}

static struct verify_image *verify_alloc(struct kunit *test)
{
	struct verify_image *image = kunit_kzalloc(test, sizeof(*image), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, image);
	verify_good(image);
	return image;
}

static void verify_passes(struct kunit *test)
{
	struct verify_image *image = verify_alloc(test);
	struct spyre_verify_error why = {};
	struct spyre_program prog;

	KUNIT_ASSERT_EQ(test, 0, spyre_program_verify(image, sizeof(*image), TEST_CORES, &prog,
						      &why));
	KUNIT_EXPECT_EQ(test, why.stop, SPYRE_STOP_NONE);
	KUNIT_EXPECT_PTR_EQ(test, (const void *)prog.header, (const void *)image);
	KUNIT_EXPECT_EQ(test, prog.cost.elements,
			(u64)TEST_ITERATIONS * TEST_STICKS * 64);
	KUNIT_EXPECT_GT(test, prog.cost.cycles, 0ull);
	KUNIT_EXPECT_EQ(test, 0, spyre_program_verify(image, sizeof(*image), 32, &prog, &why));
}

/* One field of the valid program, a wrong value, and the stop that reports it. */
struct verify_case {
	const char *name;
	u32 offset;
	u32 size;
	u64 value;
	enum spyre_stop stop;
};

#define BAD(field, wrong, reason) {						\
	.name = #field " = " #wrong,						\
	.offset = offsetof(struct verify_image, field),				\
	.size = sizeof(((struct verify_image *)NULL)->field),			\
	.value = (u64)(wrong),							\
	.stop = SPYRE_STOP_##reason,						\
}

static const struct verify_case verify_cases[] = {
	BAD(h.magic, 1, BAD_MAGIC),
	BAD(h.version, 1, BAD_VERSION),
	BAD(h.version, SPYRE_PROG_VERSION + 1, BAD_VERSION),
	BAD(h.size, ~0ull, TRUNCATED),
	BAD(h.size, 64, BAD_HEADER),
	BAD(h.num_cores, 0, BAD_HEADER),
	BAD(h.num_cores, SPYRE_MAX_CORES + 1, BAD_HEADER),
	BAD(h.num_cores, 3, TOO_MANY_CORES),
	BAD(h.num_operands, 2, BAD_HEADER),
	BAD(h.num_operands, SPYRE_MAX_OPERANDS + 1, BAD_HEADER),
	BAD(h.num_steps, U32_MAX, BAD_HEADER),
	BAD(h.num_streams, U32_MAX, BAD_HEADER),
	BAD(h.instr_bytes, 8, BAD_HEADER),
	BAD(h.reserved[0], 1, BAD_HEADER),
	BAD(h.reserved[5], 1, BAD_HEADER),
	/* scratchpad: too large, not of sticks, a stick less than the move needs */
	BAD(h.lx_bytes, SPYRE_LX_BYTES + SPYRE_STICK_BYTES, BAD_HEADER),
	BAD(h.lx_bytes, TEST_LX - 24, BAD_HEADER),
	BAD(h.lx_bytes, TEST_LX - SPYRE_STICK_BYTES, LX_OVERFLOW),
	/* kept part of it: not of sticks, more than there is */
	BAD(h.lx_kept, SPYRE_STICK_BYTES - 24, BAD_HEADER),
	BAD(h.lx_kept, TEST_LX + SPYRE_STICK_BYTES, BAD_HEADER),
	BAD(move_view[0].offset, TEST_LX - 3 * SPYRE_STICK_BYTES, LX_OVERFLOW),
	BAD(move_view[0].stride[0], 2 * SPYRE_STICK_BYTES, LX_OVERFLOW),
	BAD(move_view[0].loop_stride[0], SPYRE_STICK_BYTES, LX_OVERFLOW),
	/* operands: exact extents and access */
	BAD(op[0].extent, TEST_EXTENT - 1, EXTENT),
	BAD(op[0].extent, TEST_EXTENT + 1, EXTENT),
	BAD(op[1].extent, 0, EXTENT),
	BAD(op[0].flags, SPYRE_OPERAND_READ, ACCESS),
	BAD(op[1].flags, SPYRE_OPERAND_READ | SPYRE_OPERAND_WRITE, ACCESS),
	BAD(op[1].flags, 8, ACCESS),
	BAD(op[2].reserved, 1, BAD_HEADER),
	/* loops and phases */
	BAD(step[0].kind, 0, BAD_STEP),
	BAD(step[0].kind, 4, BAD_STEP),
	BAD(step[0].count, 0, BAD_STEP),
	BAD(step[0].count, SPYRE_MAX_COUNT + 1, BAD_STEP),
	BAD(step[0].count, TEST_ITERATIONS + 1, EXTENT),
	BAD(step[0].num_streams, 1, BAD_STEP),
	BAD(step[0].kind, SPYRE_STEP_END, BAD_STEP),
	BAD(step[1].kind, SPYRE_STEP_LOOP, BAD_STEP),
	BAD(step[1].count, 1, BAD_STEP),
	BAD(step[1].first_stream, 1, BAD_STREAM),
	BAD(step[1].num_streams, 0, BAD_STREAM),
	BAD(step[1].num_streams, 1, BAD_STREAM),
	BAD(step[1].num_streams, 3, BAD_STREAM),
	BAD(step[2].kind, SPYRE_STEP_LOOP, BAD_STEP),
	BAD(step[2].count, 1, BAD_STEP),
	/* streams */
	BAD(stream[0].core, 1, BAD_STREAM),
	BAD(stream[1].core, 2, BAD_STREAM),
	BAD(stream[0].num_instrs, 0, BAD_STREAM),
	BAD(stream[1].num_instrs, 2, BAD_STREAM),
	BAD(stream[1].offset, 0, BAD_STREAM),
	BAD(stream[1].offset, U32_MAX - 7, BAD_STREAM),
	BAD(stream[1].reserved, 1, BAD_STREAM),
	/* instructions */
	BAD(add.opcode, 0, BAD_OPCODE),
	BAD(add.opcode, SPYRE_OP_INT + 1, BAD_OPCODE),
	BAD(add.func, 999, BAD_FUNC),
	BAD(add.func, SPYRE_FUNC_SUM, BAD_FUNC),
	BAD(move.func, SPYRE_FUNC_ADD, BAD_FUNC),
	BAD(add.func, SPYRE_FUNC_RELU, BAD_SHAPE),
	BAD(add.num_views, SPYRE_MAX_VIEWS + 1, BAD_SHAPE),
	BAD(add.num_dims, SPYRE_MAX_DIMS + 1, BAD_SHAPE),
	BAD(add.count[0], 0, BAD_SHAPE),
	BAD(add.count[0], SPYRE_MAX_COUNT + 1, BAD_SHAPE),
	BAD(add.count[1], 2, BAD_SHAPE),
	BAD(add.count[0], TEST_STICKS + 1, EXTENT),
	BAD(add.lanes, 0, BAD_SHAPE),
	BAD(add.lanes, SPYRE_MAX_LANES + 1, BAD_SHAPE),
	BAD(add.flags, SPYRE_INSTR_ACCUMULATE, BAD_SHAPE),
	BAD(add.reduce_mask, 1, BAD_SHAPE),
	BAD(add.reserved, 1, BAD_SHAPE),
	BAD(add.valid, 1, BAD_SHAPE),
	BAD(add.imm[3], 1, BAD_SHAPE),
	/* views */
	BAD(add_view[0].operand, 3, BAD_VIEW),
	BAD(add_view[0].operand, SPYRE_MAX_OPERANDS, BAD_VIEW),
	BAD(add_view[0].operand, SPYRE_VIEW_RING | 1, BAD_VIEW),
	BAD(add_view[1].operand, SPYRE_VIEW_RING | 2, BAD_VIEW),
	BAD(add_view[0].operand, SPYRE_VIEW_LX, LX_OVERFLOW),
	BAD(add_view[0].format, 0, BAD_FORMAT),
	BAD(add_view[0].format, 255, BAD_FORMAT),
	BAD(move_view[0].format, SPYRE_FMT_IEEE_FP16, BAD_FORMAT),
	BAD(add_view[0].lanes, SPYRE_LANES_SPLAT, BAD_VIEW),
	BAD(add_view[1].lanes, 2, BAD_VIEW),
	BAD(add_view[1].reserved, 1, BAD_VIEW),
	BAD(add_view[1].offset, 1, BAD_VIEW),
	BAD(add_view[1].offset, 2, EXTENT),
	BAD(add_view[1].offset, ~1ull, EXTENT),
	BAD(add_view[1].stride[0], 3, BAD_VIEW),
	BAD(add_view[1].stride[0], ~1ull, EXTENT),
	BAD(add_view[1].stride[1], 2, BAD_VIEW),
	BAD(add_view[1].loop_stride[0], 1, BAD_VIEW),
	BAD(add_view[1].loop_stride[0], 1ull << 40, EXTENT),
	BAD(add_view[1].loop_stride[1], 128, BAD_VIEW),
};

static void verify_describe(const struct verify_case *param, char *text)
{
	strscpy(text, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(verify, verify_cases, verify_describe);

static void verify_refuses(struct kunit *test)
{
	const struct verify_case *wrong = test->param_value;
	struct verify_image *image = verify_alloc(test);
	struct spyre_verify_error why = {};
	struct spyre_program prog;

	/* Little endian: the low bytes come first. */
	memcpy((u8 *)image + wrong->offset, &wrong->value, wrong->size);
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_program_verify(image, sizeof(*image), TEST_CORES,
							    &prog, &why));
	KUNIT_EXPECT_EQ_MSG(test, why.stop, wrong->stop, "%s instead of %s",
			    spyre_stop_name(why.stop), spyre_stop_name(wrong->stop));
	KUNIT_EXPECT_NULL(test, prog.header);
}

static void verify_short(struct kunit *test)
{
	struct verify_image *image = verify_alloc(test);
	struct spyre_verify_error why;
	struct spyre_program prog;
	u64 size;

	for (size = 0; size < sizeof(*image); size += 8) {
		KUNIT_ASSERT_EQ(test, -EINVAL, spyre_program_verify(image, size, TEST_CORES,
								    &prog, &why));
		KUNIT_ASSERT_EQ(test, why.stop, SPYRE_STOP_TRUNCATED);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_program_verify(image, sizeof(*image), 1, &prog,
							    &why));
	KUNIT_EXPECT_EQ(test, why.stop, SPYRE_STOP_TOO_MANY_CORES);
}

/* A rejection reports the location. */
static void verify_place(struct kunit *test)
{
	struct verify_image *image = verify_alloc(test);
	struct spyre_verify_error why = {};
	struct spyre_program prog;

	image->move_view[1].operand = 9;
	KUNIT_ASSERT_EQ(test, -EINVAL, spyre_program_verify(image, sizeof(*image), TEST_CORES,
							    &prog, &why));
	KUNIT_EXPECT_EQ(test, why.stop, SPYRE_STOP_BAD_VIEW);
	KUNIT_EXPECT_EQ(test, why.step, 1u);
	KUNIT_EXPECT_EQ(test, why.core, 1u);
	KUNIT_EXPECT_EQ(test, why.instr, 0u);
	KUNIT_EXPECT_EQ(test, why.view, 1u);
	KUNIT_EXPECT_EQ(test, why.value, 9ull);
	KUNIT_EXPECT_EQ(test, why.limit, 3ull);
}

/* Loops around nothing are bounded as well. */
static void verify_too_long(struct kunit *test)
{
	const u32 loops = SPYRE_MAX_LOOPS;
	struct spyre_prog_header *h;
	struct spyre_verify_error why = {};
	struct spyre_prog_step *step;
	struct spyre_program prog;
	u64 size = sizeof(*h) + (2 * loops + 2) * sizeof(*step);
	u32 i;

	h = kunit_kzalloc(test, size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, h);
	*h = (struct spyre_prog_header) {
		.magic = SPYRE_PROG_MAGIC, .version = SPYRE_PROG_VERSION, .num_cores = 1,
		.size = size - 2 * sizeof(*step), .num_steps = 2 * loops,
	};
	step = (struct spyre_prog_step *)(h + 1);
	for (i = 0; i < 2 * loops; i++)
		step[i] = (struct spyre_prog_step) {
			.kind = i < loops ? SPYRE_STEP_LOOP : SPYRE_STEP_END,
			.count = i < loops ? SPYRE_MAX_COUNT : 0,
		};
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_program_verify(h, h->size, 1, &prog, &why));
	KUNIT_EXPECT_EQ(test, why.stop, SPYRE_STOP_TOO_LONG);

	/* One loop more than there are. */
	h->size = size;
	h->num_steps = 2 * loops + 2;
	for (i = 0; i < h->num_steps; i++)
		step[i] = (struct spyre_prog_step) {
			.kind = i <= loops ? SPYRE_STEP_LOOP : SPYRE_STEP_END,
			.count = i <= loops ? 1 : 0,
		};
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_program_verify(h, h->size, 1, &prog, &why));
	KUNIT_EXPECT_EQ(test, why.stop, SPYRE_STOP_BAD_STEP);
}

static struct kunit_case verify_tests[] = {
	KUNIT_CASE(verify_passes),
	KUNIT_CASE_PARAM(verify_refuses, verify_gen_params),
	KUNIT_CASE(verify_short),
	KUNIT_CASE(verify_place),
	KUNIT_CASE(verify_too_long),
	{}
};

static struct kunit_suite verify_suite = {
	.name = "spyre_verify",
	.test_cases = verify_tests,
};

kunit_test_suite(verify_suite);
