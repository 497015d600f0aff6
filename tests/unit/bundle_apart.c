// SPDX-License-Identifier: MIT
/*
 * Outputs that overlap what an SDSC reads: the decision, against a count of all bytes, and the
 * program or refusal that follows. The families "apart" of the conformance tests check results.
 */
#include <stdio.h>

#include "bundle_files.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/lower/overlap.h"
#include "runtime_check.h"

#define COLUMNS 64
#define STICKS 512u		/* of memory, in the count */
#define MAX_CORES 4
#define MAX_TENSORS 8

static char folder[64];

static void setup(void)
{
	files_make(folder);
}

static void teardown(void)
{
	files_remove(folder);
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	return random_next(state) % below;
}

static void draw_box(struct overlap_box *box, uint64_t *state, uint64_t unit)
{
	memset(box, 0, sizeof(*box));
	box->at.operand = draw(state, 16) == 0;
	box->at.offset = draw(state, 40 * 128 / unit) * unit;
	for (uint32_t d = 0; d < 2; d++)
		box->at.per_iter[d] = draw(state, 6) * 128;
	box->num_dims = (uint32_t)draw(state, 4);
	for (uint32_t d = 0; d < box->num_dims; d++) {
		box->dim[d].stride = (1 + draw(state, 20)) * 128;
		box->dim[d].last = 1 + draw(state, 4);
	}
}

/* Marks the bytes of a box from dim @dim on. */
static void mark(uint8_t *bytes, const struct overlap_box *box, uint32_t dim, uint64_t at)
{
	if (dim == box->num_dims) {
		memset(bytes + at, 1, 128);
		return;
	}
	for (uint64_t i = 0; i <= box->dim[dim].last; i++)
		mark(bytes, box, dim + 1, at + i * box->dim[dim].stride);
}

static bool counted(const struct overlap_box *a, const struct overlap_box *b,
		    const uint32_t iters[2])
{
	static uint8_t of[2][STICKS * 128];

	for (uint32_t i = 0; i < iters[0]; i++)
		for (uint32_t k = 0; k < iters[1]; k++) {
			memset(of, 0, sizeof(of));
			mark(of[0], a, 0, a->at.offset + i * a->at.per_iter[0] +
			     k * a->at.per_iter[1]);
			mark(of[1], b, 0, b->at.offset + i * b->at.per_iter[0] +
			     k * b->at.per_iter[1]);
			for (uint32_t n = 0; n < sizeof(of[0]); n++)
				if (of[0][n] && of[1][n])
					return true;
		}
	return false;
}

START_TEST(exact)
{
	uint64_t state = 1, found[2] = { 0, 0 };

	for (int i = 0; i < 4000; i++) {
		const uint32_t iters[2] = { 1 + (uint32_t)draw(&state, 3),
					    1 + (uint32_t)draw(&state, 3) };
		struct overlap_box a, b;
		bool want;

		/* Tensors in LX may begin at any byte. */
		draw_box(&a, &state, i % 2 ? 128 : 2);
		draw_box(&b, &state, 128);
		want = a.at.operand == b.at.operand && counted(&a, &b, iters);
		if (overlap_boxes(&a, &b, iters, 2) != want)
			ck_abort_msg("sample %d: %s", i, want ? "overlap" : "no overlap");
		found[want]++;
	}
	ck_assert_uint_gt(found[0], 400);
	ck_assert_uint_gt(found[1], 400);
}
END_TEST

/* Large and odd numbers neither overflow nor take long. */
START_TEST(extreme)
{
	const uint32_t iters[SPYRE_MAX_LOOPS] = { 65535, 65535, 65535, 65535 };
	uint64_t state = 7;

	for (int i = 0; i < 2000; i++) {
		struct overlap_box box[2];

		memset(box, 0, sizeof(box));
		for (int k = 0; k < 2; k++) {
			box[k].at.offset = draw(&state, 1ull << (2 + draw(&state, 62))) & ~127ull;
			for (uint32_t d = 0; d < SPYRE_MAX_LOOPS; d++)
				box[k].at.per_iter[d] =
					draw(&state, 1ull << draw(&state, 63)) & ~127ull;
			box[k].num_dims = (uint32_t)draw(&state, IR_MAX_DIMS + 2);
			for (uint32_t d = 0; d < box[k].num_dims; d++) {
				box[k].dim[d].stride =
					(draw(&state, 1ull << draw(&state, 40)) | 1) << 7;
				box[k].dim[d].last = draw(&state, 1ull << draw(&state, 24));
			}
		}
		overlap_boxes(&box[0], &box[1], iters, i % 5);
	}
}
END_TEST

