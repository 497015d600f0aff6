// SPDX-License-Identifier: MIT
/* spyre build: writes the bundle of one operation and explains its plan. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "shape.h"
#include "tools/spelling.h"

/* The inputs and the output of one operation. */
#define MAX_OPERANDS 16
#define MAX_ATTRIBUTES 16

struct build {
	const char *op;
	const char *directory;
	spyre_sdsc_operand inputs[MAX_OPERANDS + 1];
	spyre_sdsc_operand output;
	uint32_t num_inputs;
	bool has_output;
	enum shape_order output_order;
	int64_t cores;
	spyre_sdsc_attribute attributes[MAX_ATTRIBUTES];
	uint32_t num_attributes;
	spyre_sdsc_split splits[SPYRE_SDSC_MAX_SPLITS];
	uint32_t num_splits;
	char *shape;
	bool explain, json;
};

static const struct option options[] = {
	{"input", required_argument, NULL, 'i'},
	{"output", required_argument, NULL, 'o'},
	{"shape", required_argument, NULL, 's'},
	{"attr", required_argument, NULL, 'a'},
	{"cores", required_argument, NULL, 'c'},
	{"divide", required_argument, NULL, 'd'},
	{"explain", no_argument, NULL, 'e'},
	{"json", no_argument, NULL, 'j'},
	{NULL, 0, NULL, 0},
};

/* Operations whose result has one value per stick. */
static const char *const reductions[] = {"sum", "mean", "amax", "amin", "absmax", "exx2", "exx2_zeromean",
					 "var", "std", "vector_norm", "argmax", "argmin", NULL};

/* Operations whose second input needs padding: its rows meet the zeros that pad the first one's. */
static const char *const products[] = {"matmul", "mm", "bmm", NULL};

static bool is_listed(const char *const *names, const char *op)
{
	for (; *names; names++)
		if (!strcmp(*names, op))
			return true;
	return false;
}

static int complain_operation(const char *op)
{
	struct spelling spelling = spelling_of(op);

	for (const char *const *name = spyre_sdsc_operations(); *name; name++)
		spelling_try(&spelling, *name);
	if (!spelling.nearest)
		return complain_usage("unknown operation '%s'", op);
	return complain_usage("unknown operation '%s'; did you mean '%s'?", op, spelling.nearest);
}

static void print_operations(void)
{
	int column = 0;

	fputs("\nOP is one of", stdout);
	for (const char *const *name = spyre_sdsc_operations(); *name; name++) {
		column = column > 60 ? 0 : column + (int)strlen(*name) + 2;
		printf("%s%s%s", column ? " " : "\n", *name, name[1] ? "," : ".\n");
	}
}

/*
 * Pads the inner dimension of a matmul's second operand to whole sticks, because
 * its rows are multiplied by the zeros that pad the first operand's rows.
 */
static spyre_status pad_inner(spyre_sdsc_operand *operand)
{
	const spyre_layout dense = operand->layout;
	int64_t lanes = dense.device_size[dense.device_rank - 1];
	int64_t size[SPYRE_MAX_DEVICE_RANK];

	memcpy(size, dense.device_size, sizeof(size));
	for (uint32_t k = 0; k + 1 < dense.device_rank; k++)
		if (dense.dim_map[k] == (int)operand->rank - 2)
			size[k] = (size[k] + lanes - 1) / lanes * lanes;
	return spyre_layout_init_explicit(&operand->layout, dense.device_rank, size,
					  dense.stride_map, dense.device_format, dense.arrangement);
}

static int parse_operand(bool output, bool shape_only, const char *word, struct shape_spec *spec,
			 struct text *why)
{
	if (shape_only)
		return shape_parse_default(word, SPYRE_FORMAT_IEEE_FP16, spec, why);
	return output ? shape_parse_output(word, spec, why) : shape_parse_input(word, spec, why);
}

