// SPDX-License-Identifier: MIT
/*
 * torch.profiler: rows of the cards in its traces, from libspyre's activity
 * records. Each record has a runtime event on the row of the thread that queued
 * it, with an arrow and a correlation number of their own, and is linked to the
 * operation. Ranges of record_function() appear on the cards' rows as well.
 * Times are of the host; modelled cycles and traffic are in the events'
 * arguments.
 */
#define USE_KINETO
#define FMT_HEADER_ONLY
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <unistd.h>

#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include <kineto/libkineto.h>
#include <kineto/output_base.h>

#include "device.h"
#include "ideal_cycles.h"
#include "launch_note.h"
#include "profiler_rows.h"
#include "stream.h"
#include "trace_level.h"

namespace torch_spyre {

namespace {

using libkineto::ActivityType;

const std::set<ActivityType> KINDS{
	ActivityType::CONCURRENT_KERNEL,
	ActivityType::GPU_MEMCPY,
	ActivityType::GPU_MEMSET,
	ActivityType::GPU_USER_ANNOTATION,
	ActivityType::PRIVATEUSE1_RUNTIME,
};

/*
 * Whose names and spans runtime events have. Tools look for calls that they know: HTA for those of
 * CUDA, aiu-trace-analyzer for those of torch-spyre, which last until their work ends. Such calls
 * would overlap with what their thread does next, so they have a row for each stream, and begin
 * when the stream's earlier work has ended.
 */
enum class Dialect { SPYRE, CUDA, AIU };

Dialect dialect_of_environment()
{
	const char *name = std::getenv("TORCH_SPYRE_TRACE_DIALECT");

	if (!name || !*name || !std::strcmp(name, "spyre"))
		return Dialect::SPYRE;
	if (!std::strcmp(name, "cuda"))
		return Dialect::CUDA;
	TORCH_CHECK_VALUE(!std::strcmp(name, "aiu"), "spyre: TORCH_SPYRE_TRACE_DIALECT is '", name,
			  "'; it takes spyre, cuda or aiu");
	return Dialect::AIU;
}

/* The folder for ideal cycles, or an empty text. */
std::string ideal_folder()
{
	const char *folder = std::getenv("TORCH_SPYRE_IDEAL_CYCLES");

	return folder ? folder : "";
}

ActivityType type_of(spyre_activity_kind kind)
{
	switch (kind) {
	case SPYRE_ACTIVITY_LAUNCH:
		return ActivityType::CONCURRENT_KERNEL;
	case SPYRE_ACTIVITY_FILL:
		return ActivityType::GPU_MEMSET;
	default:
		return ActivityType::GPU_MEMCPY;
	}
}

/* The largest rate of 16-bit products of a core (docs/timing.md). */
constexpr double MACS_PER_CYCLE = 1024;

/* A path as Kineto can write it: it has no escapes in texts, and replaces backslashes. */
std::string quotable(std::string path)
{
	for (char &c : path) {
		if (c == '"')
			c = '\'';
		else if (static_cast<unsigned char>(c) < ' ')
			c = '?';
	}
	return path;
}

/* The operations of ATen first, then the key of the bundle, or the SDSCs of one that has none. */
std::string name_of(const spyre_activity &activity, const KernelNote *note)
{
	switch (activity.kind) {
	case SPYRE_ACTIVITY_COPY_H2D:
		return "Memcpy HtoD";
	case SPYRE_ACTIVITY_COPY_D2H:
		return "Memcpy DtoH";
	case SPYRE_ACTIVITY_COPY_D2D:
		return "Memcpy DtoD";
	case SPYRE_ACTIVITY_COPY_PEER:
		return "Memcpy PtoP";
	case SPYRE_ACTIVITY_FILL:
		return "Memset";
	default:
		return note ? note->title + " " + (note->key.empty() ? activity.name : note->key) :
			      activity.name;
	}
}

/* The name of the call that queued it. */
const char *call_of(const spyre_activity &activity, Dialect dialect)
{
	bool launch = activity.kind == SPYRE_ACTIVITY_LAUNCH;
	bool fill = activity.kind == SPYRE_ACTIVITY_FILL;

	if (dialect == Dialect::CUDA)
		return activity.in_graph ? "cudaGraphLaunch" : launch ? "cudaLaunchKernel" :
		       fill ? "cudaMemsetAsync" : "cudaMemcpyAsync";
	if (dialect == Dialect::AIU)
		return launch ? "aiuLaunchScheduleCompute" : "aiuPrepareDMAs";
	if (activity.in_graph)
		return "spyre_graph_launch";
	switch (activity.kind) {
	case SPYRE_ACTIVITY_COPY_H2D:
		return "spyre_copy_h2d_async";
	case SPYRE_ACTIVITY_COPY_D2H:
		return "spyre_copy_d2h_async";
	case SPYRE_ACTIVITY_COPY_D2D:
		return "spyre_memcpy_d2d_async";
	case SPYRE_ACTIVITY_COPY_PEER:
		return "spyre_memcpy_peer_async";
	case SPYRE_ACTIVITY_FILL:
		return "spyre_memset_async";
	default:
		return "spyre_launch";
	}
}

/*
 * Number of the first call. HTA keeps indices of rows in the narrowest type that holds these
 * numbers, so they are large.
 */
constexpr uint64_t FIRST_NUMBER = 1 << 24;

/* Offset in ns from CLOCK_MONOTONIC to the epoch, which traces use. */
int64_t epoch_offset()
{
	timespec monotonic, real;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	return (real.tv_sec - monotonic.tv_sec) * INT64_C(1000000000) + real.tv_nsec -
	       monotonic.tv_nsec;
}

/*
 * Operations and ranges of record_function() nest; work that a thread queues belongs to the
 * innermost operation, or to the innermost range outside of operations.
 */
struct Open {
	uint64_t id;
	bool range;
};
thread_local std::vector<Open> opened;

/* The ranges around each operation, outermost first; those of all threads. */
std::mutex ranges_lock;
std::unordered_map<uint64_t, std::vector<uint64_t>> ranges_around;

/* The innermost operation that is open, or the innermost range; 0 without any. */
uint64_t innermost()
{
	for (auto open = opened.rbegin(); open != opened.rend(); ++open)
		if (!open->range)
			return open->id;
	return opened.empty() ? 0 : opened.back().id;
}

void push_opened(uint64_t id, bool range)
{
	std::vector<uint64_t> ranges;

	opened.push_back({ id, range });
	for (const Open &open : opened)
		if (open.range)
			ranges.push_back(open.id);
	if (!ranges.empty()) {
		std::lock_guard<std::mutex> hold(ranges_lock);

		ranges_around[innermost()] = std::move(ranges);
	}
	spyre_activity_correlate(innermost());
}

void pop_opened()
{
	if (!opened.empty())
		opened.pop_back();
	spyre_activity_correlate(innermost());
}

class Session final : public libkineto::IActivityProfilerSession {
public:
	explicit Session(std::set<ActivityType> types) : types(std::move(types))
	{
		read_trace_level();
	}

