/* SPDX-License-Identifier: MIT */
/* Arithmetic units that this machine can run, for tests that run each. */
#ifndef TESTS_UNITS_H
#define TESTS_UNITS_H

#include <stdbool.h>
#include <string.h>

static inline bool cpu_runs(const char *unit)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (!strcmp(unit, "avx2"))
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		       __builtin_cpu_supports("f16c");
	if (!strcmp(unit, "avx512"))
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
	return !strcmp(unit, "scalar");
}

#endif /* TESTS_UNITS_H */
