// SPDX-License-Identifier: MIT
/* A bundle on a bare card: see sdsc_card.h. */
#include "sdsc_card.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "model/card.h"
#include "tests/order.h"

/* case.json */

static void read_list(yyjson_val *list, int64_t *out, uint32_t *count)
{
	*count = (uint32_t)yyjson_arr_size(list);
	for (uint32_t i = 0; i < *count; i++)
		out[i] = yyjson_get_sint(yyjson_arr_get(list, i));
}

static void copy_text(yyjson_val *v, char *out, size_t size)
{
	const char *text = yyjson_get_str(v);

	ck_assert_ptr_nonnull(text);
	snprintf(out, size, "%s", text);
}

static void read_tensor(yyjson_val *v, bool output, struct card_case *c)
{
	struct card_tensor *t = &c->tensor[yyjson_get_int(yyjson_obj_get(v, "arg_index"))];
	uint32_t n;

	read_list(yyjson_obj_get(v, "shape"), t->shape, &t->rank);
	read_list(yyjson_obj_get(v, "device_size"), t->device_size, &t->device_rank);
	read_list(yyjson_obj_get(v, "stride_map"), t->stride_map, &n);
	t->format = spyre_format_from_name(yyjson_get_str(yyjson_obj_get(v, "device_dtype")));
	t->zero_padding = !strcmp(yyjson_get_str(yyjson_obj_get(v, "pad")), "zero");
	copy_text(yyjson_obj_get(v, "init"), t->init, sizeof(t->init));
	t->output = output;
	c->count++;
}

void card_read_case(const char *directory, struct card_case *c)
{
	yyjson_doc *doc;
	yyjson_val *root, *v;
	char path[512];
	size_t i, n;

	memset(c, 0, sizeof(*c));
	snprintf(path, sizeof(path), "%s/case.json", directory);
	doc = yyjson_read_file(path, 0, NULL, NULL);
	ck_assert_msg(doc, "%s: cannot be read", path);
	root = yyjson_doc_get_root(doc);
	yyjson_arr_foreach(yyjson_obj_get(root, "inputs"), i, n, v)
		read_tensor(v, false, c);
	yyjson_arr_foreach(yyjson_obj_get(root, "outputs"), i, n, v)
		read_tensor(v, true, c);
	copy_text(yyjson_obj_get(root, "reference"), c->reference, sizeof(c->reference));
	c->rtol = yyjson_get_num(yyjson_obj_get(root, "rtol"));
	c->atol = yyjson_get_num(yyjson_obj_get(root, "atol"));
	yyjson_doc_free(doc);
}

/* Tensors in device form */

static size_t numel(const struct card_tensor *t)
{
	size_t n = 1;

	for (uint32_t d = 0; d < t->rank; d++)
		n *= (size_t)t->shape[d];
	return n;
}

static uint32_t word(const struct card_tensor *t)
{
	return t->format == SPYRE_FORMAT_IEEE_FP32 ? 4 : 2;
}

static double load(const struct card_tensor *t, size_t at)
{
	uint32_t bits = 0;
	float f;

	bits = (uint32_t)get_le(t->device + at * word(t), word(t));
	if (word(t) == 2)
		bits = spyre_dl16_to_fp32((uint16_t)bits);
	memcpy(&f, &bits, 4);
	return f;
}

static void store(const struct card_tensor *t, size_t at, double value)
{
	float f = (float)value;
	uint32_t bits;

	memcpy(&bits, &f, 4);
	if (word(t) == 2)
		bits = spyre_fp32_to_dl16(bits);
	put_le(t->device + at * word(t), bits, word(t));
}

/* Returns the host element of a device coordinate, -1 for padding: bounded per host dim. */
static int64_t host_element(const struct card_tensor *t, const int64_t *coordinate)
{
	int64_t index[CARD_MAX_RANK] = { 0 }, stride[CARD_MAX_RANK], step = 1, at = 0;

	for (uint32_t d = t->rank; d-- > 0;) {
		stride[d] = step;
		step *= t->shape[d];
	}
	for (uint32_t j = 0; j < t->device_rank; j++) {
		int owner = -1;

		if (t->stride_map[j] < 0 && coordinate[j])
			return -1;
		if (t->stride_map[j] <= 0)
			continue;
		for (uint32_t d = 0; d < t->rank; d++)
			if (t->shape[d] > 1 && t->stride_map[j] % stride[d] == 0 &&
			    (owner < 0 || stride[d] > stride[owner]))
				owner = (int)d;
		if (owner < 0)
			return coordinate[j] ? -1 : 0;
		index[owner] += coordinate[j] * (t->stride_map[j] / stride[owner]);
	}
	for (uint32_t d = 0; d < t->rank; d++) {
		if (index[d] >= t->shape[d])
			return -1;
		at += index[d] * stride[d];
	}
	return at;
}

