// SPDX-License-Identifier: MIT
/* spyre launch: runs a bundle. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "case.h"
#include "report.h"

struct launch {
	struct run_options run;
	struct tensor_list list;
	const char *case_path;
	const char *inputs;
	const char *outputs;
	/* The directory of the bundle if only --case gives it. */
	char *case_directory;
	uint64_t seed;
	bool random;
	bool stats;
	bool json;
};

enum {
	OPTION_CASE = 256,
	OPTION_INPUTS,
	OPTION_OUTPUTS,
	OPTION_SEED,
	OPTION_REPEAT,
	OPTION_STATS,
	OPTION_DEVICE,
	OPTION_STREAM,
	OPTION_BIND,
	OPTION_JSON
};

static const struct option options[] = {
	{"input", required_argument, NULL, 'i'},
	{"output", required_argument, NULL, 'o'},
	{"case", required_argument, NULL, OPTION_CASE},
	{"inputs", required_argument, NULL, OPTION_INPUTS},
	{"outputs", required_argument, NULL, OPTION_OUTPUTS},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"repeat", required_argument, NULL, OPTION_REPEAT},
	{"stats", no_argument, NULL, OPTION_STATS},
	{"device", required_argument, NULL, OPTION_DEVICE},
	{"stream", required_argument, NULL, OPTION_STREAM},
	{"bind", required_argument, NULL, OPTION_BIND},
	{"json", no_argument, NULL, OPTION_JSON},
	{NULL, 0, NULL, 0},
};

/* -i and -o: adds the tensor, its layout if given, and its memory. */
static int add_operand(struct launch *launch, bool output, const char *word)
{
	struct shape_spec spec;
	struct tensor *tensor;
	struct text why;
	int err, code = EXIT_OK;

	err = output ? shape_parse_output(word, &spec, &why) : shape_parse_input(word, &spec, &why);
	if (err)
		return complain_usage("%s", why.s);
	tensor = tensor_add(&launch->list, output, &why);
	if (!tensor)
		err = -1;
	else if (spec.has_shape)
		err = tensor_alloc(tensor, spec.rank, spec.size, spec.format, &why);
	else
		err = tensor_load(tensor, spec.path, spec.format, &why);
	if (!err && spec.order != SHAPE_ORDER_AUTO) {
		spec.rank = tensor->host.rank;
		spec.format = tensor->host.format;
		memcpy(spec.size, tensor->host.size, sizeof(spec.size));
		tensor->layout_given = true;
		if (shape_layout(&spec, &tensor->layout))
			err = explain(&why, "invalid operand '%s': %s", word, spyre_last_error());
	}
	if (!err && output) {
		tensor->path = spec.path;
		spec.path = NULL;
	}
	/* An unusable file is not a usage error, so the help is not mentioned. */
	if (err && spec.path && !spec.has_shape)
		code = complain(EXIT_USAGE, "%s", why.s);
	else if (err)
		code = complain_usage("%s", why.s);
	shape_fini(&spec);
	return code;
}

static int number_option(const char *name, int64_t min, int64_t max, int64_t *value)
{
	if (parse_number(optarg, min, max, value))
		return complain_usage(
			"invalid value '%s' for --%s: expected a number from %lld to %lld", optarg,
			name, (long long)min, (long long)max);
	return EXIT_OK;
}

/* Parses --bind s0=128; the symbol's name stays in argv. */
static int add_binding(struct launch *launch, char *word)
{
	struct run_options *run = &launch->run;
	char *equals = strchr(word, '=');
	int64_t value;

	if (!equals || equals == word || parse_number(equals + 1, 1, INT64_MAX, &value))
		return complain_usage(
			"invalid value '%s' for --bind: expected SYMBOL=NUMBER, as in s0=128",
			word);
	if (run->num_bindings == RUN_MAX_BINDINGS)
		return complain_usage("cannot bind %s: the limit is %d bindings", word,
				      RUN_MAX_BINDINGS);
	*equals = '\0';
	run->bindings[run->num_bindings++] = (spyre_binding){word, value};
	return EXIT_OK;
}

