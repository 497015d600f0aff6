// SPDX-License-Identifier: MIT
/* Small bundles on a bare card: see sdsc_bundle.h. */
#include "sdsc_bundle.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libspyre/backend/cpu.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "model/card.h"
#include "tests/order.h"

/* Description */

static int find_dim(const struct bundle_case *c, const char *name)
{
	for (int d = 0; d < c->num_dims; d++)
		if (!strcmp(c->dim[d], name))
			return d;
	ck_abort_msg("no dim %s", name);
	return -1;
}

void bundle_begin(struct bundle_case *c, const char *op, const char *dims)
{
	int used;

	memset(c, 0, sizeof(*c));
	c->op = op;
	c->cores = 1;
	while (*dims) {
		int d = c->num_dims++;
		long size, slices = 1;

		ck_assert_int_eq(sscanf(dims, "%15s %ld%n", c->dim[d], &size, &used), 2);
		dims += used;
		if (*dims == '/') {
			ck_assert_int_eq(sscanf(dims, "/%ld%n", &slices, &used), 1);
			dims += used;
		}
		c->size[d] = size;
		c->slices[d] = slices;
		c->cores *= (int)slices;
		dims += strspn(dims, ", ");
	}
}

static int64_t unit_of(const struct bundle_tensor *t, int dim)
{
	int64_t unit = 1;

	for (int i = 0; i < t->num_parts; i++)
		if (t->part_dim[i] == dim)
			unit *= t->part_size[i];
	return unit;
}

static int64_t steps_of(const struct bundle_case *c, const struct bundle_tensor *t, int dim)
{
	int64_t unit = unit_of(t, dim);

	return t->scale[dim] > 0 ? (c->size[dim] + unit - 1) / unit : 1;
}

void bundle_tensor(struct bundle_case *c, const char *text)
{
	struct bundle_tensor *t = &c->tensor[c->num_tensors++];
	char name[32];
	int used;

	ck_assert_int_eq(sscanf(text, "%31s [%n", name, &used), 1);
	t->format = (enum spyre_fmt)spyre_format_from_name(name);
	ck_assert_int_ne(t->format, SPYRE_FMT_INVALID);
	for (text += used; *text != ']'; text += strspn(text, ", ")) {
		ck_assert_int_eq(sscanf(text, "%31s %d%n", name, &t->part_size[t->num_parts],
					&used), 2);
		t->part_dim[t->num_parts++] = find_dim(c, name);
		text += used;
	}
	for (text++; sscanf(text, "%31s%n", name, &used) == 1; text += used) {
		char *mark = name + strlen(name) - 1;
		int scale = *mark == '-' ? -1 : *mark == '=' ? -2 : 1;

		if (scale < 0)
			*mark = 0;
		t->order[t->num_order] = find_dim(c, name);
		t->scale[t->order[t->num_order++]] = scale;
	}
	t->count = 1;
	for (int d = 0; d < c->num_dims; d++)
		t->count *= t->scale[d] > 0 ? (size_t)c->size[d] : 1;
	t->bytes = SPYRE_STICK_BYTES;
	for (int k = 0; k < t->num_order; k++)
		t->bytes *= (size_t)steps_of(c, t, t->order[k]);
	t->code = calloc(t->count, sizeof(*t->code));
	t->memory = aligned_alloc(SPYRE_STICK_BYTES, t->bytes);
	memset(t->memory, 0, t->bytes);
}

void bundle_constant(struct bundle_case *c, const char *name, float value)
{
	c->constant[c->num_constants].name = name;
	memcpy(&c->constant[c->num_constants++].bits, &value, 4);
}

void bundle_end(struct bundle_case *c)
{
	for (int i = 0; i < c->num_tensors; i++) {
		free(c->tensor[i].code);
		free(c->tensor[i].memory);
	}
}

/* Elements */

uint32_t *bundle_at(const struct bundle_case *c, int tensor, const int64_t *x)
{
	const struct bundle_tensor *t = &c->tensor[tensor];
	size_t at = 0;

	for (int d = 0; d < c->num_dims; d++)
		if (t->scale[d] > 0)
			at = at * (size_t)c->size[d] + (size_t)x[d];
	return &t->code[at];
}

bool bundle_next(const struct bundle_case *c, int64_t *x)
{
	for (int d = c->num_dims; d-- > 0;) {
		if (++x[d] < c->size[d])
			return true;
		x[d] = 0;
	}
	return false;
}

