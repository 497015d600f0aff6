// SPDX-License-Identifier: MIT
/* Blocks of device memory behind DataPtrs, and PyTorch's view of the allocator. */
#include "allocator.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>

#include "cache.h"
#include "device.h"
#include "gil.h"
#include "graph.h"
#include "history.h"
#include "wait.h"

namespace torch_spyre {

namespace {

/* The context of a DataPtr. */
struct OwnedBlock final : Block {
	Chunk *chunk = nullptr;
	uint64_t generation = 0;
	/* The storage that owns the memory, if this block does not. */
	c10::Storage base;
};

/* Only Python's collector frees tensors in reference cycles. The caller does not hold the cache's
 * lock: finalizers run here, and threads that hold the GIL may wait for that lock. */
void collect_garbage()
{
	namespace py = pybind11;

	if (!Py_IsInitialized())
		return;
	py::gil_scoped_acquire gil;
	py::error_scope error;

	try {
		py::module_::import("gc").attr("collect")();
	} catch (py::error_already_set &e) {
		/* KeyboardInterrupt goes to the caller; errors of finalizers are reported here. */
		if (!e.matches(PyExc_Exception))
			throw;
		e.discard_as_unraisable("spyre: gc.collect()");
	}
}

/* Waits before memory is returned to the card, without the cache's lock: Ctrl-C could not end
 * a wait for a lock that another thread holds while it waits. */
void wait_for_card(c10::DeviceIndex device)
{
	wait_for_signals_too(device);
	ReleaseGil no_gil;

	/* A stream in error must not keep memory from being freed. */
	(void)spyre_context_synchronize(context(device));
}

void empty_cache_of(c10::DeviceIndex device)
{
	CallStack stack = gather(RecordContext::ALL);

	wait_for_card(device);
	cache(device).empty(stack);
}

/* Allocates from the cache; if the card is full, first releases unused segments, then runs
 * Python's garbage collector. */
Chunk *find_room(c10::DeviceIndex device, uint64_t bytes, int stream, Block *owner)
{
	CallStack stack = gather(RecordContext::STATE);
	Chunk *chunk = cache(device).allocate(bytes, stream, owner, Attempt::kFirst, stack);

	if (!chunk) {
		wait_for_card(device);
		chunk = cache(device).allocate(bytes, stream, owner, Attempt::kEmptied, stack);
	}
	if (chunk)
		return chunk;
	collect_garbage();
	wait_for_card(device);
	try {
		return cache(device).allocate(bytes, stream, owner, Attempt::kLast, stack);
	} catch (const c10::OutOfMemoryError &) {
		observe_out_of_memory(device, bytes);
		throw;
	}
}

void report(const OwnedBlock &block, int64_t bytes)
{
	if (!c10::memoryProfilingEnabled())
		return;
	c10::reportMemoryUsageToProfiler(
		reinterpret_cast<void *>(block.address), bytes, cache(block.device).allocated(),
		cache(block.device).reserved(),
		c10::Device(c10::DeviceType::PrivateUse1, block.device));
}

/* True if the context has ended, or in a forked child, which must not free the memory. */
bool is_stale(const OwnedBlock &block)
{
	return in_bad_fork() || block.generation != generation(block.device);
}

/*
 * Notes a use of @block in a capture. Before a replay anything may write it, so that a capture
 * knows of its numbers only what it has written itself.
 */
void note_capture(Block &block)
{
	uint64_t capture = capture_of(block.device,
				      static_cast<int>(current_stream(block.device).id()));

	if (!capture)
		return;
	block.in_graph = true;
	if (std::exchange(block.capture, capture) != capture)
		block.range = Range();
}

void free_block(void *context)
{
	std::unique_ptr<OwnedBlock> block(static_cast<OwnedBlock *>(context));

	if (!block->chunk || in_bad_fork())
		return;
	uint64_t bytes = block->chunk->bytes;

	try {
		if (cache(block->device).free(block->chunk, gather(RecordContext::ALL)))
			report(*block, -static_cast<int64_t>(bytes));
	} catch (const std::exception &) {
		/* Deleters must neither throw nor call Python, as a warning might. The next
		 * use of the context reports the error. */
	}
}

class Allocator final : public c10::DeviceAllocator {
public:
	/* Allocates bytes without a dtype; the first tensor of the storage sets it. */
	c10::DataPtr allocate(size_t bytes) override
	{
		return torch_spyre::allocate(current_device(), bytes, nullptr);
	}

	c10::DeleterFnPtr raw_deleter() const override
	{
		/* Only blocks can be freed, not addresses. */
		return nullptr;
	}

	void copy_data(void *target, const void *source, std::size_t count) const override
	{
		c10::DeviceIndex device = current_device();
		auto to = reinterpret_cast<spyre_devptr>(target);
		auto from = reinterpret_cast<spyre_devptr>(source);
		Block *block = find_block(device, from), *written = find_block(device, to);

		if (!count)
			return;
		if (written)
			written->forget();
		if (block && block->address == from)
			count = block->bytes;
		check(spyre_memcpy_d2d_async(current_native_stream(device), to, from, count),
		      "copying a storage");
	}

	bool initialized() override
	{
		return is_initialized();
	}

	void emptyCache(c10::MempoolId_t) override
	{
		for (c10::DeviceIndex i = 0; i < device_count(); i++)
			if (has_context(i))
				empty_cache_of(i);
	}

