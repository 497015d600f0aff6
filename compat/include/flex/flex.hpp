/* SPDX-License-Identifier: MIT */
/*
 * The runtime that torch-spyre a312898 calls as namespace flex: named and shaped by the
 * calls in csrc/spyre_allocator.cpp, spyre_stream.cpp, job_plan.cpp, prepare_kernel.cpp and
 * module.cpp. Failures are exceptions derived from std::exception. Everything is thread safe
 * except for the parameter structs.
 */
#ifndef SPYRE_COMPAT_FLEX_HPP
#define SPYRE_COMPAT_FLEX_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flex/export.h"
#include "spyrecode-host-functions/sendataconvert/sen_host_ops.h"
#include "util/sendefs/sendefs.h"

/* Objects of libspyre, for the other libraries of compat/. */
struct spyre_context;
struct spyre_stream;

namespace flex
{
/* A device address is segment << 34 | offset. Programs are in segment 7. */
inline constexpr std::uint64_t SEGMENT_SIZE_BITS = 34;
inline constexpr std::uint64_t SEGMENT_SIZE = std::uint64_t{ 1 } << SEGMENT_SIZE_BITS;
inline constexpr std::uint64_t PROG_SEGMENT = 7;
inline constexpr std::uint64_t PROG_OFFSET_BASE = PROG_SEGMENT << SEGMENT_SIZE_BITS;

constexpr std::uint64_t dmvaToSegmentId(std::uint64_t dmva) noexcept
{
	return dmva >> SEGMENT_SIZE_BITS;
}

/* A place in an allocation: @region_id is the allocation's number, @offset is in bytes. */
struct LogicalAddress {
	constexpr LogicalAddress(std::uint64_t region, std::uint64_t position)
	    : region_id(region), offset(position)
	{
	}

	std::uint64_t region_id;
	std::uint64_t offset;
};

struct Chunk {
	constexpr Chunk(LogicalAddress address, std::uint64_t bytes, std::uint64_t domain)
	    : addr(address), size(bytes), domain_id(domain)
	{
	}

	LogicalAddress addr;
	std::uint64_t size;
	std::uint64_t domain_id;
};

class Allocation;

/*
 * A range of device memory. The one that FlexAllocator::allocate() returns owns its memory
 * and frees it once the queued work that uses it has finished; one made from a chunk does not.
 */
class COMPAT_EXPORT CompositeAddress
{
public:
	CompositeAddress(const Chunk &chunk);
	CompositeAddress(const Chunk &chunk, std::unique_ptr<Allocation> owner);
	CompositeAddress(CompositeAddress &&other) noexcept;
	CompositeAddress &operator=(CompositeAddress &&other) noexcept;
	CompositeAddress(const CompositeAddress &) = delete;
	CompositeAddress &operator=(const CompositeAddress &) = delete;
	~CompositeAddress();

	std::uint64_t total_size() const noexcept;
	const std::vector<Chunk> &chunks() const noexcept
	{
		return chunks_;
	}

private:
	std::vector<Chunk> chunks_;
	std::unique_ptr<Allocation> owner_;
};

COMPAT_EXPORT std::ostream &operator<<(std::ostream &out, const CompositeAddress &address);

enum class PlacementPolicy { Bind };
enum class MemoryType { Tensor, Program };

/* This card has one memory domain, so that @memory_type alone decides. */
struct AllocationDirective {
	AllocationDirective(PlacementPolicy placement, std::vector<std::uint64_t> domain_ids,
			    std::optional<std::uint64_t> preferred, MemoryType type)
	    : policy(placement), domains(std::move(domain_ids)), preferred_domain(preferred),
	      memory_type(type)
	{
	}

	PlacementPolicy policy;
	std::vector<std::uint64_t> domains;
	std::optional<std::uint64_t> preferred_domain;
	MemoryType memory_type;
};

class COMPAT_EXPORT FlexAllocator
{
public:
	/* Called with the allocator's mutex held; may unlock it, and returns with it locked. */
	using PressureCallback = void (*)(std::unique_lock<std::mutex> &);

	explicit FlexAllocator(spyre_context *context);
	FlexAllocator(const FlexAllocator &) = delete;
	FlexAllocator &operator=(const FlexAllocator &) = delete;
	~FlexAllocator();

	/*
	 * Allocates @bytes, rounded up to a multiple of 128. If the card is out of memory,
	 * the callback runs once before another attempt.
	 */
	CompositeAddress allocate(std::size_t bytes, const AllocationDirective &directive);
	void registerMemoryPressureCallback(PressureCallback callback);
	/* Returns the 64-bit device address; that of a program is in segment 7. */
	std::uint64_t compositeAddressToDmva(const CompositeAddress &address) const;

private:
	std::uint64_t allocate_device(std::uint64_t bytes);

