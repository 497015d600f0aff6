// SPDX-License-Identifier: MIT
/* Prints the estimates of a model as tables or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "estimate.h"

static double milliseconds(uint64_t cycles)
{
	return cycles / CLOCK_HZ * 1e3;
}

/* The time in which the memory of a card delivers what a step has to read. */
static double bound(const struct cost *c)
{
	return c->needed / LPDDR5_PEAK * 1e3;
}

static double tokens_per_second(const struct estimate *e, const struct decode *d)
{
	return e->options.batch * CLOCK_HZ / d->total.cycles;
}

static const struct decode *first_possible(const struct estimate *e)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (e->possible[i])
			return &e->decode[i];
	return NULL;
}

static const char *format_name(const struct estimate *e)
{
	return e->options.fp8 ? "fp8" : "dl16";
}

static void print_parts(const struct decode *d)
{
	printf("\nA step on %" PRId64 " card%s:\n\n", d->cards, d->cards == 1 ? "" : "s, on each");
	puts("part                       ms   share     MB read   MB needed    bound ms");
	for (int i = 0; i < PART_COUNT; i++) {
		const struct cost *c = &d->part[i];

		if (c->cycles)
			printf("%-18s %10.3f %6.1f%% %11.1f %11.1f %11.3f\n", part_names[i],
			       milliseconds(c->cycles), 100.0 * c->cycles / d->total.cycles,
			       c->bytes_read / 1e6, c->needed / 1e6, bound(c));
	}
	printf("%-18s %10.3f %6.1f%% %11.1f %11.1f %11.3f\n", "total",
	       milliseconds(d->total.cycles), 100.0, d->total.bytes_read / 1e6,
	       d->total.needed / 1e6, bound(&d->total));
}

/* Columns of the second table, each of some of the parts. */
static double share_of(const struct decode *d, uint32_t parts)
{
	uint64_t cycles = 0;

	for (int i = 0; i < PART_COUNT; i++)
		if (parts >> i & 1)
			cycles += d->part[i].cycles;
	return milliseconds(cycles);
}

static const uint32_t columns[] = {
	1 << PART_PROJECTIONS | 1 << PART_MLP | 1 << PART_MAMBA_PROJECTIONS | 1 << PART_HEAD,
	1 << PART_ATTENTION,
	1 << PART_EXPERTS,
	1 << PART_MAMBA,
	1 << PART_LINKS,
	1 << PART_EMBEDDING | 1 << PART_NORMS,
};

static void print_cards(const struct estimate *e)
{
	puts("\ncards  ms/token  tokens/s  bound ms  of bound   weights attention   experts     Mamba"
	     "     links    others   GiB");
	for (uint32_t i = 0; i < e->count; i++) {
		const struct decode *d = &e->decode[i];
		double ms = milliseconds(d->total.cycles);

		if (!e->possible[i]) {
			printf("%5" PRId64 "  %s\n", d->cards, e->why[i].s);
			continue;
		}
		printf("%5" PRId64 " %9.3f %9.1f %9.3f %8.1f%%", d->cards, ms,
		       tokens_per_second(e, d), bound(&d->total), 100 * bound(&d->total) / ms);
		for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++)
			printf(" %9.3f", share_of(d, columns[k]));
		printf(" %5.1f\n", (d->total.weights + d->total.cache) / (1 << 30));
	}
}

void estimate_text(const struct estimate *e)
{
	const struct model *m = &e->model;
	const struct decode *d = first_possible(e);

	printf("%s (%s): %" PRId64 " layers (%" PRId64 " of full attention", m->name, m->type,
	       m->layers, m->full_layers);
	if (m->window_layers)
		printf(", %" PRId64 " with a window of %" PRId64, m->window_layers, m->window);
	if (m->mamba_layers)
		printf(", %" PRId64 " of Mamba", m->mamba_layers);
	printf(")\nbatch %" PRId64 ", context %" PRId64 ", linear weights in %s\n", e->options.batch,
	       e->options.context, format_name(e));
	print_parts(d);
	print_cards(e);
	printf("\nTimes are modelled: compiled programs at %.1f GHz, nothing is executed. The bound is\n"
	       "the time in which LPDDR5 at its peak of %.1f GB/s delivers the weights, the cache\n"
	       "and the state of a step; weights include the lm head.\n", CLOCK_HZ / 1e9,
	       LPDDR5_PEAK / 1e9);
	if (e->count > 1 || e->decode[0].cards > 1)
		printf("Assumed for several cards: heads and columns are divided, two sums in each layer\n"
		       "over PCIe at %.0f GB/s, %d cycles until a copy begins.\n",
		       LINK_BYTES * CLOCK_HZ / 1e9, LINK_START);
	if (e->options.fp8)
		puts("Embedding, router, experts and lm head stay in dl16.");
}

