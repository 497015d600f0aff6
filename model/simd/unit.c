// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The arithmetic units of this build, from the slowest. The host has to know which of them the
 * CPU can run.
 */
#include "unit.h"
#include "../card.h"

static const struct spyre_unit *const units[] = {
	&spyre_unit_scalar,
#ifdef SPYRE_HAVE_AVX2
	&spyre_unit_avx2,
#endif
#ifdef SPYRE_HAVE_AVX512
	&spyre_unit_avx512,
#endif
#ifdef SPYRE_HAVE_NEON
	&spyre_unit_neon,
#endif
#ifdef SPYRE_HAVE_VSX
	&spyre_unit_vsx,
#endif
#ifdef SPYRE_HAVE_ZVECTOR
	&spyre_unit_zvector,
#endif
};

const struct spyre_unit *spyre_unit_at(u32 index)
{
	return index < sizeof(units) / sizeof(units[0]) ? units[index] : NULL;
}

const struct spyre_unit *spyre_unit_find(const char *name)
{
	const struct spyre_unit *unit;
	u32 i;

	for (i = 0; (unit = spyre_unit_at(i)); i++)
		if (!strcmp(unit->name, name))
			return unit;
	return NULL;
}

const char *spyre_unit_name(const struct spyre_unit *unit)
{
	return unit->name;
}
