// SPDX-License-Identifier: MIT
/* Parts of tensors in device memory: their runs, checks and copies. */
#include <inttypes.h>

#include "libspyre/comm/operation.h"

spyre_status spyre_comm_part_init(spyre_comm_part *part, spyre_devptr address,
				  const spyre_layout *layout)
{
	if (!part || !layout)
		return spyre_null_argument("spyre_comm_part_init", part ? "layout" : "part");
	*part = (spyre_comm_part){
		.address = address, .format = layout->device_format, .rows = 1,
		.row_bytes = spyre_layout_bytes(layout), .pitch = spyre_layout_bytes(layout),
	};
	return SPYRE_SUCCESS;
}

spyre_status spyre_comm_part_slice(spyre_comm_part *part, spyre_devptr address,
				   const spyre_layout *layout, uint32_t dim, int64_t first,
				   int64_t count)
{
	uint64_t outer = 1, inner = SPYRE_STICK;

	if (!part || !layout)
		return spyre_null_argument("spyre_comm_part_slice", part ? "layout" : "part");
	if (dim + 1 >= layout->device_rank)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_part_slice: dimension %u "
				   "is the stick or does not exist; the layout has %u dimensions", dim,
				   layout->device_rank);
	if (first < 0 || count < 0 || first > layout->device_size[dim] ||
	    count > layout->device_size[dim] - first)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_part_slice: entries "
				   "%" PRId64 " to %" PRId64 " are not within dimension %u of %" PRId64,
				   first, first + count - 1, dim, layout->device_size[dim]);
	for (uint32_t i = 0; i < dim; i++)
		outer *= (uint64_t)layout->device_size[i];
	for (uint32_t i = dim + 1; i + 1 < layout->device_rank; i++)
		inner *= (uint64_t)layout->device_size[i];
	*part = (spyre_comm_part){
		.address = address + (uint64_t)first * inner, .format = layout->device_format,
		.rows = outer, .row_bytes = (uint64_t)count * inner,
		.pitch = (uint64_t)layout->device_size[dim] * inner,
	};
	if (part->row_bytes == part->pitch) {
		part->row_bytes = part->pitch = outer * part->pitch;
		part->rows = 1;
	}
	return SPYRE_SUCCESS;
}

spyre_status comm_part_check(spyre_comm *comm, const spyre_comm_part *part, const char *name)
{
	spyre_pointer_info info = { .struct_size = sizeof(info) };
	uint64_t span;

	if (!comm_part_bytes(part))
		return SPYRE_SUCCESS;
	if ((part->address | part->row_bytes | part->pitch) % SPYRE_STICK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: address 0x%" PRIx64 ", rows of "
				   "%" PRIu64 " bytes and pitch %" PRIu64 " must be multiples of %u", name,
				   part->address, part->row_bytes, part->pitch, SPYRE_STICK);
	if (part->rows > 1 && part->pitch < part->row_bytes)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: the pitch of %" PRIu64 " bytes is "
				   "less than the %" PRIu64 " bytes of a row", name, part->pitch,
				   part->row_bytes);
	TRY(spyre_pointer_query(comm->context, part->address, &info));
	if (info.kind != SPYRE_MEMORY_DEVICE)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS, "%s: no allocation contains address "
				   "0x%" PRIx64, name, part->address);
	span = info.size - info.offset;
	if (part->row_bytes > span || (part->rows > 1 && (part->rows - 1) >
				       (span - part->row_bytes) / part->pitch))
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS, "%s: %" PRIu64 " rows of %" PRIu64
				   " bytes with pitch %" PRIu64 " exceed the %" PRIu64 " bytes from "
				   "0x%" PRIx64 " to the end of the allocation", name, part->rows,
				   part->row_bytes, part->pitch, span, part->address);
	return SPYRE_SUCCESS;
}

spyre_devptr comm_part_at(const spyre_comm_part *part, uint64_t offset, uint64_t *bytes)
{
	const uint64_t row = part->rows > 1 ? offset / part->row_bytes : 0;
	const uint64_t in_row = offset - row * part->row_bytes;

	if (*bytes > part->row_bytes - in_row)
		*bytes = part->row_bytes - in_row;
	return part->address + row * part->pitch + in_row;
}

/*
 * Queues the copy of @rows whole rows as one box. Elements of 32 bits are moved faster than
 * bytes, but a copy would change their order on a big-endian host.
 */
static spyre_status copy_rows(spyre_stream *stream, spyre_devptr device,
			      const spyre_comm_part *part, uint64_t rows, void *host,
			      enum comm_direction direction)
{
	const spyre_format format = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ?
				    SPYRE_FORMAT_SENINT8 : SPYRE_FORMAT_IEEE_INT32;
	const int64_t element = (int64_t)spyre_format_bytes(format);
	const spyre_box box = {
		.rank = 2,
		.size = { (int64_t)rows, (int64_t)part->row_bytes / element },
		.host_stride = { (int64_t)part->row_bytes / element, 1 },
		.device_stride = { (int64_t)part->pitch / element, 1 },
	};
	const spyre_box_copy copy = {
		.struct_size = sizeof(copy),
		.direction = direction == COMM_SEND ? SPYRE_COPY_D2H : SPYRE_COPY_H2D,
		.device = device, .device_format = format,
		.host = host, .host_bytes = rows * part->row_bytes,
		.host_format = format, .boxes = &box, .num_boxes = 1,
	};

	return spyre_copy_boxes_async(stream, &copy);
}

spyre_status comm_part_copy(spyre_stream *stream, const spyre_comm_part *part, uint64_t offset,
			    void *host, uint64_t bytes, enum comm_direction direction)
{
	uint8_t *at = host;

	while (bytes) {
		uint64_t run = bytes;
		const spyre_devptr device = comm_part_at(part, offset, &run);

		if (run == part->row_bytes && bytes >= 2 * run && run <= UINT32_MAX) {
			run = bytes - bytes % part->row_bytes;
			TRY(copy_rows(stream, device, part, run / part->row_bytes, at, direction));
		} else if (direction == COMM_SEND) {
			TRY(spyre_memcpy_d2h_async(stream, at, device, run));
		} else {
			TRY(spyre_memcpy_h2d_async(stream, device, at, run));
		}
		at += run;
		offset += run;
		bytes -= run;
	}
	return SPYRE_SUCCESS;
}

spyre_status comm_part_move(spyre_stream *stream, const spyre_comm_part *to, uint64_t to_offset,
			    const spyre_comm_part *from, uint64_t from_offset, uint64_t bytes)
{
	while (bytes) {
		uint64_t run = bytes;
		const spyre_devptr source = comm_part_at(from, from_offset, &run);
		const spyre_devptr target = comm_part_at(to, to_offset, &run);

		if (source != target)
			TRY(spyre_memcpy_d2d_async(stream, target, source, run));
		to_offset += run;
		from_offset += run;
		bytes -= run;
	}
	return SPYRE_SUCCESS;
}
