// SPDX-License-Identifier: MIT
/* A parsed bundle: lookup and release. */
#include "libspyre/sdsc/ir/ir.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void ir_bundle_fini(struct ir_bundle *bundle)
{
	spyre_region_fini(&bundle->memory);
	free(bundle->stmts);
	memset(bundle, 0, sizeof(*bundle));
}

static size_t used_bytes(const struct ir_sdsc *sdsc)
{
	return offsetof(struct ir_sdsc, tensor) + sdsc->num_tensors * sizeof(sdsc->tensor[0]);
}

void ir_copy_sdsc(struct ir_sdsc *to, const struct ir_sdsc *from)
{
	memcpy(to, from, used_bytes(from));
}

struct ir_sdsc *ir_pack_sdsc(struct ir_bundle *bundle, const struct ir_sdsc *sdsc)
{
	struct ir_sdsc *packed = spyre_region_alloc(&bundle->memory, used_bytes(sdsc));

	if (packed)
		ir_copy_sdsc(packed, sdsc);
	return packed;
}

uint32_t ir_find_dim(const struct ir_sdsc *s, const char *name)
{
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!strcmp(s->dim[d], name))
			return d;
	return IR_NO_DIM;
}
