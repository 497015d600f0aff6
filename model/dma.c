// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The DMA engine.  A transfer is divided into tasks of rows (one dim), steps (a
 * second dim) and lanes (the last dim), chosen so that a task touches few
 * pages of the host; the host's threads run the tasks.  The dims of a box are put
 * into the same form first (plan_box()).  Bounds are linear and
 * not negative, so the number of valid lanes never grows from row to row of a
 * task: rows are handled in runs with the same number of valid lanes.
 *
 * The spans may be part of larger mappings, such as the kernel's direct map, so
 * an access beyond them would not fault.  Therefore every block is checked
 * against the spans with the very arguments that the unit gets, independently
 * of the arithmetic that produced them; a block that leaves the spans ends the
 * transfer with SPYRE_STOP_EXTENT.
 *
 * Elements have the host's byte order on the host and are little endian on the device; this
 * file alone changes it. Transfers whose bytes have no order use formats of one byte.
 */
#include "core.h"

#define TASK_ROWS 64u
#define TASK_STEPS 32u
#define MAX_ITEMS 1024u
#define STREAM_BYTES (16u << 20)
#define STEP_COST 256u		/* cost of finding rows, in units of unit->budget */
#define INLINE_BYTES 65536u	/* below this, waking threads costs more than it saves */
#define STAGE_BYTES (TASK_ROWS * 256u * 8u)	/* rows, lanes and bytes of the largest task */

/* A budget lasts about 20 us, and a short row that is converted on its own takes 25 ns. */
#define ROWS_PER_BUDGET 800u
#define BOX_LANES 256u
/* The lanes of a box may be a dim of their own, or half of one. */
#define MAX_DIMS (SPYRE_DMA_MAX_DIMS + 1)

static_assert(2 * STAGE_BYTES <= SPYRE_SCRATCH_BYTES, "two stages fit the scratch");

struct dma_bound {
	u64 limit;
	u64 coef[MAX_DIMS];
};

/* Memory that a transfer may touch. */
struct dma_span {
	u8 *p;
	u64 bytes;
};

struct dma {
	const struct spyre_dma_desc *desc;
	struct spyre_host *host;
	void *job;
	u32 stop;
	u32 escaped;			/* set if a block would have left the spans */
	struct dma_span device;
	struct dma_span host_mem;
	bool zero;			/* padding is zeroed on the device, else left alone */
	u32 num_dims;
	u32 count[MAX_DIMS];
	u64 host_stride[MAX_DIMS];
	u64 device_stride[MAX_DIMS];
	u64 device_offset;		/* of coordinate 0 */
	u64 bytes;			/* of all elements, on the device */
	u32 host_bytes;			/* of an element */
	u32 device_bytes;
	u32 lane, row, step;		/* dims; row or step may be num_dims: none */
	u64 task_count[MAX_DIMS + 1];	/* tasks along each dim */
	u64 tasks;
	u32 items;
	bool stream;			/* exceeds the caches */
	u32 num_bounds;
	struct dma_bound bound[SPYRE_DMA_MAX_BOUNDS + 1];
};

/* A task: the position of its first element, and its extent. */
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
	u32 *escaped;
	struct dma_span from, to, stage;
	struct spyre_section section;
};

/* @outer x @inner pieces of @bytes, with two strides. */
struct dma_block {
	u64 outer_stride;
	u64 inner_stride;
	u64 bytes;
	u32 outer;
	u32 inner;
};

/* Returns true if the block at @p ends within @span; none of the sums may overflow. */
static bool block_within(const struct dma_block *b, const struct dma_span *span, const u8 *p)
{
	u64 at = (unsigned long)p - (unsigned long)span->p;
	u64 reach, inner;

	return at <= span->bytes &&
	       !__builtin_mul_overflow(b->outer_stride, (u64)b->outer - 1, &reach) &&
	       !__builtin_mul_overflow(b->inner_stride, (u64)b->inner - 1, &inner) &&
	       !__builtin_add_overflow(reach, inner, &reach) &&
	       !__builtin_add_overflow(reach, b->bytes, &reach) &&
	       reach <= span->bytes - at;
}

static bool escape(const struct dma_thread *t)
{
	__atomic_store_n(t->escaped, 1, __ATOMIC_RELAXED);
	__atomic_store_n(t->section.stop, 1, __ATOMIC_RELAXED);
	return false;
}

