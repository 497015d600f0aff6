/* SPDX-License-Identifier: MIT */
/* Marks the symbols that these libraries export; all others are hidden. */
#ifndef SPYRE_COMPAT_EXPORT_H
#define SPYRE_COMPAT_EXPORT_H

#define COMPAT_EXPORT __attribute__((visibility("default")))

#endif /* SPYRE_COMPAT_EXPORT_H */
