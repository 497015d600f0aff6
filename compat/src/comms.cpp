// SPDX-License-Identifier: MIT
/* The group of all processes, and its operations. */
#include <spyre_comms.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>

#include "comms_collectives.hpp"
#include "comms_device.hpp"
#include "comms_thread.hpp"
#include "comms_transport.hpp"
#include "comms_types.hpp"

namespace spyre_comms
{

namespace
{

/*
 * Outcome of an operation, which outlives the group. It keeps the text of an error: each
 * waiting thread throws an exception of its own.
 */
struct Outcome {
	std::mutex lock;
	std::condition_variable changed;
	bool done = false;
	std::string error;

	void finish(std::string with)
	{
		std::lock_guard<std::mutex> guard(lock);

		error = std::move(with);
		done = true;
		changed.notify_all();
	}
};

/* One operation: what a thread of the group runs. */
struct Task {
	Call call;
	/* The rest is of point-to-point operations; a collective one has no peer. */
	int peer = -1;
	int32_t tag = 0;
	bool receives = false;
	/* Its number among those that it is matched with, set by start(). */
	uint64_t sequence = 0;
	std::function<void(const Task &)> body;
	std::shared_ptr<Outcome> outcome = std::make_shared<Outcome>();

	Key key(uint64_t offset) const
	{
		return {LANE_MESSAGES, tag, sequence, offset};
	}
};

class World final : public Context, public std::enable_shared_from_this<World>
{
public:
	World(const Place &place, std::shared_ptr<flex::RuntimeContext> owner,
	      flex::RuntimeStream &stream)
	    : rank(place.rank), size(place.size), context(std::move(owner)),
	      allocator(context->getAllocator()), device(stream.native())
	{
		if (size > 1)
			transport = std::make_unique<Transport>(place);
		collectives = std::make_unique<Collectives>(stream.native(), share_id(), rank,
							    size);
		worker = start_thread([this] { run(); });
	}

	~World() override
	{
		close();
	}

	process_id_t getRank() const override
	{
		return rank;
	}

	process_id_t getSize() const override
	{
		return size;
	}

	std::shared_ptr<WorkSchedule> broadcast(Tensor &tensor, process_id_t root) override;
	std::shared_ptr<WorkSchedule> allgather(std::vector<Tensor> &outputs,
						Tensor &input) override;
	std::shared_ptr<WorkSchedule> gather(std::vector<Tensor> &outputs, Tensor &input,
					     process_id_t root) override;
	std::shared_ptr<WorkSchedule> allreduce(Tensor &tensor, SpyreReductionOpType op) override;
	std::shared_ptr<WorkSchedule> reduce(Tensor &tensor, SpyreReductionOpType op,
					     process_id_t root) override;
	std::shared_ptr<WorkSchedule> barrier() override;
	std::shared_ptr<WorkSchedule> send(Tensor &tensor, process_id_t to, int tag) override;
	std::shared_ptr<WorkSchedule> recv(Tensor &tensor, process_id_t from, int tag) override;

	void start(Task task);
	void close();

private:
	std::shared_ptr<WorkSchedule> message(Tensor &tensor, process_id_t peer, int tag,
					      bool receives);
	std::shared_ptr<WorkSchedule> schedule(Task task);
	void run();
	void execute(const Task &task);
	void check_rank(process_id_t other, const char *operation) const;

	spyre_comm_id share_id();
	std::vector<uint8_t> receive_piece(const Task &task, uint64_t offset);
	void fail();

	const int rank, size;
	/* Keeps the card open. */
	const std::shared_ptr<flex::RuntimeContext> context;
	const std::shared_ptr<flex::FlexAllocator> allocator;
	Device device;
	/* Of sends and receives, and of the id with which the collective operations begin. */
	std::unique_ptr<Transport> transport;
	std::unique_ptr<Collectives> collectives;

	/* Protects all of the following. */
	std::mutex lock;
	std::condition_variable changed;
	std::deque<Task> queue;
	bool closed = false;
	std::string failure;
	bool executing = false; /* a collective operation */
	std::map<std::tuple<int, bool, int32_t>, uint64_t> messages;
	int running = 0; /* threads of point-to-point operations */
	std::thread worker;
};

class Work final : public WorkSchedule
{
public:
	Work(std::weak_ptr<World> in, Task what)
	    : world(std::move(in)), task(std::move(what)), outcome(task.outcome)
	{
	}

