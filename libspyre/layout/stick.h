/* SPDX-License-Identifier: MIT */
/* Sticks: the 128-byte unit of device memory. Internal. */
#ifndef SPYRE_STICK_H
#define SPYRE_STICK_H

#include <spyre/types.h>

/* Elements of a device format in one stick, 0 if it does not fill sticks. */
int64_t spyre_stick_elements(spyre_format format);

#endif /* SPYRE_STICK_H */
