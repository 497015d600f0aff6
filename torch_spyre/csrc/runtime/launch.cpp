// SPDX-License-Identifier: MIT
/* Graphs of the builder, and launches of what they become. */
#include "program.h"

#include "launch_note.h"

#include <mutex>
#include <unordered_set>

#include <c10/util/Exception.h>

namespace torch_spyre {

void Call::add(const char *name, double value)
{
	TORCH_INTERNAL_ASSERT(num_attributes < kAttributes);
	attribute[num_attributes++] = { name, value };
}

Operand &Call::add_operand()
{
	TORCH_INTERNAL_ASSERT(num_operands < kOperands);
	return operand[num_operands++];
}

void Graph::check(spyre_status status) const
{
	switch (status) {
	case SPYRE_SUCCESS:
		return;
	case SPYRE_ERROR_UNSUPPORTED:
	case SPYRE_ERROR_LAYOUT:
	case SPYRE_ERROR_FORMAT:
	case SPYRE_ERROR_ARGUMENT_MISMATCH:
	case SPYRE_ERROR_INVALID_ARGUMENT:
	case SPYRE_ERROR_SPAN_LIMIT:
	case SPYRE_ERROR_LX_OVERFLOW:
		throw Refused(spyre_last_error());
	default:
		torch_spyre::check(status, call_.program->aten);
	}
}

bool launch_or_refuse(const Call &call, c10::DeviceIndex device)
{
	static std::mutex mutex;
	static std::unordered_set<const Program *> warned;

	try {
		launch(call, device);
		return true;
	} catch (const Refused &refused) {
		std::lock_guard<std::mutex> lock(mutex);
		if (warned.insert(call.program).second)
			TORCH_WARN(call.program->aten, " is not computed by the card as it was called: ",
				   refused.what());
		return false;
	}
}

void Graph::add_argument(unsigned index)
{
	const Operand &o = call_.operand[index];

	check(spyre_sdsc_graph_add_argument(graph_, &o.desc, &argument_[index]));
	check(spyre_sdsc_graph_set_padding(graph_, argument_[index],
					   o.clean_padding ? SPYRE_SDSC_PADDING_ZERO :
					   o.whole_sticks ? SPYRE_SDSC_PADDING_UNKNOWN :
							    SPYRE_SDSC_PADDING_FOREIGN));
}

Graph::Graph(const Call &call) : call_(call)
{
	check(spyre_sdsc_graph_create(&graph_));
	try {
		for (unsigned i = 0; i < call.num_operands; i++)
			add_argument(i);
	} catch (...) {
		spyre_sdsc_graph_destroy(graph_);
		throw;
	}
}

Graph::~Graph()
{
	spyre_sdsc_graph_destroy(graph_);
}

Graph::Tensor Graph::add(const char *op, const Tensor *inputs, unsigned num_inputs,
			 const spyre_sdsc_attribute *attributes, unsigned num_attributes,
			 Tensor out)
{
	check(spyre_sdsc_graph_add_op(graph_, op, attributes, num_attributes, inputs, num_inputs,
				      &out));
	if (steps_) {
		Step step{ op, { inputs, inputs + num_inputs }, {}, out };

		for (unsigned i = 0; i < num_attributes; i++)
			step.attributes.emplace_back(attributes[i].name, attributes[i].value);
		steps_->push_back(std::move(step));
	}
	return out;
}

Graph::Tensor Graph::add(const char *op, std::initializer_list<Tensor> inputs,
			 Attributes attributes, Tensor out)
{
	return add(op, inputs.begin(), static_cast<unsigned>(inputs.size()), attributes.begin(),
		   static_cast<unsigned>(attributes.size()), out);
}

spyre_format Graph::format(Tensor tensor) const
{
	spyre_sdsc_operand operand;

	check(spyre_sdsc_graph_get_tensor(graph_, tensor, &operand));
	return operand.layout.device_format;
}

Graph::Tensor Graph::cast(Tensor tensor, spyre_format to)
{
	if (format(tensor) == to)
		return tensor;
	return add("cast", { tensor }, { { "format", static_cast<double>(to) } });
}

void Graph::store(Tensor tensor)
{
	add(format(tensor) == format(output()) ? "identity" : "cast", { tensor }, {}, output());
}

spyre_kernel *Graph::load(spyre_context *context)
{
	spyre_kernel *kernel = nullptr;

	check(spyre_sdsc_graph_load(context, graph_, 0, &kernel));
	return kernel;
}

void build_one(Graph &graph, const Call &call)
{
	Graph::Tensor input[Call::kOperands];
	bool direct = graph.format(graph.output()) == call.format;

	for (unsigned i = 0; i < call.num_inputs(); i++)
		input[i] = graph.cast(graph.argument(i), call.format);
	Graph::Tensor result = graph.add(call.program->op, input, call.num_inputs(),
					 call.attribute, call.num_attributes,
					 direct ? graph.output() : Graph::kNew);
	if (!direct)
		graph.store(result);
}

/* Describes the kernel of a call to the profiler. */
static void describe(const Call &call, KernelNote *note)
{
	std::string name = call.program->aten;

	/* As Inductor writes it, and the names of compiled kernels. */
	if (name.rfind("aten::", 0) == 0)
		name.replace(0, 6, "aten.");
	note->title = std::move(name);
	for (unsigned i = 0; i < call.num_operands; i++) {
		const spyre_sdsc_operand &o = call.operand[i].desc;

		note->shapes += !i ? "" : i == call.num_inputs() ? " -> " : ", ";
		note->shapes += shape_text(o.size, o.rank, o.layout.device_format);
	}
}

void launch(const Call &call, c10::DeviceIndex device)
{
	Kernel kernel = program_for(call, device);
	spyre_arg argument[Call::kOperands];

	for (unsigned i = 0; i < call.num_operands; i++)
		argument[i] = { call.operand[i].address, nullptr };
	NotedLaunch noted(kernel, [&](KernelNote *note) { describe(call, note); });
	spyre_status status = spyre_launch(current_native_stream(device), kernel.get(), argument,
					   call.num_operands);
	if (status != SPYRE_SUCCESS)
		check(status, call.program->aten);
}

} // namespace torch_spyre
