// SPDX-License-Identifier: MIT
/* flex/flex.hpp: the card, memory, streams and copies. Runs on either backend. */
#include "check.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <flex/flex.hpp>
#include <spyre/device.h>

#include "tests/order.h"

namespace
{
using Runtime = std::shared_ptr<flex::RuntimeContext>;

constexpr std::size_t mib = 1 << 20;

Runtime open_card()
{
	Runtime runtime;
	const auto status = flex::initializeRuntime(&runtime, 0);
	std::stringstream text;

	text << status;
	ck_assert_msg(runtime != nullptr, "initializeRuntime: %s", text.str().c_str());
	return runtime;
}

flex::CompositeAddress allocate(const Runtime &runtime, std::size_t bytes,
				flex::MemoryType type = flex::MemoryType::Tensor)
{
	const flex::AllocationDirective directive(flex::PlacementPolicy::Bind, { 0 }, std::nullopt,
						  type);

	return runtime->getAllocator()->allocate(bytes, directive);
}

void copy(flex::RuntimeStream *stream, void *host, const flex::CompositeAddress &device,
	  bool to_device, std::function<void(void *)> callback = {},
	  std::shared_ptr<data_conversion_info> conversion = nullptr)
{
	flex::DmaParams *params = flex::createDmaParams(host, device.total_size(), to_device,
							&device, std::move(conversion));

	params->pipeline_barrier = true;
	params->callback = std::move(callback);
	try {
		if (to_device)
			stream->launchOperationH2D(params);
		else
			stream->launchOperationD2H(params);
	} catch (...) {
		flex::destroyDmaParams(params);
		throw;
	}
	flex::destroyDmaParams(params);
}

std::vector<std::uint8_t> pattern(std::size_t bytes, int seed)
{
	std::vector<std::uint8_t> data(bytes);

	for (std::size_t i = 0; i < bytes; i++)
		data[i] = i * 31 + i / 256 + seed;
	return data;
}

bool is_embedded(const Runtime &runtime)
{
	spyre_device_properties properties = {};

	properties.struct_size = sizeof(properties);
	ck_assert_int_eq(spyre_context_get_properties(runtime->native(), &properties), 0);
	return properties.backend == SPYRE_BACKEND_EMBEDDED;
}
}

START_TEST(constants)
{
	ck_assert_uint_eq(flex::SEGMENT_SIZE_BITS, 34);
	ck_assert_uint_eq(flex::SEGMENT_SIZE, std::uint64_t{ 1 } << 34);
	ck_assert_uint_eq(flex::PROG_OFFSET_BASE, 120259084288);
	ck_assert_uint_eq(flex::dmvaToSegmentId(flex::PROG_OFFSET_BASE + 128), flex::PROG_SEGMENT);
	ck_assert_uint_eq(flex::dmvaToSegmentId(flex::SEGMENT_SIZE - 1), 0);
	ck_assert_uint_eq(sizeof(flex::aiupti::AIUpti_ActivityCB::name) - 1, 127);
}
END_TEST

START_TEST(devices)
{
	ck_assert_int_gt(static_cast<int>(flex::getNumDevices()), 0);
	setenv("AIU_WORLD_SIZE", "1", 1);
	ck_assert_int_eq(flex::getNumDevices(), 1);
	setenv("AIU_WORLD_SIZE", "one", 1);
	ck_throws(flex::getNumDevices(), "AIU_WORLD_SIZE");
	setenv("FLEX_DEVICE", "MOCK", 1);
	setenv("AIU_WORLD_SIZE", "0", 1);
	ck_throws(flex::getNumDevices(), "AIU_WORLD_SIZE to 1 or more");
	setenv("AIU_WORLD_SIZE", "1", 1);
	setenv("SPYRE_DEVICES", "0,0", 1);
	ck_assert_int_eq(flex::getNumDevices(), 1);
	setenv("SPYRE_DEVICES", "first", 1);
	ck_throws(flex::getNumDevices(), "SPYRE_DEVICES");
}
END_TEST

