/* SPDX-License-Identifier: MIT */
/* Layouts: the placement of a host tensor in sticks on the device (SpyreTensorLayout). */
#ifndef SPYRE_LAYOUT_H
#define SPYRE_LAYOUT_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Order of the lanes within a stick. */
typedef enum spyre_element_arrangement {
	SPYRE_EA_STANDARD = 0,
	SPYRE_EA_DL16_TO_FP32 = 1,
	SPYRE_EA_QFP8CH = 2,
	SPYRE_EA_EXX2 = 3,
	SPYRE_EA_FP32_TO_DL16 = 4,
	SPYRE_EA_QFP8WT = 5,
} spyre_element_arrangement;

/**
 * A device layout. Plain data: copy, compare with spyre_layout_equal(), write
 * to disk. device_size[] is row-major, the last entry is the stick;
 * stride_map[] is the host stride in elements of one step along that device
 * dimension, -1 for synthetic dimensions (size 1, padding), 0 for repeated
 * ones. Since 0.1.
 */
typedef struct spyre_layout {
	/** sizeof(struct spyre_layout), set by the constructors. */
	uint32_t struct_size;
	/** Device dimensions, 1..SPYRE_MAX_DEVICE_RANK. */
	uint32_t device_rank;
	int64_t device_size[SPYRE_MAX_DEVICE_RANK];
	int64_t stride_map[SPYRE_MAX_DEVICE_RANK];
	spyre_format device_format;
	spyre_element_arrangement arrangement;
	/**
	 * Host dimension that each device dimension walks (-1 synthetic), known
	 * for constructors 1 and 2; mapped is false for constructor 3. Not part
	 * of equality.
	 */
	bool mapped;
	int8_t dim_map[SPYRE_MAX_DEVICE_RANK];
} spyre_layout;

/**
 * A host tensor: element (i0, i1, …) is at data + (storage_offset +
 * sum i[d] * stride[d]) * spyre_format_bytes(format). Strides are in
 * elements and not negative. Since 0.1.
 */
typedef struct spyre_host_tensor {
	/** Start of the storage, not of the view. Not owned. */
	void *data;
	spyre_format format;
	/** 0..SPYRE_MAX_RANK. */
	uint32_t rank;
	int64_t size[SPYRE_MAX_RANK];
	int64_t stride[SPYRE_MAX_RANK];
	int64_t storage_offset;
} spyre_host_tensor;

/**
 * Fills @tensor with the description of a dense row-major tensor: @rank sizes in
 * @size, 0 to SPYRE_MAX_RANK, and elements at @data, which stays owned by the caller.
 * Since 0.1.
 * Errors: INVALID_ARGUMENT, FORMAT.
 */
SPYRE_API spyre_status spyre_host_tensor_dense(spyre_host_tensor *tensor, void *data,
					       spyre_format format, uint32_t rank,
					       const int64_t *size);

/**
 * Returns the device format that stores a host format, such as SEN169_FP16 for fp16;
 * SPYRE_FORMAT_INVALID if the device has none (fp64). Since 0.1.
 */
SPYRE_API spyre_format spyre_layout_device_format(spyre_format host);

/**
 * Constructor 1: initialises @layout for a dense row-major host tensor of @rank sizes
 * in @host_format. Since 0.1.
 * Errors: FORMAT, INVALID_ARGUMENT, LAYOUT (more than 2^63 bytes).
 */
SPYRE_API spyre_status spyre_layout_init(spyre_layout *layout, uint32_t rank,
					 const int64_t *size, spyre_format host_format);

/**
 * Constructor 2: initialises @layout for a host tensor with @stride in elements and an
 * explicit dimension order. @dim_order has @order_len entries: either @rank of them,
 * or @rank + 1 with a last entry of -1, which puts one element in each stick. Since
 * 0.1.
 * Errors: FORMAT, LAYOUT ("Incompatible host_size and dim_order").
 */
SPYRE_API spyre_status spyre_layout_init_strided(spyre_layout *layout, uint32_t rank,
						 const int64_t *size, const int64_t *stride,
						 spyre_format host_format,
						 const int32_t *dim_order, uint32_t order_len);

/**
 * Constructor 3: stores the given @device_rank entries of @device_size and @stride_map
 * unchanged. A copy checks them against its tensor. Since 0.1.
 * Errors: LAYOUT, FORMAT.
 */
SPYRE_API spyre_status spyre_layout_init_explicit(spyre_layout *layout, uint32_t device_rank,
						  const int64_t *device_size,
						  const int64_t *stride_map,
						  spyre_format device_format,
						  spyre_element_arrangement arrangement);

/** Returns true if all fields but mapped and dim_map are equal. Since 0.1. */
SPYRE_API bool spyre_layout_equal(const spyre_layout *a, const spyre_layout *b);

/**
 * Returns the bytes that a tensor of this layout occupies on the device: 128 times the
 * product of all entries of device_size but the last. Since 0.1.
 */
SPYRE_API uint64_t spyre_layout_bytes(const spyre_layout *layout);

/**
 * Returns the bytes to allocate for a tensor of @rank sizes in @host_format: at least
 * spyre_layout_bytes(), or 0 if the tensor has no elements. Since 0.1.
 */
SPYRE_API uint64_t spyre_layout_alloc_bytes(const spyre_layout *layout, uint32_t rank,
					    const int64_t *size, spyre_format host_format);

/**
 * Writes a layout as text, "SpyreTensorLayout(device_size=[…], stride_map =[…], …)",
 * to @buffer of @size bytes, NUL-terminated and truncated if necessary. Returns the
 * length of the whole text, as snprintf() does. Since 0.1.
 */
SPYRE_API int spyre_layout_format_string(const spyre_layout *layout, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_LAYOUT_H */
