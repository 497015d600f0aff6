// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The DMA engine.  A transfer is cut into tasks of rows (one dim), steps (a
 * second dim) and lanes (the last dim), chosen so that a task touches few
 * pages of the host; tasks go to the host's threads.  Bounds are linear and
 * not negative, so the valid lanes of the rows of a task only shrink: rows
 * are handled in runs that have the same number of valid lanes.
 */
#include "core.h"

#define TASK_ROWS 64u
#define TASK_STEPS 32u
#define MAX_ITEMS 1024u
#define STREAM_BYTES (16u << 20)
#define STEP_COST 256u		/* of finding rows, in units of unit->budget */
#define INLINE_BYTES 65536u	/* below, threads are not worth waking */
#define STAGE_BYTES (TASK_ROWS * 256u * 8u)	/* rows, lanes and bytes of a task at most */

static_assert(2 * STAGE_BYTES <= SPYRE_SCRATCH_BYTES, "two stages fit the scratch");

struct dma_bound {
	u64 limit;
	u64 coef[SPYRE_DMA_MAX_DIMS];
};

struct dma {
	const struct spyre_dma_desc *desc;
	struct spyre_host *host;
	void *job;
	u32 stop;
	u8 *device;
	u8 *host_mem;
	u32 num_dims;
	u32 count[SPYRE_DMA_MAX_DIMS];
	u64 host_stride[SPYRE_DMA_MAX_DIMS];
	u64 device_stride[SPYRE_DMA_MAX_DIMS];
	u32 host_bytes;			/* of an element */
	u32 device_bytes;
	u32 lane, row, step;		/* dims; row or step may be num_dims: none */
	u64 task_count[SPYRE_DMA_MAX_DIMS + 1];	/* tasks along each dim */
	u64 tasks;
	u32 items;
	bool stream;			/* too much for the caches */
	u32 num_bounds;
	struct dma_bound bound[SPYRE_DMA_MAX_BOUNDS + 1];
};

/* A task: position of its first element and how far it goes. */
struct dma_task {
	u64 host;
	u64 device;
	u64 sum[SPYRE_DMA_MAX_BOUNDS + 1];
	u32 rows;
	u32 steps;
};

struct dma_thread {
	const struct dma *dma;
	struct spyre_worker *worker;
	struct spyre_section section;
};

static u64 stride_of(const u64 *stride, const struct dma *dma, u32 d)
{
	return d < dma->num_dims ? stride[d] : 0;
}

static u64 coef_of(const struct dma *dma, u32 b, u32 d)
{
	return d < dma->num_dims ? dma->bound[b].coef[d] : 0;
}

/* Valid lanes of a row whose bound sums are @sum + @row * coef. */
static u32 valid_lanes(const struct dma *dma, const u64 *sum, u32 row)
{
	u64 lanes = dma->count[dma->lane];
	u32 b;

	for (b = 0; b < dma->num_bounds; b++) {
		u64 at = sum[b] + row * coef_of(dma, b, dma->row);
		u64 coef = dma->bound[b].coef[dma->lane];

		if (at >= dma->bound[b].limit)
			return 0;
		if (coef && lanes > 1)
			lanes = spyre_min(lanes, (dma->bound[b].limit - 1 - at) / coef + 1);
	}
	return lanes;
}

/* How many rows from @row on have at least @lanes > 0 valid lanes. */
static u32 rows_with(const struct dma *dma, const u64 *sum, u32 row, u32 rows, u32 lanes)
{
	u64 n = rows - row;
	u32 b;

	for (b = 0; b < dma->num_bounds; b++) {
		u64 coef = coef_of(dma, b, dma->row);
		u64 at = sum[b] + row * coef + (lanes - 1) * dma->bound[b].coef[dma->lane];

		if (coef && n > 1)
			n = spyre_min(n, (dma->bound[b].limit - 1 - at) / coef + 1);
	}
	return n;
}

#define COPY_STRIDED(type)							\
	do {									\
		for (i = 0; i < outer; i++)					\
			for (j = 0; j < inner; j++)				\
				memcpy(dst + i * dst_outer + j * dst_inner,	\
				       src + i * src_outer + j * src_inner,	\
				       sizeof(type));				\
	} while (0)

/* Copies outer x inner elements of @bytes between two strided places. */
static void copy_strided(u8 *dst, u64 dst_outer, u64 dst_inner, const u8 *src, u64 src_outer,
			 u64 src_inner, u32 outer, u32 inner, u32 bytes)
{
	u32 i, j;

	if (bytes == 1)
		COPY_STRIDED(u8);
	else if (bytes == 2)
		COPY_STRIDED(u16);
	else if (bytes == 4)
		COPY_STRIDED(u32);
	else
		COPY_STRIDED(u64);
}

