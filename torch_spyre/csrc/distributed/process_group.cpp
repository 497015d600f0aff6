// SPDX-License-Identifier: MIT
/* The back end: communicators, streams, and how operations are queued. */
#include "process_group.h"

#include <algorithm>
#include <set>

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/gil.h"
#include "runtime/stream.h"

namespace torch_spyre {

namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

c10::Event event_at(c10::Stream stream, bool timing = false)
{
	c10::Event event(kType, timing ? c10::EventFlag::BACKEND_DEFAULT :
					 c10::EventFlag::PYTORCH_DEFAULT);

	event.record(stream);
	return event;
}

int64_t elements_of(const std::vector<at::Tensor> &tensors)
{
	int64_t count = 0;

	for (const at::Tensor &tensor : tensors)
		count += tensor.numel();
	return count;
}

/* Memory that @stream uses is not reused before it has passed this point. */
void record_use(const std::vector<at::Tensor> &tensors, c10::Stream stream)
{
	for (const at::Tensor &tensor : tensors)
		device_allocator()->recordStream(tensor.storage().data_ptr(), stream);
}

/* Makes the collected calls, as one group if there are several. */
void issue(std::vector<GroupCall> &calls)
{
	size_t count = 0;

	for (const GroupCall &call : calls)
		count += call.issue.size();
	if (count > 1)
		check_communicator(spyre_group_begin(), "beginning a group");
	try {
		for (GroupCall &call : calls)
			for (auto &step : call.issue)
				step();
	} catch (...) {
		/* The calls before the one that failed are queued, those behind it are not. */
		if (count > 1)
			(void)spyre_group_end();
		throw;
	}
	if (count > 1)
		check_communicator(spyre_group_end(), "queueing a group of collectives");
}

} // namespace

ProcessGroupSpyre::Options::Options(std::chrono::milliseconds timeout, bool high_priority)
	: c10d::Backend::Options(kName, timeout), is_high_priority_stream(high_priority)
{
}

ProcessGroupSpyre::ProcessGroupSpyre(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
				     c10::intrusive_ptr<Options> options)
	: Backend(rank, size), store_(std::move(store)), options_(std::move(options))
{
	TORCH_CHECK(size >= 1 && size <= SPYRE_COMM_MAX_RANKS, "spyreccl: a group of ", size,
		    " ranks: expected 1 to ", SPYRE_COMM_MAX_RANKS);
	TORCH_CHECK(rank >= 0 && rank < size, "spyreccl: rank ", rank, " is out of range for a "
		    "group of ", size);
	init();
}

ProcessGroupSpyre::~ProcessGroupSpyre()
{
	ReleaseGil no_gil;

	channels_.clear();
	communicators_.clear();
}

c10::intrusive_ptr<c10d::Backend::Options> ProcessGroupSpyre::getBackendOptions()
{
	return options_;
}

/* Of calls and communicators from now on, and of waits on the host. */
void ProcessGroupSpyre::setTimeout(std::chrono::milliseconds timeout)
{
	options_->timeout = timeout;
}

uint64_t ProcessGroupSpyre::getSequenceNumberForGroup()
{
	return collectives_;
}

void ProcessGroupSpyre::enableCollectivesTiming()
{
	timing_ = true;
}

std::string ProcessGroupSpyre::name() const
{
	std::string uid = pg_uid_.empty() ? options_->group_name : pg_uid_;

	return c10::str("group ", uid, pg_desc_.empty() ? "" : c10::str(" (", pg_desc_, ")"));
}

void ProcessGroupSpyre::check_usable() const
{
	TORCH_CHECK(!ended_, "spyreccl: ", name(), " was shut down; create it again");
}

std::shared_ptr<Communicator> ProcessGroupSpyre::communicator(c10::DeviceIndex device)
{
	std::unique_lock<std::mutex> guard(lock_);

	check_usable();
	if (auto found = communicators_.find(device); found != communicators_.end())
		return found->second;

	Meeting meeting{ store_, c10::str("comm/", meetings_++), name(), rank_, size_,
			 options_->timeout };
	guard.unlock();

	std::shared_ptr<Communicator> made = Communicator::meet(meeting, device);

	guard.lock();
	communicators_[device] = made;
	return made;
}