/*
 * A step from memory of the pool, or from @arg, to such memory. Rows are outside of the sticks;
 * cores divide them.
 */
struct step {
	const char *op;
	const char *format[2];
	unsigned int place[2], stride[2];	/* of the input and the output, in bytes */
	unsigned int rows, cores;
	unsigned int tensors;			/* the first and the last are used */
	unsigned int loop;			/* iterations */
	bool lacks;				/* the output lacks the rows */
	const char *inner, *outer;		/* memory order of both, mb outside unless given */
};

static int word(const char *format)
{
	return strstr(format, "FP32") ? 4 : 2;
}

static void put_starts(char *text, size_t size, const struct step *s, int side)
{
	size_t used = 0;

	for (unsigned int c = 0; c < s->cores; c++)
		used += (size_t)snprintf(text + used, size - used, "%s\"[%u, 0, 0]\":\"%d\"",
					 c ? "," : "", c,
					 -1 - (int)(side * MAX_CORES + (side && s->lacks ? 0 : c)));
}

static void put_sdsc(const struct step *s)
{
	static char text[1 << 16];
	char nodes[8192], lds[4096], starts[512], cores[64] = "", slices[512] = "";
	size_t n = 0, l = 0, k = 0, m = 0;
	unsigned int count = s->tensors ? s->tensors : 2;

	for (unsigned int c = 0; c < s->cores; c++) {
		k += (size_t)snprintf(cores + k, sizeof(cores) - k, "%s%u", c ? "," : "", c);
		m += (size_t)snprintf(slices + m, sizeof(slices) - m,
				      "%s\"%u\":{\"mb\":%u,\"out\":0}", c ? "," : "", c, c);
	}
	for (unsigned int t = 0; t < count; t++) {
		int side = t + 1 == count;

		put_starts(starts, sizeof(starts), s, side);
		n += (size_t)snprintf(nodes + n, sizeof(nodes) - n,
				      "%s{\"ldsIdx_\":%u,\"component_\":\"hbm\",\"layoutDimOrder_\":[\"%s\",\"%s\"],"
				      "\"startAddressCoreCorelet_\":{\"data_\":{%s}}}", t ? "," : "", t,
				      s->inner ? s->inner : "out", s->outer ? s->outer : "mb",
				      starts);
		l += (size_t)snprintf(lds + l, sizeof(lds) - l,
				      "%s{\"ldsIdx_\":%u,\"dsType_\":\"D%d\",\"scale_\":[%d,1],"
				      "\"wordLength\":%d,\"dataFormat_\":\"%s\"}", t ? "," : "", t, side,
				      side && s->lacks ? -1 : 1, word(s->format[side]),
				      s->format[side]);
	}
	snprintf(text, sizeof(text),
		 "{\"0_%s\":{\"numCoresUsed_\":%u,\"numWkSlicesPerDim_\":{\"mb\":%u,\"out\":1},"
		 "\"coreIdToWkSlice_\":{%s},\"dscs_\":[{\"%s\":{\"coreIdsUsed_\":[%s],"
		 "\"N_\":{\"mb_\":%u,\"out_\":%d},\"coordinateMasking_\":{},"
		 "\"dataStageParam_\":{\"0\":{\"el_\":{\"mb_\":%u,\"out_\":%d}}},\"primaryDsInfo_\":{"
		 "\"D0\":{\"layoutDimOrder_\":[\"mb\",\"out\"],\"stickDimOrder_\":[\"out\"],\"stickSize_\":[%d]},"
		 "\"D1\":{\"layoutDimOrder_\":[\"mb\",\"out\"],\"stickDimOrder_\":[\"out\"],\"stickSize_\":[%d]}},"
		 "\"scheduleTree_\":[%s],\"labeledDs_\":[%s],\"constantInfo_\":\"{}\","
		 "\"computeOp_\":[{\"opFuncName\":\"%s\",\"inputLabeledDs\":[\"T-idx0\"],"
		 "\"outputLabeledDs\":[\"T-idx%u\"]}]}}]}}",
		 s->op, s->cores, s->cores, slices, s->op, cores, s->rows, COLUMNS,
		 s->rows / s->cores, COLUMNS, 128 / word(s->format[0]), 128 / word(s->format[1]),
		 nodes, lds, s->op, count - 1);
	files_write(folder, "sdsc_0.json", text);
}

