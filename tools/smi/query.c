/* SPDX-License-Identifier: MIT */
/* --query-device and --query-compute-apps as CSV or JSON. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tools/smi/json.h"

void smi_print_cell(const char *text)
{
	if (!strpbrk(text, ",\"")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

void smi_csv_header(const struct smi_options *options)
{
	int i;

	for (i = 0; i < options->num_fields; i++) {
		const struct smi_field *field = options->fields[i];

		printf("%s%s", i ? ", " : "", field->name);
		if (field->unit)
			printf(" [%s]", field->unit);
	}
	putchar('\n');
}

static void print_row(const struct smi_options *options, const struct smi_subject *subject)
{
	char text[128];
	int i;

	for (i = 0; i < options->num_fields; i++) {
		smi_field_text(options->fields[i], subject, !options->no_units, "[N/A]", text,
			       sizeof(text));
		if (i)
			fputs(", ", stdout);
		smi_print_cell(text);
	}
	putchar('\n');
}

/* Advances to the next card or process to print; returns false after the last. */
static bool next_subject(const struct smi_snapshot *snapshot, enum smi_mode mode, int *position,
			 struct smi_subject *subject)
{
	int count = mode == SMI_QUERY_APPS ? snapshot->num_processes : snapshot->num_cards;

	*subject = (struct smi_subject){ .snapshot = snapshot };
	while (*position < count) {
		int at = (*position)++;

		if (mode == SMI_QUERY_APPS)
			subject->process = &snapshot->processes[at];
		subject->index = mode == SMI_QUERY_APPS ? subject->process->card : at;
		subject->card = &snapshot->cards[subject->index];
		if (snapshot->chosen[subject->index])
			return true;
	}
	return false;
}

void smi_csv(const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	struct smi_subject subject;
	int position = 0;

	while (next_subject(snapshot, options->mode, &position, &subject))
		print_row(options, &subject);
}

static bool add_value(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct smi_field *field,
		      const struct smi_subject *subject)
{
	struct smi_value value = { .kind = SMI_NONE };

	/* JSON keys are unique: a field that was requested twice is printed once. */
	if (yyjson_mut_obj_get(object, field->json))
		return true;
	field->get(subject, &value);
	switch (value.kind) {
	case SMI_STRING:
		return yyjson_mut_obj_add_strcpy(doc, object, field->json, value.text);
	case SMI_NUMBER:
		if (field->json_divisor == 1)
			return yyjson_mut_obj_add_uint(doc, object, field->json, value.number);
		return yyjson_mut_obj_add_real(doc, object, field->json,
					       (double)value.number / field->json_divisor);
	case SMI_NONE:
		break;
	}
	return yyjson_mut_obj_add_null(doc, object, field->json);
}

static bool fill_fields(yyjson_mut_doc *doc, yyjson_mut_val *list,
			const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	struct smi_subject subject;
	yyjson_mut_val *object;
	int position = 0, i;

	while (next_subject(snapshot, options->mode, &position, &subject)) {
		object = yyjson_mut_arr_add_obj(doc, list);
		if (!object)
			return false;
		for (i = 0; i < options->num_fields; i++)
			if (!add_value(doc, object, options->fields[i], &subject))
				return false;
	}
	return true;
}

bool smi_print_document(const char *key, smi_fill *fill, const struct smi_snapshot *snapshot,
			const struct smi_options *options)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root, *list;
	char *text = NULL;
	double seconds;

	if (!doc)
		return false;
	seconds = (double)snapshot->time.tv_sec + (double)(snapshot->time.tv_nsec / 1000000) / 1000;
	root = yyjson_mut_obj(doc);
	list = yyjson_mut_arr(doc);
	yyjson_mut_doc_set_root(doc, root);
	if (root && list &&
	    yyjson_mut_obj_add_int(doc, root, "schema_version", SMI_SCHEMA_VERSION) &&
	    yyjson_mut_obj_add_real(doc, root, "timestamp_unix_seconds", seconds) &&
	    yyjson_mut_obj_add_val(doc, root, key, list) &&
	    fill(doc, list, snapshot, options))
		text = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, NULL);
	if (text)
		puts(text);
	free(text);
	yyjson_mut_doc_free(doc);
	return text != NULL;
}

bool smi_json(const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	const char *key = options->mode == SMI_QUERY_APPS ? "processes" : "devices";

	return smi_print_document(key, fill_fields, snapshot, options);
}