START_TEST(one_card_per_process)
{
	Runtime first, again, other;
	std::stringstream text;

	ck_throws(flex::getFlexRuntimeContext(), "initializeRuntime()");
	text << flex::initializeRuntime(&other, 1000);
	ck_assert_ptr_null(other.get());
	ck_assert_msg(text.str().find("failure") == 0, "%s", text.str().c_str());
	first = open_card();
	again = open_card();
	ck_assert_ptr_eq(first.get(), again.get());
	ck_assert_ptr_eq(flex::getFlexRuntimeContext().get(), first.get());
	text.str("");
	other = first;
	text << flex::initializeRuntime(&other, 1);
	ck_assert_ptr_null(other.get());
	ck_assert_msg(text.str().find("uses card 0") != std::string::npos, "%s",
		      text.str().c_str());
}
END_TEST

/* Addresses: rounding, the form of the device address, parts, owning and not. */
START_TEST(addresses)
{
	Runtime runtime = open_card();
	const auto allocator = runtime->getAllocator();
	flex::CompositeAddress owner = allocate(runtime, 1000);
	const flex::Chunk base = owner.chunks()[0];
	std::stringstream text;

	ck_assert_uint_eq(owner.total_size(), 1024);
	ck_assert_uint_eq(owner.chunks().size(), 1);
	ck_assert_uint_eq(base.domain_id, 0);
	const std::uint64_t address = allocator->compositeAddressToDmva(owner);
	ck_assert_uint_eq(address % 128, 0);
	ck_assert_uint_ne(flex::dmvaToSegmentId(address), flex::PROG_SEGMENT);

	const flex::LogicalAddress place(base.addr.region_id, base.addr.offset + 256);
	const flex::Chunk chunk(place, 128, base.domain_id);
	const flex::CompositeAddress part(chunk);
	ck_assert_uint_eq(allocator->compositeAddressToDmva(part), address + 256);
	text << part;
	ck_assert(text.str().find("128 bytes") != std::string::npos);
	const flex::CompositeAddress beyond(flex::Chunk(place, 896, 0));
	ck_throws(allocator->compositeAddressToDmva(beyond), "it has 1024 bytes");

	/* A moved address still owns the memory, and the last owner frees it. */
	std::variant<flex::CompositeAddress, int> moved(std::move(owner));
	ck_assert_uint_eq(owner.total_size(), 0);
	ck_assert_uint_eq(allocator->compositeAddressToDmva(part), address + 256);
	moved = 0;
	ck_throws(allocator->compositeAddressToDmva(part), "was freed");
	ck_throws(allocate(runtime, 0), "cannot allocate 0 bytes");
}
END_TEST

START_TEST(plain_copies)
{
	Runtime runtime = open_card();
	flex::RuntimeStream *stream = runtime->createStream(flex::RuntimeStreamPriority::HIGH);
	const flex::CompositeAddress device = allocate(runtime, mib);
	std::vector<std::uint8_t> data = pattern(mib, 1), back(mib);
	auto alive = std::make_shared<int>(0);
	const std::weak_ptr<int> watch = alive;

	ck_assert_ptr_ne(stream, runtime->getDefaultStream());
	copy(stream, data.data(), device, true, [alive](void *) {});
	alive.reset();
	copy(stream, back.data(), device, false);
	stream->synchronize();
	ck_assert(back == data);
	ck_assert(stream->query());
	ck_assert(!stream->needsShutdown() && !runtime->hasStreamError());
	/* The callback of a copy is released with it. */
	ck_assert(watch.expired());

	const flex::Chunk base = device.chunks()[0];
	const flex::CompositeAddress part(
		flex::Chunk(flex::LogicalAddress(base.addr.region_id, 4096), 128, 0));
	copy(stream, back.data(), part, false);
	stream->synchronize();
	ck_assert_int_eq(memcmp(back.data(), data.data() + 4096, 128), 0);

	flex::DmaParams *params = flex::createDmaParams(data.data(), 256, true, &part);
	ck_throws(stream->launchOperationH2D(params), "256 bytes");
	flex::destroyDmaParams(params);
}
END_TEST