	~Session() override
	{
		(void)spyre_activity_close(log);
	}

	void start() override
	{
		spyre_status status = spyre_activity_open(0, &log);

		{
			std::lock_guard<std::mutex> hold(ranges_lock);

			ranges_around.clear();
		}
		offset = epoch_offset();
		if (types.count(ActivityType::CONCURRENT_KERNEL))
			trace_rows = std::make_shared<TraceRows>(offset);
		start_notes();
		if (status != SPYRE_SUCCESS)
			failures.emplace_back(spyre_last_error());
		status_ = libkineto::TraceStatus::RECORDING;
	}

	void stop() override
	{
		stop_notes();
		for (c10::DeviceIndex i = 0; i < device_count(); i++) {
			if (!has_context(i))
				continue;
			try {
				/* Waits until running work has its records. */
				synchronize_device(i);
			} catch (const std::exception &error) {
				failures.emplace_back(error.what());
			}
		}
		if (log)
			collect();
		(void)spyre_activity_close(log);
		log = nullptr;
		if (trace_rows) {
			std::string failure = trace_rows->stop();

			if (!failure.empty())
				failures.push_back(failure);
		}
		status_ = libkineto::TraceStatus::PROCESSING;
	}

	std::vector<std::string> errors() override
	{
		return failures;
	}

	void processTrace(libkineto::ActivityLogger &logger) override
	{
		processTrace(logger, [](int32_t) { return nullptr; }, 0, INT64_MAX);
	}

