// SPDX-License-Identifier: MIT
/* Bundles of one SDSC: see sdsc_make.h. */
#include "sdsc_make.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "model/card.h"
#include "model_util.h"
#include "tests/order.h"

struct dim {
	char name[16];
	int64_t size, slices;
};

struct tensor {
	spyre_format format;
	uint32_t word, lanes;
	int num_order, order[MAKE_DIMS], stick;
	int pairs;		/* the dim of which a stick holds pairs, -1: none */
	int scale[MAKE_DIMS];
	int64_t gap[MAKE_DIMS], extent[MAKE_DIMS];
	uint64_t stride[MAKE_DIMS];	/* bytes, per stick along the stick dim */
	uint64_t bytes;
	uint8_t *data;
};

struct make {
	const struct make_case *c;
	int num_dims, num_tensors;
	struct dim dim[MAKE_DIMS];
	struct tensor tensor[MAKE_TENSORS];
	char *text;
	size_t size, capacity;
};

int make_dim(const struct make *m, const char *name)
{
	for (int d = 0; d < m->num_dims; d++)
		if (!strcmp(m->dim[d].name, name))
			return d;
	ck_abort_msg("no dimension %s", name);
	return -1;
}

int64_t make_size(const struct make *m, const char *name)
{
	for (int d = 0; d < m->num_dims; d++)
		if (!strcmp(m->dim[d].name, name))
			return m->dim[d].size;
	return 1;
}

int64_t make_input_size(const struct make *m, int axis)
{
	const struct make_axis *a = &m->c->axis[axis];

	return (make_size(m, axis ? "j" : "i") - 1) * a->stride +
	       (make_size(m, axis ? "kj" : "ki") - 1) * a->dilation + 1 - a->before - a->after;
}

/* The axis along dim @d of the tensor, or -1. */
static int axis_of(const struct make *m, int tensor, int d)
{
	if (tensor || !m->c->window)
		return -1;
	return !strcmp(m->dim[d].name, "i") ? 0 : !strcmp(m->dim[d].name, "j") ? 1 : -1;
}

static void parse_dims(struct make *m)
{
	char text[256], *save, *word;

	snprintf(text, sizeof(text), "%s", m->c->dims);
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		struct dim *d = &m->dim[m->num_dims++];
		long long size, slices = 1;

		ck_assert_int_ge(sscanf(word, "%15[^:]:%lld/%lld", d->name, &size, &slices), 2);
		d->size = size;
		d->slices = slices;
	}
}

/* Elements along a dim that one stick holds. */
static int unit_of(const struct tensor *t, int d)
{
	if (d == t->stick)
		return (int)t->lanes / (t->pairs < 0 ? 1 : 2);
	return d == t->pairs ? 2 : 1;
}

static void parse_tensor(struct make *m, int index)
{
	struct tensor *t = &m->tensor[index];
	char text[256], *save, *word;
	uint64_t step = 128;

	snprintf(text, sizeof(text), "%s", m->c->tensor[index]);
	word = strtok_r(text, " ", &save);
	t->format = spyre_format_from_name(word);
	t->lanes = (uint32_t)spyre_stick_elements(t->format);
	ck_assert_uint_gt(t->lanes, 0);
	t->word = 128 / t->lanes;
	t->pairs = -1;
	while ((word = strtok_r(NULL, " ", &save))) {
		size_t n = strcspn(word, "*-=+%");
		const char *marks = word + n;
		char name[16];
		int d, axis;

		snprintf(name, sizeof(name), "%.*s", (int)n, word);
		d = make_dim(m, name);
		axis = axis_of(m, index, d);
		t->order[t->num_order++] = d;
		t->scale[d] = strchr(marks, '-') ? -1 : strchr(marks, '=') ? -2 : 1;
		if (strchr(marks, '*') || t->scale[d] == -2)
			t->stick = d;
		if (strchr(marks, '%'))
			t->pairs = d;
		if (strchr(marks, '+'))
			t->gap[d] = atoll(strchr(marks, '+') + 1);
		t->extent[d] = t->scale[d] < 0 ? 1 :
			       axis < 0 ? m->dim[d].size : make_input_size(m, axis);
	}
	for (int k = 0; k < t->num_order; k++) {
		int d = t->order[k], unit = unit_of(t, d);

		t->stride[d] = step;
		step *= (uint64_t)((t->extent[d] + unit - 1) / unit + t->gap[d] / unit);
	}
	t->bytes = step;
	t->data = aligned_alloc(128, t->bytes);
	ck_assert_ptr_nonnull(t->data);
	memset(t->data, 0x5a, t->bytes);
}

