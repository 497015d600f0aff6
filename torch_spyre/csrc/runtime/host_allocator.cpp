// SPDX-License-Identifier: MIT
/* The caching allocator of pinned host memory. */
#include "host_allocator.h"

#include <list>
#include <map>
#include <mutex>
#include <set>

#include <c10/util/Exception.h>
#include <c10/util/llvmMathExtras.h>

#include "device.h"
#include "graph.h"
#include "stream.h"

namespace torch_spyre {

namespace {

constexpr size_t LEAST = 4096;

struct HostBlock {
	void *address;
	size_t bytes;
	c10::DeviceIndex device;	/* the card whose context pinned it */
	uint64_t generation;
	bool in_use = true;
	/* Number of graphs that copy from or to it. */
	unsigned graphs = 0;
	std::set<std::pair<c10::DeviceIndex, int>> streams;
	std::vector<spyre_event *> events;
};

class Pool {
public:
	HostBlock *allocate(size_t size)
	{
		size_t bytes = c10::llvm::PowerOf2Ceil(std::max(size, LEAST));
		std::lock_guard<std::mutex> guard(lock);

		reclaim();
		if (auto it = free_blocks.find(bytes); it != free_blocks.end()) {
			HostBlock *block = it->second;

			free_blocks.erase(it);
			block->in_use = true;
			count(block, true);
			return block;
		}
		return pin(bytes);
	}

	void free(HostBlock *block)
	{
		std::lock_guard<std::mutex> guard(lock);

		count(block, false);
		block->in_use = false;
		if (!block->graphs)
			retire(block);
	}

	HostBlock *hold(const void *pointer)
	{
		std::lock_guard<std::mutex> guard(lock);
		HostBlock *block = find(pointer);

		if (block)
			block->graphs++;
		return block;
	}

	void release(HostBlock *block, c10::DeviceIndex device, const std::set<int> &streams)
	{
		std::lock_guard<std::mutex> guard(lock);

		block->graphs--;
		for (int stream : streams)
			block->streams.emplace(device, stream);
		if (!block->in_use && !block->graphs)
			retire(block);
	}

	bool record(const void *pointer, c10::Stream stream)
	{
		std::lock_guard<std::mutex> guard(lock);
		HostBlock *block = find(pointer);

		if (block)
			block->streams.emplace(stream.device_index(),
					       static_cast<int>(stream.id()));
		return block != nullptr;
	}

	bool owns(const void *pointer)
	{
		std::lock_guard<std::mutex> guard(lock);

		return find(pointer) != nullptr;
	}

	void empty()
	{
		std::lock_guard<std::mutex> guard(lock);

		reclaim();
		for (auto &[bytes, block] : free_blocks) {
			blocks.erase(reinterpret_cast<uintptr_t>(block->address));
			stats.allocations.decrease(1);
			stats.allocated_bytes.decrease(bytes);
			stats.num_host_free++;
			if (block->generation == generation(block->device))
				(void)spyre_host_free(context(block->device), block->address);
			delete block;
		}
		free_blocks.clear();
	}

	bool holds(c10::DeviceIndex device)
	{
		std::lock_guard<std::mutex> guard(lock);

		for (auto &[address, block] : blocks)
			if (block->device == device && block->generation == generation(device))
				return true;
		return false;
	}

	at::HostStats get_stats()
	{
		std::lock_guard<std::mutex> guard(lock);

		return stats;
	}

	void reset(bool peak)
	{
		std::lock_guard<std::mutex> guard(lock);

		for (auto *stat : {&stats.active_requests, &stats.active_bytes,
				   &stats.allocations, &stats.allocated_bytes}) {
			if (peak)
				stat->reset_peak();
			else
				stat->reset_accumulated();
		}
		if (!peak) {
			stats.num_host_alloc = 0;
			stats.num_host_free = 0;
		}
	}

private:
	HostBlock *pin(size_t bytes)
	{
		c10::DeviceIndex device = current_device();
		void *address;

		check(spyre_host_alloc(context(device), bytes, &address),
		      "allocating pinned memory");

		auto *block = new HostBlock{address, bytes, device, generation(device)};

		blocks.emplace(reinterpret_cast<uintptr_t>(address), block);
		stats.allocations.increase(1);
		stats.allocated_bytes.increase(bytes);
		stats.num_host_alloc++;
		count(block, true);
		return block;
	}

