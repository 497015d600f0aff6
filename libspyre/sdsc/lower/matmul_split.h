/* SPDX-License-Identifier: MIT */
/* Matrix products summed over cores. Internal. */
#ifndef SPYRE_SDSC_MATMUL_SPLIT_H
#define SPYRE_SDSC_MATMUL_SPLIT_H

#include "libspyre/sdsc/lower/lower_matmul.h"

/* Lowers a product of which cores share results, each with a part of K. */
spyre_status matmul_split(struct lower *l, struct matmul *m);

#endif /* SPYRE_SDSC_MATMUL_SPLIT_H */
