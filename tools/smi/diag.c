/* SPDX-License-Identifier: MIT */
/* spyre-smi diag: which cards are tested, and what is printed. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <yyjson.h>

#include "tools/smi/diag.h"

#define MOST_TESTS 16

/* The results of the tests of a card. */
struct report {
	struct diag_card card;
	enum diag_result result[MOST_TESTS];
	double seconds[MOST_TESTS];
	char detail[MOST_TESTS][256];
	bool failed;
};

static const char *const result_names[] = { "pass", "fail", "skip" };

static bool is_id(const char *text, size_t length, const spyre_device_properties *p)
{
	char index[16];

	snprintf(index, sizeof(index), "%d", p->index);
	return (strlen(index) == length && !strncmp(text, index, length)) ||
	       (strlen(p->uuid) == length && !strncmp(text, p->uuid, length)) ||
	       (strlen(p->bus_id) == length && !strncmp(text, p->bus_id, length));
}

static bool is_chosen(const char *ids, const spyre_device_properties *p)
{
	size_t length;

	for (; ids; ids = ids[length] ? ids + length + 1 : NULL) {
		length = strcspn(ids, ",");
		if (is_id(ids, length, p))
			return true;
	}
	return false;
}

/* Returns SMI_OK if each of @ids names one of the visible cards. */
static int check_ids(const char *ids, const struct report *reports, int count)
{
	size_t length;
	int i;

	for (; ids; ids = ids[length] ? ids + length + 1 : NULL) {
		length = strcspn(ids, ",");
		for (i = 0; i < count; i++)
			if (is_id(ids, length, &reports[i].card.properties))
				break;
		if (i == count) {
			fprintf(stderr, "spyre-smi: cannot find card '%.*s' among the %d visible "
				"cards; spyre-smi -L lists indexes, UUIDs and bus ids\n",
				(int)length, ids, count);
			return SMI_NOT_FOUND;
		}
	}
	return SMI_OK;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static spyre_status open_card(struct diag_card *card)
{
	spyre_status status = spyre_context_create(card->index, 0, &card->context);

	if (!status)
		status = spyre_stream_from_pool(card->context, 0, &card->stream);
	return status;
}

/* A test that fails does not keep the next ones from running, unless the card cannot be opened. */
static int test_card(struct report *report, bool show)
{
	struct diag_card *card = &report->card;
	spyre_status status = open_card(card);

	if (status) {
		fprintf(stderr, "spyre-smi: cannot open card %d (%s): %s\n", card->index,
			card->properties.bus_id, spyre_last_error());
		spyre_context_destroy(card->context);
		return status == SPYRE_ERROR_NO_PERMISSION ? SMI_NO_PERMISSION : SMI_OTHER;
	}
	if (show)
		printf("Card %d, %s (%s)\n", card->index, card->properties.name,
		       card->properties.bus_id);
	for (int i = 0; diag_tests[i].name && i < MOST_TESTS; i++) {
		const struct diag_test *test = &diag_tests[i];
		double start = now();

		if (test->level > card->level)
			continue;
		card->detail[0] = '\0';
		report->result[i] = test->run(card);
		report->seconds[i] = now() - start;
		report->failed |= report->result[i] == DIAG_FAIL;
		memcpy(report->detail[i], card->detail, sizeof(card->detail));
		if (show)
			printf("  %-4s  %-12s %7.2f s  %s\n", result_names[report->result[i]],
			       test->name, report->seconds[i], card->detail);
		fflush(stdout);
	}
	spyre_context_destroy(card->context);
	return report->failed ? SMI_FAILED : SMI_OK;
}

static bool add_tests(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct report *report)
{
	for (int i = 0; diag_tests[i].name && i < MOST_TESTS; i++) {
		yyjson_mut_val *one;

		if (diag_tests[i].level > report->card.level)
			continue;
		one = yyjson_mut_arr_add_obj(doc, list);
		if (!one || !yyjson_mut_obj_add_str(doc, one, "test", diag_tests[i].name) ||
		    !yyjson_mut_obj_add_str(doc, one, "result",
					    result_names[report->result[i]]) ||
		    !yyjson_mut_obj_add_real(doc, one, "seconds", report->seconds[i]) ||
		    !yyjson_mut_obj_add_str(doc, one, "detail", report->detail[i]))
			return false;
	}
	return true;
}

static bool print_json(const struct report *reports, int count, const char *ids)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL, *cards, *card, *tests;
	bool good = root && yyjson_mut_obj_add_int(doc, root, "schema_version",
						   SMI_SCHEMA_VERSION);
	char *text = NULL;

	yyjson_mut_doc_set_root(doc, root);
	cards = good ? yyjson_mut_obj_add_arr(doc, root, "devices") : NULL;
	for (int i = 0; i < count && cards && good; i++) {
		const spyre_device_properties *p = &reports[i].card.properties;

		if (ids && !is_chosen(ids, p))
			continue;
		card = yyjson_mut_arr_add_obj(doc, cards);
		good = card && yyjson_mut_obj_add_int(doc, card, "index", p->index) &&
		       yyjson_mut_obj_add_str(doc, card, "uuid", p->uuid) &&
		       yyjson_mut_obj_add_str(doc, card, "bus_id", p->bus_id) &&
		       yyjson_mut_obj_add_int(doc, card, "level", reports[i].card.level) &&
		       yyjson_mut_obj_add_str(doc, card, "result",
					      result_names[reports[i].failed]);
		tests = good ? yyjson_mut_obj_add_arr(doc, card, "tests") : NULL;
		good = tests && add_tests(doc, tests, &reports[i]);
	}
	if (cards && good)
		text = yyjson_mut_write(doc, 0, NULL);
	if (text)
		puts(text);
	else
		fputs("spyre-smi: no memory for the JSON text of the tests\n", stderr);
	free(text);
	yyjson_mut_doc_free(doc);
	return text != NULL;
}

