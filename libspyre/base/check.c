// SPDX-License-Identifier: MIT
/* Checks of the arguments of public functions. */
#include "libspyre/base/check.h"

#include "libspyre/base/error.h"

spyre_status spyre_null_argument(const char *function, const char *argument)
{
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, argument);
}

spyre_status spyre_struct_check(const char *function, const char *type, const void *out)
{
	if (!out)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: the spyre_%s is NULL",
				   function, type);
	if (*(const size_t *)out < sizeof(size_t))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: struct_size is %zu; set it to sizeof(spyre_%s) before the call",
				   function, *(const size_t *)out, type);
	return SPYRE_SUCCESS;
}
