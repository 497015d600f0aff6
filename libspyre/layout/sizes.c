// SPDX-License-Identifier: MIT
/* Compares device sizes that a bundle implies with those of a layout. */
#include "libspyre/layout/sizes.h"

/*
 * Ignores dimensions of size 1, which a bundle may leave out or add, and adjacent dimensions
 * that one side walks as a single one: [4, 8, 64] equals [32, 64].
 */
bool bundle_same_sizes(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		int64_t left, right;

		while (i < a_rank && a[i] == 1)
			i++;
		while (j < b_rank && b[j] == 1)
			j++;
		if (i == a_rank || j == b_rank)
			return i == a_rank && j == b_rank;
		left = a[i++];
		right = b[j++];
		if (left <= 0 || right <= 0)
			return false;
		if (left > right) {
			while (right < left && j < b_rank && b[j] > 0 && b[j] <= left / right)
				right *= b[j++];
		} else {
			while (left < right && i < a_rank && a[i] > 0 && a[i] <= right / left)
				left *= a[i++];
		}
		if (left != right)
			return false;
	}
}
