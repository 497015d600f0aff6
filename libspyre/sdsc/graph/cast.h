/* SPDX-License-Identifier: MIT */
/* Conversions between formats. Internal. */
#ifndef SPYRE_SDSC_CAST_H
#define SPYRE_SDSC_CAST_H

#include <spyre/types.h>

/* True for floating-point formats of 16 or 32 bits. */
bool build_is_float(spyre_format format);

#endif /* SPYRE_SDSC_CAST_H */
