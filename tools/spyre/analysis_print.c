// SPDX-License-Identifier: MIT
/* Prints an analysis as text and as JSON. */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis.h"

static double part(uint64_t of, uint64_t all)
{
	return all ? 100.0 * (double)of / (double)all : 0;
}

static void print_kernel(const struct analysis *a, const struct kernel *k)
{
	const enum bound bound = analysis_bound(k);
	const uint64_t bytes = analysis_bytes(k);

	trace_print_name(stdout, k->name, 36);
	printf(" %8" PRIu64 " %12.3f %6.1f %13" PRIu64 " %13" PRIu64 " %9.2f ", k->launches,
	       analysis_us(a, (double)k->cycles), part(k->cycles, a->cycles), k->macs, bytes,
	       bytes ? (double)k->macs / (double)bytes : 0);
	if (bound == BOUNDS) {
		printf("%-14s %6s %8s\n", "-", "-", "-");
		return;
	}
	printf("%-7s %5.1f%% %6.1f %8" PRIu64 "\n", bound_names[bound],
	       part(k->bound[bound], k->detailed_cycles),
	       k->all_core_cycles > 0 ?
	       100 * k->used_core_cycles / k->all_core_cycles : 100, k->lx_bytes);
}

void analysis_text(const struct analysis *a)
{
	bool detailed = false;
	struct text text;

	printf("%-36s %8s %12s %6s %13s %13s %9s %-14s %6s %8s\n", "kernel", "launches",
	       "modelled us", "%", "MACs", "LPDDR5 bytes", "MACs/byte", "bound by", "cores%",
	       "LX bytes");
	for (size_t i = 0; i < a->num_kernels; i++) {
		print_kernel(a, &a->kernel[i]);
		detailed |= a->kernel[i].detailed != 0;
	}
	printf("%" PRIu64 " copies and fills: %.3f us modelled, %" PRIu64 " bytes\n", a->copies,
	       analysis_us(a, (double)a->copy_cycles), a->copy_bytes);
	if (!detailed)
		puts("The trace has no time of cores, so nothing is known of bounds and idle cores; "
		     "record it\nwith SPYRE_TRACE_LEVEL=cores or 'spyre trace run --cores'.");
	for (size_t i = 0; i < a->num_advice; i++) {
		analysis_sentence(a, &a->advice[i], &text);
		printf("%zu. ", i + 1);
		trace_print_name(stdout, text.s, -1);
		putchar('\n');
	}
}

static void add_kernel(yyjson_mut_doc *doc, yyjson_mut_val *array, const struct kernel *k)
{
	yyjson_mut_val *to = yyjson_mut_arr_add_obj(doc, array), *bounds;
	const enum bound bound = analysis_bound(k);

	yyjson_mut_obj_add_str(doc, to, "name", k->name);
	yyjson_mut_obj_add_uint(doc, to, "launches", k->launches);
	yyjson_mut_obj_add_uint(doc, to, "cycles", k->cycles);
	yyjson_mut_obj_add_uint(doc, to, "macs", k->macs);
	yyjson_mut_obj_add_uint(doc, to, "bytes_read", k->bytes_read);
	yyjson_mut_obj_add_uint(doc, to, "bytes_written", k->bytes_written);
	if (bound == BOUNDS) {
		yyjson_mut_obj_add_null(doc, to, "bound");
		return;
	}
	yyjson_mut_obj_add_str(doc, to, "bound", bound_names[bound]);
	bounds = yyjson_mut_obj_add_obj(doc, to, "bound_cycles");
	for (int i = 0; i < BOUNDS; i++)
		yyjson_mut_obj_add_uint(doc, bounds, bound_names[i], k->bound[i]);
	yyjson_mut_obj_add_uint(doc, to, "phases", k->phases);
	yyjson_mut_obj_add_uint(doc, to, "card_cores", k->card_cores);
	yyjson_mut_obj_add_real(doc, to, "cores_used", k->all_core_cycles > 0 ?
				k->used_core_cycles / k->all_core_cycles : 1);
	yyjson_mut_obj_add_real(doc, to, "balance", k->longest_core_cycles > 0 ?
				k->busy_core_cycles / k->longest_core_cycles : 1);
	yyjson_mut_obj_add_uint(doc, to, "lx_bytes", k->lx_bytes);
	yyjson_mut_obj_add_uint(doc, to, "lx_bytes_moved", k->lx_moved);
}

int analysis_json(const struct analysis *a)
{
	static const char *const kinds[] = {
		[ADVICE_LPDDR] = "lpddr", [ADVICE_IDLE_CORES] = "idle_cores",
		[ADVICE_BALANCE] = "balance", [ADVICE_LAUNCH] = "launch",
		[ADVICE_COPIES] = "copies",
	};
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *array, *copies;
	struct text text;
	char *json;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "schema_version", 1);
	yyjson_mut_obj_add_uint(doc, root, "clock_hz", a->trace->clock_hz);
	yyjson_mut_obj_add_uint(doc, root, "cycles", a->cycles);
	array = yyjson_mut_obj_add_arr(doc, root, "kernels");
	for (size_t i = 0; i < a->num_kernels; i++)
		add_kernel(doc, array, &a->kernel[i]);
	copies = yyjson_mut_obj_add_obj(doc, root, "copies");
	yyjson_mut_obj_add_uint(doc, copies, "count", a->copies);
	yyjson_mut_obj_add_uint(doc, copies, "cycles", a->copy_cycles);
	yyjson_mut_obj_add_uint(doc, copies, "bytes", a->copy_bytes);
	array = yyjson_mut_obj_add_arr(doc, root, "advice");
	for (size_t i = 0; i < a->num_advice; i++) {
		const struct advice *advice = &a->advice[i];
		yyjson_mut_val *to = yyjson_mut_arr_add_obj(doc, array);

		analysis_sentence(a, advice, &text);
		yyjson_mut_obj_add_str(doc, to, "kind", kinds[advice->kind]);
		yyjson_mut_obj_add_real(doc, to, "cycles", advice->cycles);
		yyjson_mut_obj_add_strcpy(doc, to, "text", text.s);
	}
	/* A control character of the file would be one of the terminal's. */
	json = yyjson_mut_write(doc, YYJSON_WRITE_ESCAPE_UNICODE, NULL);
	yyjson_mut_doc_free(doc);
	if (!json)
		return complain(EXIT_DEVICE, "no memory to print the analysis");
	puts(json);
	free(json);
	return EXIT_OK;
}
