// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The verifier: one pass over an untrusted image without recursion or allocation,
 * in time linear in the image. This file walks header, steps and streams;
 * verify_instr.c proves single instructions.
 */
#include "verify.h"

int spyre_verify_fail(struct spyre_verify *v, enum spyre_stop stop, u64 value, u64 limit)
{
	v->err->stop = stop;
	v->err->value = value;
	v->err->limit = limit;
	return -EINVAL;
}

int spyre_verify_work(struct spyre_verify *v, u64 steps)
{
	/* trips never exceeds the bound, so the division is the overflow check. */
	if (steps > (SPYRE_MAX_WORK - v->work) / v->trips)
		return spyre_verify_fail(v, SPYRE_STOP_TOO_LONG, steps, SPYRE_MAX_WORK);
	v->work += steps * v->trips;
	return 0;
}

static int verify_header(struct spyre_verify *v, const void *image, u64 size, u32 cores)
{
	const struct spyre_prog_header *h = image;
	u64 need = sizeof(*h);
	u32 i;

	if (size < sizeof(*h))
		return spyre_verify_fail(v, SPYRE_STOP_TRUNCATED, size, sizeof(*h));
	if ((unsigned long)image % 8)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, (unsigned long)image, 8);
	if (h->magic != SPYRE_PROG_MAGIC)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_MAGIC, h->magic, SPYRE_PROG_MAGIC);
	if (h->version != SPYRE_PROG_VERSION)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_VERSION, h->version, SPYRE_PROG_VERSION);
	if (h->size > size)
		return spyre_verify_fail(v, SPYRE_STOP_TRUNCATED, size, h->size);
	if (h->size != size)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, size, h->size);
	for (i = 0; i < 6; i++)
		if (h->reserved[i])
			return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, h->reserved[i], 0);
	if (!h->num_cores || h->num_cores > SPYRE_MAX_CORES)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, h->num_cores, SPYRE_MAX_CORES);
	if (h->num_operands > SPYRE_MAX_OPERANDS)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, h->num_operands,
					 SPYRE_MAX_OPERANDS);
	if (h->num_steps > SPYRE_MAX_STEPS)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, h->num_steps, SPYRE_MAX_STEPS);
	if (h->lx_bytes > SPYRE_LX_BYTES || h->lx_bytes % SPYRE_STICK_BYTES)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, h->lx_bytes, SPYRE_LX_BYTES);
	if (h->lx_kept > h->lx_bytes || h->lx_kept % SPYRE_STICK_BYTES)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, h->lx_kept, h->lx_bytes);
	need += (u64)h->num_operands * sizeof(struct spyre_prog_operand);
	need += (u64)h->num_steps * sizeof(struct spyre_prog_step);
	need += (u64)h->num_streams * sizeof(struct spyre_prog_stream);
	need += h->instr_bytes;
	if (need != size || h->instr_bytes % 8)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, need, size);
	if (h->num_cores > cores)
		return spyre_verify_fail(v, SPYRE_STOP_TOO_MANY_CORES, h->num_cores, cores);
	return 0;
}

static void lay_out(struct spyre_program *prog, const void *image)
{
	prog->header = image;
	prog->operands = (const void *)(prog->header + 1);
	prog->steps = (const void *)(prog->operands + prog->header->num_operands);
	prog->streams = (const void *)(prog->steps + prog->header->num_steps);
	prog->instrs = (const void *)(prog->streams + prog->header->num_streams);
}

static void cost_add(struct spyre_instr_cost *sum, const struct spyre_instr_cost *more)
{
	u32 i;

	sum->cycles += more->cycles;
	sum->bytes_read += more->bytes_read;
	sum->bytes_written += more->bytes_written;
	sum->lpddr_read += more->lpddr_read;
	sum->lpddr_written += more->lpddr_written;
	sum->macs += more->macs;
	sum->elements += more->elements;
	sum->lx_bytes_read += more->lx_bytes_read;
	sum->lx_bytes_written += more->lx_bytes_written;
	for (i = 0; i < SPYRE_ENGINES; i++)
		sum->busy[i] += more->busy[i];
}

