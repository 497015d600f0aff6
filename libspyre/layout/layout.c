// SPDX-License-Identifier: MIT
/*
 * SpyreTensorLayout: how a host tensor is cut into sticks.
 *
 * With a dimension order o[0..r-1] the device dimensions walk the host
 * dimensions [o1, o2, .., o(r-1), o0, o(r-1)]: the last of the order is the
 * stick dimension, it appears once as the index of the tile and once, last of
 * all, within the stick.
 */
#include <spyre/layout.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"

spyre_format spyre_layout_device_format(spyre_format host)
{
	switch (host) {
	case SPYRE_FORMAT_IEEE_FP16:
	case SPYRE_FORMAT_BOOL:
		return SPYRE_FORMAT_SEN169_FP16;
	case SPYRE_FORMAT_IEEE_INT64:
		return SPYRE_FORMAT_IEEE_INT32;
	case SPYRE_FORMAT_UINT8:
		return SPYRE_FORMAT_SENUINT32;
	case SPYRE_FORMAT_SEN169_FP16:
	case SPYRE_FORMAT_IEEE_FP32:
	case SPYRE_FORMAT_BFLOAT16:
	case SPYRE_FORMAT_SEN143_FP8:
	case SPYRE_FORMAT_SEN152_FP8:
	case SPYRE_FORMAT_SENINT2:
	case SPYRE_FORMAT_SENINT4:
	case SPYRE_FORMAT_SENINT8:
	case SPYRE_FORMAT_SENINT16:
	case SPYRE_FORMAT_SENUINT2:
	case SPYRE_FORMAT_SENUINT32:
	case SPYRE_FORMAT_IEEE_INT32:
		return host;
	default:
		return SPYRE_FORMAT_INVALID;
	}
}

static const char *name_of(spyre_format format)
{
	const char *name = spyre_format_name(format);

	return name ? name : "an unknown format";
}

static spyre_status check_size(const char *what, uint32_t rank, const int64_t *size)
{
	if (rank > SPYRE_MAX_RANK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: rank %u is above the limit of %d", what, rank,
				   SPYRE_MAX_RANK);
	if (rank && !size)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: size is NULL with rank %u",
				   what, rank);
	for (uint32_t d = 0; d < rank; d++)
		if (size[d] < 0)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: size[%u] is %" PRId64 ", must not be negative",
					   what, d, size[d]);
	return SPYRE_SUCCESS;
}

/* Row-major strides; dimensions of size 0 count as 1, as elsewhere. */
static spyre_status dense_strides(const char *what, uint32_t rank, const int64_t *size,
				  int64_t *stride)
{
	int64_t step = 1;

	for (uint32_t d = rank; d-- > 0;) {
		stride[d] = step;
		if (__builtin_mul_overflow(step, size[d] > 1 ? size[d] : 1, &step))
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: the sizes multiply to more than 2^63 elements",
					   what);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_host_tensor_dense(spyre_host_tensor *tensor, void *data, spyre_format format,
				     uint32_t rank, const int64_t *size)
{
	if (!tensor)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_host_tensor_dense: tensor is NULL");
	memset(tensor, 0, sizeof(*tensor));
	TRY(check_size("spyre_host_tensor_dense", rank, size));
	if (!spyre_format_bytes(format))
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "spyre_host_tensor_dense: %s has no whole-byte elements; host tensors need one of fp16, fp32, bf16, fp64, bool or an integer format",
				   name_of(format));
	tensor->data = data;
	tensor->format = format;
	tensor->rank = rank;
	if (rank)
		memcpy(tensor->size, size, rank * sizeof(*size));
	return dense_strides("spyre_host_tensor_dense", rank, size, tensor->stride);
}

/* Refuses layouts whose bytes do not fit in 63 bits. */
static spyre_status check_bytes(const char *what, const spyre_layout *layout)
{
	uint64_t bytes = SPYRE_STICK;

	for (uint32_t j = 0; j + 1 < layout->device_rank; j++) {
		if (!layout->device_size[j])
			return SPYRE_SUCCESS;
		if (__builtin_mul_overflow(bytes, (uint64_t)layout->device_size[j], &bytes) ||
		    bytes > INT64_MAX)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "%s: the device sizes multiply to more than 2^63 bytes",
					   what);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_layout_init(spyre_layout *layout, uint32_t rank, const int64_t *size,
			       spyre_format host_format)
{
	int64_t stride[SPYRE_MAX_RANK];
	int32_t order[SPYRE_MAX_RANK];

	TRY(check_size("spyre_layout_init", rank, size));
	TRY(dense_strides("spyre_layout_init", rank, size, stride));
	for (uint32_t d = 0; d < rank; d++)
		order[d] = (int32_t)d;
	return spyre_layout_init_strided(layout, rank, size, stride, host_format, order, rank);
}

static spyre_status check_order(uint32_t rank, const int32_t *order, uint32_t len)
{
	uint32_t seen = 0;

	if (len != rank && !(len == rank + 1 && order && order[rank] == -1))
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "Incompatible host_size and dim_order: rank %u takes %u entries, or %u with a last one of -1, got %u",
				   rank, rank, rank + 1, len);
	if (len + 1 > SPYRE_MAX_DEVICE_RANK)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "dim_order of %u entries gives %u device dimensions, the limit is %d",
				   len, len + 1, SPYRE_MAX_DEVICE_RANK);
	if (rank && !order)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "dim_order is NULL with rank %u",
				   rank);
	for (uint32_t i = 0; i < rank; i++) {
		if (order[i] < 0 || order[i] >= (int32_t)rank || (seen >> order[i] & 1))
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "Incompatible host_size and dim_order: dim_order[%u] is %d, the entries must be a permutation of 0..%u",
					   i, order[i], rank - 1);
		seen |= 1u << order[i];
	}
	return SPYRE_SUCCESS;
}

