// SPDX-License-Identifier: MIT
/*
 * Curves and modelled time as events of Kineto. It writes counter events for three types of
 * activities only, of which MTIA_COUNTERS is the one for a device; the type appears in the file
 * as their category. Spans of modelled time are PRIVATEUSE1_DRIVER, which no table of a device
 * adds up.
 */
#define USE_KINETO
#define FMT_HEADER_ONLY
#include "profiler_rows.h"

#include <cstdlib>
#include <cstring>

#include "device.h"
#include "trace_level.h"

namespace torch_spyre {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

namespace {

/* As in files of SPYRE_TRACE: a process that no program can be. */
constexpr int64_t MODEL_PID = 20000000;

struct Writer {
	libkineto::ActivityLogger &logger;
	const TraceRows &rows;
	int64_t offset, start;
	libkineto::TraceSpan span;
};

void add_counter(libkineto::ActivityLogger &logger, const libkineto::TraceSpan &span,
		 const char *name, int64_t pid, int64_t time, double value)
{
	GenericTraceActivity activity(span, ActivityType::MTIA_COUNTERS, name);

	activity.startTime = activity.endTime = time;
	activity.device = static_cast<int32_t>(pid);
	activity.addCounterValue("value", value);
	logger.handleGenericActivity(activity);
}

void add_span(const Writer &writer, const spyre_trace_event &event)
{
	GenericTraceActivity activity(writer.span, ActivityType::PRIVATEUSE1_DRIVER, event.name);
	const spyre_activity &work = *event.activity;
	auto number = writer.rows.numbers.find({ work.device, work.stream, work.operation });

	activity.startTime = static_cast<int64_t>(event.start_ns) + writer.offset;
	activity.endTime = static_cast<int64_t>(event.end_ns) + writer.offset;
	activity.device = static_cast<int32_t>(MODEL_PID + event.device);
	activity.resource = activity.threadId = static_cast<int32_t>(event.row);
	activity.addMetadataQuoted("kind", event.category);
	if (event.engine)
		activity.addMetadataQuoted("engine", event.engine);
	if (number != writer.rows.numbers.end())
		activity.addMetadata("call", number->second);
	for (uint32_t i = 0; i < event.num_arguments; i++)
		activity.addMetadata(event.arguments[i].name, event.arguments[i].value);
	writer.logger.handleGenericActivity(activity);
}

void add_event(void *data, const spyre_trace_event *event)
{
	const Writer &writer = *static_cast<Writer *>(data);
	int64_t pid = event->device + (event->modelled ? MODEL_PID : 0);

	switch (event->kind) {
	case SPYRE_TRACE_PROCESS:
		writer.logger.handleDeviceInfo({ pid, pid, event->name, event->name },
					       writer.start);
		break;
	case SPYRE_TRACE_ROW:
		writer.logger.handleResourceInfo({ event->row, event->row, pid, event->name },
						 writer.start);
		break;
	case SPYRE_TRACE_SPAN:
		add_span(writer, *event);
		break;
	case SPYRE_TRACE_COUNTER:
		add_counter(writer.logger, writer.span, event->name, pid,
			    static_cast<int64_t>(event->start_ns) + writer.offset,
			    static_cast<double>(event->hundredths) / 100);
		break;
	}
}

int64_t monotonic_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

} // namespace

void read_trace_level()
{
	const char *level = std::getenv("TORCH_SPYRE_TRACE");

	if (!level || !*level || !std::strcmp(level, "operations"))
		return;
	TORCH_CHECK_VALUE(!std::strcmp(level, "cores"), "spyre: TORCH_SPYRE_TRACE is '", level,
			  "'; it takes operations or cores");
	(void)spyre_trace_keep_cores();
}

TraceRows::TraceRows(int64_t offset) : offset(offset), start(monotonic_ns() + offset)
{
	for (c10::DeviceIndex i = 0; i < device_count(); i++) {
		spyre_memory_info info{};

		info.struct_size = sizeof(info);
		if (has_context(i) && spyre_mem_info(context(i), &info) == SPYRE_SUCCESS)
			memory.push_back({ i, info.context_used });
	}
	if (spyre_trace_open(0, &trace) != SPYRE_SUCCESS)
		failure = spyre_last_error();
}

TraceRows::~TraceRows()
{
	(void)spyre_trace_close(trace);
}

std::string TraceRows::stop()
{
	uint64_t dropped = 0;

	if (!trace)
		return failure;
	(void)spyre_trace_stop(trace, &dropped);
	if (dropped)
		return "spyre: the curves lack " + std::to_string(dropped) +
		       " operations and allocations; profile less at a time";
	return {};
}

void TraceRows::log(libkineto::ActivityLogger &logger) const
{
	Writer writer{ logger, *this, offset, start, libkineto::TraceSpan(start, 0, "spyre") };

	if (!trace)
		return;
	for (const Memory &at : memory)
		add_counter(logger, writer.span, "device memory bytes", at.device, start,
			    static_cast<double>(at.bytes));
	(void)spyre_trace_events(trace, add_event, &writer);
}

void CarrierActivity::log(libkineto::ActivityLogger &logger) const
{
	GenericTraceActivity::log(logger);
	rows->log(logger);
}

} // namespace torch_spyre
