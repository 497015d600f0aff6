// SPDX-License-Identifier: MIT
/* Splits a coredump into its sections; no length in the file is trusted. */
#include <string.h>

#include "coredump.h"

/* Adjacent fields of the same width. */
struct run {
	uint8_t count, bytes;
};

#define MAX_RUNS 24
#define DIM { 2, 4 }, { 1, 8 }

_Static_assert(DRM_SPYRE_DMA_MAX_DIMS == 8, "a layout of a DMA has eight dims");

/* The fields of each section's structs; 0 is the header, COREDUMP_SECTION a section's. */
static const struct run layouts[][MAX_RUNS] = {
	[0] = { { 8, 1 }, { 2, 4 }, { 1, 8 }, { 2, 4 } },
	[DRM_SPYRE_COREDUMP_INFO] = { { 96, 1 }, { 2, 4 }, { 2, 8 } },
	[DRM_SPYRE_COREDUMP_CARD] = { { 6, 4 }, { 2, 8 }, { 32, 1 }, { 2, 4 } },
	[DRM_SPYRE_COREDUMP_MEMORY] = { { 6, 8 } },
	[DRM_SPYRE_COREDUMP_COUNTERS] = { { 8, 8 }, { 2, 4 }, { 14, 8 } },
	[DRM_SPYRE_COREDUMP_CONTEXT] = { { 2, 8 }, { 4, 4 }, { 1, 8 }, { 2, 4 }, { 25, 8 } },
	[DRM_SPYRE_COREDUMP_FAULT] = {
		{ 4, 4 }, { 1, 8 }, { 2, 4 }, { 3, 8 }, { 2, 4 }, { 24, 1 },
	},
	[DRM_SPYRE_COREDUMP_CB] = { { 2, 4 }, { 5, 8 }, { 2, 4 }, { 5, 8 } },
	[DRM_SPYRE_COREDUMP_OPERANDS] = { { 2, 8 }, { 2, 4 } },
	[DRM_SPYRE_COREDUMP_DMA] = {
		{ 8, 1 }, { 1, 8 }, DIM, DIM, DIM, DIM, DIM, DIM, DIM, DIM,
		{ DRM_SPYRE_DMA_MAX_BOUNDS * (1 + DRM_SPYRE_DMA_MAX_DIMS), 8 },
	},
	[DRM_SPYRE_COREDUMP_QUEUES] = { { 1, 8 }, { 4, 4 }, { 4, 8 } },
	[COREDUMP_SECTION] = { { 2, 4 }, { 2, 8 } },
};

size_t coredump_order(uint32_t type, void *data)
{
	const struct run *run = layouts[type <= COREDUMP_SECTION ? type : 0];
	const struct run *end = run + (type <= COREDUMP_SECTION ? MAX_RUNS : 0);
	uint8_t *p = data;
	uint64_t field;

	/* A program image has no runs here: coredump_program.c reads its fields byte by byte. */
	for (; run < end && run->count; run++)
		for (unsigned int i = 0; i < run->count; i++, p += run->bytes) {
			field = 0;
			for (unsigned int k = run->bytes; k--;)
				field = field << 8 | p[k];
			if (run->bytes == 8)
				memcpy(p, &field, 8);
			else if (run->bytes == 4)
				memcpy(p, &(uint32_t){ (uint32_t)field }, 4);
		}
	return p - (uint8_t *)data;
}

/* Copies the part of a struct that both the file and this command have; zeroes the rest. */
static void take(void *to, size_t size, const struct coredump_section *section)
{
	memset(to, 0, size);
	memcpy(to, section->data, section->bytes < size ? section->bytes : size);
	coredump_order(section->type, to);
}

/* Returns 1 for a complete section at @at, or 0 with @why. */
static int section_at(const struct coredump *dump, size_t at, struct coredump_section *section,
		      struct text *why)
{
	struct drm_spyre_coredump_section head;
	size_t left = dump->size - at;

	if (left < sizeof(head)) {
		write_text(why, "the section header at byte %zu needs %zu bytes, %zu are left", at,
			   sizeof(head), left);
		return 0;
	}
	memcpy(&head, dump->data + at, sizeof(head));
	coredump_order(COREDUMP_SECTION, &head);
	left -= sizeof(head);
	if (head.bytes > left) {
		write_text(why, "the section at byte %zu needs %llu bytes, %zu are left", at,
			   (unsigned long long)head.bytes, left);
		return 0;
	}
	*section = (struct coredump_section){
		.type = head.type,
		.index = head.index,
		.data = dump->data + at + sizeof(head),
		.bytes = head.bytes,
		.whole = head.whole,
	};
	return 1;
}

/* Returns the offset of the section after @section; the last one may lack its padding. */
static size_t behind(const struct coredump *dump, const struct coredump_section *section)
{
	size_t at = section->data - dump->data + section->bytes;

	at += -at & 7;
	return at < dump->size ? at : dump->size;
}

bool coredump_next(const struct coredump *dump, size_t *at, struct coredump_section *section)
{
	struct text why;

	if (!*at)
		*at = dump->header.header_bytes;
	if (*at >= dump->size || !section_at(dump, *at, section, &why))
		return false;
	*at = behind(dump, section);
	return true;
}

