// SPDX-License-Identifier: MIT
/* Collective operations by <spyre/collective.h>. */
#include "comms_collectives.hpp"

#include <stdexcept>
#include <string>

namespace spyre_comms
{

namespace
{

constexpr spyre_reduction SUM = {SPYRE_REDUCE_SUM, 0};

void check(spyre_status status, const char *operation)
{
	if (status != SPYRE_SUCCESS)
		throw std::runtime_error(std::string("cannot ") + operation + ": " +
					 spyre_last_error());
}

/* The format of a tensor that is only copied, which all ranks compare, tells its elements' size. */
spyre_format format_of(TensorDataTypeEnum type)
{
	if (sum_format(type) != SPYRE_FORMAT_INVALID)
		return sum_format(type);
	switch (element_bytes(type).card) {
	case 1:
		return SPYRE_FORMAT_SENINT8;
	case 2:
		return SPYRE_FORMAT_BFLOAT16;
	default:
		return SPYRE_FORMAT_IEEE_INT32;
	}
}

/* One stick in a row, so that the rows are contiguous in memory. */
spyre_layout layout_of(const Memory &memory)
{
	spyre_format format = format_of(memory.type);
	int64_t size[] = {static_cast<int64_t>(memory.bytes / SPYRE_STICK),
			  static_cast<int64_t>(SPYRE_STICK / spyre_format_bytes(format))};
	spyre_layout layout;

	check(spyre_layout_init(&layout, 2, size, format), "describe a tensor");
	return layout;
}

spyre_comm_part part_of(const Memory &memory)
{
	spyre_layout layout = layout_of(memory);
	spyre_comm_part part;

	check(spyre_comm_part_init(&part, memory.address, &layout), "describe a tensor");
	return part;
}

std::vector<spyre_comm_part> parts_of(const std::vector<Memory> &memories)
{
	std::vector<spyre_comm_part> parts;

	for (const Memory &memory : memories)
		parts.push_back(part_of(memory));
	return parts;
}

} // namespace

spyre_comm_id Collectives::new_id()
{
	spyre_comm_id id;

	check(spyre_comm_get_id(&id), "join the group of processes");
	return id;
}

Collectives::Collectives(spyre_stream *on, const spyre_comm_id &id, int rank, int size) : after(on)
{
	spyre_context *context = spyre_stream_context(after);
	const char *what = "join the group of processes";

	try {
		check(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event), what);
		check(spyre_stream_create(context, 0, &stream), what);
		check(spyre_comm_init_rank(context, size, &id, rank, nullptr, &comm), what);
	} catch (...) {
		release();
		throw;
	}
}

Collectives::~Collectives()
{
	release();
}

void Collectives::release()
{
	(void)spyre_comm_destroy(comm);
	if (stream)
		(void)spyre_stream_destroy(stream);
	if (event)
		(void)spyre_event_destroy(event);
}

template <typename Call> void Collectives::run(Call call)
{
	const char *what = "run a collective operation";

	check(spyre_event_record(event, after), what);
	check(spyre_stream_wait_event(stream, event), what);
	check(call(), what);
	check(spyre_stream_synchronize(stream), what);
}

void Collectives::broadcast(const Memory &tensor, int root)
{
	spyre_layout layout = layout_of(tensor);

	run([&] {
		return spyre_broadcast(comm, tensor.address, tensor.address, &layout, root, stream);
	});
}

void Collectives::all_gather(const Memory &input, const std::vector<Memory> &outputs)
{
	spyre_comm_part send = part_of(input);
	std::vector<spyre_comm_part> recv = parts_of(outputs);

	run([&] { return spyre_all_gather_v(comm, &send, recv.data(), stream); });
}

void Collectives::gather(const Memory &input, const std::vector<Memory> &outputs, int root)
{
	spyre_comm_part send = part_of(input);
	std::vector<spyre_comm_part> recv = parts_of(outputs);

	run([&] {
		return spyre_gather_v(comm, &send, recv.empty() ? nullptr : recv.data(), root,
				      stream);
	});
}

void Collectives::all_reduce(const Memory &tensor)
{
	spyre_layout layout = layout_of(tensor);

	run([&] {
		return spyre_all_reduce(comm, tensor.address, tensor.address, &layout, SUM, stream);
	});
}

void Collectives::reduce(const Memory &tensor, int root)
{
	spyre_layout layout = layout_of(tensor);

	run([&] {
		return spyre_reduce(comm, tensor.address, tensor.address, &layout, SUM, root,
				    stream);
	});
}

void Collectives::barrier()
{
	run([this] { return spyre_barrier(comm, stream); });
}

void Collectives::abort()
{
	spyre_status error;

	if (!spyre_comm_get_error(comm, &error) && error == SPYRE_SUCCESS)
		(void)spyre_comm_abort(comm);
}

} // namespace spyre_comms
