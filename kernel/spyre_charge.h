/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_CHARGE_H
#define SPYRE_CHARGE_H

#include <linux/gfp.h>

/*
 * For memory that the driver allocates on behalf of user space: it is charged to
 * the caller's cgroup, and fails with -ENOMEM if the cgroup or the host has no
 * more.  Without __GFP_RETRY_MAYFAIL a cgroup's limit would invoke the OOM killer.
 */
#define SPYRE_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

#endif
