// SPDX-License-Identifier: MIT
/*
 * Tables that earlier steps of a bundle write in several parts: the number of rows that the
 * program has, or the refusal. The family "indirect" of the conformance tests checks results.
 */
#include <stdio.h>

#include "bundle_files.h"
#include "libspyre/sdsc/load.h"
#include "runtime_check.h"

#define COLUMNS 128		/* of the recorded bundle "gather", whose SDSC is the last step */
#define ROW (COLUMNS * 2)
#define STEPS 8

static char folder[64];

static void setup(void)
{
	files_make(folder);
}

static void teardown(void)
{
	files_remove(folder);
}

/* A step from argument 3 to byte @place of the pool, or a step that reads the pool. */
struct step {
	enum { NONE, WRITE, READ, GATHER, SCATTER, LOOP, END } kind;
	unsigned int place, rows, columns;
	unsigned int gap;		/* columns of the row that the step leaves out */
	unsigned int more;		/* rows of memory behind the tensor */
	unsigned int stride;		/* bytes per iteration */
	const char *format;		/* SEN169_FP16 unless given */
	bool outermost;			/* the sticks are outside of the rows */
};

static void put_node(char *text, size_t size, int tensor, bool pool, const struct step *s)
{
	char gap[128] = "";

	if (pool && (s->gap || s->more))
		snprintf(gap, sizeof(gap), "\"backGapCore_\":{\"%s\":{\"-1\":\"%u\"}},",
			 s->gap ? "out" : "mb", s->gap ? s->gap : s->more);
	snprintf(text, size,
		 "{\"ldsIdx_\":%d,\"component_\":\"hbm\",\"layoutDimOrder_\":[%s],%s"
		 "\"startAddressCoreCorelet_\":{\"data_\":{\"[0, 0, 0]\":\"%d\"}}}", tensor,
		 pool && s->outermost ? "\"mb\",\"out\"" : "\"out\",\"mb\"", gap, -1 - tensor);
}

static void put_sdsc(int number, const struct step *s)
{
	static char text[1 << 14];
	const char *format = s->format ? s->format : "SEN169_FP16";
	int word = strstr(format, "FP32") ? 4 : 2;
	char node[2][512], name[32], size[64];
	bool write = s->kind == WRITE;

	put_node(node[0], sizeof(node[0]), 0, !write, s);
	put_node(node[1], sizeof(node[1]), 1, write, s);
	snprintf(size, sizeof(size), "\"mb_\":%u,\"out_\":%u", s->rows,
		 s->columns ? s->columns : COLUMNS);
	snprintf(text, sizeof(text),
		 "{\"%d_abs\":{\"numCoresUsed_\":1,\"numWkSlicesPerDim_\":{\"mb\":1,\"out\":1},"
		 "\"coreIdToWkSlice_\":{\"0\":{\"mb\":0,\"out\":0}},\"dscs_\":[{\"abs\":{"
		 "\"coreIdsUsed_\":[0],\"N_\":{%s},\"coordinateMasking_\":{},"
		 "\"dataStageParam_\":{\"0\":{\"el_\":{%s}}},\"primaryDsInfo_\":{"
		 "\"D0\":{\"layoutDimOrder_\":[\"out\",\"mb\"],\"stickDimOrder_\":[\"out\"],\"stickSize_\":[%d]}},"
		 "\"scheduleTree_\":[%s,%s],\"labeledDs_\":["
		 "{\"ldsIdx_\":0,\"dsType_\":\"D0\",\"scale_\":[1,1],\"wordLength\":%d,\"dataFormat_\":\"%s\"},"
		 "{\"ldsIdx_\":1,\"dsType_\":\"D0\",\"scale_\":[1,1],\"wordLength\":%d,\"dataFormat_\":\"%s\"}],"
		 "\"constantInfo_\":\"{}\",\"computeOp_\":[{\"opFuncName\":\"abs\","
		 "\"inputLabeledDs\":[\"T-idx0\"],\"outputLabeledDs\":[\"T-idx1\"]}]}}]}}",
		 number, size, size, 128 / word, node[0], node[1], word, format, word, format);
	snprintf(name, sizeof(name), "step_%d.json", number);
	files_write(folder, name, text);
}

