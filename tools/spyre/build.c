// SPDX-License-Identifier: MIT
/* spyre build: writes a bundle for one operation. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "shape.h"

/* The inputs and the output of one operation. */
#define MAX_OPERANDS 16

struct build {
	const char *op;
	const char *directory;
	spyre_sdsc_operand inputs[MAX_OPERANDS + 1];
	spyre_sdsc_operand output;
	uint32_t num_inputs;
	bool has_output;
	enum shape_order output_order;
	int64_t cores;
};

static const struct option options[] = {
	{"input", required_argument, NULL, 'i'},
	{"output", required_argument, NULL, 'o'},
	{"cores", required_argument, NULL, 'c'},
	{NULL, 0, NULL, 0},
};

/* Operations that leave one value per stick. */
static const char *const reductions[] = {"sum", "mean", "amax", "amin", NULL};

static bool is_listed(const char *const *names, const char *op)
{
	for (; *names; names++)
		if (!strcmp(*names, op))
			return true;
	return false;
}

static void list_operations(char *buffer, size_t bytes)
{
	const char *const *names = spyre_sdsc_operations();
	size_t used = 0;

	*buffer = '\0';
	for (; *names && used < bytes; names++)
		used += snprintf(buffer + used, bytes - used, "%s%s", used ? ", " : "", *names);
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
 * The second operand of a matmul has its inner dimension padded to whole sticks:
 * the rows that meet the zeros at the end of the first operand's rows.
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

static int add_operand(struct build *build, bool output, const char *word)
{
	spyre_sdsc_operand *operand = output ? &build->output : &build->inputs[build->num_inputs];
	struct shape_spec spec;
	struct text why;
	spyre_status status;

	if (output && build->has_output)
		return complain_usage("'%s': an operation has one output", word);
	if (!output && build->num_inputs == MAX_OPERANDS)
		return complain_usage("'%s': more than %d inputs", word, MAX_OPERANDS);
	if (output ? shape_parse_output(word, &spec, &why) : shape_parse_input(word, &spec, &why))
		return complain_usage("%s", why.s);
	if (spec.path) {
		shape_fini(&spec);
		return complain_usage("'%s': a bundle is built from shapes, not from files", word);
	}
	operand->rank = spec.rank;
	memcpy(operand->size, spec.size, sizeof(operand->size));
	if (output && spec.order == SHAPE_ORDER_AUTO && is_listed(reductions, build->op))
		spec.order = SHAPE_ORDER_SPARSE;
	status = shape_layout(&spec, &operand->layout);
	if (!status && !output && build->num_inputs == 1 && operand->rank > 1 &&
	    spec.order == SHAPE_ORDER_AUTO && !strcmp(build->op, "matmul"))
		status = pad_inner(operand);
	shape_fini(&spec);
	if (status)
		return complain_usage("'%s': %s", word, spyre_last_error());
	build->num_inputs += !output;
	build->has_output |= output;
	return EXIT_OK;
}

static int parse_options(struct build *build, int argc, char **argv)
{
	int option, code = EXIT_OK;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":i:o:", options, NULL)) != -1) {
		if (option == 'i' || option == 'o')
			code = add_operand(build, option == 'o', optarg);
		else if (option == ':')
			code = complain_usage("option '%s' needs a value", argv[optind - 1]);
		else if (option == '?')
			code = complain_usage("no option '%s'", argv[optind - 1]);
		else if (parse_number(optarg, 1, 32, &build->cores))
			code = complain_usage("--cores takes a number from 1 to 32, not '%s'",
					      optarg);
		if (code)
			return code;
	}
	if (optind == argc)
		return complain_usage("no directory given");
	if (argc - optind > 1)
		return complain_usage("one directory, please; '%s' is a second one",
				      argv[optind + 1]);
	build->directory = argv[optind];
	if (!build->num_inputs || !build->has_output)
		return complain_usage("an operation needs -i for each input and one -o");
	return EXIT_OK;
}

static int run_build(int argc, char **argv)
{
	struct build build = {0};
	spyre_status status;
	char names[512];
	int code;

	list_operations(names, sizeof(names));
	if (argc < 2 || argv[1][0] == '-')
		return complain_usage("no operation given; there are %s", names);
	build.op = argv[1];
	if (!is_listed(spyre_sdsc_operations(), build.op))
		return complain_usage("no operation '%s'; there are %s", build.op, names);
	code = parse_options(&build, argc - 1, argv + 1);
	if (code)
		return code;
	build.inputs[build.num_inputs] = build.output;
	status = spyre_sdsc_build(build.op, build.inputs, build.num_inputs + 1,
				  (uint32_t)build.cores, build.directory);
	if (status)
		return complain_status(status, "building %s", build.op);
	printf("%s: %s\n", build.directory, build.op);
	return finish_output(EXIT_OK);
}

const struct command command_build = {
	.name = "build",
	.summary = "write an SDSC bundle for one operation",
	.help = "OP -i SHAPE@FORMAT[:ORDER]… -o SHAPE@FORMAT[:ORDER] [--cores N] DIR\n"
		"Writes bundle.mlir and sdsc_0.json for the operation OP to DIR, which is made if "
		"it\n"
		"is missing.\n\n"
		"  -i, --input SHAPE@FORMAT[:ORDER]   an input; in order\n"
		"  -o, --output SHAPE@FORMAT[:ORDER]  the output\n"
		"      --cores N  divide the work over at most N cores (default: SENCORES or "
		"32)\n\n"
		"ORDER is the layout's dimension order, as 1,0, or 'sparse' for one element per\n"
		"stick, which is the default for the output of reductions. The second input of\n"
		"matmul is padded to whole sticks along its inner dimension.\n",
	.help_more = print_operations,
	.run = run_build,
};
