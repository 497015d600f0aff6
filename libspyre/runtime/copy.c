// SPDX-License-Identifier: MIT
/* Tiled copies: a layout and a host tensor become a DMA command. */
#include <inttypes.h>
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/transfer.h"
#include "libspyre/runtime/copy.h"

spyre_status spyre_copy_check_device(struct spyre_context *context, const char *what,
				     spyre_devptr device, uint64_t bytes)
{
	struct spyre_span span = {
		.address = device, .bytes = bytes, .what = what, .index = -1,
	};

	if (device % SPYRE_STICK)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				   "%s: 0x%" PRIx64 " is not 128-byte aligned; use the start of an "
				   "allocation plus a multiple of 128", what, device);
	return spyre_memory_check(context, &span, 1);
}

static spyre_status transfer_queue(struct spyre_stream *stream, const char *what,
				   spyre_devptr device, const struct spyre_transfer *transfer,
				   uint64_t *seq)
{
	struct spyre_command command = {
		.type = SPYRE_COMMAND_DMA,
		.dma = {
			.desc = &transfer->desc,
			.device = device,
			.host = transfer->host,
			.host_bytes = transfer->host_bytes,
		},
	};
	struct spyre_work work = { .what = what, .commands = &command, .num_commands = 1 };

	TRY(spyre_copy_check_device(stream->context, what, device, transfer->device_bytes));
	return spyre_stream_enqueue(stream, &work, seq);
}

static spyre_status copy_tensor(struct spyre_stream *stream, enum spyre_dma_dir direction,
				spyre_devptr device, const spyre_layout *layout,
				const spyre_host_tensor *tensor, uint64_t *seq)
{
	const char *what = direction == SPYRE_DMA_H2D ? "copy to the device" :
						       "copy from the device";
	spyre_status status = spyre_stream_check(stream);
	struct spyre_transfer transfer;

	if (status)
		return status;
	if (!layout || !tensor)
		return spyre_null_argument(what, layout ? "the tensor" : "the layout");
	status = spyre_transfer_init(&transfer, direction, layout, tensor);
	if (status)
		return spyre_error_prefix(status, "%s", what);
	if (!transfer.device_bytes) {
		*seq = 0;
		return SPYRE_SUCCESS;
	}
	return transfer_queue(stream, what, device, &transfer, seq);
}

spyre_status spyre_copy_h2d_async(spyre_stream *stream, spyre_devptr device,
				  const spyre_layout *layout, const spyre_host_tensor *source)
{
	uint64_t seq;

	return copy_tensor(stream, SPYRE_DMA_H2D, device, layout, source, &seq);
}

spyre_status spyre_copy_d2h_async(spyre_stream *stream, const spyre_host_tensor *target,
				  spyre_devptr device, const spyre_layout *layout)
{
	uint64_t seq;

	return copy_tensor(stream, SPYRE_DMA_D2H, device, layout, target, &seq);
}

spyre_status spyre_copy_h2d(spyre_context *context, spyre_devptr device,
			    const spyre_layout *layout, const spyre_host_tensor *source)
{
	spyre_stream *stream;
	spyre_status status = spyre_capture_refuse_default(context, "spyre_copy_h2d", &stream);
	uint64_t seq;

	if (!status)
		status = copy_tensor(stream, SPYRE_DMA_H2D, device, layout, source, &seq);
	return status ? status : spyre_stream_finish(stream, seq);
}

spyre_status spyre_copy_d2h(spyre_context *context, const spyre_host_tensor *target,
			    spyre_devptr device, const spyre_layout *layout)
{
	spyre_stream *stream;
	spyre_status status = spyre_capture_refuse_default(context, "spyre_copy_d2h", &stream);
	uint64_t seq;

	if (!status)
		status = copy_tensor(stream, SPYRE_DMA_D2H, device, layout, target, &seq);
	return status ? status : spyre_stream_finish(stream, seq);
}

