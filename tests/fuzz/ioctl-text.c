// SPDX-License-Identifier: MIT
/* Inputs as text: one call per line, NAME FILE PARAMS POKE; '#' begins a comment. */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <stdio.h>
#include <string.h>

static const char *const names[FZ_KIND_COUNT] = {
#define X(name, weight) #name,
	FZ_KINDS(X)
#undef X
};

const char *fz_kind_name(uint8_t kind)
{
	return names[kind % FZ_KIND_COUNT];
}

bool fz_write(const char *path, const struct fz_input *input)
{
	FILE *file = fopen(path, "w");
	uint32_t i, k;

	if (!file)
		return false;
	for (i = 0; i < input->count; i++) {
		const struct fz_call *c = &input->call[i];

		fprintf(file, "%s %u ", fz_kind_name(c->kind), c->file);
		for (k = 0; k < FZ_PARAMS; k++)
			fprintf(file, "%02x", c->p[k]);
		fprintf(file, " %04x%02x%02x\n", c->poke_at, c->poke_op, c->poke_value);
	}
	return !fclose(file);
}

static bool read_call(const char *line, struct fz_call *c)
{
	char name[32], params[2 * FZ_PARAMS + 1];
	unsigned int file, at, op, value, byte, i;

	if (sscanf(line, "%31s %u %28s %4x%2x%2x", name, &file, params, &at, &op, &value) != 6)
		return false;
	for (i = 0; i < FZ_KIND_COUNT && strcmp(name, names[i]); i++)
		;
	if (i == FZ_KIND_COUNT || strlen(params) != 2 * FZ_PARAMS)
		return false;
	*c = (struct fz_call){ .kind = i, .file = file, .poke_at = at, .poke_op = op,
			       .poke_value = value };
	for (i = 0; i < FZ_PARAMS; i++) {
		if (sscanf(params + 2 * i, "%2x", &byte) != 1)
			return false;
		c->p[i] = byte;
	}
	return true;
}

bool fz_read(const char *path, struct fz_input *input)
{
	FILE *file = fopen(path, "r");
	char line[256];
	bool good = true;

	input->count = 0;
	if (!file)
		return false;
	while (good && fgets(line, sizeof(line), file)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		good = input->count < FZ_MAX_CALLS &&
		       read_call(line, &input->call[input->count++]);
	}
	fclose(file);
	return good && input->count;
}
