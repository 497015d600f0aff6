/* SPDX-License-Identifier: MIT */
/* Device memory, pinned host memory, copies. */
#ifndef SPYRE_MEMORY_H
#define SPYRE_MEMORY_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Device memory of the context's card in bytes; free + used = total. Since 0.1. */
typedef struct spyre_memory_info {
	/** in: sizeof(struct spyre_memory_info). */
	size_t struct_size;
	uint64_t total;
	uint64_t free;
	/** Used by all contexts, or reserved for other users: not available to this one. */
	uint64_t used;
	/** Used by this context, now and at most so far. */
	uint64_t context_used;
	uint64_t context_peak;
	/** Largest single allocation that could succeed now. */
	uint64_t largest_free;
	/** Live allocations of this context. */
	uint64_t allocations;
} spyre_memory_info;

/**
 * Allocates @bytes of zeroed device memory, rounded up to a multiple of 128, and
 * returns its address. The context owns the memory until spyre_mem_free(). A size of 0
 * returns address 0 and SUCCESS. Since 0.1.
 * Errors: OUT_OF_DEVICE_MEMORY (the message gives the requested, free and largest free
 * bytes; the context stays usable).
 */
SPYRE_API spyre_status spyre_mem_alloc(spyre_context *context, uint64_t bytes,
				       spyre_devptr *address);

/**
 * Frees the allocation that starts at @address once all queued work that may use it
 * has finished; does not block. Address 0 is allowed and has no effect. Since 0.1.
 * Errors: INVALID_ADDRESS (not the start of a live allocation).
 */
SPYRE_API spyre_status spyre_mem_free(spyre_context *context, spyre_devptr address);

/**
 * Reads the device memory usage of the card and of @context, in bytes. The caller sets
 * @info->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT, DEVICE_LOST.
 */
SPYRE_API spyre_status spyre_mem_info(spyre_context *context, spyre_memory_info *info);

/**
 * Exports the mapping that contains @address, which may be an interior address, as a
 * dma-buf for another process (SCM_RIGHTS) or driver. The caller owns and closes @fd.
 * @offset returns the position of @address in the dma-buf; @bytes, which may be NULL,
 * returns the bytes from there to the end of the allocation.
 *
 * The dma-buf covers the whole mapping. Allocations below 1 MiB share a mapping with
 * others of this context: allocate at least 1 MiB, or export only to trusted
 * receivers. The dma-buf keeps the memory alive until its last holder closes it, even
 * after spyre_mem_free(). The work of two processes is not ordered: synchronise before
 * notifying the other process. Since 0.1.
 * Errors: INVALID_ADDRESS, INVALID_ARGUMENT (imported memory: pass on its own dma-buf),
 * UNSUPPORTED (embedded cards, whose memory is private to their process).
 */
SPYRE_API spyre_status spyre_mem_export_dmabuf(spyre_context *context, spyre_devptr address,
					       int *fd, uint64_t *offset, uint64_t *bytes);

/**
 * Maps @bytes of a dma-buf from @offset on, a multiple of 128, at a device address of
 * @context. 0 bytes map everything after @offset. The caller keeps @fd and may close
 * it. spyre_mem_free() removes the mapping; the memory does not count as used by this
 * context. Since 0.1.
 * Errors: INVALID_ARGUMENT (@fd is not a dma-buf, or is too small), UNSUPPORTED
 * (embedded cards).
 */
SPYRE_API spyre_status spyre_mem_import_dmabuf(spyre_context *context, int fd, uint64_t offset,
					       uint64_t bytes, spyre_devptr *address);

/** Identifies memory across processes. Plain bytes; any channel can carry it. Since 0.1. */
typedef struct spyre_ipc_handle {
	uint64_t opaque[8];
} spyre_ipc_handle;

/**
 * Creates a handle to the memory at @address for processes on this machine that are
 * allowed to trace the calling one (same user; see ptrace(2) and prctl(2),
 * PR_SET_PTRACER). The handle is valid until the memory is freed. It covers whole
 * mappings, as described at spyre_mem_export_dmabuf(). Since 0.1.
 * Errors: those of spyre_mem_export_dmabuf().
 */
SPYRE_API spyre_status spyre_ipc_get_handle(spyre_context *context, spyre_devptr address,
					    spyre_ipc_handle *handle);

/**
 * Maps the memory of @handle, from the address it was created for to the end of that
 * allocation. spyre_mem_free() removes the mapping. Since 0.1.
 * Errors: INVALID_ARGUMENT (not a handle, or its memory or process no longer exists),
 * NO_PERMISSION (the message names the setting), UNSUPPORTED.
 */
SPYRE_API spyre_status spyre_ipc_open_handle(spyre_context *context,
					     const spyre_ipc_handle *handle,
					     spyre_devptr *address);

/** Kind of memory that contains an address. */
typedef enum spyre_memory_kind {
	SPYRE_MEMORY_UNKNOWN = 0,
	SPYRE_MEMORY_DEVICE = 1,
	SPYRE_MEMORY_PINNED_HOST = 2,
} spyre_memory_kind;