/* Adds an operand of -i and -o, or of --shape, which may leave the format out. */
static int add_operand(struct build *build, bool output, bool shape_only, const char *word)
{
	spyre_sdsc_operand *operand = output ? &build->output : &build->inputs[build->num_inputs];
	struct shape_spec spec;
	struct text why;
	spyre_status status;

	if (output && build->has_output)
		return complain_usage("unexpected output '%s': an operation has one output", word);
	if (!output && build->num_inputs == MAX_OPERANDS)
		return complain_usage("cannot add input '%s': the limit is %d inputs", word,
				      MAX_OPERANDS);
	if (parse_operand(output, shape_only, word, &spec, &why))
		return complain_usage("%s", why.s);
	if (spec.path) {
		shape_fini(&spec);
		return complain_usage("unexpected file '%s': a bundle is built from shapes, not "
				      "from files; give SHAPE@FORMAT",
				      word);
	}
	operand->rank = spec.rank;
	memcpy(operand->size, spec.size, sizeof(operand->size));
	if (output && spec.order == SHAPE_ORDER_AUTO && is_listed(reductions, build->op))
		spec.order = SHAPE_ORDER_SPARSE;
	status = shape_layout(&spec, &operand->layout);
	if (!status && !output && build->num_inputs == 1 && operand->rank > 1 &&
	    spec.order == SHAPE_ORDER_AUTO && is_listed(products, build->op))
		status = pad_inner(operand);
	shape_fini(&spec);
	if (status)
		return complain_usage("invalid operand '%s': %s", word, spyre_last_error());
	build->num_inputs += !output;
	build->has_output |= output;
	return EXIT_OK;
}

/* Parses NAME=VALUE; splits the word in place. */
static int add_attribute(struct build *build, char *word)
{
	spyre_sdsc_attribute *a = &build->attributes[build->num_attributes];
	char *equals = strchr(word, '='), *end;

	if (build->num_attributes == MAX_ATTRIBUTES)
		return complain_usage("too many attributes: the limit is %d", MAX_ATTRIBUTES);
	if (!equals || equals == word)
		return complain_usage("invalid attribute '%s': --attr takes NAME=VALUE", word);
	a->value = strtod(equals + 1, &end);
	*equals = '\0';
	if (!strcmp(word, "format") && (!equals[1] || *end)) {
		a->value = spyre_format_from_name(equals + 1);
		if (a->value == SPYRE_FORMAT_INVALID)
			return complain_usage(
				"invalid value for --attr format: unknown format '%s'", equals + 1);
	} else if (!equals[1] || *end) {
		return complain_usage("invalid value for --attr %s: '%s' is not a number", word,
				      equals + 1);
	}
	a->name = word;
	build->num_attributes++;
	return EXIT_OK;
}

/* Parses DIM=SLICES; DIM is negative and counts from the end, or is K. */
static int add_split(struct build *build, const char *word)
{
	spyre_sdsc_split *split = &build->splits[build->num_splits];
	const char *equals = strchr(word, '=');
	int64_t dim = SPYRE_SDSC_SUMMED;
	char name[16];

	if (build->num_splits == SPYRE_SDSC_MAX_SPLITS)
		return complain_usage("too many --divide options: the limit is %d",
				      SPYRE_SDSC_MAX_SPLITS);
	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : 0, word);
	if (!equals || (strcmp(name, "K") && parse_number(name, -SPYRE_MAX_RANK, -1, &dim)) ||
	    parse_number(equals + 1, 1, INT64_MAX, &split->slices))
		return complain_usage("--divide takes DIM=SLICES with DIM from -%d to -1 (the "
				      "last) or K, not '%s'",
				      SPYRE_MAX_RANK, word);
	split->dim = (int32_t)dim;
	build->num_splits++;
	return EXIT_OK;
}

