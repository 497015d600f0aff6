// SPDX-License-Identifier: MIT
/*
 * The LRU cache of kernels. A key is a short list of words, which are hashed and
 * compared. The lock is held for lookups and insertions, not while a kernel is
 * compiled.
 */
#include "program.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

#include "allocator.h"
#include "device.h"
#include "planner_settings.h"

namespace torch_spyre {

namespace {

/* The words that identify a kernel. */
struct Key {
	static constexpr unsigned kOfOperand = 3 + SPYRE_MAX_RANK + SPYRE_MAX_DEVICE_RANK;
	static constexpr unsigned kWords = 8 + 2 * Call::kAttributes +
					   Call::kOperands * kOfOperand;
	uint64_t hash = 0xcbf29ce484222325ull;
	unsigned count = 0;
	uint64_t word[kWords];

	void push(uint64_t value)
	{
		word[count++] = value;
		hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
};

uint64_t bits(double value)
{
	uint64_t word;

	std::memcpy(&word, &value, sizeof(word));
	return word;
}

void push_operand(Key &key, const Operand &operand)
{
	const spyre_sdsc_operand &o = operand.desc;
	const spyre_layout &l = o.layout;
	uint64_t dims = 0;

	for (uint32_t j = 0; j < l.device_rank; j++)
		dims = dims << 8 | static_cast<uint8_t>(l.dim_map[j]);
	key.push(o.rank | l.device_rank << 8 | static_cast<uint64_t>(l.device_format) << 16 |
		 static_cast<uint64_t>(l.arrangement) << 32 |
		 static_cast<uint64_t>(operand.clean_padding) << 48 |
		 static_cast<uint64_t>(operand.whole_sticks) << 49);
	key.push(dims);
	for (uint32_t d = 0; d < o.rank; d++)
		key.push(static_cast<uint64_t>(o.size[d]));
	for (uint32_t j = 0; j < l.device_rank; j++)
		key.push(static_cast<uint64_t>(l.device_size[j]));
}

void make_key(Key &key, const Call &call, c10::DeviceIndex device)
{
	key.push(reinterpret_cast<uintptr_t>(call.program));
	key.push(planner_settings());
	key.push(call.num_operands | call.num_attributes << 8 |
		 static_cast<uint64_t>(call.format) << 16 |
		 static_cast<uint64_t>(static_cast<uint8_t>(device)) << 32);
	for (unsigned i = 0; i < call.num_attributes; i++) {
		key.push(reinterpret_cast<uintptr_t>(call.attribute[i].name));
		key.push(bits(call.attribute[i].value));
	}
	for (unsigned i = 0; i < call.num_operands; i++)
		push_operand(key, call.operand[i]);
}

/* A kernel, or one that a thread is compiling. */
struct Entry {
	std::vector<uint64_t> word;
	uint64_t hash;
	c10::DeviceIndex device;
	std::mutex compiling;
	Kernel kernel;
	uint64_t bytes = 0;
};

using EntryRef = std::shared_ptr<Entry>;

class ProgramCache {
public:
	Kernel get(const Call &call, c10::DeviceIndex device);
	ProgramCacheStats stats();
	void clear(c10::DeviceIndex device);

private:
	using Order = std::list<EntryRef>;

	EntryRef find(const Key &key, c10::DeviceIndex device, Kernel *kernel);
	void account(const EntryRef &entry, std::vector<EntryRef> *dropped);
	void forget(const EntryRef &entry);
	void drop(Order::iterator position);

	std::mutex mutex_;
	Order order_;	/* most recently used first */
	std::unordered_multimap<uint64_t, Order::iterator> index_;
	ProgramCacheStats stats_{ 0, 0, 0, 0, 0, limit() };

