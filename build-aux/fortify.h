/* SPDX-License-Identifier: MIT */
/*
 * Included by the compiler's command line before every source.  glibc warns of
 * _FORTIFY_SOURCE without optimization, so a definition on the command line
 * would break 'make CFLAGS=-O0' under -Werror.
 */
#if defined(__OPTIMIZE__) && !defined(_FORTIFY_SOURCE)
#define _FORTIFY_SOURCE 2
#endif