bool coredump_find(const struct coredump *dump, uint32_t type, uint32_t index,
		   struct coredump_section *section)
{
	size_t at = 0;

	while (coredump_next(dump, &at, section))
		if (section->type == type && section->index == index)
			return true;
	return false;
}

bool coredump_element(const struct coredump_section *section, size_t i, void *element, size_t size)
{
	if (section->bytes / size <= i)
		return false;
	memcpy(element, section->data + i * size, size);
	coredump_order(section->type, element);
	return true;
}

static void take_section(struct coredump *dump, const struct coredump_section *s)
{
	switch (s->type) {
	case DRM_SPYRE_COREDUMP_INFO:
		take(&dump->info, sizeof(dump->info), s);
		break;
	case DRM_SPYRE_COREDUMP_CARD:
		take(&dump->card, sizeof(dump->card), s);
		break;
	case DRM_SPYRE_COREDUMP_MEMORY:
		take(&dump->memory, sizeof(dump->memory), s);
		break;
	case DRM_SPYRE_COREDUMP_COUNTERS:
		take(&dump->counters, sizeof(dump->counters), s);
		break;
	case DRM_SPYRE_COREDUMP_CONTEXT:
		take(&dump->context, sizeof(dump->context), s);
		break;
	case DRM_SPYRE_COREDUMP_FAULT:
		take(&dump->fault, sizeof(dump->fault), s);
		dump->has_fault = true;
		break;
	}
}

static void take_sections(struct coredump *dump)
{
	struct coredump_section section;
	size_t at = dump->header.header_bytes;

	while (dump->num_sections < dump->header.num_sections) {
		if (dump->num_sections == COREDUMP_SECTIONS_MAX) {
			write_text(&dump->truncated, "%u sections exceed the limit of %u",
				   dump->header.num_sections, COREDUMP_SECTIONS_MAX);
			break;
		}
		if (!section_at(dump, at, &section, &dump->truncated))
			return;
		take_section(dump, &section);
		dump->num_sections++;
		at = behind(dump, &section);
	}
	/* Ignores bytes after the last section. */
	dump->size = at;
}

int coredump_parse(struct coredump *dump, const void *data, size_t size, struct text *why)
{
	struct drm_spyre_coredump_header *header = &dump->header;

	memset(dump, 0, sizeof(*dump));
	dump->data = data;
	dump->size = size;
	if (size < sizeof(*header))
		return explain(why, "%zu bytes are too few for a coredump", size);
	memcpy(header, data, sizeof(*header));
	coredump_order(0, header);
	if (memcmp(header->magic, DRM_SPYRE_COREDUMP_MAGIC, sizeof(header->magic)))
		return explain(why, "it is not a coredump of spyre_vdev: it does not begin with "
				    "'" DRM_SPYRE_COREDUMP_MAGIC "'");
	if (header->version != DRM_SPYRE_COREDUMP_VERSION)
		return explain(why, "it has version %u, and this command reads version %u",
			       header->version, DRM_SPYRE_COREDUMP_VERSION);
	if (header->header_bytes < sizeof(*header) || header->header_bytes > size ||
	    header->header_bytes % 8)
		return explain(why,
			       "its header claims to have %u bytes, expected a multiple of "
			       "8 from %zu to %zu",
			       header->header_bytes, sizeof(*header), size);
	take_sections(dump);
	return 0;
}

struct coredump_string coredump_string(const uint8_t *text, size_t size)
{
	struct coredump_string string = { "" };
	size_t i;

	for (i = 0; i < size && i < sizeof(string.s) - 1 && text[i]; i++)
		string.s[i] = text[i] < ' ' || text[i] >= 0x7f ? '?' : (char)text[i];
	return string;
}

const char *coredump_fault_name(uint32_t fault)
{
	static const char *const names[] = {
		[DRM_SPYRE_FAULT_NONE] = "none",
		[DRM_SPYRE_FAULT_TIMEOUT] = "timeout",
		[DRM_SPYRE_FAULT_ACCESS] = "access",
		[DRM_SPYRE_FAULT_ESCAPE] = "escape",
		[DRM_SPYRE_FAULT_COMPUTE] = "compute",
	};

	return fault < sizeof(names) / sizeof(names[0]) ? names[fault] : "unknown";
}

const char *coredump_cb_name(uint32_t type)
{
	static const char *const names[] = {
		[DRM_SPYRE_CB_EXEC] = "EXEC",
		[DRM_SPYRE_CB_DMA] = "DMA",
		[DRM_SPYRE_CB_COPY] = "COPY",
		[DRM_SPYRE_CB_FILL] = "FILL",
		[DRM_SPYRE_CB_TIMESTAMP] = "TIMESTAMP",
		[DRM_SPYRE_CB_PEER_COPY] = "PEER_COPY",
	};

	return type && type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

const char *coredump_cb_state(const struct coredump *dump, uint32_t index)
{
	if (!dump->has_fault)
		return "unknown";
	if (index == dump->fault.cb)
		return "failed";
	return index < dump->fault.cb ? "done" : "not run";
}
