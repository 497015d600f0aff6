/* SPDX-License-Identifier: MIT */
/* Activity records: what the stream's bookkeeping tells the logs. Internal. */
#ifndef SPYRE_RUNTIME_ACTIVITY_H
#define SPYRE_RUNTIME_ACTIVITY_H

#include <spyre/activity.h>

#include "libspyre/runtime/stream.h"

extern _Atomic uint32_t spyre_activity_logs;

/* True if a profiler listens; a process without one pays for this look alone. */
static inline bool spyre_activity_on(void)
{
	uint32_t logs = atomic_load_explicit(&spyre_activity_logs, memory_order_relaxed);

	return __builtin_expect(logs != 0, 0);
}

uint64_t spyre_activity_correlation(void);
/* The kind of record that @work leaves, 0 for waits and events. */
spyre_activity_kind spyre_activity_kind_of(const struct spyre_work *work);
/* Adds a finished operation, whose numbers @activity has, to every log. */
void spyre_activity_report(const struct spyre_stream *stream, const struct spyre_record *record,
			   const struct spyre_part *part, spyre_activity *activity);

#endif /* SPYRE_RUNTIME_ACTIVITY_H */
