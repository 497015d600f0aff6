/* SPDX-License-Identifier: MIT */
/* Views of outputs. Internal. */
#ifndef SPYRE_SDSC_INFER_H
#define SPYRE_SDSC_INFER_H

#include "libspyre/sdsc/graph/graph.h"

/* Makes the view of an output that the caller does not give. */
spyre_status build_infer(const struct build_call *call, const struct build_use *uses,
			 spyre_sdsc_operand *out);

#endif /* SPYRE_SDSC_INFER_H */
