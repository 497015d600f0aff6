/* SPDX-License-Identifier: MIT */
/* Conversions between formats. Internal. */
#ifndef SPYRE_SDSC_LOWER_CONVERT_H
#define SPYRE_SDSC_LOWER_CONVERT_H

#include "libspyre/sdsc/lower/lower.h"

/* Fails for a pair of formats that l->sdsc's operation does not convert. */
spyre_status convert_check(struct lower *l, const struct ir_tensor *in,
			   const struct ir_tensor *out);
/* True if the bits stay the same: equal formats, or 32-bit words with and without sign. */
bool convert_is_raw(const struct lower *l, const struct ir_tensor *in,
		    const struct ir_tensor *out);

#endif /* SPYRE_SDSC_LOWER_CONVERT_H */
