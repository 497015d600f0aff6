// SPDX-License-Identifier: MIT
/* ReStickifyOpHBM: the same tensor with sticks along another dimension. */
#include <string.h>

#include "libspyre/sdsc/lower.h"

#define TILE 64u

static void add_loop(struct spyre_instr *in, struct spyre_view *view, uint32_t *n,
		     uint64_t count, uint64_t out_stride, uint64_t in_stride)
{
	if (count < 2)
		return;
	in->count[*n] = (uint32_t)count;
	view[0].stride[*n] = out_stride;
	view[1].stride[*n] = in_stride;
	(*n)++;
}

spyre_status lower_restickify(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output], *src = &s->tensor[s->input[0]];
	uint32_t lane = src->stick, row = out->stick, loops = 0;
	struct spyre_instr in = { .opcode = SPYRE_OP_RESTICK, .num_dims = 6, .num_views = 2,
				  .lanes = TILE, .count = { 1, 1, 1, 1, TILE, TILE } };
	struct spyre_view view[2];
	spyre_status status = SPYRE_SUCCESS;

	if (lane == row)
		return lower_pointwise(l, SPYRE_FUNC_IDENTITY);
	if (src->format != out->format || src->word != 2)
		return lower_unsupported(l, "only 16-bit formats, the same on both sides");
	if (s->el[lane] % TILE || s->el[row] % TILE)
		return lower_unsupported(l, "a core's share of %s x %s is %lld x %lld, not tiles of 64 x 64",
					 s->dim[row], s->dim[lane], (long long)s->el[row],
					 (long long)s->el[lane]);
	memset(view, 0, sizeof(view));
	for (uint32_t d = 0; d < s->num_dims; d++) {
		uint64_t count = (uint64_t)s->el[d];

		if (count > 1 && (!lower_varies(src, d) || !lower_varies(out, d)))
			return lower_unsupported(l, "broadcast along %s", s->dim[d]);
		if (d != lane && d != row)
			add_loop(&in, view, &loops, count, out->stride[d], src->stride[d]);
		else if (d == lane)
			add_loop(&in, view, &loops, count / TILE, TILE * out->stride[d],
				 src->stride[d]);
		else
			add_loop(&in, view, &loops, count / TILE, out->stride[d],
				 TILE * src->stride[d]);
		if (loops > 4 || count > SPYRE_MAX_COUNT)
			return lower_unsupported(l, "more than 4 loops around the tiles, or %lld points of %s",
						 (long long)count, s->dim[d]);
	}
	/* out[j][i] = in[i][j]: i along the output's sticks, j along the input's. */
	view[1].stride[4] = src->stride[row];
	view[0].stride[5] = out->stride[lane];
	for (uint32_t c = 0; c < s->num_cores && status == SPYRE_SUCCESS; c++) {
		struct spyre_view own[2];

		lower_view(&own[0], out, &l->address[s->output][c]);
		lower_view(&own[1], src, &l->address[s->input[0]][c]);
		memcpy(own[0].stride, view[0].stride, sizeof(own[0].stride));
		memcpy(own[1].stride, view[1].stride, sizeof(own[1].stride));
		status = encoder_stream(l->encoder, s->core[c]);
		if (status == SPYRE_SUCCESS)
			status = encoder_instr(l->encoder, &in, own);
	}
	return status;
}