START_TEST(fills)
{
	Runtime runtime = open_card();
	flex::RuntimeStream *stream = runtime->getDefaultStream();
	const flex::CompositeAddress device = allocate(runtime, 4096);
	std::vector<std::uint16_t> halves(2048);
	std::vector<float> floats(1024);
	std::vector<std::uint8_t> bytes(4096);

	stream->fillAsync(&device, 1.0, DataFormats::SEN169_FP16, true);
	copy(stream, halves.data(), device, false);
	stream->fillAsync(&device, -2.5, DataFormats::IEEE_FP32, true);
	copy(stream, floats.data(), device, false);
	stream->fillAsync(&device, 3, DataFormats::SENINT4, false);
	copy(stream, bytes.data(), device, false);
	stream->synchronize();
	order_le(halves.data(), halves.size(), sizeof(halves[0]));
	order_le(floats.data(), floats.size(), sizeof(floats[0]));
	for (const std::uint16_t half : halves)
		ck_assert_uint_eq(half, 31 << 9);
	for (const float number : floats)
		ck_assert(number == -2.5f);
	for (const std::uint8_t byte : bytes)
		ck_assert_uint_eq(byte, 0x33);
	ck_throws(stream->fillAsync(&device, 1, DataFormats::SEN153_FP9, true), "SEN153_FP9");
	ck_throws(stream->fillAsync(&device, 1, DataFormats::INVALID, true), "cannot fill");
}
END_TEST

/* Host callbacks run on the calling thread, which gets their exceptions. */
START_TEST(host_callbacks)
{
	Runtime runtime = open_card();
	flex::RuntimeStream *stream = runtime->getDefaultStream();
	std::thread::id thread;
	int data = 0;
	flex::HostCallbackParams *params = flex::createHostCallbackParams(
		[&thread](void *value) {
			thread = std::this_thread::get_id();
			++*static_cast<int *>(value);
		},
		&data, false);

	stream->launchOperationHostCallback(params);
	ck_assert_int_eq(data, 1);
	ck_assert(thread == std::this_thread::get_id());
	flex::destroyHostCallbackParams(params);
	params = flex::createHostCallbackParams([](void *) { throw std::runtime_error("mine"); },
						nullptr, true);
	ck_throws(stream->launchOperationHostCallback(params), "mine");
	flex::destroyHostCallbackParams(params);
	stream->synchronize();
}
END_TEST

/* Program memory is written at the call, so that the caller may reuse its buffer at once. */
START_TEST(program_memory)
{
	Runtime runtime = open_card();
	const auto allocator = runtime->getAllocator();
	flex::RuntimeStream *stream = runtime->getDefaultStream();
	const flex::CompositeAddress program = allocate(runtime, 1000, flex::MemoryType::Program);
	const flex::CompositeAddress second = allocate(runtime, 128, flex::MemoryType::Program);
	const flex::CompositeAddress tensor = allocate(runtime, 128);
	std::vector<std::uint8_t> data = pattern(1024, 2), back(1024);
	const std::vector<std::uint8_t> want = data;
	data_conversion_info dci{};

	ck_assert_uint_eq(allocator->compositeAddressToDmva(program), flex::PROG_OFFSET_BASE);
	ck_assert_uint_eq(allocator->compositeAddressToDmva(second), flex::PROG_OFFSET_BASE);
	copy(stream, data.data(), program, true);
	data.assign(data.size(), 0);
	copy(stream, back.data(), program, false);
	ck_assert(back == want);
	ck_throws(copy(stream, back.data(), program, true, {},
		       std::make_shared<data_conversion_info>(dci)), "program");
	ck_throws(stream->fillAsync(&program, 0, DataFormats::IEEE_FP32, true), "program");

	flex::ComputeParams *params = flex::createComputeParams(&tensor, {}, "no program", 0);
	ck_throws(stream->launchOperationCompute(params), "no program");
	flex::destroyComputeParams(params);
	params = flex::createComputeParams(&program, {}, "not a binary", 128);
	params->pipeline_barrier = true;
	ck_throws(stream->launchOperationCompute(params), "SPYRE_ERROR_PARSE");
	flex::destroyComputeParams(params);
	params = flex::createComputeParams(&program, {}, "beyond", 1024);
	ck_throws(stream->launchOperationCompute(params), "an allocation of 1024 bytes");
	flex::destroyComputeParams(params);
	ck_assert(!stream->needsShutdown());
}
END_TEST

