// SPDX-License-Identifier: MIT
/*
 * Activity records: libspyre's records of the work that ran, and libflex's reports of its
 * calls and allocations, in the buffers of the profiler.
 */
#include <libaiupti/aiupti_activity.h>
#include <libaiupti/aiupti_runtime_cbid.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include <spyre/spyre.h>

#include <flex/flex.hpp>

#include "records.h"

namespace
{

/* As many as libspyre's own log holds. */
constexpr size_t MAX_PENDING = 1048576;

/* One context of libflex per process and card. */
constexpr uint32_t CONTEXT_ID = 1;

struct PendingCall {
	spyre_compat::CallRecord record;
	uint32_t thread;
	/* Bits of the kinds that were enabled at the time of the call. */
	uint32_t wanted;
};

union Record {
	AIUpti_Activity any;
	AIUpti_ActivityAPI api;
	AIUpti_ActivityCompute compute;
	AIUpti_ActivityMemcpy copy;
	AIUpti_ActivityMemset fill;
	AIUpti_ActivityMemory memory;
};

struct State {
	/*
	 * Held during a whole flush, enable or disable; protects log, flushing, offset and
	 * dropped_by_log. A flush calls the profiler with this lock held, so that other threads
	 * wait until the profiler has its records; the profiler may call any function.
	 */
	std::recursive_mutex control;
	spyre_activity_log *log = nullptr;
	bool flushing = false;
	/* CLOCK_REALTIME minus CLOCK_MONOTONIC when the log was opened. */
	uint64_t offset = 0;
	uint64_t dropped_by_log = 0;

	std::atomic<uint32_t> enabled{0};
	std::atomic<uint64_t> dropped{0};

	/* Taken by the recorder for the time of one append; protects the rest. */
	std::mutex append;
	std::vector<PendingCall> pending; /* since the last flush */
	std::unordered_map<uint64_t, std::string> names;
	AIUpti_BufferRequested requested = nullptr;
	AIUpti_BufferCompleted completed = nullptr;
};

/* Never destroyed: threads may report while the process exits. */
State &state()
{
	static State &instance = *new State;

	return instance;
}

constexpr uint32_t bit(AIUpti_ActivityKind kind)
{
	return UINT32_C(1) << kind;
}

bool enabled(AIUpti_ActivityKind kind)
{
	return state().enabled & bit(kind);
}

bool known(AIUpti_ActivityKind kind)
{
	return kind >= AIUPTI_ACTIVITY_KIND_MEMCPY && kind <= AIUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
}

/* Reads CLOCK_MONOTONIC before and after CLOCK_REALTIME; the closest pair of readings counts. */
uint64_t epoch_offset()
{
	auto now = [](clockid_t clock) {
		timespec time;

		clock_gettime(clock, &time);
		return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
	};
	uint64_t best = UINT64_MAX, offset = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t before = now(CLOCK_MONOTONIC);
		uint64_t real = now(CLOCK_REALTIME);
		uint64_t after = now(CLOCK_MONOTONIC);

		if (after - before < best) {
			best = after - before;
			offset = real - (before + best / 2);
		}
	}
	return offset;
}

/* Memory that runs out while a record is stored costs that record, not the caller's work. */
template <typename Function> void store(Function append) noexcept
{
	State &s = state();

	try {
		std::lock_guard<std::mutex> lock(s.append);

		append(s);
	} catch (const std::bad_alloc &) {
		s.dropped++;
	}
}

void on_name(uint64_t correlation, const char *text) noexcept
{
	if (!enabled(AIUPTI_ACTIVITY_KIND_CMPT))
		return;
	store([&](State &s) {
		if (s.names.size() < MAX_PENDING)
			s.names.insert_or_assign(correlation, text);
	});
}

bool is_memory(spyre_compat::Call call)
{
	return call == spyre_compat::Call::Allocate || call == spyre_compat::Call::Release;
}

