// SPDX-License-Identifier: MIT
/* The trace of this process: its start and end, and the events. */
#define _GNU_SOURCE
#include "config.h"

#include "libspyre/runtime/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/runtime/activity.h"
#include "libspyre/runtime/trace_event.h"
#include "libspyre/runtime/trace_file.h"

#define FLUSH_NS 500000000u	/* events reach the file at least this often, if there are any */

struct traced_context {
	TAILQ_ENTRY(traced_context) link;
	struct spyre_context *context;
};

_Atomic bool spyre_trace_active;
bool spyre_trace_cores;

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Protects the list; taken before the locks of streams. */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, traced_context) contexts = TAILQ_HEAD_INITIALIZER(contexts);
/* Protects all below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_file *file;
static char path[4096];
static uint64_t flushed_ns;
static void add_to_file(struct trace_out *to, const spyre_trace_event *event);
struct trace_out trace_file_out = { .add = add_to_file };
/* Number of the last call that queued work: it connects the call with the work. */
static uint64_t calls;
static struct {
	int device, stream;
	uint64_t operation;
} last;

/* Reports the end of the trace, once. The caller holds the lock, or is alone. */
static void give_up(const char *why)
{
	spyre_log_notice("cannot write the trace SPYRE_TRACE=\"%s\": %s", path, why);
	if (atomic_exchange(&spyre_trace_active, false))
		atomic_fetch_sub(&spyre_activity_logs, 1);
}

/* Adds an event. The caller holds the lock. */
static void add(const struct trace_text *event)
{
	char why[192];

	if (spyre_trace_on() && trace_file_add(file, event, why, sizeof(why)))
		give_up(why);
}

/* Writes what is buffered if the last time was long ago. The caller holds the lock. */
static void flush_sometimes(uint64_t now_ns)
{
	char why[192];

	if (!spyre_trace_on() || now_ns < flushed_ns + FLUSH_NS)
		return;
	flushed_ns = now_ns;
	if (trace_file_flush(file, why, sizeof(why)))
		give_up(why);
}

/* The rank that a launcher such as torchrun has given to the process. */
static unsigned int rank_of_process(void)
{
	struct spyre_error_state state;
	uint64_t rank;

	/* The variable belongs to the launcher, so a value that is no number fails no call. */
	spyre_error_save(&state);
	if (spyre_env_u64("RANK", 0, 0, UINT32_MAX, &rank))
		rank = 0;
	spyre_error_restore(&state);
	return (unsigned int)rank;
}

/* Replaces %p by the process and %r by RANK; false if the result is too long. */
static bool expand(const char *pattern)
{
	size_t used = 0;

	for (const char *p = pattern; *p; p++) {
		char one[32] = { *p, '\0' };

		if (*p == '%' && p[1] == 'p')
			snprintf(one, sizeof(one), "%d", getpid());
		else if (*p == '%' && p[1] == 'r')
			snprintf(one, sizeof(one), "%u", rank_of_process());
		if (*p == '%' && (p[1] == 'p' || p[1] == 'r'))
			p++;
		if (used + strlen(one) >= sizeof(path))
			return false;
		memcpy(path + used, one, strlen(one) + 1);
		used += strlen(one);
	}
	return true;
}

static void put_file(struct trace_text *to, const char *name)
{
	char text[80] = "";
	FILE *from = fopen(name, "re");

	if (from) {
		if (!fgets(text, sizeof(text), from))
			text[0] = '\0';
		fclose(from);
	}
	text[strcspn(text, "\n")] = '\0';
	trace_put_string(to, text);
}

static void put_process(struct trace_text *to, uint64_t pid, const char *name)
{
	trace_put(to, "{\"ph\":\"M\",\"name\":\"process_name\",\"tid\":0,\"pid\":");
	trace_put_u64(to, pid);
	trace_put(to, ",\"args\":{\"name\":");
	trace_put_string(to, name);
	trace_put(to, "}}");
}