static int take_option(struct build *build, int option, char **argv)
{
	switch (option) {
	case 'i':
	case 'o':
		return add_operand(build, option == 'o', false, optarg);
	case 's':
		build->shape = optarg;
		return EXIT_OK;
	case 'a':
		return add_attribute(build, optarg);
	case 'd':
		return add_split(build, optarg);
	case 'e':
		build->explain = true;
		return EXIT_OK;
	case 'j':
		build->json = true;
		return EXIT_OK;
	case 'c':
		if (parse_number(optarg, 1, 32, &build->cores))
			return complain_usage(
				"invalid value '%s' for --cores: expected a number from 1 to 32",
				optarg);
		return EXIT_OK;
	default:
		return complain_option(option, argv, options);
	}
}

/* --shape gives this shape to each input that the operation requires. */
static int spread_shape(struct build *build)
{
	uint32_t least, most;
	spyre_status status;
	int code;

	if (!build->shape)
		return EXIT_OK;
	if (build->num_inputs)
		return complain_usage("cannot combine --shape with -i");
	status = spyre_sdsc_operation_inputs(build->op, &least, &most);
	if (status)
		return complain_status(status, "cannot build %s", build->op);
	/* A numeric attribute replaces the second input. */
	for (uint32_t i = 0; i < build->num_attributes && least == 2; i++)
		least -= !strcmp(build->attributes[i].name, "other");
	for (uint32_t i = 0; i < least; i++) {
		code = add_operand(build, false, true, build->shape);
		if (code)
			return code;
	}
	return least ? EXIT_OK : add_operand(build, true, true, build->shape);
}

static bool takes_none(const char *op)
{
	uint32_t least, most;

	return !spyre_sdsc_operation_inputs(op, &least, &most) && !least;
}

static int parse_options(struct build *build, int argc, char **argv)
{
	int option, code;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":i:o:a:", options, NULL)) != -1) {
		code = take_option(build, option, argv);
		if (code)
			return code;
	}
	if (argc - optind > 1)
		return complain_usage("unexpected argument '%s': only one directory is allowed, "
				      "and '%s' was given",
				      argv[optind + 1], argv[optind]);
	build->directory = argv[optind];
	/* Without a directory there is nothing to write, so the plan is printed. */
	build->explain = build->explain || !build->directory;
	code = spread_shape(build);
	if (code)
		return code;
	if (!build->num_inputs && !(build->has_output && takes_none(build->op)))
		return complain_usage("no inputs given; add -i for each input, or --shape");
	return EXIT_OK;
}

/* Adds the operation; *@output is a tensor to write, or SPYRE_SDSC_NEW. */
static spyre_status add_operation(const struct build *build, spyre_sdsc_graph *graph,
				  bool has_output, uint32_t *output)
{
	uint32_t inputs[MAX_OPERANDS];
	spyre_status status = SPYRE_SUCCESS;

	*output = SPYRE_SDSC_NEW;
	for (uint32_t i = 0; i < build->num_inputs && !status; i++)
		status = spyre_sdsc_graph_add_argument(graph, &build->inputs[i], &inputs[i]);
	if (!status && has_output)
		status = spyre_sdsc_graph_add_argument(graph, &build->output, output);
	if (!status)
		status = spyre_sdsc_graph_set_division(graph, build->splits, build->num_splits);
	if (!status)
		status = spyre_sdsc_graph_add_op(graph, build->op, build->attributes,
						 build->num_attributes, inputs, build->num_inputs,
						 output);
	return status;
}

/* The default output is the one that the operation infers. */
static spyre_status infer_output(struct build *build)
{
	spyre_sdsc_graph *graph;
	spyre_status status;
	uint32_t tensor;

	if (build->has_output)
		return SPYRE_SUCCESS;
	status = spyre_sdsc_graph_create(&graph);
	if (status)
		return status;
	status = add_operation(build, graph, false, &tensor);
	if (!status)
		status = spyre_sdsc_graph_get_tensor(graph, tensor, &build->output);
	spyre_sdsc_graph_destroy(graph);
	return status;
}

