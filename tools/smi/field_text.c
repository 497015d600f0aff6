/* SPDX-License-Identifier: MIT */
/* Looks up fields by name and formats their values. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "tools/smi/smi.h"

static bool listed(const char *list, const char *name, size_t length)
{
	const char *item = list, *end;

	while (item) {
		end = strchr(item, ',');
		if ((end ? (size_t)(end - item) : strlen(item)) == length &&
		    !strncmp(item, name, length))
			return true;
		item = end ? end + 1 : NULL;
	}
	return false;
}

const struct smi_field *smi_find_field(const struct smi_field *table, const char *name,
				       size_t length)
{
	const struct smi_field *field;

	for (field = table; field->name; field++)
		if (listed(field->name, name, length) || listed(field->aliases, name, length))
			return field;
	return NULL;
}

void smi_print_fields(const struct smi_field *table)
{
	const struct smi_field *field;

	for (field = table; field->name; field++) {
		printf("\"%s\"", field->name);
		if (field->aliases)
			printf(" (or %s)", field->aliases);
		printf("\n    %s", field->help);
		if (field->unit)
			printf(" In %s.", field->unit);
		printf(" JSON: %s.\n", field->json);
	}
}

void smi_field_text(const struct smi_field *field, const struct smi_subject *subject,
		    bool units, const char *missing, char *text, size_t size)
{
	struct smi_value value = { .kind = SMI_NONE };
	size_t used;

	field->get(subject, &value);
	switch (value.kind) {
	case SMI_NONE:
		snprintf(text, size, "%s", missing);
		return;
	case SMI_STRING:
		snprintf(text, size, "%s", value.text);
		return;
	case SMI_NUMBER:
		/* Integers are printed exactly; a double would lose digits above 2^53. */
		if (field->divisor == 1)
			snprintf(text, size, "%" PRIu64, value.number);
		else
			snprintf(text, size, "%.*f", field->decimals,
				 (double)value.number / field->divisor);
		used = strlen(text);
		if (units && field->unit)
			snprintf(text + used, size - used, " %s", field->unit);
		return;
	}
}