/* A block may be written within the destination span or the stage; it is not empty. */
static bool may_write(const struct dma_thread *t, const u8 *p, const struct dma_block *b)
{
	return block_within(b, &t->to, p) || block_within(b, &t->stage, p) || escape(t);
}

static bool may_read(const struct dma_thread *t, const u8 *p, const struct dma_block *b)
{
	return block_within(b, &t->from, p) || block_within(b, &t->stage, p) || escape(t);
}

/* A block of @rows of @bytes each, @stride apart. */
static struct dma_block rows_of(u32 rows, u64 stride, u64 bytes)
{
	return (struct dma_block){
		.outer_stride = stride, .bytes = bytes, .outer = rows, .inner = 1,
	};
}

static u64 stride_of(const u64 *stride, const struct dma *dma, u32 d)
{
	return d < dma->num_dims ? stride[d] : 0;
}

static u64 coef_of(const struct dma *dma, u32 b, u32 d)
{
	return d < dma->num_dims ? dma->bound[b].coef[d] : 0;
}

/* Returns the valid lanes of a row whose bound sums are @sum + @row * coef. */
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

/* Returns how many rows from @row on have at least @lanes > 0 valid lanes. */
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
		for (i = 0; i < to.outer; i++)					\
			for (j = 0; j < to.inner; j++)				\
				memcpy(dst + i * to.outer_stride + j * to.inner_stride, \
				       src + i * from.outer_stride + j * from.inner_stride, \
				       sizeof(type));				\
	} while (0)

/* Copies elements between two strided blocks with the same number of elements. */
static bool copy_strided(const struct dma_thread *t, u8 *dst, const struct dma_block to,
			 const u8 *src, const struct dma_block from)
{
	u32 i, j;

	if (!may_write(t, dst, &to) || !may_read(t, src, &from))
		return false;
	if (to.bytes == 1)
		COPY_STRIDED(u8);
	else if (to.bytes == 2)
		COPY_STRIDED(u16);
	else if (to.bytes == 4)
		COPY_STRIDED(u32);
	else
		COPY_STRIDED(u64);
	return true;
}

/* Moves rows x lanes between the host and a dense stage, in the host's order. */
static bool stage(const struct dma_thread *t, u8 *host, u8 *dense, u32 rows, u32 lanes,
		  bool gather)
{
	const struct dma *dma = t->dma;
	u64 eb = dma->host_bytes;
	struct dma_block h = {
		.outer_stride = stride_of(dma->host_stride, dma, dma->row),
		.inner_stride = dma->host_stride[dma->lane],
		.bytes = eb,
		.outer = rows,
		.inner = lanes,
	};
	struct dma_block d = {
		.outer_stride = lanes * eb, .inner_stride = eb, .bytes = eb,
		.outer = rows, .inner = lanes,
	};

	if (h.outer_stride == eb) {
		h = (struct dma_block){ h.inner_stride, eb, eb, lanes, rows };
		d = (struct dma_block){ eb, lanes * eb, eb, lanes, rows };
	}
	return gather ? copy_strided(t, dense, d, host, h) : copy_strided(t, host, h, dense, d);
}

/*
 * Transposes as the unit does, out[column][row] = in[row][column]: 64 x 64 elements
 * of 16 bits, or whole blocks of 4 x 4 elements of 32 bits.
 */
static bool transpose(const struct dma_thread *t, u8 *out, u64 out_stride, const u8 *in,
		      u64 in_stride, u32 rows, u32 columns)
{
	const struct spyre_unit *unit = t->dma->host->unit;
	u64 eb = t->dma->host_bytes;
	const struct dma_block to = rows_of(columns, out_stride, rows * eb);
	const struct dma_block from = rows_of(rows, in_stride, columns * eb);

	if (!may_write(t, out, &to) || !may_read(t, in, &from))
		return false;
	if (eb == 2 ? rows != 64 || columns != 64 : rows % 4 || columns % 4)
		return escape(t);
	if (eb == 2)
		unit->transpose(out, out_stride, in, in_stride);
	else
		unit->transpose32(out, out_stride, in, in_stride, rows, columns);
	return true;
}

static bool copy_rows(const struct dma_thread *t, const struct spyre_copy_run *run)
{
	const struct dma_block to = rows_of(run->rows, run->dst_stride, run->bytes);
	const struct dma_block from = rows_of(run->rows, run->src_stride, run->bytes);

	if (!may_write(t, run->dst, &to) || !may_read(t, run->src, &from))
		return false;
	t->dma->host->unit->copy(run);
	return true;
}