static void add_cost(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct cost *c)
{
	yyjson_mut_obj_add_uint(doc, object, "cycles", c->cycles);
	yyjson_mut_obj_add_real(doc, object, "ms", milliseconds(c->cycles));
	yyjson_mut_obj_add_uint(doc, object, "bytes_read", c->bytes_read);
	yyjson_mut_obj_add_uint(doc, object, "bytes_written", c->bytes_written);
	yyjson_mut_obj_add_uint(doc, object, "bytes_needed", (uint64_t)c->needed);
	yyjson_mut_obj_add_real(doc, object, "bound_ms", bound(c));
}

static void add_cards(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct estimate *e,
		      uint32_t index)
{
	yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, list), *parts;
	const struct decode *d = &e->decode[index];

	yyjson_mut_obj_add_sint(doc, entry, "cards", d->cards);
	if (!e->possible[index]) {
		yyjson_mut_obj_add_str(doc, entry, "error", e->why[index].s);
		return;
	}
	add_cost(doc, entry, &d->total);
	yyjson_mut_obj_add_real(doc, entry, "tokens_per_second", tokens_per_second(e, d));
	yyjson_mut_obj_add_uint(doc, entry, "weight_bytes", (uint64_t)d->total.weights);
	yyjson_mut_obj_add_uint(doc, entry, "cache_bytes", (uint64_t)d->total.cache);
	parts = yyjson_mut_obj_add_arr(doc, entry, "parts");
	for (int i = 0; i < PART_COUNT; i++) {
		yyjson_mut_val *part;

		if (!d->part[i].cycles)
			continue;
		part = yyjson_mut_arr_add_obj(doc, parts);
		yyjson_mut_obj_add_str(doc, part, "name", part_names[i]);
		add_cost(doc, part, &d->part[i]);
		yyjson_mut_obj_add_real(doc, part, "share",
					(double)d->part[i].cycles / d->total.cycles);
	}
}

static void add_assumptions(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, root, "assumptions");

	yyjson_mut_obj_add_real(doc, object, "clock_hz", CLOCK_HZ);
	yyjson_mut_obj_add_real(doc, object, "lpddr5_bytes_per_second", LPDDR5_PEAK);
	yyjson_mut_obj_add_real(doc, object, "link_bytes_per_second", LINK_BYTES * CLOCK_HZ);
	yyjson_mut_obj_add_uint(doc, object, "link_start_cycles", LINK_START);
}

int estimate_json(const struct estimate *e)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "schema_version", 1);
	yyjson_mut_obj_add_str(doc, root, "model", e->model.name);
	yyjson_mut_obj_add_str(doc, root, "architecture", e->model.type);
	yyjson_mut_obj_add_sint(doc, root, "layers", e->model.layers);
	yyjson_mut_obj_add_sint(doc, root, "batch", e->options.batch);
	yyjson_mut_obj_add_sint(doc, root, "context", e->options.context);
	yyjson_mut_obj_add_str(doc, root, "format", format_name(e));
	add_assumptions(doc, root);
	list = yyjson_mut_obj_add_arr(doc, root, "estimates");
	for (uint32_t i = 0; i < e->count; i++)
		add_cards(doc, list, e, i);
	text = yyjson_mut_write(doc, 0, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return complain(EXIT_DEVICE, "no memory for the JSON text");
	puts(text);
	free(text);
	return EXIT_OK;
}
