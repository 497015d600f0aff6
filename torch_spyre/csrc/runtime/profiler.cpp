// SPDX-License-Identifier: MIT
/*
 * torch.profiler: rows of the cards in its traces, from libspyre's activity
 * records, each linked to the operation that queued it, with an arrow to the
 * first of each. Times are of the host; modelled cycles and traffic are in the
 * events' arguments.
 */
#define USE_KINETO
#define FMT_HEADER_ONLY
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <ctime>
#include <set>

#include <kineto/libkineto.h>
#include <kineto/output_base.h>

#include "device.h"
#include "stream.h"

namespace torch_spyre {

namespace {

using libkineto::ActivityType;

const std::set<ActivityType> KINDS{
	ActivityType::CONCURRENT_KERNEL,
	ActivityType::GPU_MEMCPY,
	ActivityType::GPU_MEMSET,
	ActivityType::PRIVATEUSE1_RUNTIME,
};

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

std::string name_of(const spyre_activity &activity)
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
		return activity.name;
	}
}

/* Offset in ns from CLOCK_MONOTONIC to the epoch, which traces use. */
int64_t epoch_offset()
{
	timespec monotonic, real;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	return (real.tv_sec - monotonic.tv_sec) * INT64_C(1000000000) + real.tv_nsec -
	       monotonic.tv_nsec;
}

/* Operations nest; work that a thread queues belongs to the innermost one. */
thread_local std::vector<uint64_t> correlations;

class Session final : public libkineto::IActivityProfilerSession {
public:
	explicit Session(std::set<ActivityType> types) : types(std::move(types))
	{
	}

	~Session() override
	{
		(void)spyre_activity_close(log);
	}

	void start() override
	{
		spyre_status status = spyre_activity_open(0, &log);

		offset = epoch_offset();
		if (status != SPYRE_SUCCESS)
			failures.emplace_back(spyre_last_error());
		status_ = libkineto::TraceStatus::RECORDING;
	}

	void stop() override
	{
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
		std::set<uint64_t> arrows;

		buffer.span = libkineto::TraceSpan(start, end, "spyre");
		for (const spyre_activity &record : records) {
			if (!types.count(type_of(record.kind)))
				continue;

			const libkineto::ITraceActivity *op = nullptr;

			if (record.correlation)
				op = linked(static_cast<int32_t>(record.correlation));
			bool arrow = op && types.count(ActivityType::PRIVATEUSE1_RUNTIME) &&
				     arrows.insert(record.correlation).second;
			if (arrow)
				add_origin(record, *op);
			add(record, op, arrow);
			rows.emplace(record.device, record.stream);
		}
		describe(logger, rows, start);
		for (auto &activity : buffer.activities)
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
		correlations.push_back(id);
		spyre_activity_correlate(id);
	}

	void popCorrelationId() override
	{
		if (!correlations.empty())
			correlations.pop_back();
		spyre_activity_correlate(correlations.empty() ? 0 : correlations.back());
	}

private:
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

	/* Adds the start of an arrow on the host's row, in the operation that queued the work. */
	void add_origin(const spyre_activity &record, const libkineto::ITraceActivity &op)
	{
		buffer.emplace_activity(buffer.span, ActivityType::PRIVATEUSE1_RUNTIME,
					"spyre queue");

		libkineto::GenericTraceActivity &activity = *buffer.activities.back();

		activity.startTime = activity.endTime = op.timestamp();
		activity.id = static_cast<int32_t>(record.correlation);
		activity.device = op.deviceId();
		activity.resource = op.resourceId();
		activity.threadId = op.getThreadId();
		activity.flow.id = static_cast<uint32_t>(record.correlation);
		activity.flow.type = libkineto::kLinkAsyncCpuGpu;
		activity.flow.start = 1;
		activity.linked = &op;
	}

	void add(const spyre_activity &record, const libkineto::ITraceActivity *op, bool arrow)
	{
		buffer.emplace_activity(buffer.span, type_of(record.kind), name_of(record));

		libkineto::GenericTraceActivity &activity = *buffer.activities.back();

		activity.startTime = static_cast<int64_t>(record.start_ns) + offset;
		activity.endTime = static_cast<int64_t>(record.end_ns) + offset;
		activity.id = static_cast<int32_t>(record.correlation);
		activity.device = record.device;
		activity.resource = record.stream;
		activity.threadId = record.stream;
		if (arrow) {
			activity.flow.id = static_cast<uint32_t>(record.correlation);
			activity.flow.type = libkineto::kLinkAsyncCpuGpu;
		}
		activity.linked = op;
		activity.addMetadata("device", record.device);
		activity.addMetadata("stream", record.stream);
		activity.addMetadata("correlation", record.correlation);
		activity.addMetadata("cycles", record.cycles);
		activity.addMetadata("bytes", std::max(record.bytes_read, record.bytes_written));
		if (record.macs)
			activity.addMetadata("macs", record.macs);
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
	spyre_activity_log *log = nullptr;
	int64_t offset = 0;
	std::vector<spyre_activity> records;
	std::vector<std::string> failures;
	libkineto::CpuTraceBuffer buffer;
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
