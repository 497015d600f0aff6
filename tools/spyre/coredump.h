/* SPDX-License-Identifier: MIT */
/* Parses device coredumps of spyre_vdev; a file may have any content. */
#ifndef SPYRE_TOOL_COREDUMP_H
#define SPYRE_TOOL_COREDUMP_H

#include <stdio.h>

#include <drm/spyre_coredump.h>

#include "spyre.h"

/*
 * A card writes up to three for each of 256 control blocks and a few more; a file
 * may claim any number.
 */
#define COREDUMP_SECTIONS_MAX 1024
#define COREDUMP_OPERANDS_MAX 64

/* Of coredump_order(): the header of a section, after the types of sections. */
#define COREDUMP_SECTION (DRM_SPYRE_COREDUMP_QUEUES + 1)

/* A section whose @bytes are all present, from @data on. */
struct coredump_section {
	uint32_t type;
	uint32_t index;
	const uint8_t *data;
	uint64_t bytes;
	uint64_t whole;
};

/* The structs are copies, zeroed where the file has none. */
struct coredump {
	const uint8_t *data;
	size_t size;
	struct drm_spyre_coredump_header header;
	uint32_t num_sections; /* number of complete sections */
	struct text truncated; /* why the others are missing, or "" */
	bool has_fault;
	struct drm_spyre_coredump_info info;
	struct drm_spyre_card_info card;
	struct drm_spyre_memory_info memory;
	struct drm_spyre_counters counters;
	struct drm_spyre_context_info context;
	struct drm_spyre_coredump_fault fault;
};

/*
 * Indexes @size bytes, which the caller keeps. Returns -1 with @why if they are not
 * a dump; a truncated dump is read up to its end.
 */
int coredump_parse(struct coredump *dump, const void *data, size_t size, struct text *why);
/* Returns the next complete section; *at starts at 0. */
bool coredump_next(const struct coredump *dump, size_t *at, struct coredump_section *section);
/* Finds the section of that type and index. */
bool coredump_find(const struct coredump *dump, uint32_t type, uint32_t index,
		   struct coredump_section *section);
/*
 * Converts a struct of a section of a known type (0: the file's header) in place between the
 * host's byte order and the file's, which is little endian. Returns the bytes of the struct.
 */
size_t coredump_order(uint32_t type, void *data);
/* Copies element @i of a section that is an array, truncated or zero-padded to @size. */
bool coredump_element(const struct coredump_section *section, size_t i, void *element, size_t size);

/* A string from the file, which may lack its NUL and contain any bytes. */
struct coredump_string {
	char s[68];
};
struct coredump_string coredump_string(const uint8_t *text, size_t size);

const char *coredump_fault_name(uint32_t fault);
const char *coredump_cb_name(uint32_t type);
const char *coredump_cb_state(const struct coredump *dump, uint32_t index);

void coredump_print(const struct coredump *dump, FILE *out);
/* Returns one line, malloc()ed; NULL if out of memory. */
char *coredump_json(const struct coredump *dump);
/* Returns the fault as a RAS record, malloc()ed; NULL with spyre_last_error() set. */
char *coredump_ras(const struct coredump *dump);
/* Prints the header of a program image, and its instructions. */
void coredump_print_program(const struct coredump_section *program, FILE *out);

#endif /* SPYRE_TOOL_COREDUMP_H */
