// SPDX-License-Identifier: MIT
/* spyre explain: the lines of a model from which a kernel of a trace stems. */
#include "config.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provenance.h"

static const struct option options[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "file", required_argument, NULL, 'f' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

struct command_line {
	const char *event, *file;
	bool json;
};

/* A kernel of the side file. */
struct found {
	yyjson_val *root, *kernel;
	const char *key;
};

static int parse_options(struct command_line *line, int argc, char **argv)
{
	int option;

	line->file = getenv("TORCH_SPYRE_PROVENANCE_FILE");
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option == 'e')
			line->event = optarg;
		else if (option == 'f')
			line->file = optarg;
		else if (option == 'j')
			line->json = true;
		else
			return complain_option(option, argv, options);
	}
	if (optind < argc)
		return complain_usage("unexpected argument '%s': only options are allowed",
				      argv[optind]);
	if (!line->file || !*line->file)
		return complain_usage("no side file given; name it by --file or by "
				      "TORCH_SPYRE_PROVENANCE_FILE");
	if (!line->event)
		return complain_usage("no event given; give the name of a kernel in a trace, or its "
				      "key of 16 letters, as in 'spyre explain --event KEY'");
	return EXIT_OK;
}

/* The steps of a kernel: calls @show with each number and its handle. */
static void each_step(const struct found *f, void (*show)(uint64_t step, const char *number,
							   yyjson_val *handle, void *data),
		      void *data)
{
	yyjson_val *bindings = yyjson_obj_get(f->kernel, "specHandleBindings"), *binding;
	size_t i, n;

	yyjson_arr_foreach(bindings, i, n, binding)
	{
		yyjson_val *step = yyjson_arr_get_first(yyjson_obj_get(binding, "specPath"));
		const char *number = yyjson_get_str(yyjson_obj_get(binding, "handleId"));
		yyjson_val *handle = provenance_handle(f->root, number);

		if (yyjson_is_uint(step) && handle)
			show(yyjson_get_uint(step), number, handle, data);
	}
}

struct printed {
	struct provenance_sources *sources;
	const char *last;		/* the handle of the step before, or NULL */
};

static void print_step(uint64_t step, const char *number, yyjson_val *handle, void *data)
{
	yyjson_val *passes = yyjson_obj_get(handle, "transform_history"), *pass;
	struct provenance_line line;
	char where[600] = "unknown";
	struct printed *printed = data;
	size_t i, n;

	provenance_line(printed->sources, handle, &line);
	if (line.file)
		snprintf(where, sizeof(where), "%s:%" PRId64, printable(line.file).s, line.line);
	printf("%4" PRIu64 "  %-24s  %s", step,
	       printable(yyjson_get_str(yyjson_obj_get(handle, "aten_op"))).s, where);
	yyjson_arr_foreach(passes, i, n, pass)
	{
		const char *name = yyjson_get_str(yyjson_obj_get(pass, "pass_name"));

		printf("%s%s", i ? ", " : "  by ", printable(name).s);
	}
	putchar('\n');
	if (*line.text.s && (!printed->last || strcmp(printed->last, number)))
		printf("      %s\n", line.text.s);
	printed->last = number;
}

static void print_kernel(const struct found *f, struct provenance_sources *sources)
{
	yyjson_val *list = yyjson_obj_get(f->root, "kernelOccurrences"), *name, *occurrence;
	yyjson_val *base = yyjson_obj_get(f->kernel, "eventNameBase");
	struct printed printed = { .sources = sources };
	size_t i, n;

	printf("kernel   %s\n", printable(yyjson_get_str(base)).s);
	yyjson_obj_foreach(list, i, n, name, occurrence)
	{
		const char *key = yyjson_get_str(yyjson_obj_get(occurrence, "identityKey"));
		yyjson_val *compiled = yyjson_obj_get(occurrence, "compilerKernelName");

		if (key && !strcmp(key, f->key))
			printf("wrapper  %s\n", printable(yyjson_get_str(compiled)).s);
	}
	puts("\nstep  operation                 line");
	each_step(f, print_step, &printed);
}

/* Adds a text, or null. */
static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *name,
		     const char *text)
{
	if (text)
		yyjson_mut_obj_add_str(doc, object, name, text);
	else
		yyjson_mut_obj_add_null(doc, object, name);
}

struct json {
	yyjson_mut_doc *doc;
	yyjson_mut_val *steps;
	struct provenance_sources *sources;
};

