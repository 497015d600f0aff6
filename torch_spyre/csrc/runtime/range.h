// SPDX-License-Identifier: MIT
/*
 * The range of the numbers of an int64 tensor, which has 32 bits a number on the card. It is known
 * on the host when work is queued, without waiting for the numbers: the host has seen them in a
 * copy, or an operation bounds its result by those of its operands. Where the range of a sum
 * fits in 32 bits the card computes it exactly; everything else is left to the CPU.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace torch_spyre {

struct Range {
	/* All that the card can hold: what is known of memory whose writer says nothing. */
	int64_t least = std::numeric_limits<int32_t>::min();
	int64_t most = std::numeric_limits<int32_t>::max();

	bool fits() const
	{
		return least >= std::numeric_limits<int32_t>::min() &&
		       most <= std::numeric_limits<int32_t>::max();
	}
};

/* Ranges of results. Those of the operands fit, so that none of these exceeds 64 bits. */

inline Range united(Range a, Range b)
{
	return { std::min(a.least, b.least), std::max(a.most, b.most) };
}

inline Range negated(Range a)
{
	return { -a.most, -a.least };
}

inline Range sum_of(Range a, Range b)
{
	return { a.least + b.least, a.most + b.most };
}

inline Range product_of(Range a, Range b)
{
	auto [least, most] = std::minmax({ a.least * b.least, a.least * b.most, a.most * b.least,
					   a.most * b.most });

	return { least, most };
}

/* The sum of up to @count numbers, 0 of which is possible. */
inline Range total_of(Range a, int64_t count)
{
	Range counts = { 0, std::min(count, int64_t(std::numeric_limits<int32_t>::max()) + 1) };

	return product_of(a, counts);
}

} // namespace torch_spyre
