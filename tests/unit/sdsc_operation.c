// SPDX-License-Identifier: MIT
/* One operation of the builder, compiled and run. SPYRE_BACKEND chooses the card. */
#include <stdio.h>
#include <unistd.h>

#include "sdsc_operation.h"
#include "suite.h"

spyre_context *context;
static enum placing placing;
struct value in[MAX_IN], out;
float *want;
uint32_t inputs;

double attribute(const struct operation *op, const char *name, double fallback)
{
	for (int i = 0; i < MAX_ATTRS && op->attr[i].name; i++)
		if (!strcmp(op->attr[i].name, name))
			return op->attr[i].value;
	return fallback;
}

/* Returns the element of @v for a coordinate of @full, broadcast from the right. */
double at(const struct value *v, const struct value *full, size_t element)
{
	size_t index = 0, step = 1;

	for (uint32_t i = 0; i < full->rank; i++) {
		uint32_t d = full->rank - 1 - i;
		size_t c = element % full->size[d];

		element /= full->size[d];
		if (i >= v->rank)
			continue;
		if (v->size[v->rank - 1 - i] > 1)
			index += c * step;
		step *= v->size[v->rank - 1 - i];
	}
	return v->data[index];
}

/* Returns the reduced dims as bits. */
uint32_t reduced(const struct operation *op)
{
	uint32_t mask = 0;

	for (int i = 0; i < MAX_ATTRS && op->attr[i].name; i++)
		if (!strcmp(op->attr[i].name, "dim"))
			mask |= 1u << (int)(op->attr[i].value < 0 ?
					    op->attr[i].value + in[0].rank : op->attr[i].value);
	return mask ? mask : 1u << (in[0].rank - 1);
}

/* Returns the element of a tensor without the dims in @mask to which element @i contributes. */
size_t fold(const struct value *v, uint32_t mask, size_t i)
{
	size_t index = 0, step = 1;

	for (uint32_t d = v->rank; d-- > 0;) {
		if (!(mask >> d & 1)) {
			index += i % v->size[d] * step;
			step *= v->size[d];
		}
		i /= v->size[d];
	}
	return index;
}

/* Tensors on the card */

static void describe(struct value *v, const struct tensor *t, spyre_format format)
{
	int64_t stride[6], step = 1;
	int32_t order[7];
	uint32_t n = 0;

	memset(v, 0, sizeof(*v));
	while (t->size[v->rank] != END) {
		v->size[v->rank] = t->size[v->rank];
		v->rank++;
	}
	for (uint32_t d = v->rank; d-- > 0; step *= v->size[d])
		stride[d] = step;
	for (uint32_t d = 0; d < v->rank; d++)
		order[n++] = (int32_t)d;
	order[n] = -1;
	if (t->kind == TRANSPOSED) {
		order[n - 1] = (int32_t)v->rank - 2;
		order[n - 2] = (int32_t)v->rank - 1;
	}
	if (t->kind == CHANNELS) {
		order[n - 3] = (int32_t)v->rank - 2;
		order[n - 2] = (int32_t)v->rank - 1;
		order[n - 1] = (int32_t)v->rank - 3;
	}
	v->elements = step;
	ck_assert_uint_le(v->elements, MAX_ELEMENTS);
	v->operand.rank = v->rank;
	memcpy(v->operand.size, v->size, sizeof(v->size));
	ck_ok(spyre_layout_init_strided(&v->operand.layout, v->rank, v->size, stride,
					t->format ? t->format : format, order,
					n + (t->kind == SPARSE)));
	v->data = malloc(v->elements * sizeof(float));
	put_down(v, placing, (uint32_t)v->elements);
}

static spyre_host_tensor host(const struct value *v)
{
	spyre_host_tensor h;

	ck_ok(spyre_host_tensor_dense(&h, v->data, SPYRE_FORMAT_IEEE_FP32, v->rank, v->size));
	return h;
}

/* Draws integers of both signs. */
static void draw_integers(struct value *v)
{
	int32_t *whole = malloc(v->elements * sizeof(*whole));
	spyre_host_tensor h;

	ck_ok(spyre_host_tensor_dense(&h, whole, SPYRE_FORMAT_IEEE_INT32, v->rank, v->size));
	for (size_t i = 0; i < v->elements; i++) {
		whole[i] = (int32_t)(i * 37 % 401) - 200;
		v->data[i] = (float)whole[i];
	}
	ck_ok(spyre_copy_h2d(context, v->plain_device, &v->plain, &h));
	settle(v);
	free(whole);
}

