// SPDX-License-Identifier: MIT
/*
 * The modelled time of a card as rows of the trace. Operations of a card follow each other in
 * the order in which their results were read, and all iterations of a phase follow each other
 * before the next phase: the model has cycles, and no order of loops or streams.
 */
#include <stdio.h>

#include "libspyre/runtime/trace_event.h"
#include "libspyre/runtime/visible.h"
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

/* Modelled cycles of each card up to here, and the time of their zero. */
static uint64_t card_cycles[SPYRE_MAX_CARDS];
static uint64_t zero_ns;

void trace_model_start(uint64_t now_ns)
{
	zero_ns = now_ns;
}

static uint64_t time_of(uint64_t cycles)
{
	return zero_ns + cycles / SPYRE_CLOCK_HZ * 1000000000 +
	       cycles % SPYRE_CLOCK_HZ * 1000000000 / SPYRE_CLOCK_HZ;
}

static void name_row(uint64_t pid, uint64_t row, const char *name)
{
	struct trace_text event = { 0 };

	trace_put(&event, "{\"ph\":\"M\",\"name\":\"thread_name\"");
	trace_put_place(&event, pid, row);
	trace_put(&event, ",\"args\":{\"name\":");
	trace_put_string(&event, name);
	trace_put(&event, "}}");
	trace_add(&event);
}

void trace_name_cores(const struct spyre_context *context)
{
	const spyre_device_properties *p = &context->card->properties;
	const uint64_t pid = TRACE_MODEL_PID + (uint64_t)context->index;
	struct trace_text event = { 0 };
	char name[160];

	snprintf(name, sizeof(name), "card %d (%s), modelled time", context->index, p->bus_id);
	trace_put_process(&event, pid, name);
	trace_add(&event);
	name_row(pid, ROW_LAUNCHES, "launches");
	name_row(pid, ROW_PHASES, "phases");
	name_row(pid, ROW_LPDDR, "LPDDR5");
	name_row(pid, ROW_COPIES, "DMA, fills and copies");
	for (uint32_t core = 0; core < p->num_cores; core++) {
		const uint64_t row = ROW_CORES + (uint64_t)core * ROWS_OF_CORE;

		snprintf(name, sizeof(name), "core %02u", core);
		name_row(pid, row, name);
		for (int i = 0; i < SPYRE_ENGINES; i++) {
			snprintf(name, sizeof(name), "core %02u %s", core, engine_names[i]);
			name_row(pid, row + 1 + (uint64_t)i, name);
		}
	}
}

/* Begins the event of @cycles from @start on, which the caller completes. */
static void begin(struct trace_text *to, const char *category, const char *name, uint64_t pid,
		  uint64_t row, uint64_t start, uint64_t cycles, uint64_t call)
{
	to->used = 0;
	trace_put(to, "{\"ph\":\"X\",\"cat\":\"");
	trace_put(to, category);
	trace_put(to, "\",\"name\":");
	trace_put_string(to, name);
	trace_put_place(to, pid, row);
	trace_put_span(to, time_of(start), time_of(start + cycles));
	trace_put(to, ",\"args\":{\"call\":");
	trace_put_u64(to, call);
	trace_put_field(to, "start_cycle", start);
	trace_put_field(to, "cycles", cycles);
}

static void end(struct trace_text *event)
{
	trace_put(event, "}}");
	trace_add(event);
}

static void put_engine(struct trace_text *to, int engine, const struct spyre_cost_core *core,
		       uint64_t trips)
{
	switch (engine) {
	case SPYRE_ENGINE_PT:
		trace_put_field(to, "macs", core->macs * trips);
		break;
	case SPYRE_ENGINE_LX:
		trace_put_field(to, "lx_bytes_read", core->lx_bytes_read * trips);
		trace_put_field(to, "lx_bytes_written", core->lx_bytes_written * trips);
		break;
	case SPYRE_ENGINE_RING:
		trace_put_field(to, "bytes_read", core->bytes_read * trips);
		trace_put_field(to, "bytes_written", core->bytes_written * trips);
		break;
	default:
		break;
	}
}

