/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_CHARGE_H
#define SPYRE_CHARGE_H

#include <linux/gfp.h>

/*
 * For memory that user space makes the driver take: the caller's cgroup pays,
 * and a cgroup or a host that has no more gives -ENOMEM.  Without
 * __GFP_RETRY_MAYFAIL the limit of a cgroup would call its OOM killer.
 */
#define SPYRE_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

#endif