/* @lanes: along a stick of scale -2 coordinates are lanes; otherwise lane 0 is used. */
static uint64_t place(const struct tensor *t, const int64_t *at, bool lanes)
{
	uint64_t byte = 0;

	for (int k = 0; k < t->num_order; k++) {
		int d = t->order[k];

		if (t->scale[d] == -1 || (t->scale[d] == -2 && !lanes))
			continue;
		byte += (uint64_t)(at[d] / unit_of(t, d)) * t->stride[d];
		if (d == t->stick)	/* the second of a pair is next to the first */
			byte += (uint64_t)(at[d] % unit_of(t, d)) * t->word *
				(t->pairs < 0 ? 1 : 2);
		else if (d == t->pairs)
			byte += (uint64_t)(at[d] % 2) * t->word;
	}
	expect(byte < t->bytes, "coordinates beyond the tensor");
	return byte;
}

double make_get(const struct make *m, int tensor, const int64_t *at)
{
	const struct tensor *t = &m->tensor[tensor];
	uint32_t bits = 0;
	float f;

	bits = (uint32_t)get_le(t->data + place(t, at, tensor == m->num_tensors - 1), t->word);
	switch (t->format) {
	case SPYRE_FORMAT_SENUINT32:
		return bits;
	case SPYRE_FORMAT_IEEE_INT32:
		return (int32_t)bits;
	case SPYRE_FORMAT_SENINT8:
		return (int8_t)bits;
	case SPYRE_FORMAT_SEN143_FP8:
		bits = spyre_fp8_143_to_fp32((uint8_t)bits);
		break;
	case SPYRE_FORMAT_SEN152_FP8:
		bits = spyre_fp8_152_to_fp32((uint8_t)bits);
		break;
	case SPYRE_FORMAT_SEN169_FP16:
		bits = spyre_dl16_to_fp32((uint16_t)bits);
		break;
	case SPYRE_FORMAT_IEEE_FP16:
		bits = spyre_fp16_to_fp32((uint16_t)bits);
		break;
	case SPYRE_FORMAT_BFLOAT16:
		bits = spyre_bf16_to_fp32((uint16_t)bits);
		break;
	default:
		expect(t->format == SPYRE_FORMAT_IEEE_FP32, "no codec for the format");
	}
	memcpy(&f, &bits, 4);
	return f;
}

void make_set_lane(struct make *m, int tensor, const int64_t *at, uint32_t lane, double value)
{
	struct tensor *t = &m->tensor[tensor];
	float f = (float)value;
	uint32_t bits;

	memcpy(&bits, &f, 4);
	switch (t->format) {
	case SPYRE_FORMAT_SENUINT32:
	case SPYRE_FORMAT_IEEE_INT32:
	case SPYRE_FORMAT_SENINT8:
		bits = (uint32_t)(int64_t)value;
		break;
	case SPYRE_FORMAT_SEN143_FP8:
		bits = spyre_fp32_to_fp8_143(bits);
		break;
	case SPYRE_FORMAT_SEN152_FP8:
		bits = spyre_fp32_to_fp8_152(bits);
		break;
	case SPYRE_FORMAT_SEN169_FP16:
		bits = spyre_fp32_to_dl16(bits);
		break;
	case SPYRE_FORMAT_IEEE_FP16:
		bits = spyre_fp32_to_fp16(bits);
		break;
	case SPYRE_FORMAT_BFLOAT16:
		bits = spyre_fp32_to_bf16(bits);
		break;
	default:
		expect(t->format == SPYRE_FORMAT_IEEE_FP32, "no codec for the format");
	}
	put_le(t->data + place(t, at, tensor == m->num_tensors - 1) + lane * t->word, bits,
	       t->word);
}

void make_set(struct make *m, int tensor, const int64_t *at, double value)
{
	make_set_lane(m, tensor, at, 0, value);
}

