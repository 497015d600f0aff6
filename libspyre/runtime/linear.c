// SPDX-License-Identifier: MIT
/*
 * Plain byte copies and fills, at any address. The DMA engine starts at whole
 * sticks only, so the bytes before the first whole stick go through a scratch
 * stick of the stream and a device copy, which takes any address; the rest is
 * moved as rows of 256 int64, rows of 256 bytes and one short row, without
 * conversion. The DMA engine of a big-endian host swaps the bytes of elements, but
 * these bytes have no order, so they are elements of one byte there.
 */
#include <inttypes.h>

#include "libspyre/base/error.h"
#include "libspyre/runtime/copy.h"

#define ROW_LANES 256u
#define SCRATCH_BYTES 128u

/* The commands of one plain copy and their arguments. */
struct linear {
	struct spyre_command commands[5];
	struct spyre_dma_desc descs[4];
	uint32_t num_commands;
	uint32_t num_descs;
	enum spyre_dma_dir direction;
};

static spyre_status scratch_get(struct spyre_stream *stream, uint64_t *address)
{
	uint64_t scratch = atomic_load(&stream->scratch), mine;

	if (!scratch) {
		TRY(spyre_mem_alloc(stream->context, SCRATCH_BYTES, &mine));
		if (atomic_compare_exchange_strong(&stream->scratch, &scratch, mine))
			scratch = mine;
		else
			spyre_mem_free(stream->context, mine);
	}
	*address = scratch;
	return SPYRE_SUCCESS;
}

/* Adds a DMA of @rows rows of @lanes elements, dense on both sides. */
static void add_dma(struct linear *l, uint64_t device, void *host, enum spyre_fmt format,
		    uint64_t rows, uint32_t lanes)
{
	struct spyre_dma_desc *desc = &l->descs[l->num_descs++];
	struct spyre_command *command = &l->commands[l->num_commands++];
	uint32_t bytes = spyre_fmt_bytes(format);

	*desc = (struct spyre_dma_desc){
		.direction = l->direction,
		.host_format = format,
		.device_format = format,
		.num_dims = 2,
		.dim = {
			{ .count = rows, .host_stride = (uint64_t)lanes * bytes },
			{ .count = lanes, .host_stride = bytes },
		},
	};
	*command = (struct spyre_command){ .type = SPYRE_COMMAND_DMA };
	command->dma.desc = desc;
	command->dma.device = device;
	command->dma.host = host;
	command->dma.host_bytes = rows * lanes * bytes;
}

static void add_copy(struct linear *l, uint64_t dst, uint64_t src, uint64_t bytes)
{
	l->commands[l->num_commands++] = (struct spyre_command){
		.type = SPYRE_COMMAND_COPY, .copy = { dst, src, bytes },
	};
}

static void add_head(struct linear *l, uint64_t scratch, uint64_t device, void *host,
		     uint32_t bytes)
{
	if (l->direction == SPYRE_DMA_D2H)
		add_copy(l, scratch, device, bytes);
	add_dma(l, scratch, host, SPYRE_FMT_SENINT8, 1, bytes);
	if (l->direction == SPYRE_DMA_H2D)
		add_copy(l, device, scratch, bytes);
}

static void add_body(struct linear *l, uint64_t device, char *host, uint64_t bytes)
{
	static const enum spyre_fmt formats[] = {
		SPYRE_BIG_ENDIAN ? SPYRE_FMT_SENINT8 : SPYRE_FMT_IEEE_INT64, SPYRE_FMT_SENINT8,
	};

	for (int i = 0; i < 2; i++) {
		uint64_t row = ROW_LANES * spyre_fmt_bytes(formats[i]);
		uint64_t rows = bytes / row;

		if (!rows)
			continue;
		add_dma(l, device, host, formats[i], rows, ROW_LANES);
		device += rows * row;
		host += rows * row;
		bytes -= rows * row;
	}
	if (bytes)
		add_dma(l, device, host, SPYRE_FMT_SENINT8, 1, bytes);
}

