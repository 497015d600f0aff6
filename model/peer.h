/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Copies between the memories of two cards: rows of bytes with a pitch on each side.
 * Formats are not looked at, and any alignment is accepted.
 */
#ifndef SPYRE_MODEL_PEER_H
#define SPYRE_MODEL_PEER_H

#include "card.h"

/* Cards below one PCIe switch: 0 to 3 and 4 to 7. */
#define SPYRE_CARDS_PER_SWITCH 4u

/* The way between two memories. */
enum spyre_link {
	SPYRE_LINK_CARD = 0,	/* both are of one card: nothing crosses PCIe */
	SPYRE_LINK_SWITCH = 1,	/* from card to card, by one PCIe switch */
	SPYRE_LINK_HOST = 2,	/* through the memory of the host */
};

/* The way between the cards with these indices. */
enum spyre_link spyre_link_between(u32 a, u32 b);

/* Row i lies at i * dst_stride of the destination and at i * src_stride of the source. */
struct spyre_rows {
	u64 rows;		/* 1..2^31 */
	u64 row_bytes;
	u64 dst_stride;		/* bytes, at least row_bytes if there are several rows */
	u64 src_stride;
};

/*
 * Checks @rows and returns the distances from the first byte of each side to the end of
 * its last row, at most 16 GiB. Returns SPYRE_STOP_NONE, _DMA_SHAPE (no rows or bytes, or a
 * stride below the row) or _DMA_RANGE (too many bytes).
 */
enum spyre_stop spyre_rows_check(const struct spyre_rows *rows, u64 *dst_bytes, u64 *src_bytes);

/*
 * True if a row of the destination may overlap one of the source, for addresses in one
 * memory. If the strides differ, rows that interleave count as overlapping. The rows
 * have been checked.
 */
bool spyre_rows_overlap(const struct spyre_rows *rows, u64 dst, u64 src);

/*
 * Modelled cost on the card that runs the copy, which reads its own memory if it @sends
 * and writes it otherwise.
 */
void spyre_cost_rows(const struct spyre_rows *rows, enum spyre_link link, bool sends,
		     struct spyre_counters *cost);

/* Copies rows that have been checked and do not overlap. Returns _NONE or _CANCELLED. */
enum spyre_stop spyre_card_copy_rows(struct spyre_host *host, void *job,
				     struct spyre_worker *self, const struct spyre_rows *rows,
				     u8 *dst, const u8 *src);

#endif /* SPYRE_MODEL_PEER_H */