void make_each(struct make *m, int tensor, void (*fn)(struct make *m, const int64_t *at))
{
	const struct tensor *t = &m->tensor[tensor];
	int64_t at[MAKE_DIMS] = { 0 };
	int k;

	do {
		fn(m, at);
		for (k = 0; k < t->num_order; k++) {
			int d = t->order[k];

			if (++at[d] < t->extent[d])
				break;
			at[d] = 0;
		}
	} while (k < t->num_order);
}

static uint64_t seed;
static int drawn;

static void draw(struct make *m, const int64_t *at)
{
	bool set = m->c->low != 0 || m->c->high != 0;
	double low = set ? m->c->low : -2, high = set ? m->c->high : 2;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	make_set(m, drawn, at, low + (double)(seed >> 40) / (1 << 24) * (high - low));
}

struct make *make_new(const struct make_case *c)
{
	struct make *m = calloc(1, sizeof(*m));

	ck_assert_ptr_nonnull(m);
	m->c = c;
	seed = 20261121;
	parse_dims(m);
	while (m->num_tensors < MAKE_TENSORS && c->tensor[m->num_tensors])
		parse_tensor(m, m->num_tensors++);
	for (drawn = 0; drawn < m->num_tensors - 1; drawn++)
		make_each(m, drawn, draw);
	return m;
}

void make_free(struct make *m)
{
	for (int i = 0; i < m->num_tensors; i++)
		free(m->tensor[i].data);
	free(m->text);
	free(m);
}

/* The bundle */

__attribute__((format(printf, 2, 3)))
static void put(struct make *m, const char *format, ...)
{
	va_list args;

	if (m->capacity - m->size < 4096) {
		m->capacity = m->capacity * 2 + 65536;
		m->text = realloc(m->text, m->capacity);
		ck_assert_ptr_nonnull(m->text);
	}
	va_start(args, format);
	m->size += (size_t)vsnprintf(m->text + m->size, m->capacity - m->size, format, args);
	va_end(args);
}

static int cores(const struct make *m)
{
	int n = 1;

	for (int d = 0; d < m->num_dims; d++)
		n *= (int)m->dim[d].slices;
	return n;
}

static int slice_of(const struct make *m, int core, int dim)
{
	for (int d = 0; d < dim; d++)
		core /= (int)m->dim[d].slices;
	return core % (int)m->dim[dim].slices;
}

/* Byte address in the tensor of the first element that a core reaches. */
static uint64_t start(const struct make *m, int index, int core)
{
	const struct tensor *t = &m->tensor[index];
	uint64_t byte = 0;

	for (int k = 0; k < t->num_order; k++) {
		int d = t->order[k], axis = axis_of(m, index, d);
		int64_t at = slice_of(m, core, d) * (m->dim[d].size / m->dim[d].slices);

		if (t->scale[d] < 0)
			continue;
		if (axis >= 0) {
			const struct make_axis *a = &m->c->axis[axis];
			const char *tap = axis ? "kj" : "ki";

			at = at * a->stride - a->before;
			for (int i = 0; i < m->num_dims; i++)
				if (!strcmp(m->dim[i].name, tap))
					at += slice_of(m, core, i) * m->dim[i].size /
					      m->dim[i].slices * a->dilation;
			at = at < 0 ? 0 : at < t->extent[d] ? at : t->extent[d] - 1;
		}
		byte += (uint64_t)(at / unit_of(t, d)) * t->stride[d];
	}
	return byte;
}

static void put_sizes(struct make *m, const char *key, bool share)
{
	put(m, "\"%s\":{\"name_\":\"n\"", key);
	for (int d = 0; d < m->num_dims; d++)
		put(m, ",\"%s_\":%lld", m->dim[d].name,
		    (long long)(m->dim[d].size / (share ? m->dim[d].slices : 1)));
	if (share) {
		const struct make_axis *a = m->c->axis;
		bool i = a[0].before || a[0].after, j = a[1].before || a[1].after;

		put(m, ",\"paddingSizes_\":{");
		if (i)
			put(m, "\"i\":[%lld,%lld]%s", (long long)a[0].before,
			    (long long)a[0].after, j ? "," : "");
		if (j)
			put(m, "\"j\":[%lld,%lld]", (long long)a[1].before,
			    (long long)a[1].after);
		put(m, "}");
	} else if (m->c->sizes) {
		put(m, ",%s", m->c->sizes);
	}
	put(m, "}");
}

