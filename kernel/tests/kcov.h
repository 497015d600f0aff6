/* SPDX-License-Identifier: GPL-2.0-only */
/* Coverage of the module on kernels without CONFIG_KCOV: make module SPYRE_KCOV=1. */
#ifndef SPYRE_TESTS_KCOV_H
#define SPYRE_TESTS_KCOV_H

#ifdef SPYRE_KCOV
void spyre_kcov_init(void);
void spyre_kcov_exit(void);
/* Called by the compiler, from every basic block. */
void __sanitizer_cov_trace_pc(void);
#else
static inline void spyre_kcov_init(void) {}
static inline void spyre_kcov_exit(void) {}
#endif

#endif
