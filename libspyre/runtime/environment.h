/* SPDX-License-Identifier: MIT */
/* Numbers from the environment. Internal. */
#ifndef SPYRE_ENVIRONMENT_H
#define SPYRE_ENVIRONMENT_H

#include <spyre/types.h>

/* @value from variable @name, @fallback if it is not set. CONFIGURATION, with a
 * text that names it, unless it is a decimal number from @min to @max. */
spyre_status spyre_env_u64(const char *name, uint64_t fallback, uint64_t min, uint64_t max,
			   uint64_t *value);

/* SPYRE_TIMEOUT_MS: limit of one submission, by default 10000; 0: none. */
spyre_status spyre_env_timeout_ms(uint32_t *milliseconds);

#endif /* SPYRE_ENVIRONMENT_H */