/* Walks all device elements; @put copies values to the device, otherwise they are read back. */
static void convert(struct card_tensor *t, bool put)
{
	int64_t c[8] = { 0 };

	for (size_t at = 0; at < t->device_bytes / word(t); at++) {
		int64_t host = host_element(t, c);

		if (put)
			store(t, at, host >= 0 ? t->value[host] : t->zero_padding ? 0 : 1234);
		else if (host >= 0)
			t->value[host] = load(t, at);
		for (uint32_t j = t->device_rank; j-- > 0;) {
			if (++c[j] < t->device_size[j])
				break;
			c[j] = 0;
		}
	}
}

/* A value that the device format holds exactly. */
static double draw(const struct card_tensor *t, uint64_t *seed)
{
	double unit;
	uint32_t bits;
	float f;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	unit = (double)(*seed >> 40) / (1 << 24) * 4 - 2;
	if (!strcmp(t->init, "small"))
		unit *= 0.1;
	else if (!strcmp(t->init, "positive"))
		unit = fabs(unit) + 0.5;
	else if (!strcmp(t->init, "ints"))
		unit = floor(fabs(unit) * 2);
	else if (!strcmp(t->init, "bool"))
		unit = unit > 0;
	else if (!strcmp(t->init, "zero"))
		unit = 0;
	f = (float)unit;
	memcpy(&bits, &f, 4);
	if (word(t) == 2)
		bits = spyre_dl16_to_fp32(spyre_fp32_to_dl16(bits));
	memcpy(&f, &bits, 4);
	return f;
}

static void prepare(struct card_case *c)
{
	uint64_t seed = 20261121;

	for (uint32_t i = 0; i < c->count; i++) {
		struct card_tensor *t = &c->tensor[i];

		t->device_bytes = word(t);
		for (uint32_t j = 0; j < t->device_rank; j++)
			t->device_bytes *= (size_t)t->device_size[j];
		t->device = aligned_alloc(128, t->device_bytes);
		t->value = calloc(numel(t), sizeof(*t->value));
		for (size_t n = 0; n < numel(t) && !t->output; n++)
			t->value[n] = draw(t, &seed);
		convert(t, true);
	}
}

void card_free_case(struct card_case *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		free(c->tensor[i].device);
		free(c->tensor[i].value);
	}
}

/* The expected outputs */

/* Returns the input's element for element n of the output, broadcast from the right. */
static double pick(const struct card_tensor *in, const struct card_tensor *out, size_t n)
{
	size_t at = 0, step = 1;

	for (uint32_t d = out->rank, k = in->rank; d-- > 0 && k > 0;) {
		int64_t i = (int64_t)(n % (size_t)out->shape[d]);

		n /= (size_t)out->shape[d];
		k--;
		at += step * (size_t)(in->shape[k] == 1 ? 0 : i);
		step *= (size_t)in->shape[k];
	}
	return in->value[at];
}

static double pointwise(const char *rule, const double *x)
{
	if (!strcmp(rule, "in0+in1"))
		return x[0] + x[1];
	if (!strcmp(rule, "in0-in1"))
		return x[0] - x[1];
	if (!strcmp(rule, "in0*in1"))
		return x[0] * x[1];
	if (!strcmp(rule, "in0*in1+in2"))
		return x[0] * x[1] + x[2];
	if (!strcmp(rule, "(in0==in1)*1.0"))
		return x[0] == x[1];
	if (!strcmp(rule, "(in0>in1)*1.0"))
		return x[0] > x[1];
	if (!strcmp(rule, "np.maximum(in0,0)"))
		return x[0] > 0 ? x[0] : 0;
	if (!strcmp(rule, "np.where(in0!=0,in1,in2)"))
		return x[0] != 0 ? x[1] : x[2];
	if (!strcmp(rule, "in0"))
		return x[0];
	if (!strcmp(rule, "in0/in1"))
		return x[0] / x[1];
	if (!strcmp(rule, "np.exp(in0)"))
		return exp(x[0]);
	if (!strcmp(rule, "0.5*in0*(1+erf(in0/math.sqrt(2)))"))
		return x[0] * erfc(-x[0] * sqrt(0.5)) / 2;
	if (!strcmp(rule, "1/(1+np.exp(-in0))"))
		return 1 / (1 + exp(-x[0]));
	if (!strcmp(rule, "in0/(1+np.exp(-in0))"))
		return x[0] / (1 + exp(-x[0]));
	if (!strcmp(rule, "in0/(1+np.exp(-in0))*in1"))
		return x[0] / (1 + exp(-x[0])) * x[1];
	ck_abort_msg("no rule for the reference %s", rule);
	return 0;
}

