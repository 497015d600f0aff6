// SPDX-License-Identifier: MIT
/* Where a view's elements are among those of its storage, and how they get there. */
#include "window.h"

#include <algorithm>

#include <ATen/core/Tensor.h>

#include "tensor.h"

namespace torch_spyre {

namespace {

constexpr int kNone = -1;
/* Cost of a piece, as sticks of a single transfer: its call, and finding its rows. */
constexpr int64_t kSticksOfPiece = 20;

/* The placement's dimensions longer than one, by descending step. */
struct Steps {
	int count = 0;
	int dim[SPYRE_MAX_RANK];
};

/* False if elements overlap, so that an offset does not identify one element. */
bool take_steps(const Placement &p, Steps *steps)
{
	for (size_t d = 0; d < p.size.size(); d++)
		if (p.size[d] > 1)
			steps->dim[steps->count++] = static_cast<int>(d);
	std::sort(steps->dim, steps->dim + steps->count, [&](int a, int b) {
		return p.stride[a] > p.stride[b];
	});
	for (int i = 0; i < steps->count; i++) {
		int d = steps->dim[i], next = i + 1 < steps->count ? steps->dim[i + 1] : kNone;

		if (p.stride[d] < (next < 0 ? 1 : p.stride[next] * p.size[next]))
			return false;
	}
	return true;
}

/* True if each device dimension is a host dimension or the tiles of the stick dimension. */
bool is_plain(const Placement &p)
{
	const spyre_layout &l = p.layout;
	int lane = l.dim_map[l.device_rank - 1];
	uint32_t seen = 0;
	bool tiled = false;

	for (uint32_t j = 0; j + 1 < l.device_rank; j++) {
		int d = l.dim_map[j];

		if (d == kNone ? l.device_size[j] != 1 : d == lane ? tiled : seen >> d & 1)
			return false;
		tiled |= d != kNone && d == lane;
		seen |= d < 0 ? 0 : 1u << d;
	}
	return lane == kNone || tiled;
}

int lane_dim(const Placement &p)
{
	return p.layout.dim_map[p.layout.device_rank - 1];
}

int64_t lanes(const Placement &p)
{
	return p.layout.device_size[p.layout.device_rank - 1];
}

void make_whole(Window &w)
{
	const Placement &p = w.placement();

	std::fill_n(w.start, SPYRE_MAX_RANK, 0);
	std::copy(p.size.begin(), p.size.end(), w.size);
	w.exact = false;
	w.pieces = 1;
}

/* Finds the indices of the view's first element; false if the placement lacks it. */
bool locate(const Placement &p, const Steps &steps, int64_t offset, int64_t *index)
{
	offset -= p.storage_offset;
	for (int i = 0; i < steps.count && offset >= 0; i++) {
		int d = steps.dim[i];

		index[d] = offset / p.stride[d];
		offset %= p.stride[d];
		if (index[d] >= p.size[d])
			return false;
	}
	return offset == 0;
}

/* The placement's dimension with the largest step that divides a stride. */
int walked_by(const Placement &p, const Steps &steps, int64_t stride)
{
	for (int i = 0; i < steps.count; i++)
		if (stride % p.stride[steps.dim[i]] == 0)
			return steps.dim[i];
	return kNone;
}

/* True if each view dimension walks one dimension of the placement and stays within it. */
bool walk(Window &w, const Steps &steps, const at::Tensor &view)
{
	const Placement &p = w.placement();

	for (int64_t v = 0; v < view.dim(); v++) {
		int64_t n = view.size(v), stride = view.stride(v);
		int d;

		if (n == 1)
			continue;
		w.exact = w.exact && stride;
		if (!stride)
			continue;
		d = walked_by(p, steps, stride);
		if (d < 0 || stride / p.stride[d] >= p.size[d])
			return false;
		w.exact = w.exact && stride == p.stride[d] && w.walker[d] < 0;
		w.walker[d] = static_cast<int8_t>(v);
		w.size[d] += (n - 1) * (stride / p.stride[d]);
		if (w.start[d] + w.size[d] > p.size[d])
			return false;
	}
	return true;
}

/* Makes the window of all elements from the view's first to its last. */
void cover(Window &w, const Steps &steps, const at::Tensor &view)
{
	const Placement &p = w.placement();
	int64_t first = view.storage_offset() - p.storage_offset, last = first;
	bool inside = true;

	for (int64_t v = 0; v < view.dim(); v++)
		last += (view.size(v) - 1) * view.stride(v);
	for (int i = 0; i < steps.count; i++) {
		int d = steps.dim[i];
		int64_t from = first / p.stride[d], to = last / p.stride[d], most = p.size[d] - 1;

		w.start[d] = inside ? from : 0;
		w.size[d] = (inside ? std::min(to, most) : most) - w.start[d] + 1;
		first %= p.stride[d];
		last %= p.stride[d];
		inside = inside && from == to;
	}
	w.exact = false;
}

/* The pieces of a window, by device dimension. */
struct Pieces {
	int64_t start[SPYRE_MAX_DEVICE_RANK], count[SPYRE_MAX_DEVICE_RANK];
	uint32_t within;	/* first dimension of which a piece has more than one */
};

bool is_tile(const spyre_layout &l, uint32_t j)
{
	return l.dim_map[j] >= 0 && l.dim_map[j] == l.dim_map[l.device_rank - 1];
}

Pieces pieces_of(const Window &w)
{
	const Placement &p = w.placement();
	const spyre_layout &l = p.layout;
	int64_t stick = lanes(p);
	Pieces pieces;

	for (uint32_t j = 0; j + 1 < l.device_rank; j++) {
		int d = l.dim_map[j];
		int64_t first = d < 0 ? 0 : w.start[d], end = d < 0 ? 1 : first + w.size[d];

		if (is_tile(l, j)) {
			first /= stick;
			end = (end + stick - 1) / stick;
		}
		pieces.start[j] = first;
		pieces.count[j] = end - first;
	}
	pieces.within = l.device_rank - 2;
	while (pieces.within && pieces.count[pieces.within] == l.device_size[pieces.within])
		pieces.within--;
	return pieces;
}

int64_t count_pieces(const Window &w)
{
	Pieces pieces = pieces_of(w);
	int64_t count = 1;

	for (uint32_t j = 0; j < pieces.within; j++)
		count *= pieces.count[j];
	return count;
}

/* A piece, which is one copy of libspyre. */
struct Piece {
	spyre_devptr address;
	spyre_layout layout;
	spyre_host_tensor host;
};

/* Piece @index: one step of the outer dimensions and all of the inner ones. */
Piece piece_of(const Window &w, const Pieces &pieces, int64_t index, void *data,
	       spyre_format format, const int64_t *stride)
{
	const Placement &p = w.placement();
	int64_t stick = lanes(p), step = SPYRE_STICK;
	Piece piece = { w.block->address, p.layout, {} };
	spyre_host_tensor &host = piece.host;

	host.data = data;
	host.format = format;
	host.rank = static_cast<uint32_t>(p.size.size());
	std::copy_n(w.size, host.rank, host.size);
	std::copy_n(stride, host.rank, host.stride);
	for (uint32_t j = p.layout.device_rank - 1; j-- > 0;) {
		int64_t at = pieces.start[j], count = pieces.count[j];
		int d = p.layout.dim_map[j];

		if (j < pieces.within) {
			at += index % count;
			index /= count;
			count = 1;
		}
		piece.address += static_cast<uint64_t>(at * step);
		step *= p.layout.device_size[j];
		piece.layout.device_size[j] = count;
		if (d < 0)
			continue;
		if (is_tile(p.layout, j)) {
			at *= stick;
			count = std::min(count * stick, w.start[d] + w.size[d] - at);
		}
		host.size[d] = count;
		host.storage_offset += (at - w.start[d]) * stride[d];
	}
	return piece;
}

template <typename F>
void each_piece(const Window &w, void *data, spyre_format format, const int64_t *stride, F &&copy)
{
	if (!w.placement().layout.mapped) {
		Piece piece{ w.block->address, w.placement().layout, {} };

		piece.host.data = data;
		piece.host.format = format;
		piece.host.rank = static_cast<uint32_t>(w.placement().size.size());
		std::copy_n(w.size, piece.host.rank, piece.host.size);
		std::copy_n(stride, piece.host.rank, piece.host.stride);
		copy(piece);
		return;
	}
	Pieces pieces = pieces_of(w);

	for (int64_t i = 0; i < w.pieces; i++)
		copy(piece_of(w, pieces, i, data, format, stride));
}

} // namespace

bool Window::is_whole() const
{
	const Placement &p = placement();

	return std::equal(p.size.begin(), p.size.end(), size);
}

bool Window::at_stick() const
{
	int d = lane_dim(placement());

	return d < 0 || start[d] % lanes(placement()) == 0;
}

bool Window::whole_sticks() const
{
	int d = lane_dim(placement());

	return d < 0 || (at_stick() && (size[d] % lanes(placement()) == 0 ||
					start[d] + size[d] == placement().size[d]));
}

void Window::round_to_sticks()
{
	const Placement &p = placement();
	int d = lane_dim(p);

	if (d < 0 || whole_sticks())
		return;
	int64_t stick = lanes(p), end = start[d] + size[d];

	start[d] -= start[d] % stick;
	size[d] = std::min((end + stick - 1) / stick * stick, p.size[d]) - start[d];
	exact = false;
}

Window window_of(const at::Tensor &view)
{
	Window w{};
	Steps steps;

	w.block = placed_block(view);
	w.view = &view;
	const Placement &p = w.placement();
	std::fill_n(w.walker, SPYRE_MAX_RANK, static_cast<int8_t>(kNone));
	make_whole(w);
	if (view.scalar_type() != p.dtype || !p.layout.mapped || !is_plain(p) ||
	    !take_steps(p, &steps) || !locate(p, steps, view.storage_offset(), w.start)) {
		make_whole(w);
		return w;
	}
	std::fill_n(w.size, SPYRE_MAX_RANK, 1);
	w.exact = true;
	w.walked = walk(w, steps, view);
	if (!w.walked)
		cover(w, steps, view);
	w.pieces = count_pieces(w);
	if (w.pieces * kSticksOfPiece >
	    static_cast<int64_t>(spyre_layout_bytes(&p.layout) / SPYRE_STICK) + kSticksOfPiece)
		make_whole(w);
	return w;
}

Packed::Packed(const Window &w)
{
	const Placement &p = w.placement();
	const at::Tensor &view = *w.view;
	int64_t first[SPYRE_MAX_RANK] = {};
	Steps steps;

	/* If elements cannot be identified, the window has the order of the storage. */
	if (!w.walked) {
		std::copy(p.stride.begin(), p.stride.end(), stride);
		view_stride = view.strides();
		view_offset = view.storage_offset() - p.storage_offset;
		for (size_t d = 0; d < p.size.size(); d++) {
			view_offset -= w.start[d] * p.stride[d];
			elements += (w.size[d] - 1) * p.stride[d];
		}
		return;
	}
	take_steps(p, &steps);
	locate(p, steps, view.storage_offset(), first);
	std::fill_n(stride, SPYRE_MAX_RANK, 1);
	for (int i = steps.count; i-- > 0;) {
		int d = steps.dim[i];

		stride[d] = elements;
		elements *= w.size[d];
		view_offset += (first[d] - w.start[d]) * stride[d];
	}
	for (int64_t v = 0; v < view.dim(); v++) {
		int d = walked_by(p, steps, view.stride(v));

		view_stride.push_back(d < 0 || view.size(v) == 1 ? 0 :
				      view.stride(v) / p.stride[d] * stride[d]);
	}
}

void read_window(spyre_stream *stream, void *data, spyre_format format, const int64_t *stride,
		 const Window &window)
{
	each_piece(window, data, format, stride, [&](const Piece &piece) {
		check(spyre_copy_d2h_async(stream, &piece.host, piece.address, &piece.layout),
		      "copy from the device");
	});
}

void write_window(spyre_stream *stream, const Window &window, const void *data,
		  spyre_format format, const int64_t *stride)
{
	each_piece(window, const_cast<void *>(data), format, stride, [&](const Piece &piece) {
		check(spyre_copy_h2d_async(stream, piece.address, &piece.layout, &piece.host),
		      "copy to the device");
	});
}

} // namespace torch_spyre