/* Moves rows x lanes between the host and a dense stage, along the host's grain. */
static void stage(const struct dma *dma, u8 *host, u8 *dense, u32 rows, u32 lanes, bool gather)
{
	u64 host_row = stride_of(dma->host_stride, dma, dma->row);
	u64 host_lane = dma->host_stride[dma->lane];
	u64 eb = dma->host_bytes;
	u64 dense_row = lanes * eb;

	if (gather && host_row == eb)
		copy_strided(dense, eb, dense_row, host, host_lane, host_row, lanes, rows, eb);
	else if (gather)
		copy_strided(dense, dense_row, eb, host, host_row, host_lane, rows, lanes, eb);
	else if (host_row == eb)
		copy_strided(host, host_lane, host_row, dense, eb, dense_row, lanes, rows, eb);
	else
		copy_strided(host, host_row, host_lane, dense, dense_row, eb, rows, lanes, eb);
}

/*
 * Transposes TASK_ROWS x @lanes between the host and a dense stage.  @lanes are
 * the valid ones: those beyond lie outside the host span, or in the next row
 * of the stage.
 */
static void transpose_tile(const struct dma *dma, u8 *out, u64 out_stride, const u8 *in,
			   u64 in_stride, u32 lanes, bool gather)
{
	if (dma->host_bytes == 2)
		dma->host->unit->transpose(out, out_stride, in, in_stride);
	else
		dma->host->unit->transpose32(out, out_stride, in, in_stride,
					     gather ? lanes : TASK_ROWS,
					     gather ? TASK_ROWS : lanes);
}

/*
 * As stage(); whole tiles of 16-bit and 32-bit elements go through the unit's
 * transposes, to the host by way of a second stage that is then copied by rows.
 */
static bool stage_tile(struct dma_thread *t, u8 *host, u8 *dense, u32 rows, u32 lanes, bool gather)
{
	const struct dma *dma = t->dma;
	u64 host_lane = dma->host_stride[dma->lane], eb = dma->host_bytes;
	struct spyre_copy_run copy = {
		.dst = host,
		.src = dense + STAGE_BYTES,
		.dst_stride = host_lane,
		.src_stride = TASK_ROWS * eb,
		.rows = lanes,
		.bytes = TASK_ROWS * eb,
		.stream = dma->stream && !((unsigned long)host % 64) && !(host_lane % 64),
	};

	if (rows != TASK_ROWS || lanes * eb != 128 || (eb != 2 && eb != 4) ||
	    stride_of(dma->host_stride, dma, dma->row) != eb) {
		stage(dma, host, dense, rows, lanes, gather);
		return true;
	}
	if (!spyre_section_enter(&t->section, 64 * 64 * 4))
		return false;
	if (gather) {
		transpose_tile(dma, dense, 128, host, host_lane, lanes, true);
		return true;
	}
	transpose_tile(dma, dense + STAGE_BYTES, TASK_ROWS * eb, dense, 128, lanes, false);
	dma->host->unit->copy(&copy);
	return true;
}

static void copy_raw(const struct dma_thread *t, const struct spyre_convert_run *run, u32 bytes)
{
	const struct spyre_copy_run copy = {
		.dst = run->dst,
		.src = run->src,
		.dst_stride = run->dst_stride,
		.src_stride = run->src_stride,
		.rows = run->rows,
		.bytes = run->lanes * bytes,
		.stream = run->stream,
	};

	t->dma->host->unit->copy(&copy);
}

/* Converts or copies rows x lanes whose lanes are dense on both sides. */
static bool transfer(struct dma_thread *t, struct spyre_convert_run *run, u32 dst_bytes,
		     u32 src_bytes)
{
	if (run->dst_stride == (u64)run->lanes * dst_bytes &&
	    run->src_stride == (u64)run->lanes * src_bytes) {
		run->lanes *= run->rows;
		run->rows = 1;
	}
	if (!spyre_section_enter(&t->section, (u64)run->rows * run->lanes * 4))
		return false;
	run->stream = t->dma->stream && run->dst != t->worker->scratch &&
		      !((unsigned long)run->dst % 64) && !(run->dst_stride % 64);
	if (run->dst_format != run->src_format)
		t->dma->host->unit->convert(run);
	else
		copy_raw(t, run, dst_bytes);
	return true;
}

