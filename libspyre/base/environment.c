// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"

#define DEFAULT_TIMEOUT_MS 10000

spyre_status spyre_env_u64(const char *name, uint64_t fallback, uint64_t min, uint64_t max,
			   uint64_t *value)
{
	const char *text = getenv(name);
	unsigned long long number;
	char *end;

	*value = fallback;
	if (!text || !*text)
		return SPYRE_SUCCESS;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || number < min || number > max)
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "%s=\"%s\": expected a number from %" PRIu64 " to %" PRIu64
				   "; correct or unset it", name, text, min, max);
	*value = number;
	return SPYRE_SUCCESS;
}

spyre_status spyre_env_timeout_ms(uint32_t *milliseconds)
{
	uint64_t value;
	spyre_status status;

	status = spyre_env_u64("SPYRE_TIMEOUT_MS", DEFAULT_TIMEOUT_MS, 0, UINT32_MAX, &value);
	*milliseconds = value;
	return status;
}

spyre_status spyre_env_submit(enum spyre_env_submit *submit)
{
	static const char *const names[] = {
		[SPYRE_ENV_AUTO] = "auto",
		[SPYRE_ENV_IOCTL] = "ioctl",
		[SPYRE_ENV_URING] = "uring",
		[SPYRE_ENV_SQPOLL] = "sqpoll",
	};
	const char *text = getenv("SPYRE_SUBMIT");

	*submit = SPYRE_ENV_AUTO;
	if (!text || !*text)
		return SPYRE_SUCCESS;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*submit = (enum spyre_env_submit)i;
		return SPYRE_SUCCESS;
	}
	return spyre_error(SPYRE_ERROR_CONFIGURATION,
			   "SPYRE_SUBMIT=\"%s\": expected auto, ioctl, uring or sqpoll; correct or "
			   "unset it", text);
}