	void start() override
	{
		std::shared_ptr<World> target = world.lock();

		if (started.exchange(true))
			throw std::runtime_error("cannot start a " + task.call.text() +
						 ": it was started before");
		/* A wait for an operation that cannot be started ends with the same error. */
		try {
			if (!target)
				throw std::runtime_error("cannot start a " + task.call.text() +
							 ": this rank has left the group");
			target->start(std::move(task));
		} catch (const std::exception &failed) {
			outcome->finish(failed.what());
			throw;
		}
	}

	void wait() override
	{
		std::unique_lock<std::mutex> guard(outcome->lock);

		check_started();
		outcome->changed.wait(guard, [this] { return outcome->done; });
		if (!outcome->error.empty())
			throw std::runtime_error(outcome->error);
	}

	bool query() override
	{
		std::lock_guard<std::mutex> guard(outcome->lock);

		check_started();
		if (!outcome->error.empty())
			throw std::runtime_error(outcome->error);
		return outcome->done;
	}

private:
	void check_started() const
	{
		if (!started)
			throw std::runtime_error("cannot wait for an operation that was not "
						 "started; call start() first");
	}

	const std::weak_ptr<World> world;
	Task task;
	const std::shared_ptr<Outcome> outcome;
	std::atomic<bool> started{false};
};

std::shared_ptr<WorkSchedule> World::schedule(Task task)
{
	return std::make_shared<Work>(weak_from_this(), std::move(task));
}

void World::check_rank(process_id_t other, const char *operation) const
{
	if (other < 0 || other >= size)
		throw std::runtime_error(std::string("cannot ") + operation + ": rank " +
					 std::to_string(other) + " is not in the group of " +
					 std::to_string(size));
}

/* Collective operations run one after the other, point-to-point ones in threads of their own:
 * a send that waits for its receiver holds up no other operation. */
void World::start(Task task)
{
	std::unique_lock<std::mutex> guard(lock);

	if (closed || !failure.empty())
		throw std::runtime_error(
			"cannot start a " + task.call.text() + ": " +
			(closed ? "this rank has left the group"
				: "an operation of this rank has failed: " + failure));
	if (task.peer < 0) {
		queue.push_back(std::move(task));
		changed.notify_all();
		return;
	}

	uint64_t &sequence = messages[{task.peer, task.receives, task.tag}];

	task.sequence = sequence;
	start_thread([this, task = std::move(task)] {
		execute(task);

		std::lock_guard<std::mutex> end(lock);

		running--;
		changed.notify_all();
	}).detach();
	/* An operation for which there is no thread has no number: the next one matches. */
	sequence++;
	running++;
}

void World::run()
{
	std::unique_lock<std::mutex> guard(lock);

	for (;;) {
		changed.wait(guard, [this] { return closed || !queue.empty(); });
		if (queue.empty())
			return;

		Task task = std::move(queue.front());

		queue.pop_front();
		executing = true;
		guard.unlock();
		execute(task);
		guard.lock();
	}
}

void World::execute(const Task &task)
{
	try {
		{
			std::lock_guard<std::mutex> guard(lock);

			if (!failure.empty())
				throw std::runtime_error("cannot run a " + task.call.text() +
							 ": an earlier operation of this rank has "
							 "failed: " +
							 failure);
		}
		task.body(task);
		/* First: whoever waits for the outcome may close the group next. */
		if (task.peer < 0) {
			std::lock_guard<std::mutex> guard(lock);

			executing = false;
		}
		task.outcome->finish({});
	} catch (const std::exception &error) {
		{
			std::lock_guard<std::mutex> guard(lock);

			if (failure.empty())
				failure = error.what();
		}
		fail();
		task.outcome->finish(error.what());
	}
}

/* Ends what the other ranks wait for. */
void World::fail()
{
	if (transport)
		transport->fail();
	collectives->abort();
}

/* The first rank makes the id of the communicator. */
spyre_comm_id World::share_id()
{
	const Key key = {LANE_ID, 0, 0, 0};
	spyre_comm_id id;

	if (rank) {
		Message message = transport->receive(0, key);

		if (message.data.size() != sizeof(id))
			throw std::runtime_error("cannot join the group of processes: rank 0 has sent "
						 "an id of " +
						 std::to_string(message.data.size()) + " bytes");
		memcpy(&id, message.data.data(), sizeof(id));
		return id;
	}
	id = Collectives::new_id();

	const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&id);

