/* SPDX-License-Identifier: MIT */
/* The arithmetic units of the card model (model/card.h) that this processor runs. */
#ifndef LIBSPYRE_BACKEND_CPU_H
#define LIBSPYRE_BACKEND_CPU_H

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "model/card.h"

/* @unit is a name of spyre_unit_at()'s table; the processor runs "scalar" always. */
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
#elif defined(__aarch64__)
	if (!strcmp(unit, "neon"))
		return getauxval(AT_HWCAP) & HWCAP_ASIMD;
#elif defined(__powerpc64__)
	if (!strcmp(unit, "vsx"))
		return getauxval(AT_HWCAP) & PPC_FEATURE_HAS_VSX &&
		       getauxval(AT_HWCAP2) & PPC_FEATURE2_ARCH_3_00;
#elif defined(__s390x__)
	if (!strcmp(unit, "zvector"))
		return getauxval(AT_HWCAP) & HWCAP_S390_VXRS_EXT;
#endif
	return !strcmp(unit, "scalar");
}

/*
 * The units that this processor runs, from the slowest: the first one from table index @*at on,
 * after which @*at is moved; NULL if there is no further one.
 */
static inline const struct spyre_unit *cpu_next_unit(u32 *at)
{
	const struct spyre_unit *unit;

	while ((unit = spyre_unit_at((*at)++)))
		if (cpu_runs(spyre_unit_name(unit)))
			return unit;
	return NULL;
}

#endif /* LIBSPYRE_BACKEND_CPU_H */
