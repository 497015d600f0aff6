/* SPDX-License-Identifier: MIT */
/*
 * Uses of a context's memory by streams of other contexts. Internal.
 *
 * A use is a stream and the number of its last operation that copies from or to the
 * memory of the owner. Memory that the owner frees, and the owner itself, have to outlive
 * this operation. One lock, a leaf, protects the uses of all contexts.
 */
#ifndef SPYRE_RUNTIME_PEER_H
#define SPYRE_RUNTIME_PEER_H

#include "libspyre/runtime/stream.h"

/* Notes that operation @seq of @stream uses @owner's memory; false if memory is short. */
bool spyre_peer_use(struct spyre_context *owner, struct spyre_stream *stream, uint64_t seq);
/*
 * The uses of @owner's memory that have not ended, each with a reference; the caller frees
 * the list. NULL if *count is 0 or memory is short.
 */
struct spyre_free_point *spyre_peer_points(struct spyre_context *owner, uint32_t *count);
/* Fails with BUSY in a host function of a stream that uses @owner's memory. */
spyre_status spyre_peer_check_caller(struct spyre_context *owner);
/*
 * Waits for the uses of @context's memory, and drops the references to its streams, whose
 * work has ended. For destruction.
 */
void spyre_peer_settle(struct spyre_context *context);

#endif /* SPYRE_RUNTIME_PEER_H */
