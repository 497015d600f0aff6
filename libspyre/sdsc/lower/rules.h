/* SPDX-License-Identifier: MIT */
/* The rules for lowering operations, each in the file of its name. Internal. */
#ifndef SPYRE_SDSC_RULES_H
#define SPYRE_SDSC_RULES_H

#include "libspyre/sdsc/lower/lower.h"

/* Adds the instructions of l->sdsc on all its cores; @func is the card's function. */
typedef spyre_status lower_rule_fn(struct lower *l, enum spyre_func func);

spyre_status lower_pointwise(struct lower *l, enum spyre_func func);
spyre_status lower_reduce(struct lower *l, enum spyre_func func);
/*
 * True if lower_reduce() stores nothing before all cores have read all of their input: they share
 * outputs, whose partial results are combined in a second phase.
 */
bool lower_reduce_stores_last(struct lower *l);
spyre_status lower_prod(struct lower *l, enum spyre_func func);
spyre_status lower_matmul(struct lower *l, enum spyre_func func);
spyre_status lower_conv(struct lower *l, enum spyre_func func);
spyre_status lower_window(struct lower *l, enum spyre_func func);
spyre_status lower_topk(struct lower *l, enum spyre_func func);
spyre_status lower_mask_by_index(struct lower *l, enum spyre_func func);
spyre_status lower_restickify(struct lower *l, enum spyre_func func);
spyre_status lower_convert(struct lower *l, enum spyre_func func);
spyre_status lower_quant(struct lower *l, enum spyre_func func);
spyre_status lower_shuffle(struct lower *l, enum spyre_func func);

#endif /* SPYRE_SDSC_RULES_H */
