// SPDX-License-Identifier: MIT
/*
 * The part of a storage that contains a view: a box of the placement's host tensor.
 * Copies between host and card move the box instead of the storage, with one transfer
 * per contiguous piece on the card.
 */
#pragma once

#include <c10/util/DimVector.h>

#include "runtime/spyre.h"

namespace torch_spyre {

struct Window {
	const Block *block;
	const at::Tensor *view;
	/* By dimension of the placement. */
	int64_t start[SPYRE_MAX_RANK], size[SPYRE_MAX_RANK];
	/* View dimension that walks each dimension, -1 for size 1. */
	int8_t walker[SPYRE_MAX_RANK];
	/* Each view dimension walks one of the placement's by whole steps. */
	bool walked;
	/* The view covers the window, possibly with permuted dimensions. */
	bool exact;
	/* Number of contiguous pieces on the card, which are one transfer each. */
	int64_t pieces;
	/* Beyond this number a kernel is faster, if it supports the copy. */
	static constexpr int64_t kFewPieces = 64;

	const Placement &placement() const { return *block->placement; }
	bool is_whole() const;
	/* True if it begins at a stick, which the DMA engine requires. */
	bool at_stick() const;
	/* True if writing it writes no other elements. */
	bool whole_sticks() const;
	/* Extends the window to whole sticks. */
	void round_to_sticks();
};

/* Strides of a window's elements in packed memory, and of the view among them. */
struct Packed {
	explicit Packed(const Window &window);

	int64_t elements = 1;
	int64_t stride[SPYRE_MAX_RANK];	/* by dimension of the placement */
	c10::DimVector view_stride;
	int64_t view_offset = 0;
};

/* The smallest window of a view that the DMA engine can address, at worst the whole storage.
 * The caller keeps @view while it uses the window. */
Window window_of(const at::Tensor &view);

/* Copies asynchronously between the card and elements at @data in @format, with a @stride
 * for each dimension of the placement. @window begins at a stick. */
void read_window(spyre_stream *stream, void *data, spyre_format format, const int64_t *stride,
		 const Window &window);
void write_window(spyre_stream *stream, const Window &window, const void *data,
		  spyre_format format, const int64_t *stride);

} // namespace torch_spyre
