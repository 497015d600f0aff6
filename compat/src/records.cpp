// SPDX-License-Identifier: MIT
/* Reports of libflex to a profiler. */
#include "records.h"

#include <spyre/activity.h>

#include <atomic>
#include <ctime>

namespace spyre_compat
{
namespace
{
std::atomic<const Recorder *> current{nullptr};
std::atomic<std::uint64_t> last_correlation{0};

std::uint64_t now() noexcept
{
	timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}
} // namespace

void set_recorder(const Recorder *recorder) noexcept
{
	current = recorder;
}

CallReport::CallReport(Call call, std::uint64_t data, const char *name) noexcept
    : recorder_(current)
{
	if (!recorder_)
		return;
	record_.call = call;
	record_.data = data;
	record_.correlation = ++last_correlation;
	outer_ = spyre_activity_correlate(record_.correlation);
	if (name)
		recorder_->name(record_.correlation, name);
	record_.start_ns = now();
}

CallReport::~CallReport()
{
	if (!recorder_)
		return;
	record_.end_ns = now();
	spyre_activity_correlate(outer_);
	recorder_->call(record_);
}
} // namespace spyre_compat
