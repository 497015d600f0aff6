// SPDX-License-Identifier: MIT
/* Copies between device memory and messages, and sums on the card. */
#include "comms_device.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "comms_transport.hpp"

namespace spyre_comms
{

namespace
{

void check(spyre_status status, const char *operation)
{
	if (status != SPYRE_SUCCESS)
		throw std::runtime_error(std::string("cannot ") + operation +
					 " of a collective operation: " + spyre_last_error());
}

constexpr char PLAN[] = "build the sum";

/* The program of a sum, operation by operation. */
class Builder
{
public:
	Builder()
	{
		spyre_sdsc_graph *created;

		check(spyre_sdsc_graph_create(&created), PLAN);
		graph.reset(created);
	}

	uint32_t argument(spyre_format format, uint64_t bytes)
	{
		uint32_t lanes = SPYRE_STICK / spyre_format_bytes(format), tensor;
		spyre_sdsc_operand operand = {};

		operand.rank = 2;
		operand.size[0] = bytes / SPYRE_STICK;
		operand.size[1] = lanes;
		check(spyre_layout_init(&operand.layout, 2, operand.size, format), PLAN);
		check(spyre_sdsc_graph_add_argument(graph.get(), &operand, &tensor), PLAN);
		return tensor;
	}

	uint32_t add(const char *op, std::vector<uint32_t> inputs, uint32_t output = SPYRE_SDSC_NEW)
	{
		check(spyre_sdsc_graph_add_op(graph.get(), op, nullptr, 0, inputs.data(),
					      inputs.size(), &output),
		      PLAN);
		return output;
	}

	spyre_kernel *load(spyre_context *context)
	{
		spyre_kernel *kernel;

		check(spyre_sdsc_graph_load(context, graph.get(), 0, &kernel), PLAN);
		return kernel;
	}

private:
	struct Destroy {
		void operator()(spyre_sdsc_graph *g) const
		{
			spyre_sdsc_graph_destroy(g);
		}
	};

	std::unique_ptr<spyre_sdsc_graph, Destroy> graph;
};

} // namespace

Device::Device(spyre_stream *on) : stream(on), context(spyre_stream_context(on))
{
}

Device::~Device()
{
	for (auto &entry : kernels)
		(void)spyre_kernel_unload(entry.second);
	for (spyre_devptr address : slots)
		(void)spyre_mem_free(context, address);
}

void Device::wait()
{
	spyre_event *event;

	check(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event), "wait for the work");

	spyre_status status = spyre_event_record(event, stream);

	if (status == SPYRE_SUCCESS)
		status = spyre_event_synchronize(event);
	check(status, "wait for the work");
	(void)spyre_event_destroy(event);
}

std::vector<uint8_t> Device::read(spyre_devptr source, uint64_t bytes)
{
	std::vector<uint8_t> data(bytes);

	check(spyre_memcpy_d2h_async(stream, data.data(), source, bytes), "read the tensor");
	wait();
	return data;
}

void Device::write(spyre_devptr target, const std::vector<uint8_t> &data)
{
	check(spyre_memcpy_h2d_async(stream, target, data.data(), data.size()), "write the tensor");
	wait();
}

void Device::copy(spyre_devptr target, spyre_devptr source, uint64_t bytes)
{
	if (target == source)
		return;
	check(spyre_memcpy_d2d_async(stream, target, source, bytes), "copy the tensor");
	wait();
}

spyre_devptr Device::slot(size_t number)
{
	while (slots.size() <= number) {
		spyre_devptr address;

		slots.reserve(slots.size() + 1);
		check(spyre_mem_alloc(context, PIECE_BYTES, &address), "allocate the buffers");
		slots.push_back(address);
	}
	return slots[number];
}

/*
 * DL16 is widened first and rounded once at the end. The additions are elementwise, so no
 * division over the cores changes a bit.
 */
spyre_kernel *Device::kernel(const Shape &shape)
{
	auto found = kernels.find(shape);

	if (found != kernels.end())
		return found->second;

	Builder builder;
	bool wide = shape.format == SPYRE_FORMAT_IEEE_FP32;
	std::vector<uint32_t> terms;

	for (size_t i = 0; i < shape.terms; i++)
		terms.push_back(builder.argument(shape.format, shape.bytes));

	uint32_t output = builder.argument(shape.format, shape.bytes);
	uint32_t total = wide ? terms[0] : builder.add("dl16tofp32", {terms[0]});

	for (size_t i = 1; i < shape.terms; i++) {
		uint32_t term = wide ? terms[i] : builder.add("dl16tofp32", {terms[i]});
		bool last = wide && i == shape.terms - 1;

		total = builder.add("add", {total, term}, last ? output : SPYRE_SDSC_NEW);
	}
	if (!wide)
		builder.add("fp32todl16", {total}, output);
	return kernels.emplace(shape, builder.load(context)).first->second;
}

void Device::sum(spyre_devptr target, const std::vector<spyre_devptr> &terms, uint64_t bytes,
		 spyre_format format)
{
	std::vector<spyre_arg> args;
	spyre_devptr result = slot(terms.size());

	for (spyre_devptr term : terms)
		args.push_back({term, nullptr});
	args.push_back({result, nullptr});
	check(spyre_launch(stream, kernel({format, terms.size(), bytes}), args.data(), args.size()),
	      "launch the sum");
	check(spyre_memcpy_d2d_async(stream, target, result, bytes), "copy the sum");
	wait();
}

} // namespace spyre_comms