/* Identifies the machine and the zero of its clock, so that readers can align clocks. */
static void put_head(struct trace_text *to)
{
	struct timespec real;
	char name[64];

	clock_gettime(CLOCK_REALTIME, &real);
	trace_put(to, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"libspyre "
		      PACKAGE_VERSION "\",\"clock\":\"CLOCK_MONOTONIC\",\"host\":");
	put_file(to, "/proc/sys/kernel/hostname");
	trace_put(to, ",\"boot_id\":");
	put_file(to, "/proc/sys/kernel/random/boot_id");
	trace_put_field(to, "realtime_minus_clock_ns",
			(uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec -
			spyre_now_ns());
	trace_put_field(to, "pid", (uint64_t)getpid());
	trace_put_field(to, "rank", rank_of_process());
	trace_put_field(to, "clock_hz", SPYRE_CLOCK_HZ);
	trace_put(to, "},\"traceEvents\":[\n");
	snprintf(name, sizeof(name), "%.48s, rank %u", program_invocation_short_name,
		 rank_of_process());
	put_process(to, (uint64_t)getpid(), name);
}

/* fork() waits until no thread changes the file, so that the child can let go of it. */
static void before_fork(void)
{
	pthread_mutex_lock(&contexts_lock);
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&contexts_lock);
}

/* The parent goes on writing; a child must not, since both would write to the same place. */
static void in_child(void)
{
	if (atomic_exchange(&spyre_trace_active, false)) {
		atomic_fetch_sub(&spyre_activity_logs, 1);
		close(file->fd);
	}
	TAILQ_INIT(&contexts);
	in_parent();
}

/* False if the level is unknown. */
static bool read_level(void)
{
	const char *level = secure_getenv("SPYRE_TRACE_LEVEL");

	spyre_trace_cores = level && !strcmp(level, "cores");
	return spyre_trace_cores || !level || !*level || !strcmp(level, "operations");
}

static void start(void)
{
	const char *pattern = secure_getenv("SPYRE_TRACE");
	struct trace_text head = { 0 };
	char why[192];

	if (!pattern || !*pattern)
		return;
	if (!expand(pattern)) {
		snprintf(path, sizeof(path), "%.64s...", pattern);
		give_up("its name is too long");
		return;
	}
	if (!read_level()) {
		give_up("unknown SPYRE_TRACE_LEVEL; valid: operations, cores");
		return;
	}
	file = malloc(sizeof(*file));
	if (!file) {
		give_up("no memory");
		return;
	}
	put_head(&head);
	if (trace_file_open(file, path, &head, why, sizeof(why))) {
		free(file);
		file = NULL;
		give_up(why);
		return;
	}
	flushed_ns = spyre_now_ns();
	trace_file_out.zero_ns = flushed_ns;
	trace_file_out.cores = spyre_trace_cores;
	pthread_atfork(before_fork, in_parent, in_child);
	atomic_fetch_add(&spyre_activity_logs, 1);
	atomic_store(&spyre_trace_active, true);
}

void spyre_trace_start(void)
{
	pthread_once(&once, start);
}

void spyre_trace_context(struct spyre_context *context)
{
	const spyre_device_properties *p = &context->card->properties;
	struct traced_context *traced;
	struct trace_text event = { 0 };
	char name[160];

	if (!spyre_trace_on())
		return;
	snprintf(name, sizeof(name), "card %d (%s)", context->index, p->bus_id);
	put_process(&event, TRACE_CARD_PID + (uint64_t)context->index, name);
	pthread_mutex_lock(&lock);
	add(&event);
	if (spyre_trace_cores)
		trace_name_cores(&trace_file_out, context->index, p->bus_id, p->num_cores);
	pthread_mutex_unlock(&lock);
	/* Without memory for it, its last operations may be missing at the end. */
	traced = malloc(sizeof(*traced));
	if (!traced)
		return;
	traced->context = context;
	pthread_mutex_lock(&contexts_lock);
	TAILQ_INSERT_TAIL(&contexts, traced, link);
	pthread_mutex_unlock(&contexts_lock);
}

void spyre_trace_context_gone(struct spyre_context *context)
{
	struct traced_context *traced;

	pthread_mutex_lock(&contexts_lock);
	TAILQ_FOREACH(traced, &contexts, link)
		if (traced->context == context)
			break;
	if (traced)
		TAILQ_REMOVE(&contexts, traced, link);
	pthread_mutex_unlock(&contexts_lock);
	free(traced);
}

