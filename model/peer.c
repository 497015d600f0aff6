// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Copies between the memories of two cards. */
#include "core.h"
#include "peer.h"

#define MAX_ROWS 0x80000000ull
#define MAX_BYTES (1ull << 34)	/* of a segment */
#define CHUNK (1ull << 20)	/* bytes between two polls */
#define CHUNK_ROWS (1ull << 14)	/* and rows, since short rows take longer per byte */

enum spyre_link spyre_link_between(u32 a, u32 b)
{
	if (a == b)
		return SPYRE_LINK_CARD;
	return a / SPYRE_CARDS_PER_SWITCH == b / SPYRE_CARDS_PER_SWITCH ? SPYRE_LINK_SWITCH :
									  SPYRE_LINK_HOST;
}

/* Bytes from the first row to the end of the last one; 0 if they exceed the limit. */
static u64 reach(const struct spyre_rows *r, u64 stride)
{
	u64 bytes;

	if (r->row_bytes > MAX_BYTES)
		return 0;
	if (r->rows == 1)
		return r->row_bytes;
	if (stride > MAX_BYTES / (r->rows - 1))
		return 0;
	bytes = (r->rows - 1) * stride + r->row_bytes;
	return bytes > MAX_BYTES ? 0 : bytes;
}

enum spyre_stop spyre_rows_check(const struct spyre_rows *r, u64 *dst_bytes, u64 *src_bytes)
{
	if (!r->rows || r->rows > MAX_ROWS || !r->row_bytes)
		return SPYRE_STOP_DMA_SHAPE;
	if (r->rows > 1 && (r->dst_stride < r->row_bytes || r->src_stride < r->row_bytes))
		return SPYRE_STOP_DMA_SHAPE;
	*dst_bytes = reach(r, r->dst_stride);
	*src_bytes = reach(r, r->src_stride);
	return *dst_bytes && *src_bytes ? SPYRE_STOP_NONE : SPYRE_STOP_DMA_RANGE;
}

bool spyre_rows_overlap(const struct spyre_rows *r, u64 dst, u64 src)
{
	u64 distance = dst > src ? dst - src : src - dst;
	u64 first = dst > src ? reach(r, r->src_stride) : reach(r, r->dst_stride);
	u64 phase;

	if (distance >= first)
		return false;
	if (r->rows == 1 || r->dst_stride != r->src_stride)
		return true;
	phase = distance % r->dst_stride;
	return phase < r->row_bytes || r->dst_stride - phase < r->row_bytes;
}

struct copy {
	const struct spyre_rows *rows;
	struct spyre_host *host;
	void *job;
	u32 stop;
	u8 *dst;
	const u8 *src;
	u64 bytes;		/* of all rows */
	u64 chunk;
};

/* Copies the bytes of one chunk, counted without the gaps between rows. */
static void copy_chunk(void *arg, u32 index, struct spyre_worker *worker)
{
	struct copy *c = arg;
	const struct spyre_rows *r = c->rows;
	u64 at = index * c->chunk;
	u64 left = spyre_min(c->chunk, c->bytes - at);
	u64 row = at / r->row_bytes, skip = at % r->row_bytes, n;

	if (c->host->relax)
		c->host->relax(c->host);
	if (c->host->should_stop && c->host->should_stop(c->host, c->job))
		spyre_stop_cancel(&c->stop);
	if (spyre_stopped(&c->stop))
		return;
	for (; left; left -= n, row++, skip = 0) {
		n = spyre_min(left, r->row_bytes - skip);
		memcpy(c->dst + row * r->dst_stride + skip, c->src + row * r->src_stride + skip, n);
	}
}

enum spyre_stop spyre_card_copy_rows(struct spyre_host *host, void *job,
				     struct spyre_worker *self, const struct spyre_rows *rows,
				     u8 *dst, const u8 *src)
{
	struct copy c = { .rows = rows, .host = host, .job = job, .dst = dst, .src = src };
	struct spyre_rows whole;
	u64 chunks;

	c.bytes = rows->rows * rows->row_bytes;
	if (rows->dst_stride == rows->row_bytes && rows->src_stride == rows->row_bytes) {
		whole = (struct spyre_rows) { .rows = 1, .row_bytes = c.bytes };
		c.rows = &whole;
	}
	c.chunk = c.rows->row_bytes < CHUNK / CHUNK_ROWS ? c.rows->row_bytes * CHUNK_ROWS : CHUNK;
	chunks = (c.bytes + c.chunk - 1) / c.chunk;
	if (chunks == 1)
		copy_chunk(&c, 0, self);
	else
		host->parallel(host, self, chunks, copy_chunk, &c);
	return spyre_stopped(&c.stop) ? SPYRE_STOP_CANCELLED : SPYRE_STOP_NONE;
}
