/* SPDX-License-Identifier: MIT */
/*
 * Tensors in HBM that the SDSCs so far have written: the size of an intermediate that a later
 * one uses as a table. Internal.
 */
#ifndef SPYRE_SDSC_WRITTEN_H
#define SPYRE_SDSC_WRITTEN_H

#include "libspyre/sdsc/lower/lower.h"

struct written {
	void *tree;
};

/* Notes the output of l->sdsc, which replaces an earlier tensor at the same address. */
spyre_status written_note(struct written *w, const struct lower *l);
/* Gets the bytes of the tensor at an address; false if there is none. */
bool written_find(const struct written *w, uint16_t operand, uint64_t offset, uint64_t *bytes);
void written_fini(struct written *w);

#endif /* SPYRE_SDSC_WRITTEN_H */
