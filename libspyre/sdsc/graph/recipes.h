/* SPDX-License-Identifier: MIT */
/* Operations that are composed of others, for the table of ops.c. Internal. */
#ifndef SPYRE_SDSC_RECIPES_H
#define SPYRE_SDSC_RECIPES_H

#include "libspyre/sdsc/graph/graph.h"

/* Each adds the steps of call->op and sets *call->out to the result. */

/* attention.c */
spyre_status build_attention(const struct build_call *call);

/* cast.c */
spyre_status build_cast(const struct build_call *call);

/* fill.c */
spyre_status build_fill(const struct build_call *call);

/* index.c */
spyre_status build_index(const struct build_call *call);

/* index_matmul.c */
spyre_status build_index_matmul(const struct build_call *call);

/* math.c */
spyre_status build_alpha(const struct build_call *call);
spyre_status build_where(const struct build_call *call);
spyre_status build_ceil(const struct build_call *call);
spyre_status build_sign(const struct build_call *call);
spyre_status build_square(const struct build_call *call);
spyre_status build_pow(const struct build_call *call);
spyre_status build_logical_not(const struct build_call *call);
spyre_status build_logical(const struct build_call *call);
spyre_status build_trunc(const struct build_call *call);
spyre_status build_round(const struct build_call *call);
spyre_status build_mm(const struct build_call *call);
spyre_status build_gelu_tanh(const struct build_call *call);
spyre_status build_batch_norm(const struct build_call *call);

/* matmul.c */
spyre_status build_matmul(const struct build_call *call);
/* Adds a product of views [.., M, K] and [.., K, N]; adapts both factors. */
spyre_status build_product(const struct build_call *call, struct build_use *use);
/* Give factors [.., M, K] and [.., K, N] sticks along the last dim and zeros beyond K. */
spyre_status build_first_factor(spyre_sdsc_graph *graph, struct build_use *use);
spyre_status build_second_factor(spyre_sdsc_graph *graph, struct build_use *use);

/* quant.c */
spyre_status build_quantise(const struct build_call *call);
spyre_status build_scaled_mm(const struct build_call *call);

/* recipes.c */
spyre_status build_softmax(const struct build_call *call);
spyre_status build_log_softmax(const struct build_call *call);
spyre_status build_layer_norm(const struct build_call *call);
spyre_status build_rms_norm(const struct build_call *call);
spyre_status build_swiglu(const struct build_call *call);
spyre_status build_linear(const struct build_call *call);
spyre_status build_addmm(const struct build_call *call);
/* Computes e^(x - max x) and its sum, along @dim of the first input. */
spyre_status build_exponentials(const struct build_call *call, double dim, uint32_t *shifted,
				uint32_t *power, uint32_t *sum);

/* reduce.c */
spyre_status build_reduce(const struct build_call *call);

/* statistics.c */
spyre_status build_var(const struct build_call *call);
spyre_status build_vector_norm(const struct build_call *call);

/* topk.c */
spyre_status build_topk(const struct build_call *call);
spyre_status build_argmax(const struct build_call *call);

/* transpose.c */
spyre_status build_transpose(const struct build_call *call);

/* window.c */
spyre_status build_conv2d(const struct build_call *call);
spyre_status build_pool2d(const struct build_call *call);

#endif /* SPYRE_SDSC_RECIPES_H */