static spyre_status linear_queue(struct spyre_stream *stream, enum spyre_dma_dir direction,
				 uint64_t device, void *host, uint64_t bytes, uint64_t *seq)
{
	const char *what = direction == SPYRE_DMA_H2D ? "plain copy to the device" :
						       "plain copy from the device";
	struct spyre_work work = { .what = what };
	struct linear l = { .direction = direction };
	struct spyre_span span = {
		.address = device, .bytes = bytes, .what = what, .index = -1,
	};
	uint32_t head = -device % SPYRE_STICK;
	spyre_status status = spyre_stream_check(stream);
	uint64_t scratch;

	*seq = 0;
	if (status || !bytes)
		return status;
	if (!host)
		return spyre_null_argument(what, "the host address");
	status = spyre_memory_check(stream->context, &span, 1);
	if (status)
		return status;
	if (head > bytes)
		head = bytes;
	if (head) {
		status = scratch_get(stream, &scratch);
		if (status)
			return status;
		add_head(&l, scratch, device, host, head);
	}
	add_body(&l, device + head, (char *)host + head, bytes - head);
	work.commands = l.commands;
	work.num_commands = l.num_commands;
	return spyre_stream_enqueue(stream, &work, seq);
}

spyre_status spyre_memcpy_h2d_async(spyre_stream *stream, spyre_devptr target,
				    const void *source, uint64_t bytes)
{
	uint64_t seq;

	return linear_queue(stream, SPYRE_DMA_H2D, target, (void *)(uintptr_t)source, bytes, &seq);
}

spyre_status spyre_memcpy_d2h_async(spyre_stream *stream, void *target, spyre_devptr source,
				    uint64_t bytes)
{
	uint64_t seq;

	return linear_queue(stream, SPYRE_DMA_D2H, source, target, bytes, &seq);
}

spyre_status spyre_memcpy_h2d(spyre_context *context, spyre_devptr target, const void *source,
			      uint64_t bytes)
{
	spyre_stream *stream;
	spyre_status status = spyre_capture_refuse_default(context, "spyre_memcpy_h2d", &stream);
	uint64_t seq;

	if (!status)
		status = linear_queue(stream, SPYRE_DMA_H2D, target, (void *)(uintptr_t)source,
				      bytes, &seq);
	return status ? status : spyre_stream_finish(stream, seq);
}

spyre_status spyre_memcpy_d2h(spyre_context *context, void *target, spyre_devptr source,
			      uint64_t bytes)
{
	spyre_stream *stream;
	spyre_status status = spyre_capture_refuse_default(context, "spyre_memcpy_d2h", &stream);
	uint64_t seq;

	if (!status)
		status = linear_queue(stream, SPYRE_DMA_D2H, source, target, bytes, &seq);
	return status ? status : spyre_stream_finish(stream, seq);
}

spyre_status spyre_memcpy_d2d_async(spyre_stream *stream, spyre_devptr target,
				    spyre_devptr source, uint64_t bytes)
{
	struct spyre_span spans[2] = {
		{ .address = target, .bytes = bytes, .what = "plain copy, target", .index = -1 },
		{ .address = source, .bytes = bytes, .what = "plain copy, source", .index = -1 },
	};
	struct spyre_command command = {
		.type = SPYRE_COMMAND_COPY, .copy = { target, source, bytes },
	};
	struct spyre_work work = {
		.what = "plain copy on the device", .commands = &command, .num_commands = 1,
	};
	spyre_status status = spyre_stream_check(stream);

	if (status || !bytes)
		return status;
	status = spyre_memory_check(stream->context, spans, 2);
	if (status)
		return status;
	return spyre_stream_enqueue(stream, &work, NULL);
}

spyre_status spyre_memset_async(spyre_stream *stream, spyre_devptr target, const void *pattern,
				size_t pattern_bytes, uint64_t bytes)
{
	struct spyre_span span = {
		.address = target, .bytes = bytes, .what = "fill", .index = -1,
	};
	struct spyre_command command = {
		.type = SPYRE_COMMAND_FILL,
		.fill = { .dst = target, .bytes = bytes, .pattern_bytes = pattern_bytes },
	};
	struct spyre_work work = { .what = "fill", .commands = &command, .num_commands = 1 };
	spyre_status status = spyre_stream_check(stream);

	if (status)
		return status;
	if (!pattern)
		return spyre_null_argument("spyre_memset_async", "pattern");
	if (!pattern_bytes || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) ||
	    bytes % pattern_bytes)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_memset_async: %" PRIu64 " bytes with a pattern of %zu: a "
				   "pattern has 1, 2, 4, 8 or 16 bytes and fits a whole number of times",
				   bytes, pattern_bytes);
	if (!bytes)
		return SPYRE_SUCCESS;
	status = spyre_memory_check(stream->context, &span, 1);
	if (status)
		return status;
	memcpy(command.fill.pattern, pattern, pattern_bytes);
	return spyre_stream_enqueue(stream, &work, NULL);
}
