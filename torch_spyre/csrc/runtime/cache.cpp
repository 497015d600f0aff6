// SPDX-License-Identifier: MIT
/* The caching, stream-ordered allocator of device memory. */
#include "cache.h"

#include <array>
#include <tuple>

#include <c10/util/Exception.h>

#include "device.h"
#include "graph.h"

namespace torch_spyre {

namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::SegmentInfo;

constexpr uint64_t MIB = uint64_t(1) << 20;
/* Granule of small chunks: four sticks. */
constexpr uint64_t GRANULE = 4 * SPYRE_STICK;
constexpr uint64_t SMALL_MOST = MIB;
constexpr uint64_t SMALL_SEGMENT = 2 * MIB;
/* Up to MEDIUM_MOST, chunks share segments of MEDIUM_SEGMENT. */
constexpr uint64_t MEDIUM_MOST = 8 * MIB;
constexpr uint64_t MEDIUM_SEGMENT = 16 * MIB;

/* The pool of memory that belongs to no graph. */
constexpr c10::MempoolId_t EVERYBODYS{0, 0};

uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

void count(StatArray &stats, bool small, uint64_t amount, bool more)
{
	for (StatType type : {StatType::AGGREGATE,
			      small ? StatType::SMALL_POOL : StatType::LARGE_POOL}) {
		auto &stat = stats[static_cast<size_t>(type)];

		if (more)
			stat.increase(amount);
		else
			stat.decrease(amount);
	}
}

uint64_t segment_bytes(uint64_t bytes, bool small)
{
	if (small)
		return SMALL_SEGMENT;
	return bytes <= MEDIUM_MOST ? MEDIUM_SEGMENT : round_up(bytes, SMALL_SEGMENT);
}

/* @segment in PyTorch's form. */
SegmentInfo describe(c10::DeviceIndex device, const Segment &segment)
{
	SegmentInfo info;

	info.device = device;
	info.address = segment.address;
	info.total_size = segment.bytes;
	info.stream = reinterpret_cast<void *>(static_cast<intptr_t>(segment.stream));
	info.is_large = !segment.small;
	info.owner_private_pool_id = segment.pool;
	info.context_when_allocated = segment.stack;
	for (Chunk *chunk = segment.first; chunk; chunk = chunk->next) {
		c10::CachingDeviceAllocator::BlockInfo block;

		block.size = chunk->bytes;
		block.requested_size = chunk->requested;
		block.allocated = chunk->owner != nullptr;
		block.active = chunk->in_use;
		block.context_when_allocated = chunk->stack;
		info.requested_size += block.allocated ? block.requested_size : 0;
		info.allocated_size += block.allocated ? block.size : 0;
		info.active_size += block.active ? block.size : 0;
		info.blocks.push_back(std::move(block));
	}
	return info;
}

template <typename F> void each_stat(c10::CachingDeviceAllocator::DeviceStats &stats, F &&f)
{
	for (auto *array : {&stats.allocation, &stats.segment, &stats.active,
			    &stats.inactive_split, &stats.allocated_bytes, &stats.reserved_bytes,
			    &stats.active_bytes, &stats.inactive_split_bytes,
			    &stats.requested_bytes})
		for (auto &stat : *array)
			f(stat);
	f(stats.oversize_allocations);
	f(stats.oversize_segments);
}

} // namespace

Cache &cache(c10::DeviceIndex device)
{
	/* Not destroyed, because storages may be freed after this file's statics. */
	static auto *caches = new std::array<std::unique_ptr<Cache>, MAX_DEVICES>([] {
		std::array<std::unique_ptr<Cache>, MAX_DEVICES> a;

		for (int i = 0; i < MAX_DEVICES; i++)
			a[i] = std::make_unique<Cache>(i);
		return a;
	}());

	return *(*caches)[device];
}

/* Returns the free segments that @wanted selects to the card. */
template <typename F> void Cache::release_free(const CallStack &stack, F &&wanted)
{
	for (Pool *free_chunks : {&small_pool, &large_pool}) {
		for (auto it = free_chunks->begin(); it != free_chunks->end();) {
			Chunk *chunk = *it++;

			if (is_releasable(chunk) && wanted(chunk))
				release(chunk, stack);
		}
	}
}

bool Cache::Order::operator()(const Chunk *a, const Chunk *b) const
{
	return std::tie(a->segment->pool, a->segment->stream, a->bytes, a->address) <
	       std::tie(b->segment->pool, b->segment->stream, b->bytes, b->address);
}

/* Counts free chunks of shared segments, which cannot be released alone. */
void Cache::count_inactive(const Chunk *chunk, bool more)
{
	if (!chunk->split())
		return;
	count(counts.inactive_split, chunk->segment->small, 1, more);
	count(counts.inactive_split_bytes, chunk->segment->small, chunk->bytes, more);
}

