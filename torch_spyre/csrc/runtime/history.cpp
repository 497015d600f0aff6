// SPDX-License-Identifier: MIT
/* Entries of the memory history, the stacks of their callers, and observers of failures. */
#include "history.h"

#include <algorithm>
#include <mutex>

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include "cache.h"
#include "device.h"

namespace torch_spyre {

std::atomic<bool> history_enabled{false};

namespace {

/* gather_enabled() reads these without the lock of a cache. */
std::atomic<RecordContext> stacks_from{RecordContext::NEVER};
std::atomic<bool> with_cpp_frames{false};

/* Protects the list of observers, which is not destroyed: its functions of Python would need an
 * interpreter. */
std::mutex observers_lock;

std::vector<OutOfMemoryObserver> &observers()
{
	static auto *list = new std::vector<OutOfMemoryObserver>;

	return *list;
}

bool is_free(TraceEntry::Action action)
{
	return action == TraceEntry::FREE_REQUESTED || action == TraceEntry::FREE_COMPLETED ||
	       action == TraceEntry::SEGMENT_FREE;
}

unsigned bits_of(const std::vector<std::string> &actions)
{
	unsigned bits = 0;

	for (const std::string &action : actions)
		bits |= 1U << c10::CachingDeviceAllocator::parseTraceEntryAction(action);
	return bits;
}

} // namespace

CallStack gather_enabled(RecordContext when)
{
	if (stacks_from.load(std::memory_order_relaxed) < when)
		return nullptr;
	return torch::CapturedTraceback::gather(true, true,
						with_cpp_frames.load(std::memory_order_relaxed));
}

void History::configure(const HistoryOptions &options)
{
	if (!options.enabled || options.clear)
		entries.clear();
	max_entries = std::max<size_t>(options.max_entries, 1);
	while (entries.size() > max_entries)
		entries.pop_front();
	when = options.when;
	skipped = bits_of(options.skipped);
}

void History::add(TraceEntry::Action action, c10::DeviceIndex device, uint64_t address,
		  uint64_t bytes, int stream, c10::MempoolId_t pool, const CallStack &stack)
{
	bool keeps_stack = when >= (is_free(action) ? RecordContext::ALL : RecordContext::ALLOC);

	if (skipped >> action & 1)
		return;
	if (entries.size() == max_entries)
		entries.pop_front();
	entries.emplace_back(action, device, address, bytes,
			     reinterpret_cast<void *>(static_cast<intptr_t>(stream)), pool,
			     0, keeps_stack ? stack : nullptr);
	/* The time itself: entries are too rare to need PyTorch's approximate clock. */
	entries.back().time_.t_ = c10::getTime();
}

void record_history(const HistoryOptions &options)
{
	/* Serialises calls, so that all cards get the options of the last one. */
	static std::mutex lock;
	std::lock_guard<std::mutex> guard(lock);

	/* Throws before anything has changed. */
	(void)bits_of(options.skipped);
	if (options.enabled && options.cpp_frames)
		(void)torch::unwind::unwind();
	if (!options.enabled)
		history_enabled = false;
	with_cpp_frames = options.cpp_frames;
	stacks_from = options.enabled ? options.when : RecordContext::NEVER;
	for (int i = 0; i < MAX_DEVICES; i++)
		cache(static_cast<c10::DeviceIndex>(i)).configure_history(options);
	if (options.enabled)
		history_enabled = true;
}

void attach_out_of_memory_observer(OutOfMemoryObserver observer)
{
	std::lock_guard<std::mutex> guard(observers_lock);

	observers().push_back(std::move(observer));
}

void observe_out_of_memory(c10::DeviceIndex device, size_t requested)
{
	std::vector<OutOfMemoryObserver> list;
	spyre_memory_info info{};

	{
		std::lock_guard<std::mutex> guard(observers_lock);

		list = observers();
	}
	if (list.empty())
		return;
	info.struct_size = sizeof(info);
	(void)spyre_mem_info(context(device), &info);
	for (const OutOfMemoryObserver &observer : list)
		observer(device, requested, info.total, info.free);
}

} // namespace torch_spyre
