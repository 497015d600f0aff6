/* SPDX-License-Identifier: MIT */
/* Activity records, which streams write to the logs of profilers. Internal. */
#ifndef SPYRE_RUNTIME_ACTIVITY_H
#define SPYRE_RUNTIME_ACTIVITY_H

#include <spyre/activity.h>

#include "libspyre/runtime/stream.h"

extern _Atomic uint32_t spyre_activity_logs;

/* True if a log is open. Inline, as it is the only cost without a profiler. */
static inline bool spyre_activity_on(void)
{
	uint32_t logs = atomic_load_explicit(&spyre_activity_logs, memory_order_relaxed);

	return __builtin_expect(logs != 0, 0);
}

/* Describes a call of the present thread that begins now. */
void spyre_activity_queued(struct spyre_queued *queued);
/* Kind of the record of @work, 0 for waits and events. */
spyre_activity_kind spyre_activity_kind_of(const struct spyre_work *work);
/* The timeline of the program that @commands execute; NULL if none is known. */
const struct timeline *spyre_activity_timeline(const struct spyre_command *commands, uint32_t n);
/* Completes @activity, which has the numbers of a finished operation, and adds it to all logs. */
void spyre_activity_report(const struct spyre_stream *stream, const struct spyre_record *record,
			   const struct spyre_part *part, spyre_activity *activity);

#endif /* SPYRE_RUNTIME_ACTIVITY_H */
