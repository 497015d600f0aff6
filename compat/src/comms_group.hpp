/* SPDX-License-Identifier: MIT */
/*
 * Rendezvous of the processes of a group, and the memory that they then share.
 *
 * Rank 0 listens on a socket in a directory that only its user can enter, checks the user of
 * each process that connects, and passes on a memfd: the memory has no name. The socket is
 * removed as soon as all ranks have the memory.
 */
#ifndef SPYRE_COMMS_GROUP_HPP
#define SPYRE_COMMS_GROUP_HPP

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comms_fd.hpp"

namespace spyre_comms
{

constexpr int MAX_RANKS = 64;
constexpr size_t RING_BYTES = 262144;

/** State of a rank, which itself sets. */
enum RankState : uint32_t {
	RANK_ATTACHED,
	RANK_LEFT,   /**< finalize_library() */
	RANK_FAILED, /**< one of its operations failed */
};

struct alignas(64) RankPage {
	/** Futex: others increment it when they have written to or read from a ring of it. */
	std::atomic<uint32_t> bell;
	std::atomic<uint32_t> state;
	/** Set before the memory is passed on. */
	int32_t pid;
};

/** Bytes from one rank to another. The counters only grow. */
struct Ring {
	alignas(64) std::atomic<uint64_t> written;
	alignas(64) std::atomic<uint64_t> read;
	alignas(64) uint8_t data[RING_BYTES];
};

struct Segment {
	RankPage rank[MAX_RANKS];
	/** From rank i to rank j of n: i * n + j. */
	Ring ring[];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

/** The place of this process in its group, from the environment. */
struct Place {
	int rank = 0;
	int size = 1;
	/** Equal on all ranks of a group, different for groups that exist at the same time. */
	std::string name;
	int timeout_ms = 300000;

	/** Throws std::runtime_error if variables are missing or contradict each other. */
	static Place from_environment();
};

/** The attached memory and the processes that share it. */
class Group
{
public:
	/** Waits for all ranks. Throws std::runtime_error. */
	explicit Group(const Place &place);

	Ring &ring(int from, int to)
	{
		return segment->ring[from * size + to];
	}

	RankPage &page(int of)
	{
		return segment->rank[of];
	}

	/** Increments a rank's bell and wakes it. */
	void ring_bell(int of);

	/** Waits until the bell of this rank is not @value any more, for at most 20 ms. */
	void wait_bell(uint32_t value);

	/** Returns whether the process of another rank has ended. */
	bool ended(int other) const;

	const int rank, size;

private:
	void listen(const Place &place);
	void connect(const Place &place);
	void check(const Fd &memory) const;
	void map(int memory);
	void watch();

	struct Unmap {
		size_t bytes;
		void operator()(Segment *segment) const;
	};

	const size_t bytes;
	std::unique_ptr<Segment, Unmap> segment;
	/** Process descriptors by rank: unlike a number, they never mean another process. */
	std::vector<Fd> process;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_GROUP_HPP */