static bool convert_rows(const struct dma_thread *t, const struct spyre_convert_run *run,
			 u32 dst_bytes, u32 src_bytes)
{
	const struct dma_block to = rows_of(run->rows, run->dst_stride,
					    (u64)run->lanes * dst_bytes);
	const struct dma_block from = rows_of(run->rows, run->src_stride,
					      (u64)run->lanes * src_bytes);

	if (!may_write(t, run->dst, &to) || !may_read(t, run->src, &from))
		return false;
	t->dma->host->unit->convert(run);
	return true;
}

/* Zeroes the padding of @rows, @bytes each. */
static bool zero_rows(const struct dma_thread *t, u8 *p, u64 stride, u32 rows, u64 bytes)
{
	const struct dma_block block = rows_of(rows, stride, bytes);
	u32 row;

	if (!bytes || !rows)
		return true;
	if (!may_write(t, p, &block))
		return false;
	for (row = 0; row < rows; row++)
		memset(p + row * stride, 0, bytes);
	return true;
}

/* Elements change their bytes' order on the way: never on a little-endian host. */
static bool swaps(const struct dma *dma)
{
	return SPYRE_BIG_ENDIAN && dma->host_bytes > 1;
}

#define SWAP_ROWS(bits)								\
	do {									\
		for (row = 0; row < rows; row++)				\
			for (i = 0; i < lanes; i++) {				\
				u##bits x;					\
										\
				memcpy(&x, src + row * src_stride + i * sizeof(x), sizeof(x)); \
				x = __builtin_bswap##bits(x);			\
				memcpy(dst + row * dst_stride + i * sizeof(x), &x, sizeof(x)); \
			}							\
	} while (0)

/* Copies rows x lanes of the host's elements, bytes swapped; @dst may be @src. */
static bool swap_rows(struct dma_thread *t, u8 *dst, u64 dst_stride, const u8 *src,
		      u64 src_stride, u32 rows, u32 lanes)
{
	const u64 eb = t->dma->host_bytes;
	const struct dma_block to = rows_of(rows, dst_stride, lanes * eb);
	const struct dma_block from = rows_of(rows, src_stride, lanes * eb);
	u32 row, i;

	if (!may_write(t, dst, &to) || !may_read(t, src, &from) ||
	    !spyre_section_enter(&t->section, (u64)rows * lanes * 4))
		return false;
	if (eb == 2)
		SWAP_ROWS(16);
	else if (eb == 4)
		SWAP_ROWS(32);
	else
		SWAP_ROWS(64);
	return true;
}

/*
 * Like stage(), but whole tiles of 16-bit and 32-bit elements use the unit's
 * transposes. Towards the host they go to a second stage, which is then copied by
 * rows.
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
	    stride_of(dma->host_stride, dma, dma->row) != eb)
		return stage(t, host, dense, rows, lanes, gather);
	if (!spyre_section_enter(&t->section, 64 * 64 * 4))
		return false;
	/* Only the valid lanes of the dim exist in the host span. */
	if (gather)
		return transpose(t, dense, 128, host, host_lane, lanes, rows);
	return transpose(t, dense + STAGE_BYTES, TASK_ROWS * eb, dense, 128, rows, lanes) &&
	       copy_rows(t, &copy);
}

static bool copy_raw(const struct dma_thread *t, const struct spyre_convert_run *run, u32 bytes)
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

	return copy_rows(t, &copy);
}

/* Converts or copies rows x lanes that are dense on both sides. */
static bool transfer(struct dma_thread *t, struct spyre_convert_run *run, u32 dst_bytes,
		     u32 src_bytes)
{
	if (run->dst_stride == (u64)run->lanes * dst_bytes &&
	    run->src_stride == (u64)run->lanes * src_bytes) {
		run->lanes *= run->rows;
		run->rows = 1;
	}
	if (!spyre_section_enter(&t->section, (u64)run->rows * run->lanes * 4 +
				 run->rows * (t->dma->host->unit->budget / ROWS_PER_BUDGET)))
		return false;
	run->stream = t->dma->stream && run->dst != t->worker->scratch &&
		      !((unsigned long)run->dst % 64) && !(run->dst_stride % 64);
	if (run->dst_format != run->src_format)
		return convert_rows(t, run, dst_bytes, src_bytes);
	return copy_raw(t, run, dst_bytes);
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

	if (dma->host_stride[dma->lane] != dma->host_bytes && lanes > 1) {
		if (!stage_tile(t, host, t->worker->scratch, rows, lanes, true))
			return false;
		run.src = t->worker->scratch;
		run.src_stride = (u64)lanes * dma->host_bytes;
	}
	if (swaps(dma)) {
		if (!swap_rows(t, t->worker->scratch, (u64)lanes * dma->host_bytes, run.src,
			       run.src_stride, rows, lanes))
			return false;
		run.src = t->worker->scratch;
		run.src_stride = (u64)lanes * dma->host_bytes;
	}
	if (!transfer(t, &run, dma->device_bytes, dma->host_bytes))
		return false;
	if (!dma->zero)
		return true;
	return zero_rows(t, device + row_bytes - pad,
			 stride_of(dma->device_stride, dma, dma->row), rows, pad);
}

