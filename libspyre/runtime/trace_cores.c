// SPDX-License-Identifier: MIT
/*
 * The modelled time of a card as rows of the trace. Operations of a card follow each other in
 * the order in which their results were read, and all iterations of a phase follow each other
 * before the next phase: the model has cycles, and no order of loops or streams.
 */
#include <stdio.h>

#include "libspyre/runtime/trace_event.h"
#include "model/card.h"

/* Rows of a card; a core has one for its phases and one for each engine. */
enum {
	ROW_LAUNCHES,
	ROW_PHASES,
	ROW_LPDDR,
	ROW_COPIES,
	ROW_CORES = 100,
	ROWS_OF_CORE = 10,
};

static const char *const engine_names[SPYRE_ENGINES] = {
	[SPYRE_ENGINE_PT] = "PT",
	[SPYRE_ENGINE_SFU] = "SFU",
	[SPYRE_ENGINE_DMA] = "DMA",
	[SPYRE_ENGINE_LX] = "LX",
	[SPYRE_ENGINE_RING] = "ring",
};

#define MAX_ARGUMENTS 12

/* An event that the caller completes. */
struct span {
	spyre_trace_event event;
	spyre_trace_argument arguments[MAX_ARGUMENTS];
};

static uint64_t time_of(const struct trace_out *out, uint64_t cycles)
{
	return out->zero_ns + cycles / SPYRE_CLOCK_HZ * 1000000000 +
	       cycles % SPYRE_CLOCK_HZ * 1000000000 / SPYRE_CLOCK_HZ;
}

static void name(struct trace_out *out, spyre_trace_kind kind, int device, uint32_t row,
		 const char *text)
{
	const spyre_trace_event event = {
		.struct_size = sizeof(event), .kind = kind, .device = device, .modelled = 1,
		.row = row, .name = text,
	};

	out->add(out, &event);
}

void trace_name_cores(struct trace_out *out, int device, const char *bus_id, uint32_t cores)
{
	char text[160];

	snprintf(text, sizeof(text), "card %d (%s), modelled time", device, bus_id);
	name(out, SPYRE_TRACE_PROCESS, device, 0, text);
	name(out, SPYRE_TRACE_ROW, device, ROW_LAUNCHES, "launches");
	name(out, SPYRE_TRACE_ROW, device, ROW_PHASES, "phases");
	name(out, SPYRE_TRACE_ROW, device, ROW_LPDDR, "LPDDR5");
	name(out, SPYRE_TRACE_ROW, device, ROW_COPIES, "DMA, fills and copies");
	for (uint32_t core = 0; core < cores; core++) {
		const uint32_t row = ROW_CORES + core * ROWS_OF_CORE;

		snprintf(text, sizeof(text), "core %02u", core);
		name(out, SPYRE_TRACE_ROW, device, row, text);
		for (uint32_t i = 0; i < SPYRE_ENGINES; i++) {
			snprintf(text, sizeof(text), "core %02u %s", core, engine_names[i]);
			name(out, SPYRE_TRACE_ROW, device, row + 1 + i, text);
		}
	}
}

static void put(struct span *span, const char *argument, uint64_t value)
{
	span->arguments[span->event.num_arguments++] = (spyre_trace_argument){ argument, value };
}

/* Begins the event of @cycles from @start on, a part of @activity. */
static void begin(const struct trace_out *out, struct span *span, const char *category,
		  const char *label, const spyre_activity *activity, uint32_t row, uint64_t start,
		  uint64_t cycles)
{
	span->event = (spyre_trace_event){
		.struct_size = sizeof(span->event), .kind = SPYRE_TRACE_SPAN,
		.device = activity->device, .modelled = 1, .row = row, .name = label,
		.category = category, .start_ns = time_of(out, start),
		.end_ns = time_of(out, start + cycles), .activity = activity,
		.arguments = span->arguments,
	};
	put(span, "start_cycle", start);
	put(span, "cycles", cycles);
}

