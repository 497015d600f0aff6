// SPDX-License-Identifier: MIT
/* spyre build --explain: prints how an operation is divided and placed, and its modelled cost. */
#include "explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <yyjson.h>

static const char *place_name(spyre_sdsc_place place)
{
	static const char *const names[] = {"arg", "pool", "lx"};

	return names[place];
}

/* "mb 8, out 4, in 1" */
static void format_slices(const spyre_sdsc_plan_step *s, const int64_t *slices, char *text,
			  size_t bytes)
{
	size_t used = 0;

	*text = '\0';
	for (uint32_t d = 0; d < s->num_dims && used < bytes; d++)
		used += snprintf(text + used, bytes - used, "%s%s %" PRId64, d ? ", " : "",
				 s->dim[d], slices[d]);
}

/* "  asked for: mb 8" */
static void format_asked(const spyre_sdsc_plan_step *s, char *text, size_t bytes)
{
	size_t used = 0;

	*text = '\0';
	for (uint32_t d = 0; d < s->num_dims && used < bytes; d++)
		if (s->asked[d])
			used += snprintf(text + used, bytes - used, "%s%s %" PRId64,
					 used ? ", " : "  asked for: ", s->dim[d], s->asked[d]);
}

static void print_divisions(const spyre_sdsc_plan *plan)
{
	char text[256], asked[256];

	puts("\nstep  operation         cores  slices of each dimension          model us");
	for (uint32_t i = 0; i < plan->num_steps; i++) {
		const spyre_sdsc_plan_step *s = &plan->step[i];

		format_slices(s, s->choice[0].slices, text, sizeof(text));
		format_asked(s, asked, sizeof(asked));
		printf("%4u  %-16s  %5u  %-32s  %8.3f%s\n", i, s->op, s->num_cores, text,
		       s->choice[0].microseconds, asked);
		for (uint32_t k = 1; k < s->num_choices; k++) {
			format_slices(s, s->choice[k].slices, text, sizeof(text));
			printf("      %-16s         %-32s  %8.3f\n", k == 1 ? "instead of" : "",
			       text, s->choice[k].microseconds);
		}
	}
}

static void print_operands(const spyre_sdsc_plan *plan)
{
	puts("\nstep  operand  where            bytes of a core        its span");
	for (uint32_t i = 0; i < plan->num_steps; i++) {
		const spyre_sdsc_plan_step *s = &plan->step[i];

		for (uint32_t k = 0; k < s->num_tensors; k++) {
			const spyre_sdsc_plan_tensor *t = &plan->tensor[s->tensor[k]];
			char where[32];

			snprintf(where, sizeof(where), "%s %" PRIu64, place_name(t->place), t->at);
			printf("%4u  %-7s  %-16s %15" PRIu64 " %15" PRIu64 "\n", i,
			       k + 1 == s->num_tensors ? "out" : "in", where, s->core_bytes[k],
			       s->core_span[k]);
		}
	}
}

static void print_map(const spyre_sdsc_plan *plan, spyre_sdsc_place place, const char *title)
{
	bool any = false;

	for (uint32_t i = 0; i < plan->num_tensors; i++) {
		const spyre_sdsc_plan_tensor *t = &plan->tensor[i];

		if (t->place != place || t->first > t->last)
			continue;
		if (!any)
			printf("\n%s\n   from byte    to byte  steps\n", title);
		any = true;
		printf("  %10" PRIu64 " %10" PRIu64 "  %u to %u  ", t->at, t->at + t->bytes,
		       t->first, t->last);
		for (uint32_t s = 0; s < plan->num_steps; s++)
			putchar(s < t->first || s > t->last ? '.' : '#');
		putchar('\n');
	}
}

void explain_text(const char *op, const spyre_sdsc_plan *plan)
{
	printf("%s: %u step%s; LX %" PRIu64 " of %" PRIu64 " bytes per core, pool %" PRIu64 " bytes\n",
	       op, plan->num_steps, plan->num_steps == 1 ? "" : "s", plan->lx_bytes,
	       plan->lx_capacity, plan->pool_bytes);
	printf("modelled: %" PRIu64 " cycles, %" PRIu64 " bytes read, %" PRIu64 " written, %" PRIu64
	       " multiply-adds\n", plan->cycles, plan->bytes_read, plan->bytes_written, plan->macs);
	print_divisions(plan);
	print_operands(plan);
	print_map(plan, SPYRE_SDSC_LX, "LX of each core");
	print_map(plan, SPYRE_SDSC_POOL, "pool");
}