/* Bits from the tensor's start. */
static uint64_t place(const struct bundle_case *c, const struct bundle_tensor *t, const int64_t *x)
{
	uint64_t stick = 0, step = 1, lane = 0, weight = 1;
	int64_t rest[BUNDLE_DIMS];

	for (int k = 0; k < t->num_order; k++) {
		int d = t->order[k];

		if (t->scale[d] > 0)
			stick += (uint64_t)(x[d] / unit_of(t, d)) * step;
		step *= (uint64_t)steps_of(c, t, d);
	}
	memcpy(rest, x, sizeof(rest));
	for (int i = 0; i < t->num_parts; i++) {
		int d = t->part_dim[i];

		if (t->scale[d] > 0)
			lane += (uint64_t)(rest[d] % t->part_size[i]) * weight;
		rest[d] /= t->part_size[i];
		weight *= (uint64_t)t->part_size[i];
	}
	return stick * 8 * SPYRE_STICK_BYTES + lane * spyre_fmt_bits(t->format);
}

static void copy_codes(struct bundle_case *c, struct bundle_tensor *t, int index, bool put)
{
	uint32_t bits = spyre_fmt_bits(t->format);
	int64_t x[BUNDLE_DIMS] = { 0 };

	do {
		uint64_t at = place(c, t, x);
		uint32_t *code = bundle_at(c, index, x);
		uint8_t *byte = t->memory + at / 8;

		if (bits == 4 && put)
			*byte = (uint8_t)(at % 8 ? (*byte & 0xf) | *code << 4 :
					  (*byte & 0xf0) | (*code & 0xf));
		else if (bits == 4)
			*code = *byte >> at % 8 & 0xf;
		else if (put)
			put_le(byte, *code, bits / 8);
		else
			*code = (uint32_t)get_le(byte, bits / 8);
	} while (bundle_next(c, x));
}

float bundle_number(enum spyre_fmt format, uint32_t code)
{
	uint32_t bits = code;
	float number;

	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		bits = spyre_dl16_to_fp32((uint16_t)code);
		break;
	case SPYRE_FMT_IEEE_FP16:
		bits = spyre_fp16_to_fp32((uint16_t)code);
		break;
	case SPYRE_FMT_BFLOAT16:
		bits = code << 16;
		break;
	case SPYRE_FMT_SEN143_FP8:
		bits = spyre_fp8_143_to_fp32((uint8_t)code);
		break;
	case SPYRE_FMT_SEN152_FP8:
		bits = spyre_fp8_152_to_fp32((uint8_t)code);
		break;
	case SPYRE_FMT_SENINT4:
		return (float)((int)(code << 28) >> 28);
	case SPYRE_FMT_SENINT8:
		return (int8_t)code;
	case SPYRE_FMT_SENINT16:
		return (int16_t)code;
	case SPYRE_FMT_IEEE_INT32:
		return (float)(int32_t)code;
	default:
		break;
	}
	memcpy(&number, &bits, 4);
	return number;
}

uint32_t bundle_code(enum spyre_fmt format, float number)
{
	uint32_t bits;

	memcpy(&bits, &number, 4);
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return spyre_fp32_to_dl16(bits);
	case SPYRE_FMT_IEEE_FP16:
		return spyre_fp32_to_fp16(bits);
	case SPYRE_FMT_BFLOAT16:
		return spyre_fp32_to_bf16(bits);
	case SPYRE_FMT_SEN143_FP8:
		return spyre_fp32_to_fp8_143(bits);
	case SPYRE_FMT_SEN152_FP8:
		return spyre_fp32_to_fp8_152(bits);
	case SPYRE_FMT_SENINT4:
		return (uint32_t)spyre_fp32_to_int(format, bits) & 0xf;
	case SPYRE_FMT_SENINT8:
		return (uint32_t)spyre_fp32_to_int(format, bits) & 0xff;
	case SPYRE_FMT_SENINT16:
		return (uint32_t)spyre_fp32_to_int(format, bits) & 0xffff;
	case SPYRE_FMT_IEEE_INT32:
		return (uint32_t)spyre_fp32_to_int(format, bits);
	default:
		return bits;
	}
}

void bundle_draw(struct bundle_case *c, int tensor, float size)
{
	static uint64_t seed = 20261121;
	struct bundle_tensor *t = &c->tensor[tensor];

	for (size_t i = 0; i < t->count; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		t->code[i] = bundle_code(t->format, size * ((float)(seed >> 40) / (1 << 23) - 1));
	}
}

/* Files */

static void put_names(FILE *f, const struct bundle_case *c, const int *dim, int n)
{
	for (int i = 0; i < n; i++)
		fprintf(f, "%s\"%s\"", i ? "," : "", c->dim[dim[i]]);
}

static void put_slices(FILE *f, const struct bundle_case *c, int core, int64_t *slice)
{
	for (int d = 0; d < c->num_dims; d++) {
		slice[d] = core % c->slices[d];
		core /= (int)c->slices[d];
		if (f)
			fprintf(f, "%s\"%s\":%ld", d ? "," : "", c->dim[d], (long)slice[d]);
	}
}