static bool to_device(struct dma_thread *t, u8 *host, u8 *device, u32 rows, u32 lanes)
{
	const struct dma *dma = t->dma;
	u64 row_bytes = (u64)dma->count[dma->lane] * dma->device_bytes;
	struct spyre_convert_run run = {
		.dst = device,
		.src = host,
		.dst_stride = stride_of(dma->device_stride, dma, dma->row),
		.src_stride = stride_of(dma->host_stride, dma, dma->row),
		.rows = rows,
		.lanes = lanes,
		.dst_format = dma->desc->device_format,
		.src_format = dma->desc->host_format,
		.cast = true,
	};
	u64 pad = row_bytes - (u64)lanes * dma->device_bytes;
	u32 row;

	if (dma->host_stride[dma->lane] != dma->host_bytes && lanes > 1) {
		if (!stage_tile(t, host, t->worker->scratch, rows, lanes, true))
			return false;
		run.src = t->worker->scratch;
		run.src_stride = (u64)lanes * dma->host_bytes;
	}
	if (!transfer(t, &run, dma->device_bytes, dma->host_bytes))
		return false;
	for (row = 0; pad && row < rows; row++)
		memset(device + row * stride_of(dma->device_stride, dma, dma->row) +
		       row_bytes - pad, 0, pad);
	return true;
}

static bool to_host(struct dma_thread *t, u8 *host, u8 *device, u32 rows, u32 lanes)
{
	const struct dma *dma = t->dma;
	bool strided = dma->host_stride[dma->lane] != dma->host_bytes && lanes > 1;
	struct spyre_convert_run run = {
		.dst = host,
		.src = device,
		.dst_stride = stride_of(dma->host_stride, dma, dma->row),
		.src_stride = stride_of(dma->device_stride, dma, dma->row),
		.rows = rows,
		.lanes = lanes,
		.dst_format = dma->desc->host_format,
		.src_format = dma->desc->device_format,
		.cast = true,
	};

	if (strided) {
		run.dst = t->worker->scratch;
		run.dst_stride = (u64)lanes * dma->host_bytes;
	}
	if (!transfer(t, &run, dma->host_bytes, dma->device_bytes))
		return false;
	if (strided)
		return stage_tile(t, host, t->worker->scratch, rows, lanes, false);
	return true;
}

/* All rows of one step of a task. */
static bool run_rows(struct dma_thread *t, const struct dma_task *task, u64 host, u64 device)
{
	const struct dma *dma = t->dma;
	bool h2d = dma->desc->direction == SPYRE_DMA_H2D;
	u64 host_row = stride_of(dma->host_stride, dma, dma->row);
	u64 device_row = stride_of(dma->device_stride, dma, dma->row);
	u64 row_bytes = (u64)dma->count[dma->lane] * dma->device_bytes;
	u32 row, n, lanes;

	/* Also for rows that are all padding: someone must see whether to stop. */
	if (!spyre_section_enter(&t->section, STEP_COST))
		return false;
	for (row = 0; row < task->rows; row += n) {
		u8 *dev = dma->device + device + row * device_row;

		lanes = valid_lanes(dma, task->sum, row);
		if (!lanes)
			break;
		n = rows_with(dma, task->sum, row, task->rows, lanes);
		if (h2d ? !to_device(t, dma->host_mem + host + row * host_row, dev, n, lanes) :
			  !to_host(t, dma->host_mem + host + row * host_row, dev, n, lanes))
			return false;
	}
	if (!h2d || row == task->rows)
		return true;
	if (!spyre_section_enter(&t->section, (task->rows - row) * row_bytes))
		return false;
	for (; row < task->rows; row++)
		memset(dma->device + device + row * device_row, 0, row_bytes);
	return true;
}

static bool run_task(struct dma_thread *t, struct dma_task *task)
{
	const struct dma *dma = t->dma;
	u32 step, b;

	for (step = 0; step < task->steps; step++) {
		if (!run_rows(t, task,
			      task->host + step * stride_of(dma->host_stride, dma, dma->step),
			      task->device + step * stride_of(dma->device_stride, dma, dma->step)))
			return false;
		for (b = 0; b < dma->num_bounds; b++)
			task->sum[b] += coef_of(dma, b, dma->step);
	}
	return true;
}

/* Where task number @index starts. */
static void find_task(const struct dma *dma, u64 index, struct dma_task *task)
{
	u32 d = dma->num_dims;
	u32 b;

	memset(task, 0, sizeof(*task));
	task->host = dma->desc->host_offset;
	task->rows = 1;
	task->steps = 1;
	while (d--) {
		u64 at = index % dma->task_count[d];

		index /= dma->task_count[d];
		if (d == dma->row) {
			at *= TASK_ROWS;
			task->rows = spyre_min(TASK_ROWS, dma->count[d] - at);
		} else if (d == dma->step) {
			at *= TASK_STEPS;
			task->steps = spyre_min(TASK_STEPS, dma->count[d] - at);
		}
		task->host += at * dma->host_stride[d];
		task->device += at * dma->device_stride[d];
		for (b = 0; b < dma->num_bounds; b++)
			task->sum[b] += at * dma->bound[b].coef[d];
	}
}