/* A core's part of a phase: its instructions, each of which is a tile, and its engines. */
static void add_core(const struct spyre_cost_core *core, const struct spyre_cost_phase *phase,
		     const char *label, uint64_t pid, uint64_t start, uint64_t call)
{
	const uint64_t row = ROW_CORES + (uint64_t)core->core * ROWS_OF_CORE;
	const uint64_t trips = phase->trips;
	struct trace_text event;

	begin(&event, "core", label, pid, row, start, core->cycles * trips, call);
	trace_put_field(&event, "step", phase->step);
	trace_put_field(&event, "core", core->core);
	trace_put_field(&event, "tiles", core->num_instrs * trips);
	trace_put_field(&event, "bytes_read", core->bytes_read * trips);
	trace_put_field(&event, "bytes_written", core->bytes_written * trips);
	trace_put_field(&event, "lx_bytes_read", core->lx_bytes_read * trips);
	trace_put_field(&event, "lx_bytes_written", core->lx_bytes_written * trips);
	trace_put_field(&event, "macs", core->macs * trips);
	end(&event);
	for (int i = 0; i < SPYRE_ENGINES; i++) {
		if (!core->busy[i])
			continue;
		begin(&event, "engine", label, pid, row + 1 + (uint64_t)i, start,
		      core->busy[i] * trips, call);
		trace_put_field(&event, "step", phase->step);
		trace_put_field(&event, "core", core->core);
		trace_put(&event, ",\"engine\":");
		trace_put_string(&event, engine_names[i]);
		put_engine(&event, i, core, trips);
		end(&event);
	}
}

static void add_phase(const struct timeline *timeline, const struct timeline_phase *p,
		      const char *label, uint64_t pid, uint64_t start, uint64_t call)
{
	const struct spyre_cost_phase *c = &p->cost;
	struct trace_text event;

	begin(&event, "phase", label, pid, ROW_PHASES, start, timeline_phase_cycles(c), call);
	trace_put_field(&event, "step", c->step);
	trace_put_field(&event, "trips", c->trips);
	trace_put_field(&event, "cores", c->num_cores);
	trace_put_field(&event, "core_cycles", c->core_cycles * c->trips);
	trace_put_field(&event, "lpddr_cycles", c->lpddr_cycles * c->trips);
	trace_put_field(&event, "barrier_cycles", c->barrier_cycles * c->trips);
	trace_put_field(&event, "bytes_read", c->bytes_read * c->trips);
	trace_put_field(&event, "bytes_written", c->bytes_written * c->trips);
	trace_put_field(&event, "macs", c->macs * c->trips);
	end(&event);
	if (c->lpddr_cycles) {
		begin(&event, "lpddr", label, pid, ROW_LPDDR, start, c->lpddr_cycles * c->trips,
		      call);
		trace_put_field(&event, "step", c->step);
		trace_put_field(&event, "bytes_read", c->bytes_read * c->trips);
		trace_put_field(&event, "bytes_written", c->bytes_written * c->trips);
		end(&event);
	}
	for (uint32_t i = 0; i < c->num_cores; i++)
		add_core(&timeline->cores[p->first_core + i], c, label, pid, start, call);
}

/* Adds a value of a curve that holds from @cycle on. */
static void add_counter(const char *name, uint64_t pid, uint64_t cycle, uint64_t hundredths)
{
	trace_add_counter(name, pid, time_of(cycle), hundredths);
}

/* The modelled power of a card that does this in @cycles; 0: of an idle one. */
static void add_power(uint64_t pid, uint64_t start, uint64_t cycles, uint64_t macs,
		      uint64_t bytes)
{
	const uint64_t ns = cycles / SPYRE_CLOCK_HZ * 1000000000 +
			    cycles % SPYRE_CLOCK_HZ * 1000000000 / SPYRE_CLOCK_HZ;
	uint32_t milliwatts, millicelsius;

	spyre_power_model(ns, ns, macs, bytes, &milliwatts, &millicelsius);
	add_counter("power W", pid, start, milliwatts / 10);
}