/* Inputs are rounded to the card's format. */
static void draw(struct value *v, const struct operation *op, uint32_t index)
{
	spyre_host_tensor h = host(v);
	uint32_t seed = 12345 + 777 * index;

	if (v->operand.layout.device_format == SPYRE_FORMAT_IEEE_INT32) {
		draw_integers(v);
		return;
	}
	for (size_t i = 0; i < v->elements; i++) {
		seed = seed * 1664525 + 1013904223;
		v->data[i] = (float)(seed >> 8) / (1 << 24) * 4 - 2;
		if (op->positive)
			v->data[i] = fabsf(v->data[i]) + 0.25f;
		if (strlen(op->name) == 2 || strstr(op->name, "logical") || (!index && !strcmp(op->name, "where")))
			v->data[i] = floorf(v->data[i]);
		if (!strcmp(op->name, "round") && i % 2)	/* ties, of both signs */
			v->data[i] = floorf(v->data[i] * 4) / 2;
		if (strstr(op->name, "bitwise"))
			v->data[i] = v->data[i] > 1;
	}
	ck_ok(spyre_copy_h2d(context, v->plain_device, &v->plain, &h));
	ck_ok(spyre_copy_d2h(context, &h, v->plain_device, &v->plain));
	settle(v);
}

/* Integers are returned as integers. */
static void read_back(struct value *v, spyre_host_tensor *h)
{
	spyre_format format = v->operand.layout.device_format;
	void *whole;

	gather(v);
	if (format != SPYRE_FORMAT_IEEE_INT32 && format != SPYRE_FORMAT_SENINT8) {
		ck_ok(spyre_copy_d2h(context, h, v->plain_device, &v->plain));
		return;
	}
	whole = malloc(v->elements * sizeof(int32_t));
	ck_ok(spyre_host_tensor_dense(h, whole, format, v->rank, v->size));
	ck_ok(spyre_copy_d2h(context, h, v->plain_device, &v->plain));
	for (size_t i = 0; i < v->elements; i++)
		v->data[i] = format == SPYRE_FORMAT_IEEE_INT32 ? (float)((int32_t *)whole)[i] :
			     ((int8_t *)whole)[i];
	free(whole);
}

/* @value, or the infinity that it is beyond the largest number of the output's format. */
static double stored(double value)
{
	bool dl16 = out.operand.layout.device_format == SPYRE_FORMAT_SEN169_FP16;
	double end = dl16 ? 8568963072.0 : 0x1.ffffffp127;

	return fabs(value) < end ? value : copysign(INFINITY, value);
}

static void compare(const struct operation *op, uint32_t cores)
{
	spyre_host_tensor h = host(&out);

	read_back(&out, &h);
	for (size_t i = 0; i < out.elements; i++) {
		double expected = stored(want[i]), limit = op->tolerance * (1 + fabs(expected));
		bool near = isfinite(expected) && fabs(out.data[i] - expected) <= limit;

		ck_assert_msg(near || out.data[i] == expected,
			      "%s, %u cores: element %zu is %g, expected %g", op->name, cores, i,
			      out.data[i], expected);
	}
}

static void launch(spyre_kernel *kernel)
{
	spyre_stream *stream = get_stream(context, 0);
	spyre_arg args[MAX_IN + 1];

	for (uint32_t i = 0; i < inputs; i++)
		args[i] = (spyre_arg){ in[i].device, &in[i].operand.layout };
	args[inputs] = (spyre_arg){ out.device, &out.operand.layout };
	ck_ok(spyre_launch(stream, kernel, args, inputs + 1));
	ck_ok(spyre_stream_synchronize(stream));
}

