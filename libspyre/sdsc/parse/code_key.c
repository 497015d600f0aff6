// SPDX-License-Identifier: MIT
/* The key of a compiled bundle: see code_key.h. */
#define _GNU_SOURCE	/* dl_iterate_phdr() */
#include "libspyre/sdsc/parse/code_key.h"

#include "config.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#include "model/program.h"

#define MAX_BUILD_ID 64u

/* Identity of the compiler: all parameters that change its output for one source. */
struct compiler_id {
	char version[64];
	uint32_t encoding, program;
	uint8_t build[MAX_BUILD_ID];
};

static struct compiler_id compiler;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t align_note(uint64_t bytes)
{
	return (bytes + 3) & ~(uint64_t)3;
}

static void read_notes(const uint8_t *at, uint64_t left)
{
	ElfW(Nhdr) note;

	while (left >= sizeof(note)) {
		uint64_t bytes;

		memcpy(&note, at, sizeof(note));
		bytes = sizeof(note) + align_note(note.n_namesz) + align_note(note.n_descsz);
		if (bytes > left)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(at + sizeof(note), "GNU", 4) && note.n_descsz <= MAX_BUILD_ID)
			memcpy(compiler.build, at + sizeof(note) + 4, note.n_descsz);
		at += bytes;
		left -= bytes;
	}
}

/* Finds the linker's build id of the object that contains this function. */
static int find_build(struct dl_phdr_info *info, size_t size, void *unused)
{
	const uintptr_t here = (uintptr_t)&compiler;
	bool ours = false;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		ours = ours || (p->p_type == PT_LOAD && here >= info->dlpi_addr + p->p_vaddr &&
				here < info->dlpi_addr + p->p_vaddr + p->p_memsz);
	}
	for (int i = 0; i < info->dlpi_phnum && ours; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE)
			read_notes((const uint8_t *)(info->dlpi_addr + p->p_vaddr), p->p_memsz);
	}
	return ours;
}

static void identify(void)
{
	strncpy(compiler.version, PACKAGE_VERSION, sizeof(compiler.version) - 1);
	compiler.encoding = CODE_IMAGE_VERSION;
	compiler.program = SPYRE_PROG_VERSION;
	dl_iterate_phdr(find_build, NULL);
}

struct code_key code_hash(const void *data, size_t size)
{
	XXH128_hash_t h = XXH3_128bits(data, size);

	return (struct code_key){ { h.low64, h.high64 } };
}

bool code_key_equal(struct code_key a, struct code_key b)
{
	return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

void code_key_begin(struct code_key_state *state)
{
	pthread_once(&once, identify);
	state->now = code_hash(&compiler, sizeof(compiler));
}

void code_key_add(struct code_key_state *state, const char *file, const char *text, size_t size)
{
	struct {
		struct code_key before, name, content;
		uint64_t size, present;
	} link = {
		.before = state->now,
		.name = code_hash(file, strlen(file)),
		.content = code_hash(text, text ? size : 0),
		.size = size,
		.present = text != NULL,
	};

	state->now = code_hash(&link, sizeof(link));
}