/** The allocation that contains an address. Since 0.1. */
typedef struct spyre_pointer_info {
	/** in: sizeof(struct spyre_pointer_info). */
	size_t struct_size;
	spyre_memory_kind kind;
	/** Start and size of the allocation in bytes. */
	uint64_t base;
	uint64_t size;
	/** Offset of the queried address in the allocation. */
	uint64_t offset;
} spyre_pointer_info;

/**
 * Finds the device allocation that contains @address. An unknown address gives kind
 * UNKNOWN and SUCCESS. The caller sets @info->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_pointer_query(spyre_context *context, spyre_devptr address,
					   spyre_pointer_info *info);

/**
 * Finds the pinned host allocation that contains @address. Other addresses give kind
 * UNKNOWN and SUCCESS. The caller sets @info->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_host_pointer_query(spyre_context *context, const void *address,
						spyre_pointer_info *info);

/**
 * Allocates @bytes of page-aligned host memory that is pinned once, so that the DMA
 * engine needs no pinning for each copy. The context owns it until spyre_host_free().
 * 0 bytes return NULL and SUCCESS. Since 0.1.
 * Errors: OUT_OF_HOST_MEMORY (also for the limit on locked memory).
 */
SPYRE_API spyre_status spyre_host_alloc(spyre_context *context, size_t bytes, void **address);

/**
 * Frees pinned host memory once all queued copies that use it have finished. NULL is
 * allowed and has no effect. Since 0.1.
 * Errors: INVALID_ARGUMENT (not the start of a live allocation).
 */
SPYRE_API spyre_status spyre_host_free(spyre_context *context, void *address);

/**
 * Copies a host tensor to @device, where @layout describes its placement, and waits
 * for the copy. Elements are converted to the device format, and padding is filled
 * with zeros. Since 0.1.
 * Errors: LAYOUT (the layout does not fit the tensor), FORMAT, INVALID_ADDRESS (also if
 * the allocation is too small), the error of the default stream, and CAPTURE (it is
 * being captured).
 */
SPYRE_API spyre_status spyre_copy_h2d(spyre_context *context, spyre_devptr device,
				      const spyre_layout *layout,
				      const spyre_host_tensor *source);

/**
 * Queues the copy of spyre_copy_h2d() on @stream and returns. The host memory must
 * remain unchanged until the stream has executed the copy; @layout and @source
 * themselves are copied. Since 0.1.
 * Errors: those of spyre_copy_h2d().
 */
SPYRE_API spyre_status spyre_copy_h2d_async(spyre_stream *stream, spyre_devptr device,
					    const spyre_layout *layout,
					    const spyre_host_tensor *source);

/**
 * Copies the tensor at @device, where @layout describes its placement, to @target and
 * waits for the copy. Elements are converted to the host format, and padding is
 * skipped: no host byte outside the tensor's elements is written. Since 0.1.
 * Errors: those of spyre_copy_h2d().
 */
SPYRE_API spyre_status spyre_copy_d2h(spyre_context *context, const spyre_host_tensor *target,
				      spyre_devptr device, const spyre_layout *layout);

/**
 * Queues the copy of spyre_copy_d2h() on @stream and returns. The host memory must
 * remain allocated, and its contents are undefined, until the stream has executed the
 * copy. Since 0.1.
 * Errors: those of spyre_copy_h2d().
 */
SPYRE_API spyre_status spyre_copy_d2h_async(spyre_stream *stream,
					    const spyre_host_tensor *target,
					    spyre_devptr device, const spyre_layout *layout);

/**
 * Copies a tensor from one device layout to another and waits for the copy. @rank and
 * @size are the host shape, which both layouts must describe. Equal layouts are copied
 * byte by byte, others pass through host memory of the library. All bits are preserved
 * if the formats are equal. Since 0.1.
 * Errors: those of spyre_copy_h2d().
 */
SPYRE_API spyre_status spyre_copy_d2d(spyre_context *context, spyre_devptr target,
				      const spyre_layout *target_layout, spyre_devptr source,
				      const spyre_layout *source_layout, uint32_t rank,
				      const int64_t *size);

/**
 * Queues the copy of spyre_copy_d2d() on @stream and returns. Since 0.1.
 * Errors: those of spyre_copy_h2d().
 */
SPYRE_API spyre_status spyre_copy_d2d_async(spyre_stream *stream, spyre_devptr target,
					    const spyre_layout *target_layout,
					    spyre_devptr source,
					    const spyre_layout *source_layout, uint32_t rank,
					    const int64_t *size);

/** Dimensions of a box. */
#define SPYRE_MAX_BOX_RANK 8

/** Direction of a copy between host and device. */
typedef enum spyre_copy_direction {
	SPYRE_COPY_H2D = 0,
	SPYRE_COPY_D2H = 1,
} spyre_copy_direction;

