/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_SHMEM_PAGE_H
#define SPYRE_SHMEM_PAGE_H

#include <linux/types.h>

struct folio;
struct spyre_shmem;

/* The folio at a page of the buffer, or NULL; needs no lock. */
struct folio *spyre_shmem_peek(struct spyre_shmem *shmem, pgoff_t index);
/* The same, made present if need be; under the buffer's lock. */
struct folio *spyre_shmem_get(struct spyre_shmem *shmem, pgoff_t index);

#endif
