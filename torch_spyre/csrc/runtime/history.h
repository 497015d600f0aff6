// SPDX-License-Identifier: MIT
/*
 * The history of allocations that torch.spyre.memory._record_memory_history() turns on, in
 * PyTorch's own structs. Each card's cache has one, which its lock protects; the options are the
 * same for all cards.
 */
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/CachingDeviceAllocator.h>

namespace torch_spyre {

using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::TraceEntry;

/* A stack of Python and C++ frames, symbolized when a snapshot is taken; null if not recorded. */
using CallStack = std::shared_ptr<c10::GatheredContext>;

struct HistoryOptions {
	bool enabled = false;
	/* From which event on stacks are kept. */
	RecordContext when = RecordContext::NEVER;
	bool cpp_frames = false;
	/* Older entries are dropped; at least one is kept. */
	size_t max_entries = 1;
	bool clear = false;
	/* Names of actions that are not recorded. */
	std::vector<std::string> skipped;
};

/* While this is false, an allocation costs its loads and nothing else. */
extern std::atomic<bool> history_enabled;

CallStack gather_enabled(RecordContext when);

/* The stack of the caller if stacks are kept from @when on. It takes the GIL: the caller holds no
 * lock of a cache. */
inline CallStack gather(RecordContext when)
{
	if (__builtin_expect(!history_enabled.load(std::memory_order_relaxed), 1))
		return nullptr;
	return gather_enabled(when);
}

/* The entries of a card. The caller holds the lock of its cache. */
class History {
public:
	void configure(const HistoryOptions &options);

	void note(TraceEntry::Action action, c10::DeviceIndex device, uint64_t address,
		  uint64_t bytes, int stream, c10::MempoolId_t pool, const CallStack &stack)
	{
		if (__builtin_expect(history_enabled.load(std::memory_order_relaxed), 0))
			add(action, device, address, bytes, stream, pool, stack);
	}

	const std::deque<TraceEntry> &list() const
	{
		return entries;
	}

private:
	void add(TraceEntry::Action action, c10::DeviceIndex device, uint64_t address,
		 uint64_t bytes, int stream, c10::MempoolId_t pool, const CallStack &stack);

	std::deque<TraceEntry> entries;
	size_t max_entries = 1;
	RecordContext when = RecordContext::NEVER;
	/* A bit for each TraceEntry::Action that is not recorded. */
	unsigned skipped = 0;
};

/* Applies @options to all cards; throws c10::Error for an unknown action in them. */
void record_history(const HistoryOptions &options);

/* The part of a snapshot of PyTorch that is about one card. */
struct CardSnapshot {
	std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
	std::deque<TraceEntry> entries;
};

/* Observers are called with a card, the bytes requested, and the card's memory and free memory,
 * before an OutOfMemoryError is thrown. They stay attached. */
using OutOfMemoryObserver = std::function<void(int64_t, size_t, size_t, size_t)>;
void attach_out_of_memory_observer(OutOfMemoryObserver observer);
/* The caller holds no lock of a cache, since observers may call Python. */
void observe_out_of_memory(c10::DeviceIndex device, size_t requested);

} // namespace torch_spyre
