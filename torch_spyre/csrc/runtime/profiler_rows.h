// SPDX-License-Identifier: MIT
/*
 * The curves and the modelled time in a trace of torch.profiler, from libspyre's traces in
 * memory. Included by files that have defined USE_KINETO.
 */
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <kineto/libkineto.h>
#include <kineto/output_base.h>

#include <spyre/trace.h>

#include "spyre.h"

namespace torch_spyre {

/* Numbers of calls, by which work is connected with them: by card, stream and operation. */
using CallNumbers = std::map<std::tuple<int, int, uint64_t>, uint64_t>;

/* The curves and the modelled time of a session. */
class TraceRows {
public:
	/* Begins to record. @offset in ns leads from CLOCK_MONOTONIC to the epoch. */
	explicit TraceRows(int64_t offset);
	~TraceRows();
	TraceRows(const TraceRows &) = delete;
	TraceRows &operator=(const TraceRows &) = delete;

	/* Ends recording; an error if events are missing, or an empty text. */
	std::string stop();
	/* Adds all events to a file. They carry the numbers of the calls that are set before. */
	void log(libkineto::ActivityLogger &logger) const;

	CallNumbers numbers;

private:
	struct Memory {
		int device;
		uint64_t bytes;
	};

	spyre_trace *trace = nullptr;
	int64_t offset, start;
	/* Use at the start, since libspyre records changes. */
	std::vector<Memory> memory;
	std::string failure;
};

/*
 * Writes @rows with itself. torch.profiler makes an event of Python of each activity of a trace,
 * with a device time that its tables add up; these must not be among them, so they exist only
 * while a file is written.
 */
class CarrierActivity final : public libkineto::GenericTraceActivity {
public:
	CarrierActivity(const libkineto::GenericTraceActivity &activity,
			std::shared_ptr<const TraceRows> rows)
		: GenericTraceActivity(activity), rows(std::move(rows))
	{
	}

	void log(libkineto::ActivityLogger &logger) const override;

private:
	const std::shared_ptr<const TraceRows> rows;
};

} // namespace torch_spyre
