// SPDX-License-Identifier: MIT
/*
 * Reads and writes NumPy .npy files. A file has 6 magic bytes, a version, the
 * length of a header, the header (a Python dict literal, which is parsed here and
 * never evaluated) and the elements. No length is trusted until it is checked
 * against the size of the file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"
#include "shape.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
/* The header of a plain array has 128 bytes; numpy itself rejects more than 10,000. */
#define MAX_HEADER 10000
#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

struct cursor {
	const char *path;
	const char *text; /* the header, NUL terminated */
	const char *at;
	size_t offset; /* of the header in the file */
	struct text *why;
};

static int unexpected(struct cursor *c, const char *what)
{
	size_t offset = c->offset + (size_t)(c->at - c->text);

	if (!*c->at)
		return explain(c->why, "%s: offset %zu: expected %s, found the end of the header",
			       c->path, offset, what);
	return explain(c->why, "%s: offset %zu: expected %s, found '%.12s'", c->path, offset, what,
		       c->at);
}

static void skip_space(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t' || *c->at == '\n')
		c->at++;
}

static bool take(struct cursor *c, const char *token)
{
	skip_space(c);
	if (strncmp(c->at, token, strlen(token)))
		return false;
	c->at += strlen(token);
	return true;
}

static int take_string(struct cursor *c, char *buffer, size_t bytes)
{
	const char *end;
	char quote;

	skip_space(c);
	quote = *c->at;
	if (quote != '\'' && quote != '"')
		return unexpected(c, "a string");
	end = strchr(c->at + 1, quote);
	if (!end || (size_t)(end - c->at) > bytes)
		return unexpected(c, "a short string");
	memcpy(buffer, c->at + 1, end - c->at - 1);
	buffer[end - c->at - 1] = '\0';
	c->at = end + 1;
	return 0;
}

static int parse_descr(struct cursor *c, struct npy *npy)
{
	static const char *const known[] = {"f2", "f4", "f8", "i1", "i2",
					    "i4", "i8", "u1", "u2", "b1"};
	const char *start;
	char descr[16];

	skip_space(c);
	start = c->at;
	if (*start == '[')
		return unexpected(c,
				  "a plain dtype instead of a list, which is a structured dtype");
	if (take_string(c, descr, sizeof(descr)))
		return -1;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool byte = known[i][1] == '1';

		if (strcmp(descr + (*descr ? 1 : 0), known[i]))
			continue;
		if (*descr != '<' && *descr != '>' && !(*descr == '|' && byte))
			break;
		npy->swapped = !byte && (*descr == '>') != BIG_ENDIAN_HOST;
		npy->kind = known[i][0];
		npy->item = known[i][1] - '0';
		return 0;
	}
	return explain(c->why, "%s: offset %zu: expected one of the dtypes <f2 <f4 <f8 |i1 <i2 <i4 "
			       "<i8 |u1 <u2 |b1, found '%s'",
		       c->path, c->offset + (size_t)(start - c->text), descr);
}

static int parse_bool(struct cursor *c, bool *value)
{
	if (take(c, "True"))
		*value = true;
	else if (take(c, "False"))
		*value = false;
	else
		return unexpected(c, "True or False");
	return 0;
}

static int parse_size(struct cursor *c, int64_t *size)
{
	const char *start;

	skip_space(c);
	start = c->at;
	*size = 0;
	while (*c->at >= '0' && *c->at <= '9') {
		if (__builtin_mul_overflow(*size, 10, size) ||
		    __builtin_add_overflow(*size, *c->at - '0', size)) {
			c->at = start;
			return unexpected(c, "a size below 2^63");
		}
		c->at++;
	}
	return c->at == start ? unexpected(c, "a size") : 0;
}

static int parse_sizes(struct cursor *c, struct npy *npy)
{
	const char *start;
	bool comma = true;

	skip_space(c);
	start = c->at;
	if (!take(c, "("))
		return unexpected(c, "a tuple");
	npy->rank = 0;
	while (!take(c, ")")) {
		if (!comma)
			return unexpected(c, "',' or ')'");
		if (npy->rank == SPYRE_MAX_RANK) {
			c->at = start;
			return unexpected(c, "at most 7 dimensions");
		}
		if (parse_size(c, &npy->size[npy->rank++]))
			return -1;
		comma = take(c, ",");
	}
	/* "(3)" is a number in Python, not a tuple. */
	if (npy->rank == 1 && !comma) {
		c->at = start;
		return unexpected(c, "a tuple");
	}
	return 0;
}