	/* Makes a block reusable once its copies are done. */
	void retire(HostBlock *block)
	{
		record_events(block);
		if (block->events.empty())
			free_blocks.emplace(block->bytes, block);
		else
			pending.push_back(block);
	}

	void count(const HostBlock *block, bool more)
	{
		if (more) {
			stats.active_requests.increase(1);
			stats.active_bytes.increase(block->bytes);
		} else {
			stats.active_requests.decrease(1);
			stats.active_bytes.decrease(block->bytes);
		}
	}

	void record_events(HostBlock *block)
	{
		for (auto [device, id] : block->streams) {
			spyre_event *event = nullptr;
			spyre_stream *stream;

			/* A stream in error runs no copy that could use the memory. */
			if (spyre_stream_get(context(device), id, &stream) == SPYRE_SUCCESS &&
			    spyre_event_create(context(device), SPYRE_EVENT_NO_TIMING, &event) ==
				    SPYRE_SUCCESS &&
			    spyre_event_record(event, stream) == SPYRE_SUCCESS &&
			    spyre_event_query(event) == SPYRE_NOT_READY)
				block->events.push_back(event);
			else
				spyre_event_destroy(event);
		}
		block->streams.clear();
	}

	void reclaim()
	{
		for (auto it = pending.begin(); it != pending.end();) {
			auto &events = (*it)->events;

			while (!events.empty() &&
			       spyre_event_query(events.back()) != SPYRE_NOT_READY) {
				spyre_event_destroy(events.back());
				events.pop_back();
			}
			if (events.empty()) {
				free_blocks.emplace((*it)->bytes, *it);
				it = pending.erase(it);
			} else {
				++it;
			}
		}
	}

	HostBlock *find(const void *pointer)
	{
		auto address = reinterpret_cast<uintptr_t>(pointer);
		auto it = blocks.upper_bound(address);

		if (it == blocks.begin())
			return nullptr;
		--it;
		return it->second->in_use && address < it->first + it->second->bytes ? it->second :
										      nullptr;
	}

	std::mutex lock;
	std::map<uintptr_t, HostBlock *> blocks;
	std::multimap<size_t, HostBlock *> free_blocks;
	std::list<HostBlock *> pending;
	at::HostStats stats;
};

Pool &pool()
{
	/* Not destroyed, because tensors may be freed after this file's statics. */
	static auto *p = new Pool;

	return *p;
}

void free_host(void *context)
{
	if (!in_bad_fork())
		pool().free(static_cast<HostBlock *>(context));
}

class PinnedAllocator final : public at::HostAllocator {
public:
	c10::DataPtr allocate(size_t size) override
	{
		if (!size)
			return {nullptr, nullptr, free_host, c10::DeviceType::CPU};

		HostBlock *block = pool().allocate(size);

		return {block->address, block, free_host, c10::DeviceType::CPU};
	}

	c10::DeleterFnPtr raw_deleter() const override
	{
		return nullptr;
	}

	void copy_data(void *target, const void *source, std::size_t count) const override
	{
		default_copy_data(target, source, count);
	}

	bool record_event(void *pointer, void *, c10::Stream stream) override
	{
		return pool().record(pointer, stream);
	}

	void empty_cache() override
	{
		pool().empty();
	}

	at::HostStats get_stats() override
	{
		return pool().get_stats();
	}

	void reset_accumulated_stats() override
	{
		pool().reset(false);
	}

	void reset_peak_stats() override
	{
		pool().reset(true);
	}
};

PinnedAllocator allocator;

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &allocator);

} // namespace

at::HostAllocator *host_allocator()
{
	return &allocator;
}

bool is_pinned(const void *pointer)
{
	return pool().owns(pointer);
}

bool holds_pinned(c10::DeviceIndex device)
{
	return pool().holds(device);
}

bool record_pinned(const void *pointer, c10::Stream stream)
{
	if (!pool().record(pointer, stream))
		return false;
	keep_pinned(pointer, stream);
	return true;
}

void *hold_pinned(const void *pointer)
{
	return pool().hold(pointer);
}

void release_pinned(void *held, c10::DeviceIndex device, const std::set<int> &streams)
{
	if (held && !in_bad_fork())
		pool().release(static_cast<HostBlock *>(held), device, streams);
}

} // namespace torch_spyre