namespace
{
std::vector<flex::CompositeAddress> *kept;
int pressures;

void release_kept(std::unique_lock<std::mutex> &lock)
{
	ck_assert(lock.owns_lock());
	lock.unlock();
	kept->clear();
	pressures++;
	lock.lock();
}
}

/* The callback frees memory that queued work still uses; the allocation then succeeds. */
START_TEST(memory_pressure)
{
	setenv("SPYRE_EMBEDDED_LPDDR_MIB", "64", 1);
	Runtime runtime = open_card();
	flex::RuntimeStream *stream = runtime->getDefaultStream();
	std::vector<flex::CompositeAddress> held;

	if (!is_embedded(runtime)) {
		puts("# memory_pressure: skipped, the card's memory is not this process's alone");
		return;
	}
	kept = &held;
	for (int i = 0; i < 3; i++) {
		held.push_back(allocate(runtime, 16 * mib));
		stream->fillAsync(&held.back(), 1, DataFormats::IEEE_FP32, true);
	}
	ck_throws(allocate(runtime, 32 * mib), "OUT_OF_DEVICE_MEMORY");
	ck_assert_uint_eq(held.size(), 3);
	runtime->getAllocator()->registerMemoryPressureCallback(&release_kept);
	const flex::CompositeAddress device = allocate(runtime, 32 * mib);
	ck_assert_int_eq(pressures, 1);
	ck_assert_uint_eq(device.total_size(), 32 * mib);
	ck_throws(allocate(runtime, 64 * mib), "OUT_OF_DEVICE_MEMORY");
	ck_assert_int_eq(pressures, 2);
	stream->synchronize();
}
END_TEST

/* An error of queued work is reported by synchronize(), and marks the stream. */
START_TEST(deferred_errors)
{
	setenv("SPYRE_TIMEOUT_MS", "1", 1);
	Runtime runtime = open_card();

	if (!is_embedded(runtime)) {
		puts("# deferred_errors: skipped, the kernel sets the limit here");
		return;
	}
	flex::RuntimeStream *stream = runtime->createStream(flex::RuntimeStreamPriority::NORMAL);
	const flex::CompositeAddress device = allocate(runtime, 512 * mib);

	stream->fillAsync(&device, 1, DataFormats::IEEE_FP32, true);
	ck_throws(stream->synchronize(), "SPYRE_ERROR_TIMEOUT");
	ck_assert(stream->needsShutdown());
	ck_assert(runtime->hasStreamError());
	ck_assert(stream->query());
	ck_throws(stream->synchronize(), "SPYRE_ERROR_TIMEOUT");
}
END_TEST

/* Threads allocate, copy and free at the same time, on streams of their own. */
START_TEST(threads)
{
	Runtime runtime = open_card();
	std::atomic<int> wrong = 0;
	std::vector<std::thread> workers;

	for (int seed = 0; seed < 4; seed++)
		workers.emplace_back([&runtime, &wrong, seed] {
			flex::RuntimeStream *stream =
				runtime->createStream(flex::RuntimeStreamPriority::NORMAL);
			std::vector<std::uint8_t> data = pattern(8192, seed), back(8192);

			for (int i = 0; i < 20; i++) {
				const flex::CompositeAddress device = allocate(runtime, 8192);

				copy(stream, data.data(), device, true);
				copy(stream, back.data(), device, false, [](void *) {});
				stream->synchronize();
				wrong += back != data;
			}
		});
	for (std::thread &worker : workers)
		worker.join();
	ck_assert_int_eq(wrong, 0);
}
END_TEST

namespace
{
/* Memory that is freed after the static objects are destroyed, as torch's is. */
struct Late {
	std::optional<flex::CompositeAddress> address;
} late;
}

START_TEST(memory_outlives_everything)
{
	const Runtime runtime = open_card();

	late.address.emplace(allocate(runtime, 4096));
	runtime->getDefaultStream()->fillAsync(&*late.address, 1, DataFormats::IEEE_FP32, true);
	exit(0);
}
END_TEST

int main()
{
	const TTest *const cases[] = { constants, devices, one_card_per_process, addresses,
				       plain_copies, fills, host_callbacks, program_memory,
				       memory_pressure, deferred_errors, threads,
				       memory_outlives_everything, nullptr };

	return run_tests("compat_runtime", cases);
}
