// SPDX-License-Identifier: MIT
/*
 * Operands of operations that access a tensor at indices. The card checks each index while the
 * program runs: one that is out of range is a fault of the context, which a later call reports.
 */
#pragma once

#include <ATen/core/List.h>

#include "kernels.h"

namespace torch_spyre {

/* A list of indices with one tensor, and the dimension that it indexes. */
struct OneIndex {
	Tensor index;
	int64_t dim;
};

/* True if the card can access @table along @dim with @index. */
bool is_indexable(const Tensor &table, int64_t dim, const Tensor &index);

/*
 * Takes the only tensor of a list if it holds integers, and moves it to the card of @table; the
 * host checks indices that it has, with @what in the error. False for masks and several tensors.
 */
bool only_index(const Tensor &table, const c10::List<std::optional<Tensor>> &indices,
		const char *what, OneIndex *one);

/* The size of @table with that of @index in place of dimension @dim. */
c10::DimVector indexed_size(const Tensor &table, int64_t dim, const Tensor &index);

} // namespace torch_spyre
