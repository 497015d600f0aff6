/* SPDX-License-Identifier: MIT */
/*
 * Allocations by number. Addresses of the front-end are a region's number and an offset, so
 * that parts of an allocation are named without owning it.
 */
#ifndef SPYRE_COMPAT_REGION_HPP
#define SPYRE_COMPAT_REGION_HPP

#include <spyre/types.h>

#include <memory>

#include "flex/flex.hpp"
#include "program.hpp"

namespace spyre_compat
{
/* An allocation: device memory, or the host's copy of a program (@program is not null). */
struct Region {
	std::uint64_t bytes;
	spyre_devptr base;
	std::unique_ptr<ProgramMemory> program;
};

/* A range of one region, which exists at least as long as the range. */
struct Range {
	std::shared_ptr<Region> region;
	std::uint64_t offset;
	std::uint64_t bytes;

	spyre_devptr address() const noexcept
	{
		return region->base + offset;
	}
};

/* Registers @region and returns its number, which is never used again. */
std::uint64_t add_region(std::shared_ptr<Region> region);
/* Removes a region from the table and returns it. */
std::shared_ptr<Region> remove_region(std::uint64_t number);
/* Returns the range that @address names. Throws if it was freed or is not within one region. */
Range find_range(const flex::CompositeAddress &address);
}

namespace flex
{
/* The memory that an owning CompositeAddress frees. */
class Allocation
{
public:
	Allocation(spyre_context *context, std::uint64_t number)
	    : context_(context), number_(number)
	{
	}
	Allocation(const Allocation &) = delete;
	Allocation &operator=(const Allocation &) = delete;
	~Allocation();

private:
	spyre_context *context_;
	std::uint64_t number_;
};
}

#endif /* SPYRE_COMPAT_REGION_HPP */