	void recordStream(const c10::DataPtr &ptr, c10::Stream stream) override
	{
		if (ptr.get_deleter() != free_block || !ptr.get_context())
			return;

		auto *block = static_cast<OwnedBlock *>(ptr.get_context());

		TORCH_CHECK(stream.device() == ptr.device(), "spyre: memory of ", ptr.device(),
			    " cannot be used on a stream of ", stream.device());
		if (block->chunk && !is_stale(*block))
			cache(block->device).record(block->chunk, static_cast<int>(stream.id()));
	}

	c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override
	{
		return cache(check_index(device)).stats();
	}

	void resetAccumulatedStats(c10::DeviceIndex device) override
	{
		cache(check_index(device)).reset_accumulated();
	}

	void resetPeakStats(c10::DeviceIndex device) override
	{
		cache(check_index(device)).reset_peak();
	}

	std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override
	{
		spyre_memory_info info{};

		info.struct_size = sizeof(info);
		check(spyre_mem_info(context(check_index(device)), &info), "memory info");
		return {info.free, info.total};
	}
};

Allocator allocator;

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);

} // namespace

c10::DeviceAllocator *device_allocator()
{
	return &allocator;
}

c10::DataPtr alias_block(const Block &base, c10::Storage keeper)
{
	auto block = std::make_unique<OwnedBlock>();
	auto *data = reinterpret_cast<void *>(base.address);
	c10::Device device(c10::DeviceType::PrivateUse1, base.device);

	static_cast<Block &>(*block) = base;
	block->generation = generation(base.device);
	block->base = std::move(keeper);
	return {data, block.release(), free_block, device};
}

c10::DataPtr alias(const c10::Storage &storage, uint64_t offset, PlacementPtr placement)
{
	auto block = std::make_unique<OwnedBlock>();
	Block *base = block_of(storage);

	TORCH_CHECK(offset <= base->bytes && offset % SPYRE_STICK == 0,
		    "spyre: cannot place a tensor at byte ", offset, " of a block of ",
		    base->bytes, " bytes: expected a multiple of ", SPYRE_STICK, " within it");
	block->device = base->device;
	block->address = base->address + offset;
	block->bytes = base->bytes - offset;
	block->placement = std::move(placement);
	block->clean_padding = false;
	block->shared = base->shared = true;
	block->generation = generation(base->device);
	block->base = storage;

	auto *data = reinterpret_cast<void *>(block->address);

	return {data, block.release(), free_block,
		c10::Device(c10::DeviceType::PrivateUse1, base->device)};
}

c10::DataPtr allocate(c10::DeviceIndex device, uint64_t bytes, PlacementPtr placement)
{
	auto block = std::make_unique<OwnedBlock>();

	device = check_index(device);
	block->device = device;
	block->address = 0;
	block->bytes = 0;
	block->placement = std::move(placement);
	block->clean_padding = false;
	if (bytes) {
		int stream = static_cast<int>(current_stream(device).id());

		block->chunk = find_room(device, bytes, stream, block.get());
		block->generation = block->chunk->generation;
		block->address = block->chunk->address;
		block->bytes = block->chunk->bytes;
		report(*block, static_cast<int64_t>(block->bytes));
	}

	auto *data = reinterpret_cast<void *>(block->address);

	return {data, block.release(), free_block,
		c10::Device(c10::DeviceType::PrivateUse1, device)};
}

Block *find_block(c10::DeviceIndex device, spyre_devptr address)
{
	return cache(device).owner(address);
}

Block *block_of(const c10::Storage &storage)
{
	const c10::DataPtr &ptr = storage.data_ptr();

	TORCH_CHECK(ptr.device().is_privateuseone(), "spyre: expected memory of a spyre device, got ",
		    ptr.device());
	if (ptr.get_deleter() == free_block && ptr.get_context()) {
		auto *block = static_cast<OwnedBlock *>(ptr.get_context());

		TORCH_CHECK(!block->address || block->generation == generation(block->device),
			    "spyre: the tensor's memory was lost when the device was reset; create "
			    "the tensor again");
		if (__builtin_expect(captures.load(std::memory_order_relaxed) != 0, 0))
			note_capture(*block);
		return block;
	}

	/* Memory that was imported (DLPack) belongs to the block at its address. */
	Block *block = find_block(ptr.device().index(), reinterpret_cast<spyre_devptr>(ptr.get()));

	TORCH_CHECK(block && block->address == reinterpret_cast<spyre_devptr>(ptr.get()), "spyre: ",
		    ptr.get(), " is not the start of memory of ", ptr.device());
	return block;
}

c10::DeviceIndex device_of_address(spyre_devptr address)
{
	c10::DeviceIndex first = current_device();

	for (c10::DeviceIndex i = 0; i < device_count(); i++) {
		/* Cards may have equal addresses, so the current card is searched first. */
		c10::DeviceIndex device = i == 0 ? first : i <= first ? i - 1 : i;
		spyre_pointer_info info{};

		info.struct_size = sizeof(info);
		if (has_context(device) &&
		    spyre_pointer_query(context(device), address, &info) == SPYRE_SUCCESS &&
		    info.kind == SPYRE_MEMORY_DEVICE)
			return device;
	}
	return -1;
}

spyre_context *drop_memory(c10::DeviceIndex device)
{
	return cache(device).leave();
}

} // namespace torch_spyre