void on_call(const spyre_compat::CallRecord &record) noexcept
{
	uint32_t wanted = 0;

	/* The calls that the profiler knows do not include a release. */
	if (record.call != spyre_compat::Call::Release)
		wanted |= bit(AIUPTI_ACTIVITY_KIND_RUNTIME);
	if (is_memory(record.call) && record.address)
		wanted |= bit(AIUPTI_ACTIVITY_KIND_MEMORY);
	if (record.call == spyre_compat::Call::Launch)
		wanted |= bit(AIUPTI_ACTIVITY_KIND_CMPT);
	wanted &= state().enabled;
	if (!wanted)
		return;
	store([&](State &s) {
		if (s.pending.size() < MAX_PENDING)
			s.pending.push_back({record, static_cast<uint32_t>(gettid()), wanted});
		else
			s.dropped++;
	});
}

const spyre_compat::Recorder RECORDER = {on_name, on_call};

uint32_t cbid_of(spyre_compat::Call call)
{
	switch (call) {
	case spyre_compat::Call::Initialize:
		return AIUPTI_RUNTIME_TRACE_CBID_INIT_SCHEDULER;
	case spyre_compat::Call::Launch:
		return AIUPTI_RUNTIME_TRACE_CBID_LAUNCH_CB_CMPT;
	case spyre_compat::Call::CopyToDevice:
		return AIUPTI_RUNTIME_TRACE_CBID_DATA_TRANSFER_HTOD;
	case spyre_compat::Call::CopyToHost:
		return AIUPTI_RUNTIME_TRACE_CBID_DATA_TRANSFER_DTOH;
	case spyre_compat::Call::Fill:
		return AIUPTI_RUNTIME_TRACE_CBID_LAUNCH_CB_DMI;
	case spyre_compat::Call::Allocate:
		return AIUPTI_RUNTIME_TRACE_CBID_MALLOC;
	case spyre_compat::Call::Callback:
		return AIUPTI_RUNTIME_TRACE_CBID_ISSUE_CALLBACK;
	case spyre_compat::Call::Wait:
		return AIUPTI_RUNTIME_TRACE_CBID_SCHEDULE_WAIT;
	case spyre_compat::Call::Release:
		break;
	}
	return AIUPTI_RUNTIME_TRACE_CBID_INVALID;
}

size_t size_of(uint8_t kind)
{
	switch (kind) {
	case AIUPTI_ACTIVITY_KIND_RUNTIME:
		return sizeof(AIUpti_ActivityAPI);
	case AIUPTI_ACTIVITY_KIND_CMPT:
		return sizeof(AIUpti_ActivityCompute);
	case AIUPTI_ACTIVITY_KIND_MEMCPY:
		return sizeof(AIUpti_ActivityMemcpy);
	case AIUPTI_ACTIVITY_KIND_MEMSET:
		return sizeof(AIUpti_ActivityMemset);
	case AIUPTI_ACTIVITY_KIND_MEMORY:
		return sizeof(AIUpti_ActivityMemory);
	default:
		return 0;
	}
}

uint64_t start_of(const Record &record)
{
	switch (record.any.kind) {
	case AIUPTI_ACTIVITY_KIND_RUNTIME:
		return record.api.start;
	case AIUPTI_ACTIVITY_KIND_CMPT:
		return record.compute.start;
	case AIUPTI_ACTIVITY_KIND_MEMCPY:
		return record.copy.start;
	case AIUPTI_ACTIVITY_KIND_MEMSET:
		return record.fill.start;
	default:
		return record.memory.start;
	}
}

/* The card of this process; NULL before it is opened. */
spyre_context *context()
{
	try {
		return flex::getFlexRuntimeContext()->native();
	} catch (const std::exception &) {
		return nullptr;
	}
}

/* Waits for the queued work: its records exist only then. Its errors are not the profiler's. */
void settle()
{
	spyre_context *c = context();

	if (c)
		(void)spyre_context_synchronize(c);
}

