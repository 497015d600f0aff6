/* SPDX-License-Identifier: MIT */
/*
 * Copies between two contexts of one process: of two cards, of two virtual functions of
 * one card, or of the same card. Events order work across contexts, too: see
 * spyre_stream_wait_event().
 */
#ifndef SPYRE_PEER_H
#define SPYRE_PEER_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The way of a copy between two contexts. Since 0.1. */
typedef enum spyre_peer_path {
	/** There is none: the contexts use two backends, or the kernel module is too old. */
	SPYRE_PEER_NONE = 0,
	/** Within the memory of one card. */
	SPYRE_PEER_SAME_CARD = 1,
	/** From card to card: both are below one PCIe switch. */
	SPYRE_PEER_SWITCH = 2,
	/** Through the memory of the host. */
	SPYRE_PEER_HOST = 3,
} spyre_peer_path;

/**
 * Returns the way of copies between two contexts in @path; it is the same in both
 * directions. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_peer_can_access(spyre_context *context, spyre_context *peer,
					     spyre_peer_path *path);

/**
 * Returns in @path the way of copies between contexts of the visible cards @index and @peer,
 * 0 to spyre_device_count() - 1, as spyre_peer_can_access() does, but opens no card. A card
 * with itself is SAME_CARD. Since 0.1.
 * Errors: INVALID_ARGUMENT (@path is NULL), and those of spyre_device_get_properties().
 */
SPYRE_API spyre_status spyre_device_get_peer_path(int index, int peer, spyre_peer_path *path);

/** Arguments of spyre_memcpy_peer_2d_async(). Since 0.1. */
typedef struct spyre_peer_copy {
	/** in: sizeof(struct spyre_peer_copy). */
	size_t struct_size;
	spyre_context *target_context;
	spyre_devptr target;
	/** Bytes from one row to the next, at least @row_bytes; ignored for a single row. */
	uint64_t target_pitch;
	spyre_context *source_context;
	spyre_devptr source;
	uint64_t source_pitch;
	uint64_t row_bytes;
	/** Up to 2^31. */
	uint64_t rows;
} spyre_peer_copy;

/**
 * Queues a copy of @copy->rows rows of @copy->row_bytes bytes from one context's memory to
 * another's, or within one context, on @stream, and returns. Bytes between the rows are
 * not written, formats are not converted, and addresses need no alignment. The stream
 * belongs to one of the two contexts; its card does the work and counts it. The other
 * context's streams are not involved: order the copy with their work by events. No rows, or
 * rows of 0 bytes, copy nothing. @copy itself is copied.
 *
 * Memory at either end may be freed, and its context may be destroyed, as soon as the call
 * has returned: the memory is kept, and the destruction waits, until the copy has ended. If
 * meanwhile the card of the other context is reset or removed, or work of that context
 * fails, the copy fails with PEER_LOST, and so does its stream; other streams of its context
 * go on. spyre_context_reset() of the other context does not disturb the copy.
 *
 * Rows of source and target must not overlap; if the pitches differ, rows that interleave
 * count as overlapping. A copy cannot be captured. Since 0.1.
 * Errors: INVALID_ARGUMENT (contexts, pitches, sizes, overlap), INVALID_ADDRESS,
 * PEER_LOST, UNSUPPORTED (there is no path between the contexts), CAPTURE, and the
 * stream's error.
 */
SPYRE_API spyre_status spyre_memcpy_peer_2d_async(spyre_stream *stream,
						  const spyre_peer_copy *copy);

/**
 * Queues a copy of @bytes from @source of @source_context to @target of @target_context on
 * @stream and returns: spyre_memcpy_peer_2d_async() of one row. Within one context the
 * ranges may overlap, as for spyre_memcpy_d2d_async(). Since 0.1.
 * Errors: those of spyre_memcpy_peer_2d_async().
 */
SPYRE_API spyre_status spyre_memcpy_peer_async(spyre_stream *stream,
					       spyre_context *target_context, spyre_devptr target,
					       spyre_context *source_context, spyre_devptr source,
					       uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_PEER_H */
