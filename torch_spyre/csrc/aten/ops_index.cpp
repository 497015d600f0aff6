// SPDX-License-Identifier: MIT
/* Rows by their places: the card copies whole runs of them, the host reads the places only. */
#include "kernels.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/index_copy_ops.h>

namespace torch_spyre {

namespace {

/* Beyond this number of runs one copy through the host is faster. */
constexpr int64_t kMostRuns = 64;

struct Run {
	int64_t from, to, length;
};

/* Finds runs of consecutive indices; false if they are too many. */
bool find_runs(const Tensor &index, int64_t limit, std::vector<Run> *runs)
{
	Tensor host = index.reshape({ -1 }).cpu().to(at::kLong);
	const int64_t *place = host.const_data_ptr<int64_t>();

	for (int64_t i = 0; i < host.numel(); i++) {
		TORCH_CHECK_INDEX(place[i] >= 0 && place[i] < limit,
				  "index_copy_(): index ", place[i], " is out of bounds for a size of ",
				  limit);
		if (!runs->empty() && runs->back().to + runs->back().length == place[i])
			runs->back().length++;
		else
			runs->push_back({ i, place[i], 1 });
	}
	return static_cast<int64_t>(runs->size()) <= kMostRuns;
}

/* Copies only the rows, as for the update of key-value caches. */
Tensor &index_copy_in_place(Tensor &self, int64_t dim, const Tensor &index, const Tensor &source)
{
	std::vector<Run> runs;

	if (!self.dim() || source.dim() != self.dim() || self.dtype() != source.dtype() ||
	    index.dim() > 1 || self.is_alias_of(source) || !source.is_privateuseone())
		return on_cpu<at::_ops::index_copy_>(self, dim, index, source);
	dim = at::maybe_wrap_dim(dim, self.dim());
	for (int64_t d = 0; d < self.dim(); d++)
		if (source.size(d) != (d == dim ? index.numel() : self.size(d)))
			return on_cpu<at::_ops::index_copy_>(self, dim, index, source);
	if (!find_runs(index, self.size(dim), &runs))
		return on_cpu<at::_ops::index_copy_>(self, dim, index, source);
	for (const Run &run : runs)
		torch_spyre::copy(self.narrow(dim, run.to, run.length),
				  source.narrow(dim, run.from, run.length), true);
	return self;
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("index_copy_", TORCH_FN(index_copy_in_place));
}

} // namespace torch_spyre
