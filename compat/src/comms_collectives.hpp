/* SPDX-License-Identifier: MIT */
/* Collective operations by <spyre/collective.h>. */
#ifndef SPYRE_COMMS_COLLECTIVES_HPP
#define SPYRE_COMMS_COLLECTIVES_HPP

#include <vector>

#include <spyre/spyre.h>

#include "comms_types.hpp"

namespace spyre_comms
{

/**
 * A rank of a communicator. Operations run after the work that was queued on the stream before,
 * on a stream of their own: one that fails leaves the caller's stream usable. They return when
 * they have finished, and throw std::runtime_error. One thread calls them; any may call abort().
 */
class Collectives
{
public:
	/** Waits for the other ranks, which have the same @id. */
	Collectives(spyre_stream *after, const spyre_comm_id &id, int rank, int size);
	~Collectives();
	Collectives(const Collectives &) = delete;
	Collectives &operator=(const Collectives &) = delete;

	/** The id for all ranks of a new group. */
	static spyre_comm_id new_id();

	void broadcast(const Memory &tensor, int root);
	void all_gather(const Memory &input, const std::vector<Memory> &outputs);
	/** @outputs is empty on ranks other than @root. */
	void gather(const Memory &input, const std::vector<Memory> &outputs, int root);
	void all_reduce(const Memory &tensor);
	void reduce(const Memory &tensor, int root);
	void barrier();

	/** Ends the operations of all ranks, unless one of them has failed already. */
	void abort();

private:
	template <typename Call> void run(Call call);
	void release();

	spyre_stream *after, *stream = nullptr;
	spyre_event *event = nullptr;
	spyre_comm *comm = nullptr;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_COLLECTIVES_HPP */
