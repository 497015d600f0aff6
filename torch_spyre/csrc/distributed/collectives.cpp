// SPDX-License-Identifier: MIT
/* The operations of the back end: each checks its tensors and queues libspyre's collective. */
#include "process_group.h"

#include <c10/util/Exception.h>

#include "reduction.h"
#include "runtime/device.h"
#include "wire.h"

namespace torch_spyre {

namespace {

using at::Tensor;
using c10d::OpType;
using Tensors = std::vector<Tensor>;
using Sizes = std::vector<std::vector<int64_t>>;

Tensors joined(const std::vector<Tensors> &lists)
{
	Tensors all;

	for (const Tensors &list : lists)
		all.insert(all.end(), list.begin(), list.end());
	return all;
}

/* Checks the tensors of an operation and returns their card. */
c10::DeviceIndex check_tensors(const char *name, const Tensors &a, const Tensors &b = {})
{
	const Tensor &first = a.empty() ? b.at(0) : a[0];

	for (const Tensors *list : { &a, &b })
		for (const Tensor &t : *list) {
			TORCH_CHECK(t.is_privateuseone(), "spyreccl: cannot ", name,
				    " a tensor on ", t.device(), ": this back end is for spyre; "
				    "move it to spyre, or use \"cpu:gloo,spyre:spyreccl\"");
			TORCH_CHECK(t.layout() == c10::Layout::Strided, "spyreccl: cannot ", name,
				    " a ", t.layout(), " tensor: only dense ones are supported");
			TORCH_CHECK(t.device() == first.device(), "spyreccl: cannot ", name,
				    " tensors on ", first.device(), " and ", t.device(),
				    " in one call: a rank has one card");
			TORCH_CHECK(t.scalar_type() == first.scalar_type(), "spyreccl: cannot ",
				    name, " tensors of ", first.scalar_type(), " and ",
				    t.scalar_type(), " in one call");
		}
	return first.device().index();
}

const Tensor &single(const char *name, const Tensors &tensors)
{
	TORCH_CHECK(tensors.size() == 1, "spyreccl: ", name, " takes one tensor, not ",
		    tensors.size());
	return tensors[0];
}

/* Parts of tensors to send or receive. */
std::vector<spyre_comm_part> parts_of(const std::vector<Wire> &wires)
{
	std::vector<spyre_comm_part> parts;

	for (const Wire &wire : wires)
		parts.push_back(wire.part());
	return parts;
}

std::vector<Wire> wires_of(const Tensors &tensors)
{
	std::vector<Wire> wires;

	for (const Tensor &tensor : tensors)
		wires.push_back(wire_of(tensor));
	return wires;
}

std::vector<Wire> wires_for(const Tensors &tensors)
{
	std::vector<Wire> wires;

	for (const Tensor &tensor : tensors)
		wires.push_back(wire_for(tensor));
	return wires;
}

void deliver_all(const Tensors &tensors, const std::vector<Wire> &wires)
{
	for (size_t i = 0; i < tensors.size(); i++)
		deliver(tensors[i], wires[i]);
}

/* The sizes of the rows of @tensor that each rank has; equal ones if @splits is empty. */
Sizes split_sizes(const Tensor &tensor, const std::vector<int64_t> &splits, int ranks)
{
	Sizes sizes;

	TORCH_CHECK(tensor.dim() > 0, "spyreccl: cannot all_to_all a tensor without dimensions");
	TORCH_CHECK(splits.empty() ? tensor.size(0) % ranks == 0 :
				     splits.size() == static_cast<size_t>(ranks),
		    "spyreccl: cannot divide ", tensor.size(0), " rows among ", ranks,
		    " ranks by ", splits.size(), " sizes");
	for (int r = 0; r < ranks; r++) {
		std::vector<int64_t> size = tensor.sizes().vec();

		size[0] = splits.empty() ? tensor.size(0) / ranks : splits[r];
		sizes.push_back(size);
	}
	return sizes;
}

/* All-reduce of @tensor as part of @call. */
void add_all_reduce(GroupCall &call, const Tensor &tensor, const Reduction &reduction)
{
	auto parts = std::make_shared<Tensors>(reduction.split(tensor));
	auto wires = std::make_shared<std::vector<Wire>>();

	if (!tensor.numel())
		return;
	for (const Tensor &part : *parts) {
		wires->push_back(wire_both(part));
		call.issue.push_back([comm = call.comm, stream = call.stream,
				      wire = wires->back(), reduction] {
			check_communicator(spyre_all_reduce(comm, wire.address, wire.address,
							    &wire.layout, reduction.native(),
							    stream), "all_reduce");
		});
	}
	call.finish.push_back([tensor, parts, wires, reduction] {
		deliver_all(*parts, *wires);
		reduction.join(*parts, tensor);
	});
}

/* Gathers @input into the parts of @output. */
void add_all_gather(GroupCall &call, const Tensor &output, const Tensor &input, int ranks)
{
	if (!output.numel())
		return;

	Wire send = wire_of(input);
	auto receive = std::make_shared<Chunks>(output, Sizes(ranks, input.sizes().vec()), false);

	call.issue.push_back([comm = call.comm, stream = call.stream, send, receive] {
		spyre_comm_part part = send.part();

		check_communicator(spyre_all_gather_v(comm, &part, receive->parts().data(), stream),
				   "all_gather");
	});
	call.finish.push_back([receive] { receive->deliver(); });
}

/* Reduces parts, of which @chunks has those of each operand of the reduction. */
void add_reduce_scatter(GroupCall &call, const Tensor &output,
			std::vector<std::vector<spyre_comm_part>> send,
			std::shared_ptr<void> keep, const Reduction &reduction)
{
	auto parts = std::make_shared<Tensors>(reduction.empty(output));
	auto wires = std::make_shared<std::vector<Wire>>(wires_for(*parts));

	for (size_t i = 0; i < send.size(); i++)
		call.issue.push_back([comm = call.comm, stream = call.stream, wires, i, keep,
				      send = send[i], reduction] {
			spyre_comm_part receive = (*wires)[i].part();

			check_communicator(spyre_reduce_scatter_v(comm, send.data(), &receive,
								  reduction.native(), stream),
					   "reduce_scatter");
		});
	call.finish.push_back([output, parts, wires, keep, reduction] {
		deliver_all(*parts, *wires);
		reduction.join(*parts, output);
	});
}

void add_reduce_scatter_tensor(GroupCall &call, const Tensor &output, const Tensor &input,
			       int ranks, const Reduction &reduction)
{
	auto chunks = std::make_shared<std::vector<Chunks>>();
	std::vector<std::vector<spyre_comm_part>> send;

	if (!input.numel())
		return;
	for (const Tensor &part : reduction.split(input)) {
		chunks->emplace_back(part, Sizes(ranks, output.sizes().vec()), true);
		send.push_back(chunks->back().parts());
	}
	add_reduce_scatter(call, output, std::move(send), chunks, reduction);
}

void check_larger(const char *name, const Tensor &large, const Tensor &small, int ranks)
{
	TORCH_CHECK(large.numel() == small.numel() * ranks, "spyreccl: ", name, ": a tensor of ",
		    large.sizes(), " must have ", ranks, " times as many elements as one of ",
		    small.sizes());
}

} // namespace

void ProcessGroupSpyre::check_root(int64_t root, const char *name) const
{
	TORCH_CHECK(root >= 0 && root < size_, "spyreccl: ", name, ": rank ", root,
		    " is out of range for a group of ", size_);
}

void ProcessGroupSpyre::check_count(size_t count, const char *name) const
{
	TORCH_CHECK(count == static_cast<size_t>(size_), "spyreccl: ", name, " takes a list of ",
		    size_, " tensors, one for each rank, not ", count);
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::broadcast(Tensors &tensors,
							const c10d::BroadcastOptions &opts)
{
	Tensor tensor = single("broadcast", tensors);
	c10::DeviceIndex device = check_tensors("broadcast", tensors);
	auto root = static_cast<uint32_t>(opts.rootRank);
	bool sends = opts.rootRank == rank_;

	check_root(opts.rootRank, "broadcast");
	return submit({ OpType::BROADCAST, "broadcast", "spyreccl:broadcast", tensors, tensors,
			opts.asyncOp, device, [tensor, root, sends](GroupCall &call) {
		if (!tensor.numel())
			return;
		Wire wire = sends ? wire_of(tensor) : wire_for(tensor);

		call.issue.push_back([comm = call.comm, stream = call.stream, wire, root] {
			check_communicator(spyre_broadcast(comm, wire.address, wire.address,
							   &wire.layout, root, stream),
					   "broadcast");
		});
		if (!sends)
			call.finish.push_back([tensor, wire] { deliver(tensor, wire); });
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::reduce_all(Tensors &tensors,
							 const c10d::AllreduceOptions &opts,
							 OpType type)
{
	TORCH_CHECK(!tensors.empty(), "spyreccl: all_reduce takes at least one tensor");
	c10::DeviceIndex device = check_tensors("all_reduce", tensors);
	Reduction reduction(opts.reduceOp, tensors[0].scalar_type());
	bool one = type == OpType::ALLREDUCE;

	return submit({ type, one ? "allreduce" : "allreduce_coalesced",
			one ? "spyreccl:all_reduce" : "spyreccl:allreduce_coalesced", tensors,
			tensors, opts.asyncOp, device, [tensors, reduction](GroupCall &call) {
		for (const Tensor &tensor : tensors)
			add_all_reduce(call, tensor, reduction);
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::allreduce(Tensors &tensors,
							const c10d::AllreduceOptions &opts)
{
	single("all_reduce", tensors);
	return reduce_all(tensors, opts, OpType::ALLREDUCE);
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::allreduce_coalesced(Tensors &tensors,
				       const c10d::AllreduceCoalescedOptions &opts)
{
	return reduce_all(tensors, opts, OpType::ALLREDUCE_COALESCED);
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::reduce(Tensors &tensors,
						     const c10d::ReduceOptions &opts)
{
	Tensor tensor = single("reduce", tensors);
	c10::DeviceIndex device = check_tensors("reduce", tensors);
	Reduction reduction(opts.reduceOp, tensor.scalar_type());
	auto root = static_cast<uint32_t>(opts.rootRank);
	bool receives = opts.rootRank == rank_;

	check_root(opts.rootRank, "reduce");
	return submit({ OpType::REDUCE, "reduce", "spyreccl:reduce", tensors, tensors,
			opts.asyncOp, device, [tensor, reduction, root, receives](GroupCall &call) {
		auto parts = std::make_shared<Tensors>(reduction.split(tensor));
		auto wires = std::make_shared<std::vector<Wire>>();

		if (!tensor.numel())
			return;
		for (const Tensor &part : *parts) {
			wires->push_back(receives ? wire_both(part) : wire_of(part));
			call.issue.push_back([comm = call.comm, stream = call.stream, root,
					      receives, wire = wires->back(), reduction] {
				check_communicator(
					spyre_reduce(comm, wire.address,
						     receives ? wire.address : 0, &wire.layout,
						     reduction.native(), root, stream), "reduce");
			});
		}
		call.finish.push_back([tensor, parts, wires, reduction, receives] {
			if (!receives)
				return;
			deliver_all(*parts, *wires);
			reduction.join(*parts, tensor);
		});
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::allgather(std::vector<Tensors> &outputs,
							Tensors &inputs,
							const c10d::AllgatherOptions &opts)
{
	Tensor input = single("all_gather", inputs);
	TORCH_CHECK(outputs.size() == 1, "spyreccl: all_gather takes one list of tensors, not ",
		    outputs.size());
	Tensors output = outputs[0];
	c10::DeviceIndex device = check_tensors("all_gather", inputs, output);

	check_count(output.size(), "all_gather");
	return submit({ OpType::ALLGATHER, "all_gather", "spyreccl:all_gather", inputs, output,
			opts.asyncOp, device, [input, output](GroupCall &call) {
		Wire send = wire_of(input);
		auto receive = std::make_shared<std::vector<Wire>>(wires_for(output));

		call.issue.push_back([comm = call.comm, stream = call.stream, send, receive] {
			spyre_comm_part part = send.part();
			auto parts = parts_of(*receive);

			check_communicator(spyre_all_gather_v(comm, &part, parts.data(), stream),
					   "all_gather");
		});
		call.finish.push_back([output, receive] { deliver_all(output, *receive); });
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::_allgather_base(Tensor &output, Tensor &input,
							      const c10d::AllgatherOptions &opts)
{
	c10::DeviceIndex device = check_tensors("all_gather", { input }, { output });

	check_larger("all_gather_into_tensor", output, input, size_);
	return submit({ OpType::_ALLGATHER_BASE, "_allgather_base", "spyreccl:_all_gather_base",
			{ input }, { output }, opts.asyncOp, device,
			[output, input, ranks = size_](GroupCall &call) {
		add_all_gather(call, output, input, ranks);
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
						   const c10d::AllgatherOptions &opts)
{
	TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(),
		    "spyreccl: all_gather_into_tensor_coalesced takes lists of the same size, not ",
		    inputs.size(), " and ", outputs.size(), " tensors");
	c10::DeviceIndex device = inputs[0].device().index();

	for (size_t i = 0; i < inputs.size(); i++) {
		check_tensors("all_gather", { inputs[i] }, { outputs[i] });
		check_larger("all_gather_into_tensor_coalesced", outputs[i], inputs[i], size_);
		TORCH_CHECK(inputs[i].device() == inputs[0].device(), "spyreccl: tensors on ",
			    inputs[0].device(), " and ", inputs[i].device(), " in one call");
	}
	return submit({ OpType::COALESCED, "allgather_into_tensor_coalesced",
			"spyreccl:all_gather_into_tensor_coalesced", inputs, outputs, opts.asyncOp,
			device, [inputs, outputs, ranks = size_](GroupCall &call) {
		for (size_t i = 0; i < inputs.size(); i++)
			add_all_gather(call, outputs[i], inputs[i], ranks);
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
				       const c10d::AllgatherOptions &opts)
{
	TORCH_CHECK(outputs.size() == static_cast<size_t>(size_) && !inputs.empty(),
		    "spyreccl: all_gather_coalesced takes a list of tensors for each of ", size_,
		    " ranks, not ", outputs.size());
	for (const Tensors &list : outputs)
		TORCH_CHECK(list.size() == inputs.size(), "spyreccl: all_gather_coalesced has ",
			    inputs.size(), " inputs and ", list.size(), " outputs of a rank");
	Tensors all = joined(outputs);
	c10::DeviceIndex device = check_tensors("all_gather", inputs, all);

	return submit({ OpType::ALLGATHER_COALESCED, "all_gather_coalesced",
			"spyreccl:all_gather_coalesced", inputs, all, opts.asyncOp, device,
			[inputs, outputs](GroupCall &call) {
		for (size_t i = 0; i < inputs.size(); i++) {
			Tensors output;

			for (const Tensors &list : outputs)
				output.push_back(list[i]);
			Wire send = wire_of(inputs[i]);
			auto receive = std::make_shared<std::vector<Wire>>(wires_for(output));

			call.issue.push_back([comm = call.comm, stream = call.stream, send,
					      receive] {
				spyre_comm_part part = send.part();
				auto parts = parts_of(*receive);

				check_communicator(spyre_all_gather_v(comm, &part, parts.data(),
								      stream), "all_gather");
			});
			call.finish.push_back([output, receive] {
				deliver_all(output, *receive);
			});
		}
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::gather(std::vector<Tensors> &outputs,
						     Tensors &inputs,
						     const c10d::GatherOptions &opts)
{
	Tensor input = single("gather", inputs);
	auto root = static_cast<uint32_t>(opts.rootRank);
	bool receives = opts.rootRank == rank_;

	check_root(opts.rootRank, "gather");
	TORCH_CHECK(outputs.size() == (receives ? 1 : 0), "spyreccl: gather takes one list of "
		    "outputs on rank ", root, " and none elsewhere, not ", outputs.size());
	Tensors output = receives ? outputs[0] : Tensors{};
	c10::DeviceIndex device = check_tensors("gather", inputs, output);

	if (receives)
		check_count(output.size(), "gather");
	return submit({ OpType::GATHER, "gather", "spyreccl:gather", inputs, output, opts.asyncOp,
			device, [input, output, root, receives](GroupCall &call) {
		Wire send = wire_of(input);
		auto receive = std::make_shared<std::vector<Wire>>(wires_for(output));

		call.issue.push_back([comm = call.comm, stream = call.stream, send, receive, root,
				      receives] {
			spyre_comm_part part = send.part();
			auto parts = parts_of(*receive);

			check_communicator(spyre_gather_v(comm, &part,
							  receives ? parts.data() : nullptr, root,
							  stream), "gather");
		});
		call.finish.push_back([output, receive] { deliver_all(output, *receive); });
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::scatter(Tensors &outputs,
						      std::vector<Tensors> &inputs,
						      const c10d::ScatterOptions &opts)
{
	Tensor output = single("scatter", outputs);
	auto root = static_cast<uint32_t>(opts.rootRank);
	bool sends = opts.rootRank == rank_;

	check_root(opts.rootRank, "scatter");
	TORCH_CHECK(inputs.size() == (sends ? 1 : 0), "spyreccl: scatter takes one list of inputs "
		    "on rank ", root, " and none elsewhere, not ", inputs.size());
	Tensors input = sends ? inputs[0] : Tensors{};
	c10::DeviceIndex device = check_tensors("scatter", outputs, input);

	if (sends)
		check_count(input.size(), "scatter");
	return submit({ OpType::SCATTER, "scatter", "spyreccl:scatter", input, outputs,
			opts.asyncOp, device, [input, output, root, sends](GroupCall &call) {
		auto send = std::make_shared<std::vector<Wire>>(wires_of(input));
		Wire receive = wire_for(output);

		call.issue.push_back([comm = call.comm, stream = call.stream, send, receive, root,
				      sends] {
			auto parts = parts_of(*send);
			spyre_comm_part part = receive.part();

			check_communicator(spyre_scatter_v(comm, sends ? parts.data() : nullptr,
							   &part, root, stream), "scatter");
		});
		call.finish.push_back([output, receive] { deliver(output, receive); });
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
				  const c10d::ReduceScatterOptions &opts)
{
	Tensor output = single("reduce_scatter", outputs);
	TORCH_CHECK(inputs.size() == 1, "spyreccl: reduce_scatter takes one list of tensors, not ",
		    inputs.size());
	Tensors input = inputs[0];
	c10::DeviceIndex device = check_tensors("reduce_scatter", outputs, input);
	Reduction reduction(opts.reduceOp, output.scalar_type());

	check_count(input.size(), "reduce_scatter");
	TORCH_CHECK(input[rank_].sizes() == output.sizes(), "spyreccl: reduce_scatter: input ",
		    rank_, " of ", input[rank_].sizes(), " must have the sizes of the output, ",
		    output.sizes());
	return submit({ OpType::REDUCE_SCATTER, "reduce_scatter", "spyreccl:reduce_scatter", input,
			outputs, opts.asyncOp, device, [input, output, reduction](GroupCall &call) {
		auto wires = std::make_shared<std::vector<Wire>>();
		std::vector<std::vector<spyre_comm_part>> send;

		for (const Tensor &tensor : input) {
			Tensors parts = reduction.split(tensor);

			send.resize(parts.size());
			for (size_t i = 0; i < parts.size(); i++) {
				wires->push_back(wire_of(parts[i]));
				send[i].push_back(wires->back().part());
			}
		}
		add_reduce_scatter(call, output, std::move(send), wires, reduction);
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::_reduce_scatter_base(Tensor &output, Tensor &input,
					const c10d::ReduceScatterOptions &opts)
{
	c10::DeviceIndex device = check_tensors("reduce_scatter", { input }, { output });
	Reduction reduction(opts.reduceOp, output.scalar_type());

	check_larger("reduce_scatter_tensor", input, output, size_);
	return submit({ OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base",
			"spyreccl:_reduce_scatter_base", { input }, { output }, opts.asyncOp,
			device, [output, input, reduction, ranks = size_](GroupCall &call) {
		add_reduce_scatter_tensor(call, output, input, ranks, reduction);
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
						   const c10d::ReduceScatterOptions &opts)
{
	TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(),
		    "spyreccl: reduce_scatter_tensor_coalesced takes lists of the same size, not ",
		    inputs.size(), " and ", outputs.size(), " tensors");
	c10::DeviceIndex device = check_tensors("reduce_scatter", inputs, outputs);
	Reduction reduction(opts.reduceOp, outputs[0].scalar_type());

	for (size_t i = 0; i < inputs.size(); i++)
		check_larger("reduce_scatter_tensor_coalesced", inputs[i], outputs[i], size_);
	return submit({ OpType::REDUCE_SCATTER_TENSOR_COALESCED, "reduce_scatter_tensor_coalesced",
			"spyreccl:reduce_scatter_tensor_coalesced", inputs, outputs, opts.asyncOp,
			device, [inputs, outputs, reduction, ranks = size_](GroupCall &call) {
		for (size_t i = 0; i < inputs.size(); i++)
			add_reduce_scatter_tensor(call, outputs[i], inputs[i], ranks, reduction);
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::alltoall(Tensors &outputs, Tensors &inputs,
						       const c10d::AllToAllOptions &opts)
{
	c10::DeviceIndex device = check_tensors("all_to_all", inputs, outputs);

	check_count(inputs.size(), "all_to_all");
	check_count(outputs.size(), "all_to_all");
	return submit({ OpType::ALLTOALL, "all_to_all", "spyreccl:all_to_all", inputs, outputs,
			opts.asyncOp, device, [inputs, outputs](GroupCall &call) {
		auto send = std::make_shared<std::vector<Wire>>(wires_of(inputs));
		auto receive = std::make_shared<std::vector<Wire>>(wires_for(outputs));

		call.issue.push_back([comm = call.comm, stream = call.stream, send, receive] {
			auto from = parts_of(*send), to = parts_of(*receive);

			check_communicator(spyre_all_to_all_v(comm, from.data(), to.data(), stream),
					   "all_to_all");
		});
		call.finish.push_back([outputs, receive] { deliver_all(outputs, *receive); });
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr
ProcessGroupSpyre::alltoall_base(Tensor &output, Tensor &input,
				 std::vector<int64_t> &output_splits,
				 std::vector<int64_t> &input_splits,
				 const c10d::AllToAllOptions &opts)
{
	c10::DeviceIndex device = check_tensors("all_to_all", { input }, { output });
	Sizes from = split_sizes(input, input_splits, size_);
	Sizes to = split_sizes(output, output_splits, size_);
	Operation op{ OpType::ALLTOALL_BASE, "all_to_allv", "spyreccl:all_to_all", { input },
		      { output }, opts.asyncOp, device, [input, output, from, to](GroupCall &call) {
		auto send = std::make_shared<Chunks>(input, from, true);
		auto receive = std::make_shared<Chunks>(output, to, false);

		call.issue.push_back([comm = call.comm, stream = call.stream, send, receive] {
			check_communicator(spyre_all_to_all_v(comm, send->parts().data(),
							      receive->parts().data(), stream),
					   "all_to_all");
		});
		call.finish.push_back([receive] { receive->deliver(); });
	}, opts.timeout };

	op.input_splits = input_splits;
	op.output_splits = output_splits;
	return submit(std::move(op));
}

c10::DeviceIndex ProcessGroupSpyre::device_for_barrier(const c10d::BarrierOptions &opts) const
{
	if (opts.device && opts.device->is_privateuseone() && opts.device->has_index())
		return check_index(opts.device->index());
	if (!opts.device_ids.empty())
		return check_index(static_cast<int>(opts.device_ids[0]));
	if (bound_device_id_)
		return bound_device_id_->index();

	std::lock_guard<std::mutex> guard(lock_);

	return communicators_.empty() ? current_device() : communicators_.begin()->first;
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::barrier(const c10d::BarrierOptions &opts)
{
	return submit({ OpType::BARRIER, "barrier", "spyreccl:barrier", {}, {}, opts.asyncOp,
			device_for_barrier(opts), [](GroupCall &call) {
		call.issue.push_back([comm = call.comm, stream = call.stream] {
			check_communicator(spyre_barrier(comm, stream), "barrier");
		});
	}, opts.timeout });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::send(Tensors &tensors, int peer, int)
{
	Tensor tensor = single("send", tensors);
	c10::DeviceIndex device = check_tensors("send", tensors);
	uint32_t to = peer > rank_ ? 1 : 0;

	check_root(peer, "send");
	TORCH_CHECK(peer != rank_, "spyreccl: rank ", peer, " cannot send to itself");
	return submit({ OpType::SEND, "send", "spyreccl:send", tensors, {}, true, device,
			[tensor, to](GroupCall &call) {
		Wire wire = wire_of(tensor);

		if (tensor.numel())
			call.issue.push_back([comm = call.comm, stream = call.stream, wire, to] {
				spyre_comm_part part = wire.part();

				check_communicator(spyre_send(comm, &part, to, stream), "send");
			});
	}, c10d::kUnsetTimeout, peer, true });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::recv(Tensors &tensors, int peer, int)
{
	Tensor tensor = single("recv", tensors);
	c10::DeviceIndex device = check_tensors("recv", tensors);
	uint32_t from = peer > rank_ ? 1 : 0;

	check_root(peer, "recv");
	TORCH_CHECK(peer != rank_, "spyreccl: rank ", peer, " cannot receive from itself");
	return submit({ OpType::RECV, "recv", "spyreccl:recv", {}, tensors, true, device,
			[tensor, from](GroupCall &call) {
		if (!tensor.numel())
			return;
		Wire wire = wire_for(tensor);

		call.issue.push_back([comm = call.comm, stream = call.stream, wire, from] {
			spyre_comm_part part = wire.part();

			check_communicator(spyre_recv(comm, &part, from, stream), "recv");
		});
		call.finish.push_back([tensor, wire] { deliver(tensor, wire); });
	}, c10d::kUnsetTimeout, peer, false });
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::recvAnysource(Tensors &, int)
{
	TORCH_CHECK_NOT_IMPLEMENTED(false, "spyreccl: cannot receive from any rank: a receive is "
				    "queued on the card before a sender is known; name the source "
				    "with src=, or use the CPU's gloo");
}

} // namespace torch_spyre