static void put_tensor(FILE *f, const struct bundle_case *c, int i)
{
	const struct bundle_tensor *t = &c->tensor[i];
	int64_t x[BUNDLE_DIMS];

	fprintf(f, "%s{\"ldsIdx_\":%d,\"component_\":\"hbm\",\"layoutDimOrder_\":[", i ? "," : "", i);
	put_names(f, c, t->order, t->num_order);
	fprintf(f, "],\"startAddressCoreCorelet_\":{\"data_\":{");
	for (int core = 0; core < c->cores; core++) {
		put_slices(NULL, c, core, x);
		for (int d = 0; d < c->num_dims; d++)
			x[d] *= c->size[d] / c->slices[d];
		fprintf(f, "%s\"[%d, 0, 0]\":\"%llu\"", core ? "," : "", core,
			((unsigned long long)i << 34) + place(c, t, x) / 8);
	}
	fprintf(f, "}}}");
}

static void put_labels(FILE *f, const struct bundle_case *c)
{
	fprintf(f, "\"primaryDsInfo_\":{");
	for (int i = 0; i < c->num_tensors; i++) {
		const struct bundle_tensor *t = &c->tensor[i];

		fprintf(f, "%s\"T%d\":{\"layoutDimOrder_\":[", i ? "," : "", i);
		put_names(f, c, t->order, t->num_order);
		fprintf(f, "],\"stickDimOrder_\":[");
		put_names(f, c, t->part_dim, t->num_parts);
		fprintf(f, "],\"stickSize_\":[");
		for (int k = 0; k < t->num_parts; k++)
			fprintf(f, "%s%d", k ? "," : "", t->part_size[k]);
		fprintf(f, "]}");
	}
	fprintf(f, "},\"labeledDs_\":[");
	for (int i = 0; i < c->num_tensors; i++) {
		const struct bundle_tensor *t = &c->tensor[i];

		fprintf(f, "%s{\"ldsIdx_\":%d,\"wordLength\":%u,\"dataFormat_\":\"%s\",\"dsType_\":\"T%d\",\"scale_\":[",
			i ? "," : "", i, (spyre_fmt_bits(t->format) + 7) / 8,
			spyre_format_name((spyre_format)t->format), i);
		for (int k = 0; k < t->num_order; k++)
			fprintf(f, "%s%d", k ? "," : "", t->scale[t->order[k]]);
		fprintf(f, "]}");
	}
	fprintf(f, "],");
}

static void put_constants(FILE *f, const struct bundle_case *c)
{
	fprintf(f, "\"constantInfo_\":{");
	for (int i = 0; i < c->num_constants; i++)
		fprintf(f, "%s\"%d\":{\"name_\":\"%s\",\"dataFormat_\":\"IEEE_FP32\",\"data_\":{\"data_\":{\"[0, 0, 0]\":[\"%u\"]}}}",
			i ? "," : "", i, c->constant[i].name, c->constant[i].bits);
	fprintf(f, "},");
}

static void put_sdsc(FILE *f, const struct bundle_case *c)
{
	int64_t slice[BUNDLE_DIMS];

	fprintf(f, "{\"0_%s\":{\"numCoresUsed_\":%d,\"numWkSlicesPerDim_\":{", c->op, c->cores);
	for (int d = 0; d < c->num_dims; d++)
		fprintf(f, "%s\"%s\":%ld", d ? "," : "", c->dim[d], (long)c->slices[d]);
	fprintf(f, "},\"coreIdToWkSlice_\":{");
	for (int core = 0; core < c->cores; core++) {
		fprintf(f, "%s\"%d\":{", core ? "," : "", core);
		put_slices(f, c, core, slice);
		fprintf(f, "}");
	}
	fprintf(f, "},\"dscs_\":[{\"%s\":{\"coordinateMasking_\":{},\"coreIdsUsed_\":[", c->op);
	for (int core = 0; core < c->cores; core++)
		fprintf(f, "%s%d", core ? "," : "", core);
	fprintf(f, "],\"N_\":{\"name_\":\"n\"");
	for (int d = 0; d < c->num_dims; d++)
		fprintf(f, ",\"%s_\":%ld", c->dim[d], (long)c->size[d]);
	fprintf(f, "},\"dataStageParam_\":{\"0\":{\"el_\":{\"name_\":\"core\"");
	for (int d = 0; d < c->num_dims; d++)
		fprintf(f, ",\"%s_\":%ld", c->dim[d], (long)(c->size[d] / c->slices[d]));
	fprintf(f, "}}},");
	put_constants(f, c);
	put_labels(f, c);
	fprintf(f, "\"scheduleTree_\":[");
	for (int i = 0; i < c->num_tensors; i++)
		put_tensor(f, c, i);
	fprintf(f, "],\"computeOp_\":[{\"opFuncName\":\"%s\",\"inputLabeledDs\":[", c->op);
	for (int i = 0; i + 1 < c->num_tensors; i++)
		fprintf(f, "%s\"T%d-idx%d\"", i ? "," : "", i, i);
	fprintf(f, "],\"outputLabeledDs\":[\"T-idx%d\"]}]}}]}}", c->num_tensors - 1);
}

