// SPDX-License-Identifier: MIT
/* The largest size of files: see file_limit.h. */
#include "libspyre/base/file_limit.h"

#include <sys/resource.h>

bool spyre_beyond_file_limit(off_t end)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	       (rlim_t)end > limit.rlim_cur;
}
