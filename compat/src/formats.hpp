/* SPDX-License-Identifier: MIT */
/* The formats of the front-end and those of libspyre. */
#ifndef SPYRE_COMPAT_FORMATS_HPP
#define SPYRE_COMPAT_FORMATS_HPP

#include <spyre/types.h>

#include "util/sendefs/sendefs.h"

namespace spyre_compat
{
/* Returns the format of libspyre; SPYRE_FORMAT_INVALID for a number without an enumerator. */
spyre_format to_spyre(DataFormats format) noexcept;
}

#endif /* SPYRE_COMPAT_FORMATS_HPP */