/* Sets the host dimension of each device dimension, -1 for none. */
static uint32_t map_dims(int8_t *map, const int32_t *order, uint32_t len)
{
	uint32_t n = 0;

	if (!len) {
		map[0] = -1;
		map[1] = -1;
		return 2;
	}
	for (uint32_t i = 1; i < len; i++)
		map[n++] = (int8_t)order[i];
	map[n++] = (int8_t)order[0];
	if (len == 1)
		map[n++] = (int8_t)order[0];
	else
		map[n++] = (int8_t)order[len - 1];
	return n;
}

static spyre_status fill_strides(spyre_layout *layout, const int64_t *size, const int64_t *stride)
{
	int64_t next[SPYRE_MAX_RANK];
	uint32_t seen = 0;

	for (uint32_t j = layout->device_rank; j-- > 0;) {
		int d = layout->dim_map[j];

		if (d < 0 || size[d] == 1) {
			layout->stride_map[j] = -1;
			continue;
		}
		layout->stride_map[j] = seen >> d & 1 ? next[d] : stride[d];
		seen |= 1u << d;
		if (__builtin_mul_overflow(layout->stride_map[j], layout->device_size[j], &next[d]))
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "stride %" PRId64 " of host dimension %d is too large for a device dimension of %" PRId64,
					   layout->stride_map[j], d, layout->device_size[j]);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_layout_init_strided(spyre_layout *layout, uint32_t rank, const int64_t *size,
				       const int64_t *stride, spyre_format host_format,
				       const int32_t *dim_order, uint32_t order_len)
{
	spyre_format device_format = spyre_layout_device_format(host_format);
	int64_t lanes = spyre_stick_elements(device_format);
	spyre_status status;

	if (!layout)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "layout is NULL");
	memset(layout, 0, sizeof(*layout));
	status = check_size("layout", rank, size);
	if (!status)
		status = check_order(rank, dim_order, order_len);
	if (status)
		return status;
	if (!spyre_format_name(host_format))
		return spyre_error(SPYRE_ERROR_FORMAT, "host format %d is unknown (spyre_format)",
				   (int)host_format);
	if (!lanes)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "host format %s has no device form; convert to fp32, fp16, bf16, bool or an integer of at most 64 bits first",
				   name_of(host_format));
	if (rank && !stride)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "stride is NULL with rank %u",
				   rank);
	for (uint32_t d = 0; d < rank; d++)
		if (stride[d] < 0)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "stride[%u] is %" PRId64 "; negative strides have no layout, copy the tensor first",
					   d, stride[d]);
	layout->struct_size = sizeof(*layout);
	layout->device_format = device_format;
	layout->mapped = true;
	layout->device_rank = map_dims(layout->dim_map, dim_order, order_len);
	for (uint32_t j = 0; j < layout->device_rank; j++) {
		int d = layout->dim_map[j];

		layout->device_size[j] = d < 0 ? 1 : size[d];
		if (j + 1 == layout->device_rank)
			layout->device_size[j] = lanes;
		else if (d >= 0 && d == layout->dim_map[layout->device_rank - 1])
			layout->device_size[j] = size[d] / lanes + !!(size[d] % lanes);
	}
	status = fill_strides(layout, size, stride);
	if (!status)
		status = check_bytes("layout", layout);
	if (status)
		memset(layout, 0, sizeof(*layout));
	return status;
}