/* Reads what is known of the visible cards without opening them. */
static int find_cards(struct report **reports, int *count, int level)
{
	if (spyre_device_count(count)) {
		fprintf(stderr, "spyre-smi: cannot count the cards: %s\n", spyre_last_error());
		return SMI_NO_DRIVER;
	}
	if (!*count) {
		fputs("spyre-smi: cannot find a visible card to test; load the module (sudo "
		      "modprobe spyre_vdev), or set SPYRE_BACKEND=embedded to test the library\n",
		      stderr);
		return SMI_NO_DRIVER;
	}
	*reports = calloc((size_t)*count, sizeof(**reports));
	for (int i = 0; *reports && i < *count; i++) {
		struct diag_card *card = &(*reports)[i].card;

		*card = (struct diag_card){ .index = i, .num_cards = *count, .level = level };
		card->properties.struct_size = sizeof(card->properties);
		if (spyre_device_get_properties(i, &card->properties)) {
			fprintf(stderr, "spyre-smi: cannot read card %d: %s\n", i,
				spyre_last_error());
			return SMI_OTHER;
		}
	}
	if (*reports)
		return SMI_OK;
	fputs("spyre-smi: no memory for a list of the cards\n", stderr);
	return SMI_OTHER;
}

int smi_diag(const struct smi_options *options)
{
	const bool json = options->format == SMI_JSON;
	struct report *reports = NULL;
	int count = 0, one, status = find_cards(&reports, &count, options->level);

	if (status == SMI_OK)
		status = check_ids(options->ids, reports, count);
	for (int i = 0; i < count && (status == SMI_OK || status == SMI_FAILED); i++) {
		if (options->ids && !is_chosen(options->ids, &reports[i].card.properties))
			continue;
		one = test_card(&reports[i], !json);
		status = one == SMI_OK ? status : one;
	}
	if (json && (status == SMI_OK || status == SMI_FAILED) &&
	    !print_json(reports, count, options->ids))
		status = SMI_OTHER;
	free(reports);
	return status;
}