	void processTrace(libkineto::ActivityLogger &logger,
			  libkineto::getLinkedActivityCallback linked, int64_t start,
			  int64_t end) override
	{
		std::set<std::pair<int, int>> rows;
		Spans spans;
		/* Work of one launch of a graph has one call and one number. */
		CallNumbers numbers;

		buffer.span = libkineto::TraceSpan(start, end, "spyre");
		for (spyre_activity &record : records) {
			const KernelNote *note = noted(&record.correlation);

			if (!types.count(type_of(record.kind)))
				continue;

			const libkineto::ITraceActivity *op = nullptr;
			auto [number, first] = numbers.try_emplace(
				{ record.device, record.stream, record.operation },
				FIRST_NUMBER + numbers.size());

			if (record.correlation)
				op = linked(static_cast<int32_t>(record.correlation));
			if (first && types.count(ActivityType::PRIVATEUSE1_RUNTIME))
				add_call(record, op, number->second);
			add(record, op, number->second, note);
			widen(spans, record);
			rows.emplace(record.device, record.stream);
		}
		/* acelyzer takes ranges for work, which overlaps with what they contain. */
		if (types.count(ActivityType::GPU_USER_ANNOTATION) && dialect != Dialect::AIU)
			add_ranges(spans, linked);
		write_ideal_cycles();
		describe(logger, rows, start);
		if (trace_rows && !buffer.activities.empty()) {
			auto &first = buffer.activities.front();

			trace_rows->numbers = std::move(numbers);
			first = std::make_unique<CarrierActivity>(*first, std::move(trace_rows));
			/* Kineto keeps the object, which the buffer owns, instead of a copy. */
			logger.handleActivity(*first);
		}
		for (auto &activity : buffer.activities)
			if (!dynamic_cast<CarrierActivity *>(activity.get()))
				activity->log(logger);
	}

	std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override
	{
		return nullptr;	/* processTrace() names the rows of all cards */
	}

	std::vector<libkineto::ResourceInfo> getResourceInfos() override
	{
		return {};
	}

	std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override
	{
		return std::make_unique<libkineto::CpuTraceBuffer>(std::move(buffer));
	}

	void pushCorrelationId(uint64_t id) override
	{
		push_opened(id, false);
	}

	void popCorrelationId() override
	{
		pop_opened();
	}

	void pushUserCorrelationId(uint64_t id) override
	{
		push_opened(id, true);
	}

	void popUserCorrelationId() override
	{
		pop_opened();
	}

	/* As the profiler of CUDA writes them, as far as a card has them. */
	std::string getDeviceProperties() override
	{
		std::string text;

		for (c10::DeviceIndex i = 0; i < device_count(); i++) {
			spyre_device_properties p{};

			p.struct_size = sizeof(p);
			if (spyre_device_get_properties(i, &p) != SPYRE_SUCCESS)
				continue;
			text += fmt::format(
				"{}{{\"id\": {}, \"name\": \"{}\", \"totalGlobalMem\": {}, "
				"\"numSms\": {}, \"sharedMemPerBlock\": {}, \"clockRateKhz\": {}}}",
				text.empty() ? "" : ", ", int(i), p.name, p.memory_bytes,
				p.num_cores, p.lx_bytes, p.clock_khz);
		}
		return text;
	}

	std::unordered_map<std::string, std::string> getMetadata() override
	{
		uint32_t version = spyre_version();

		return { { "libspyre", fmt::format("\"{}.{}.{}\"", version >> 16,
						   version >> 8 & 255, version & 255) } };
	}

private:
	/* The time from the first to the last work of each range on each stream. */
	using Spans = std::map<std::tuple<uint64_t, int, int>, std::pair<uint64_t, uint64_t>>;

	static void widen(Spans &spans, const spyre_activity &record)
	{
		std::lock_guard<std::mutex> hold(ranges_lock);
		auto found = ranges_around.find(record.correlation);

		if (found == ranges_around.end())
			return;
		for (uint64_t range : found->second) {
			auto key = std::make_tuple(range, record.device, record.stream);
			auto at = spans.try_emplace(key, record.start_ns, record.end_ns).first;

			at->second.first = std::min(at->second.first, record.start_ns);
			at->second.second = std::max(at->second.second, record.end_ns);
		}
	}