static int parse_header(struct cursor *c, struct npy *npy)
{
	bool descr = false, order = false, shape = false;

	if (!take(c, "{"))
		return unexpected(c, "'{'");
	while (!take(c, "}")) {
		const char *start;
		char key[24];
		int err;

		skip_space(c);
		start = c->at;
		if (take_string(c, key, sizeof(key)))
			return -1;
		if (!take(c, ":"))
			return unexpected(c, "':'");
		if (!strcmp(key, "descr") && !descr) {
			err = parse_descr(c, npy);
			descr = true;
		} else if (!strcmp(key, "fortran_order") && !order) {
			err = parse_bool(c, &npy->fortran);
			order = true;
		} else if (!strcmp(key, "shape") && !shape) {
			err = parse_sizes(c, npy);
			shape = true;
		} else {
			c->at = start;
			err = unexpected(c, "one each of 'descr', 'fortran_order' and 'shape'");
		}
		if (err)
			return err;
		if (!take(c, ",")) {
			skip_space(c);
			if (*c->at != '}')
				return unexpected(c, "',' or '}'");
		}
	}
	skip_space(c);
	if (*c->at)
		return unexpected(c, "the end of the header after the dict");
	if (!descr || !order || !shape)
		return explain(c->why, "%s: offset %zu: the header lacks '%s'", c->path, c->offset,
			       !descr	? "descr"
			       : !order ? "fortran_order"
					: "shape");
	return 0;
}

static void set_strides(struct npy *npy)
{
	int64_t step = 1;

	for (uint32_t k = 0; k < npy->rank; k++) {
		uint32_t d = npy->fortran ? k : npy->rank - 1 - k;

		npy->stride[d] = step;
		step *= npy->size[d];
	}
}

/* Reads exactly @bytes at the file's position; on failure @why says how many were read. */
static int read_exactly(FILE *file, const char *path, size_t offset, void *data, size_t bytes,
			const char *what, struct text *why)
{
	size_t got = bytes ? fread(data, 1, bytes, file) : 0;

	if (got == bytes)
		return 0;
	if (ferror(file))
		return explain(why, "%s: offset %zu: %s", path, offset + got, strerror(errno));
	return explain(why, "%s: offset %zu: the file ends within %s: %zu bytes of %zu", path,
		       offset + got, what, got, bytes);
}

/* Reads magic, version and length; sets @length and @offset of the header. */
static int read_prelude(FILE *file, const char *path, size_t *length, size_t *offset,
			struct text *why)
{
	uint8_t head[12];
	size_t field;

	if (read_exactly(file, path, 0, head, 8, "the magic bytes", why))
		return -1;
	if (memcmp(head, MAGIC, MAGIC_BYTES))
		return explain(why,
			       "%s: offset 0: expected 93 'NUMPY', found %02x %02x %02x %02x %02x "
			       "%02x; not a .npy file",
			       path, head[0], head[1], head[2], head[3], head[4], head[5]);
	if (head[6] != 1 && head[6] != 2)
		return explain(
			why, "%s: offset 6: version %u.%u is not supported, only versions 1 and 2",
			path, head[6], head[7]);
	field = head[6] == 1 ? 2 : 4;
	if (read_exactly(file, path, 8, head + 8, field, "the header's length", why))
		return -1;
	*length = head[8] | head[9] << 8;
	if (field == 4)
		*length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
	*offset = 8 + field;
	if (*length > MAX_HEADER)
		return explain(why, "%s: offset 8: a header of %zu bytes exceeds the limit of %d",
			       path, *length, MAX_HEADER);
	return 0;
}

static int read_header(FILE *file, const char *path, struct npy *npy, size_t *data_offset,
		       struct text *why)
{
	char header[MAX_HEADER + 1];
	struct cursor c = {.path = path, .text = header, .at = header, .why = why};
	size_t length;

	if (read_prelude(file, path, &length, &c.offset, why))
		return -1;
	if (read_exactly(file, path, c.offset, header, length, "the header", why))
		return -1;
	header[length] = '\0';
	if (strlen(header) != length) {
		c.at += strlen(header);
		return explain(why, "%s: offset %zu: the header contains a zero byte", path,
			       c.offset + (size_t)(c.at - c.text));
	}
	*data_offset = c.offset + length;
	return parse_header(&c, npy);
}

/* Checks the element bytes that the header implies against the file's size. */
static int check_size(const char *path, struct npy *npy, size_t offset, uint64_t file_bytes,
		      struct text *why)
{
	char shape[160];

