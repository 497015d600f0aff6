// SPDX-License-Identifier: MIT
/* Copies between the memories of two contexts. */
#include <inttypes.h>
#include <stdio.h>

#include <spyre/peer.h>

#include "libspyre/base/check.h"
#include "libspyre/base/error.h"
#include "libspyre/base/peer_path.h"
#include "libspyre/runtime/peer.h"

static const char what[] = "peer copy";

static spyre_peer_path path_of(const struct spyre_context *a, const struct spyre_context *b)
{
	if (a == b)
		return SPYRE_PEER_SAME_CARD;
	if (a->ops != b->ops || !a->card->peers || !b->card->peers)
		return SPYRE_PEER_NONE;
	return spyre_peer_path_between((int32_t)a->card->link_index,
				       (int32_t)b->card->link_index);
}

spyre_status spyre_peer_can_access(spyre_context *context, spyre_context *peer,
				   spyre_peer_path *path)
{
	TRY(spyre_context_check(context));
	TRY(spyre_context_check(peer));
	if (!path)
		return spyre_null_argument("spyre_peer_can_access", "path");
	*path = path_of(context, peer);
	return SPYRE_SUCCESS;
}

spyre_status spyre_device_get_peer_path(int index, int peer, spyre_peer_path *path)
{
	const struct spyre_backend_ops *ops;
	int physical[2];
	int32_t card[2];

	if (!path)
		return spyre_null_argument("spyre_device_get_peer_path", "path");
	TRY(spyre_device_resolve(index, &ops, &physical[0]));
	TRY(spyre_device_resolve(peer, &ops, &physical[1]));
	TRY(ops->peer_index(physical[0], &card[0]));
	TRY(ops->peer_index(physical[1], &card[1]));
	*path = physical[0] == physical[1] ? SPYRE_PEER_SAME_CARD :
					     spyre_peer_path_between(card[0], card[1]);
	return SPYRE_SUCCESS;
}

/* Checks one end, which has @bytes from the first byte to the end of the last row. */
static spyre_status check_end(struct spyre_context *context, const char *end, spyre_devptr address,
			      uint64_t bytes)
{
	struct spyre_span span = { .address = address, .bytes = bytes, .what = end, .index = -1 };
	spyre_status status = spyre_memory_check(context, &span, 1);

	return status ? spyre_error_prefix(status, "%s, card %d", what, context->index) :
			SPYRE_SUCCESS;
}

static spyre_status check_contexts(const struct spyre_stream *stream, const spyre_peer_copy *copy)
{
	const struct spyre_context *target = copy->target_context, *source = copy->source_context;

	TRY(spyre_context_check(target));
	TRY(spyre_context_check(source));
	if (stream->context != target && stream->context != source)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot queue the %s on stream %d: it belongs to a third context, of "
				   "card %d; use a stream of the source's or the target's context", what,
				   stream->id, stream->context->index);
	if (path_of(target, source) == SPYRE_PEER_NONE && target->ops != source->ops)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "cannot copy between card %d and card %d: one is embedded and the "
				   "other one is the kernel's; copy through host memory", source->index,
				   target->index);
	if (path_of(target, source) == SPYRE_PEER_NONE)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "cannot copy between card %d and card %d: the kernel module is older "
				   "than interface 1.4; load the module that was built with this library",
				   source->index, target->index);
	return SPYRE_SUCCESS;
}

static spyre_status check_copy(const struct spyre_stream *stream, const spyre_peer_copy *copy,
			       const struct spyre_rows *rows)
{
	const bool same = copy->target_context == copy->source_context;
	uint64_t target = 0, source = 0;
	enum spyre_stop stop = spyre_rows_check(rows, &target, &source);

	if (stop == SPYRE_STOP_DMA_SHAPE && rows->rows <= UINT64_C(1) << 31)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy %" PRIu64 " rows of %" PRIu64 " bytes with a pitch of %"
				   PRIu64 " (source) and %" PRIu64 " (target): a pitch must not be "
				   "smaller than the row", rows->rows, rows->row_bytes,
				   rows->src_stride, rows->dst_stride);
	if (stop)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy %" PRIu64 " rows of %" PRIu64 " bytes: a copy has at most "
				   "2^31 rows, and either end reaches over at most 2^34 bytes",
				   rows->rows, rows->row_bytes);
	TRY(check_end(copy->target_context, "target", copy->target, target));
	TRY(check_end(copy->source_context, "source", copy->source, source));
	if (same && spyre_rows_overlap(rows, copy->target, copy->source))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy %" PRIu64 " rows of %" PRIu64 " bytes from 0x%" PRIx64
				   " to 0x%" PRIx64 ": the rows overlap; copy through other memory",
				   rows->rows, rows->row_bytes, copy->source, copy->target);
	return SPYRE_SUCCESS;
}

spyre_status spyre_memcpy_peer_2d_async(spyre_stream *stream, const spyre_peer_copy *copy)
{
	struct spyre_command command = { .type = SPYRE_COMMAND_PEER };
	struct spyre_work work = { .what = what, .commands = &command, .num_commands = 1 };
	struct spyre_context *far;
	struct spyre_rows rows;
	uint64_t seq;

	TRY(spyre_stream_check(stream));
	TRY(spyre_struct_check("spyre_memcpy_peer_2d_async", "peer_copy", copy));
	if (copy->struct_size < sizeof(*copy))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_memcpy_peer_2d_async: struct_size is %zu, expected at least %zu",
				   copy->struct_size, sizeof(*copy));
	TRY(check_contexts(stream, copy));
	if (!copy->rows || !copy->row_bytes)
		return SPYRE_SUCCESS;
	rows = (struct spyre_rows){
		.rows = copy->rows, .row_bytes = copy->row_bytes,
		.dst_stride = copy->target_pitch, .src_stride = copy->source_pitch,
	};
	TRY(check_copy(stream, copy, &rows));
	command.peer.sends = stream->context == copy->source_context;
	far = command.peer.sends ? copy->target_context : copy->source_context;
	command.peer.card = far->card;
	command.peer.local = command.peer.sends ? copy->source : copy->target;
	command.peer.remote = command.peer.sends ? copy->target : copy->source;
	command.peer.rows = rows;
	TRY(spyre_stream_enqueue(stream, &work, &seq));
	/* Without memory for the note, nothing may be freed before the copy has ended. */
	if (far != stream->context && !spyre_peer_use(far, stream, seq))
		return spyre_stream_wait_seq(stream, seq, INT64_MAX);
	return SPYRE_SUCCESS;
}

spyre_status spyre_memcpy_peer_async(spyre_stream *stream, spyre_context *target_context,
				     spyre_devptr target, spyre_context *source_context,
				     spyre_devptr source, uint64_t bytes)
{
	const spyre_peer_copy copy = {
		.struct_size = sizeof(copy),
		.target_context = target_context, .target = target,
		.source_context = source_context, .source = source,
		.row_bytes = bytes, .rows = 1,
	};

	if (stream && target_context == source_context && target_context &&
	    spyre_stream_context(stream) == target_context)
		return spyre_memcpy_d2d_async(stream, target, source, bytes);
	return spyre_memcpy_peer_2d_async(stream, &copy);
}
