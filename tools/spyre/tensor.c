// SPDX-License-Identifier: MIT
/* Creates, fills, reads and writes the tensors of a launch. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "tensor.h"
#include "value.h"

static const char *const init_names[TENSOR_INIT_COUNT] = {
	[TENSOR_ONES] = "ones",		[TENSOR_RANDN] = "randn", [TENSOR_SMALL] = "small",
	[TENSOR_POSITIVE] = "positive", [TENSOR_BOOL] = "bool",	  [TENSOR_INTS] = "ints",
	[TENSOR_ZERO] = "zero",
};

/* Element types of .npy files and the host formats with the same bits. */
static const struct {
	char kind;
	uint8_t item;
	spyre_format format;
} npy_formats[] = {
	{'f', 2, SPYRE_FORMAT_IEEE_FP16},  {'f', 4, SPYRE_FORMAT_IEEE_FP32},
	{'f', 8, SPYRE_FORMAT_FP64},	   {'i', 1, SPYRE_FORMAT_SENINT8},
	{'i', 2, SPYRE_FORMAT_SENINT16},   {'i', 4, SPYRE_FORMAT_IEEE_INT32},
	{'i', 8, SPYRE_FORMAT_IEEE_INT64}, {'u', 1, SPYRE_FORMAT_UINT8},
	{'b', 1, SPYRE_FORMAT_BOOL},	   {'u', 2, SPYRE_FORMAT_BFLOAT16},
	{'u', 1, SPYRE_FORMAT_SEN143_FP8}, {'u', 1, SPYRE_FORMAT_SEN152_FP8},
};

#define NUM_NPY_FORMATS (sizeof(npy_formats) / sizeof(npy_formats[0]))

struct tensor *tensor_add(struct tensor_list *list, bool output, struct text *why)
{
	struct tensor *grown, *tensor;

	if (list->count == TENSOR_MAX) {
		explain(why, "more than %d operands", TENSOR_MAX);
		return NULL;
	}
	grown = realloc(list->at, (list->count + 1) * sizeof(*grown));
	if (!grown) {
		explain(why, "no memory for %u operands", list->count + 1);
		return NULL;
	}
	list->at = grown;
	/* Keeps inputs before outputs, in whatever order they are added. */
	tensor = &grown[output ? list->count : list->inputs];
	memmove(tensor + 1, tensor, (&grown[list->count] - tensor) * sizeof(*tensor));
	memset(tensor, 0, sizeof(*tensor));
	tensor->output = output;
	tensor->position = output ? list->count - list->inputs : list->inputs;
	list->count++;
	list->inputs += !output;
	return tensor;
}

void tensor_list_fini(struct tensor_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		free(list->at[i].data);
		free(list->at[i].path);
	}
	free(list->at);
	memset(list, 0, sizeof(*list));
}

enum tensor_init tensor_init_from_name(const char *name)
{
	int i = 0;

	while (i < TENSOR_INIT_COUNT && strcmp(init_names[i], name))
		i++;
	return i;
}

const char *tensor_init_name(enum tensor_init init)
{
	return init_names[init];
}

int tensor_alloc(struct tensor *tensor, uint32_t rank, const int64_t *size, spyre_format format,
		 struct text *why)
{
	int64_t elements = shape_elements(rank, size);
	size_t item = spyre_format_bytes(format);
	char shape[160];
	void *data;

	shape_format(rank, size, shape, sizeof(shape));
	if (!value_known(format))
		return explain(why, "%s@%s: host tensors cannot have this format", shape,
			       shape_format_name(format));
	if (elements < 0)
		return explain(why, "%s@%s: the size exceeds the memory of any card", shape,
			       shape_format_name(format));
	data = calloc(elements ? elements : 1, item);
	if (!data)
		return explain(why, "%s@%s: cannot allocate %llu bytes of host memory", shape,
			       shape_format_name(format), (unsigned long long)elements * item);
	free(tensor->data);
	tensor->data = data;
	if (spyre_host_tensor_dense(&tensor->host, data, format, rank, size))
		return explain(why, "%s@%s: %s", shape, shape_format_name(format),
			       spyre_last_error());
	return 0;
}

/* Rounds to the 9 fraction bits of DL16, half away from zero, as the card does. */
static double round_dl16(double value)
{
	int exponent;
	double mantissa = frexp(value, &exponent);

	return ldexp(round(ldexp(mantissa, 10)), exponent - 10);
}

static double draw(enum tensor_init init, struct random_stream *random)
{
	switch (init) {
	case TENSOR_RANDN:
		return random_normal(random);
	case TENSOR_SMALL:
		return random_normal(random) * 0.1;
	case TENSOR_POSITIVE:
		return fabs(random_normal(random)) + 0.5;
	case TENSOR_BOOL:
		return random_uniform(random) > 0.5;
	case TENSOR_INTS:
		return floor(random_uniform(random) * 4);
	case TENSOR_ZERO:
		return 0;
	default:
		return 1;
	}
}

void tensor_fill(struct tensor *tensor, uint64_t seed)
{
	int64_t elements = shape_elements(tensor->host.rank, tensor->host.size);
	size_t item = spyre_format_bytes(tensor->host.format);
	spyre_format device = tensor->layout_given
				      ? tensor->layout.device_format
				      : spyre_layout_device_format(tensor->host.format);
	struct random_stream random;

	random_init(&random, seed, tensor->position);
	for (int64_t i = 0; i < elements; i++) {
		double value = draw(tensor->init, &random);

		if (device == SPYRE_FORMAT_SEN169_FP16)
			value = round_dl16(value);
		value_put(tensor->host.format, (uint8_t *)tensor->data + i * item, value);
	}
}