	static uint64_t limit();
};

/* TORCH_SPYRE_PROGRAM_CACHE_MIB: limit of the kernels' device memory and host tables. */
uint64_t ProgramCache::limit()
{
	const char *text = std::getenv("TORCH_SPYRE_PROGRAM_CACHE_MIB");
	long mib = text ? std::atol(text) : 0;

	return static_cast<uint64_t>(mib > 0 ? mib : 512) << 20;
}

/* Finds or adds the entry of a key; sets @kernel if the entry has one. */
EntryRef ProgramCache::find(const Key &key, c10::DeviceIndex device, Kernel *kernel)
{
	std::lock_guard<std::mutex> lock(mutex_);
	auto range = index_.equal_range(key.hash);

	for (auto at = range.first; at != range.second; ++at) {
		const EntryRef &entry = *at->second;

		if (entry->word.size() != key.count ||
		    std::memcmp(entry->word.data(), key.word, key.count * sizeof(key.word[0])))
			continue;
		if (at->second != order_.begin())
			order_.splice(order_.begin(), order_, at->second);
		*kernel = entry->kernel;
		if (*kernel) {
			stats_.hits++;
			return nullptr;
		}
		return entry;
	}
	EntryRef entry = std::make_shared<Entry>();
	entry->word.assign(key.word, key.word + key.count);
	entry->hash = key.hash;
	entry->device = device;
	order_.push_front(entry);
	index_.emplace(key.hash, order_.begin());
	return entry;
}

void ProgramCache::drop(Order::iterator position)
{
	auto range = index_.equal_range((*position)->hash);

	for (auto at = range.first; at != range.second; ++at)
		if (at->second == position) {
			index_.erase(at);
			break;
		}
	if ((*position)->kernel) {
		stats_.kernels--;
		stats_.bytes -= (*position)->bytes;
	}
	order_.erase(position);
}

/* Counts a new kernel and evicts others; the caller releases those in @dropped. */
void ProgramCache::account(const EntryRef &entry, std::vector<EntryRef> *dropped)
{
	spyre_kernel_info info{};

	info.struct_size = sizeof(info);
	if (spyre_kernel_get_info(entry->kernel.get(), &info) == SPYRE_SUCCESS)
		entry->bytes = info.program_bytes + info.pool_bytes + sizeof(Entry);
	stats_.kernels++;
	stats_.bytes += entry->bytes;
	while (stats_.bytes > stats_.limit_bytes && order_.size() > 1) {
		auto last = std::prev(order_.end());

		if (*last == entry || !(*last)->kernel)
			break;
		dropped->push_back(*last);
		drop(last);
		stats_.evictions++;
	}
}

void ProgramCache::forget(const EntryRef &entry)
{
	for (auto at = order_.begin(); at != order_.end(); ++at)
		if (*at == entry) {
			drop(at);
			return;
		}
}

Kernel make(const Call &call, c10::DeviceIndex device, uint64_t since)
{
	Graph graph(call);

	call.program->build(graph, call);
	return keep_kernel(graph.load(context(device)), device, since);
}

/* Retries after emptying the allocator's cache, which may free enough memory. */
Kernel make_or_make_room(const Call &call, c10::DeviceIndex device, uint64_t since)
{
	try {
		return make(call, device, since);
	} catch (const c10::OutOfMemoryError &) {
		device_allocator()->emptyCache({0, 0});
	}
	return make(call, device, since);
}

Kernel ProgramCache::get(const Call &call, c10::DeviceIndex device)
{
	std::vector<EntryRef> dropped;
	Kernel kernel;
	Key key;

	make_key(key, call, device);
	EntryRef entry = find(key, device, &kernel);
	if (!entry)
		return kernel;
	/* Other threads that need the same kernel wait here and then find it. */
	std::lock_guard<std::mutex> compiling(entry->compiling);
	{
		std::lock_guard<std::mutex> lock(mutex_);
		if (entry->kernel) {
			stats_.hits++;
			return entry->kernel;
		}
		stats_.misses++;
	}
	uint64_t since = generation(device);
	try {
		kernel = make_or_make_room(call, device, since);
	} catch (...) {
		std::lock_guard<std::mutex> lock(mutex_);
		forget(entry);
		throw;
	}
	std::lock_guard<std::mutex> lock(mutex_);
	if (since != generation(device)) {
		/* The context was replaced meanwhile; the launch reports the error. */
		forget(entry);
		return kernel;
	}
	entry->kernel = kernel;
	account(entry, &dropped);
	return kernel;
}

ProgramCacheStats ProgramCache::stats()
{
	std::lock_guard<std::mutex> lock(mutex_);
	return stats_;
}

void ProgramCache::clear(c10::DeviceIndex device)
{
	std::vector<EntryRef> dropped;
	std::lock_guard<std::mutex> lock(mutex_);

	for (auto at = order_.begin(); at != order_.end();) {
		auto next = std::next(at);

		if ((device < 0 || (*at)->device == device) && (*at)->kernel) {
			dropped.push_back(*at);
			drop(at);
		}
		at = next;
	}
}

/* Not destroyed: kernels outlive static destructors, and the context frees them. */
ProgramCache &cache()
{
	static ProgramCache *instance = new ProgramCache;
	return *instance;
}

} // namespace

Kernel program_for(const Call &call, c10::DeviceIndex device)
{
	return cache().get(call, device);
}

ProgramCacheStats program_cache_stats()
{
	return cache().stats();
}

void program_cache_clear(c10::DeviceIndex device)
{
	cache().clear(device);
}

} // namespace torch_spyre