/* Symbols -1 to -4 are the input's addresses on the cores, -5 to -8 the output's. */
static void put_bundle(const struct step *s)
{
	static char text[1 << 14];
	unsigned int share = s->rows / s->cores;
	size_t n = 0;

	put_sdsc(s);
	n += (size_t)snprintf(text, sizeof(text),
			      "#m = affine_map<(d0)[s0] -> (s0 + %u*d0)>\n"
			      "#n = affine_map<(d0)[s0] -> (s0 + %u*d0)>\nmodule {\n"
			      "func.func @sdsc_bundle(%%arg_0_base_addr: !sdscbundle.input_arg<index>) {\n"
			      "%%arg_0 = sdscbundle.input_arg_extract value from %%arg_0_base_addr : !sdscbundle.input_arg<index> -> index\n"
			      "%%zero = arith.constant 0 : index\n%%one = arith.constant 1 : index\n"
			      "%%end = arith.constant %u : index\n", s->stride[0], s->stride[1],
			      s->loop ? s->loop : 1);
	for (int i = 0; i < 2 * MAX_CORES; i++) {
		int side = i / MAX_CORES;
		unsigned int row = s->inner ? 128 : COLUMNS * (unsigned int)word(s->format[side]);

		row *= share * (unsigned int)(i % MAX_CORES);
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%%o%d = arith.constant %u : index\n"
				      "%%b%d = arith.addi %%arg_0, %%o%d : index\n", i,
				      s->place[side] + row, i, i);
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n,
			      "scf.for %%i = %%zero to %%end step %%one {\n");
	for (int i = 0; i < 2 * MAX_CORES; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%%a%d = affine.apply #%s(%%i)[%%b%d]\n", i,
				      i < MAX_CORES ? "m" : "n", i);
	snprintf(text + n, sizeof(text) - n,
		 "sdscbundle.sdsc_execute (%%a0, %%a1, %%a2, %%a3, %%a4, %%a5, %%a6, %%a7) "
		 "{sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[-1, -2, -3, -4, -5, -6, -7, -8]}\n"
		 "}\nreturn\n}\n}\n");
	files_write(folder, "bundle.mlir", text);
}

#define DL16 "SEN169_FP16"
#define FP32 "IEEE_FP32"

static const struct {
	struct step step;
	unsigned int lx;		/* of the program: a copy of a core's output, or none */
} programs[] = {
	/* One core: the whole output, next to its input and over a row of it. */
	{ { "fp32todl16", { FP32, DL16 }, { 0, 2048 }, .rows = 8, .cores = 1 }, 0 },
	{ { "fp32todl16", { FP32, DL16 }, { 0, 1920 }, .rows = 8, .cores = 1 }, 1024 },
	{ { "fp32todl16", { FP32, DL16 }, { 1024, 0 }, .rows = 8, .cores = 1 }, 0 },
	{ { "fp32todl16", { FP32, DL16 }, { 896, 0 }, .rows = 8, .cores = 1 }, 1024 },
	/* As many tensors as a file may have. */
	{ { "fp32todl16", { FP32, DL16 }, { 0, 1920 }, .rows = 8, .cores = 1, .tensors = 8 }, 1024 },
	{ { "fp32todl16", { FP32, DL16 }, { 0, 2048 }, .rows = 8, .cores = 1, .tensors = 8 }, 0 },
	/* The output of one core in the input of another. */
	{ { "fp32todl16", { FP32, DL16 }, { 0, 1024 }, .rows = 8, .cores = 4 }, 256 },
	/* The tensors meet in the last iteration, or in none. */
	{ { "fp32todl16", { FP32, DL16 }, { 0, 4096 }, { 1024, 0 }, 8, 1, .loop = 4 }, 1024 },
	{ { "fp32todl16", { FP32, DL16 }, { 0, 4096 }, { 1024, 0 }, 8, 1, .loop = 3 }, 0 },
	{ { "fp32todl16", { FP32, DL16 }, { 0, 4096 }, { 2048, 2048 }, 8, 1, .loop = 99 }, 0 },
	{ { "fp32todl16", { FP32, DL16 }, { 4096, 0 }, { 0, 128 }, 8, 1, .loop = 25 }, 0 },
	{ { "fp32todl16", { FP32, DL16 }, { 4096, 0 }, { 0, 128 }, 8, 1, .loop = 26 }, 1024 },
	/* They pass each other between two iterations. */
	{ { "fp32todl16", { FP32, DL16 }, { 0, 4096 }, { 8192, 0 }, 8, 1, .loop = 9 }, 0 },
	/* Equal width: in place element for element, and a row behind. */
	{ { "identity", { DL16, DL16 }, { 0, 0 }, .rows = 8, .cores = 1 }, 0 },
	{ { "neg", { FP32, FP32 }, { 0, 0 }, .rows = 8, .cores = 4 }, 0 },
	{ { "neg", { FP32, FP32 }, { 0, 0 }, { 256, 256 }, 8, 4, .loop = 3 }, 0 },
	{ { "neg", { FP32, FP32 }, { 0, 0 }, { 256, 512 }, 8, 4, .loop = 3 }, 512 },
	{ { "neg", { FP32, FP32 }, { 0, 256 }, .rows = 8, .cores = 1 }, 2048 },
	{ { "identity", { DL16, DL16 }, { 128, 0 }, .rows = 8, .cores = 2 }, 512 },
	/* Mixed width. */
	{ { "neg", { DL16, FP32 }, { 0, 0 }, .rows = 8, .cores = 1 }, 2048 },
	{ { "neg", { DL16, FP32 }, { 0, 1024 }, .rows = 8, .cores = 1 }, 0 },
	/* Sticks outermost: the columns of one tensor are in the gaps of the other. */
	{ { "neg", { FP32, FP32 }, { 0, 512 }, .rows = 4, .cores = 1, .inner = "mb",
	    .outer = "out" }, 1024 },
	{ { "neg", { FP32, FP32 }, { 0, 0 }, .rows = 4, .cores = 2, .inner = "mb",
	    .outer = "out" }, 0 },
};

