/* SPDX-License-Identifier: MIT */
/*
 * init_binary.bin: a compiled bundle as a file, in an encoding of this project,
 * little endian. docs/bundles.md is the reference. Internal.
 */
#ifndef SPYRE_SDSC_CODE_IMAGE_H
#define SPYRE_SDSC_CODE_IMAGE_H

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/parse/code_key.h"

#define CODE_IMAGE_MAGIC 0x42505953u	/* "SYPB" */
#define CODE_IMAGE_NAME_BYTES 64u
#define CODE_IMAGE_MAX_BYTES (512u << 20)

#define CODE_IMAGE_NAMED_ARGS 1u
#define CODE_IMAGE_SYMBOLS 2u	/* has symbols; the program is for their maxima */

struct code_image_header {
	uint32_t magic, version;
	uint64_t size;			/* of the file, a multiple of 128 */
	struct code_key key;		/* compiler and sources */
	struct code_key sum;		/* code_image_seal() */
	uint32_t program_version;
	uint32_t num_cores, lx_bytes, num_sdscs;
	uint32_t num_args, num_operands, num_files, flags;
	uint64_t pool_bytes;
	uint64_t image_offset, image_bytes;
	uint64_t source_bytes;		/* of the files of a bundle with symbols */
	uint32_t lx_kept;		/* with symbols, the bytes of LX to keep, else 0 */
	uint8_t reserved[12];		/* zero */
};

/* After the header: a name, then these tables, the program image, the files (packed_files.h). */
struct code_image_arg {
	uint32_t role, format, device_rank;
	uint32_t table;			/* 1: a table, whose rows follow from a launch */
	int64_t device_size[SPYRE_MAX_DEVICE_RANK];
};

struct code_image_operand {
	uint32_t kind, arg;
	uint64_t offset;
};

struct code_image_file {
	char name[CODE_IMAGE_NAME_BYTES];
};

/* The SDSC files in the order of their first execute; the caller frees them. */
struct code_files {
	struct code_image_file *list;
	uint32_t num;
	/* The packed files of a bundle with symbols, not owned; decoded ones are in the image. */
	const uint8_t *sources;
	size_t source_bytes;
};

/*
 * Writes the sum of the file, a hash with the header's sum taken as 0, into its header. @size is
 * at least a header.
 */
void code_image_seal(void *data, size_t size);

/* Returns the file's bytes, which the caller frees; NULL if memory is short. */
void *code_image_encode(const struct spyre_bundle *bundle, struct code_key key,
			const struct code_files *files, size_t *size);

/*
 * Reads bytes that may be damaged or hostile, so it checks every field; the card's
 * verifier checks the program itself. The caller frees files->list. Symbols are not
 * decoded: such a bundle is compiled from files->sources. Errors: PARSE, UNSUPPORTED
 * (another version), OUT_OF_HOST_MEMORY; their texts speak of the bytes as "it".
 */
spyre_status code_image_decode(const void *data, size_t size, struct spyre_bundle *bundle,
			       struct code_key *key, struct code_files *files);
/* Checks that a card of @max_cores can run the bundle; UNSUPPORTED. */
spyre_status code_image_check_cores(const struct spyre_bundle *bundle, uint32_t max_cores);

#endif /* SPYRE_SDSC_CODE_IMAGE_H */
