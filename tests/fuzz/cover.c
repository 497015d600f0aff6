// SPDX-License-Identifier: MIT
#include "tests/fuzz/cover.h"
#include "tests/fuzz/card.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

static uint64_t count[FUZZ_COVER_FORMS][FUZZ_COVER_FORMATS][FUZZ_MAX_UNITS];

void fuzz_cover_add(uint32_t form, uint32_t format, uint32_t unit)
{
	count[form][format][unit]++;
}

struct row {
	uint32_t reachable, seen;
	uint64_t sum, least;
};

static void row_add(struct row *row, uint64_t n)
{
	row->reachable++;
	row->seen += n != 0;
	row->sum += n;
	if (row->reachable == 1 || n < row->least)
		row->least = n;
}

static struct row row_of(uint32_t form, uint32_t formats, uint32_t unit,
			 fuzz_name_fn format_name, fuzz_reachable_fn reachable, const char *name)
{
	const char *unit_name = spyre_unit_name(fuzz_card()->unit[unit]);
	struct row row = { 0 };

	for (uint32_t f = 0; f < formats; f++) {
		if (!reachable(form, f))
			continue;
		row_add(&row, count[form][f][unit]);
		if (fuzz_options.table || (fuzz_options.require_all && !count[form][f][unit]))
			printf("  %-24s %-30s %-8s %llu\n", name, format_name(f), unit_name,
			       (unsigned long long)count[form][f][unit]);
	}
	return row;
}

bool fuzz_cover_report(uint32_t forms, uint32_t formats, fuzz_name_fn form_name,
		       fuzz_name_fn format_name, fuzz_reachable_fn reachable)
{
	struct fuzz_card *card = fuzz_card();
	uint32_t triples = 0, seen = 0;

	printf("%s: executions compared, by form and unit\n", fuzz_target.name);
	printf("  %-24s %-8s %9s %12s %10s\n", "form", "unit", "formats", "compared", "least");
	for (uint32_t form = 0; form < forms; form++) {
		for (uint32_t unit = 0; unit < card->num_units; unit++) {
			struct row row = row_of(form, formats, unit, format_name, reachable,
						form_name(form));

			if (!row.reachable)
				continue;
			printf("  %-24s %-8s %4u/%-4u %12llu %10llu\n", form_name(form),
			       spyre_unit_name(card->unit[unit]), row.seen, row.reachable,
			       (unsigned long long)row.sum, (unsigned long long)row.least);
			triples += row.reachable;
			seen += row.seen;
		}
	}
	printf("%s: %u of %u triples of form, format and unit were compared\n",
	       fuzz_target.name, seen, triples);
	return seen == triples;
}