/* The address of a place in the pool, which moves in a loop. */
static size_t put_address(char *text, size_t size, int number, const struct step *s)
{
	size_t n = (size_t)snprintf(text, size, "%%o%d = arith.constant %u : index\n"
				    "%%b%d = arith.addi %%pool, %%o%d : index\n", number, s->place,
				    number, number);

	if (s->stride)
		n += (size_t)snprintf(text + n, size - n,
				      "%%p%d = affine.apply affine_map<(d0)[s0] -> (s0 + %u*d0)>(%%i)[%%b%d]\n",
				      number, s->stride, number);
	return n;
}

static size_t put_step(char *text, size_t size, int number, const struct step *s)
{
	char place[16];
	size_t n = 0;

	if (s->kind == LOOP)
		return (size_t)snprintf(text, size, "%%n%d = arith.constant %u : index\n"
					"scf.for %%i = %%zero to %%n%d step %%one {\n", number,
					s->rows, number);
	if (s->kind == END)
		return (size_t)snprintf(text, size, "}\n");
	n = put_address(text, size, number, s);
	snprintf(place, sizeof(place), "%%%c%d", s->stride ? 'p' : 'b', number);
	if (s->kind == GATHER)
		return n + (size_t)snprintf(text + n, size - n,
			"sdscbundle.sdsc_execute (%%arg_0, %s, %%arg_2) "
			"{sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[-1, -2, -3]}\n", place);
	if (s->kind == SCATTER)
		return n + (size_t)snprintf(text + n, size - n,
			"sdscbundle.sdsc_execute (%%arg_0, %%arg_1, %s) "
			"{sdsc_filename=\"sdsc_1.json\", \"symbol_ids\"=[-3, -4, -5]}\n", place);
	put_sdsc(number, s);
	return n + (size_t)snprintf(text + n, size - n,
		"sdscbundle.sdsc_execute (%s, %s) "
		"{sdsc_filename=\"step_%d.json\", \"symbol_ids\"=[-1, -2]}\n",
		s->kind == WRITE ? "%arg_1" : place, s->kind == WRITE ? place : "%arg_3", number);
}

static void put_bundle(const struct step *steps)
{
	static char text[1 << 14];
	size_t n = (size_t)snprintf(text, sizeof(text), "module {\nfunc.func @sdsc_bundle(");

	/* sdsc_0.json is then that of "gather", sdsc_1.json the scattering one of "scatter". */
	files_copy(folder, "scatter");
	files_copy(folder, "gather");
	n += (size_t)snprintf(text + n, sizeof(text) - n,
			      "%%pool_base_addr: !sdscbundle.input_arg<index>");
	for (int i = 0; i < 4; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      ", %%arg_%d_base_addr: !sdscbundle.input_arg<index>", i);
	n += (size_t)snprintf(text + n, sizeof(text) - n, ") {\n%%zero = arith.constant 0 : index\n"
			      "%%one = arith.constant 1 : index\n%%pool = sdscbundle.input_arg_extract value from "
			      "%%pool_base_addr : !sdscbundle.input_arg<index> -> index\n");
	for (int i = 0; i < 4; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%%arg_%d = sdscbundle.input_arg_extract value from "
				      "%%arg_%d_base_addr : !sdscbundle.input_arg<index> -> index\n", i,
				      i);
	for (int i = 0; i < STEPS && steps[i].kind; i++)
		n += put_step(text + n, sizeof(text) - n, i, &steps[i]);
	snprintf(text + n, sizeof(text) - n, "return\n}\n}\n");
	files_write(folder, "bundle.mlir", text);
}