	void add_ranges(const Spans &spans, libkineto::getLinkedActivityCallback linked)
	{
		for (const auto &[key, times] : spans) {
			const auto &[range, device, stream] = key;
			const libkineto::ITraceActivity *op = linked(static_cast<int32_t>(range));

			if (!op)
				continue;
			buffer.emplace_activity(buffer.span, ActivityType::GPU_USER_ANNOTATION,
						op->name());

			libkineto::GenericTraceActivity &activity = *buffer.activities.back();

			activity.startTime = static_cast<int64_t>(times.first) + offset;
			activity.endTime = static_cast<int64_t>(times.second) + offset;
			activity.id = static_cast<int32_t>(range);
			activity.device = device;
			activity.resource = activity.threadId = stream;
			activity.linked = op;
		}
	}

	void collect()
	{
		constexpr uint32_t PIECE = 4096;
		uint64_t dropped = 0;
		uint32_t count;

		do {
			size_t have = records.size();

			records.resize(have + PIECE);
			if (spyre_activity_read(log, &records[have], sizeof(spyre_activity), PIECE,
						&count, &dropped) != SPYRE_SUCCESS)
				count = 0;
			records.resize(have + count);
		} while (count);
		if (dropped)
			failures.push_back("spyre: " + std::to_string(dropped) +
					   " records were dropped; profile less at a time");
	}

	/* A row of the process that no thread has. */
	static int32_t row_of_calls(const spyre_activity &record)
	{
		return 1 << 24 | record.device << 16 | record.stream;
	}

	/* Adds the call that queued the work, and the start of an arrow, on the host's row. */
	void add_call(const spyre_activity &record, const libkineto::ITraceActivity *op,
		      uint64_t number)
	{
		buffer.emplace_activity(buffer.span, ActivityType::PRIVATEUSE1_RUNTIME,
					call_of(record, dialect));

		libkineto::GenericTraceActivity &activity = *buffer.activities.back();
		uint64_t from = record.queue_start_ns;
		uint64_t until = record.queue_end_ns;

		if (dialect == Dialect::AIU) {
			uint64_t &ended = stream_ends[{ record.device, record.stream }];

			/* Readers round times, and must not find that calls overlap. */
			from = std::min(std::max(from, ended + 2), record.start_ns);
			until = ended = record.end_ns;
		}

		activity.startTime = static_cast<int64_t>(from) + offset;
		activity.endTime = static_cast<int64_t>(std::max(from, until)) + offset;
		activity.id = static_cast<int32_t>(number);
		activity.device = op ? op->deviceId() : getpid();
		activity.resource = dialect == Dialect::AIU ? row_of_calls(record) :
				    op ? op->resourceId() : record.thread;
		activity.threadId = record.thread;
		activity.flow.id = static_cast<uint32_t>(number);
		activity.flow.type = libkineto::kLinkAsyncCpuGpu;
		activity.flow.start = 1;
		activity.linked = op;
		activity.addMetadata("correlation", number);
	}

	void add(const spyre_activity &record, const libkineto::ITraceActivity *op, uint64_t number,
		 const KernelNote *note)
	{
		uint64_t bytes = std::max(record.bytes_read, record.bytes_written);
		double ns = static_cast<double>(record.end_ns - record.start_ns);

		std::string name = name_of(record, note);

		/* acelyzer finds a kernel's file by the name of its events. */
		if (record.kind == SPYRE_ACTIVITY_LAUNCH && !folder.empty())
			name = IdealCycles::name_of_folder(name);
		buffer.emplace_activity(buffer.span, type_of(record.kind), name);

		libkineto::GenericTraceActivity &activity = *buffer.activities.back();

		activity.startTime = static_cast<int64_t>(record.start_ns) + offset;
		activity.endTime = static_cast<int64_t>(record.end_ns) + offset;
		activity.id = static_cast<int32_t>(number);
		activity.device = record.device;
		activity.resource = record.stream;
		activity.threadId = record.stream;
		activity.flow.id = static_cast<uint32_t>(number);
		activity.flow.type = libkineto::kLinkAsyncCpuGpu;
		activity.linked = op;
		activity.addMetadata("device", record.device);
		activity.addMetadata("stream", record.stream);
		activity.addMetadata("correlation", number);
		activity.addMetadata("cycles", record.cycles);
		activity.addMetadata("bytes", bytes);
		if (record.kind != SPYRE_ACTIVITY_LAUNCH && ns > 0)
			activity.addMetadata("memory bandwidth (GB/s)",
					     static_cast<double>(bytes) / ns);
		if (record.macs)
			activity.addMetadata("macs", record.macs);
		if (record.kind == SPYRE_ACTIVITY_LAUNCH) {
			add_cost(activity, record, card(record.device));
			add_ideal(record, name, note);
		}
		if (note)
			add_note(activity, *note);
	}

