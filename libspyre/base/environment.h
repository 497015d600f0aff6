/* SPDX-License-Identifier: MIT */
/* Settings from the environment. Internal. */
#ifndef SPYRE_ENVIRONMENT_H
#define SPYRE_ENVIRONMENT_H

#include <spyre/types.h>

/* @value from variable @name, @fallback if it is not set. CONFIGURATION, with a
 * text that names it, unless it is a decimal number from @min to @max. */
spyre_status spyre_env_u64(const char *name, uint64_t fallback, uint64_t min, uint64_t max,
			   uint64_t *value);

/*
 * SPYRE_TIMEOUT_MS: limit of one submission in milliseconds, by default 10000. 0 means no limit;
 * the drm backend then passes the kernel's maximum of 60000.
 */
spyre_status spyre_env_timeout_ms(uint32_t *milliseconds);

/* SPYRE_SUBMIT: the requested submission path to a card of the kernel. */
enum spyre_env_submit {
	SPYRE_ENV_AUTO,
	SPYRE_ENV_IOCTL,
	SPYRE_ENV_URING,
	SPYRE_ENV_SQPOLL,
};

spyre_status spyre_env_submit(enum spyre_env_submit *submit);

#endif /* SPYRE_ENVIRONMENT_H */