/* Walks one stream; *pos is the required start, and the end on return. */
static int verify_stream(struct spyre_verify *v, const struct spyre_prog_stream *stream,
			 u32 *pos, struct spyre_instr_cost *sum)
{
	u32 end = v->prog->header->instr_bytes;
	struct spyre_instr_cost cost;
	u32 i;

	/* Streams are contiguous, so that none overlaps another and none is walked twice. */
	if (stream->offset != *pos)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, stream->offset, *pos);
	for (i = 0; i < stream->num_instrs; i++) {
		const struct spyre_instr *in = (const void *)(v->prog->instrs + *pos);
		u64 bytes = sizeof(*in);

		v->err->instr = i;
		v->err->view = 0;
		if (end - *pos < bytes)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, *pos + bytes, end);
		if (in->num_views > SPYRE_MAX_VIEWS)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_SHAPE, in->num_views,
						 SPYRE_MAX_VIEWS);
		bytes += in->num_views * sizeof(struct spyre_view);
		if (end - *pos < bytes)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, *pos + bytes, end);
		if (spyre_verify_instr(v, in))
			return -EINVAL;
		spyre_cost_instr(in, &cost);
		cost_add(sum, &cost);
		*pos += bytes;
	}
	v->err->instr = 0;
	v->err->view = 0;
	return 0;
}

static void observe_core(const struct spyre_cost_observer *observer,
			 const struct spyre_prog_stream *stream,
			 const struct spyre_instr_cost *sum)
{
	struct spyre_cost_core core = {
		.core = stream->core, .num_instrs = stream->num_instrs,
		.cycles = sum->cycles,
		.bytes_read = sum->bytes_read, .bytes_written = sum->bytes_written,
		.lx_bytes_read = sum->lx_bytes_read,
		.lx_bytes_written = sum->lx_bytes_written,
		.macs = sum->macs,
	};

	memcpy(core.busy, sum->busy, sizeof(core.busy));
	observer->core(observer->context, &core);
}

static void add_phase_cost(struct spyre_verify *v, u64 compute, u32 streams,
			   const struct spyre_instr_cost *sum)
{
	struct spyre_counters *total = &v->prog->cost;
	const struct spyre_cost_phase phase = {
		.step = v->err->step, .num_cores = streams, .trips = v->trips,
		.core_cycles = compute,
		.lpddr_cycles = spyre_cost_lpddr_cycles(sum->lpddr_read, sum->lpddr_written),
		.barrier_cycles = spyre_cost_barrier_cycles(streams),
		.bytes_read = sum->bytes_read, .bytes_written = sum->bytes_written,
		.macs = sum->macs,
	};
	u64 cycles = compute > phase.lpddr_cycles ? compute : phase.lpddr_cycles;

	total->cycles += (cycles + phase.barrier_cycles) * v->trips;
	total->bytes_read += sum->bytes_read * v->trips;
	total->bytes_written += sum->bytes_written * v->trips;
	total->macs += sum->macs * v->trips;
	total->elements += sum->elements * v->trips;
	total->pt_cycles += sum->busy[SPYRE_ENGINE_PT] * v->trips;
	total->sfu_cycles += sum->busy[SPYRE_ENGINE_SFU] * v->trips;
	if (v->observer)
		v->observer->phase(v->observer->context, &phase);
}

/* *next: the first stream and instruction that no earlier phase has used. */
static int verify_phase(struct spyre_verify *v, const struct spyre_prog_step *step,
			u32 *next_stream, u32 *pos)
{
	const struct spyre_prog_header *h = v->prog->header;
	struct spyre_instr_cost sum = { 0 };
	u64 compute = 0;
	u32 i;

	if (step->count)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, step->count, 0);
	if (step->first_stream != *next_stream)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, step->first_stream,
					 *next_stream);
	if (!step->num_streams || step->num_streams > h->num_cores)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, step->num_streams,
					 h->num_cores);
	if (step->num_streams > h->num_streams - *next_stream)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, step->num_streams,
					 h->num_streams - *next_stream);
	for (i = 0; i < step->num_streams; i++) {
		const struct spyre_prog_stream *stream = &v->prog->streams[*next_stream + i];
		struct spyre_instr_cost own = { 0 };

		v->err->core = stream->core;
		if (stream->core >= h->num_cores)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, stream->core,
						 h->num_cores);
		if (i && stream->core <= stream[-1].core)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, stream->core,
						 stream[-1].core);
		if (stream->reserved)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, stream->reserved, 0);
		if (spyre_verify_work(v, 1) || verify_stream(v, stream, pos, &own))
			return -EINVAL;
		if (own.cycles > compute)
			compute = own.cycles;
		cost_add(&sum, &own);
		if (v->observer)
			observe_core(v->observer, stream, &own);
	}
	v->err->core = 0;
	*next_stream += step->num_streams;
	add_phase_cost(v, compute, step->num_streams, &sum);
	return 0;
}

