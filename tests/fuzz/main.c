// SPDX-License-Identifier: MIT
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_SEEDS 256

struct fuzz_options fuzz_options;
unsigned long long fuzz_compared;

struct input {
	uint8_t *data;
	size_t size;
};

static struct input seed[MAX_SEEDS];
static int num_seeds;
static uint64_t state;

/* The current input, in shared memory of a file, so that it survives a crash. */
struct shared_input {
	uint64_t size;
	uint8_t data[FUZZ_MAX_INPUT];
};

static struct shared_input *at_work;
static char at_work_path[256];

uint32_t fuzz_random(uint32_t limit)
{
	/* splitmix64 */
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) % limit);
}

void fuzz_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", fuzz_target.name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n%s: the input is in %s\n", fuzz_target.name, at_work_path);
	exit(1);
}

void fuzz_seed(const void *data, size_t size)
{
	if (num_seeds == MAX_SEEDS || !size || size > FUZZ_MAX_INPUT)
		return;
	seed[num_seeds].data = malloc(size);
	if (!seed[num_seeds].data)
		return;
	memcpy(seed[num_seeds].data, data, size);
	seed[num_seeds++].size = size;
}

uint8_t *fuzz_read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	long length;

	*size = 0;
	if (!file)
		return NULL;
	if (!fseek(file, 0, SEEK_END) && (length = ftell(file)) >= 0 &&
	    !fseek(file, 0, SEEK_SET) && (data = malloc(length + 1)))
		*size = fread(data, 1, length, file);
	fclose(file);
	return data;
}

static void replace(size_t at, size_t cut, const void *with, size_t size)
{
	if (at > at_work->size)
		at = at_work->size;
	if (cut > at_work->size - at)
		cut = at_work->size - at;
	if (at_work->size - cut + size > FUZZ_MAX_INPUT)
		return;
	memmove(at_work->data + at + size, at_work->data + at + cut, at_work->size - at - cut);
	memcpy(at_work->data + at, with, size);
	at_work->size += size - cut;
}

static void mutate_text(void)
{
	const char *const *words = fuzz_target.words;
	const uint32_t at = fuzz_random(at_work->size + 1);
	uint8_t copy[256];
	uint32_t count = 0, length;

	while (words[count])
		count++;
	switch (fuzz_random(6)) {
	case 0:
		if (at < at_work->size)
			at_work->data[at] ^= 1 << fuzz_random(8);
		break;
	case 1:
		replace(at, 1 + fuzz_random(64), "", 0);
		break;
	case 2:
		length = 1 + fuzz_random(sizeof(copy));
		if (length > at_work->size - at)
			length = at_work->size - at;
		memcpy(copy, at_work->data + at, length);
		replace(fuzz_random(at_work->size + 1), 0, copy, length);
		break;
	case 3:
		if (!fuzz_random(8))
			at_work->size = at;
		break;
	default:
		count = fuzz_random(count);
		replace(at, fuzz_random(12), words[count], strlen(words[count]));
		break;
	}
}

static uint64_t interesting(void)
{
	static const uint64_t value[] = {
		0, 1, 2, 31, 32, 63, 64, 65, 127, 128, 255, 256, 65535, 65536, 1u << 20,
		0x7fffffff, 0x80000000, 0xffffffff, 1ull << 33, 1ull << 34, 1ull << 62,
		INT64_MAX, UINT64_MAX - 127, UINT64_MAX,
	};

	return value[fuzz_random(sizeof(value) / sizeof(value[0]))];
}

static void mutate_binary(void)
{
	const uint32_t width = 1 << fuzz_random(4);
	uint64_t value = 0;
	uint32_t at;

	if (at_work->size < 8)
		return;
	at = fuzz_random(at_work->size - 7) / width * width;
	memcpy(&value, at_work->data + at, width);
	switch (fuzz_random(6)) {
	case 0: value = interesting(); break;
	case 1: value ^= 1ull << fuzz_random(8 * width); break;
	case 2: value += 1 + fuzz_random(128); break;
	case 3: value -= 1 + fuzz_random(128); break;
	case 4: value *= 2; break;
	default:
		if (!fuzz_random(16)) {
			at_work->size = at;
			return;
		}
		value += 128 * (1 + fuzz_random(8));
	}
	memcpy(at_work->data + at, &value, width);
}