static bool is_float(spyre_format format)
{
	switch (format) {
	case SPYRE_FORMAT_SEN169_FP16:
	case SPYRE_FORMAT_IEEE_FP32:
	case SPYRE_FORMAT_SEN143_FP8:
	case SPYRE_FORMAT_SEN152_FP8:
	case SPYRE_FORMAT_SEN153_FP9:
	case SPYRE_FORMAT_SEN18F_FP24:
	case SPYRE_FORMAT_IEEE_FP16:
	case SPYRE_FORMAT_BFLOAT16:
		return true;
	default:
		return false;
	}
}

static bool convertible(spyre_format host, spyre_format device)
{
	return spyre_fmt_convertible((enum spyre_fmt)host, (enum spyre_fmt)device);
}

/* Host format through which values pass from one device format to another. */
static spyre_format through_format(spyre_format from, spyre_format to)
{
	static const spyre_format integers[] = {
		SPYRE_FORMAT_IEEE_INT64, SPYRE_FORMAT_IEEE_INT32, SPYRE_FORMAT_SENINT16,
		SPYRE_FORMAT_SENINT8, SPYRE_FORMAT_UINT8, SPYRE_FORMAT_BOOL,
	};

	/* Equal formats pass through the host without conversion. */
	if (from == to && convertible(from, to) && spyre_format_bytes(from))
		return from;
	/* fp32 holds the values of all the card's floating-point formats exactly. */
	if (is_float(from) && is_float(to))
		return convertible(SPYRE_FORMAT_IEEE_FP32, from) &&
		       convertible(SPYRE_FORMAT_IEEE_FP32, to) ? SPYRE_FORMAT_IEEE_FP32 :
								 SPYRE_FORMAT_INVALID;
	/* Integers and floats do not convert here: a program decides how to round. */
	if (is_float(from) != is_float(to))
		return SPYRE_FORMAT_INVALID;
	for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
		if (convertible(integers[i], from) && convertible(integers[i], to))
			return integers[i];
	return SPYRE_FORMAT_INVALID;
}

/* State of a copy between layouts; out->device_bytes is 0 if the tensor is empty. */
struct restick {
	void *host;
	size_t host_bytes;
	struct spyre_transfer out;
	struct spyre_transfer in;
};

static spyre_status restick_prepare(struct spyre_context *context, struct restick *r,
				    const spyre_layout *to, const spyre_layout *from,
				    uint32_t rank, const int64_t *size)
{
	spyre_format format = through_format(from->device_format, to->device_format);
	spyre_host_tensor tensor;
	spyre_status status;
	uint64_t bytes;

	if (!format)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "copy on the device: no host format holds the values of both %s and %s",
				   spyre_format_name(from->device_format),
				   spyre_format_name(to->device_format));
	status = spyre_host_tensor_dense(&tensor, NULL, format, rank, size);
	if (status)
		return status;
	bytes = spyre_format_bytes(format);
	for (uint32_t i = 0; i < rank; i++)
		if (__builtin_mul_overflow(bytes, (uint64_t)size[i], &bytes))
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "copy on the device: the shape has too many elements");
	r->out.device_bytes = 0;
	if (!bytes)
		return SPYRE_SUCCESS;
	r->host_bytes = (bytes + SPYRE_VA_PAGE - 1) & ~(SPYRE_VA_PAGE - 1);
	status = spyre_staging_get(context, &r->host_bytes, &r->host);
	if (status)
		return status;
	tensor.data = r->host;
	status = spyre_transfer_init(&r->out, SPYRE_DMA_D2H, from, &tensor);
	if (status)
		status = spyre_error_prefix(status, "copy on the device, source");
	else
		status = spyre_transfer_init(&r->in, SPYRE_DMA_H2D, to, &tensor);
	if (status)
		spyre_staging_put(context, r->host, r->host_bytes);
	return status;
}

