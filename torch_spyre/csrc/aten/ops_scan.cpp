// SPDX-License-Identifier: MIT
/*
 * Running sums and products, and products of all numbers along a dimension. The dimension is laid
 * out in rows. In each round of a scan every row takes in the row 1, 2, 4, ... before it, so
 * that ceil(log2 n) launches do for n rows; docs/numerics.md has the order. Each row is one sum of
 * two, which neither infinities nor NaN of later rows can reach, as they would in a product with
 * a triangular matrix.
 */
#include "scan.h"

#include <cmath>

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/prod_ops.h>

#include "bounds.h"

namespace torch_spyre {

namespace {

/* Tables of more bytes on the card are left to the CPU. */
constexpr int64_t kMostBytes = int64_t(256) << 20;

/* The range of a product of up to @count numbers of @range. */
Range range_of_power(Range range, int64_t count)
{
	double size = static_cast<double>(std::max(-range.least, range.most));

	if (range.least >= 0 && range.most <= 1)
		return { 0, 1 };
	size = std::pow(std::max(size, 1.0), static_cast<double>(count));
	if (size > INT32_MAX)
		return { INT64_MIN, INT64_MAX };
	return { range.least < 0 ? -static_cast<int64_t>(size) : 0, static_cast<int64_t>(size) };
}

/* True if the card computes with @self as numbers of @dtype, with results of @range. */
bool can_compute(const Tensor &self, at::ScalarType dtype, Range range)
{
	if (!self.is_privateuseone() || self.dim() > SPYRE_MAX_RANK || self.is_complex())
		return false;
	if (is_float(dtype))
		return is_float(self.scalar_type()) || self.scalar_type() == at::kBool;
	if (!c10::isIntegralType(self.scalar_type(), true))
		return false;
	return dtype == at::kInt ? range_of(self).fits() : dtype == at::kLong && range.fits();
}

/* @self as a matrix of numbers of @dtype with dimension @dim as its rows. */
Tensor in_rows(const Tensor &self, int64_t dim, at::ScalarType dtype)
{
	Tensor numbers = self.scalar_type() == dtype ? self : self.to(dtype);

	return numbers.movedim(dim, 0).reshape({ self.size(dim), -1 });
}

/* The opposite, for as many rows as there are. */
Tensor from_rows(const Tensor &rows, const Tensor &self, int64_t dim)
{
	c10::DimVector size = { rows.size(0) };

	for (int64_t d = 0; d < self.dim(); d++)
		if (d != dim)
			size.push_back(self.size(d));
	return rows.reshape(size).movedim(0, dim);
}

/* Each round reads one buffer and writes the other; their first rows are neutral. */
Tensor scanned(bool product, const Tensor &rows)
{
	int64_t count = rows.size(0), before = 1;

	while (before * 2 < count)
		before *= 2;
	Tensor buffer[2];
	for (Tensor &b : buffer)
		b = at::full({ before + count, rows.size(1) }, product ? 1 : 0, rows.options());
	torch_spyre::copy(buffer[0].narrow(0, before, count), rows, true);

	unsigned from = 0;
	for (int64_t step = 1; step < count; step *= 2, from = !from) {
		Tensor to = buffer[!from].narrow(0, before, count);
		Tensor own = buffer[from].narrow(0, before, count);
		Tensor other = buffer[from].narrow(0, before - step, count);

		if (product)
			at::mul_out(to, other, own);
		else
			at::add_out(to, other, own);
	}
	return buffer[from].narrow(0, before, count);
}

/* Multiplies the second half of the rows to the first until one row is left. */
Tensor multiplied(Tensor rows)
{
	while (rows.size(0) > 1) {
		int64_t half = rows.size(0) / 2;
		Tensor next = at::mul(rows.narrow(0, 0, half), rows.narrow(0, half, half));

		if (rows.size(0) % 2)
			next.narrow(0, 0, 1).mul_(rows.narrow(0, 2 * half, 1));
		rows = next;
	}
	return rows;
}

Tensor stored(const Tensor &result, at::ScalarType dtype)
{
	return result.scalar_type() == dtype ? result : result.to(dtype);
}

template <bool product, class Out>
Tensor &scan_out(const Tensor &self, int64_t dim, std::optional<at::ScalarType> dtype, Tensor &out)
{
	Tensor result;

	if (!running(product, self, dim, out.scalar_type(), result))
		return on_cpu<Out>(self, dim, dtype, out);
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

/* The dtype of a product of @self; integers and bools give int64. */
at::ScalarType product_dtype(const Tensor &self, std::optional<at::ScalarType> dtype)
{
	return dtype.value_or(c10::isIntegralType(self.scalar_type(), true) ? at::kLong :
									     self.scalar_type());
}

bool run_product(const Tensor &self, int64_t dim, bool keep, at::ScalarType dtype, Tensor &result)
{
	if (!self.numel() || !self.dim())
		return false;
	dim = at::maybe_wrap_dim(dim, self.dim());
	Range range = range_of_power(range_of(self), self.size(dim));
	if (!can_compute(self, dtype, range))
		return false;
	Tensor rows = multiplied(in_rows(self, dim, computed_dtype(dtype)));

	result = stored(from_rows(rows, self, dim), dtype);
	if (!keep)
		result = result.squeeze(dim);
	return true;
}

Tensor &product_out(const Tensor &self, int64_t dim, bool keep,
		    std::optional<at::ScalarType> dtype, Tensor &out)
{
	Tensor result;

	if (!run_product(self, dim, keep, out.scalar_type(), result))
		return on_cpu<at::_ops::prod_int_out>(self, dim, keep, dtype, out);
	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

Tensor product(const Tensor &self, std::optional<at::ScalarType> dtype)
{
	Tensor result;

	return run_product(self.reshape({ -1 }), 0, false, product_dtype(self, dtype), result) ?
		       result : on_cpu<at::_ops::prod>(self, dtype);
}

} // namespace

Tensor counted(int64_t first, int64_t count, c10::DeviceIndex device)
{
	Tensor host = at::arange(first, first + count, at::kInt).pin_memory();
	Tensor card = empty({ count }, at::kInt, device);

	torch_spyre::copy(card, host, true);
	return card;
}

bool running(bool product, const Tensor &self, int64_t dim, at::ScalarType dtype, Tensor &result)
{
	if (!self.dim() || !self.numel())
		return false;
	dim = at::maybe_wrap_dim(dim, self.dim());
	int64_t count = self.size(dim), sticks = (self.numel() / count + 31) / 32;
	Range range = product ? range_of_power(range_of(self), count) :
				total_of(range_of(self), count);

	if (!can_compute(self, dtype, range) || count * sticks > kMostBytes / (2 * SPYRE_STICK))
		return false;
	Tensor rows = scanned(product, in_rows(self, dim, computed_dtype(dtype)));

	result = stored(from_rows(rows, self, dim), dtype);
	/* The rounds count every element several times. */
	if (dtype == at::kLong) {
		result = dense_copy(result);
		set_range(result, range, range);
	}
	return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("cumsum.out", TORCH_FN((scan_out<false, at::_ops::cumsum_out>)));
	m.impl("cumprod.out", TORCH_FN((scan_out<true, at::_ops::cumprod_out>)));
	m.impl("prod.int_out", TORCH_FN(product_out));
	m.impl("prod", TORCH_FN(product));
}

} // namespace torch_spyre