/* Hundredths of GB/s: the average of @bytes in @cycles. */
static uint64_t bandwidth(uint64_t bytes, uint64_t cycles)
{
	return cycles ? (uint64_t)((unsigned __int128)bytes * SPYRE_CLOCK_HZ / cycles / 10000000) :
			0;
}

/* The curves of a phase: its averages over all iterations and all cores of the card. */
static void add_phase_counters(const struct timeline *timeline, const struct timeline_phase *p,
			       uint64_t pid, uint64_t start)
{
	const struct spyre_cost_phase *c = &p->cost;
	const uint64_t cycles = timeline_phase_cycles(c);
	uint64_t busy = 0;

	for (uint32_t i = 0; i < c->num_cores; i++)
		busy += timeline->cores[p->first_core + i].busy[SPYRE_ENGINE_PT] * c->trips;
	add_counter("PT %", pid, start,
		    cycles ? busy * 10000 / timeline->card_cores / cycles : 0);
	add_counter("LPDDR5 GB/s", pid, start,
		    bandwidth((c->bytes_read + c->bytes_written) * c->trips, cycles));
	add_power(pid, start, cycles, c->macs * c->trips,
		  (c->bytes_read + c->bytes_written) * c->trips);
}

static void add_transfer_counters(const spyre_activity *activity, uint64_t pid, uint64_t start)
{
	const uint64_t bytes = activity->bytes_read + activity->bytes_written;

	add_counter("LPDDR5 GB/s", pid, start, bandwidth(bytes, activity->cycles));
	add_power(pid, start, activity->cycles, 0, bytes);
}

/* The curves end with the operation; the next one begins in the same cycle. */
static void end_counters(uint64_t pid, uint64_t cycle)
{
	add_counter("PT %", pid, cycle, 0);
	add_counter("LPDDR5 GB/s", pid, cycle, 0);
	add_counter("LX bytes", pid, cycle, 0);
	add_power(pid, cycle, 0, 0, 0);
}

void trace_add_model(const spyre_activity *activity, const struct timeline *timeline,
		     uint64_t call)
{
	const bool launch = activity->kind == SPYRE_ACTIVITY_LAUNCH;
	const uint64_t pid = TRACE_MODEL_PID + (uint64_t)activity->device;
	uint64_t *now = &card_cycles[activity->device], start = *now;
	struct trace_text event;
	char step[32];

	begin(&event, launch ? "launch" : "dma", activity->name, pid,
	      launch ? ROW_LAUNCHES : ROW_COPIES, start, activity->cycles, call);
	trace_put_field(&event, "bytes_read", activity->bytes_read);
	trace_put_field(&event, "bytes_written", activity->bytes_written);
	if (timeline) {
		trace_put_field(&event, "macs", activity->macs);
		trace_put_field(&event, "lx_bytes", timeline->lx_bytes);
		trace_put_field(&event, "card_cores", timeline->card_cores);
	}
	end(&event);
	*now += activity->cycles;
	if (timeline)
		add_counter("LX bytes", pid, start, timeline->lx_bytes * 100ull);
	else
		add_transfer_counters(activity, pid, start);
	for (uint32_t i = 0; timeline && i < timeline->num_phases; i++) {
		const struct timeline_phase *phase = &timeline->phases[i];

		/* Images without their sources have no names. */
		snprintf(step, sizeof(step), "step %u", phase->cost.step);
		add_phase(timeline, phase, phase->label[0] ? phase->label : step, pid, start,
			  call);
		add_phase_counters(timeline, phase, pid, start);
		start += timeline_phase_cycles(&phase->cost);
	}
	end_counters(pid, *now);
}