static void remove_bundle(const char *folder)
{
	char path[96];

	for (int i = -1; i < 64; i++) {
		snprintf(path, sizeof(path), i < 0 ? "%s/bundle.mlir" : "%s/sdsc_%d.json", folder,
			 i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/spyreCodeDir/init_binary.bin", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/spyreCodeDir/spyrecode.json", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/spyreCodeDir", folder);
	rmdir(path);
	rmdir(folder);
}

/* The path through files gives the same bytes. */
static void run_files(const struct operation *op, spyre_sdsc_graph *graph, uint32_t cores)
{
	size_t bytes = out.base_bytes;
	uint8_t *direct = malloc(bytes), *filed = malloc(bytes);
	char folder[] = "/tmp/spyre-graph-XXXXXX";
	spyre_kernel *kernel;

	ck_ok(spyre_memcpy_d2h(context, direct, out.base, bytes));
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_ok(spyre_sdsc_graph_write(graph, cores, folder));
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	scribble(&out);
	launch(kernel);
	ck_ok(spyre_kernel_unload(kernel));
	ck_ok(spyre_memcpy_d2h(context, filed, out.base, bytes));
	ck_assert_msg(!memcmp(direct, filed, bytes), "%s differs when it goes through files",
		      op->name);
	remove_bundle(folder);
	free(direct);
	free(filed);
}

/* An output that ends within a stick writes the whole stick. */
static spyre_sdsc_padding padding_of(uint32_t index)
{
	const spyre_layout *l = &out.plain;
	int along = l->dim_map[l->device_rank - 1];
	int64_t size = along < 0 ? 1 : out.size[along];

	if (placing == POISONED)
		return SPYRE_SDSC_PADDING_UNKNOWN;
	return index == inputs && size % l->device_size[l->device_rank - 1] ?
	       SPYRE_SDSC_PADDING_UNKNOWN : SPYRE_SDSC_PADDING_FOREIGN;
}

static spyre_sdsc_graph *make_graph(const struct operation *op)
{
	spyre_sdsc_graph *graph;
	uint32_t tensor[MAX_IN + 1], attrs = 0;

	while (attrs < MAX_ATTRS && op->attr[attrs].name)
		attrs++;
	ck_ok(spyre_sdsc_graph_create(&graph));
	for (uint32_t i = 0; i < inputs; i++)
		ck_ok(spyre_sdsc_graph_add_argument(graph, &in[i].operand, &tensor[i]));
	ck_ok(spyre_sdsc_graph_add_argument(graph, &out.operand, &tensor[inputs]));
	for (uint32_t i = 0; i <= inputs && placing != AS_COPIED; i++)
		ck_ok(spyre_sdsc_graph_set_padding(graph, tensor[i], padding_of(i)));
	ck_ok(spyre_sdsc_graph_add_op(graph, op->name, op->attr, attrs, tensor, inputs,
				      &tensor[inputs]));
	return graph;
}

static void free_value(struct value *v)
{
	free(v->data);
	free(v->shadow);
}

void run(const struct operation *op, enum placing how)
{
	static const uint32_t cores[] = { 32, 1, 7, 24 };
	spyre_sdsc_graph *graph;
	spyre_kernel *kernel;

	placing = how;
	context = open_card();
	for (inputs = 0; op->tensor[inputs + 1].size[0]; inputs++) {
		describe(&in[inputs], &op->tensor[inputs], op->format);
		draw(&in[inputs], op, inputs);
	}
	describe(&out, &op->tensor[inputs], op->format);
	want = malloc(out.elements * sizeof(*want));
	op->reference(op);
	graph = make_graph(op);
	/* The placing varies with the number of cores, but not every pair is tested. */
	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i += how ? 2 : 1) {
		ck_ok(spyre_sdsc_graph_load(context, graph, cores[i], &kernel));
		scribble(&out);
		launch(kernel);
		ck_ok(spyre_kernel_unload(kernel));
		compare(op, cores[i]);
		for (uint32_t k = 0; k < inputs; k++)
			check_surroundings(&in[k], true, op->name);
		check_surroundings(&out, false, op->name);
		if (i == 0 || (i == 2 && !how))
			run_files(op, graph, cores[i]);
	}
	spyre_sdsc_graph_destroy(graph);
	for (uint32_t i = 0; i < inputs; i++)
		free_value(&in[i]);
	free_value(&out);
	free(want);
	ck_ok(spyre_context_destroy(context));
}

int run_both(const char *name, TCase *first, TCase *second)
{
	Suite *s = suite_create(name);

	setenv("SPYRE_BACKEND", "embedded", 0);
	suite_add_tcase(s, first);
	suite_add_tcase(s, second);
	return suite_run_many(s);
}