Channel &ProcessGroupSpyre::channel(c10::DeviceIndex device, int peer)
{
	std::lock_guard<std::mutex> guard(lock_);
	std::unique_ptr<Channel> &found = channels_[{ device, peer }];
	int low = std::min(peer, rank_), high = std::max(peer, rank_);

	check_usable();
	if (!found)
		found = std::make_unique<Channel>(
			Meeting{ store_, c10::str("pair/", low, "/", high),
				 c10::str("ranks ", low, " and ", high, " of ", name()),
				 rank_ == low ? 0 : 1, 2, options_->timeout },
			device);
	return *found;
}

c10::Stream ProcessGroupSpyre::stream_of(const Operation &op)
{
	if (!op.is_p2p() && !op.async)
		return current_stream(op.device);

	std::lock_guard<std::mutex> guard(lock_);
	std::tuple<c10::DeviceIndex, int, bool> key{ op.device, op.peer, op.sends };
	auto found = streams_.find(key);

	if (found == streams_.end())
		found = streams_.emplace(key, stream_from_pool(op.device,
				options_->is_high_priority_stream ? -1 : 0)).first;
	return found->second;
}

void ProcessGroupSpyre::eagerConnectSingleDevice(at::Device device)
{
	(void)communicator(check_index(device.index()));
}

/* The time limit of a call: its own or that of the group. */
std::chrono::milliseconds ProcessGroupSpyre::limit_of(const Operation &op) const
{
	return op.timeout == c10d::kUnsetTimeout ? options_->timeout : op.timeout;
}

/* The entry of the recorder; names of operations are those of PyTorch's own back ends. */
uint64_t ProcessGroupSpyre::record_in_flight(const Operation &op, uint64_t sequence) const
{
	FlightEntry entry{};

	entry.group = pg_uid_;
	entry.description = pg_desc_;
	entry.name = op.title;
	if (op.is_p2p())
		entry.name += c10::str(" ", rank_, op.sends ? "->" : "<-", op.peer);
	entry.is_p2p = op.is_p2p();
	(op.is_p2p() ? entry.p2p_sequence : entry.collective_sequence) = sequence;
	entry.timeout_ms = limit_of(op).count();
	return record_flight(std::move(entry), op.inputs, op.outputs);
}

/* The annotation of traces that tools for collectives read. */
void ProcessGroupSpyre::record(Operation &op, uint64_t sequence)
{
	if (records_flights())
		op.flight = record_in_flight(op, sequence);

	const at::Tensor *first = !op.inputs.empty() ? &op.inputs[0] :
				  !op.outputs.empty() ? &op.outputs[0] : nullptr;
	const auto &global = options_->global_ranks_in_group;
	int64_t start = global.empty() ? 0 : static_cast<int64_t>(global[0]);
	int64_t stride = global.size() > 1 ? static_cast<int64_t>(global[1] - global[0]) : 1;

	RECORD_PARAM_COMMS_DATA_WITH_ASYNC_OP(
		std::make_tuple(static_cast<int64_t>(sequence), op.is_p2p()),
		std::make_tuple(pg_uid_, pg_desc_), op.inputs, op.outputs,
		op.is_p2p() ? op.peer : rank_, op.name, elements_of(op.inputs),
		elements_of(op.outputs), first ? first->scalar_type() : at::kByte,
		op.input_splits, op.output_splits, static_cast<int>(start),
		static_cast<int>(stride), size_, op.async);
}