static void put_place(struct trace_text *to, uint64_t pid, uint64_t tid)
{
	trace_put(to, ",\"pid\":");
	trace_put_u64(to, pid);
	trace_put(to, ",\"tid\":");
	trace_put_u64(to, tid);
}

static void put_span(struct trace_text *to, uint64_t start_ns, uint64_t end_ns)
{
	trace_put(to, ",\"ts\":");
	trace_put_us(to, start_ns);
	trace_put(to, ",\"dur\":");
	trace_put_us(to, end_ns > start_ns ? end_ns - start_ns : 0);
}

static void put_row(struct trace_text *to, uint64_t pid, uint64_t row, const char *name)
{
	trace_put(to, "{\"ph\":\"M\",\"name\":\"thread_name\"");
	put_place(to, pid, row);
	trace_put(to, ",\"args\":{\"name\":");
	trace_put_string(to, name);
	trace_put(to, "}}");
}

void spyre_trace_stream(const struct spyre_stream *stream)
{
	struct trace_text event = { 0 };
	char name[64];

	if (!spyre_trace_on())
		return;
	snprintf(name, sizeof(name), "stream %d%s", stream->id,
		 stream->priority ? ", high priority" : "");
	put_row(&event, TRACE_CARD_PID + (uint64_t)stream->context->index, (uint64_t)stream->id,
		name);
	pthread_mutex_lock(&lock);
	add(&event);
	pthread_mutex_unlock(&lock);
}

static void put_counter(struct trace_text *to, const spyre_trace_event *event)
{
	char value[32];

	snprintf(value, sizeof(value), "%" PRIu64 ".%02u", event->hundredths / 100,
		 (unsigned int)(event->hundredths % 100));
	trace_put(to, ",\"ts\":");
	trace_put_us(to, event->start_ns);
	trace_put(to, ",\"args\":{\"value\":");
	trace_put(to, value);
	trace_put(to, "}}");
}

static void put_arguments(struct trace_text *to, const spyre_trace_event *event)
{
	trace_put(to, ",\"args\":{\"call\":");
	trace_put_u64(to, calls);
	for (uint32_t i = 0; i < event->num_arguments; i++)
		trace_put_field(to, event->arguments[i].name, event->arguments[i].value);
	if (event->engine) {
		trace_put(to, ",\"engine\":");
		trace_put_string(to, event->engine);
	}
	trace_put(to, "}}");
}

/* Writes an event of the curves or of modelled time. The caller holds the lock. */
static void add_to_file(struct trace_out *to, const spyre_trace_event *event)
{
	const uint64_t pid = (event->modelled ? TRACE_MODEL_PID : TRACE_CARD_PID) +
			     (uint64_t)event->device;
	struct trace_text text = { 0 };

	(void)to;
	switch (event->kind) {
	case SPYRE_TRACE_PROCESS:
		put_process(&text, pid, event->name);
		break;
	case SPYRE_TRACE_ROW:
		put_row(&text, pid, event->row, event->name);
		break;
	case SPYRE_TRACE_SPAN:
		trace_put(&text, "{\"ph\":\"X\",\"cat\":\"");
		trace_put(&text, event->category);
		trace_put(&text, "\",\"name\":");
		trace_put_string(&text, event->name);
		put_place(&text, pid, event->row);
		put_span(&text, event->start_ns, event->end_ns);
		put_arguments(&text, event);
		break;
	case SPYRE_TRACE_COUNTER:
		trace_put(&text, "{\"ph\":\"C\",\"name\":");
		trace_put_string(&text, event->name);
		put_place(&text, pid, 0);
		put_counter(&text, event);
		break;
	}
	add(&text);
}

static const char *category(spyre_activity_kind kind)
{
	switch (kind) {
	case SPYRE_ACTIVITY_LAUNCH:
		return "kernel";
	case SPYRE_ACTIVITY_FILL:
		return "fill";
	case SPYRE_ACTIVITY_COPY_PEER:
		return "peer copy";
	default:
		return "copy";
	}
}