START_TEST(program)
{
	struct spyre_bundle bundle;

	put_bundle(&programs[_i].step);
	ck_ok(spyre_bundle_load(folder, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL));
	ck_assert_uint_eq(bundle.lx_bytes, programs[_i].lx);
	spyre_bundle_fini(&bundle);
}
END_TEST

static const struct {
	struct step step;
	spyre_status status;
	const char *text;
} refusals[] = {
	{ { "fp32todl16", { FP32, DL16 }, { 0, 128 }, .rows = 32768, .cores = 1 },
	  SPYRE_ERROR_LX_OVERFLOW,
	  "the output overlaps inputs, and a copy of 4194304 bytes does not fit in LX behind byte 0, a core has 2097152; place them apart" },
	{ { "neg", { FP32, FP32 }, { 0, 256 }, .rows = 32768, .cores = 1 },
	  SPYRE_ERROR_LX_OVERFLOW, "a copy of 8388608 bytes" },
	{ { "neg", { FP32, FP32 }, { 0, 0 }, .rows = 8, .cores = 4, .lacks = true },
	  SPYRE_ERROR_UNSUPPORTED,
	  "the output overlaps inputs and is that of 4 cores which divide mb; place them apart" },
};

START_TEST(refused)
{
	struct spyre_bundle bundle;

	put_bundle(&refusals[_i].step);
	ck_status(spyre_bundle_load(folder, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL),
		  refusals[_i].status);
	ck_mentions(refusals[_i].text);
}
END_TEST

/* Rows that are stored where the source of rows, or the indices, are. */
START_TEST(scattered)
{
	struct spyre_bundle bundle;

	files_copy(folder, "scatter");
	files_edit(folder, "bundle.mlir", "(%arg_1, %arg_2, %arg_3)",
		   _i ? "(%arg_3, %arg_2, %arg_3)" : "(%arg_1, %arg_3, %arg_3)");
	if (_i == 2)
		files_edit(folder, "sdsc_1.json", "\"opFuncName\": \"identity\"",
			   "\"opFuncName\": \"neg\"");
	ck_status(spyre_bundle_load(folder, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL),
		  SPYRE_ERROR_UNSUPPORTED);
	ck_mentions(_i ? "Tensor2, whose rows it stores, overlaps Tensor0, which it still reads then" :
			 "Tensor2, whose rows it stores, overlaps Tensor1, which it still reads then");
	ck_mentions("place them apart");
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	TCase *tests = tcase_create("apart");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, exact);
	tcase_add_test(tests, extreme);
	tcase_add_loop_test(tests, program, 0, COUNT(programs));
	tcase_add_loop_test(tests, refused, 0, COUNT(refusals));
	tcase_add_loop_test(tests, scattered, 0, 3);
	return run_suite("bundle_apart", tests);
}