static void run_item(void *arg, u32 index, struct spyre_worker *worker)
{
	struct dma *dma = arg;
	u64 first = dma->tasks * index / dma->items;
	u64 end = dma->tasks * (index + 1) / dma->items;
	struct dma_thread t = {
		.dma = dma,
		.worker = worker,
		.section = { .host = dma->host, .job = dma->job, .stop = &dma->stop },
	};
	struct dma_task task;

	for (; first < end && !spyre_stopped(&dma->stop); first++) {
		find_task(dma, first, &task);
		if (!run_task(&t, &task))
			break;
	}
	spyre_section_leave(&t.section);
}

/* Rows run along the host's grain if the lanes do not. */
static void choose_dims(struct dma *dma)
{
	u32 d;

	dma->lane = dma->num_dims - 1;
	dma->row = dma->lane ? dma->lane - 1 : dma->num_dims;
	dma->step = dma->num_dims;
	if (dma->host_stride[dma->lane] != dma->host_bytes)
		for (d = 0; d < dma->lane; d++)
			if (dma->count[d] > 1 && dma->host_stride[d] == dma->host_bytes)
				dma->row = d;
	for (d = 0; d < dma->lane; d++) {
		if (d == dma->row || dma->count[d] == 1 || !dma->host_stride[d] ||
		    dma->host_stride[d] >= dma->host_stride[dma->row])
			continue;
		if (dma->step == dma->num_dims ||
		    dma->host_stride[d] < dma->host_stride[dma->step])
			dma->step = d;
	}
}

/* The engine's own bound: the last byte of an element lies in the host span. */
static void add_bounds(struct dma *dma, u64 host_bytes)
{
	const struct spyre_dma_desc *desc = dma->desc;
	struct dma_bound *own = &dma->bound[desc->num_bounds];
	u64 need = desc->host_offset + dma->host_bytes;
	u32 b;

	for (b = 0; b < desc->num_bounds; b++) {
		dma->bound[b].limit = desc->bound[b].limit;
		memcpy(dma->bound[b].coef, desc->bound[b].coef, sizeof(dma->bound[b].coef));
	}
	own->limit = host_bytes < need ? 0 : host_bytes - need + 1;
	memcpy(own->coef, dma->host_stride, sizeof(own->coef));
	dma->num_bounds = desc->num_bounds + 1;
}

static void plan(struct dma *dma, u64 host_bytes)
{
	const struct spyre_dma_desc *desc = dma->desc;
	u64 bytes, stride;
	u32 d;

	dma->num_dims = desc->num_dims;
	dma->host_bytes = spyre_fmt_bytes(desc->host_format);
	dma->device_bytes = spyre_fmt_bytes(desc->device_format);
	stride = dma->device_bytes;
	for (d = dma->num_dims; d--;) {
		dma->count[d] = desc->dim[d].count;
		dma->host_stride[d] = desc->dim[d].host_stride;
		dma->device_stride[d] = stride;
		stride *= dma->count[d];
	}
	bytes = stride;
	dma->stream = bytes >= STREAM_BYTES;
	choose_dims(dma);
	add_bounds(dma, host_bytes);
	dma->tasks = 1;
	for (d = 0; d < dma->num_dims; d++) {
		dma->task_count[d] = dma->count[d];
		if (d == dma->lane)
			dma->task_count[d] = 1;
		else if (d == dma->row)
			dma->task_count[d] = ((u64)dma->count[d] + TASK_ROWS - 1) / TASK_ROWS;
		else if (d == dma->step)
			dma->task_count[d] = ((u64)dma->count[d] + TASK_STEPS - 1) / TASK_STEPS;
		dma->tasks *= dma->task_count[d];
	}
	dma->items = bytes < INLINE_BYTES ? 1 : spyre_min(dma->tasks, MAX_ITEMS);
}

enum spyre_stop spyre_card_dma(struct spyre_host *host, void *job,
			       struct spyre_worker *self,
			       const struct spyre_dma_desc *desc, u8 *device,
			       u8 *host_mem, u64 host_bytes)
{
	struct dma dma = {
		.desc = desc,
		.host = host,
		.job = job,
		.device = device,
		.host_mem = host_mem,
	};

	plan(&dma, host_bytes);
	if (dma.items == 1)
		run_item(&dma, 0, self);
	else
		host->parallel(host, self, dma.items, run_item, &dma);
	return spyre_stopped(&dma.stop) ? SPYRE_STOP_CANCELLED : SPYRE_STOP_NONE;
}
