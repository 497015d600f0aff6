/* SPDX-License-Identifier: MIT */
/* Device memory, pinned host memory, copies. */
#ifndef SPYRE_MEMORY_H
#define SPYRE_MEMORY_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Device memory of the context's card. free + used = total, always. Since 0.1. */
typedef struct spyre_memory_info {
	/** in: sizeof(struct spyre_memory_info). */
	size_t struct_size;
	uint64_t total;
	uint64_t free;
	/** Used by everyone on the card, or kept for other users: not for this context. */
	uint64_t used;
	/** Used by this context, and the peak of it. */
	uint64_t context_used;
	uint64_t context_peak;
	/** Largest single allocation that could succeed now. */
	uint64_t largest_free;
	/** Live allocations of this context. */
	uint64_t allocations;
} spyre_memory_info;

/**
 * Allocates @bytes of zeroed device memory, rounded up to 128. 0 bytes is
 * success with address 0. Since 0.1.
 * Errors: OUT_OF_DEVICE_MEMORY (never sticky; says requested, free, largest).
 */
SPYRE_API spyre_status spyre_mem_alloc(spyre_context *context, uint64_t bytes,
				       spyre_devptr *address);

/** Frees memory once queued work that may use it has finished. 0 is fine. Since 0.1.
 * Errors: INVALID_ADDRESS (not the start of a live allocation). */
SPYRE_API spyre_status spyre_mem_free(spyre_context *context, spyre_devptr address);

SPYRE_API spyre_status spyre_mem_info(spyre_context *context, spyre_memory_info *info);

/**
 * A dma-buf of the memory that @address, which may be an interior one, lies in,
 * to be passed to another process (SCM_RIGHTS) or driver. The caller closes
 * @fd. @offset is where @address lies in it; @bytes, which may be NULL, is how
 * much of its allocation follows. The dma-buf is the whole mapping: allocations
 * below 1 MiB share theirs with others of this context, so allocate more, or
 * trust who gets it. It keeps the memory until the last one closes it, also
 * past spyre_mem_free(). Nothing orders the work of two processes: synchronize
 * before you tell the other one. Since 0.1.
 * Errors: INVALID_ADDRESS, UNSUPPORTED (embedded cards: their memory is their
 * process's own).
 */
SPYRE_API spyre_status spyre_mem_export_dmabuf(spyre_context *context, spyre_devptr address,
					       int *fd, uint64_t *offset, uint64_t *bytes);

/**
 * Maps @bytes at @offset, a multiple of 128, of a dma-buf at a device address of
 * this context; 0 bytes are all behind @offset. @fd stays the caller's and may
 * be closed. spyre_mem_free() ends the mapping, and the memory is not counted
 * as this context's. Since 0.1.
 * Errors: INVALID_ARGUMENT (no dma-buf, or not so large), UNSUPPORTED.
 */
SPYRE_API spyre_status spyre_mem_import_dmabuf(spyre_context *context, int fd, uint64_t offset,
					       uint64_t bytes, spyre_devptr *address);

/** Names memory across processes; plain bytes, to be sent in any way. Since 0.1. */
typedef struct spyre_ipc_handle {
	uint64_t opaque[8];
} spyre_ipc_handle;

/**
 * A handle of the memory at @address, for processes of this machine that may
 * trace this one (same user; see ptrace(2), prctl(2) PR_SET_PTRACER). Valid
 * until the memory is freed. What holds for spyre_mem_export_dmabuf() holds
 * here. Since 0.1.
 */
SPYRE_API spyre_status spyre_ipc_get_handle(spyre_context *context, spyre_devptr address,
					    spyre_ipc_handle *handle);
/**
 * Maps the memory of a handle, from the address that it was made of to the end
 * of that allocation. spyre_mem_free() closes it. Since 0.1.
 * Errors: INVALID_ARGUMENT (not a handle, or the memory or process is gone),
 * NO_PERMISSION (names the setting), UNSUPPORTED.
 */
SPYRE_API spyre_status spyre_ipc_open_handle(spyre_context *context,
					     const spyre_ipc_handle *handle,
					     spyre_devptr *address);

/** Kind of memory an address is in. */
typedef enum spyre_memory_kind {
	SPYRE_MEMORY_UNKNOWN = 0,
	SPYRE_MEMORY_DEVICE = 1,
	SPYRE_MEMORY_PINNED_HOST = 2,
} spyre_memory_kind;

