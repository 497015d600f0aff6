// SPDX-License-Identifier: MIT
/* spyre estimate: the modelled time of a token of a language model on one and several cards. */
#include "config.h"

#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "estimate.h"
#include "tools/spelling.h"

#define MAX_BATCH 256
#define MAX_CONTEXT (1 << 20)

static const struct option options[] = {
	{ "context", required_argument, NULL, 'x' },
	{ "batch", required_argument, NULL, 'b' },
	{ "format", required_argument, NULL, 'f' },
	{ "cards", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

struct command_line {
	const char *model;
	/* Numbers of cards that must be possible; the default ones need not be. */
	bool cards_given, json;
};

/* The configurations of the source tree, if there is one, otherwise the installed ones. */
static const char *models_directory(void)
{
	return access(MODELS_SOURCE_DIR "/ORIGIN", R_OK) ? MODELS_DATA_DIR : MODELS_SOURCE_DIR;
}

/* Names of the configurations, sorted; the caller frees @list with its entries. */
static int list_models(struct dirent ***list)
{
	int count = scandir(models_directory(), list, NULL, alphasort), kept = 0;

	for (int i = 0; i < count; i++) {
		char *dot = strrchr((*list)[i]->d_name, '.');

		if (dot && dot != (*list)[i]->d_name && !strcmp(dot, ".json")) {
			*dot = '\0';
			(*list)[kept++] = (*list)[i];
		} else {
			free((*list)[i]);
		}
	}
	return kept;
}

static void free_models(struct dirent **list, int count)
{
	for (int i = 0; i < count; i++)
		free(list[i]);
	if (count)
		free(list);
}

static void print_models(void)
{
	struct dirent **list;
	int count = list_models(&list);

	puts("\nMODEL is a config.json, or one of:");
	for (int i = 0; i < count; i++)
		printf("  %s\n", list[i]->d_name);
	free_models(list, count);
}

static int unknown_model(const char *typed)
{
	struct spelling spelling = spelling_of(typed);
	char valid[512] = "";
	struct dirent **list;
	int count = list_models(&list), code;

	for (int i = 0; i < count; i++) {
		spelling_try(&spelling, list[i]->d_name);
		snprintf(valid + strlen(valid), sizeof(valid) - strlen(valid), "%s, ",
			 list[i]->d_name);
	}
	if (spelling.nearest)
		code = complain_usage("unknown model '%s'; did you mean '%s'?", typed,
				      spelling.nearest);
	else
		code = complain_usage("unknown model '%s'; valid: %sor the path of a config.json",
				      typed, valid);
	free_models(list, count);
	return code;
}

/* A word with a slash or ".json" is a path, another one names an installed configuration. */
static int read_model(const char *word, struct model *model)
{
	size_t length = strlen(word);
	struct text why;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.json", models_directory(), word);
	if (strchr(word, '/') || (length > 5 && !strcmp(word + length - 5, ".json")))
		snprintf(path, sizeof(path), "%s", word);
	else if (access(path, R_OK))
		return unknown_model(word);
	if (model_read(path, model, &why))
		return complain(EXIT_USAGE, "%s", why.s);
	return EXIT_OK;
}

/* Parses "1,2,4". */
static int parse_cards(char *word, struct estimate *e)
{
	char *rest = word, *one;

	e->count = 0;
	while ((one = strsep(&rest, ","))) {
		if (e->count == MAX_CARDS ||
		    parse_number(one, 1, MAX_CARDS, &e->decode[e->count].cards))
			return complain_usage("invalid value '%s' for --cards: expected up to %d "
					      "numbers from 1 to %d, as in 1,2,4",
					      one, MAX_CARDS, MAX_CARDS);
		e->count++;
	}
	return EXIT_OK;
}

static int parse_format(const char *word, bool *fp8)
{
	*fp8 = !strcmp(word, "fp8");
	if (!*fp8 && strcmp(word, "dl16"))
		return complain_usage("invalid value '%s' for --format: expected dl16 or fp8", word);
	return EXIT_OK;
}

static int take_option(struct command_line *line, struct estimate *e, int option, char **argv)
{
	switch (option) {
	case 'x':
		if (parse_number(optarg, 1, MAX_CONTEXT, &e->options.context))
			return complain_usage("invalid value '%s' for --context: expected a number "
					      "from 1 to %d", optarg, MAX_CONTEXT);
		return EXIT_OK;
	case 'b':
		if (parse_number(optarg, 1, MAX_BATCH, &e->options.batch))
			return complain_usage("invalid value '%s' for --batch: expected a number "
					      "from 1 to %d", optarg, MAX_BATCH);
		return EXIT_OK;
	case 'f':
		return parse_format(optarg, &e->options.fp8);
	case 'c':
		line->cards_given = true;
		return parse_cards(optarg, e);
	case 'j':
		line->json = true;
		return EXIT_OK;
	default:
		return complain_option(option, argv, options);
	}
}

static int parse_options(struct command_line *line, struct estimate *e, int argc, char **argv)
{
	int option, code;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		code = take_option(line, e, option, argv);
		if (code)
			return code;
	}
	if (optind == argc)
		return complain_usage("no model given; give the path of a config.json or a name, as "
				      "in 'spyre estimate llama-3.1-8b'");
	if (argc - optind > 1)
		return complain_usage("unexpected argument '%s': only one model is allowed, and '%s' "
				      "was given", argv[optind + 1], argv[optind]);
	line->model = argv[optind];
	return EXIT_OK;
}

static int estimate_all(const struct command_line *line, struct estimate *e)
{
	bool any = false;

	for (uint32_t i = 0; i < e->count; i++) {
		e->possible[i] = !decode_estimate(&e->model, &e->options, e->decode[i].cards,
						  &e->decode[i], &e->why[i]);
		any |= e->possible[i];
		if (!e->possible[i] && line->cards_given)
			return complain(EXIT_USAGE, "%s: %s", e->model.name, e->why[i].s);
	}
	return any ? EXIT_OK : complain(EXIT_USAGE, "%s: %s", e->model.name, e->why[0].s);
}

static int run_estimate(int argc, char **argv)
{
	struct command_line line = { 0 };
	struct estimate *e = calloc(1, sizeof(*e));
	int code;

	if (!e)
		return complain(EXIT_DEVICE, "no memory for %zu bytes of results", sizeof(*e));
	e->options.batch = 1;
	e->options.context = 4096;
	for (int64_t cards = 1; cards <= MAX_CARDS; cards *= 2)
		e->decode[e->count++].cards = cards;
	code = parse_options(&line, e, argc, argv);
	if (!code)
		code = read_model(line.model, &e->model);
	if (!code)
		code = estimate_all(&line, e);
	if (!code && line.json)
		code = estimate_json(e);
	else if (!code)
		estimate_text(e);
	free(e);
	return code ? code : finish_output(EXIT_OK);
}

const struct command command_estimate = {
	.name = "estimate",
	.summary = "estimate the time of a language model's token",
	.help = "[OPTION]… MODEL\n"
		"Prints the modelled time of one step of decoding, in which each row of a batch\n"
		"gets a token, part by part, and the bound that the bandwidth of the memory sets.\n"
		"The step is planned and compiled at full size; nothing is executed.\n\n"
		"      --context N  tokens that each row attends to (default 4096)\n"
		"      --batch N  rows of the batch (default 1)\n"
		"      --format FORMAT  format of the linear weights: dl16 (default) or fp8\n"
		"      --cards N,…  numbers of cards that share the model (default 1,2,4,8)\n"
		"      --json     print one JSON object\n",
	.help_more = print_models,
	.run = run_estimate,
};
