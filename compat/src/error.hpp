/* SPDX-License-Identifier: MIT */
/* Statuses of libspyre as exceptions. */
#ifndef SPYRE_COMPAT_ERROR_HPP
#define SPYRE_COMPAT_ERROR_HPP

#include <spyre/types.h>

#include <stdexcept>
#include <string>

namespace spyre_compat
{
/* Throws std::runtime_error: "@what: NAME: text of the calling thread's last error". */
[[noreturn]] void fail(spyre_status status, const char *what);

inline void check(spyre_status status, const char *what)
{
	if (status != SPYRE_SUCCESS)
		fail(status, what);
}
}

#endif /* SPYRE_COMPAT_ERROR_HPP */
