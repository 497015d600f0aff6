// SPDX-License-Identifier: MIT
/*
 * The part of a storage that a view reaches into: a box of the placement's
 * host tensor. Copies between host and card move the box, not the storage; what
 * of it lies in one piece on the card is one transfer.
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
	/* The view's dimension that walks it, -1 for one of one element. */
	int8_t walker[SPYRE_MAX_RANK];
	/* The view's dimensions each walk one of the placement's, by whole steps. */
	bool walked;
	/* The view is the window, its dimensions perhaps in another order. */
	bool exact;
	/* On the card, one transfer each. */
	int64_t pieces;
	/* Beyond these a kernel is quicker, where one does it. */
	static constexpr int64_t kFewPieces = 64;

	const Placement &placement() const { return *block->placement; }
	bool is_whole() const;
	/* Begins with a stick, as everything that the DMA engine moves. */
	bool at_stick() const;
	/* Writing it writes no other elements. */
	bool whole_sticks() const;
	/* Elements that share a stick with the view's become part of it. */
	void round_to_sticks();
};

/* How a window's elements lie in memory of their own, and the view among them. */
struct Packed {
	explicit Packed(const Window &window);

	int64_t elements = 1;
	int64_t stride[SPYRE_MAX_RANK];	/* by dimension of the placement */
	c10::DimVector view_stride;
	int64_t view_offset = 0;
};

/* The smallest window that the DMA engine can name, the whole storage at worst.
 * @view stays where it is while the window is in use. */
Window window_of(const at::Tensor &view);

/* Between the card and elements at @data in @format, @stride apart, one for each
 * dimension of the placement; asynchronous. @window begins with a stick. */
void read_window(spyre_stream *stream, void *data, spyre_format format, const int64_t *stride,
		 const Window &window);
void write_window(spyre_stream *stream, const Window &window, const void *data,
		  spyre_format format, const int64_t *stride);

} // namespace torch_spyre