static int handle_option(struct launch *launch, int option, char **argv)
{
	int64_t number = 0;
	int code = EXIT_OK;

	switch (option) {
	case 'i':
	case 'o':
		return add_operand(launch, option == 'o', optarg);
	case OPTION_CASE:
		launch->case_path = optarg;
		return EXIT_OK;
	case OPTION_INPUTS:
		launch->inputs = optarg;
		return EXIT_OK;
	case OPTION_OUTPUTS:
		launch->outputs = optarg;
		return EXIT_OK;
	case OPTION_SEED:
		code = number_option("seed", 0, INT64_MAX, &number);
		launch->seed = number;
		launch->random = true;
		return code;
	case OPTION_REPEAT:
		code = number_option("repeat", 1, 10000000, &number);
		launch->run.repeat = number;
		return code;
	case OPTION_STATS:
		launch->stats = true;
		return EXIT_OK;
	case OPTION_DEVICE:
		code = number_option("device", 0, 1023, &number);
		launch->run.device = number;
		return code;
	case OPTION_STREAM:
		code = number_option("stream", 0, SPYRE_STREAM_HIGH_LAST, &number);
		launch->run.stream = number;
		return code;
	case OPTION_BIND:
		return add_binding(launch, optarg);
	case OPTION_JSON:
		launch->json = true;
		return EXIT_OK;
	default:
		return complain_option(option, argv, options);
	}
}

static int parse_options(struct launch *launch, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":i:o:", options, NULL)) != -1) {
		int code = handle_option(launch, option, argv);

		if (code)
			return code;
	}
	if (argc - optind > 1)
		return complain_usage(
			"unexpected argument '%s': only one bundle directory is allowed",
			argv[optind + 1]);
	launch->run.directory = argv[optind];
	if (launch->case_path && launch->list.count)
		return complain_usage(
			"cannot combine --case with -i or -o: the case names the operands");
	if (!launch->case_path && (launch->inputs || launch->outputs))
		return complain_usage("--inputs and --outputs require --case");
	if (launch->case_path)
		return EXIT_OK;
	if (!launch->run.directory)
		return complain_usage("no bundle directory given");
	if (launch->list.count == launch->list.inputs)
		return complain_usage("no output given; add -o SHAPE@FORMAT");
	return EXIT_OK;
}

/* Replaces the case's input by inN.npy, which must have the same shape. */
static int load_case_input(struct launch *launch, struct tensor *tensor, struct text *why)
{
	spyre_host_tensor expected = tensor->host;
	char path[4096], want[160], got[160];

	if (snprintf(path, sizeof(path), "%s/in%u.npy", launch->inputs, tensor->position) >=
	    (int)sizeof(path))
		return explain(why, "cannot read inputs from %.64s…: the path is too long",
			       launch->inputs);
	if (tensor_load(tensor, path, expected.format, why))
		return -1;
	shape_format(expected.rank, expected.size, want, sizeof(want));
	shape_format(tensor->host.rank, tensor->host.size, got, sizeof(got));
	if (strcmp(want, got))
		return explain(why, "%s has shape %s, but input %u of the case has %s", path, got,
			       tensor->position, want);
	return 0;
}

/* Names outN.npy for outputs, and inN.npy for inputs that were generated. */
static int set_case_path(struct launch *launch, struct tensor *tensor, struct text *why)
{
	if (tensor->path || !launch->outputs)
		return 0;
	if (asprintf(&tensor->path, "%s/%s%u.npy", launch->outputs, tensor->output ? "out" : "in",
		     tensor->position) >= 0)
		return 0;
	tensor->path = NULL;
	return explain(why, "no memory for the path of a file in %s", launch->outputs);
}

static int prepare_case(struct launch *launch, struct text *why)
{
	if (case_read(launch->case_path, &launch->list, why))
		return -1;
	if (launch->outputs && mkdir(launch->outputs, 0777) && errno != EEXIST)
		return explain(why, "cannot create %s: %s", launch->outputs, strerror(errno));
	for (uint32_t i = 0; i < launch->list.count; i++) {
		struct tensor *tensor = &launch->list.at[i];
		bool made = !tensor->output && !launch->inputs;

		if (made)
			tensor_fill(tensor, launch->seed);
		else if (!tensor->output && load_case_input(launch, tensor, why))
			return -1;
		if (set_case_path(launch, tensor, why))
			return -1;
		if (made && tensor->path && tensor_save(tensor, tensor->path, why))
			return -1;
	}
	if (launch->run.directory)
		return 0;
	launch->case_directory = strdup(launch->case_path);
	if (!launch->case_directory)
		return explain(why, "no memory for the path %s", launch->case_path);
	launch->run.directory = dirname(launch->case_directory);
	return 0;
}