static bool run_mutant(void)
{
	const struct input *from = &seed[fuzz_random(num_seeds)];

	at_work->size = fuzz_target.make ? fuzz_target.make(at_work->data) : 0;
	if (!at_work->size) {
		memcpy(at_work->data, from->data, from->size);
		at_work->size = from->size;
	} else if (fuzz_random(2)) {
		return fuzz_target.run(at_work->data, at_work->size);
	}
	for (uint32_t n = 1 + fuzz_random(fuzz_random(8) ? 4 : 32); n; n--) {
		if (fuzz_target.words)
			mutate_text();
		else
			mutate_binary();
	}
	return fuzz_target.run(at_work->data, at_work->size);
}

static void map_input(void)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(at_work_path, sizeof(at_work_path), "%s/%s-XXXXXX", folder ? folder : "/tmp",
		 fuzz_target.name);
	fd = mkstemp(at_work_path);
	if (fd < 0 || ftruncate(fd, sizeof(*at_work)))
		fuzz_fail("cannot make it");
	at_work = mmap(NULL, sizeof(*at_work), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at_work == MAP_FAILED)
		fuzz_fail("cannot map it");
	close(fd);
}

static int replay(const char *path)
{
	size_t size;
	uint8_t *file = fuzz_read_file(path, &size);

	if (!file || size != sizeof(*at_work)) {
		fprintf(stderr, "%s: %s is not an input of an earlier run\n", fuzz_target.name,
			path);
		return 2;
	}
	memcpy(at_work, file, sizeof(*at_work));
	free(file);
	printf("%s\n", fuzz_target.run(at_work->data, at_work->size) ? "accepted" : "refused");
	return 0;
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Runs for @seconds, or, if not 0, until @executions were compared. */
static void fuzz(double seconds, unsigned long long executions)
{
	const double start = seconds_of(CLOCK_MONOTONIC);
	double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	unsigned long runs = 0, accepted = 0;

	for (int i = 0; i < num_seeds; i++) {
		memcpy(at_work->data, seed[i].data, at_work->size = seed[i].size);
		if (!fuzz_target.run(at_work->data, at_work->size))
			fuzz_fail("input %d to start from is refused, unchanged", i);
	}
	while (executions ? fuzz_compared < executions :
	       seconds_of(CLOCK_MONOTONIC) < start + seconds) {
		accepted += run_mutant();
		runs++;
	}
	printf("%s: %d inputs to start from, %lu mutants, %lu accepted\n", fuzz_target.name,
	       num_seeds, runs, accepted);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (fuzz_target.report)
		printf("%s: %llu executions compared in %.1f s of CPU time, %.0f a second\n",
		       fuzz_target.name, fuzz_compared, cpu, fuzz_compared / cpu);
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s [--seconds N] [--executions N] [--seed N] [--table] "
		"[--require-all] [INPUT]\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	const char *source = getenv("SPYRE_SRCDIR"), *input = NULL;
	unsigned long long executions = 0;
	double seconds = 10;
	int status = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = atof(argv[++i]);
		else if (!strcmp(argv[i], "--executions") && i + 1 < argc && fuzz_target.report)
			executions = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--table"))
			fuzz_options.table = true;
		else if (!strcmp(argv[i], "--require-all"))
			fuzz_options.require_all = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			state = strtoull(argv[++i], NULL, 0);
		else if (argv[i][0] != '-' && !input)
			input = argv[i];
		else
			return usage(argv[0]);
	}
	map_input();
	fuzz_target.seeds(source ? source : ".");
	if (!num_seeds)
		fuzz_fail("no inputs to start from below %s/tests; set SPYRE_SRCDIR",
			  source ? source : ".");
	if (input)
		status = replay(input);
	else
		fuzz(seconds, executions);
	if (!input && fuzz_target.report && !fuzz_target.report() && fuzz_options.require_all) {
		fprintf(stderr, "%s: the triples above at 0 were not compared; run it longer\n",
			fuzz_target.name);
		status = 1;
	}
	unlink(at_work_path);
	for (int i = 0; i < num_seeds; i++)
		free(seed[i].data);
	munmap(at_work, sizeof(*at_work));
	return status;
}