	const spyre_device_properties &card(int device)
	{
		auto [at, first] = cards.try_emplace(device);

		at->second.struct_size = sizeof(at->second);
		if (first && spyre_device_get_properties(device, &at->second) != SPYRE_SUCCESS)
			at->second = {};
		return at->second;
	}

	/* The modelled cost of a launch; a card that is gone has no clock. */
	static void add_cost(libkineto::GenericTraceActivity &activity,
			     const spyre_activity &record, const spyre_device_properties &card)
	{
		double cycles = static_cast<double>(record.cycles);
		double peak = cycles * card.num_cores * MACS_PER_CYCLE;

		activity.addMetadata("bytes read", record.bytes_read);
		activity.addMetadata("bytes written", record.bytes_written);
		if (card.clock_khz)
			activity.addMetadata("modelled us", cycles * 1e3 / card.clock_khz);
		if (peak > 0)
			activity.addMetadata("PT utilisation (%)",
					     100 * static_cast<double>(record.macs) / peak);
	}

	void add_ideal(const spyre_activity &record, const std::string &name,
		       const KernelNote *note)
	{
		uint32_t cores = card(record.device).num_cores;

		if (!folder.empty() && cores)
			ideal.add(name, note ? note->title : "graph",
				  static_cast<double>(record.macs) / (cores * MACS_PER_CYCLE));
	}

	void write_ideal_cycles()
	{
		std::string failure = folder.empty() ? "" : ideal.write(folder);

		if (!failure.empty())
			TORCH_WARN("spyre: cannot write the ideal cycles of "
				   "TORCH_SPYRE_IDEAL_CYCLES: ", failure,
				   "; name a folder that can be written");
	}

	static void add_note(libkineto::GenericTraceActivity &activity, const KernelNote &note)
	{
		activity.addMetadataQuoted("shapes", note.shapes);
		activity.addMetadataQuoted("sdscs", note.info.name);
		activity.addMetadata("cores", note.info.num_cores);
		activity.addMetadata("LX bytes", note.info.lx_bytes);
		if (note.directory.empty())
			return;
		activity.addMetadataQuoted("key", note.key);
		activity.addMetadataQuoted("bundle", quotable(note.directory));
	}

	/* Names a row for each stream with records. */
	void describe(libkineto::ActivityLogger &logger, const std::set<std::pair<int, int>> &rows,
		      int64_t time)
	{
		int last = -1;

		for (auto [device, stream] : rows) {
			std::string name = "spyre:" + std::to_string(device);
			std::string row = "stream " + std::to_string(stream);

			if (device != last)
				logger.handleDeviceInfo({device, libkineto::kExceedMaxPid + device,
							 name, name}, time);
			logger.handleResourceInfo({stream, stream, device, row}, time);
			last = device;
		}
	}

	const std::set<ActivityType> types;
	const Dialect dialect = dialect_of_environment();
	const std::string folder = ideal_folder();
	IdealCycles ideal;
	spyre_activity_log *log = nullptr;
	int64_t offset = 0;
	std::map<int, spyre_device_properties> cards;
	/* Ends of the last work of each stream, for calls that last until then. */
	std::map<std::pair<int, int>, uint64_t> stream_ends;
	std::vector<spyre_activity> records;
	std::vector<std::string> failures;
	libkineto::CpuTraceBuffer buffer;
	/* Until the activity has it that is written with it. */
	std::shared_ptr<TraceRows> trace_rows;
};

class Profiler final : public libkineto::IActivityProfiler {
public:
	const std::string &name() const override
	{
		return title;
	}

	const std::set<ActivityType> &availableActivities() const override
	{
		return KINDS;
	}

	std::unique_ptr<libkineto::IActivityProfilerSession>
	configure(const std::set<ActivityType> &types, const libkineto::Config &) override
	{
		std::set<ActivityType> wanted;

		for (ActivityType type : types)
			if (KINDS.count(type))
				wanted.insert(type);
		return wanted.empty() ? nullptr : std::make_unique<Session>(std::move(wanted));
	}

	std::unique_ptr<libkineto::IActivityProfilerSession>
	configure(int64_t, int64_t, const std::set<ActivityType> &types,
		  const libkineto::Config &config) override
	{
		return configure(types, config);
	}

private:
	const std::string title = "spyre";
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

} // namespace

} // namespace torch_spyre