	spyre_context *context_;
	std::mutex mutex_;
	PressureCallback callback_ = nullptr;
};

/* A copy between host and device memory; with a conversion, a converting one. */
struct DmaParams {
	void *host;
	std::size_t bytes;
	bool to_device;
	const CompositeAddress *device;
	std::shared_ptr<data_conversion_info> conversion;
	/* Streams execute in order, so that every operation is a barrier. */
	bool pipeline_barrier = true;
	/* Called with nullptr and destroyed when the copy has finished. */
	std::function<void(void *)> callback;
};

struct ComputeParams {
	const CompositeAddress *program;
	/* Addresses of the arguments; empty if the correction flits in the program have them. */
	std::vector<const CompositeAddress *> tensors;
	std::string kernel_name;
	std::uint64_t bootstrap_offset;
	bool pipeline_barrier = true;
};

struct HostCallbackParams {
	std::function<void(void *)> function;
	void *data;
	bool pipeline_barrier;
};

COMPAT_EXPORT DmaParams *createDmaParams(void *host, std::size_t bytes, bool to_device,
					 const CompositeAddress *device,
					 std::shared_ptr<data_conversion_info> conversion = nullptr);
COMPAT_EXPORT void destroyDmaParams(DmaParams *params);
COMPAT_EXPORT ComputeParams *createComputeParams(const CompositeAddress *program,
						 std::vector<const CompositeAddress *> tensors,
						 std::string kernel_name,
						 std::uint64_t bootstrap_offset);
COMPAT_EXPORT void destroyComputeParams(ComputeParams *params);
COMPAT_EXPORT HostCallbackParams *createHostCallbackParams(std::function<void(void *)> function,
							   void *data, bool pipeline_barrier);
COMPAT_EXPORT void destroyHostCallbackParams(HostCallbackParams *params);

enum class RuntimeStreamPriority { NORMAL, HIGH };

/*
 * An ordered queue of work, owned by its context. Launches return at once, and what they are
 * given may be destroyed after the call, except for host memory of copies without a program.
 */
class COMPAT_EXPORT RuntimeStream
{
public:
	explicit RuntimeStream(spyre_stream *stream);
	RuntimeStream(const RuntimeStream &) = delete;
	RuntimeStream &operator=(const RuntimeStream &) = delete;

	/* Returns true if no work is pending; errors are left to synchronize(). */
	bool query();
	/* Waits, and throws the error of the stream's work. */
	void synchronize();
	/* Returns true if the stream has failed; never waits. */
	bool needsShutdown();

	void launchOperationH2D(DmaParams *params);
	void launchOperationD2H(DmaParams *params);
	void launchOperationCompute(ComputeParams *params);
	/* Calls the function on this thread, which gets its exceptions. */
	void launchOperationHostCallback(HostCallbackParams *params);
	/* Fills an allocation with @value in @format. @use_dmai has no effect on this card. */
	void fillAsync(const CompositeAddress *device, double value, DataFormats format,
		       bool use_dmai);

	/* The stream of libspyre; not part of the interface of torch-spyre. */
	spyre_stream *native() const noexcept
	{
		return stream_;
	}

private:
	spyre_stream *stream_;
};

/* The card of this process, its streams and its memory; lives until the process ends. */
class COMPAT_EXPORT RuntimeContext
{
public:
	explicit RuntimeContext(int logical_device);
	RuntimeContext(const RuntimeContext &) = delete;
	RuntimeContext &operator=(const RuntimeContext &) = delete;

	RuntimeStream *getDefaultStream();
	RuntimeStream *createStream(RuntimeStreamPriority priority);
	/* Returns true if work of any stream has failed; never waits. */
	bool hasStreamError();
	std::shared_ptr<FlexAllocator> getAllocator();

	/* The context of libspyre; not part of the interface of torch-spyre. */
	spyre_context *native() const noexcept
	{
		return context_;
	}

private:
	spyre_context *context_ = nullptr;
	std::mutex mutex_;
	std::vector<std::unique_ptr<RuntimeStream>> streams_;
	std::shared_ptr<FlexAllocator> allocator_;
};

/* Result of initializeRuntime(): success, or the reason of the failure. */
struct RuntimeStatus {
	bool ok;
	std::string text;
};

COMPAT_EXPORT std::ostream &operator<<(std::ostream &out, const RuntimeStatus &status);

/*
 * Opens the visible card @logical_device and stores its context in @runtime, which becomes
 * nullptr on failure. A process uses one card: further calls return the same context, and
 * one for another card fails.
 */
COMPAT_EXPORT RuntimeStatus initializeRuntime(std::shared_ptr<RuntimeContext> *runtime,
					      int logical_device);
/* Returns the context; throws if initializeRuntime() has not succeeded. */
COMPAT_EXPORT std::shared_ptr<RuntimeContext> getFlexRuntimeContext();
/* Counts the cards that FLEX_DEVICE, AIU_WORLD_SIZE and SPYRE_DEVICES show. */
COMPAT_EXPORT int getNumDevices();

namespace aiupti
{
/* The longest name of a kernel in activity records is that of libspyre, 127 bytes. */
struct AIUpti_ActivityCB {
	char name[128];
};
}
}

#endif /* SPYRE_COMPAT_FLEX_HPP */