static void put_cores(struct make *m)
{
	put(m, "{\"0_%s\":{\"numCoresUsed_\":%d,\"numWkSlicesPerDim_\":{", m->c->op, cores(m));
	for (int d = 0; d < m->num_dims; d++)
		put(m, "%s\"%s\":%lld", d ? "," : "", m->dim[d].name, (long long)m->dim[d].slices);
	put(m, "},\"coreIdToWkSlice_\":{");
	for (int c = 0; c < cores(m); c++) {
		put(m, "%s\"%d\":{", c ? "," : "", c);
		for (int d = 0; d < m->num_dims; d++)
			put(m, "%s\"%s\":%d", d ? "," : "", m->dim[d].name, slice_of(m, c, d));
		put(m, "}");
	}
	put(m, "},\"dscs_\":[{\"%s\":{\"coreIdsUsed_\":[", m->c->op);
	for (int c = 0; c < cores(m); c++)
		put(m, "%s%d", c ? "," : "", c);
	put(m, "],");
}

static void put_order(struct make *m, const struct tensor *t)
{
	put(m, "\"layoutDimOrder_\":[");
	for (int k = 0; k < t->num_order; k++)
		put(m, "%s\"%s\"", k ? "," : "", m->dim[t->order[k]].name);
	put(m, "]");
}

static void put_node(struct make *m, int index)
{
	const struct tensor *t = &m->tensor[index];
	const struct make_lx *lx = &m->c->lx[index];
	bool more = false;

	put(m, "%s{\"ldsIdx_\":%d,\"component_\":\"%s\",", index ? "," : "", index,
	    lx->used ? "lx" : "hbm");
	put_order(m, t);
	put(m, ",\"startAddressCoreCorelet_\":{\"data_\":{");
	for (int c = 0; c < cores(m); c++)
		put(m, "%s\"[%d, 0, 0]\":\"%llu\"", c ? "," : "", c,
		    lx->used ? lx->address :
		    ((unsigned long long)index << 34) + start(m, index, c));
	put(m, "}},\"backGapCore_\":{");
	for (int k = 0; k < t->num_order; k++)
		if (t->gap[t->order[k]]) {
			put(m, "%s\"%s\":{\"-1\":\"%lld\"}", more ? "," : "",
			    m->dim[t->order[k]].name, (long long)t->gap[t->order[k]]);
			more = true;
		}
	put(m, "}");
	if (lx->held)
		put(m, ",\"coordinates_\":{\"coordInfo\":%s,\"coreIdToWkSlice_\":%s}",
		    lx->info ? lx->info : "{}", lx->held);
	put(m, "%s}", m->c->node ? m->c->node : "");
}

static void put_tensors(struct make *m)
{
	put(m, "\"primaryDsInfo_\":{");
	for (int i = 0; i < m->num_tensors; i++) {
		const struct tensor *t = &m->tensor[i];

		put(m, "%s\"L%d\":{", i ? "," : "", i);
		put_order(m, t);
		if (t->pairs >= 0)
			put(m, ",\"stickDimOrder_\":[\"%s\",\"%s\"],\"stickSize_\":[2,%d]}",
			    m->dim[t->pairs].name, m->dim[t->stick].name, unit_of(t, t->stick));
		else
			put(m, ",\"stickDimOrder_\":[\"%s\"],\"stickSize_\":[%u]}",
			    m->dim[t->stick].name, t->lanes);
	}
	put(m, "},\"scheduleTree_\":[");
	for (int i = 0; i < m->num_tensors; i++)
		put_node(m, i);
	put(m, "],\"labeledDs_\":[");
	for (int i = 0; i < m->num_tensors; i++) {
		const struct tensor *t = &m->tensor[i];

		put(m, "%s{\"ldsIdx_\":%d,\"wordLength\":%u,\"dataFormat_\":\"%s\",\"dsType_\":\"L%d\",\"scale_\":[",
		    i ? "," : "", i, t->word, spyre_format_name(t->format), i);
		for (int k = 0; k < t->num_order; k++)
			put(m, "%s%d", k ? "," : "", t->scale[t->order[k]]);
		put(m, "]}");
	}
	put(m, "],");
}