	for (int r = 1; r < size; r++)
		transport->send(r, {key, {Kind::Broadcast, 0, 0, sizeof(id)},
				    {bytes, bytes + sizeof(id)}});
	return id;
}

void World::close()
{
	bool pending;

	{
		std::lock_guard<std::mutex> guard(lock);

		if (closed)
			return;
		closed = true;
		pending = executing || !queue.empty();
		changed.notify_all();
	}
	if (transport)
		transport->close();
	/* Without it, the worker would wait for ranks that never call. */
	if (pending)
		collectives->abort();
	worker.join();

	std::unique_lock<std::mutex> guard(lock);

	changed.wait(guard, [this] { return !running; });
	guard.unlock();
	collectives.reset();
	transport.reset();
}

std::vector<uint8_t> World::receive_piece(const Task &task, uint64_t offset)
{
	Message message = transport->receive(task.peer, task.key(offset));

	if (message.call != task.call)
		throw std::runtime_error(
			"cannot run a " + task.call.text() + ": rank " + std::to_string(task.peer) +
			" runs a " + message.call.text() +
			"; start the same operations in the same order on all ranks");
	return std::move(message.data);
}

Call call_of(Kind kind, const Memory &memory, int root = -1)
{
	return {kind, static_cast<int32_t>(memory.type), root, memory.bytes};
}

std::shared_ptr<WorkSchedule> World::broadcast(Tensor &tensor, process_id_t root)
{
	check_rank(root, "broadcast");

	Memory memory = memory_of(*allocator, tensor, "broadcast");
	Task task;

	task.call = call_of(Kind::Broadcast, memory, root);
	task.body = [this, memory, root](const Task &) { collectives->broadcast(memory, root); };
	return schedule(std::move(task));
}

/* The memory of the outputs of a gather: one for each rank, equal to the input. */
std::vector<Memory> outputs_of(const flex::FlexAllocator &allocator,
			       const std::vector<Tensor> &outputs, const Memory &input, int size,
			       const char *operation)
{
	std::vector<Memory> memory;

	if (outputs.size() != static_cast<size_t>(size))
		throw std::runtime_error(std::string("cannot ") + operation + ": " +
					 std::to_string(outputs.size()) + " outputs for " +
					 std::to_string(size) + " ranks");
	for (const Tensor &output : outputs) {
		memory.push_back(memory_of(allocator, output, operation));
		if (memory.back().bytes != input.bytes || memory.back().type != input.type)
			throw std::runtime_error(
				std::string("cannot ") + operation + ": an output has " +
				std::to_string(memory.back().bytes) + " bytes of " +
				name_of(memory.back().type) + ", the input " +
				std::to_string(input.bytes) + " bytes of " + name_of(input.type));
	}
	return memory;
}

std::shared_ptr<WorkSchedule> World::allgather(std::vector<Tensor> &outputs, Tensor &input)
{
	Memory from = memory_of(*allocator, input, "allgather");
	std::vector<Memory> to = outputs_of(*allocator, outputs, from, size, "allgather");
	Task task;

	task.call = call_of(Kind::AllGather, from);
	task.body = [this, from, to](const Task &) { collectives->all_gather(from, to); };
	return schedule(std::move(task));
}

std::shared_ptr<WorkSchedule> World::gather(std::vector<Tensor> &outputs, Tensor &input,
					    process_id_t root)
{
	check_rank(root, "gather");

	Memory from = memory_of(*allocator, input, "gather");
	std::vector<Memory> to =
		outputs_of(*allocator, outputs, from, rank == root ? size : 0, "gather");
	Task task;

	task.call = call_of(Kind::Gather, from, root);
	task.body = [this, from, to, root](const Task &) { collectives->gather(from, to, root); };
	return schedule(std::move(task));
}

Memory term_of(const flex::FlexAllocator &allocator, const Tensor &tensor, SpyreReductionOpType op,
	       const char *operation)
{
	if (op != SpyreReductionOpType::SUM)
		throw std::runtime_error(
			std::string("cannot ") + operation + ": the reduction UNSUPPORTED (" +
			std::to_string(static_cast<int>(op)) + ") is not supported; use SUM");

	Memory memory = memory_of(allocator, tensor, operation);

	if (sum_format(memory.type) == SPYRE_FORMAT_INVALID)
		throw std::runtime_error(std::string("cannot ") + operation +
					 ": sums of the data type " + name_of(memory.type) +
					 " are not supported; use float16, bfloat16 or float32");
	return memory;
}

std::shared_ptr<WorkSchedule> World::allreduce(Tensor &tensor, SpyreReductionOpType op)
{
	Memory memory = term_of(*allocator, tensor, op, "allreduce");
	Task task;

	task.call = call_of(Kind::AllReduce, memory);
	task.body = [this, memory](const Task &) { collectives->all_reduce(memory); };
	return schedule(std::move(task));
}

std::shared_ptr<WorkSchedule> World::reduce(Tensor &tensor, SpyreReductionOpType op,
					    process_id_t root)
{
	check_rank(root, "reduce");

	Memory memory = term_of(*allocator, tensor, op, "reduce");
	Task task;

	task.call = call_of(Kind::Reduce, memory, root);
	task.body = [this, memory, root](const Task &) { collectives->reduce(memory, root); };
	return schedule(std::move(task));
}

std::shared_ptr<WorkSchedule> World::barrier()
{
	Task task;

	task.call = {Kind::Barrier, 0, -1, 0};
	task.body = [this](const Task &) { collectives->barrier(); };
	return schedule(std::move(task));
}

std::shared_ptr<WorkSchedule> World::send(Tensor &tensor, process_id_t to, int tag)
{
	return message(tensor, to, tag, false);
}

std::shared_ptr<WorkSchedule> World::recv(Tensor &tensor, process_id_t from, int tag)
{
	return message(tensor, from, tag, true);
}

std::shared_ptr<WorkSchedule> World::message(Tensor &tensor, process_id_t peer, int tag,
					     bool receives)
{
	const char *operation = receives ? "receive" : "send";

	check_rank(peer, operation);
	if (peer == rank)
		throw std::runtime_error(std::string("cannot ") + operation + ": rank " +
					 std::to_string(peer) + " is this rank; copy the tensor");

	Memory memory = memory_of(*allocator, tensor, operation);
	Task task;

	task.call = call_of(Kind::Send, memory);
	task.tag = tag;
	task.peer = peer;
	task.receives = receives;
	task.body = [this, memory](const Task &self) {
		for (uint64_t offset = 0; offset < memory.bytes; offset += PIECE_BYTES) {
			uint64_t bytes = std::min(PIECE_BYTES, memory.bytes - offset);
			spyre_devptr at = memory.address + offset;

			if (self.receives)
				device.write(at, receive_piece(self, offset));
			else
				transport->send(self.peer, {self.key(offset), self.call,
							    device.read(at, bytes)});
		}
		if (!self.receives)
			transport->flush(self.peer);
	};
	return schedule(std::move(task));
}

struct Library {
	std::mutex lock;
	std::shared_ptr<World> world;
	int users = 0;
};

/* Never destroyed: a group that is in use when the process exits ends with the process. */
Library &library()
{
	static Library &instance = *new Library;

	return instance;
}

} // namespace

void initialize_library(std::shared_ptr<flex::RuntimeContext> context, flex::RuntimeStream *stream)
{
	Library &l = library();
	std::lock_guard<std::mutex> guard(l.lock);

	if (!context || !stream)
		throw std::runtime_error("cannot join the group of processes: no context or no "
					 "stream is given");
	if (!l.world)
		l.world = std::make_shared<World>(Place::from_environment(), std::move(context),
						  *stream);
	l.users++;
}

void finalize_library()
{
	Library &l = library();
	std::lock_guard<std::mutex> guard(l.lock);

	if (!l.users || --l.users)
		return;
	l.world->close();
	l.world.reset();
}

std::shared_ptr<Context> get_world_context()
{
	Library &l = library();
	std::lock_guard<std::mutex> guard(l.lock);

	return l.world;
}

} // namespace spyre_comms