spyre_status spyre_layout_init_explicit(spyre_layout *layout, uint32_t device_rank,
					const int64_t *device_size, const int64_t *stride_map,
					spyre_format device_format,
					spyre_element_arrangement arrangement)
{
	int64_t lanes = spyre_stick_elements(device_format);

	if (!layout || !device_size || !stride_map)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_layout_init_explicit: layout, device_size or stride_map is NULL");
	memset(layout, 0, sizeof(*layout));
	if (device_rank < 1 || device_rank > SPYRE_MAX_DEVICE_RANK)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "a layout has 1 to %d device dimensions, got %u",
				   SPYRE_MAX_DEVICE_RANK, device_rank);
	if (!lanes)
		return spyre_error(SPYRE_ERROR_FORMAT, "%s is not a device format of whole sticks",
				   name_of(device_format));
	if (arrangement < SPYRE_EA_STANDARD || arrangement > SPYRE_EA_QFP8WT)
		return spyre_error(SPYRE_ERROR_LAYOUT, "unknown element arrangement %d",
				   (int)arrangement);
	for (uint32_t j = 0; j < device_rank; j++)
		if (device_size[j] < 0 || stride_map[j] < -1)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "device dimension %u has size %" PRId64 " and stride %" PRId64 "; sizes start at 0, strides at -1",
					   j, device_size[j], stride_map[j]);
	if (device_size[device_rank - 1] != lanes)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "the last device dimension is the stick: %" PRId64 " elements of %s, got %" PRId64,
				   lanes, name_of(device_format), device_size[device_rank - 1]);
	layout->struct_size = sizeof(*layout);
	layout->device_rank = device_rank;
	layout->device_format = device_format;
	layout->arrangement = arrangement;
	memcpy(layout->device_size, device_size, device_rank * sizeof(*device_size));
	memcpy(layout->stride_map, stride_map, device_rank * sizeof(*stride_map));
	memset(layout->dim_map, -1, sizeof(layout->dim_map));
	return check_bytes("spyre_layout_init_explicit", layout);
}

bool spyre_layout_equal(const spyre_layout *a, const spyre_layout *b)
{
	size_t bytes;

	if (!a || !b)
		return a == b;
	bytes = a->device_rank * sizeof(a->device_size[0]);
	return a->device_rank == b->device_rank && a->device_rank <= SPYRE_MAX_DEVICE_RANK &&
	       a->device_format == b->device_format && a->arrangement == b->arrangement &&
	       !memcmp(a->device_size, b->device_size, bytes) &&
	       !memcmp(a->stride_map, b->stride_map, bytes);
}

uint64_t spyre_layout_bytes(const spyre_layout *layout)
{
	uint64_t bytes = SPYRE_STICK;

	if (!layout || !layout->device_rank || layout->device_rank > SPYRE_MAX_DEVICE_RANK)
		return 0;
	/* One zero makes the size 0, also if the other sizes overflow. */
	for (uint32_t j = 0; j + 1 < layout->device_rank; j++)
		if (layout->device_size[j] <= 0)
			return 0;
	for (uint32_t j = 0; j + 1 < layout->device_rank; j++)
		if (__builtin_mul_overflow(bytes, (uint64_t)layout->device_size[j], &bytes))
			return UINT64_MAX;
	return bytes;
}

uint64_t spyre_layout_alloc_bytes(const spyre_layout *layout, uint32_t rank, const int64_t *size,
				  spyre_format host_format)
{
	uint64_t device = spyre_layout_bytes(layout);
	uint64_t host = spyre_format_bytes(host_format);

	for (uint32_t d = 0; d < rank; d++)
		if (size[d] <= 0)
			return 0;
	for (uint32_t d = 0; d < rank; d++)
		if (__builtin_mul_overflow(host, (uint64_t)size[d], &host))
			return UINT64_MAX;
	if (host > UINT64_MAX - SPYRE_STICK)
		return UINT64_MAX;
	host = (host + SPYRE_STICK - 1) / SPYRE_STICK * SPYRE_STICK;
	return device > host ? device : host;
}

struct text {
	char *buffer;
	size_t size;
	size_t used;
};

__attribute__((format(printf, 2, 3)))
static void put(struct text *text, const char *format, ...)
{
	size_t space = text->used < text->size ? text->size - text->used : 0;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(space ? text->buffer + text->used : NULL, space, format, args);
	va_end(args);
	text->used += n > 0 ? (size_t)n : 0;
}

static void put_list(struct text *text, const int64_t *list, uint32_t n)
{
	put(text, "[");
	for (uint32_t i = 0; i < n; i++)
		put(text, "%s%" PRId64, i ? ", " : "", list[i]);
	put(text, "]");
}

int spyre_layout_format_string(const spyre_layout *layout, char *buffer, size_t size)
{
	static const char *const arrangement[] = {
		"STANDARD", "DL16_TO_FP32", "QFP8CH", "EXX2", "FP32_TO_DL16", "QFP8WT",
	};
	struct text text = { buffer, buffer ? size : 0, 0 };
	uint32_t rank;

	if (text.size)
		buffer[0] = '\0';
	if (!layout)
		return 0;
	rank = layout->device_rank;
	if (rank > SPYRE_MAX_DEVICE_RANK)
		rank = SPYRE_MAX_DEVICE_RANK;
	put(&text, "SpyreTensorLayout(device_size=");
	put_list(&text, layout->device_size, rank);
	put(&text, ", stride_map =");
	put_list(&text, layout->stride_map, rank);
	put(&text, ", device_dtype=DataFormats.%s",
	    layout->device_format == SPYRE_FORMAT_INVALID ? "INVALID"
							  : name_of(layout->device_format));
	if (layout->arrangement > SPYRE_EA_STANDARD && layout->arrangement <= SPYRE_EA_QFP8WT)
		put(&text, ", element_arrangement=ElementArrangement.%s",
		    arrangement[layout->arrangement]);
	put(&text, ")");
	return (int)text.used;
}