static void number_operands(struct launch *launch)
{
	for (uint32_t i = 0; i < launch->list.count; i++) {
		launch->list.at[i].arg_index = i;
		launch->list.at[i].init = launch->random ? TENSOR_RANDN : TENSOR_ONES;
	}
}

static void fill_operands(struct launch *launch)
{
	for (uint32_t i = 0; i < launch->list.inputs; i++)
		if (!launch->list.at[i].path)
			tensor_fill(&launch->list.at[i], launch->seed);
}

static int save_outputs(const struct tensor_list *list)
{
	struct text why;

	for (uint32_t i = list->inputs; i < list->count; i++)
		if (list->at[i].path && tensor_save(&list->at[i], list->at[i].path, &why))
			return complain(EXIT_DEVICE, "%s", why.s);
	return EXIT_OK;
}

static int launch_and_report(struct launch *launch)
{
	struct run run;
	int code = run_open(&run, &launch->run, &launch->list);

	/* Shapes are checked before values are generated, which takes longest. */
	if (!code && !launch->case_path)
		fill_operands(launch);
	if (!code)
		code = run_bundle(&run, &launch->run, &launch->list);
	if (!code)
		code = save_outputs(&launch->list);
	if (!code && !launch->json)
		report_text(&run, &launch->list, launch->stats);
	else if (!code && report_json(&run, &launch->run, &launch->list))
		code = complain(EXIT_DEVICE, "cannot print the report: no memory for its JSON text");
	run_close(&run);
	return finish_output(code);
}

static int run_launch(int argc, char **argv)
{
	struct launch launch = {.run.repeat = 1};
	struct text why;
	int code = parse_options(&launch, argc, argv);

	if (!code && launch.case_path && prepare_case(&launch, &why))
		code = complain(EXIT_USAGE, "%s", why.s);
	if (!code && !launch.case_path)
		number_operands(&launch);
	if (!code)
		code = launch_and_report(&launch);
	tensor_list_fini(&launch.list);
	free(launch.case_directory);
	return code;
}

const struct command command_launch = {
	.name = "launch",
	.summary = "run an SDSC bundle with given, read or random inputs",
	.help = "[OPTION]… -i INPUT… -o OUTPUT… DIR\n"
		"       spyre launch [OPTION]… --case case.json [--inputs DIR] [--outputs DIR] "
		"[DIR]\nRuns the bundle in DIR and prints the corner of each output.\n\n"
		"  -i, --input SHAPE@FORMAT[:ORDER]      an input of ones, as in 512x1024@fp16\n"
		"  -i, --input FILE.npy[@FORMAT[:ORDER]] an input from a file\n"
		"  -o, --output SHAPE@FORMAT[:ORDER][=FILE.npy]\n"
		"                     an output, and where to write it\n"
		"      --case FILE    operands and their device layouts from a case.json\n"
		"      --inputs DIR   with --case: read in0.npy, in1.npy, …\n"
		"      --outputs DIR  with --case: write out0.npy, …, and random inputs in0.npy, "
		"…\n"
		"      --seed N       random inputs instead of ones; seed of --case (default 0)\n"
		"      --repeat N     launch N times\n"
		"      --stats        print modelled cycles and host time per launch\n"
		"      --device N     card (default 0)\n"
		"      --stream N     stream 0..64 (default 0)\n"
		"      --bind SYMBOL=N  value of a symbolic dimension, as s0=128\n"
		"      --json         print one JSON object\n\n"
		"FORMAT is fp16, bf16, fp32, bool, int8, int16, int32, int64, uint8, fp8_e4m3 or\n"
		"fp8_e5m2. ORDER is the layout's dimension order, as 1,0, or 'sparse' for one\n"
		"element per stick.\n",
	.run = run_launch,
};