static void put_engine(struct span *span, int engine, const struct spyre_cost_core *core,
		       uint64_t trips)
{
	span->event.engine = engine_names[engine];
	switch (engine) {
	case SPYRE_ENGINE_PT:
		put(span, "macs", core->macs * trips);
		break;
	case SPYRE_ENGINE_LX:
		put(span, "lx_bytes_read", core->lx_bytes_read * trips);
		put(span, "lx_bytes_written", core->lx_bytes_written * trips);
		break;
	case SPYRE_ENGINE_RING:
		put(span, "bytes_read", core->bytes_read * trips);
		put(span, "bytes_written", core->bytes_written * trips);
		break;
	default:
		break;
	}
}

/* A core's part of a phase: its instructions, each of which is a tile, and its engines. */
static void add_core(struct trace_out *out, const struct spyre_cost_core *core,
		     const struct spyre_cost_phase *phase, const char *label,
		     const spyre_activity *activity, uint64_t start)
{
	const uint32_t row = ROW_CORES + core->core * ROWS_OF_CORE;
	const uint64_t trips = phase->trips;
	struct span span;

	begin(out, &span, "core", label, activity, row, start, core->cycles * trips);
	put(&span, "step", phase->step);
	put(&span, "core", core->core);
	put(&span, "tiles", core->num_instrs * trips);
	put(&span, "bytes_read", core->bytes_read * trips);
	put(&span, "bytes_written", core->bytes_written * trips);
	put(&span, "lx_bytes_read", core->lx_bytes_read * trips);
	put(&span, "lx_bytes_written", core->lx_bytes_written * trips);
	put(&span, "macs", core->macs * trips);
	out->add(out, &span.event);
	for (int i = 0; i < SPYRE_ENGINES; i++) {
		if (!core->busy[i])
			continue;
		begin(out, &span, "engine", label, activity, row + 1 + (uint32_t)i, start,
		      core->busy[i] * trips);
		put(&span, "step", phase->step);
		put(&span, "core", core->core);
		put_engine(&span, i, core, trips);
		out->add(out, &span.event);
	}
}

static void add_phase(struct trace_out *out, const struct timeline *timeline,
		      const struct timeline_phase *p, const char *label,
		      const spyre_activity *activity, uint64_t start)
{
	const struct spyre_cost_phase *c = &p->cost;
	struct span span;

	begin(out, &span, "phase", label, activity, ROW_PHASES, start, timeline_phase_cycles(c));
	put(&span, "step", c->step);
	put(&span, "trips", c->trips);
	put(&span, "cores", c->num_cores);
	put(&span, "core_cycles", c->core_cycles * c->trips);
	put(&span, "lpddr_cycles", c->lpddr_cycles * c->trips);
	put(&span, "barrier_cycles", c->barrier_cycles * c->trips);
	put(&span, "bytes_read", c->bytes_read * c->trips);
	put(&span, "bytes_written", c->bytes_written * c->trips);
	put(&span, "macs", c->macs * c->trips);
	out->add(out, &span.event);
	if (c->lpddr_cycles) {
		begin(out, &span, "lpddr", label, activity, ROW_LPDDR, start,
		      c->lpddr_cycles * c->trips);
		put(&span, "step", c->step);
		put(&span, "bytes_read", c->bytes_read * c->trips);
		put(&span, "bytes_written", c->bytes_written * c->trips);
		out->add(out, &span.event);
	}
	for (uint32_t i = 0; i < c->num_cores; i++)
		add_core(out, &timeline->cores[p->first_core + i], c, label, activity, start);
}

/* Adds a value of a curve that holds from @cycle on. */
static void add_counter(struct trace_out *out, const char *curve, int device, uint64_t cycle,
			uint64_t hundredths)
{
	trace_add_counter(out, curve, device, true, time_of(out, cycle), hundredths);
}

/* The modelled power of a card that does this in @cycles; 0: of an idle one. */
static void add_power(struct trace_out *out, int device, uint64_t start, uint64_t cycles,
		      uint64_t macs, uint64_t bytes)
{
	const uint64_t ns = cycles / SPYRE_CLOCK_HZ * 1000000000 +
			    cycles % SPYRE_CLOCK_HZ * 1000000000 / SPYRE_CLOCK_HZ;
	uint32_t milliwatts, millicelsius;

	spyre_power_model(ns, ns, macs, bytes, &milliwatts, &millicelsius);
	add_counter(out, "power W", device, start, milliwatts / 10);
}