static spyre_status restick_queue(struct spyre_stream *stream, spyre_devptr target,
				  spyre_devptr source, struct restick *r, uint64_t *seq)
{
	struct spyre_command commands[2] = {
		{
			.type = SPYRE_COMMAND_DMA,
			.dma = { &r->out.desc, source, r->out.host, r->out.host_bytes },
		}, {
			.type = SPYRE_COMMAND_DMA,
			.dma = { &r->in.desc, target, r->in.host, r->in.host_bytes },
		},
	};
	struct spyre_work work = {
		.what = "copy on the device", .commands = commands, .num_commands = 2,
		.staging = r->host, .staging_bytes = r->host_bytes,
	};
	spyre_status status;

	status = spyre_copy_check_device(stream->context, "copy source", source,
					 r->out.device_bytes);
	if (!status)
		status = spyre_copy_check_device(stream->context, "copy target", target,
						 r->in.device_bytes);
	if (!status)
		status = spyre_stream_enqueue(stream, &work, seq);
	if (status)
		spyre_staging_put(stream->context, r->host, r->host_bytes);
	return status;
}

static spyre_status copy_bytes(struct spyre_stream *stream, spyre_devptr target,
			       spyre_devptr source, uint64_t bytes, uint64_t *seq)
{
	struct spyre_command command = {
		.type = SPYRE_COMMAND_COPY, .copy = { target, source, bytes },
	};
	struct spyre_work work = {
		.what = "copy on the device", .commands = &command, .num_commands = 1,
	};

	TRY(spyre_copy_check_device(stream->context, "copy source", source, bytes));
	TRY(spyre_copy_check_device(stream->context, "copy target", target, bytes));
	return spyre_stream_enqueue(stream, &work, seq);
}

/* Checks that a layout fits the shape, which equality of two layouts does not show. */
static spyre_status check_shape(const spyre_layout *layout, uint32_t rank, const int64_t *size,
				bool *empty)
{
	spyre_format format = through_format(layout->device_format, layout->device_format);
	struct spyre_transfer transfer;
	spyre_host_tensor tensor;
	spyre_status status;

	*empty = false;
	/* A format without a host form has no descriptor that could check the shape. */
	if (!format)
		return SPYRE_SUCCESS;
	/* The descriptor is only built as a check, so any address does. */
	status = spyre_host_tensor_dense(&tensor, &tensor, format, rank, size);
	if (!status)
		status = spyre_transfer_init(&transfer, SPYRE_DMA_D2H, layout, &tensor);
	if (status)
		return spyre_error_prefix(status, "copy on the device");
	*empty = !transfer.device_bytes;
	return SPYRE_SUCCESS;
}

static spyre_status copy_d2d(struct spyre_stream *stream, spyre_devptr target,
			     const spyre_layout *to, spyre_devptr source,
			     const spyre_layout *from, uint32_t rank, const int64_t *size,
			     uint64_t *seq)
{
	spyre_status status = spyre_stream_check(stream);
	struct restick r;
	bool empty;

	if (status)
		return status;
	if (!to || !from || (!size && rank))
		return spyre_null_argument("copy on the device", size ? "a layout" : "size");
	*seq = 0;
	if (spyre_layout_equal(to, from)) {
		status = check_shape(to, rank, size, &empty);
		if (status || empty)
			return status;
		return copy_bytes(stream, target, source, spyre_layout_bytes(to), seq);
	}
	status = restick_prepare(stream->context, &r, to, from, rank, size);
	if (status || !r.out.device_bytes)
		return status;
	return restick_queue(stream, target, source, &r, seq);
}

spyre_status spyre_copy_d2d_async(spyre_stream *stream, spyre_devptr target,
				  const spyre_layout *target_layout, spyre_devptr source,
				  const spyre_layout *source_layout, uint32_t rank,
				  const int64_t *size)
{
	uint64_t seq;

	return copy_d2d(stream, target, target_layout, source, source_layout, rank, size, &seq);
}

spyre_status spyre_copy_d2d(spyre_context *context, spyre_devptr target,
			    const spyre_layout *target_layout, spyre_devptr source,
			    const spyre_layout *source_layout, uint32_t rank,
			    const int64_t *size)
{
	spyre_stream *stream;
	spyre_status status = spyre_capture_refuse_default(context, "spyre_copy_d2d", &stream);
	uint64_t seq;

	if (!status)
		status = copy_d2d(stream, target, target_layout, source, source_layout, rank,
				  size, &seq);
	return status ? status : spyre_stream_finish(stream, seq);
}