static yyjson_mut_val *slices_object(yyjson_mut_doc *doc, const spyre_sdsc_plan_step *s,
				     const int64_t *slices)
{
	yyjson_mut_val *object = yyjson_mut_obj(doc);

	for (uint32_t d = 0; d < s->num_dims; d++)
		yyjson_mut_obj_add_sint(doc, object, s->dim[d], slices[d]);
	return object;
}

static void add_step(yyjson_mut_doc *doc, yyjson_mut_val *array, const spyre_sdsc_plan_step *s)
{
	yyjson_mut_val *step = yyjson_mut_arr_add_obj(doc, array), *list;

	yyjson_mut_obj_add_str(doc, step, "operation", s->op);
	yyjson_mut_obj_add_uint(doc, step, "cores", s->num_cores);
	yyjson_mut_obj_add_val(doc, step, "sizes", slices_object(doc, s, s->size));
	yyjson_mut_obj_add_val(doc, step, "asked", slices_object(doc, s, s->asked));
	list = yyjson_mut_obj_add_arr(doc, step, "divisions");
	for (uint32_t k = 0; k < s->num_choices; k++) {
		yyjson_mut_val *choice = yyjson_mut_arr_add_obj(doc, list);

		yyjson_mut_obj_add_bool(doc, choice, "chosen", k == 0);
		yyjson_mut_obj_add_val(doc, choice, "slices",
				       slices_object(doc, s, s->choice[k].slices));
		yyjson_mut_obj_add_real(doc, choice, "microseconds", s->choice[k].microseconds);
	}
	list = yyjson_mut_obj_add_arr(doc, step, "operands");
	for (uint32_t k = 0; k < s->num_tensors; k++) {
		yyjson_mut_val *operand = yyjson_mut_arr_add_obj(doc, list);

		yyjson_mut_obj_add_uint(doc, operand, "tensor", s->tensor[k]);
		yyjson_mut_obj_add_bool(doc, operand, "output", k + 1 == s->num_tensors);
		yyjson_mut_obj_add_uint(doc, operand, "core_bytes", s->core_bytes[k]);
		yyjson_mut_obj_add_uint(doc, operand, "core_span", s->core_span[k]);
	}
}

static void add_tensor(yyjson_mut_doc *doc, yyjson_mut_val *array,
		       const spyre_sdsc_plan_tensor *t)
{
	yyjson_mut_val *tensor = yyjson_mut_arr_add_obj(doc, array);

	yyjson_mut_obj_add_str(doc, tensor, "place", place_name(t->place));
	yyjson_mut_obj_add_uint(doc, tensor, "at", t->at);
	yyjson_mut_obj_add_uint(doc, tensor, "bytes", t->bytes);
	if (t->first > t->last) {
		yyjson_mut_obj_add_null(doc, tensor, "first_step");
		yyjson_mut_obj_add_null(doc, tensor, "last_step");
		return;
	}
	yyjson_mut_obj_add_uint(doc, tensor, "first_step", t->first);
	yyjson_mut_obj_add_uint(doc, tensor, "last_step", t->last);
}

void explain_json(const char *op, const spyre_sdsc_plan *plan)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "version", 1);
	yyjson_mut_obj_add_str(doc, root, "operation", op);
	yyjson_mut_obj_add_uint(doc, root, "lx_capacity", plan->lx_capacity);
	yyjson_mut_obj_add_uint(doc, root, "lx_bytes", plan->lx_bytes);
	yyjson_mut_obj_add_uint(doc, root, "pool_bytes", plan->pool_bytes);
	yyjson_mut_obj_add_uint(doc, root, "cycles", plan->cycles);
	yyjson_mut_obj_add_uint(doc, root, "bytes_read", plan->bytes_read);
	yyjson_mut_obj_add_uint(doc, root, "bytes_written", plan->bytes_written);
	yyjson_mut_obj_add_uint(doc, root, "macs", plan->macs);
	list = yyjson_mut_obj_add_arr(doc, root, "steps");
	for (uint32_t i = 0; i < plan->num_steps; i++)
		add_step(doc, list, &plan->step[i]);
	list = yyjson_mut_obj_add_arr(doc, root, "tensors");
	for (uint32_t i = 0; i < plan->num_tensors; i++)
		add_tensor(doc, list, &plan->tensor[i]);
	text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
	if (text)
		puts(text);
	free(text);
	yyjson_mut_doc_free(doc);
}