/* Hundredths of GB/s: the average of @bytes in @cycles. */
static uint64_t bandwidth(uint64_t bytes, uint64_t cycles)
{
	return cycles ? (uint64_t)((unsigned __int128)bytes * SPYRE_CLOCK_HZ / cycles / 10000000) :
			0;
}

/* The curves of a phase: its averages over all iterations and all cores of the card. */
static void add_phase_counters(struct trace_out *out, const struct timeline *timeline,
			       const struct timeline_phase *p, int device, uint64_t start)
{
	const struct spyre_cost_phase *c = &p->cost;
	const uint64_t cycles = timeline_phase_cycles(c);
	const uint64_t bytes = (c->bytes_read + c->bytes_written) * c->trips;
	uint64_t busy = 0;

	for (uint32_t i = 0; i < c->num_cores; i++)
		busy += timeline->cores[p->first_core + i].busy[SPYRE_ENGINE_PT] * c->trips;
	add_counter(out, "PT %", device, start,
		    cycles ? busy * 10000 / timeline->card_cores / cycles : 0);
	add_counter(out, "LPDDR5 GB/s", device, start, bandwidth(bytes, cycles));
	add_power(out, device, start, cycles, c->macs * c->trips, bytes);
}

/* The curves of an operation without phases: its averages. */
static void add_operation_counters(struct trace_out *out, const spyre_activity *activity,
				   uint64_t start)
{
	const uint64_t bytes = activity->bytes_read + activity->bytes_written;

	add_counter(out, "LPDDR5 GB/s", activity->device, start,
		    bandwidth(bytes, activity->cycles));
	add_power(out, activity->device, start, activity->cycles, activity->macs, bytes);
}

/* The curves end with the operation; the next one begins in the same cycle. */
static void end_counters(struct trace_out *out, int device, uint64_t cycle)
{
	if (out->cores) {
		add_counter(out, "PT %", device, cycle, 0);
		add_counter(out, "LX bytes", device, cycle, 0);
	}
	add_counter(out, "LPDDR5 GB/s", device, cycle, 0);
	add_power(out, device, cycle, 0, 0, 0);
}

static void add_operation(struct trace_out *out, const spyre_activity *activity,
			  const struct timeline *timeline, uint64_t start)
{
	const bool launch = activity->kind == SPYRE_ACTIVITY_LAUNCH;
	struct span span;

	begin(out, &span, launch ? "launch" : "dma", activity->name, activity,
	      launch ? ROW_LAUNCHES : ROW_COPIES, start, activity->cycles);
	put(&span, "bytes_read", activity->bytes_read);
	put(&span, "bytes_written", activity->bytes_written);
	if (timeline) {
		put(&span, "macs", activity->macs);
		put(&span, "lx_bytes", timeline->lx_bytes);
		put(&span, "card_cores", timeline->card_cores);
	}
	out->add(out, &span.event);
}

void trace_add_model(struct trace_out *out, const spyre_activity *activity,
		     const struct timeline *timeline)
{
	const int device = activity->device;
	uint64_t *now = &out->card_cycles[device], start = *now;
	char step[32];

	*now += activity->cycles;
	if (!out->cores)
		timeline = NULL;
	else
		add_operation(out, activity, timeline, start);
	if (timeline)
		add_counter(out, "LX bytes", device, start, timeline->lx_bytes * 100ull);
	else
		add_operation_counters(out, activity, start);
	for (uint32_t i = 0; timeline && i < timeline->num_phases; i++) {
		const struct timeline_phase *phase = &timeline->phases[i];

		/* Images without their sources have no names. */
		snprintf(step, sizeof(step), "step %u", phase->cost.step);
		add_phase(out, timeline, phase, phase->label[0] ? phase->label : step, activity,
			  start);
		add_phase_counters(out, timeline, phase, device, start);
		start += timeline_phase_cycles(&phase->cost);
	}
	end_counters(out, device, *now);
}