static spyre_status compile(const struct bundle_case *c, struct spyre_bundle *out)
{
	char directory[] = "/tmp/spyre-bundle-XXXXXX", path[64];
	spyre_status status;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	put_sdsc(f, c);
	fclose(f);
	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "module {\nfunc.func @sdsc_bundle() {\nsdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\nreturn\n}\n}\n");
	fclose(f);
	status = spyre_bundle_load(directory, 32, CODE_CACHE_OFF, out, NULL);
	if (getenv("KEEP_BUNDLES"))
		return status;
	unlink(path);
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	unlink(path);
	rmdir(directory);
	return status;
}

/* The card */

static void parallel(struct spyre_host *host, struct spyre_worker *self, u32 n, spyre_work_fn fn,
		     void *arg)
{
	/* Runs in reverse: the order must not matter. */
	while (n-- > 0)
		fn(arg, n, self);
}

static void execute(const struct spyre_bundle *bundle, const struct spyre_program *program,
		    struct bundle_case *c, const struct spyre_unit *unit)
{
	struct spyre_host host = { .unit = unit, .parallel = parallel };
	struct spyre_worker worker = { .scratch = aligned_alloc(64, SPYRE_SCRATCH_BYTES) };
	uint8_t *operand[SPYRE_MAX_OPERANDS], *lx[SPYRE_MAX_CORES];
	struct spyre_exec x = { .host = &host, .prog = program, .operand = operand, .lx = lx };

	for (uint32_t i = 0; i < bundle->num_operands; i++) {
		struct bundle_tensor *t = &c->tensor[bundle->operands[i].arg];

		ck_assert_uint_le(program->operands[i].extent, t->bytes);
		operand[i] = t->memory;
	}
	for (uint32_t i = 0; i < SPYRE_MAX_CORES; i++) {
		lx[i] = aligned_alloc(128, bundle->lx_bytes + 128);
		/* NaN in DL16, fp32 and fp16. */
		for (size_t j = 0; j < bundle->lx_bytes + 128; j += 2)
			memcpy(lx[i] + j, &(uint16_t){ SPYRE_DL16_NAN }, 2);
	}
	ck_assert_int_eq(spyre_card_exec(&x, &worker), SPYRE_STOP_NONE);
	for (uint32_t i = 0; i < SPYRE_MAX_CORES; i++)
		free(lx[i]);
	free(worker.scratch);
}

void bundle_run(struct bundle_case *c)
{
	struct bundle_tensor *out = &c->tensor[c->num_tensors - 1];
	const struct spyre_unit *unit;
	uint8_t *first = NULL;
	u32 at = 0;
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;
	struct spyre_bundle bundle;

	for (int i = 0; i < c->num_tensors; i++)
		copy_codes(c, &c->tensor[i], i, true);
	ck_assert_msg(compile(c, &bundle) == SPYRE_SUCCESS, "%s", spyre_last_error());
	ck_assert_msg(!spyre_program_verify(bundle.image, bundle.image_bytes, 32, &program, &err),
		      "%s: %s: step %u core %u instruction %u view %u: %llu against %llu", c->op,
		      spyre_stop_name(err.stop), err.step, err.core, err.instr, err.view,
		      (unsigned long long)err.value, (unsigned long long)err.limit);
	while ((unit = cpu_next_unit(&at))) {
		memset(out->memory, 0x5a, out->bytes);
		execute(&bundle, &program, c, unit);
		if (first) {
			ck_assert_msg(!memcmp(first, out->memory, out->bytes), "%s: %s differs",
				      c->op, spyre_unit_name(unit));
			continue;
		}
		first = malloc(out->bytes);
		memcpy(first, out->memory, out->bytes);
	}
	copy_codes(c, out, c->num_tensors - 1, false);
	free(first);
	spyre_bundle_fini(&bundle);
}

void bundle_refused(struct bundle_case *c, spyre_status want, const char *words)
{
	struct spyre_bundle bundle;
	spyre_status status = compile(c, &bundle);

	ck_assert_msg(status == want, "%s: %s instead of %s: %s", c->op,
		      spyre_status_name(status), spyre_status_name(want),
		      status == SPYRE_SUCCESS ? "" : spyre_last_error());
	ck_assert_msg(strstr(spyre_last_error(), words), "\"%s\" is not in: %s", words,
		      spyre_last_error());
}