static bool to_host(struct dma_thread *t, u8 *host, u8 *device, u32 rows, u32 lanes)
{
	const struct dma *dma = t->dma;
	bool strided = dma->host_stride[dma->lane] != dma->host_bytes && lanes > 1;
	u8 *dense = t->worker->scratch;
	u64 dense_stride = (u64)lanes * dma->host_bytes;
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

	if (strided || swaps(dma)) {
		run.dst = dense;
		run.dst_stride = dense_stride;
	}
	if (!transfer(t, &run, dma->host_bytes, dma->device_bytes))
		return false;
	if (swaps(dma)) {
		u64 stride = stride_of(dma->host_stride, dma, dma->row);

		if (!swap_rows(t, strided ? dense : host, strided ? dense_stride : stride, dense,
			       dense_stride, rows, lanes))
			return false;
	}
	if (strided)
		return stage_tile(t, host, dense, rows, lanes, false);
	return true;
}

/* Moves all rows of one step of a task. */
static bool run_rows(struct dma_thread *t, const struct dma_task *task, u64 host, u64 device)
{
	const struct dma *dma = t->dma;
	bool h2d = dma->desc->direction == SPYRE_DMA_H2D;
	u64 host_row = stride_of(dma->host_stride, dma, dma->row);
	u64 device_row = stride_of(dma->device_stride, dma, dma->row);
	u64 row_bytes = (u64)dma->count[dma->lane] * dma->device_bytes;
	u32 row, n, lanes;

	/* Rows that are all padding are accounted as well, so that the engine polls for a stop. */
	if (!spyre_section_enter(&t->section, STEP_COST))
		return false;
	for (row = 0; row < task->rows; row += n) {
		u8 *dev = dma->device.p + device + row * device_row;

		lanes = valid_lanes(dma, task->sum, row);
		if (!lanes)
			break;
		n = rows_with(dma, task->sum, row, task->rows, lanes);
		if (h2d ? !to_device(t, dma->host_mem.p + host + row * host_row, dev, n, lanes) :
			  !to_host(t, dma->host_mem.p + host + row * host_row, dev, n, lanes))
			return false;
	}
	if (!dma->zero || row == task->rows)
		return true;
	if (!spyre_section_enter(&t->section, (task->rows - row) * row_bytes))
		return false;
	return zero_rows(t, dma->device.p + device + row * device_row, device_row,
			 task->rows - row, row_bytes);
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

/* Computes the start of task @index. */
static void find_task(const struct dma *dma, u64 index, struct dma_task *task)
{
	u32 d = dma->num_dims;
	u32 b;

	memset(task, 0, sizeof(*task));
	task->host = dma->desc->host_offset;
	task->device = dma->device_offset;
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
	bool h2d = dma->desc->direction == SPYRE_DMA_H2D;
	struct dma_thread t = {
		.dma = dma,
		.worker = worker,
		.escaped = &dma->escaped,
		.from = h2d ? dma->host_mem : dma->device,
		.to = h2d ? dma->device : dma->host_mem,
		.stage = { worker->scratch, 2 * STAGE_BYTES },
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

/* Chooses the row dim in the host's order if the lanes are not contiguous there. */
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

/* Adds the engine's own bound: the last byte of an element lies in the host span. */
static void add_own_bound(struct dma *dma)
{
	struct dma_bound *own = &dma->bound[dma->num_bounds++];
	u64 need = dma->desc->host_offset + dma->host_bytes;

	own->limit = dma->host_mem.bytes < need ? 0 : dma->host_mem.bytes - need + 1;
	memcpy(own->coef, dma->host_stride, sizeof(own->coef));
}

/* The device side is dense, in the order of the dims. */
static void plan_dense(struct dma *dma)
{
	const struct spyre_dma_desc *desc = dma->desc;
	u32 d, b;

	dma->num_dims = desc->num_dims;
	dma->zero = desc->direction == SPYRE_DMA_H2D;
	dma->bytes = dma->device_bytes;
	for (d = dma->num_dims; d--;) {
		dma->count[d] = desc->dim[d].count;
		dma->host_stride[d] = desc->dim[d].host_stride;
		dma->device_stride[d] = dma->bytes;
		dma->bytes *= dma->count[d];
	}
	dma->device.bytes = dma->bytes;
	dma->num_bounds = desc->num_bounds;
	for (b = 0; b < desc->num_bounds; b++) {
		dma->bound[b].limit = desc->bound[b].limit;
		memcpy(dma->bound[b].coef, desc->bound[b].coef, sizeof(desc->bound[b].coef));
	}
}

static void add_dim(struct dma *dma, u32 count, u64 host_stride, u64 device_stride)
{
	dma->count[dma->num_dims] = count;
	dma->host_stride[dma->num_dims] = host_stride;
	dma->device_stride[dma->num_dims++] = device_stride;
}

/* Adds @count elements that are contiguous on the device, in rows of BOX_LANES at most. */
static void add_lanes(struct dma *dma, u32 count, u64 host_stride)
{
	struct dma_bound *bound = &dma->bound[0];
	u64 lanes = spyre_min(count, BOX_LANES);

	if (count > lanes) {
		bound->limit = count;
		bound->coef[dma->num_dims] = lanes;
		bound->coef[dma->num_dims + 1] = 1;
		dma->num_bounds = 1;
		add_dim(dma, ((u64)count + lanes - 1) / lanes, lanes * host_stride,
			lanes * dma->device_bytes);
	}
	add_dim(dma, lanes, host_stride, dma->device_bytes);
}

/*
 * The order of a box's dims has no effect, so the one that is contiguous on the device
 * becomes the last. Without one, each row has a single element.
 */
static void plan_box(struct dma *dma)
{
	const struct spyre_dma_desc *desc = dma->desc;
	const struct spyre_dma_box *box = &desc->box;
	u32 lane = desc->num_dims, d;

	dma->device_offset = box->device_offset;
	dma->device.bytes = box->device_offset + dma->device_bytes;
	dma->bytes = dma->device_bytes;
	for (d = 0; d < desc->num_dims; d++) {
		u32 count = desc->dim[d].count;

		dma->bytes *= count;
		dma->device.bytes += (count - 1) * box->device_stride[d];
		if (count > 1 && box->device_stride[d] == dma->device_bytes)
			lane = d;
	}
	for (d = 0; d < desc->num_dims; d++)
		if (d != lane && desc->dim[d].count > 1)
			add_dim(dma, desc->dim[d].count, desc->dim[d].host_stride,
				box->device_stride[d]);
	if (lane < desc->num_dims)
		add_lanes(dma, desc->dim[lane].count, desc->dim[lane].host_stride);
	else
		add_lanes(dma, 1, dma->host_bytes);
}

static void plan(struct dma *dma)
{
	const struct spyre_dma_desc *desc = dma->desc;
	u32 d;

	dma->host_bytes = spyre_fmt_bytes(desc->host_format);
	dma->device_bytes = spyre_fmt_bytes(desc->device_format);
	if (desc->flags & SPYRE_DMA_BOX)
		plan_box(dma);
	else
		plan_dense(dma);
	dma->stream = dma->bytes >= STREAM_BYTES;
	choose_dims(dma);
	add_own_bound(dma);
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
	dma->items = dma->bytes < INLINE_BYTES ? 1 : spyre_min(dma->tasks, MAX_ITEMS);
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
		.device = { .p = device },
		.host_mem = { host_mem, host_bytes },
	};

	/* The caller has checked this; a box that is cut off is no success. */
	if (spyre_dma_check_host(desc, host_bytes) != SPYRE_STOP_NONE)
		return SPYRE_STOP_EXTENT;
	plan(&dma);
	if (dma.items == 1)
		run_item(&dma, 0, self);
	else
		host->parallel(host, self, dma.items, run_item, &dma);
	if (spyre_stopped(&dma.escaped))
		return SPYRE_STOP_EXTENT;
	return spyre_stopped(&dma.stop) ? SPYRE_STOP_CANCELLED : SPYRE_STOP_NONE;
}