/* The call that queued the work, and the arrow that begins there. The caller holds the lock. */
static void add_queue_call(const spyre_activity *a)
{
	struct trace_text event = { 0 };
	const uint64_t pid = (uint64_t)getpid(), thread = (uint64_t)a->thread;

	trace_put(&event, "{\"ph\":\"X\",\"cat\":\"runtime\",\"name\":");
	trace_put_string(&event, a->in_graph ? "launch of a graph" :
				 a->kind == SPYRE_ACTIVITY_LAUNCH ? "launch" : a->name);
	put_place(&event, pid, thread);
	put_span(&event, a->queue_start_ns, a->queue_end_ns);
	trace_put(&event, ",\"args\":{\"call\":");
	trace_put_u64(&event, calls);
	trace_put(&event, "}}");
	add(&event);
	event.used = 0;
	trace_put(&event, "{\"ph\":\"s\",\"cat\":\"queue\",\"name\":\"queue\",\"id\":");
	trace_put_u64(&event, calls);
	put_place(&event, pid, thread);
	trace_put(&event, ",\"ts\":");
	trace_put_us(&event, a->queue_start_ns);
	trace_put(&event, "}");
	add(&event);
}

/* Completes a description of the work itself. */
static void put_work(struct trace_text *to, const spyre_activity *a)
{
	put_span(to, a->start_ns, a->end_ns);
	trace_put(to, ",\"args\":{\"call\":");
	trace_put_u64(to, calls);
	trace_put_field(to, "operation", a->operation);
	if (a->correlation)
		trace_put_field(to, "correlation", a->correlation);
	trace_put_field(to, "cycles", a->cycles);
	trace_put_field(to, "bytes_read", a->bytes_read);
	trace_put_field(to, "bytes_written", a->bytes_written);
	if (a->kind == SPYRE_ACTIVITY_LAUNCH)
		trace_put_field(to, "macs", a->macs);
	if (a->kind == SPYRE_ACTIVITY_COPY_PEER) {
		trace_put_field(to, "rdma_read", a->rdma_read);
		trace_put_field(to, "rdma_written", a->rdma_written);
	}
	trace_put(to, "}}");
}

void spyre_trace_activity(const spyre_activity *a, const struct timeline *timeline)
{
	const uint64_t card = TRACE_CARD_PID + (uint64_t)a->device;
	struct trace_text event = { 0 };

	pthread_mutex_lock(&lock);
	if (!spyre_trace_on())
		goto out;
	/* Operations of one launch of a graph have one call. */
	if (!a->in_graph || last.device != a->device || last.stream != a->stream ||
	    last.operation != a->operation) {
		calls++;
		add_queue_call(a);
	}
	last.device = a->device;
	last.stream = a->stream;
	last.operation = a->operation;
	trace_put(&event, "{\"ph\":\"X\",\"cat\":\"");
	trace_put(&event, category(a->kind));
	trace_put(&event, "\",\"name\":");
	trace_put_string(&event, a->name);
	put_place(&event, card, (uint64_t)a->stream);
	put_work(&event, a);
	add(&event);
	event.used = 0;
	trace_put(&event, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"queue\",\"name\":\"queue\",\"id\":");
	trace_put_u64(&event, calls);
	put_place(&event, card, (uint64_t)a->stream);
	trace_put(&event, ",\"ts\":");
	trace_put_us(&event, a->start_ns);
	trace_put(&event, "}");
	add(&event);
	trace_add_queued(&trace_file_out, a);
	if (spyre_trace_cores)
		trace_add_model(&trace_file_out, a, timeline);
	flush_sometimes(a->end_ns);
out:
	pthread_mutex_unlock(&lock);
}

