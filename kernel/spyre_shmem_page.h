/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_SHMEM_PAGE_H
#define SPYRE_SHMEM_PAGE_H

#include <linux/types.h>

struct folio;
struct spyre_shmem;

/* Returns the folio at a page of the buffer, or NULL; needs no lock. */
struct folio *spyre_shmem_peek(struct spyre_shmem *shmem, pgoff_t index);
/* Returns the same, populated if necessary; the caller holds the buffer's lock. */
struct folio *spyre_shmem_get(struct spyre_shmem *shmem, pgoff_t index);

#endif