static int open_loop(struct spyre_verify *v, const struct spyre_prog_step *step)
{
	if (step->first_stream || step->num_streams)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, step->num_streams, 0);
	if (!step->count || step->count > SPYRE_MAX_COUNT)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, step->count, SPYRE_MAX_COUNT);
	if (v->depth == SPYRE_MAX_LOOPS)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, v->depth + 1, SPYRE_MAX_LOOPS);
	/* Each iteration is a step of work, even of an empty loop. */
	if (spyre_verify_work(v, step->count))
		return -EINVAL;
	v->iters[v->depth++] = step->count;
	v->trips *= step->count;
	return 0;
}

static int close_loop(struct spyre_verify *v, const struct spyre_prog_step *step)
{
	if (step->count || step->first_stream || step->num_streams)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, step->count, 0);
	if (!v->depth)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, 0, 0);
	v->trips /= v->iters[--v->depth];
	return 0;
}

static int verify_steps(struct spyre_verify *v)
{
	const struct spyre_prog_header *h = v->prog->header;
	u32 next_stream = 0, pos = 0;
	u32 i;
	int ret;

	for (i = 0; i < h->num_steps; i++) {
		const struct spyre_prog_step *step = &v->prog->steps[i];

		v->err->step = i;
		switch (step->kind) {
		case SPYRE_STEP_PHASE:
			ret = verify_phase(v, step, &next_stream, &pos);
			break;
		case SPYRE_STEP_LOOP:
			ret = open_loop(v, step);
			break;
		case SPYRE_STEP_END:
			ret = close_loop(v, step);
			break;
		default:
			ret = spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, step->kind,
						SPYRE_STEP_END);
		}
		if (ret)
			return ret;
	}
	v->err->step = 0;
	if (v->depth)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STEP, v->depth, 0);
	if (next_stream != h->num_streams)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, h->num_streams, next_stream);
	if (pos != h->instr_bytes)
		return spyre_verify_fail(v, SPYRE_STOP_BAD_STREAM, h->instr_bytes, pos);
	return 0;
}

/* The table must declare exactly what the instructions use. */
static int verify_operands(struct spyre_verify *v)
{
	u32 i;

	for (i = 0; i < v->prog->header->num_operands; i++) {
		const struct spyre_prog_operand *op = &v->prog->operands[i];

		v->err->view = i;
		if (op->reserved)
			return spyre_verify_fail(v, SPYRE_STOP_BAD_HEADER, op->reserved, 0);
		if (op->extent != v->extent[i])
			return spyre_verify_fail(v, SPYRE_STOP_EXTENT, op->extent, v->extent[i]);
		if (op->flags != v->flags[i])
			return spyre_verify_fail(v, SPYRE_STOP_ACCESS, op->flags, v->flags[i]);
	}
	v->err->view = 0;
	return 0;
}

int spyre_program_verify_observed(const void *image, u64 size, u32 cores,
				  struct spyre_program *prog, struct spyre_verify_error *err,
				  const struct spyre_cost_observer *observer)
{
	struct spyre_verify v = { .prog = prog, .err = err, .observer = observer, .trips = 1 };

	memset(prog, 0, sizeof(*prog));
	memset(err, 0, sizeof(*err));
	if (verify_header(&v, image, size, cores))
		return -EINVAL;
	lay_out(prog, image);
	if (verify_steps(&v) || verify_operands(&v)) {
		memset(prog, 0, sizeof(*prog));
		return -EINVAL;
	}
	prog->work = v.work;
	prog->cost.launches = 1;
	return 0;
}

int spyre_program_verify(const void *image, u64 size, u32 cores,
			 struct spyre_program *prog,
			 struct spyre_verify_error *err)
{
	return spyre_program_verify_observed(image, size, cores, prog, err, NULL);
}
