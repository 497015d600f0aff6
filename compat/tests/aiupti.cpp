// SPDX-License-Identifier: MIT
/* libaiupti: records of a profiled piece of work, as csrc/profiler of the front-end reads them. */
#include "bundle.hpp"

#include <ctime>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include <libaiupti/aiupti_activity.h>
#include <libaiupti/aiupti_runtime_cbid.h>

namespace
{
struct Buffer {
	std::vector<std::uint64_t> data;
	std::size_t valid = 0;
};

/* Buffers that were asked for and not handed back yet, and those that were. */
std::deque<std::unique_ptr<Buffer>> requested, completed;
std::size_t buffer_bytes = 1 << 20, buffer_records = 0;

void request(std::uint8_t **buffer, std::size_t *size, std::size_t *records)
{
	requested.push_back(std::make_unique<Buffer>());
	requested.back()->data.resize(buffer_bytes / 8);
	*buffer = reinterpret_cast<std::uint8_t *>(requested.back()->data.data());
	*size = buffer_bytes;
	*records = buffer_records;
}

void refuse(std::uint8_t **buffer, std::size_t *size, std::size_t *)
{
	*buffer = nullptr;
	*size = 0;
}

/* The profiler looks at the oldest buffer only, and calls back into the library. */
void complete(std::uint8_t *buffer, std::size_t size, std::size_t valid)
{
	std::size_t dropped;

	ck_assert_uint_eq(requested.size(), 1);
	ck_assert_ptr_eq(buffer, requested.front()->data.data());
	ck_assert_uint_eq(size, buffer_bytes);
	ck_assert_uint_le(valid, size);
	requested.front()->valid = valid;
	completed.push_back(std::move(requested.front()));
	requested.pop_front();
	ck_assert_int_eq(aiuptiActivityGetNumDroppedRecords(&dropped), AIUPTI_SUCCESS);
	ck_assert_uint_eq(dropped, 0);
}

/* Called by the following callbacks, at the first of them. */
void (*from_callback)();

void request_and_call(std::uint8_t **buffer, std::size_t *size, std::size_t *records)
{
	request(buffer, size, records);
	std::exchange(from_callback, []() {})();
}

void complete_and_call(std::uint8_t *buffer, std::size_t size, std::size_t valid)
{
	complete(buffer, size, valid);
	std::exchange(from_callback, []() {})();
}

constexpr AIUpti_ActivityKind all_kinds[] = {
	AIUPTI_ACTIVITY_KIND_MEMCPY,	      AIUPTI_ACTIVITY_KIND_MEMCPY2,
	AIUPTI_ACTIVITY_KIND_SYNCHRONIZATION, AIUPTI_ACTIVITY_KIND_MEMORY,
	AIUPTI_ACTIVITY_KIND_MEMSET,	      AIUPTI_ACTIVITY_KIND_CMPT,
	AIUPTI_ACTIVITY_KIND_RUNTIME,	      AIUPTI_ACTIVITY_KIND_DRIVER,
};

void enable_all()
{
	ck_assert_int_eq(aiuptiActivityRegisterCallbacks(request, complete), AIUPTI_SUCCESS);
	for (AIUpti_ActivityKind kind : all_kinds)
		ck_assert_int_eq(aiuptiActivityEnable(kind), AIUPTI_SUCCESS);
}

void disable_all()
{
	for (AIUpti_ActivityKind kind : all_kinds)
		ck_assert_int_eq(aiuptiActivityDisable(kind), AIUPTI_SUCCESS);
}

/* Flushes, and returns the records of all buffers; they live until the next flush. */
std::vector<AIUpti_Activity *> flush()
{
	std::vector<AIUpti_Activity *> records;
	AIUpti_ResultTypes result;

	completed.clear();
	ck_assert_int_eq(aiuptiFlushAllActivities(), AIUPTI_SUCCESS);
	ck_assert(requested.empty());
	for (const auto &buffer : completed) {
		auto *data = reinterpret_cast<std::uint8_t *>(buffer->data.data());
		AIUpti_Activity *record = nullptr;

		while (!(result = aiuptiActivityGetNextRecord(data, buffer->valid, &record)))
			records.push_back(record);
		ck_assert_int_eq(result, AIUPTI_ERROR_MAX_LIMIT_REACHED);
	}
	return records;
}

template <typename Record>
std::vector<const Record *> select(const std::vector<AIUpti_Activity *> &records, int kind)
{
	std::vector<const Record *> selected;

	for (const AIUpti_Activity *record : records)
		if (record->kind == kind)
			selected.push_back(reinterpret_cast<const Record *>(record));
	return selected;
}

std::uint64_t real_time()
{
	timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* A card, a stream and two tensors. */
struct Work {
	Work()
	{
		const auto status = flex::initializeRuntime(&runtime, 0);

		ck_assert_msg(status.ok, "%s", status.text.c_str());
		stream = runtime->getDefaultStream();
	}

	flex::CompositeAddress allocate(std::size_t size) const
	{
		const flex::AllocationDirective directive(flex::PlacementPolicy::Bind, {0},
							  std::nullopt, flex::MemoryType::Tensor);

		return runtime->getAllocator()->allocate(size, directive);
	}

	void copy(const flex::CompositeAddress &device, std::vector<std::uint8_t> &host,
		  bool to) const
	{
		flex::DmaParams *params =
			flex::createDmaParams(host.data(), host.size(), to, &device);

		if (to)
			stream->launchOperationH2D(params);
		else
			stream->launchOperationD2H(params);
		flex::destroyDmaParams(params);
	}

	std::shared_ptr<flex::RuntimeContext> runtime;
	flex::RuntimeStream *stream = nullptr;
};

/* The runtime call of a record: the one with its correlation. */
const AIUpti_ActivityAPI *call_of(const std::vector<AIUpti_Activity *> &records,
				  std::uint64_t correlation)
{
	const AIUpti_ActivityAPI *found = nullptr;

	for (auto *api : select<AIUpti_ActivityAPI>(records, AIUPTI_ACTIVITY_KIND_RUNTIME)) {
		if (api->correlation_id != correlation)
			continue;
		ck_assert_ptr_null(found);
		found = api;
	}
	ck_assert_ptr_nonnull(found);
	return found;
}

/* @record ran once its call had begun. */
template <typename Record>
void check_call(const std::vector<AIUpti_Activity *> &records, const Record &record,
		std::uint32_t cbid, std::uint64_t data)
{
	const AIUpti_ActivityAPI *api = call_of(records, record.correlation_id);

	ck_assert_uint_ne(record.correlation_id, 0);
	ck_assert_uint_eq(api->cbid, cbid);
	ck_assert_uint_eq(api->data, data);
	ck_assert_uint_eq(api->process_id, static_cast<std::uint32_t>(getpid()));
	ck_assert_uint_le(api->start, api->end);
	ck_assert_uint_le(api->start, record.start);
	ck_assert_uint_le(record.start, record.end);
	ck_assert_uint_eq(record.device_id, 0);
}
} // namespace

/* Copies, a fill, memory: one record each, which its call has queued. */
START_TEST(copies_fills_and_memory)
{
	Work work;
	std::vector<std::uint8_t> host(512);
	const std::uint64_t before = real_time();

	enable_all();
	std::uint64_t address;
	{
		const flex::CompositeAddress memory = work.allocate(500);

		address = work.runtime->getAllocator()->compositeAddressToDmva(memory);
		work.copy(memory, host, true);
		work.stream->fillAsync(&memory, 1, DataFormats::SEN169_FP16, true);
		work.copy(memory, host, false);
		work.stream->synchronize();
	}
	const auto records = flush();
	const std::uint64_t after = real_time();

	disable_all();
	const auto copies = select<AIUpti_ActivityMemcpy>(records, AIUPTI_ACTIVITY_KIND_MEMCPY);
	ck_assert_uint_eq(copies.size(), 2);
	ck_assert_uint_eq(copies[0]->copy_kind, AIUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
	ck_assert_uint_eq(copies[1]->copy_kind, AIUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
	for (auto *copy : copies)
		ck_assert_uint_eq(copy->bytes, 512);
	check_call(records, *copies[0], AIUPTI_RUNTIME_TRACE_CBID_DATA_TRANSFER_HTOD, 512);
	check_call(records, *copies[1], AIUPTI_RUNTIME_TRACE_CBID_DATA_TRANSFER_DTOH, 512);

	const auto fills = select<AIUpti_ActivityMemset>(records, AIUPTI_ACTIVITY_KIND_MEMSET);
	ck_assert_uint_eq(fills.size(), 1);
	ck_assert_uint_eq(fills[0]->bytes, 512);
	check_call(records, *fills[0], AIUPTI_RUNTIME_TRACE_CBID_LAUNCH_CB_DMI, 1);
	ck_assert_uint_le(copies[0]->end, fills[0]->start);
	ck_assert_uint_le(fills[0]->end, copies[1]->start);

	const auto memory = select<AIUpti_ActivityMemory>(records, AIUPTI_ACTIVITY_KIND_MEMORY);
	ck_assert_uint_eq(memory.size(), 2);
	ck_assert_uint_eq(memory[0]->memory_operation_type,
			  AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
	ck_assert_uint_eq(memory[1]->memory_operation_type,
			  AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
	for (auto *m : memory) {
		ck_assert_uint_eq(m->address, address);
		ck_assert_uint_eq(m->bytes, 512);
		ck_assert_uint_eq(m->process_id, static_cast<std::uint32_t>(getpid()));
	}
	check_call(records, *memory[0], AIUPTI_RUNTIME_TRACE_CBID_MALLOC, 512);

	/* The clock is that of the profiler. A second is for steps of CLOCK_REALTIME. */
	for (auto *api : select<AIUpti_ActivityAPI>(records, AIUPTI_ACTIVITY_KIND_RUNTIME)) {
		ck_assert_uint_ge(api->start + 1000000000, before);
		ck_assert_uint_le(api->end, after + 1000000000);
	}
	ck_assert_uint_eq(flush().size(), 0);
}
END_TEST

/* Kernels have the name that their launch was given, and the times of the call. */
START_TEST(launches)
{
	Bundle bundle;
	Work work;
	Plan plan(work.runtime, bundle);
	std::vector<flex::CompositeAddress> tensors;
	std::vector<std::int64_t> addresses;

	for (int i = 0; i < 3; i++) {
		tensors.push_back(work.allocate(bytes));
		addresses.push_back(
			work.runtime->getAllocator()->compositeAddressToDmva(tensors[i]));
	}
	enable_all();
	for (const char *name : {"spyre_kernel_v1_add_abcdefghijklmnop#0", "second"})
		plan.launch(work.stream, addresses, {}, name);
	plan.launch(work.stream, addresses, {}, std::string(300, 'x'));
	const auto records = flush();

	disable_all();
	const auto kernels = select<AIUpti_ActivityCompute>(records, AIUPTI_ACTIVITY_KIND_CMPT);
	ck_assert_uint_eq(kernels.size(), 3);
	ck_assert_str_eq(kernels[0]->name, "spyre_kernel_v1_add_abcdefghijklmnop#0");
	ck_assert_str_eq(kernels[1]->name, "second");
	ck_assert_uint_eq(strlen(kernels[2]->name),
			  sizeof(flex::aiupti::AIUpti_ActivityCB::name) - 1);
	for (auto *kernel : kernels) {
		check_call(records, *kernel, AIUPTI_RUNTIME_TRACE_CBID_LAUNCH_CB_CMPT, 1);
		ck_assert_uint_eq(kernel->stream_id, 0);
		ck_assert_uint_le(kernel->queued, kernel->submitted);
		ck_assert_uint_le(kernel->submitted, kernel->start);
		ck_assert_uint_eq(kernel->queued, call_of(records, kernel->correlation_id)->start);
	}
	/* In the order of their starts, as the rows of the profiler need them. */
	for (std::size_t i = 1; i < kernels.size(); i++)
		ck_assert_uint_le(kernels[i - 1]->start, kernels[i]->start);
}
END_TEST

/* Only enabled kinds are recorded, from the time on that they are enabled. */
START_TEST(kinds)
{
	Work work;
	const flex::CompositeAddress memory = work.allocate(512);
	std::vector<std::uint8_t> host(512);

	ck_assert_int_eq(aiuptiFlushAllActivities(), AIUPTI_SUCCESS);
	work.copy(memory, host, true);
	ck_assert_int_eq(aiuptiActivityRegisterCallbacks(request, complete), AIUPTI_SUCCESS);
	ck_assert_int_eq(aiuptiActivityEnable(AIUPTI_ACTIVITY_KIND_MEMSET), AIUPTI_SUCCESS);
	work.copy(memory, host, true);
	work.stream->fillAsync(&memory, 0, DataFormats::SEN169_FP16, true);
	auto records = flush();
	ck_assert_uint_eq(records.size(), 1);
	ck_assert_uint_eq(records[0]->kind, AIUPTI_ACTIVITY_KIND_MEMSET);

	/* Records that were not flushed are gone with the last kind. */
	work.stream->fillAsync(&memory, 0, DataFormats::SEN169_FP16, true);
	ck_assert_int_eq(aiuptiActivityDisable(AIUPTI_ACTIVITY_KIND_MEMSET), AIUPTI_SUCCESS);
	enable_all();
	work.copy(memory, host, true);
	work.stream->synchronize();
	records = flush();
	ck_assert_uint_eq(
		select<AIUpti_ActivityMemset>(records, AIUPTI_ACTIVITY_KIND_MEMSET).size(), 0);
	ck_assert_uint_eq(
		select<AIUpti_ActivityMemcpy>(records, AIUPTI_ACTIVITY_KIND_MEMCPY).size(), 1);
	/* The calls: a copy and a wait. */
	ck_assert_uint_eq(records.size(), 3);
	disable_all();
	ck_assert_int_eq(aiuptiActivityEnable(AIUPTI_ACTIVITY_KIND_INVALID),
			 AIUPTI_ERROR_INVALID_KIND);
	ck_assert_int_eq(aiuptiActivityDisable(static_cast<AIUpti_ActivityKind>(77)),
			 AIUPTI_ERROR_INVALID_KIND);
}
END_TEST

/* Small buffers, limits of records, and none at all. */
START_TEST(buffers)
{
	Work work;
	const flex::CompositeAddress memory = work.allocate(512);
	std::vector<std::uint8_t> host(512);
	std::size_t dropped;
	AIUpti_Activity *record = nullptr;
	std::uint8_t bad[8] = {99};

	enable_all();
	buffer_bytes = 200;
	for (int i = 0; i < 20; i++)
		work.copy(memory, host, true);
	ck_assert_uint_eq(flush().size(), 40);
	ck_assert_uint_eq(completed.size(), 10);

	buffer_bytes = 1 << 20;
	buffer_records = 7;
	for (int i = 0; i < 20; i++)
		work.copy(memory, host, true);
	ck_assert_uint_eq(flush().size(), 40);
	ck_assert_uint_eq(completed.size(), 6);

	work.copy(memory, host, true);
	ck_assert_int_eq(aiuptiActivityRegisterCallbacks(refuse, complete), AIUPTI_SUCCESS);
	ck_assert_int_eq(aiuptiFlushAllActivities(), AIUPTI_SUCCESS);
	ck_assert_int_eq(aiuptiActivityGetNumDroppedRecords(&dropped), AIUPTI_SUCCESS);
	ck_assert_uint_eq(dropped, 2);
	ck_assert_int_eq(aiuptiActivityGetNumDroppedRecords(&dropped), AIUPTI_SUCCESS);
	ck_assert_uint_eq(dropped, 0);
	disable_all();

	ck_assert_int_eq(aiuptiActivityGetNextRecord(bad, sizeof(bad), &record),
			 AIUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(aiuptiActivityGetNextRecord(bad, 0, &record),
			 AIUPTI_ERROR_MAX_LIMIT_REACHED);
	bad[0] = AIUPTI_ACTIVITY_KIND_CMPT;
	ck_assert_int_eq(aiuptiActivityGetNextRecord(bad, sizeof(bad), &record),
			 AIUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(aiuptiActivityRegisterCallbacks(nullptr, complete),
			 AIUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(aiuptiActivityGetNumDroppedRecords(nullptr),
			 AIUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

/*
 * The callbacks flush, disable and enable: all records of the flush that calls them arrive, in
 * one buffer at a time, and no call waits for itself. Other threads do the same meanwhile.
 */
START_TEST(calls_from_callbacks)
{
	void (*const calls[])() = {
		[]() { ck_assert_int_eq(aiuptiFlushAllActivities(), AIUPTI_SUCCESS); },
		disable_all,
		[]() {
			disable_all();
			enable_all();
		},
	};
	Work work;
	const flex::CompositeAddress memory = work.allocate(512);
	std::vector<std::uint8_t> host(512);

	buffer_bytes = 200;
	for (auto *call : calls)
		for (bool at_request : {true, false}) {
			enable_all();
			ck_assert_int_eq(aiuptiActivityRegisterCallbacks(
						 at_request ? request_and_call : request,
						 at_request ? complete : complete_and_call),
					 AIUPTI_SUCCESS);
			for (int i = 0; i < 20; i++)
				work.copy(memory, host, true);
			from_callback = call;

			std::thread other([]() {
				ck_assert_int_eq(aiuptiActivityEnable(
							 AIUPTI_ACTIVITY_KIND_MEMORY),
						 AIUPTI_SUCCESS);
			});

			ck_assert_uint_eq(flush().size(), 40);
			other.join();
			disable_all();
			ck_assert_uint_eq(flush().size(), 0);
		}
}
END_TEST

/* Threads work while another one flushes and a profile begins and ends. */
START_TEST(threads)
{
	Work work;
	std::vector<std::thread> workers;
	std::size_t copies = 0;

	enable_all();
	for (int i = 0; i < 3; i++)
		workers.emplace_back([&work] {
			std::vector<std::uint8_t> host(512);
			const flex::CompositeAddress memory = work.allocate(512);

			for (int n = 0; n < 100; n++)
				work.copy(memory, host, n % 2);
			work.stream->synchronize();
		});
	for (int i = 0; i < 10; i++)
		copies +=
			select<AIUpti_ActivityMemcpy>(flush(), AIUPTI_ACTIVITY_KIND_MEMCPY).size();
	for (std::thread &thread : workers)
		thread.join();
	copies += select<AIUpti_ActivityMemcpy>(flush(), AIUPTI_ACTIVITY_KIND_MEMCPY).size();
	ck_assert_uint_eq(copies, 300);
	disable_all();
}
END_TEST

int main()
{
	const TTest *const cases[] = {
		copies_fills_and_memory, launches, kinds, buffers, calls_from_callbacks, threads,
		nullptr};

	return run_tests("compat_aiupti", cases);
}