static double product(const struct card_tensor *a, const struct card_tensor *b,
		      const struct card_tensor *out, size_t n)
{
	size_t columns = (size_t)out->shape[out->rank - 1];
	size_t rows = (size_t)out->shape[out->rank - 2];
	size_t k = (size_t)a->shape[a->rank - 1], batch = n / columns / rows;
	const double *x = a->value + n / columns * k;
	const double *y = b->value + (b->rank > 2 ? batch * k * columns : 0) + n % columns;
	double sum = 0;

	for (size_t i = 0; i < k; i++)
		sum += x[i] * y[i * columns];
	return sum;
}

/* Over the last dim, or over dim 0 of two. */
static double reduced(const struct card_tensor *in, size_t n, const char *rule)
{
	bool first = !!strstr(rule, "(0)"), mean = !!strstr(rule, "mean");
	size_t count = (size_t)in->shape[first ? 0 : in->rank - 1];
	double result = strstr(rule, "max") ? -INFINITY : 0;

	for (size_t i = 0; i < count; i++) {
		double x = in->value[first ? i * (size_t)in->shape[1] + n : n * count + i];

		result = strstr(rule, "max") ? fmax(result, x) : result + x;
	}
	return mean ? result / (double)count : result;
}

/* softmax, layer norm and RMS norm along the last of two dims. */
static bool normalised(const struct card_case *c, const struct card_tensor *out, size_t n,
		       double *value)
{
	const struct card_tensor *in = c->tensor;
	size_t columns = (size_t)out->shape[out->rank - 1];
	const double *row = in[0].value + n / columns * columns;
	static double most, exps, sum, squares;	/* of the row, computed at its first element */
	double mean;

	if (strncmp(c->reference, "np.exp(in0-in0.max", 18) &&
	    strncmp(c->reference, "(in0-in0.mean", 13) &&
	    strncmp(c->reference, "in0/np.sqrt((in0*in0).mean", 26))
		return false;
	if (n % columns == 0) {
		most = -INFINITY;
		exps = sum = squares = 0;
		for (size_t i = 0; i < columns; i++)
			most = fmax(most, row[i]);
		for (size_t i = 0; i < columns; i++) {
			exps += exp(row[i] - most);
			sum += row[i];
			squares += row[i] * row[i] / (double)columns;
		}
	}
	mean = sum / (double)columns;
	if (!strncmp(c->reference, "np.exp", 6))
		*value = exp(row[n % columns] - most) / exps;
	else if (!strncmp(c->reference, "(in0-", 5))
		*value = (row[n % columns] - mean) / sqrt(squares - mean * mean + 1e-5) *
			 pick(&in[1], out, n) + pick(&in[2], out, n);
	else
		*value = row[n % columns] / sqrt(squares + pick(&in[2], out, n)) *
			 pick(&in[1], out, n);
	return true;
}