static void put_compute(struct make *m)
{
	const struct make_case *c = m->c;

	put(m, "\"constantInfo_\":{");
	for (int i = 0; i < MAKE_CONSTANTS && c->constant[i].name; i++)
		put(m, "%s\"%d\":{\"name_\":\"%s\",\"dataFormat_\":\"%s\",\"data_\":{\"data_\":{\"[0, 0, 0]\":[\"%u\"]}}}",
		    i ? "," : "", i, c->constant[i].name, c->constant[i].format,
		    c->constant[i].bits);
	put(m, "},\"computeOp_\":[{\"opFuncName\":\"%s\",\"attributes_\":{", c->op);
	if (c->window) {
		const char *names = "\"%s\":{";
		bool i = strstr(c->dims, " i:"), j = strstr(c->dims, " j:");

		for (int k = 0; k < 2; k++) {
			put(m, names, k ? "dilations_" : "strides_");
			if (i)
				put(m, "\"i\":%lld%s", (long long)(k ? c->axis[0].dilation :
				    c->axis[0].stride), j ? "," : "");
			if (j)
				put(m, "\"j\":%lld", (long long)(k ? c->axis[1].dilation :
				    c->axis[1].stride));
			put(m, "}%s", k ? "" : ",");
		}
	}
	put(m, "},\"inputLabeledDs\":[");
	for (int i = 0; i < m->num_tensors - 1; i++)
		put(m, "%s\"Tensor%d-idx%d\"", i ? "," : "", i, i);
	put(m, "],\"outputLabeledDs\":[\"Tensor%d-idx%d\"]%s}]}}]}}", m->num_tensors - 1,
	    m->num_tensors - 1, c->compute ? c->compute : "");
}

static void put_sdsc(struct make *m)
{
	m->size = 0;
	put_cores(m);
	put_sizes(m, "N_", false);
	put(m, ",\"coordinateMasking_\":%s,\"dataStageParam_\":{\"0\":{",
	    m->c->masks ? m->c->masks : "{}");
	put_sizes(m, "el_", true);
	put(m, "}},");
	put_tensors(m);
	put_compute(m);
}

static void write_file(const char *directory, const char *file, const char *text, size_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, size, f), size);
	ck_assert_int_eq(fclose(f), 0);
}

static spyre_status compile(struct make *m, struct spyre_bundle *out)
{
	static const char mlir[] = "module {\nfunc.func @sdsc_bundle() {\n"
		"sdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\nreturn\n}\n}\n";
	char directory[] = "/tmp/spyre-make-XXXXXX", path[64];
	spyre_status status;

	ck_assert_ptr_nonnull(mkdtemp(directory));
	put_sdsc(m);
	write_file(directory, "bundle.mlir", mlir, strlen(mlir));
	write_file(directory, "sdsc_0.json", m->text, m->size);
	status = spyre_bundle_load(directory, 32, CODE_CACHE_OFF, out, NULL);
	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
	unlink(path);
	rmdir(directory);
	return status;
}

void make_refused(const struct make_case *c, spyre_status want, const char *text)
{
	struct make *m = make_new(c);
	struct spyre_bundle out;
	spyre_status status = compile(m, &out);

	ck_assert_msg(status == want, "%s, expected %s: %s", spyre_status_name(status),
		      spyre_status_name(want), status ? spyre_last_error() : "compiled");
	ck_assert_msg(strstr(spyre_last_error(), text), "no \"%s\" in: %s", text,
		      spyre_last_error());
	make_free(m);
}

/* The card */

static void parallel(struct spyre_host *host, struct spyre_worker *self, u32 n, spyre_work_fn fn,
		     void *arg)
{
	/* Runs in reverse: the order must not matter. */
	while (n-- > 0)
		fn(arg, n, self);
}

