// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Fills and copies within LPDDR5.
 */
#include "core.h"

#define CHUNK (1u << 20)

struct linear {
	struct spyre_host *host;
	void *job;
	u32 stop;
	u8 *dst;
	const u8 *src;
	u64 bytes;
	u8 pattern[16];
	u32 pattern_bytes;
};

/* Between chunks: yields, and returns false to stop. */
static bool go_on(struct linear *l)
{
	if (l->host->relax)
		l->host->relax(l->host);
	if (l->host->should_stop && l->host->should_stop(l->host, l->job))
		spyre_stop_cancel(&l->stop);
	return !spyre_stopped(&l->stop);
}

/* Chunks start at multiples of 16 bytes, so the pattern is in phase. */
static void fill_chunk(void *arg, u32 index, struct spyre_worker *worker)
{
	struct linear *l = arg;
	u8 *p = l->dst + (u64)index * CHUNK;
	u64 bytes = spyre_min(CHUNK, l->bytes - (u64)index * CHUNK);
	u64 done, n;

	if (!go_on(l))
		return;
	if (l->pattern_bytes == 1) {
		memset(p, l->pattern[0], bytes);
		return;
	}
	/* Writes the first 16 bytes, doubles them up to 4 KiB, then copies pages. */
	done = spyre_min(16, bytes);
	memcpy(p, l->pattern, done);
	for (; done < bytes; done += n) {
		n = spyre_min(bytes - done, done < 4096 ? done : 4096);
		memcpy(p + done, p, n);
	}
}

static void copy_chunk(void *arg, u32 index, struct spyre_worker *worker)
{
	struct linear *l = arg;
	u64 at = (u64)index * CHUNK;

	if (go_on(l))
		memcpy(l->dst + at, l->src + at, spyre_min(CHUNK, l->bytes - at));
}

/* Copies overlapping ranges in order, starting at the end that is not overwritten. */
static void copy_overlapping(struct linear *l)
{
	bool up = l->dst > l->src;
	u64 done, n;

	for (done = 0; done < l->bytes && go_on(l); done += n) {
		u64 at = done;

		n = spyre_min(CHUNK, l->bytes - done);
		if (up)
			at = l->bytes - done - n;
		memmove(l->dst + at, l->src + at, n);
	}
}

static void run_chunks(struct linear *l, struct spyre_worker *self, spyre_work_fn fn)
{
	u64 chunks = (l->bytes + CHUNK - 1) / CHUNK;

	if (chunks == 1)
		fn(l, 0, self);
	else if (chunks)
		l->host->parallel(l->host, self, chunks, fn, l);
}

enum spyre_stop spyre_card_fill(struct spyre_host *host, void *job,
				struct spyre_worker *self, u8 *device, u64 bytes,
				const void *pattern, u32 pattern_bytes)
{
	struct linear l = { .host = host, .job = job, .dst = device, .bytes = bytes };
	u32 i;

	l.pattern_bytes = pattern_bytes;
	for (i = 0; i < 16; i++)
		l.pattern[i] = ((const u8 *)pattern)[i % pattern_bytes];
	run_chunks(&l, self, fill_chunk);
	return spyre_stopped(&l.stop) ? SPYRE_STOP_CANCELLED : SPYRE_STOP_NONE;
}

enum spyre_stop spyre_card_copy(struct spyre_host *host, void *job,
				struct spyre_worker *self, u8 *dst,
				const u8 *src, u64 bytes)
{
	struct linear l = { .host = host, .job = job, .dst = dst, .src = src, .bytes = bytes };

	if (dst < src + bytes && src < dst + bytes)
		copy_overlapping(&l);
	else
		run_chunks(&l, self, copy_chunk);
	return spyre_stopped(&l.stop) ? SPYRE_STOP_CANCELLED : SPYRE_STOP_NONE;
}
