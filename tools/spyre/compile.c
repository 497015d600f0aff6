// SPDX-License-Identifier: MIT
/* spyre compile and dxp_standalone: compile a bundle ahead of time. */
#include "config.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yyjson.h>

#include "spyre.h"

/*
 * Of the 2 MiB of LX the public front-end takes 64 KiB to be in use for other purposes; it
 * plans tensors into the rest from byte 0 on, but for the fraction that it leaves to the
 * compiler. These tensors may live from one kernel to the next.
 */
#define LX_BYTES (2 << 20)
#define LX_PLANNED (LX_BYTES - (64 << 10))
#define LX_FRACTION 0.2
#define STICK 128

struct compile {
	const char *directory;
	const char *output;
	int64_t cores;
	int64_t lx_kept;
	bool json;
};

enum {
	OPTION_BUNDLE = 256,
	OPTION_CORES,
	OPTION_LX_KEPT,
	OPTION_JSON
};

static const struct option options[] = {
	{"bundle", no_argument, NULL, OPTION_BUNDLE},
	{"directory", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"cores", required_argument, NULL, OPTION_CORES},
	{"lx-kept", required_argument, NULL, OPTION_LX_KEPT},
	{"json", no_argument, NULL, OPTION_JSON},
	{NULL, 0, NULL, 0},
};

static int set_directory(struct compile *compile, const char *word)
{
	if (compile->directory)
		return complain_usage(
			"unexpected argument '%s': only one bundle directory is allowed", word);
	compile->directory = word;
	return EXIT_OK;
}

static int handle_option(struct compile *compile, int option, char **argv)
{
	switch (option) {
	case OPTION_BUNDLE: /* accepted for compatibility */
		return EXIT_OK;
	case 'd':
		return set_directory(compile, optarg);
	case 'o':
		compile->output = optarg;
		return EXIT_OK;
	case OPTION_CORES:
		if (parse_number(optarg, 1, 32, &compile->cores))
			return complain_usage(
				"invalid value '%s' for --cores: expected a number from 1 to 32",
				optarg);
		return EXIT_OK;
	case OPTION_LX_KEPT:
		if (parse_number(optarg, 0, LX_BYTES, &compile->lx_kept) ||
		    compile->lx_kept % STICK)
			return complain_usage(
				"invalid value '%s' for --lx-kept: expected a multiple of %d from 0 to %d",
				optarg, STICK, LX_BYTES);
		return EXIT_OK;
	case OPTION_JSON:
		compile->json = true;
		return EXIT_OK;
	default:
		return complain_option(option, argv, options);
	}
}

/* Sets what the front-end plans tensors into: it and its compiler read the same variable. */
static int keep_planned(struct compile *compile)
{
	const char *text = getenv("DXP_LX_FRAC_AVAIL");
	double fraction = LX_FRACTION;
	char *end;

	if (text && *text) {
		fraction = strtod(text, &end);
		if (end == text || *end || !(fraction >= 0 && fraction <= 1))
			return complain_usage(
				"invalid value '%s' of DXP_LX_FRAC_AVAIL: expected a fraction from 0 to 1",
				text);
	}
	compile->lx_kept = (int64_t)(LX_PLANNED * (1.0 - fraction));
	compile->lx_kept = (compile->lx_kept + STICK - 1) / STICK * STICK;
	return EXIT_OK;
}

static int parse_options(struct compile *compile, int argc, char **argv)
{
	int option, code;

	if (is_own_program()) {
		code = keep_planned(compile);
		if (code)
			return code;
	}
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":d:o:", options, NULL)) != -1) {
		code = handle_option(compile, option, argv);
		if (code)
			return code;
	}
	for (; optind < argc; optind++) {
		code = set_directory(compile, argv[optind]);
		if (code)
			return code;
	}
	return compile->directory ? EXIT_OK
				  : complain_usage("no bundle directory given; add -d DIR");
}

static int print_json(const spyre_kernel_info *info)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "schema_version", 1);
	yyjson_mut_obj_add_str(doc, root, "name", info->name);
	yyjson_mut_obj_add_uint(doc, root, "args", info->num_args);
	yyjson_mut_obj_add_uint(doc, root, "sdscs", info->num_sdscs);
	yyjson_mut_obj_add_uint(doc, root, "cores", info->num_cores);
	yyjson_mut_obj_add_uint(doc, root, "symbols", info->num_symbols);
	yyjson_mut_obj_add_uint(doc, root, "lx_bytes", info->lx_bytes);
	yyjson_mut_obj_add_uint(doc, root, "lx_kept", info->lx_kept);
	yyjson_mut_obj_add_uint(doc, root, "pool_bytes", info->pool_bytes);
	yyjson_mut_obj_add_uint(doc, root, "program_bytes", info->program_bytes);
	yyjson_mut_obj_add_uint(doc, root, "cycles", info->cycles);
	text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return complain(EXIT_DEVICE, "cannot print the report: no memory for its JSON text");
	puts(text);
	free(text);
	return EXIT_OK;
}

/* SPYRE_ERROR_FILE concerns the bundle if the output directory is writable. */
static bool output_usable(const struct compile *compile)
{
	const char *output = compile->output ? compile->output : compile->directory;

	return access(compile->directory, R_OK) || !access(output, W_OK);
}

static int run_compile(int argc, char **argv)
{
	spyre_kernel_options kernel = {.struct_size = sizeof(kernel)};
	spyre_kernel_info info = {.struct_size = sizeof(info)};
	struct compile compile = {0};
	spyre_status status;
	int code = parse_options(&compile, argc, argv);

	if (code)
		return code;
	kernel.cores = compile.cores;
	kernel.lx_kept = compile.lx_kept;
	status = spyre_kernel_compile_ex(compile.directory, compile.output, &kernel, &info);
	if (status) {
		code = complain_status(status, "cannot compile %s", compile.directory);
		return status == SPYRE_ERROR_FILE && !output_usable(&compile) ? EXIT_DEVICE : code;
	}
	if (compile.json)
		return finish_output(print_json(&info));
	/* Front-ends run dxp_standalone once per graph and pass its output on to the user. */
	if (is_own_program())
		return EXIT_OK;
	printf("%s: %u SDSC%s, %u argument%s, %u core%s, program of %" PRIu64 " bytes, %" PRIu64
	       " cycles\n", info.name, info.num_sdscs, info.num_sdscs == 1 ? "" : "s",
	       info.num_args, info.num_args == 1 ? "" : "s", info.num_cores,
	       info.num_cores == 1 ? "" : "s", info.program_bytes, info.cycles);
	return finish_output(EXIT_OK);
}

const struct command command_compile = {
	.name = "compile",
	.summary = "compile an SDSC bundle ahead of time",
	.help = "[--bundle] [OPTION]… [-d] DIR\n"
		"       dxp_standalone --bundle -d DIR\n"
		"Writes spyrecode.json and init_binary.bin to DIR/spyreCodeDir, where a load finds\n"
		"them.\n\n"
		"      --bundle         DIR is an SDSC bundle (the only kind there is)\n"
		"  -d, --directory DIR  the bundle\n"
		"  -o, --output DIR     write to this directory instead\n"
		"      --cores N        cores of the card that it is for (default 32)\n"
		"      --lx-kept BYTES  bytes of LX that live beyond the kernel (default 0)\n"
		"      --json           print one JSON object\n",
	.run = run_compile,
};
