// SPDX-License-Identifier: MIT
/*
 * The cache of a card's memory. Memory that a stream freed may be allocated again
 * for the same stream at once, since its work is in order. Memory with recorded
 * uses on other streams waits for events on those.
 *
 * It takes no locks of Python or PyTorch; callers may hold the GIL.
 */
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include <c10/core/CachingDeviceAllocator.h>

#include "history.h"
#include "spyre.h"

namespace torch_spyre {

struct Chunk;

struct Segment {
	spyre_devptr address = 0;
	uint64_t bytes = 0;
	int stream = 0;
	bool small = false;
	Chunk *first = nullptr;
	/* The pool of the graphs that own it, {0, 0} if none does. */
	c10::MempoolId_t pool{0, 0};
	/* The caller that needed it, if the history records stacks. */
	CallStack stack = nullptr;
};

/* A part of a segment, between its neighbours in address order. */
struct Chunk {
	Segment *segment;
	spyre_devptr address;
	uint64_t bytes;
	/* Generation of the context that the memory belongs to. */
	uint64_t generation = 0;
	uint64_t requested = 0;
	bool in_use = false;
	Block *owner = nullptr;
	/* The caller that allocated it, if the history records stacks. */
	CallStack stack = nullptr;
	Chunk *previous = nullptr, *next = nullptr;
	/* Streams other than the segment's that use it, and points in them. */
	std::set<int> other_streams;
	std::vector<spyre_event *> events;

	bool split() const
	{
		return previous || next;
	}
};

/* Stages of an allocation: the caller goes on to the next one while the card is full. */
enum class Attempt {
	/* Returns NULL at once: the caller waits for the card without the cache's lock. */
	kFirst,
	/* First gives free segments back to the card; returns NULL if that does not help. */
	kEmptied,
	/* As kEmptied, but throws c10::OutOfMemoryError. */
	kLast,
};

class Cache {
public:
	explicit Cache(c10::DeviceIndex device) : device(device)
	{
	}

	/* @stack is the caller's, for the history, as gather() returned it. */
	Chunk *allocate(uint64_t bytes, int stream, Block *owner, Attempt attempt,
			const CallStack &stack);
	/* False if the context has ended, which has freed the memory. */
	bool free(Chunk *chunk, const CallStack &stack);
	/* The block whose memory contains @address, or NULL. */
	Block *owner(spyre_devptr address);
	void record(Chunk *chunk, int stream);
	/* Returns all unused segments to the card, which keeps memory of queued work until that
	 * has finished. The caller has waited for the card. */
	void empty(const CallStack &stack);

	/*
	 * Streams of @capture allocate from @pool only, so that its graph shares no memory
	 * until all graphs have released the pool. Memory that is freed meanwhile is
	 * reused by captures into the same pool.
	 */
	void begin_capture(uint64_t capture, c10::MempoolId_t pool);
	void end_capture(uint64_t capture);
	void release_pool(c10::MempoolId_t pool);

	/* Frees all memory and detaches the card's context, which the caller may destroy. */
	spyre_context *leave();

	c10::CachingDeviceAllocator::DeviceStats stats();
	void reset_accumulated();
	void reset_peak();
	uint64_t allocated(), reserved();

	void configure_history(const HistoryOptions &options);
	/* The segments, of @pool only if one is given, and the history if @entries. */
	CardSnapshot snapshot(const c10::MempoolId_t *pool, bool entries);

private:
	struct Order {
		bool operator()(const Chunk *a, const Chunk *b) const;
	};
	using Pool = std::set<Chunk *, Order>;

	Pool &pool(bool small)
	{
		return small ? small_pool : large_pool;
	}
	Chunk *find(uint64_t bytes, const Segment &like);
	Chunk *grow(uint64_t bytes, const Segment &like, Attempt attempt);
	spyre_status map(uint64_t bytes, spyre_devptr *address);
	[[noreturn]] void out_of_memory(uint64_t bytes, const Segment &like,
					const std::string &cause);
	void cut(Chunk *chunk, uint64_t bytes);
	void give_back(Chunk *chunk, const CallStack &stack);
	void merge(Chunk *chunk, Chunk *neighbour);
	bool reached(Chunk *chunk);
	void reclaim(const CallStack &stack);
	bool is_releasable(const Chunk *chunk) const;
	void release(Chunk *chunk, const CallStack &stack);
	template <typename F> void release_free(const CallStack &stack, F &&wanted);
	void release_segments(const CallStack &stack);
	void note(TraceEntry::Action action, uint64_t address, uint64_t bytes,
		  const Segment &segment, const CallStack &stack);
	void note_loss(const Segment &segment);
	void count_inactive(const Chunk *chunk, bool more);

	const c10::DeviceIndex device;
	std::recursive_mutex lock;
	Pool small_pool, large_pool;
	std::map<spyre_devptr, std::unique_ptr<Segment>> segments;
	/* Freed chunks that other streams may still use. */
	std::list<Chunk *> pending;
	/* The pools of captures in progress, and the number of graphs of each pool. */
	std::map<uint64_t, c10::MempoolId_t> captured;
	std::map<c10::MempoolId_t, unsigned> private_pools;
	c10::CachingDeviceAllocator::DeviceStats counts;
	History history;
};

Cache &cache(c10::DeviceIndex device);

} // namespace torch_spyre