/** What an address, also an interior one, belongs to. Since 0.1. */
typedef struct spyre_pointer_info {
	size_t struct_size;
	spyre_memory_kind kind;
	/** Start and bytes of the allocation. */
	uint64_t base;
	uint64_t size;
	/** Offset of the queried address in it. */
	uint64_t offset;
} spyre_pointer_info;

/** Looks up a device address. Unknown ones give kind UNKNOWN, not an error. Since 0.1. */
SPYRE_API spyre_status spyre_pointer_query(spyre_context *context, spyre_devptr address,
					   spyre_pointer_info *info);

/** Looks up a host address: PINNED_HOST or UNKNOWN. Since 0.1. */
SPYRE_API spyre_status spyre_host_pointer_query(spyre_context *context, const void *address,
						spyre_pointer_info *info);

/** Allocates page-aligned pinned host memory that the DMA engine reaches without
 * pinning per copy. Free with spyre_host_free(). Since 0.1. */
SPYRE_API spyre_status spyre_host_alloc(spyre_context *context, size_t bytes, void **address);
/** Frees pinned host memory once queued copies that use it have finished. Since 0.1. */
SPYRE_API spyre_status spyre_host_free(spyre_context *context, void *address);

/**
 * Tiled copies with format conversion. @layout says how the tensor lies at
 * @device. Padding is zeroed on the way in and skipped on the way out; no host
 * byte outside the tensor's elements is touched. The _async forms return once
 * queued; host memory must stay as it is until the stream gets past them.
 * Since 0.1.
 * Errors: LAYOUT (does not fit tensor or allocation), FORMAT, INVALID_ADDRESS,
 * and the stream's error.
 */
SPYRE_API spyre_status spyre_copy_h2d(spyre_context *context, spyre_devptr device,
				      const spyre_layout *layout,
				      const spyre_host_tensor *source);
SPYRE_API spyre_status spyre_copy_h2d_async(spyre_stream *stream, spyre_devptr device,
					    const spyre_layout *layout,
					    const spyre_host_tensor *source);
SPYRE_API spyre_status spyre_copy_d2h(spyre_context *context, const spyre_host_tensor *target,
				      spyre_devptr device, const spyre_layout *layout);
SPYRE_API spyre_status spyre_copy_d2h_async(spyre_stream *stream,
					    const spyre_host_tensor *target,
					    spyre_devptr device, const spyre_layout *layout);

/**
 * Copies a tensor from one layout to another; @rank and @size are its host
 * shape, which both layouts must describe. Equal layouts copy bytes; others go
 * through host memory of the library. In one format all bits stay as they are.
 * Since 0.1.
 */
SPYRE_API spyre_status spyre_copy_d2d(spyre_context *context, spyre_devptr target,
				      const spyre_layout *target_layout, spyre_devptr source,
				      const spyre_layout *source_layout, uint32_t rank,
				      const int64_t *size);
SPYRE_API spyre_status spyre_copy_d2d_async(spyre_stream *stream, spyre_devptr target,
					    const spyre_layout *target_layout,
					    spyre_devptr source,
					    const spyre_layout *source_layout, uint32_t rank,
					    const int64_t *size);

/** Plain byte copies and fills of device memory. Since 0.1. */
SPYRE_API spyre_status spyre_memcpy_h2d(spyre_context *context, spyre_devptr target,
					const void *source, uint64_t bytes);
SPYRE_API spyre_status spyre_memcpy_d2h(spyre_context *context, void *target,
					spyre_devptr source, uint64_t bytes);
SPYRE_API spyre_status spyre_memcpy_h2d_async(spyre_stream *stream, spyre_devptr target,
					      const void *source, uint64_t bytes);
SPYRE_API spyre_status spyre_memcpy_d2h_async(spyre_stream *stream, void *target,
					      spyre_devptr source, uint64_t bytes);
SPYRE_API spyre_status spyre_memcpy_d2d_async(spyre_stream *stream, spyre_devptr target,
					      spyre_devptr source, uint64_t bytes);
/** Fills device memory. @pattern_bytes: 1, 2, 4, 8 or 16; @bytes a multiple of
 * it. Since 0.1. */
SPYRE_API spyre_status spyre_memset_async(spyre_stream *stream, spyre_devptr target,
					  const void *pattern, size_t pattern_bytes,
					  uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_MEMORY_H */
