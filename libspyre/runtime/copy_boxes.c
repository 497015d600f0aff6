// SPDX-License-Identifier: MIT
/* Copies of lists of boxes: one DMA command each. */
#include <stdlib.h>

#include "libspyre/base/check.h"
#include "libspyre/base/error.h"
#include "libspyre/layout/box.h"
#include "libspyre/runtime/copy.h"

/* The commands of one submission and their descriptors. */
struct batch {
	struct spyre_command commands[SPYRE_MAX_COMMANDS];
	struct spyre_transfer transfers[SPYRE_MAX_COMMANDS];
	uint32_t count;
};

static spyre_status check_boxes(struct spyre_stream *stream, const spyre_box_copy *copy,
				const char *what)
{
	struct spyre_transfer transfer;
	spyre_status status;

	if (!stream->context->card->boxes)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "cannot copy boxes: the kernel module of %s is older than interface 1.3; load the module that was built with this library",
				   stream->context->card->properties.node);
	if (!copy->boxes)
		return spyre_null_argument("spyre_copy_boxes_async", "boxes");
	TRY(spyre_box_copy_check(copy));
	for (uint32_t i = 0; i < copy->num_boxes; i++) {
		TRY(spyre_box_transfer_init(&transfer, copy, i));
		if (!transfer.device_bytes)
			continue;
		status = spyre_copy_check_device(stream->context, what, copy->device,
						 transfer.device_bytes);
		if (status)
			return spyre_error_prefix(status, "box %u", i);
	}
	return SPYRE_SUCCESS;
}

static spyre_status flush(struct spyre_stream *stream, struct batch *batch, const char *what)
{
	struct spyre_work work = {
		.what = what, .commands = batch->commands, .num_commands = batch->count,
	};

	if (!batch->count)
		return SPYRE_SUCCESS;
	batch->count = 0;
	return spyre_stream_enqueue(stream, &work, NULL);
}

static spyre_status queue_boxes(struct spyre_stream *stream, const spyre_box_copy *copy,
				struct batch *batch, const char *what)
{
	for (uint32_t i = 0; i < copy->num_boxes; i++) {
		struct spyre_transfer *transfer = &batch->transfers[batch->count];

		TRY(spyre_box_transfer_init(transfer, copy, i));
		if (!transfer->device_bytes)
			continue;
		batch->commands[batch->count++] = (struct spyre_command){
			.type = SPYRE_COMMAND_DMA,
			.dma = {
				.desc = &transfer->desc, .device = copy->device,
				.host = transfer->host, .host_bytes = transfer->host_bytes,
			},
		};
		if (batch->count == SPYRE_MAX_COMMANDS)
			TRY(flush(stream, batch, what));
	}
	return flush(stream, batch, what);
}

spyre_status spyre_copy_boxes_async(spyre_stream *stream, const spyre_box_copy *copy)
{
	const char *what;
	struct batch *batch;
	spyre_status status;

	TRY(spyre_stream_check(stream));
	TRY(spyre_struct_check("spyre_copy_boxes_async", "box_copy", copy));
	if (copy->struct_size < sizeof(*copy))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_copy_boxes_async: struct_size is %zu, expected at least %zu",
				   copy->struct_size, sizeof(*copy));
	if (!copy->num_boxes)
		return SPYRE_SUCCESS;
	what = copy->direction == SPYRE_COPY_H2D ? "copy of boxes to the device" :
						   "copy of boxes from the device";
	TRY(check_boxes(stream, copy, what));
	batch = malloc(sizeof(*batch));
	if (!batch)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu bytes of the %s",
				   sizeof(*batch), what);
	batch->count = 0;
	status = queue_boxes(stream, copy, batch, what);
	free(batch);
	return status;
}