/**
 * A box of elements with strides on both sides: element (i0, i1, …), 0 <= i[d] < size[d],
 * is host element host_offset + sum i[d] * host_stride[d], and device element
 * device_offset + sum i[d] * device_stride[d]. All numbers are in elements of the side's
 * format and not negative. Dimensions are listed outermost first, but their order has no
 * effect. Since 0.1.
 */
typedef struct spyre_box {
	/** 0..SPYRE_MAX_BOX_RANK; a box of rank 0 is one element. */
	uint32_t rank;
	/** 0..2^31 each; a box with a size of 0 is empty. */
	int64_t size[SPYRE_MAX_BOX_RANK];
	int64_t host_stride[SPYRE_MAX_BOX_RANK];
	int64_t device_stride[SPYRE_MAX_BOX_RANK];
	int64_t host_offset;
	int64_t device_offset;
} spyre_box;

/** Arguments of spyre_copy_boxes_async(). Since 0.1. */
typedef struct spyre_box_copy {
	/** in: sizeof(struct spyre_box_copy). */
	size_t struct_size;
	spyre_copy_direction direction;
	/** Device memory of the boxes, a multiple of 128; their offsets count from here. */
	spyre_devptr device;
	spyre_format device_format;
	/** Host memory of the boxes. Not owned; D2H writes it. */
	void *host;
	/** Bytes at @host; no box may reach beyond. */
	uint64_t host_bytes;
	spyre_format host_format;
	/** @num_boxes boxes. Not owned. */
	const spyre_box *boxes;
	uint32_t num_boxes;
} spyre_box_copy;

/**
 * Queues the copy of a list of boxes on @stream and returns. Elements are converted as
 * by spyre_copy_h2d() and spyre_copy_d2h(); bytes of the destination that belong to no
 * box are not written. The boxes are copied in their order, so the last one wins where
 * they overlap. Within one box, each destination stride must be larger than the distance
 * between the first and the last element of the dimensions with smaller strides, so that
 * no element is written twice; sources may repeat (stride 0) and overlap.
 *
 * Everything is checked before anything is queued. Each box is one command of the card,
 * and up to 256 are submitted together. The host memory must remain allocated, and for
 * H2D unchanged, until the stream has executed the copy; @copy and its boxes are copied.
 * A captured copy reads and writes the same memory in each launch of the graph. Since 0.1.
 * Errors: INVALID_ARGUMENT (the message names the box and the dimension), LAYOUT (a box
 * writes elements twice), FORMAT, INVALID_ADDRESS (a box leaves the allocation at
 * @device), UNSUPPORTED (the kernel module is older than interface 1.3), and the
 * stream's error.
 */
SPYRE_API spyre_status spyre_copy_boxes_async(spyre_stream *stream, const spyre_box_copy *copy);

/**
 * Copies @bytes from host memory to device memory without conversion and waits for the
 * copy. Since 0.1.
 * Errors: INVALID_ADDRESS, INVALID_ARGUMENT, the error of the default stream, and
 * CAPTURE (it is being captured).
 */
SPYRE_API spyre_status spyre_memcpy_h2d(spyre_context *context, spyre_devptr target,
					const void *source, uint64_t bytes);

/**
 * Copies @bytes from device memory to host memory without conversion and waits for the
 * copy. Since 0.1.
 * Errors: those of spyre_memcpy_h2d().
 */
SPYRE_API spyre_status spyre_memcpy_d2h(spyre_context *context, void *target,
					spyre_devptr source, uint64_t bytes);

/**
 * Queues the copy of spyre_memcpy_h2d() on @stream and returns. The host memory must
 * remain unchanged until the stream has executed the copy. Since 0.1.
 * Errors: those of spyre_memcpy_h2d().
 */
SPYRE_API spyre_status spyre_memcpy_h2d_async(spyre_stream *stream, spyre_devptr target,
					      const void *source, uint64_t bytes);

/**
 * Queues the copy of spyre_memcpy_d2h() on @stream and returns. The host memory must
 * remain allocated, and its contents are undefined, until the stream has executed the
 * copy. Since 0.1.
 * Errors: those of spyre_memcpy_h2d().
 */
SPYRE_API spyre_status spyre_memcpy_d2h_async(spyre_stream *stream, void *target,
					      spyre_devptr source, uint64_t bytes);

/**
 * Queues a copy of @bytes between two device addresses of the stream's context and
 * returns. Since 0.1.
 * Errors: those of spyre_memcpy_h2d().
 */
SPYRE_API spyre_status spyre_memcpy_d2d_async(spyre_stream *stream, spyre_devptr target,
					      spyre_devptr source, uint64_t bytes);

/**
 * Queues a fill of @bytes of device memory with repetitions of @pattern and returns.
 * @pattern_bytes is 1, 2, 4, 8 or 16, and @bytes a multiple of it; the pattern is
 * copied, byte by byte: its elements are little endian, as device memory is on every
 * host. Since 0.1.
 * Errors: those of spyre_memcpy_h2d().
 */
SPYRE_API spyre_status spyre_memset_async(spyre_stream *stream, spyre_devptr target,
					  const void *pattern, size_t pattern_bytes,
					  uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_MEMORY_H */