void ProcessGroupSpyre::launch(std::vector<Operation> &ops,
			       const std::vector<std::shared_ptr<Communicator>> &communicators,
			       const c10::Event *begin, SpyreWork &work)
{
	c10::DeviceIndex device = ops[0].device;
	c10::DeviceGuard guard(c10::Device(kType, device));
	c10::Stream caller = current_stream(device);
	std::vector<c10::Stream> streams;
	std::vector<GroupCall> calls;

	for (Operation &op : ops) {
		c10::Stream stream = stream_of(op);

		if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
			if (begin && stream != caller)
				begin->block(stream);
			streams.push_back(stream);
		}
	}
	if (timing_)
		work.time_from(event_at(streams[0], true));
	for (size_t i = 0; i < ops.size(); i++) {
		c10::Stream stream = stream_of(ops[i]);
		c10::StreamGuard on(stream);

		work.use(communicators[i]);
		communicators[i]->limit(limit_of(ops[i]));
		if (records_flights())
			work.record_as(ops[i].flight);
		calls.push_back({ communicators[i]->get(), native_stream(stream), {}, {} });
		ops[i].body(calls.back());
	}
	issue(calls);
	for (size_t i = 0; i < ops.size(); i++) {
		c10::Stream stream = stream_of(ops[i]);
		c10::StreamGuard on(stream);

		for (auto &step : calls[i].finish)
			step();
		record_use(ops[i].inputs, stream);
		record_use(ops[i].outputs, stream);
	}
	for (c10::Stream stream : streams)
		work.ends_at(event_at(stream, timing_), stream);
	work.submitted();
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::run(Operation op,
						  const c10::intrusive_ptr<SpyreWork> &work)
{
	auto begin = std::make_shared<c10::Event>(event_at(current_stream(op.device)));
	Channel &with = channel(op.device, op.peer);

	with.run([this, op = std::move(op), work, begin](
			 const std::shared_ptr<Communicator> &communicator,
			 std::exception_ptr failure) {
		std::vector<Operation> ops{ op };

		if (failure) {
			work->failed(failure);
			return;
		}
		try {
			launch(ops, { communicator }, begin.get(), *work);
		} catch (...) {
			work->failed(std::current_exception());
		}
	});
	return work;
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::submit(Operation op)
{
	uint64_t sequence = op.is_p2p() ? ++transfers_ : ++collectives_;

	record(op, sequence);
	if (coalescing_) {
		coalesced_.push_back(std::move(op));
		return nullptr;
	}

	bool async = op.async, waits = op.type == c10d::OpType::BARRIER;
	auto work = c10::make_intrusive<SpyreWork>(
		rank_, op.type, op.title, sequence,
		limit_of(op), op.inputs, op.outputs, op.device);

	if (waits)
		work->set_blocking();
	if (op.type == c10d::OpType::RECV)
		work->set_source(op.peer);
	if (op.is_p2p())
		return run(std::move(op), work);

	std::optional<c10::Event> begin;
	std::vector<Operation> ops{ std::move(op) };
	std::shared_ptr<Communicator> with = communicator(ops[0].device);

	with->check(ops[0].name);
	if (async)
		begin = event_at(current_stream(ops[0].device));
	launch(ops, { with }, begin ? &*begin : nullptr, *work);
	if (async)
		return work;
	if (waits)
		work->wait(kNoTimeout);
	return nullptr;
}

void ProcessGroupSpyre::startCoalescing()
{
	TORCH_CHECK(!coalescing_, "spyreccl: coalescing has begun already; end it first");
	coalescing_ = true;
	coalesced_.clear();
}

ProcessGroupSpyre::WorkPtr ProcessGroupSpyre::endCoalescing()
{
	std::vector<Operation> ops = std::exchange(coalesced_, {});

	TORCH_CHECK(std::exchange(coalescing_, false), "spyreccl: no coalescing has begun");
	if (ops.empty())
		return nullptr;

	c10::DeviceIndex device = ops[0].device;
	auto work = c10::make_intrusive<SpyreWork>(rank_, c10d::OpType::COALESCED,
						   "spyreccl:coalesced", collectives_.load(),
						   options_->timeout, std::vector<at::Tensor>{},
						   std::vector<at::Tensor>{}, device);
	std::vector<std::shared_ptr<Communicator>> communicators;

	for (const Operation &op : ops) {
		TORCH_CHECK(op.device == device, "spyreccl: operations on spyre:",
			    static_cast<int>(device), " and spyre:", static_cast<int>(op.device),
			    " cannot be coalesced");
		work->add_outputs(op.outputs);
		/* The threads of all channels meet their peers at the same time. */
		if (op.is_p2p())
			channel(device, op.peer).run([](const auto &, std::exception_ptr) {});
	}
	for (const Operation &op : ops)
		communicators.push_back(op.is_p2p() ? channel(device, op.peer).wait() :
						      communicator(device));

	c10::Event begin = event_at(current_stream(device));

	launch(ops, communicators, &begin, *work);
	return work;
}

c10::intrusive_ptr<c10d::Backend>
ProcessGroupSpyre::split(const c10::intrusive_ptr<c10d::Store> &store,
			 const std::vector<int> &ranks,
			 const c10::intrusive_ptr<c10d::Backend::Options> &given)
{
	auto place = std::find(ranks.begin(), ranks.end(), rank_);

	if (place == ranks.end())
		return nullptr;

	auto *own = dynamic_cast<Options *>(given.get());
	auto options = c10::make_intrusive<Options>(own ? *own : *options_);
	auto parents = options_->global_ranks_in_group;

	if (given)
		options->timeout = given->timeout;
	options->group_name = given ? given->group_name : "";
	options->global_ranks_in_group.clear();
	for (int rank : ranks)
		options->global_ranks_in_group.push_back(parents.empty() ? rank : parents[rank]);
	return c10::make_intrusive<ProcessGroupSpyre>(store,
						      static_cast<int>(place - ranks.begin()),
						      static_cast<int>(ranks.size()), options);
}

c10::intrusive_ptr<c10d::Backend>
ProcessGroupSpyre::shrink(const std::vector<int64_t> &ranks, int flags,
			  const c10::intrusive_ptr<c10d::Backend::Options> &given)
{
	constexpr int kAbort = 1;
	c10::DeviceIndex device = bound_device_id_ ? bound_device_id_->index() : current_device();
	std::shared_ptr<Communicator> old = communicator(device);
	std::vector<uint32_t> excluded(ranks.begin(), ranks.end());
	std::set<uint32_t> left_out(excluded.begin(), excluded.end());
	auto *own = dynamic_cast<Options *>(given.get());
	auto options = c10::make_intrusive<Options>(own ? *own : *options_);
	auto parents = options_->global_ranks_in_group;
	spyre_comm_config config{};
	spyre_comm *comm;
	int rank = 0;

	TORCH_CHECK(!left_out.count(rank_), "spyreccl: rank ", rank_, " is excluded and must not "
		    "call shrink()");
	options->global_ranks_in_group.clear();
	for (int r = 0; r < size_; r++) {
		if (left_out.count(r))
			continue;
		rank += r < rank_;
		options->global_ranks_in_group.push_back(parents.empty() ? r : parents[r]);
	}
	if (flags & kAbort)
		abort();
	config.struct_size = sizeof(config);
	config.timeout_ms = std::max<int64_t>(options->timeout.count(), 1);
	{
		ReleaseGil no_gil;

		check_communicator(spyre_comm_shrink(old->get(), excluded.data(), excluded.size(),
						     &config, &comm), "shrinking a group");
	}
	auto shrunk = c10::make_intrusive<ProcessGroupSpyre>(
		c10::make_intrusive<c10d::PrefixStore>(c10::str("shrunk/", shrinks_++), store_),
		rank, static_cast<int>(options->global_ranks_in_group.size()), options);

	shrunk->communicators_[device] = std::make_shared<Communicator>(comm, device);
	shrunk->setBoundDeviceId(c10::Device(kType, device));
	return shrunk;
}

void ProcessGroupSpyre::abort()
{
	std::lock_guard<std::mutex> guard(lock_);

	for (auto &[device, communicator] : communicators_)
		communicator->abort();
	for (auto &[key, channel] : channels_) {
		channel->cancel();
		if (auto communicator = channel->communicator())
			communicator->abort();
	}
}

void ProcessGroupSpyre::shutdown()
{
	ReleaseGil no_gil;
	decltype(communicators_) communicators;
	decltype(channels_) channels;
	{
		std::lock_guard<std::mutex> guard(lock_);

		ended_ = true;
		communicators.swap(communicators_);
		channels.swap(channels_);
	}
	for (auto &[key, channel] : channels)
		if (auto communicator = channel->communicator())
			communicator->shutdown();
	for (auto &[device, communicator] : communicators)
		communicator->shutdown();
}

c10d::ErrorType ProcessGroupSpyre::getError()
{
	std::lock_guard<std::mutex> guard(lock_);
	spyre_status status = SPYRE_SUCCESS;
	std::string text;

	for (auto &[device, communicator] : communicators_)
		if (!status)
			status = communicator->error(&text);
	for (auto &[key, channel] : channels_)
		if (auto communicator = channel->communicator(); communicator && !status)
			status = communicator->error(&text);
	switch (status) {
	case SPYRE_SUCCESS:
		return c10d::ErrorType::SUCCESS;
	case SPYRE_ERROR_TIMEOUT:
		return c10d::ErrorType::TIMEOUT;
	case SPYRE_ERROR_REMOTE:
		return c10d::ErrorType::REMOTE_ERROR;
	default:
		return c10d::ErrorType::COMM_ERROR;
	}
}

} // namespace torch_spyre