	shape_format(npy->rank, npy->size, shape, sizeof(shape));
	npy->elements = shape_elements(npy->rank, npy->size);
	if (npy->elements < 0)
		return explain(why, "%s: offset %zu: shape %s exceeds the memory of any card", path,
			       offset, shape);
	npy->bytes = (size_t)npy->elements * npy->item;
	if (file_bytes - offset != npy->bytes)
		return explain(why,
			       "%s: offset %zu: %s elements of %u bytes take %zu bytes, found %llu",
			       path, offset, shape, npy->item, npy->bytes,
			       (unsigned long long)(file_bytes - offset));
	return 0;
}

/* Reverses the bytes of each element. */
static void swap_elements(uint8_t *data, size_t bytes, unsigned int item)
{
	for (uint8_t *end = data + bytes; data < end; data += item)
		for (unsigned int i = 0; i < item / 2; i++) {
			uint8_t byte = data[i];

			data[i] = data[item - 1 - i];
			data[item - 1 - i] = byte;
		}
}

static int read_file(FILE *file, const char *path, struct npy *npy, struct text *why)
{
	struct stat st;
	size_t offset;

	if (fstat(fileno(file), &st))
		return explain(why, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return explain(why, "cannot read %s: not a regular file", path);
	if (read_header(file, path, npy, &offset, why) ||
	    check_size(path, npy, offset, st.st_size, why))
		return -1;
	set_strides(npy);
	if (!npy->bytes)
		return 0;
	npy->data = malloc(npy->bytes);
	if (!npy->data)
		return explain(why, "cannot read %s: cannot allocate %zu bytes", path, npy->bytes);
	if (read_exactly(file, path, offset, npy->data, npy->bytes, "the elements", why))
		return -1;
	if (npy->swapped)
		swap_elements(npy->data, npy->bytes, npy->item);
	return 0;
}

int npy_read(const char *path, struct npy *npy, struct text *why)
{
	FILE *file;
	int err;

	memset(npy, 0, sizeof(*npy));
	file = fopen(path, "rbe");
	if (!file)
		return explain(why, "cannot open %s: %s", path, strerror(errno));
	err = read_file(file, path, npy, why);
	fclose(file);
	if (err)
		npy_fini(npy);
	return err;
}

void npy_fini(struct npy *npy)
{
	free(npy->data);
	npy->data = NULL;
}

/* Builds a version 1 header, padded so that the elements start at a multiple of 64. */
static size_t build_header(char *header, size_t bytes, char kind, uint8_t item, uint32_t rank,
			   const int64_t *size)
{
	size_t used = MAGIC_BYTES + 4, total;

	memcpy(header, MAGIC "\x01\x00", MAGIC_BYTES + 2);
	used += snprintf(header + used, bytes - used,
			 "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
			 item == 1 ? '|' : '<', kind, item);
	for (uint32_t d = 0; d < rank; d++)
		used += snprintf(header + used, bytes - used, "%s%lld%s", d ? ", " : "",
				 (long long)size[d], rank == 1 ? "," : "");
	used += snprintf(header + used, bytes - used, "), }");
	total = (used + 1 + 63) / 64 * 64;
	memset(header + used, ' ', total - used);
	header[total - 1] = '\n';
	header[MAGIC_BYTES + 2] = (total - 10) & 0xff;
	header[MAGIC_BYTES + 3] = (total - 10) >> 8;
	return total;
}

static bool write_elements(FILE *file, const uint8_t *data, size_t bytes, unsigned int item)
{
	uint8_t part[4096];

	if (!BIG_ENDIAN_HOST)
		return !bytes || fwrite(data, 1, bytes, file) == bytes;
	for (size_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < sizeof(part) ? bytes - at : sizeof(part);
		memcpy(part, data + at, n);
		swap_elements(part, n, item);
		if (fwrite(part, 1, n, file) != n)
			return false;
	}
	return true;
}

int npy_write(const char *path, char kind, uint8_t item, uint32_t rank, const int64_t *size,
	      const void *data, struct text *why)
{
	size_t bytes = (size_t)shape_elements(rank, size) * item;
	char header[512];
	size_t length = build_header(header, sizeof(header), kind, item, rank, size);
	FILE *file = fopen(path, "wbe");
	struct stat st;
	int err;

	if (!file)
		return explain(why, "cannot create %s: %s", path, strerror(errno));
	err = fwrite(header, 1, length, file) != length ||
			      !write_elements(file, data, bytes, item)
		      ? errno
		      : 0;
	if (fclose(file) && !err)
		err = errno;
	if (!err)
		return 0;
	explain(why, "cannot write %s (%zu bytes): %s", path, length + bytes, strerror(err));
	if (!stat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
	return -1;
}
