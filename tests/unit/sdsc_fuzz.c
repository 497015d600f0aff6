// SPDX-License-Identifier: MIT
/*
 * Mutated bundles: the compiler must never crash and must give a reason when it
 * refuses; an accepted bundle must pass the card's verifier. Seeds are fixed; give
 * a seed and a count to search further: tests/unit/sdsc_fuzz 1234 100000.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/lower/rows.h"
#include "suite.h"

#define ROUNDS 60
#define MAX_TEXT (1 << 20)

static const char *const corpus[] = {
	"add", "add_baked", "bmm", "cast_fp32_fp16", "clone_slice", "fma", "gather", "gather_exp",
	"loop_add", "loop_fma", "max_last_pad", "mean_last_pad", "mm", "mm_pad_chain",
	"restickify", "scalar_mul", "scatter", "sum_first", "where3",
};

#define COUNT(x) (sizeof(x) / sizeof(x[0]))

struct file {
	const char *name;
	char *text;
	size_t size;
};

static uint64_t state;
static bool standalone;

/* Check reports nothing outside its own runs. */
__attribute__((format(printf, 1, 2)))
static void complain(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!standalone)
		ck_abort_msg("%s", text);
	fprintf(stderr, "%s\n", text);
	exit(EXIT_FAILURE);
}

static uint32_t dice(uint32_t sides)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % (sides ? sides : 1);
}

static const char *const numbers[] = {
	"0", "1", "-1", "-2", "2", "3", "63", "64", "65", "127", "128", "255", "4096", "65535",
	"65536", "2097152", "268435456", "4294967295", "4294967296", "17179869184",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"18446744073709551616", "1e308", "0.5", "null", "true", "[]", "{}", "\"\"", "\"out\"",
};

/* Replaces @len bytes at @at. */
static void splice(struct file *f, size_t at, size_t len, const char *text, size_t size)
{
	if (f->size - len + size >= MAX_TEXT)
		return;
	memmove(f->text + at + size, f->text + at + len, f->size - at - len);
	memcpy(f->text + at, text, size);
	f->size += size - len;
}

/* Finds the number at or after a random position. */
static bool find_number(const struct file *f, size_t *at, size_t *len)
{
	size_t i = dice((uint32_t)f->size);

	while (i < f->size && (f->text[i] < '0' || f->text[i] > '9'))
		i++;
	*at = i;
	while (i < f->size && f->text[i] >= '0' && f->text[i] <= '9')
		i++;
	*len = i - *at;
	return *len;
}

static void mutate(struct file *f)
{
	size_t at, len, from;
	const char *number;
	char piece[256];

	if (!f->size)
		return;
	at = dice((uint32_t)f->size);
	switch (dice(8)) {
	case 0:
		f->text[at] = (char)dice(256);
		break;
	case 1:
		f->text[at] ^= (char)(1u << dice(8));
		break;
	case 2:	/* cut */
		if (!dice(8))
			f->size = at;
		break;
	case 3:	/* drop a piece */
		len = dice(64);
		splice(f, at, len < f->size - at ? len : f->size - at, "", 0);
		break;
	case 4:	/* insert a piece from elsewhere */
		from = dice((uint32_t)f->size);
		len = dice(sizeof(piece));
		len = len < f->size - from ? len : f->size - from;
		memcpy(piece, f->text + from, len);
		splice(f, at, 0, piece, len);
		break;
	default:	/* another number: keeps the syntax, changes the meaning */
		number = numbers[dice(COUNT(numbers))];
		if (find_number(f, &at, &len))
			splice(f, at, len, number, strlen(number));
		break;
	}
}

static void read_file(const char *bundle, struct file *f)
{
	const char *root = getenv("SPYRE_SRCDIR");
	char path[1024];
	FILE *in;

	snprintf(path, sizeof(path), "%s/tests/conformance/bundles/%s/%s", root ? root : ".",
		 bundle, f->name);
	f->text = malloc(MAX_TEXT);
	f->size = 0;
	in = fopen(path, "r");
	if (!in)
		return;
	f->size = fread(f->text, 1, MAX_TEXT / 2, in);
	fclose(in);
}