static double expected(const struct card_case *c, const struct card_tensor *out, size_t n)
{
	const struct card_tensor *in = c->tensor;
	double x[CARD_MAX_TENSORS];

	if (normalised(c, out, n, &x[0]))
		return x[0];
	if (strchr(c->reference, '@'))
		return product(&in[0], &in[1], out, n);
	if (!strcmp(c->reference, "in0[:,128:384]"))
		return in[0].value[n / 256 * (size_t)in[0].shape[1] + 128 + n % 256];
	if (!strcmp(c->reference, "in0.T"))
		return in[0].value[n % (size_t)out->shape[1] * (size_t)in[0].shape[1] +
				   n / (size_t)out->shape[1]];
	if (!strncmp(c->reference, "in0.", 4))
		return reduced(&in[0], n, c->reference);
	for (uint32_t i = 0; i + 1 < c->count; i++)
		x[i] = pick(&in[i], out, n);
	return pointwise(c->reference, x);
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
		    struct card_case *c)
{
	struct spyre_host host = { .unit = spyre_unit_find("scalar"), .parallel = parallel };
	struct spyre_worker worker = { .scratch = aligned_alloc(64, SPYRE_SCRATCH_BYTES) };
	uint8_t *operand[SPYRE_MAX_OPERANDS], *lx[SPYRE_MAX_CORES];
	size_t pool_bytes = (bundle->pool_bytes + 255) / 128 * 128;
	size_t lx_bytes = bundle->lx_bytes + 128;
	uint8_t *pool = aligned_alloc(128, pool_bytes);
	struct spyre_exec x = { .host = &host, .prog = program, .operand = operand, .lx = lx };

	memset(pool, 0x55, pool_bytes);
	for (uint32_t i = 0; i < bundle->num_operands; i++) {
		uint32_t arg = bundle->operands[i].arg;

		operand[i] = pool + bundle->operands[i].offset;
		if (bundle->operands[i].kind == SPYRE_OPERAND_POOL)
			continue;
		ck_assert_uint_lt(arg, c->count);
		ck_assert_uint_le(program->operands[i].extent, c->tensor[arg].device_bytes);
		operand[i] = c->tensor[arg].device;
	}
	for (uint32_t i = 0; i < SPYRE_MAX_CORES; i++) {
		lx[i] = aligned_alloc(128, lx_bytes);
		memset(lx[i], 0xaa, lx_bytes);
	}
	ck_assert_int_eq(spyre_card_exec(&x, &worker), SPYRE_STOP_NONE);
	for (uint32_t i = 0; i < SPYRE_MAX_CORES; i++)
		free(lx[i]);
	free(pool);
	free(worker.scratch);
}

static void check_args(const struct spyre_bundle *bundle, const struct card_case *c)
{
	ck_assert_uint_eq(bundle->num_args, c->count);
	for (uint32_t i = 0; i < c->count; i++) {
		const spyre_arg_info *arg = &bundle->args[i];
		const struct card_tensor *t = &c->tensor[i];
		uint32_t j = 0;

		ck_assert_int_eq(arg->index, (int)i);
		ck_assert_int_eq(arg->role, t->output ? SPYRE_ARG_OUTPUT : SPYRE_ARG_INPUT);
		ck_assert_int_eq(arg->format, t->format);
		ck_assert_uint_le(arg->bytes, t->device_bytes);
		/* Equal except for dimensions of 1. */
		for (uint32_t k = 0; k < arg->device_rank; k++) {
			if (arg->device_size[k] == 1)
				continue;
			while (t->device_size[j] == 1)
				j++;
			ck_assert_int_eq(arg->device_size[k], t->device_size[j++]);
		}
		ck_assert_uint_eq(j, t->device_rank);
	}
}

void card_run_case(const char *directory, struct card_case *c, uint32_t cores)
{
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;
	struct spyre_bundle bundle;

	ck_assert_msg(spyre_bundle_load(directory, cores, CODE_CACHE_OFF, &bundle, NULL) ==
		      SPYRE_SUCCESS, "%s", spyre_last_error());
	ck_assert_msg(!spyre_program_verify(bundle.image, bundle.image_bytes, cores, &program,
					    &err),
		      "%s: %s: step %u core %u instruction %u view %u: %llu against %llu", directory,
		      spyre_stop_name(err.stop), err.step, err.core, err.instr, err.view,
		      (unsigned long long)err.value, (unsigned long long)err.limit);
	prepare(c);
	check_args(&bundle, c);
	execute(&bundle, &program, c);
	for (uint32_t i = 0; i < c->count; i++) {
		struct card_tensor *t = &c->tensor[i];

		if (!t->output)
			continue;
		convert(t, false);
		for (size_t n = 0; n < numel(t); n++) {
			double want = expected(c, t, n), got = t->value[n];

			if (!(fabs(got - want) <= c->atol + c->rtol * fabs(want)))
				ck_abort_msg("%s: element %zu is %g, expected %g", directory, n, got,
					     want);
		}
	}
	spyre_bundle_fini(&bundle);
}
