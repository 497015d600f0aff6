// SPDX-License-Identifier: MIT
/* The images and the trained weights. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"

/* Both files are far below. */
#define MAX_BYTES (16 << 20)

static uint8_t *read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data;

	if (!file) {
		fprintf(stderr, "digits: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	data = malloc(MAX_BYTES);
	*bytes = data ? fread(data, 1, MAX_BYTES, file) : 0;
	if (!data || ferror(file)) {
		fprintf(stderr, "digits: %s: %s\n", path, strerror(errno));
		free(data);
		data = NULL;
	}
	fclose(file);
	return data;
}

static uint32_t get_u32(const uint8_t *at)
{
	return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Says what is wrong with a file and drops what was read of it. */
static int __attribute__((format(printf, 3, 4)))
bad_file(const char *path, void *data, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "digits: %s: ", path);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	free(data);
	return -1;
}

/* Moves every third image to the front of a copy. */
static int hold_out(struct images *images, const uint8_t *labels, const uint8_t *pixels)
{
	uint32_t count = images->total / 3;
	uint8_t *storage = malloc((size_t)count * (PIXELS + 1) + 1);

	images->source = calloc(count + 1, sizeof(*images->source));
	images->storage = storage;
	if (!storage || !images->source) {
		fprintf(stderr, "digits: no memory for %u images\n", count);
		return -1;
	}
	images->labels = storage;
	images->pixels = storage + count;
	images->count = count;
	for (uint32_t i = 0; i < count; i++) {
		images->source[i] = 3 * i + 2;
		storage[i] = labels[3 * i + 2];
		memcpy(storage + count + (size_t)i * PIXELS, pixels + (3 * (size_t)i + 2) * PIXELS,
		       PIXELS);
	}
	return 0;
}

int images_load(struct images *images, const char *directory)
{
	char path[4096];
	size_t bytes, want;
	uint8_t *data;
	int err;

	memset(images, 0, sizeof(*images));
	snprintf(path, sizeof(path), "%s/digits.u8", directory);
	data = read_file(path, &bytes);
	if (!data)
		return -1;
	if (bytes < 16 || memcmp(data, "SPYRDIG1", 8) || get_u32(data + 12) != (8 | 8 << 16))
		return bad_file(path, data, "not a file of 8x8 digits (%zu bytes)", bytes);
	images->total = get_u32(data + 8);
	want = 16 + (size_t)images->total * (PIXELS + 1);
	if (bytes != want || images->total < 3)
		return bad_file(path, data, "%zu bytes, its header promises %zu", bytes, want);
	for (size_t i = 16; i < bytes; i++)
		if (data[i] > (i - 16 < images->total ? CLASSES - 1 : 16))
			return bad_file(path, data, "offset %zu: %u is no label or pixel", i,
					data[i]);
	err = hold_out(images, data + 16, data + 16 + images->total);
	free(data);
	if (err)
		images_free(images);
	return err;
}

void images_free(struct images *images)
{
	free(images->storage);
	free(images->source);
	memset(images, 0, sizeof(*images));
}

int weights_load(struct weights *weights, const char *directory)
{
	char path[4096];
	size_t bytes, want;
	uint8_t *data;

	memset(weights, 0, sizeof(*weights));
	snprintf(path, sizeof(path), "%s/weights.f16", directory);
	data = read_file(path, &bytes);
	if (!data)
		return -1;
	if (bytes < 24 || memcmp(data, "SPYRNET1", 8) || get_u32(data + 8) != PIXELS ||
	    get_u32(data + 16) != CLASSES)
		return bad_file(path, data, "no network of %d pixels and %d classes (%zu bytes)",
				PIXELS, CLASSES, bytes);
	weights->hidden = get_u32(data + 12);
	if (!weights->hidden || weights->hidden > MAX_HIDDEN)
		return bad_file(path, data, "%u hidden units, 1 to %d are supported",
				weights->hidden, MAX_HIDDEN);
	want = 24 + 2 * ((PIXELS + 1 + CLASSES) * (size_t)weights->hidden + CLASSES);
	if (bytes != want)
		return bad_file(path, data, "%zu bytes, its header promises %zu", bytes, want);
	/* From the little endian of the file to the host's order. */
	for (size_t i = 24; i < want; i += 2) {
		const uint16_t half = (uint16_t)(data[i] | data[i + 1] << 8);

		memcpy(data + i, &half, sizeof(half));
	}
	weights->storage = data;
	weights->w1 = (const uint16_t *)(const void *)(data + 24);
	weights->b1 = weights->w1 + (size_t)PIXELS * weights->hidden;
	weights->w2 = weights->b1 + weights->hidden;
	weights->b2 = weights->w2 + (size_t)weights->hidden * CLASSES;
	return 0;
}

void weights_free(struct weights *weights)
{
	free(weights->storage);
	memset(weights, 0, sizeof(*weights));
}