static void execute(struct make *m, const struct spyre_bundle *bundle,
		    const struct spyre_program *program, const struct spyre_unit *unit)
{
	struct spyre_host host = { .unit = unit, .parallel = parallel };
	struct spyre_worker worker = { .scratch = aligned_alloc(64, SPYRE_SCRATCH_BYTES) };
	size_t lx_bytes = bundle->lx_bytes + 128;
	uint8_t *operand[SPYRE_MAX_OPERANDS], *lx[SPYRE_MAX_CORES];
	struct spyre_exec x = { .host = &host, .prog = program, .operand = operand, .lx = lx };

	for (uint32_t i = 0; i < bundle->num_operands; i++) {
		ck_assert_int_eq(bundle->operands[i].kind, SPYRE_OPERAND_ARG);
		ck_assert_uint_lt(bundle->operands[i].arg, m->num_tensors);
		ck_assert_uint_le(program->operands[i].extent,
				  m->tensor[bundle->operands[i].arg].bytes);
		operand[i] = m->tensor[bundle->operands[i].arg].data;
	}
	for (uint32_t i = 0; i < SPYRE_MAX_CORES; i++) {
		lx[i] = aligned_alloc(128, lx_bytes);
		/* NaN in DL16, fp32 and fp16. */
		for (size_t j = 0; j < lx_bytes; j += 2)
			memcpy(lx[i] + j, &(uint16_t){ SPYRE_DL16_NAN }, 2);
	}
	ck_assert_int_eq(spyre_card_exec(&x, &worker), SPYRE_STOP_NONE);
	for (uint32_t i = 0; i < SPYRE_MAX_CORES; i++)
		free(lx[i]);
	free(worker.scratch);
}

/* Steps to the next point of the output; returns false after the last. */
static bool next_point(const struct make *m, int64_t *at)
{
	const struct tensor *t = &m->tensor[m->num_tensors - 1];

	for (int k = 0; k < t->num_order; k++) {
		int d = t->order[k];
		int64_t end = t->scale[d] == -2 ? t->lanes : t->extent[d];

		if (++at[d] < end)
			return true;
		at[d] = 0;
	}
	return false;
}

static double *expected(struct make *m, make_expect *rule)
{
	int64_t at[MAKE_DIMS] = { 0 };
	size_t n = 1;
	double *want;

	while (next_point(m, at))
		n++;
	want = malloc(n * sizeof(*want));
	ck_assert_ptr_nonnull(want);
	n = 0;
	do {
		want[n++] = rule(m, at);
	} while (next_point(m, at));
	return want;
}

static void compare(struct make *m, const double *want, const char *what, const char *unit)
{
	int64_t at[MAKE_DIMS] = { 0 };

	do {
		double got = make_get(m, m->num_tensors - 1, at);
		double most = m->c->tolerance * fmax(1, fabs(*want));

		if (!isnan(*want) && !(fabs(got - *want) <= most || got == *want))
			ck_abort_msg("%s (%s): %.9g, expected %.9g at %lld %lld %lld %lld %lld",
				     what, unit, got, *want, (long long)at[0], (long long)at[1],
				     (long long)at[2], (long long)at[3], (long long)at[4]);
		want++;
	} while (next_point(m, at));
}

void make_run(struct make *m, make_expect *rule, const char *what)
{
	const struct spyre_unit *const *unit = test_units();
	struct tensor *out = &m->tensor[m->num_tensors - 1];
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;
	struct spyre_bundle bundle;
	double *want = expected(m, rule);
	uint8_t *first;

	ck_assert_msg(compile(m, &bundle) == SPYRE_SUCCESS, "%s: %s", what, spyre_last_error());
	ck_assert_msg(!spyre_program_verify(bundle.image, bundle.image_bytes, 32, &program, &err),
		      "%s: %s: step %u core %u instruction %u view %u: %llu against %llu", what,
		      spyre_stop_name(err.stop), err.step, err.core, err.instr, err.view,
		      (unsigned long long)err.value, (unsigned long long)err.limit);
	ck_assert_uint_eq(bundle.num_args, m->num_tensors);
	first = malloc(out->bytes);
	ck_assert_ptr_nonnull(first);
	for (int i = 0; unit[i]; i++) {
		memset(out->data, 0x5a, out->bytes);
		execute(m, &bundle, &program, unit[i]);
		compare(m, want, what, spyre_unit_name(unit[i]));
		if (i)
			ck_assert_msg(!memcmp(first, out->data, out->bytes),
				      "%s: %s and scalar give other bits", what,
				      spyre_unit_name(unit[i]));
		else
			memcpy(first, out->data, out->bytes);
	}
	free(first);
	free(want);
	spyre_bundle_fini(&bundle);
}
