// SPDX-License-Identifier: MIT
/* Timelines of programs: what an observer of their verification learns. */
#include "libspyre/runtime/timeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"

/* All timelines, so that checkers of memory see who has them. */
static SLIST_HEAD(, timeline) timelines = SLIST_HEAD_INITIALIZER(timelines);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct making {
	struct timeline *timeline;
	const struct spyre_bundle *bundle;
	size_t max_phases, max_cores;
	uint32_t phase_cores;		/* cores since the last phase */
	uint32_t label;			/* that of the last phase */
	bool failed;
};

static void observe_core(void *context, const struct spyre_cost_core *core)
{
	struct making *m = context;
	struct timeline *t = m->timeline;

	if (!spyre_array_reserve(&t->cores, &m->max_cores, t->num_cores + 1, sizeof(*core)))
		m->failed = true;
	if (m->failed)
		return;
	t->cores[t->num_cores++] = *core;
	m->phase_cores++;
}

static void observe_phase(void *context, const struct spyre_cost_phase *phase)
{
	struct making *m = context;
	struct timeline *t = m->timeline;
	const struct spyre_bundle *b = m->bundle;
	struct timeline_phase *to;

	if (!spyre_array_reserve(&t->phases, &m->max_phases, t->num_phases + 1, sizeof(*to)))
		m->failed = true;
	if (m->failed)
		return;
	to = &t->phases[t->num_phases++];
	to->cost = *phase;
	to->first_core = t->num_cores - m->phase_cores;
	m->phase_cores = 0;
	to->label[0] = '\0';
	/* Labels and phases have the order of the steps. */
	while (m->label + 1 < b->num_labels && b->labels[m->label + 1].first_step <= phase->step)
		m->label++;
	if (b->num_labels)
		memcpy(to->label, b->labels[m->label].name, sizeof(to->label));
}

const struct timeline *spyre_timeline_make(const struct spyre_bundle *bundle, uint32_t cores)
{
	struct making m = { .timeline = calloc(1, sizeof(*m.timeline)), .bundle = bundle };
	const struct spyre_cost_observer observer = {
		.context = &m, .core = observe_core, .phase = observe_phase,
	};
	struct spyre_verify_error why;
	struct spyre_program program;

	if (!m.timeline)
		return NULL;
	if (spyre_program_verify_observed(bundle->image, bundle->image_bytes, cores, &program,
					  &why, &observer) || m.failed) {
		free(m.timeline->phases);
		free(m.timeline->cores);
		free(m.timeline);
		return NULL;
	}
	m.timeline->card_cores = cores;
	m.timeline->lx_bytes = program.header->lx_bytes;
	pthread_mutex_lock(&lock);
	SLIST_INSERT_HEAD(&timelines, m.timeline, link);
	pthread_mutex_unlock(&lock);
	return m.timeline;
}
