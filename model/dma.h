/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * DMA engine: moves tensors between host memory and LPDDR5 with stick tiling and
 * format conversion.
 *
 * The device side is dense: coordinate c (num_dims entries, the last one within the
 * stick) lives at its row-major position in count[]. The host side is strided:
 * host_offset + sum c[i] * dim[i].host_stride bytes. Bounds are linear: a
 * coordinate is valid where sum c[i] * coef[i] < limit holds for every bound;
 * otherwise it is padding, which H2D fills with zeros and D2H skips. The engine
 * adds a bound of its own: no access leaves the host span.
 *
 * A box (SPYRE_DMA_BOX) has strides on both sides and no bounds: it moves every
 * coordinate, and leaves all other bytes on either side as they are.
 */
#ifndef SPYRE_MODEL_DMA_H
#define SPYRE_MODEL_DMA_H

#include "program.h"

#define SPYRE_DMA_MAX_DIMS 8u
#define SPYRE_DMA_MAX_BOUNDS 8u

enum spyre_dma_dir {
	SPYRE_DMA_H2D = 0,
	SPYRE_DMA_D2H = 1,
};

#define SPYRE_DMA_BOX 1u	/* flags: the device side is strided, too */

struct spyre_dma_dim {
	u32 count;		/* 1..2^31, last dim: 1..256 lanes unless it is a box */
	u32 reserved;
	u64 host_stride;	/* bytes; 0 repeats the host element */
};

struct spyre_dma_bound {
	u64 limit;
	u64 coef[SPYRE_DMA_MAX_DIMS];
};

/* Device side of a box. */
struct spyre_dma_box {
	u64 device_offset;	/* bytes from the device address to coordinate 0 */
	u64 device_stride[SPYRE_DMA_MAX_DIMS];	/* bytes */
};

struct spyre_dma_desc {
	u8 direction;		/* enum spyre_dma_dir */
	u8 host_format;		/* enum spyre_fmt */
	u8 device_format;
	u8 num_dims;		/* 1..8 */
	u8 num_bounds;		/* 0..8 */
	u8 flags;		/* SPYRE_DMA_* */
	u8 reserved[2];
	u64 host_offset;	/* bytes from the start of the host span */
	struct spyre_dma_dim dim[SPYRE_DMA_MAX_DIMS];
	union {
		struct spyre_dma_bound bound[SPYRE_DMA_MAX_BOUNDS];
		struct spyre_dma_box box;	/* the rest is 0 */
	};
};

static_assert(sizeof(struct spyre_dma_desc) == 16 + 8 * 16 + 8 * 72,
	      "DMA descriptor is 720 bytes");

/*
 * Checks a descriptor and returns its device bytes in @device_bytes and its cost in
 * @cost (may be NULL). The device bytes of a box reach from the device address to the
 * end of its furthest element; its cost is that of the elements, and at least a cycle for
 * each row that is contiguous on the device. A dim that writes one
 * element several times, because its stride in the destination is 0, is refused unless
 * its coordinate is bounded to 0. Returns SPYRE_STOP_NONE or the reason.
 */
enum spyre_stop spyre_dma_check(const struct spyre_dma_desc *desc,
				u64 *device_bytes, struct spyre_counters *cost);

/*
 * Checks that a box, which spyre_dma_check() has accepted, lies in a host span of
 * @host_bytes. All other transfers may exceed theirs, since that part is padding.
 * Returns SPYRE_STOP_NONE or SPYRE_STOP_DMA_RANGE.
 */
enum spyre_stop spyre_dma_check_host(const struct spyre_dma_desc *desc, u64 host_bytes);

#endif /* SPYRE_MODEL_DMA_H */