static int explain_graph(const struct build *build, const spyre_sdsc_graph *graph)
{
	spyre_sdsc_plan *plan;
	spyre_status status;

	status = spyre_sdsc_graph_plan(graph, (uint32_t)build->cores, &plan);
	if (status)
		return complain_status(status, "cannot plan %s", build->op);
	if (build->json)
		explain_json(build->op, plan);
	else
		explain_text(build->op, plan);
	spyre_sdsc_plan_free(plan);
	return EXIT_OK;
}

static int write_bundle(struct build *build, const spyre_sdsc_graph *graph)
{
	spyre_status status;

	if (!build->directory)
		return EXIT_OK;
	status = spyre_sdsc_graph_write(graph, (uint32_t)build->cores, build->directory);
	if (status) {
		int code = complain_status(status, "cannot build %s", build->op);

		return status == SPYRE_ERROR_FILE ? EXIT_DEVICE : code;
	}
	if (!build->json)
		printf("%s: %s\n", build->directory, build->op);
	return EXIT_OK;
}

static int build_operation(struct build *build)
{
	spyre_sdsc_graph *graph;
	spyre_status status;
	uint32_t output;
	int code;

	status = spyre_sdsc_graph_create(&graph);
	if (status)
		return complain_status(status, "cannot build %s", build->op);
	status = infer_output(build);
	if (!status)
		status = add_operation(build, graph, true, &output);
	if (status)
		code = complain_status(status, "cannot build %s", build->op);
	else
		code = write_bundle(build, graph);
	if (!code && (build->explain || build->json))
		code = explain_graph(build, graph);
	spyre_sdsc_graph_destroy(graph);
	return code ? code : finish_output(EXIT_OK);
}

static int run_build(int argc, char **argv)
{
	struct build build = {0};
	int code;

	if (argc < 2 || argv[1][0] == '-')
		return complain_usage("no operation given; the first argument of build is one, as in "
				      "'spyre build add --shape 4x64'");
	build.op = argv[1];
	if (!is_listed(spyre_sdsc_operations(), build.op))
		return complain_operation(build.op);
	code = parse_options(&build, argc - 1, argv + 1);
	return code ? code : build_operation(&build);
}

const struct command command_build = {
	.name = "build",
	.summary = "write an SDSC bundle for one operation, or explain its plan",
	.help = "OP -i SHAPE@FORMAT[:ORDER]… [-o SHAPE@FORMAT[:ORDER]] [-a NAME=VALUE]…\n"
		"                   [--cores N] [--divide DIM=SLICES]… [--explain] [--json] "
		"[DIR]\n"
		"       spyre build OP --shape SHAPE[@FORMAT] …\n"
		"Writes bundle.mlir and the sdsc_*.json of the operation OP to DIR, which is made "
		"if it\nis missing. Without DIR, the plan is only shown.\n\n"
		"  -i, --input SHAPE@FORMAT[:ORDER]   an input; in order\n"
		"  -o, --output SHAPE@FORMAT[:ORDER]  the output (default: what follows from the "
		"inputs)\n"
		"      --shape SHAPE[@FORMAT]  all inputs that OP needs have this shape\n"
		"  -a, --attr NAME=VALUE  an attribute: dim, keepdim, eps, min, max, other, k, stride, …\n"
		"      --cores N  divide the work over at most N cores (default: SENCORES or "
		"32)\n"
		"      --divide DIM=SLICES  divide the work like this, and along no other dimension;\n"
		"                 DIM is -1 (the last), -2, … or K, what a product sums over\n"
		"      --explain  print the plan: division, bytes of a core, LX, modelled cost\n"
		"      --json     print the plan as JSON\n\n"
		"ORDER is the layout's dimension order, as 1,0, or 'sparse' for one element per\n"
		"stick, which is the default for the output of reductions. The second input of\n"
		"matmul is padded to whole sticks along its inner dimension.\n",
	.help_more = print_operations,
	.run = run_build,
};