/* Finds a free chunk for the stream and pool of @like. */
Chunk *Cache::find(uint64_t bytes, const Segment &like)
{
	Segment probe_segment = like;
	Chunk probe{&probe_segment, 0, bytes};
	Pool &free_chunks = pool(like.small);
	auto it = free_chunks.lower_bound(&probe);

	if (it == free_chunks.end() || (*it)->segment->stream != like.stream ||
	    (*it)->segment->pool != like.pool)
		return nullptr;
	/* A small request must not take a huge chunk, which another huge request could use. */
	if (!like.small && bytes > MEDIUM_MOST && (*it)->bytes > bytes + bytes / 2 + MEDIUM_SEGMENT)
		return nullptr;

	Chunk *chunk = *it;

	free_chunks.erase(it);
	count_inactive(chunk, false);
	return chunk;
}

spyre_status Cache::map(uint64_t bytes, spyre_devptr *address)
{
	spyre_status status = spyre_mem_alloc(context(device), bytes, address);

	if (status == SPYRE_SUCCESS)
		counts.num_device_alloc++;
	return status;
}

Chunk *Cache::grow(uint64_t bytes, const Segment &like, Attempt attempt)
{
	uint64_t size = segment_bytes(bytes, like.small);
	spyre_devptr address;
	spyre_status status;

	if (attempt != Attempt::kFirst) {
		counts.num_alloc_retries++;
		release_segments(like.stack);
	}
	status = map(size, &address);
	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY && attempt == Attempt::kFirst)
		return nullptr;
	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY && size > round_up(bytes, GRANULE)) {
		/* A shared segment does not fit; a segment for this request alone may. */
		size = round_up(bytes, GRANULE);
		status = map(size, &address);
	}
	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY) {
		if (attempt != Attempt::kLast)
			return nullptr;
		out_of_memory(bytes, like, spyre_last_error());
	}
	check(status, "allocating device memory");

	auto segment = std::make_unique<Segment>(like);
	segment->address = address;
	segment->bytes = size;
	auto *chunk = new Chunk{segment.get(), address, size, generation(device)};

	segment->first = chunk;
	note(TraceEntry::SEGMENT_ALLOC, address, size, *segment, like.stack);
	segments.emplace(address, std::move(segment));
	count(counts.segment, like.small, 1, true);
	count(counts.reserved_bytes, like.small, size, true);
	return chunk;
}

void Cache::out_of_memory(uint64_t bytes, const Segment &like, const std::string &cause)
{
	spyre_memory_info info{};

	counts.num_ooms++;
	info.struct_size = sizeof(info);
	(void)spyre_mem_info(context(device), &info);
	note(TraceEntry::OOM, info.free, bytes, like, like.stack);
	TORCH_CHECK_WITH(OutOfMemoryError, false, "spyre:", static_cast<int>(device),
			 " is out of memory: requested ", bytes, " bytes, free ", info.free, " of ",
			 info.total, " bytes, largest free block ", info.largest_free,
			 " bytes; PyTorch has allocated ", allocated(), " bytes and holds ",
			 reserved(), ". Free tensors or take smaller batches. (", cause, ")");
}

/* Cuts @chunk to @bytes and adds the rest to the pool. */
void Cache::cut(Chunk *chunk, uint64_t bytes)
{
	bool small = chunk->segment->small;
	uint64_t rest = chunk->bytes - bytes;

	if (small ? rest < GRANULE : rest < SMALL_MOST)
		return;

	auto *tail = new Chunk{chunk->segment, chunk->address + bytes, rest, chunk->generation};

	tail->previous = chunk;
	tail->next = chunk->next;
	if (tail->next)
		tail->next->previous = tail;
	chunk->next = tail;
	chunk->bytes = bytes;
	pool(small).insert(tail);
	count_inactive(tail, true);
}

Chunk *Cache::allocate(uint64_t requested, int stream, Block *owner, Attempt attempt,
		       const CallStack &stack)
{
	uint64_t bytes = round_up(requested, GRANULE);
	bool small = bytes <= SMALL_MOST;
	std::lock_guard<std::recursive_mutex> guard(lock);

	TORCH_CHECK_WITH(OutOfMemoryError, bytes >= requested && bytes < uint64_t(1) << 62,
			 "spyre: cannot allocate ", requested, " bytes");
	if (!pending.empty())
		reclaim(stack);

	Segment like{0, 0, stream, small};

	like.stack = stack;
	if (!captured.empty()) {
		auto it = captured.find(capture_of(device, stream));

		/* The streams of a capture run one after the other, so they share memory. */
		if (it != captured.end()) {
			like.stream = -1;
			like.pool = it->second;
		}
	}
	Chunk *chunk = find(bytes, like);

	if (!chunk)
		chunk = grow(bytes, like, attempt);
	if (!chunk)
		return nullptr;
	cut(chunk, bytes);
	chunk->in_use = true;
	chunk->owner = owner;
	chunk->requested = requested;
	chunk->stack = stack;
	note(TraceEntry::ALLOC, chunk->address, requested, *chunk->segment, stack);
	count(counts.allocation, small, 1, true);
	count(counts.allocated_bytes, small, chunk->bytes, true);
	count(counts.requested_bytes, small, requested, true);
	count(counts.active, small, 1, true);
	count(counts.active_bytes, small, chunk->bytes, true);
	return chunk;
}

