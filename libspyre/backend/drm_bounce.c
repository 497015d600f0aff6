// SPDX-License-Identifier: MIT
/*
 * Copies of memory that the kernel will not pin: RLIMIT_MEMLOCK is 8 MiB for
 * the plain user of many systems, and files cannot be pinned for writing. The
 * spans go through a host BO instead, which needs no pin. Copies to the device
 * need nothing after the submission; copies to the host wait for the card and
 * then store exactly the bytes that the descriptors write.
 */
#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"

#ifndef MADV_POPULATE_READ	/* Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define SPAN_ALIGN UINT64_C(64)

static bool is_bounced(const struct drm_spyre_cb *cb)
{
	return cb->type == DRM_SPYRE_CB_DMA && !cb->host_handle;
}

static uint64_t span_bytes(uint64_t bytes)
{
	return (bytes + SPAN_ALIGN - 1) & ~(SPAN_ALIGN - 1);
}

/* The kernel also refuses pins of unmapped memory; a bounce must not hide that error. */
static bool is_accessible(const struct drm_spyre_cb *cb, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = cb->host_addr & ~(page - 1);

	return !madvise((void *)start, cb->host_addr + cb->size - start,
			write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/* Bytes of all spans; 0 if there are none or if they have different directions. */
static uint64_t bounce_bytes(const struct spyre_drm_queue *queue,
			     const struct spyre_submission *submission, bool *out)
{
	uint64_t total = 0;
	uint32_t i;

	for (i = 0; i < submission->num_commands; i++) {
		const struct spyre_command *command = &submission->commands[i];
		bool write;

		if (!is_bounced(&queue->cbs[i]))
			continue;
		write = command->dma.desc->direction == SPYRE_DMA_D2H;
		/* One copy may read memory that another writes; only the pages keep that order. */
		if (total && write != *out)
			return 0;
		*out = write;
		if (queue->cbs[i].size > UINT64_MAX / SPYRE_DRM_MAX_CBS - SPAN_ALIGN ||
		    !is_accessible(&queue->cbs[i], write))
			return 0;
		total += span_bytes(queue->cbs[i].size);
	}
	return total;
}

/* Earlier work may still write the source, which is about to be read here. */
static bool wait_for_source(struct spyre_drm_queue *queue,
			    const struct spyre_submission *submission)
{
	uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_acquire);
	uint32_t i;

	if (submitted && spyre_drm_wait(&queue->base, submitted, INT64_MAX))
		return false;
	for (i = 0; i < submission->num_waits; i++)
		if (submission->waits[i].point &&
		    spyre_drm_wait(submission->waits[i].queue, submission->waits[i].point,
				   INT64_MAX))
			return false;
	return true;
}

bool spyre_drm_bounce_begin(struct spyre_drm_queue *queue,
			    const struct spyre_submission *submission, uint32_t refused,
			    struct spyre_drm_bounce *bounce)
{
	struct spyre_drm_card *card = spyre_drm_card(queue->base.card);
	uint64_t offset = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	void *map;
	uint32_t i;

	*bounce = (struct spyre_drm_bounce){ 0 };
	if (refused >= submission->num_commands || !is_bounced(&queue->cbs[refused]))
		return false;
	bounce->bytes = bounce_bytes(queue, submission, &bounce->out);
	if (!bounce->bytes)
		return false;
	bounce->bytes = (bounce->bytes + page - 1) & ~(page - 1);
	if (!bounce->out && !wait_for_source(queue, submission))
		return false;
	if (spyre_drm_host_bo(card, bounce->bytes, &map, &bounce->handle))
		return false;
	bounce->map = map;
	for (i = 0; i < submission->num_commands; i++) {
		struct drm_spyre_cb *cb = &queue->cbs[i];

		if (!is_bounced(cb))
			continue;
		if (!bounce->out)
			memcpy(bounce->map + offset, (const void *)(uintptr_t)cb->host_addr,
			       cb->size);
		cb->host_addr = 0;
		cb->host_handle = bounce->handle;
		cb->host_offset = offset;
		offset += span_bytes(cb->size);
	}
	return true;
}

/* A copy in pieces; adjacent pieces are merged into one memcpy(). */
struct pieces {
	uint8_t *to;
	const uint8_t *from;
	uint64_t span;		/* length of the source in bytes */
	uint64_t start, end;	/* the merged piece, not yet copied */
};

static void flush(struct pieces *pieces)
{
	memcpy(pieces->to + pieces->start, pieces->from + pieces->start,
	       pieces->end - pieces->start);
}

/* Adds @count elements of @size bytes from byte @at on, cut to the span. */
static void add_piece(struct pieces *pieces, uint64_t at, uint64_t count, uint64_t size)
{
	if (at > pieces->span)
		return;
	if (count > (pieces->span - at) / size)
		count = (pieces->span - at) / size;
	if (at != pieces->end) {
		flush(pieces);
		pieces->start = at;
	}
	pieces->end = at + count * size;
}

/* Number of lanes of the last dimension that are no padding at coordinate @c of the others. */
static uint64_t real_lanes(const struct spyre_dma_desc *desc, const uint32_t *c)
{
	const uint32_t last = desc->num_dims - 1;
	uint64_t lanes = desc->dim[last].count;
	uint32_t b, d;

	for (b = 0; b < desc->num_bounds; b++) {
		const struct spyre_dma_bound *bound = &desc->bound[b];
		uint64_t sum = 0, most;

		for (d = 0; d < last; d++)
			sum += c[d] * bound->coef[d];
		if (sum >= bound->limit)
			return 0;
		if (!bound->coef[last])
			continue;
		most = (bound->limit - sum - 1) / bound->coef[last] + 1;
		if (most < lanes)
			lanes = most;
	}
	return lanes;
}

/* Advances @c, which leaves out the last dimension; false after the last coordinate. */
static bool next_row(const struct spyre_dma_desc *desc, uint32_t *c)
{
	uint32_t d = desc->num_dims - 1;

	while (d--) {
		if (++c[d] < desc->dim[d].count)
			return true;
		c[d] = 0;
	}
	return false;
}

/* Copies the elements that the transfer has written; the kernel checked @desc. */
static void copy_out(const struct spyre_dma_desc *desc, struct pieces pieces)
{
	const uint64_t size = spyre_fmt_bytes(desc->host_format);
	const uint32_t last = desc->num_dims - 1;
	const uint64_t stride = desc->dim[last].host_stride;
	uint32_t c[SPYRE_DMA_MAX_DIMS] = { 0 }, d;
	uint64_t at, lanes;

	do {
		lanes = real_lanes(desc, c);
		at = desc->host_offset;
		for (d = 0; d < last; d++)
			at += c[d] * desc->dim[d].host_stride;
		if (stride == size)
			add_piece(&pieces, at, lanes, size);
		else
			for (; lanes--; at += stride)
				add_piece(&pieces, at, 1, size);
	} while (next_row(desc, c));
	flush(&pieces);
}

static void take_out(const struct spyre_drm_queue *queue,
		     const struct spyre_submission *submission,
		     const struct spyre_drm_bounce *bounce)
{
	uint32_t i;

	for (i = 0; i < submission->num_commands; i++) {
		const struct drm_spyre_cb *cb = &queue->cbs[i];
		const struct spyre_command *command = &submission->commands[i];

		if (cb->type != DRM_SPYRE_CB_DMA || cb->host_handle != bounce->handle ||
		    queue->base.results[submission->first_result + i].status)
			continue;
		copy_out(command->dma.desc, (struct pieces){
			.to = command->dma.host, .from = bounce->map + cb->host_offset,
			.span = cb->size,
		});
	}
}

void spyre_drm_bounce_end(struct spyre_drm_queue *queue,
			  const struct spyre_submission *submission,
			  struct spyre_drm_bounce *bounce, bool submitted)
{
	/* Later errors are reported through the results. */
	if (bounce->out && submitted &&
	    !spyre_drm_wait(&queue->base, submission->point, INT64_MAX))
		take_out(queue, submission, bounce);
	munmap(bounce->map, bounce->bytes);
	/* The job holds its own reference. */
	spyre_drm_gem_close(spyre_drm_card(queue->base.card), bounce->handle);
}