void spyre_trace_collective(const struct spyre_stream *stream, const struct trace_collective *c)
{
	const uint64_t end_ns = spyre_now_ns();
	struct trace_text event = { 0 };

	trace_put(&event, "{\"ph\":\"X\",\"cat\":\"collective\",\"name\":");
	trace_put_string(&event, c->name);
	put_place(&event, TRACE_CARD_PID + (uint64_t)stream->context->index,
			(uint64_t)stream->id);
	put_span(&event, c->start_ns, end_ns);
	trace_put(&event, ",\"args\":{\"group\":");
	trace_put_string(&event, c->group);
	trace_put_field(&event, "group_id", c->group_id);
	if (c->sequence != UINT64_MAX)
		trace_put_field(&event, "sequence", c->sequence);
	trace_put_field(&event, "rank", c->rank);
	trace_put_field(&event, "ranks", c->ranks);
	trace_put_field(&event, "bytes_sent", c->bytes_sent);
	trace_put_field(&event, "bytes_received", c->bytes_received);
	trace_put(&event, c->failed ? ",\"failed\":true}}" : "}}");
	pthread_mutex_lock(&lock);
	add(&event);
	flush_sometimes(end_ns);
	pthread_mutex_unlock(&lock);
}

void spyre_trace_memory_add(const struct spyre_context *context, uint64_t bytes)
{
	const uint64_t now_ns = spyre_now_ns();

	if (spyre_traces_on())
		spyre_traces_memory(context, bytes, now_ns);
	pthread_mutex_lock(&lock);
	if (spyre_trace_on())
		trace_add_memory(&trace_file_out, context->index, now_ns, bytes);
	pthread_mutex_unlock(&lock);
}

void spyre_trace_call_add(const struct trace_call *call)
{
	const uint64_t end_ns = spyre_now_ns();
	struct trace_text event = { 0 };

	trace_put(&event, "{\"ph\":\"X\",\"cat\":\"runtime\",\"name\":");
	trace_put_string(&event, call->name);
	put_place(&event, (uint64_t)getpid(), (uint64_t)gettid());
	put_span(&event, call->start_ns, end_ns);
	trace_put(&event, "}");
	pthread_mutex_lock(&lock);
	add(&event);
	pthread_mutex_unlock(&lock);
}

/* Reads the results that streams have not read yet; returns the operations without a result. */
static uint64_t settle(struct spyre_context *context)
{
	struct spyre_stream *stream;
	uint64_t left = 0;

	/* Other threads may hold these locks until the process is gone. */
	if (pthread_mutex_trylock(&context->streams_lock))
		return 0;
	TAILQ_FOREACH(stream, &context->streams, link) {
		if (pthread_mutex_trylock(&stream->lock))
			continue;
		spyre_stream_retire(stream, context->ops->completed(stream->queue));
		left += stream->num_records;
		pthread_mutex_unlock(&stream->lock);
	}
	pthread_mutex_unlock(&context->streams_lock);
	return left;
}

static void add_unfinished(uint64_t left)
{
	struct trace_text event = { 0 };

	trace_put(&event, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"the process ended with unfinished "
			  "operations\"");
	put_place(&event, (uint64_t)getpid(), (uint64_t)getpid());
	trace_put(&event, ",\"ts\":");
	trace_put_us(&event, spyre_now_ns());
	trace_put(&event, ",\"args\":{\"operations\":");
	trace_put_u64(&event, left);
	trace_put(&event, "}}");
	add(&event);
}

/*
 * The end of the process, after its own exit functions. Threads that go on while it ends may
 * hold any lock, so none is waited for.
 */
__attribute__((destructor)) static void finish(void)
{
	struct traced_context *traced;
	uint64_t left = 0;
	char why[192];

	if (!spyre_trace_on())
		return;
	if (!pthread_mutex_trylock(&contexts_lock)) {
		TAILQ_FOREACH(traced, &contexts, link)
			left += settle(traced->context);
		pthread_mutex_unlock(&contexts_lock);
	}
	if (pthread_mutex_trylock(&lock))
		return;
	trace_end_queues(&trace_file_out);
	if (left)
		add_unfinished(left);
	if (spyre_trace_on() && trace_file_flush(file, why, sizeof(why)))
		give_up(why);
	if (atomic_exchange(&spyre_trace_active, false))
		atomic_fetch_sub(&spyre_activity_logs, 1);
	pthread_mutex_unlock(&lock);
}