/* The rows that the program's last instruction GATHER may select. */
static uint32_t rows_of(const struct spyre_bundle *bundle)
{
	const struct spyre_prog_header *h = bundle->image;
	const uint8_t *end = (const uint8_t *)bundle->image + bundle->image_bytes;
	const uint8_t *at = end - h->instr_bytes;
	uint32_t rows = 0;

	while (at < end) {
		const struct spyre_instr *in = (const struct spyre_instr *)at;

		if (in->opcode == SPYRE_OP_GATHER)
			rows = in->imm[0];
		at += sizeof(*in) + in->num_views * sizeof(struct spyre_view);
	}
	return rows;
}

#define PUT(at, count) { .kind = WRITE, .place = at, .rows = count }
#define PART(at, count, width, rest) \
	{ .kind = WRITE, .place = at, .rows = count, .columns = width, .gap = rest }
#define MOVED(at, count, bytes) \
	{ .kind = WRITE, .place = at, .rows = count, .stride = bytes }
#define GET(at, count) { .kind = READ, .place = at, .rows = count }
#define TABLE(at) { .kind = GATHER, .place = at }

static const struct {
	struct step steps[STEPS];
	uint32_t rows;			/* 0: refused */
	const char *text;
} samples[] = {
	{ { PUT(512, 4), TABLE(512) }, 4, NULL },
	/* Two and three parts, in any order. */
	{ { PUT(512, 4), PUT(512 + 4 * ROW, 3), TABLE(512) }, 7, NULL },
	{ { PUT(9 * ROW, 1), PUT(4 * ROW, 5), PUT(0, 4), TABLE(0) }, 10,
	  NULL },
	/* Behind the table lies a tensor that another step reads: it is not a part of it. */
	{ { PUT(0, 4), PUT(4 * ROW, 4), GET(4 * ROW, 4), TABLE(0) }, 4, NULL },
	{ { PUT(0, 4), PUT(4 * ROW, 4), TABLE(0), GET(4 * ROW, 4) }, 4, NULL },
	{ { PUT(0, 4), PUT(4 * ROW, 4), TABLE(4 * ROW), TABLE(0) }, 4, NULL },
	/* A part of it is read. */
	{ { PUT(0, 4), PUT(4 * ROW, 4), GET(6 * ROW, 1), TABLE(0) }, 4, NULL },
	/* Another step reads the parts as one tensor, too. */
	{ { PUT(0, 4), PUT(4 * ROW, 4), GET(0, 8), TABLE(0) }, 8, NULL },
	/* The second table has only one part, and memory of the first lies behind it. */
	{ { PUT(0, 4), PUT(4 * ROW, 4), TABLE(0), PUT(0, 4), TABLE(0) },
	  4, NULL },
	{ { PUT(0, 4), PUT(4 * ROW, 4), TABLE(0), PUT(0, 4),
	    PUT(4 * ROW, 2), TABLE(0) }, 6, NULL },
	/* Memory behind the table that has been read as a part of another tensor before. */
	{ { PUT(0, 4), PUT(4 * ROW, 4), GET(0, 8), PUT(0, 4), TABLE(0) }, 4, NULL },
	{ { { .kind = WRITE, .rows = 4, .columns = 64, .format = "IEEE_FP32" },
	    { .kind = WRITE, .place = 4 * ROW, .rows = 4, .columns = 64, .format = "IEEE_FP32" },
	    { .kind = READ, .rows = 8, .columns = 64, .format = "IEEE_FP32" },
	    PUT(0, 4), TABLE(0) }, 4, NULL },
	{ { PUT(0, 4), PUT(4 * ROW, 4), GET(0, 8), PUT(4 * ROW, 2), PUT(0, 4), TABLE(0) }, 6,
	  NULL },
	/* Another tensor that begins in front of it is read before the first rows are written. */
	{ { PUT(4 * ROW, 4), GET(0, 4), PUT(0, 4), TABLE(0) }, 8, NULL },
	/* Columns that were read with those that have been replaced. */
	{ { PART(0, 4, 64, 64), PART(128, 4, 64, 64), GET(0, 4), PART(0, 4, 64, 64), TABLE(0) },
	  0, "writes the bytes from 128 on of row 0" },
	{ { PART(128, 3, 64, 64), PART(0, 4, 64, 64), TABLE(0), PART(0, 4, 64, 64), TABLE(0) },
	  0, "writes the bytes from 128 on of row 0" },
	/* Rows are scattered into memory behind those that are written as a tensor. */
	{ { { .kind = WRITE, .rows = 4, .more = 12 }, TABLE(0) }, 4, NULL },
	{ { { .kind = WRITE, .rows = 4, .more = 12 }, { .kind = SCATTER }, TABLE(0) }, 16, NULL },
	/* A part that does not follow without a gap. */
	{ { PUT(0, 4), PUT(5 * ROW, 3), TABLE(0) }, 4, NULL },
	/* Columns. */
	{ { PART(0, 4, 64, 64), PART(128, 4, 64, 64), TABLE(0) }, 4, NULL },
	{ { PART(128, 4, 64, 64), PART(0, 4, 64, 64), TABLE(0) }, 4, NULL },
	{ { PART(0, 4, 64, 64), TABLE(0) }, 0,
	  "Tensor1 is a table with rows of 256 bytes, and no earlier SDSC writes the bytes from 128 on of row 0; write its rows as a whole" },
	{ { PART(0, 4, 64, 64), PART(128, 3, 64, 64), TABLE(0) }, 3, NULL },
	{ { PART(0, 3, 64, 64), PART(128, 4, 64, 64), TABLE(0) }, 0,
	  "writes the bytes from 0 on of row 3" },
	/* Rows that are wider than those which are gathered. */
	{ { PART(0, 4, 128, 64), TABLE(0) }, 0, "the bytes from 0 on of row 1;" },
	/* Sticks outside of the rows, and sticks of fewer elements. */
	{ { PUT(0, 4), { .kind = WRITE, .place = 4 * ROW, .rows = 4, .outermost = true },
	    TABLE(0) }, 0,
	  "a table with 64 elements in a stick and 128 bytes between the sticks of a row, and step_1.json has written row 4 with 64 and 512; write it in the layout in which it is read" },
	{ { { .kind = WRITE, .rows = 4, .outermost = true }, TABLE(0) }, 0,
	  "step_0.json has written row 0 with 64 and 512" },
	{ { PUT(0, 4), { .kind = WRITE, .place = 4 * ROW, .rows = 4, .columns = 64,
			       .format = "IEEE_FP32" }, TABLE(0) }, 0,
	  "step_1.json has written row 4 with 32 and 128" },
	/* Rows in turn, and the table of each iteration. */
	{ { { .kind = LOOP, .rows = 3 }, MOVED(0, 1, 2 * ROW),
	    MOVED(ROW, 1, 2 * ROW), { .kind = END }, TABLE(0) }, 6, NULL },
	{ { { .kind = LOOP, .rows = 3 }, MOVED(0, 1, 2 * ROW), { .kind = END }, TABLE(0) }, 0,
	  "the bytes from 0 on of row 1;" },
	{ { { .kind = LOOP, .rows = 3 }, MOVED(0, 4, 8 * ROW),
	    MOVED(4 * ROW, 4, 8 * ROW), { .kind = GATHER, .place = 0, .stride = 8 * ROW },
	    { .kind = END } }, 8, NULL },
};

START_TEST(table)
{
	struct spyre_bundle bundle;

	put_bundle(samples[_i].steps);
	if (samples[_i].rows) {
		ck_ok(spyre_bundle_load(folder, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL));
		ck_assert_uint_eq(rows_of(&bundle), samples[_i].rows);
		spyre_bundle_fini(&bundle);
		return;
	}
	ck_status(spyre_bundle_load(folder, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL),
		  SPYRE_ERROR_UNSUPPORTED);
	ck_mentions(samples[_i].text);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("tables");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, table, 0, sizeof(samples) / sizeof(samples[0]));
	return run_suite("bundle_tables", tests);
}
