// SPDX-License-Identifier: MIT
/*
 * Loading and compiling bundles, files and all, against yyjson reading SDSC
 * texts of as many bytes as the bundles have, which lie one behind the other in
 * memory: bundle.mlir, which is no JSON, counts as such text. The cache of
 * compiled bundles is off, but for the rows that say so.
 */
#define _GNU_SOURCE
#include "bench/device.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#define COUNT 1000
#define MIB (1 << 20)

struct load {
	struct bench_device device;
	char root[32];
	/* The bundle that all others are made of, and the SDSC's root key. */
	char *mlir, *json, *execute, *key;
	char *texts_memory;	/* COUNT times the SDSC's text */
	size_t size;
	/* Of the figure at hand: bundles root/<prefix>0…, SDSC texts to parse. */
	const char *prefix;
	int bundles, texts;
};

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	return remove(path);
}

static char *read_text(const char *root, const char *file)
{
	char path[128], *text = calloc(1, MIB);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	f = fopen(path, "r");
	if (!f || !text || fread(text, 1, MIB - 1, f) == 0) {
		fprintf(stderr, "spyre-bench: cannot read %s\n", path);
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

/* @head, then for each of @count SDSCs the execute line, then @tail. */
static bool write_mlir(const struct load *l, const char *directory, int count)
{
	static const char name[] = "sdsc_0.json";
	const char *hole = strstr(l->execute, name), *end = strchr(l->execute, '\n');
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
	f = fopen(path, "w");
	if (!f || !hole || !end)
		return false;
	fwrite(l->mlir, 1, (size_t)(l->execute - l->mlir), f);
	for (int i = 0; i < count; i++) {
		fwrite(l->execute, 1, (size_t)(hole - l->execute), f);
		fprintf(f, "sdsc_%d.json", i);
		fwrite(hole + sizeof(name) - 1, 1, (size_t)(end + 1 - hole) - sizeof(name) + 1, f);
	}
	fputs(end + 1, f);
	return !fclose(f);
}

static bool write_bundle(const struct load *l, const char *prefix, int number, int sdscs)
{
	char directory[64], path[128];

	snprintf(directory, sizeof(directory), "%s/%s%d", l->root, prefix, number);
	if (mkdir(directory, 0777) || !write_mlir(l, directory, sdscs))
		return false;
	for (int i = 0; i < sdscs; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/sdsc_%d.json", directory, i);
		f = fopen(path, "w");
		if (!f)
			return false;
		/* No two alike. */
		fwrite(l->json, 1, (size_t)(l->key - l->json), f);
		fprintf(f, "%d%s", number + i, l->key + 1);
		if (fclose(f))
			return false;
	}
	return true;
}

static double run_load(void *state)
{
	struct load *l = state;
	const double start = bench_now();
	char path[64];

	for (int i = 0; i < l->bundles; i++) {
		spyre_kernel *kernel;

		snprintf(path, sizeof(path), "%s/%s%d", l->root, l->prefix, i);
		if (bench_failed(spyre_kernel_load(l->device.context, path, &kernel), "loading"))
			return -1;
		spyre_kernel_unload(kernel);
	}
	return bench_now() - start;
}

static double run_yyjson(void *state)
{
	const struct load *l = state;
	const double start = bench_now();

	for (int i = 0; i < l->texts; i++) {
		const char *text = l->texts_memory + i % COUNT * l->size;
		yyjson_doc *doc = yyjson_read(text, l->size, 0);

		if (!doc)
			return -1;
		yyjson_doc_free(doc);
	}
	return bench_now() - start;
}

static bool prepare(struct load *l)
{
	const int64_t size[2] = { 512, 1024 };
	spyre_sdsc_operand operand[3] = { 0 };
	int to_a_mib;
	char *key;

	strcpy(l->root, "/tmp/spyre-bench-XXXXXX");
	if (!mkdtemp(l->root))
		return false;
	for (int i = 0; i < 3; i++) {
		operand[i].rank = 2;
		memcpy(operand[i].size, size, sizeof(size));
		if (bench_failed(spyre_layout_init(&operand[i].layout, 2, size,
						   SPYRE_FORMAT_IEEE_FP16), "laying out"))
			return false;
	}
	if (bench_failed(spyre_sdsc_build("add", operand, 3, 32, l->root), "building a bundle"))
		return false;
	l->mlir = read_text(l->root, "bundle.mlir");
	l->json = read_text(l->root, "sdsc_0.json");
	if (!l->mlir || !l->json)
		return false;
	l->execute = strstr(l->mlir, "\t\tsdscbundle.sdsc_execute");
	key = strstr(l->json, "\"0_add\"");
	if (!l->execute || !key)
		return false;
	l->key = key + 1;
	l->size = strlen(l->json);
	l->texts_memory = malloc(COUNT * l->size);
	if (!l->texts_memory)
		return false;
	for (int i = 0; i < COUNT; i++)
		memcpy(l->texts_memory + i * l->size, l->json, l->size);
	to_a_mib = (int)(MIB / l->size) + 1;
	for (int i = 0; i < COUNT; i++)
		if (!write_bundle(l, "one", i, 1))
			return false;
	for (int i = 0; i < 16; i++)
		if (!write_bundle(l, "mib", i, to_a_mib))
			return false;
	return write_bundle(l, "all", 0, COUNT);
}

/* SDSC texts that have the bytes of these bundles, bundle.mlir included. */
static int texts_of(const struct load *l, int bundles, int sdscs)
{
	size_t line = (size_t)(strchr(l->execute, '\n') + 1 - l->execute);
	size_t mlir = strlen(l->mlir) + (size_t)(sdscs - 1) * line;
	size_t bytes = (size_t)bundles * (mlir + (size_t)sdscs * l->size);

	return (int)((bytes + l->size / 2) / l->size);
}

static bool measure(struct load *l, struct bench_report *report,
		    const struct bench_options *options)
{
	const struct {
		const char *name, *prefix, *cache;
		int bundles, sdscs;	/* of each bundle */
		double aim;
	} figure[] = {
		{ "load 1000 bundles of 1 SDSC", "one", "0", COUNT, 1, 3 },
		{ "load 1 bundle of 1000 SDSCs", "all", "0", 1, COUNT, 3 },
		{ "load 16 bundles of 1 MiB", "mib", "0", 16, (int)(MIB / l->size) + 1, 3 },
		{ "load 1000 compiled bundles", "one", "1", COUNT, 1, 0 },
		{ "load 1 compiled bundle of 1000 SDSCs", "all", "1", 1, COUNT, 0 },
	};
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof(figure) / sizeof(figure[0]); i++) {
		const struct bench_pair pair = { run_load, run_yyjson, l, 0 };
		struct bench_result result = { .unit = "ms", .peer = "yyjson, as many bytes",
					       .aim = figure[i].aim };

		snprintf(result.name, sizeof(result.name), "%s", figure[i].name);
		setenv("SPYRE_KERNEL_CACHE", figure[i].cache, 1);
		l->prefix = figure[i].prefix;
		l->bundles = figure[i].bundles;
		l->texts = texts_of(l, figure[i].bundles, figure[i].sdscs);
		ok = bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_time(report, &result, 1e3);
	}
	unsetenv("SPYRE_KERNEL_CACHE");
	return ok;
}

bool bench_load(struct bench_report *report, const struct bench_options *options)
{
	struct load l = { 0 };
	bool ok = bench_device_open(&l.device);

	if (ok && !prepare(&l)) {
		fprintf(stderr, "spyre-bench: cannot make the bundles in %s\n", l.root);
		ok = false;
	}
	ok = ok && measure(&l, report, options);
	if (*l.root)
		nftw(l.root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(l.mlir);
	free(l.json);
	free(l.texts_memory);
	bench_device_close(&l.device);
	return ok;
}
