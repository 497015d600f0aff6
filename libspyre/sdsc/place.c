// SPDX-License-Identifier: MIT
/* Where the elements of a tensor lie. */
#include "libspyre/sdsc/ir.h"

bool ir_place(const struct ir_sdsc *s, struct ir_tensor *t)
{
	uint64_t step = SPYRE_STICK_BYTES;

	for (uint32_t k = 0; k < t->num_order; k++) {
		uint32_t d = t->order[k];
		uint64_t n = 1, unit = d == t->stick ? t->lanes : 1;

		t->stride[d] = 0;
		if (t->scale[d] > 0) {
			/* A core's LX holds its own share only. */
			n = (uint64_t)(t->lx ? s->el[d] : s->size[d]);
			n = (n + unit - 1) / unit;
			t->stride[d] = step;
		}
		n += (uint64_t)t->gap[d] / unit;
		t->extent[d] = n;
		if (__builtin_mul_overflow(step, n, &step) || step > INT64_MAX)
			return false;
	}
	return true;
}
