// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The arithmetic units of this build. The host has to know which of them the CPU
 * can run.
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
};

const struct spyre_unit *spyre_unit_find(const char *name)
{
	u32 i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i]->name, name))
			return units[i];
	return NULL;
}

const char *spyre_unit_name(const struct spyre_unit *unit)
{
	return unit->name;
}