/* Advances to the next index in row-major order; false after the last. */
static bool next_index(uint32_t rank, const int64_t *size, int64_t *index)
{
	for (uint32_t d = rank; d-- > 0;) {
		if (++index[d] < size[d])
			return true;
		index[d] = 0;
	}
	return false;
}

static int64_t offset_of(uint32_t rank, const int64_t *stride, const int64_t *index)
{
	int64_t offset = 0;

	for (uint32_t d = 0; d < rank; d++)
		offset += index[d] * stride[d];
	return offset;
}

/* Converts to dense row-major elements of @format, by value. */
static int convert(struct tensor *tensor, const char *path, const struct npy *npy,
		   spyre_format from, spyre_format format, struct text *why)
{
	int64_t index[SPYRE_MAX_RANK] = {0}, n = 0;
	size_t item = spyre_format_bytes(format);

	if (tensor_alloc(tensor, npy->rank, npy->size, format, why))
		return -1;
	if (!npy->elements)
		return 0;
	do {
		const uint8_t *at = (const uint8_t *)npy->data +
				    offset_of(npy->rank, npy->stride, index) * npy->item;
		double value = value_get(from, at);

		if (value_put(format, (uint8_t *)tensor->data + n * item, value))
			return explain(why, "%s: element %lld is %g, which %s cannot hold", path,
				       (long long)n, value, shape_format_name(format));
		n++;
	} while (next_index(npy->rank, npy->size, index));
	return 0;
}

/* Uses the elements as stored in the file: their order becomes the strides. */
static void adopt(struct tensor *tensor, struct npy *npy, spyre_format format)
{
	spyre_host_tensor *host = &tensor->host;

	free(tensor->data);
	tensor->data = npy->data;
	npy->data = NULL;
	memset(host, 0, sizeof(*host));
	host->data = tensor->data;
	host->format = format;
	host->rank = npy->rank;
	memcpy(host->size, npy->size, sizeof(host->size));
	memcpy(host->stride, npy->stride, sizeof(host->stride));
}

static int load(struct tensor *tensor, const char *path, struct npy *npy, spyre_format format,
		struct text *why)
{
	spyre_format own = SPYRE_FORMAT_INVALID;

	/*
	 * Takes the first format of this element type, or the requested one: uint8
	 * may hold fp8 codes.
	 */
	for (size_t i = 0; i < NUM_NPY_FORMATS; i++)
		if (npy_formats[i].kind == npy->kind && npy_formats[i].item == npy->item &&
		    (!own || npy_formats[i].format == format))
			own = npy_formats[i].format;
	if (own == SPYRE_FORMAT_BFLOAT16 && format != own)
		return explain(why, "%s: uint16 elements are bit patterns of bf16; write %s@bf16",
			       path, path);
	if (format == SPYRE_FORMAT_INVALID)
		format = own;
	if (!value_known(format))
		return explain(why, "cannot read %s: host tensors cannot have format %s", path,
			       shape_format_name(format));
	if (spyre_layout_device_format(format) == SPYRE_FORMAT_INVALID)
		return explain(why,
			       "cannot read %s: format %s cannot be copied to the card; write "
			       "%s@fp32 to convert it",
			       path, shape_format_name(format), path);
	if (format != own)
		return convert(tensor, path, npy, own, format, why);
	if (!npy->data)
		return tensor_alloc(tensor, npy->rank, npy->size, format, why);
	adopt(tensor, npy, format);
	return 0;
}

int tensor_load(struct tensor *tensor, const char *path, spyre_format format, struct text *why)
{
	struct npy npy;
	int err;

	if (npy_read(path, &npy, why))
		return -1;
	err = load(tensor, path, &npy, format, why);
	npy_fini(&npy);
	if (err)
		return err;
	free(tensor->path);
	tensor->path = strdup(path);
	return tensor->path ? 0 : explain(why, "no memory for the path %s", path);
}

int tensor_save(const struct tensor *tensor, const char *path, struct text *why)
{
	const spyre_host_tensor *host = &tensor->host;

	for (size_t i = 0; i < NUM_NPY_FORMATS; i++)
		if (npy_formats[i].format == host->format)
			return npy_write(path, npy_formats[i].kind, npy_formats[i].item, host->rank,
					 host->size, tensor->data, why);
	return explain(why, "cannot write %s: .npy files have no type for %s", path,
		       shape_format_name(host->format));
}

double tensor_value(const struct tensor *tensor, const int64_t *index)
{
	const spyre_host_tensor *host = &tensor->host;
	int64_t offset = host->storage_offset + offset_of(host->rank, host->stride, index);

	return value_get(host->format,
			 (const uint8_t *)host->data + offset * spyre_format_bytes(host->format));
}

uint64_t tensor_checksum(const struct tensor *tensor)
{
	const bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const size_t element = spyre_format_bytes(tensor->host.format);
	size_t bytes = (size_t)shape_elements(tensor->host.rank, tensor->host.size) * element;
	const uint8_t *at = tensor->data;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < bytes; i++) {
		const size_t swapped = i / element * element + element - 1 - i % element;

		hash = (hash ^ at[big_endian ? swapped : i]) * 0x100000001b3ull;
	}
	return hash;
}