void Cache::record(Chunk *chunk, int stream)
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	if (chunk->generation == generation(device) && stream != chunk->segment->stream)
		chunk->other_streams.insert(stream);
}

bool Cache::free(Chunk *chunk, const CallStack &stack)
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	if (chunk->generation != generation(device)) {
		delete chunk;
		return false;
	}

	bool small = chunk->segment->small;

	chunk->owner = nullptr;
	note(TraceEntry::FREE_REQUESTED, chunk->address, chunk->requested, *chunk->segment, stack);
	count(counts.allocation, small, 1, false);
	count(counts.allocated_bytes, small, chunk->bytes, false);
	count(counts.requested_bytes, small, chunk->requested, false);
	for (int id : chunk->other_streams) {
		spyre_event *event = nullptr;
		spyre_stream *stream;

		/* A stream in error refuses the event, but runs no work that uses the memory. */
		if (spyre_stream_get(context(device), id, &stream) == SPYRE_SUCCESS &&
		    spyre_event_create(context(device), SPYRE_EVENT_NO_TIMING, &event) ==
			    SPYRE_SUCCESS &&
		    spyre_event_record(event, stream) == SPYRE_SUCCESS)
			chunk->events.push_back(event);
		else
			spyre_event_destroy(event);
	}
	chunk->other_streams.clear();
	if (chunk->events.empty())
		give_back(chunk, stack);
	else
		pending.push_back(chunk);
	return true;
}

/* Walks the chunks of a segment, which is rarely needed: for imported memory only. */
Block *Cache::owner(spyre_devptr address)
{
	std::lock_guard<std::recursive_mutex> guard(lock);
	auto it = segments.upper_bound(address);

	if (it == segments.begin())
		return nullptr;
	for (Chunk *chunk = std::prev(it)->second->first; chunk; chunk = chunk->next)
		if (address - chunk->address < chunk->bytes)
			return chunk->owner;
	return nullptr;
}

bool Cache::reached(Chunk *chunk)
{
	while (!chunk->events.empty()) {
		if (spyre_event_query(chunk->events.back()) == SPYRE_NOT_READY)
			return false;
		spyre_event_destroy(chunk->events.back());
		chunk->events.pop_back();
	}
	return true;
}

void Cache::reclaim(const CallStack &stack)
{
	for (auto it = pending.begin(); it != pending.end();) {
		if (reached(*it)) {
			give_back(*it, stack);
			it = pending.erase(it);
		} else {
			++it;
		}
	}
}

/* Merges @neighbour into @chunk. */
void Cache::merge(Chunk *chunk, Chunk *neighbour)
{
	if (!neighbour || neighbour->in_use)
		return;
	pool(chunk->segment->small).erase(neighbour);
	count_inactive(neighbour, false);
	chunk->bytes += neighbour->bytes;
	if (neighbour == chunk->previous) {
		chunk->address = neighbour->address;
		chunk->previous = neighbour->previous;
		if (chunk->previous)
			chunk->previous->next = chunk;
		else
			chunk->segment->first = chunk;
	} else {
		chunk->next = neighbour->next;
		if (chunk->next)
			chunk->next->previous = chunk;
	}
	delete neighbour;
}

void Cache::give_back(Chunk *chunk, const CallStack &stack)
{
	bool small = chunk->segment->small;

	note(TraceEntry::FREE_COMPLETED, chunk->address, chunk->requested, *chunk->segment, stack);
	chunk->stack = nullptr;
	count(counts.active, small, 1, false);
	count(counts.active_bytes, small, chunk->bytes, false);
	merge(chunk, chunk->previous);
	merge(chunk, chunk->next);
	chunk->in_use = false;
	chunk->requested = 0;
	pool(small).insert(chunk);
	count_inactive(chunk, true);
	/* Releases the last segments of a pool without graphs. */
	if (chunk->segment->pool != EVERYBODYS && is_releasable(chunk))
		release(chunk, stack);
}