uint32_t card()
{
	spyre_device_properties properties = {};
	spyre_context *c = context();

	properties.struct_size = sizeof(properties);
	if (!c || spyre_context_get_properties(c, &properties) != SPYRE_SUCCESS)
		return 0;
	return properties.index;
}

/* Collects the records of one flush. */
class Batch
{
public:
	explicit Batch(State &shared) : s(shared), memory_card(card())
	{
		std::lock_guard<std::mutex> lock(s.append);

		std::swap(reports, s.pending);
		for (const PendingCall &call : reports)
			if (call.record.call == spyre_compat::Call::Launch)
				launches.emplace(call.record.correlation, &call.record);
	}

	std::vector<Record> collect()
	{
		for (const PendingCall &call : reports) {
			if (call.wanted & bit(AIUPTI_ACTIVITY_KIND_RUNTIME))
				add_call(call);
			if (call.wanted & bit(AIUPTI_ACTIVITY_KIND_MEMORY))
				add_memory(call.record);
		}
		read_log();
		std::stable_sort(
			records.begin(), records.end(),
			[](const Record &a, const Record &b) { return start_of(a) < start_of(b); });
		return std::move(records);
	}

	/* Names whose work has finished are not needed again. */
	~Batch()
	{
		std::lock_guard<std::mutex> lock(s.append);

		for (const auto &launch : launches)
			s.names.erase(launch.first);
	}

	spyre_status status = SPYRE_SUCCESS;

private:
	Record &add(AIUpti_ActivityKind kind)
	{
		Record &record = records.emplace_back();

		memset(&record, 0, sizeof(record));
		record.any.kind = kind;
		return record;
	}

	void add_call(const PendingCall &call)
	{
		AIUpti_ActivityAPI &api = add(AIUPTI_ACTIVITY_KIND_RUNTIME).api;

		api.cbid = cbid_of(call.record.call);
		api.process_id = getpid();
		api.thread_id = call.thread;
		api.correlation_id = call.record.correlation;
		api.start = call.record.start_ns + s.offset;
		api.end = call.record.end_ns + s.offset;
		api.data = call.record.call == spyre_compat::Call::Fill ? 1 : call.record.data;
	}

	void add_memory(const spyre_compat::CallRecord &report)
	{
		AIUpti_ActivityMemory &memory = add(AIUPTI_ACTIVITY_KIND_MEMORY).memory;

		memory.memory_operation_type =
			report.call == spyre_compat::Call::Release
				? AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
				: AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
		memory.device_id = memory_card;
		memory.process_id = getpid();
		memory.correlation_id = report.correlation;
		memory.address = report.address;
		memory.bytes = report.data;
		memory.start = report.start_ns + s.offset;
		memory.end = report.end_ns + s.offset;
	}

	void read_log()
	{
		std::vector<spyre_activity> piece(4096);
		uint64_t dropped = 0;
		uint32_t count = 0;

		do {
			status = spyre_activity_read(s.log, piece.data(), sizeof(spyre_activity),
						     piece.size(), &count, &dropped);
			if (status != SPYRE_SUCCESS)
				return;
			for (uint32_t i = 0; i < count; i++)
				add_activity(piece[i]);
		} while (count);
		s.dropped += dropped - s.dropped_by_log;
		s.dropped_by_log = dropped;
	}

	void add_activity(const spyre_activity &activity)
	{
		switch (activity.kind) {
		case SPYRE_ACTIVITY_LAUNCH:
			if (enabled(AIUPTI_ACTIVITY_KIND_CMPT))
				add_launch(activity);
			break;
		case SPYRE_ACTIVITY_FILL:
			if (enabled(AIUPTI_ACTIVITY_KIND_MEMSET)) {
				AIUpti_ActivityMemset &fill = add(AIUPTI_ACTIVITY_KIND_MEMSET).fill;

				set_common(fill, activity);
				fill.bytes = activity.bytes_written;
			}
			break;
		default:
			if (enabled(AIUPTI_ACTIVITY_KIND_MEMCPY))
				add_copy(activity);
		}
	}

