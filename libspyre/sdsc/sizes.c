// SPDX-License-Identifier: MIT
/* Device sizes as a bundle implies them and as a layout has them. */
#include "libspyre/sdsc/sizes.h"

/* Equal but for dimensions of size 1, which a bundle may leave out or add. */
bool bundle_same_sizes(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		while (i < a_rank && a[i] == 1)
			i++;
		while (j < b_rank && b[j] == 1)
			j++;
		if (i == a_rank || j == b_rank)
			return i == a_rank && j == b_rank;
		if (a[i++] != b[j++])
			return false;
	}
}