static void write_file(const char *directory, const struct file *f)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", directory, f->name);
	out = fopen(path, "w");
	if (!out || fwrite(f->text, 1, f->size, out) != f->size || fclose(out))
		complain("%s cannot be written", path);
}

/* The verifier may refuse only the amount of work. */
static void verify(const struct spyre_bundle *out, const char *bundle, uint64_t seed)
{
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;

	if (spyre_program_verify(out->image, out->image_bytes, 32, &program, &err) &&
	    err.stop != SPYRE_STOP_TOO_LONG)
		complain("%s, seed %llu: the verifier refuses what was compiled: %s, step %u, core %u, instruction %u, view %u: %llu against %llu",
			 bundle, (unsigned long long)seed, spyre_stop_name(err.stop), err.step,
			 err.core, err.instr, err.view, (unsigned long long)err.value,
			 (unsigned long long)err.limit);
}

/* Sets the rows of tables of any size. */
static void set_rows(struct spyre_bundle *out)
{
	static const uint64_t sizes[] = { 0, 127, 4096, 1 << 20, 1ull << 34, UINT64_MAX };
	uint64_t bytes[SPYRE_MAX_OPERANDS];

	for (uint32_t i = 0; i < SPYRE_MAX_OPERANDS; i++)
		bytes[i] = sizes[dice(COUNT(sizes))] - dice(300);
	rows_of_launch(out->image, out, bytes);
}

static void compile(const char *directory, const char *bundle, uint64_t seed)
{
	struct spyre_bundle out;
	spyre_status status;

	status = spyre_bundle_load(directory, 32, CODE_CACHE_OFF, &out, NULL);
	if (status != SPYRE_SUCCESS) {
		if (!*spyre_last_error())
			complain("%s, seed %llu: no text", bundle, (unsigned long long)seed);
		return;
	}
	verify(&out, bundle, seed);
	set_rows(&out);
	verify(&out, bundle, seed);
	spyre_bundle_fini(&out);
}

static void fuzz(const char *bundle, uint64_t first_seed, uint64_t rounds)
{
	struct file pristine[3] = { { .name = "bundle.mlir" }, { .name = "sdsc_0.json" },
				    { .name = "sdsc_1.json" } };
	char directory[] = "/tmp/spyre-fuzz-XXXXXX", path[64];
	struct file changed = { .text = malloc(MAX_TEXT) };

	if (!mkdtemp(directory))
		complain("no directory in /tmp");
	for (int i = 0; i < 3; i++)
		read_file(bundle, &pristine[i]);
	for (uint64_t seed = first_seed; seed < first_seed + rounds; seed++) {
		struct file *victim;
		uint32_t changes;

		state = seed * 0x9e3779b97f4a7c15ull;
		victim = &pristine[dice(pristine[2].size ? 3 : 2)];
		changes = 1 + dice(3);
		changed.name = victim->name;
		changed.size = victim->size;
		memcpy(changed.text, victim->text, victim->size);
		while (changes--)
			mutate(&changed);
		for (int i = 0; i < 3; i++)
			if (pristine[i].size)
				write_file(directory, &pristine[i] == victim ? &changed :
					   &pristine[i]);
		compile(directory, bundle, seed);
	}
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, pristine[i].name);
		unlink(path);
		free(pristine[i].text);
	}
	rmdir(directory);
	free(changed.text);
}

START_TEST(mutations)
{
	fuzz(corpus[_i], (uint64_t)_i * 1000003, ROUNDS);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s;
	TCase *t;

	if (argc == 3) {
		standalone = true;
		for (size_t i = 0; i < COUNT(corpus); i++)
			fuzz(corpus[i], strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0));
		exit(EXIT_SUCCESS);
	}
	s = suite_create("fuzz");
	t = tcase_create("bundle");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, mutations, 0, COUNT(corpus));
	suite_add_tcase(s, t);
	return suite_run(s);
}
