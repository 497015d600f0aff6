/* SPDX-License-Identifier: MIT */
/*
 * Collective and point-to-point operations between processes of one machine that have a card
 * each. The names are those that torch-spyre's torch_spyre/csrc/distributed at a312898 uses.
 *
 * The processes of a group find each other by RANK and WORLD_SIZE (or LOCAL_RANK and
 * LOCAL_WORLD_SIZE), MASTER_ADDR and MASTER_PORT. Collective operations are those of
 * <spyre/collective.h>; sends and receives pass through host memory that the processes share. Functions throw std::runtime_error; an operation that fails throws from wait() and
 * query(), and its rank cannot use the group any more. If a process ends, the operations of
 * the others that need it fail.
 */
#ifndef SPYRE_COMMS_HPP
#define SPYRE_COMMS_HPP

#include <cstdint>
#include <memory>
#include <vector>

#include <flex/flex.hpp>
#include <spyre_comms_tensor.hpp>

namespace spyre_comms
{

using process_id_t = int32_t;

enum class SpyreReductionOpType {
	SUM,
	/** Stands for all others, which reduce() and allreduce() reject. */
	UNSUPPORTED,
};

/** An operation. Its memory must stay allocated until it has finished. */
class COMPAT_EXPORT WorkSchedule
{
public:
	virtual ~WorkSchedule() = default;

	/**
	 * Starts the operation and returns. Collective operations run in the order of these
	 * calls, which must be the same on all ranks. It reads its tensors after the work that
	 * was queued on the stream of initialize_library() before.
	 */
	virtual void start() = 0;

	/** Waits until the operation has finished. */
	virtual void wait() = 0;

	/** Returns whether the operation has finished. */
	virtual bool query() = 0;
};

/** A group of processes, the ranks 0 to getSize() - 1. */
class COMPAT_EXPORT Context
{
public:
	virtual ~Context() = default;

	virtual process_id_t getRank() const = 0;
	virtual process_id_t getSize() const = 0;

	/** Gives every rank the tensor of @root. */
	virtual std::shared_ptr<WorkSchedule> broadcast(Tensor &tensor, process_id_t root) = 0;

	/** Copies the inputs of all ranks to @outputs of every rank, in rank order. */
	virtual std::shared_ptr<WorkSchedule> allgather(std::vector<Tensor> &outputs,
							Tensor &input) = 0;

	/** The same for @outputs of @root; those of other ranks must be empty. */
	virtual std::shared_ptr<WorkSchedule> gather(std::vector<Tensor> &outputs, Tensor &input,
						     process_id_t root) = 0;

	/**
	 * Replaces @tensor on every rank by the sum over the ranks: added in fp32, in rank
	 * order, and rounded once to the card's format, by a program of the card. All ranks
	 * get the same bits. For float16, bfloat16 and float32.
	 */
	virtual std::shared_ptr<WorkSchedule> allreduce(Tensor &tensor,
							SpyreReductionOpType op) = 0;

	/** The same on @root only; the tensors of the other ranks stay as they are. */
	virtual std::shared_ptr<WorkSchedule> reduce(Tensor &tensor, SpyreReductionOpType op,
						     process_id_t root) = 0;

	/** Finishes when all ranks have started it. */
	virtual std::shared_ptr<WorkSchedule> barrier() = 0;

	/**
	 * Sends a tensor, which the receive with the same tag on rank @to gets. Those with
	 * equal tags are matched in the order of their starts; others do not wait for each
	 * other. A send finishes when its data has left the tensor, maybe before the receive.
	 */
	virtual std::shared_ptr<WorkSchedule> send(Tensor &tensor, process_id_t to, int tag) = 0;
	virtual std::shared_ptr<WorkSchedule> recv(Tensor &tensor, process_id_t from, int tag) = 0;
};

/**
 * Joins the group and waits for its other ranks, for at most SPYRE_COMMS_TIMEOUT_MS (300000)
 * milliseconds. Operations begin after the work of @stream. Further calls
 * return immediately; each needs a finalize_library().
 */
COMPAT_EXPORT void initialize_library(std::shared_ptr<flex::RuntimeContext> context,
				      flex::RuntimeStream *stream);

/** Leaves the group. Operations of this rank that have not finished fail. */
COMPAT_EXPORT void finalize_library();

/** Returns the group of all processes; NULL before initialize_library(). */
COMPAT_EXPORT std::shared_ptr<Context> get_world_context();

} // namespace spyre_comms

#endif /* SPYRE_COMMS_HPP */
