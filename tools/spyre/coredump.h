/* SPDX-License-Identifier: MIT */
/* Device coredumps of spyre_vdev: reading them, whatever is in the file. */
#ifndef SPYRE_TOOL_COREDUMP_H
#define SPYRE_TOOL_COREDUMP_H

#include <stdio.h>

#include <drm/spyre_coredump.h>

#include "spyre.h"

/* Three for each of 256 control blocks, and some; in what a file may say there is no end. */
#define COREDUMP_SECTIONS_MAX 1024
#define COREDUMP_OPERANDS_MAX 64

/* A section: @bytes that are all there, from @data on. */
struct coredump_section {
	uint32_t type;
	uint32_t index;
	const uint8_t *data;
	uint64_t bytes;
	uint64_t whole;
};

/* The structs are copies, zero where the file has none. */
struct coredump {
	const uint8_t *data;
	size_t size;
	struct drm_spyre_coredump_header header;
	uint32_t num_sections;	/* that are whole */
	struct text truncated;	/* why the others are not, or "" */
	bool has_fault;
	struct drm_spyre_coredump_info info;
	struct drm_spyre_card_info card;
	struct drm_spyre_memory_info memory;
	struct drm_spyre_counters counters;
	struct drm_spyre_context_info context;
	struct drm_spyre_coredump_fault fault;
};

/*
 * Looks through @size bytes, which must stay. -1 with @why if that is no dump;
 * one that breaks off is read as far as it goes.
 */
int coredump_parse(struct coredump *dump, const void *data, size_t size, struct text *why);
/* The next whole section; *at is 0 at first. */
bool coredump_next(const struct coredump *dump, size_t *at, struct coredump_section *section);
/* The section of that kind and index. */
bool coredump_find(const struct coredump *dump, uint32_t type, uint32_t index,
		   struct coredump_section *section);
/* Element @i of a section that is an array, as much of it as both sides know. */
bool coredump_element(const struct coredump_section *section, size_t i, void *element, size_t size);

/* Text of a file, which may lack its end and hold anything. */
struct coredump_string {
	char s[68];
};
struct coredump_string coredump_string(const uint8_t *text, size_t size);

const char *coredump_fault_name(uint32_t fault);
const char *coredump_cb_name(uint32_t type);
const char *coredump_cb_state(const struct coredump *dump, uint32_t index);

void coredump_print(const struct coredump *dump, FILE *out);
/* malloc()ed, one line; NULL: no memory. */
char *coredump_json(const struct coredump *dump);
/* The RAS record of the fault, malloc()ed; NULL with the library's error. */
char *coredump_ras(const struct coredump *dump);
/* Prints the header of a program image, and its instructions. */
void coredump_print_program(const struct coredump_section *program, FILE *out);

#endif /* SPYRE_TOOL_COREDUMP_H */
