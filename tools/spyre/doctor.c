// SPDX-License-Identifier: MIT
/* spyre doctor: checks that this machine can use a card and suggests fixes. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "finding.h"

static const char *const level_names[] = {"ok", "warn", "fail"};

static void check_versions(struct findings *findings)
{
	uint32_t library = spyre_version();
	uint32_t headers =
		SPYRE_VERSION_MAJOR << 16 | SPYRE_VERSION_MINOR << 8 | SPYRE_VERSION_PATCH;

	if (library == headers) {
		finding_add(findings, "library", FINDING_OK, "libspyre %u.%u.%u", library >> 16,
			    library >> 8 & 0xff, library & 0xff);
		return;
	}
	finding_add(findings, "library", FINDING_WARN, "libspyre %u.%u.%u, this command %s",
		    library >> 16, library >> 8 & 0xff, library & 0xff, PACKAGE_VERSION);
	finding_fix(findings,
		    "the loader may find another copy first: check ldd and LD_LIBRARY_PATH");
}

static void fix_status(struct findings *findings, spyre_status status)
{
	if (status == SPYRE_ERROR_NO_DRIVER)
		finding_fix(findings, "modprobe spyre_vdev, or unset SPYRE_BACKEND for an "
				      "embedded card");
	else if (status == SPYRE_ERROR_CONFIGURATION)
		finding_fix(findings, "unset or correct the variable; 'spyre info' lists what is "
				      "set");
	else if (status == SPYRE_ERROR_NO_PERMISSION)
		finding_fix(findings, "see the node finding above");
	else if (status == SPYRE_ERROR_ABI_MISMATCH)
		finding_fix(findings, "install the module and the library of the same release");
	else
		finding_fix(findings, "run again with SPYRE_LOG=debug");
}

/* Opens the card and allocates a page, as any first program would. */
static void check_card(struct findings *findings, int index)
{
	spyre_device_properties p = {.struct_size = sizeof(p)};
	spyre_context *context = NULL;
	spyre_devptr address;
	spyre_status status = spyre_device_get_properties(index, &p);

	if (!status)
		status = spyre_context_create(index, 0, &context);
	if (!status)
		status = spyre_mem_alloc(context, 4096, &address);
	if (!status)
		status = spyre_mem_free(context, address);
	if (status) {
		finding_add(findings, "card", FINDING_FAIL, "card %d: %s: %s", index,
			    spyre_status_name(status), spyre_last_error());
		fix_status(findings, status);
	} else {
		finding_add(findings, "card", FINDING_OK,
			    "card %d: %s, %s, %u cores, %llu MiB, opens and allocates", index,
			    p.backend == SPYRE_BACKEND_DRM ? p.node : "embedded",
			    *p.unit ? p.unit : "unit unknown", p.num_cores,
			    (unsigned long long)p.memory_bytes >> 20);
	}
	spyre_context_destroy(context);
}

static void check_cards(struct findings *findings)
{
	spyre_status status;
	int count = 0;

	status = spyre_device_count(&count);
	if (status) {
		finding_add(findings, "card", FINDING_FAIL, "%s: %s", spyre_status_name(status),
			    spyre_last_error());
		fix_status(findings, status);
	} else if (!count) {
		finding_add(findings, "card", FINDING_FAIL, "no card is visible");
		finding_fix(findings, "unset SPYRE_DEVICES and AIU_WORLD_SIZE, which limit what is "
				      "visible");
	}
	for (int i = 0; !status && i < count; i++)
		check_card(findings, i);
}

static int print_json(const struct findings *findings, bool usable)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *array;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "schema_version", 1);
	yyjson_mut_obj_add_bool(doc, root, "usable", usable);
	array = yyjson_mut_obj_add_arr(doc, root, "findings");
	for (uint32_t i = 0; i < findings->count; i++) {
		const struct finding *f = &findings->at[i];
		yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, array);

		yyjson_mut_obj_add_str(doc, object, "check", f->check);
		yyjson_mut_obj_add_str(doc, object, "level", level_names[f->level]);
		yyjson_mut_obj_add_str(doc, object, "text", f->text);
		if (*f->fix)
			yyjson_mut_obj_add_str(doc, object, "fix", f->fix);
		else
			yyjson_mut_obj_add_null(doc, object, "fix");
	}
	text = yyjson_mut_write(doc, 0, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return complain(EXIT_DEVICE, "cannot print the report: no memory for its JSON text");
	puts(text);
	free(text);
	return EXIT_OK;
}

static void print_text(const struct findings *findings, bool usable)
{
	for (uint32_t i = 0; i < findings->count; i++) {
		const struct finding *f = &findings->at[i];

		printf("%-5s %-10s %s\n", level_names[f->level], f->check, f->text);
		if (*f->fix)
			printf("                 fix: %s\n", f->fix);
	}
	puts(usable ? "Cards can be used." : "Cards cannot be used: see the failed checks above.");
}

static int run_doctor(int argc, char **argv)
{
	struct findings findings = {0};
	bool json = false, usable = true;
	int code;

	code = parse_json_only(argc, argv, &json);
	if (code)
		return code;
	check_versions(&findings);
	finding_module(&findings);
	finding_nodes(&findings);
	check_cards(&findings);
	finding_memlock(&findings);
	finding_io_uring(&findings);
	finding_hugepages(&findings);
	finding_vector_units(&findings);
	for (uint32_t i = 0; i < findings.count; i++)
		usable &= findings.at[i].level != FINDING_FAIL;
	if (json)
		code = print_json(&findings, usable);
	else
		print_text(&findings, usable);
	if (!code && !usable)
		code = EXIT_DEVICE;
	return finish_output(code);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check that cards can be used, and say what would help",
	.help = "[--json]\n"
		"Looks at the kernel module, the nodes and their group, the cards (each is "
		"opened),\nRLIMIT_MEMLOCK, io_uring, huge pages and the CPU. Each finding is ok, "
		"warn or\n"
		"fail, with its fix. Exit status 0 if nothing failed, else 1.\n",
	.run = run_doctor,
};