	template <typename Target> void set_common(Target &target, const spyre_activity &activity)
	{
		target.device_id = activity.device;
		target.context_id = CONTEXT_ID;
		target.stream_id = activity.stream;
		target.correlation_id = activity.correlation;
		target.start = activity.start_ns + s.offset;
		target.end = activity.end_ns + s.offset;
	}

	void add_launch(const spyre_activity &activity)
	{
		AIUpti_ActivityCompute &compute = add(AIUPTI_ACTIVITY_KIND_CMPT).compute;
		auto call = launches.find(activity.correlation);

		set_common(compute, activity);
		compute.queued = compute.submitted = compute.start;
		if (call != launches.end()) {
			compute.queued = std::min(call->second->start_ns + s.offset, compute.start);
			compute.submitted =
				std::min(call->second->end_ns + s.offset, compute.start);
		}

		std::lock_guard<std::mutex> lock(s.append);
		auto name = s.names.find(activity.correlation);
		const char *text = name == s.names.end() ? activity.name : name->second.c_str();

		memcpy(compute.name, text, strnlen(text, sizeof(compute.name) - 1));
	}

	void add_copy(const spyre_activity &activity)
	{
		AIUpti_ActivityMemcpy &copy = add(AIUPTI_ACTIVITY_KIND_MEMCPY).copy;

		set_common(copy, activity);
		switch (activity.kind) {
		case SPYRE_ACTIVITY_COPY_H2D:
			copy.copy_kind = AIUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
			copy.bytes = activity.bytes_written;
			break;
		case SPYRE_ACTIVITY_COPY_D2H:
			copy.copy_kind = AIUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
			copy.bytes = activity.bytes_read;
			break;
		default:
			copy.copy_kind = AIUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
			/* A card only reads to send to another one. */
			copy.bytes = std::max(activity.bytes_read, activity.bytes_written);
		}
	}

	State &s;
	const uint32_t memory_card;
	std::vector<PendingCall> reports;
	std::unordered_map<uint64_t, const spyre_compat::CallRecord *> launches;
	std::vector<Record> records;
};

/* Writes records to the profiler's buffers. */
class Writer
{
public:
	explicit Writer(State &shared) : s(shared)
	{
		std::lock_guard<std::mutex> lock(s.append);

		requested = s.requested;
		completed = s.completed;
	}

	void write(const Record &record)
	{
		size_t bytes = size_of(record.any.kind);

		if (!buffer || bytes > size - used || count == limit) {
			finish();
			if (!begin() || bytes > size) {
				s.dropped++;
				return;
			}
		}
		memcpy(buffer + used, &record, bytes);
		used += bytes;
		count++;
	}

	void finish()
	{
		if (buffer)
			completed(buffer, size, used);
		buffer = nullptr;
	}

private:
	bool begin()
	{
		size = used = count = limit = 0;
		if (!requested)
			return false;
		requested(&buffer, &size, &limit);
		if (!limit)
			limit = SIZE_MAX;
		return buffer;
	}

	State &s;
	AIUpti_BufferRequested requested;
	AIUpti_BufferCompleted completed;
	uint8_t *buffer = nullptr;
	size_t size = 0, used = 0, count = 0, limit = 0;
};

/* Marks a flush, also if the profiler throws an exception. */
struct Flushing {
	explicit Flushing(State &shared) : s(shared)
	{
		s.flushing = true;
	}

	~Flushing()
	{
		s.flushing = false;
	}

	State &s;
};

AIUpti_ResultTypes open_log(State &s)
{
	if (s.log)
		return AIUPTI_SUCCESS;

	spyre_status status = spyre_activity_open(0, &s.log);

	if (status == SPYRE_ERROR_OUT_OF_HOST_MEMORY)
		return AIUPTI_ERROR_OUT_OF_MEMORY;
	if (status != SPYRE_SUCCESS)
		return AIUPTI_ERROR_UNKNOWN;
	s.offset = epoch_offset();
	s.dropped_by_log = 0;
	return AIUPTI_SUCCESS;
}

} // namespace