/* True if the whole segment is free and belongs to no graph. */
bool Cache::is_releasable(const Chunk *chunk) const
{
	return !chunk->split() && !private_pools.count(chunk->segment->pool);
}

/* Gives the segment of a free @chunk back to the card, which keeps it for work that is queued. */
void Cache::release(Chunk *chunk, const CallStack &stack)
{
	Segment *segment = chunk->segment;

	pool(segment->small).erase(chunk);
	check(spyre_mem_free(context(device), segment->address), "freeing device memory");
	counts.num_device_free++;
	note(TraceEntry::SEGMENT_FREE, segment->address, segment->bytes, *segment, stack);
	count(counts.segment, segment->small, 1, false);
	count(counts.reserved_bytes, segment->small, segment->bytes, false);
	segments.erase(segment->address);
	delete chunk;
}

void Cache::begin_capture(uint64_t capture, c10::MempoolId_t id)
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	captured[capture] = id;
	private_pools[id]++;
}

void Cache::end_capture(uint64_t capture)
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	captured.erase(capture);
}

void Cache::release_pool(c10::MempoolId_t id)
{
	std::lock_guard<std::recursive_mutex> guard(lock);
	auto users = private_pools.find(id);

	if (users == private_pools.end() || --users->second)
		return;
	private_pools.erase(users);
	release_free(nullptr, [&](const Chunk *chunk) { return chunk->segment->pool == id; });
}

void Cache::release_segments(const CallStack &stack)
{
	counts.num_sync_all_streams++;
	reclaim(stack);
	release_free(stack, [](const Chunk *) { return true; });
}

void Cache::empty(const CallStack &stack)
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	if (!segments.empty())
		release_segments(stack);
}

/* Adds the end of @segment and of all that it contains to the history. */
void Cache::note_loss(const Segment &segment)
{
	for (Chunk *chunk = segment.first; chunk; chunk = chunk->next) {
		if (chunk->owner)
			note(TraceEntry::FREE_REQUESTED, chunk->address, chunk->requested, segment,
			     nullptr);
		if (chunk->in_use)
			note(TraceEntry::FREE_COMPLETED, chunk->address, chunk->requested, segment,
			     nullptr);
	}
	note(TraceEntry::SEGMENT_FREE, segment.address, segment.bytes, segment, nullptr);
}

/* Chunks in use stay with their owners, which check the generation of the context. */
spyre_context *Cache::leave()
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	/* The context may live on because of another thread, so its memory is freed here. */
	if (has_context(device))
		for (auto &[address, segment] : segments)
			(void)spyre_mem_free(context(device), address);
	for (auto &[address, segment] : segments)
		note_loss(*segment);
	for (Pool *free_chunks : {&small_pool, &large_pool}) {
		for (Chunk *chunk : *free_chunks)
			delete chunk;
		free_chunks->clear();
	}
	for (Chunk *chunk : pending) {
		for (spyre_event *event : chunk->events)
			spyre_event_destroy(event);
		delete chunk;
	}
	pending.clear();
	segments.clear();
	captured.clear();
	private_pools.clear();
	counts = {};
	return leave_context(device);
}

void Cache::note(TraceEntry::Action action, uint64_t address, uint64_t bytes,
		 const Segment &segment, const CallStack &stack)
{
	history.note(action, device, address, bytes, segment.stream, segment.pool, stack);
}

void Cache::configure_history(const HistoryOptions &options)
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	history.configure(options);
}

CardSnapshot Cache::snapshot(const c10::MempoolId_t *pool, bool entries)
{
	std::lock_guard<std::recursive_mutex> guard(lock);
	CardSnapshot result;
	uint64_t active = 0;

	for (auto &[address, segment] : segments) {
		if (pool && segment->pool != *pool)
			continue;
		result.segments.push_back(describe(device, *segment));
		active += result.segments.back().active_size;
	}
	note(TraceEntry::SNAPSHOT, 0, active, Segment{}, nullptr);
	if (entries)
		result.entries = history.list();
	return result;
}

c10::CachingDeviceAllocator::DeviceStats Cache::stats()
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	return counts;
}

void Cache::reset_accumulated()
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	each_stat(counts, [](auto &stat) { stat.reset_accumulated(); });
	counts.num_alloc_retries = 0;
	counts.num_ooms = 0;
	counts.num_sync_all_streams = 0;
	counts.num_device_alloc = 0;
	counts.num_device_free = 0;
}

void Cache::reset_peak()
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	each_stat(counts, [](auto &stat) { stat.reset_peak(); });
}

uint64_t Cache::allocated()
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	return counts.allocated_bytes[0].current;
}

uint64_t Cache::reserved()
{
	std::lock_guard<std::recursive_mutex> guard(lock);

	return counts.reserved_bytes[0].current;
}

} // namespace torch_spyre
