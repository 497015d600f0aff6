// SPDX-License-Identifier: MIT
/* Fuzzes coredumps: for any file the output is finite and valid. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "tests/unit/coredump_sample.h"
#include "tools/spyre/coredump.h"

static void seeds(const char *source_dir)
{
	uint8_t sample[COREDUMP_SAMPLE_MAX];

	(void)source_dir;
	fuzz_seed(sample, coredump_sample(sample));
}

static bool run(const uint8_t *data, size_t size)
{
	struct coredump dump;
	struct text why;
	yyjson_doc *doc;
	size_t length;
	char *text;
	FILE *out;

	if (coredump_parse(&dump, data, size, &why))
		return false;
	out = open_memstream(&text, &length);
	coredump_print(&dump, out);
	fclose(out);
	free(text);
	text = coredump_json(&dump);
	doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
	if (!doc)
		fuzz_fail("no JSON");
	yyjson_doc_free(doc);
	free(text);
	text = coredump_ras(&dump);
	if (!text)
		fuzz_fail("no RAS record: %s", spyre_last_error());
	free(text);
	return true;
}

const struct fuzz_target fuzz_target = { .name = "fuzz-coredump", .seeds = seeds, .run = run };