AIUpti_ResultTypes aiuptiActivityRegisterCallbacks(AIUpti_BufferRequested requested,
						   AIUpti_BufferCompleted completed)
{
	if (!requested || !completed)
		return AIUPTI_ERROR_INVALID_PARAMETER;

	State &s = state();
	std::lock_guard<std::mutex> lock(s.append);

	s.requested = requested;
	s.completed = completed;
	return AIUPTI_SUCCESS;
}

AIUpti_ResultTypes aiuptiActivityEnable(AIUpti_ActivityKind kind)
{
	if (!known(kind))
		return AIUPTI_ERROR_INVALID_KIND;

	State &s = state();
	std::lock_guard<std::recursive_mutex> lock(s.control);
	AIUpti_ResultTypes result = open_log(s);

	if (result != AIUPTI_SUCCESS)
		return result;
	s.enabled |= bit(kind);
	spyre_compat::set_recorder(&RECORDER);
	return AIUPTI_SUCCESS;
}

AIUpti_ResultTypes aiuptiActivityDisable(AIUpti_ActivityKind kind)
{
	if (!known(kind))
		return AIUPTI_ERROR_INVALID_KIND;

	State &s = state();
	std::lock_guard<std::recursive_mutex> lock(s.control);

	s.enabled &= ~bit(kind);
	if (s.enabled)
		return AIUPTI_SUCCESS;
	spyre_compat::set_recorder(nullptr);
	/* Work that is still queued would have its record in the next profile. */
	settle();
	(void)spyre_activity_close(s.log);
	s.log = nullptr;

	std::lock_guard<std::mutex> append(s.append);

	s.pending = {};
	s.names.clear();
	return AIUPTI_SUCCESS;
}

AIUpti_ResultTypes aiuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
					       AIUpti_Activity **record)
{
	if (!buffer || !record)
		return AIUPTI_ERROR_INVALID_PARAMETER;

	size_t at = 0;

	if (*record) {
		uint8_t *previous = reinterpret_cast<uint8_t *>(*record);

		if (previous < buffer || previous >= buffer + valid || !size_of((*record)->kind))
			return AIUPTI_ERROR_INVALID_PARAMETER;
		at = previous - buffer + size_of((*record)->kind);
	}
	if (at >= valid)
		return AIUPTI_ERROR_MAX_LIMIT_REACHED;
	if (!size_of(buffer[at]) || size_of(buffer[at]) > valid - at)
		return AIUPTI_ERROR_INVALID_PARAMETER;
	*record = reinterpret_cast<AIUpti_Activity *>(buffer + at);
	return AIUPTI_SUCCESS;
}

AIUpti_ResultTypes aiuptiActivityGetNumDroppedRecords(size_t *dropped)
{
	if (!dropped)
		return AIUPTI_ERROR_INVALID_PARAMETER;
	*dropped = state().dropped.exchange(0);
	return AIUPTI_SUCCESS;
}

AIUpti_ResultTypes aiuptiFlushAllActivities(void)
{
	State &s = state();
	std::lock_guard<std::recursive_mutex> lock(s.control);

	/*
	 * The profiler has at most one buffer at a time: a flush within its callbacks leaves
	 * the rest to the flush that has called it, and newer records to the next one.
	 */
	if (!s.log || s.flushing)
		return AIUPTI_SUCCESS;

	Flushing flushing(s);

	try {
		Batch batch(s);

		settle();

		std::vector<Record> records = batch.collect();
		Writer writer(s);

		for (const Record &record : records)
			writer.write(record);
		writer.finish();
		return batch.status == SPYRE_SUCCESS ? AIUPTI_SUCCESS : AIUPTI_ERROR_UNKNOWN;
	} catch (const std::bad_alloc &) {
		return AIUPTI_ERROR_OUT_OF_MEMORY;
	}
}
