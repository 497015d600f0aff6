// SPDX-License-Identifier: MIT
/* Device memory: allocations, the table of them, and addresses. */
#include <spyre/device.h>
#include <spyre/memory.h>

#include <ostream>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "error.hpp"
#include "records.h"
#include "region.hpp"

namespace spyre_compat
{
namespace
{
struct Table {
	/* Protects the other members. A leaf: nothing is called while it is held. */
	std::mutex mutex;
	std::unordered_map<std::uint64_t, std::shared_ptr<Region>> regions;
	std::uint64_t last = 0;
};

/* Never destroyed: the front-end frees tensors after the destructors of static objects. */
Table &table()
{
	static Table *const only = new Table;

	return *only;
}

std::uint64_t round_up(std::uint64_t bytes)
{
	return (bytes + SPYRE_STICK - 1) / SPYRE_STICK * SPYRE_STICK;
}
}

std::uint64_t add_region(std::shared_ptr<Region> region)
{
	Table &t = table();
	const std::lock_guard guard(t.mutex);

	t.regions.emplace(++t.last, std::move(region));
	return t.last;
}

std::shared_ptr<Region> remove_region(std::uint64_t number)
{
	Table &t = table();
	const std::lock_guard guard(t.mutex);
	auto node = t.regions.extract(number);

	return node ? std::move(node.mapped()) : nullptr;
}

Range find_range(const flex::CompositeAddress &address)
{
	Table &t = table();
	const std::lock_guard guard(t.mutex);

	if (address.chunks().size() != 1)
		throw std::invalid_argument("cannot use an address of " +
					    std::to_string(address.chunks().size()) +
					    " chunks: it must have one");
	const flex::Chunk &chunk = address.chunks()[0];
	const auto entry = t.regions.find(chunk.addr.region_id);
	if (entry == t.regions.end())
		throw std::invalid_argument("cannot use an address of region " +
					    std::to_string(chunk.addr.region_id) +
					    ": the region was freed or never allocated");
	const std::uint64_t bytes = entry->second->bytes;
	if (chunk.addr.offset > bytes || chunk.size > bytes - chunk.addr.offset)
		throw std::out_of_range(
			"cannot use " + std::to_string(chunk.size) + " bytes at offset " +
			std::to_string(chunk.addr.offset) + " of region " +
			std::to_string(chunk.addr.region_id) + ": it has " +
			std::to_string(bytes) + " bytes");
	return { entry->second, chunk.addr.offset, chunk.size };
}
}

namespace flex
{
using spyre_compat::Region;

Allocation::~Allocation()
{
	const std::shared_ptr<Region> region = spyre_compat::remove_region(number_);

	if (!region || region->program)
		return;
	spyre_compat::CallReport report(spyre_compat::Call::Release, region->bytes);

	report.set_address(region->base);
	/* A failure means that the card is gone, and its memory with it. */
	(void)spyre_mem_free(context_, region->base);
}

CompositeAddress::CompositeAddress(const Chunk &chunk) : chunks_{ chunk }
{
}

CompositeAddress::CompositeAddress(const Chunk &chunk, std::unique_ptr<Allocation> owner)
    : chunks_{ chunk }, owner_(std::move(owner))
{
}

CompositeAddress::CompositeAddress(CompositeAddress &&other) noexcept = default;
CompositeAddress &CompositeAddress::operator=(CompositeAddress &&other) noexcept = default;
CompositeAddress::~CompositeAddress() = default;

std::uint64_t CompositeAddress::total_size() const noexcept
{
	std::uint64_t bytes = 0;

	for (const Chunk &chunk : chunks_)
		bytes += chunk.size;
	return bytes;
}

std::ostream &operator<<(std::ostream &out, const CompositeAddress &address)
{
	out << "CompositeAddress(" << address.total_size() << " bytes";
	for (const Chunk &chunk : address.chunks())
		out << ", region " << chunk.addr.region_id << " offset " << chunk.addr.offset
		    << " size " << chunk.size;
	return out << ')';
}

FlexAllocator::FlexAllocator(spyre_context *context) : context_(context)
{
}

FlexAllocator::~FlexAllocator() = default;

spyre_devptr FlexAllocator::allocate_device(std::uint64_t bytes)
{
	spyre_compat::CallReport report(spyre_compat::Call::Allocate, bytes);
	std::unique_lock lock(mutex_);
	spyre_devptr address = 0;
	spyre_status status = spyre_mem_alloc(context_, bytes, &address);

	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY && callback_) {
		callback_(lock);
		status = spyre_mem_alloc(context_, bytes, &address);
		/* Memory that queued work uses is free once the work has finished. */
		if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY) {
			(void)spyre_context_synchronize(context_);
			status = spyre_mem_alloc(context_, bytes, &address);
		}
	}
	spyre_compat::check(status, "cannot allocate device memory");
	report.set_address(address);
	return address;
}

CompositeAddress FlexAllocator::allocate(std::size_t bytes, const AllocationDirective &directive)
{
	if (!bytes || bytes > SEGMENT_SIZE)
		throw std::invalid_argument("cannot allocate " + std::to_string(bytes) +
					    " bytes: the limits are 1 and " +
					    std::to_string(SEGMENT_SIZE));
	auto region = std::make_shared<Region>();

	region->bytes = spyre_compat::round_up(bytes);
	if (directive.memory_type == MemoryType::Program) {
		region->base = PROG_OFFSET_BASE;
		region->program = std::make_unique<spyre_compat::ProgramMemory>(region->bytes);
	} else {
		region->base = allocate_device(region->bytes);
	}
	const std::uint64_t rounded = region->bytes;
	const std::uint64_t number = spyre_compat::add_region(std::move(region));
	auto owner = std::make_unique<Allocation>(context_, number);

	return { Chunk(LogicalAddress(number, 0), rounded, 0), std::move(owner) };
}

void FlexAllocator::registerMemoryPressureCallback(PressureCallback callback)
{
	const std::lock_guard guard(mutex_);

	callback_ = callback;
}

std::uint64_t FlexAllocator::compositeAddressToDmva(const CompositeAddress &address) const
{
	return spyre_compat::find_range(address).address();
}
}