static void add_step(uint64_t step, const char *number, yyjson_val *handle, void *data)
{
	yyjson_val *passes = yyjson_obj_get(handle, "transform_history"), *pass;
	struct json *json = data;
	yyjson_mut_val *entry = yyjson_mut_arr_add_obj(json->doc, json->steps), *list;
	struct provenance_line line;
	size_t i, n;

	provenance_line(json->sources, handle, &line);
	yyjson_mut_obj_add_uint(json->doc, entry, "step", step);
	yyjson_mut_obj_add_str(json->doc, entry, "handle", number);
	add_text(json->doc, entry, "aten_op", yyjson_get_str(yyjson_obj_get(handle, "aten_op")));
	add_text(json->doc, entry, "file", line.file);
	yyjson_mut_obj_add_sint(json->doc, entry, "line", line.line);
	yyjson_mut_obj_add_strcpy(json->doc, entry, "text", line.text.s);
	list = yyjson_mut_obj_add_arr(json->doc, entry, "passes");
	yyjson_arr_foreach(passes, i, n, pass)
	{
		yyjson_mut_arr_add_str(json->doc, list,
				       yyjson_get_str(yyjson_obj_get(pass, "pass_name")));
	}
}

static int print_json(const struct found *f, struct provenance_sources *sources)
{
	struct json json = { .doc = yyjson_mut_doc_new(NULL), .sources = sources };
	yyjson_mut_val *root = yyjson_mut_obj(json.doc);
	char *text;

	yyjson_mut_doc_set_root(json.doc, root);
	yyjson_mut_obj_add_uint(json.doc, root, "schema_version", 1);
	yyjson_mut_obj_add_str(json.doc, root, "key", f->key);
	add_text(json.doc, root, "event",
		 yyjson_get_str(yyjson_obj_get(f->kernel, "eventNameBase")));
	json.steps = yyjson_mut_obj_add_arr(json.doc, root, "steps");
	each_step(f, add_step, &json);
	/* A control character of the file would be one of the terminal's. */
	text = yyjson_mut_write(json.doc, YYJSON_WRITE_ESCAPE_UNICODE, NULL);
	yyjson_mut_doc_free(json.doc);
	if (!text)
		return complain(EXIT_DEVICE, "no memory for the JSON text");
	puts(text);
	free(text);
	return EXIT_OK;
}

static int run_explain(int argc, char **argv)
{
	struct command_line line = { 0 };
	int code = parse_options(&line, argc, argv);
	struct provenance_sources sources = { 0 };
	struct found f = { 0 };
	yyjson_doc *doc;
	struct text why;

	if (code)
		return code;
	doc = provenance_read(line.file, &why);
	if (!doc)
		return complain(EXIT_USAGE, "%s", why.s);
	f.root = yyjson_doc_get_root(doc);
	f.kernel = provenance_find(f.root, line.event, &f.key);
	if (!f.kernel)
		code = complain(EXIT_USAGE, "cannot explain '%s': none of the %zu kernels of '%s' has "
				"a key that is in it; pass the file of the run that made the trace",
				printable(line.event).s,
				yyjson_obj_size(yyjson_obj_get(f.root, "kernelIdentities")),
				printable(line.file).s);
	else if (line.json)
		code = print_json(&f, &sources);
	else
		print_kernel(&f, &sources);
	if (sources.left_out)
		fprintf(stderr, "spyre explain: %" PRIu64 " lines are not shown: more than %" PRIu64
			" bytes of source files would have to be searched\n", sources.left_out,
			PROVENANCE_SEARCH_MAX);
	provenance_release(&sources);
	yyjson_doc_free(doc);
	return code ? code : finish_output(EXIT_OK);
}

const struct command command_explain = {
	.name = "explain",
	.summary = "show the lines of a model that a kernel stems from",
	.help = "[OPTION]… --event KEY\n"
		"Prints the SDSCs of a kernel of torch.compile with the operations and the lines of\n"
		"the model that they stem from, and the passes between. They are read from the side\n"
		"file that torch_spyre writes if TORCH_SPYRE_PROVENANCE_FILE names it.\n\n"
		"      --event KEY  the kernel's name in a trace, or the key of 16 letters in it\n"
		"      --file FILE  the side file (default TORCH_SPYRE_PROVENANCE_FILE)\n"
		"      --json     print one JSON object\n",
	.run = run_explain,
};
