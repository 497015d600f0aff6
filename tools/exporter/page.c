/* SPDX-License-Identifier: MIT */
/* The page of metrics, which requests share while it is fresh. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/exporter/exporter.h"
#include "tools/smi/prometheus.h"

#define FRESH_SECONDS 0.5

static struct exporter_page *last;
static struct timespec last_time;

void exporter_page_put(struct exporter_page *page)
{
	if (!page || --page->references)
		return;
	free(page->text);
	free(page);
}

static struct exporter_page *make(void)
{
	struct exporter_page *page = calloc(1, sizeof(*page));
	struct smi_snapshot snapshot;
	bool failed = true;
	FILE *out;

	if (!page)
		return NULL;
	page->references = 1;
	out = open_memstream(&page->text, &page->bytes);
	if (smi_take_snapshot(&snapshot) == SMI_OK && out) {
		failed = smi_choose(&snapshot, NULL) != SMI_OK;
		smi_prometheus(out, &snapshot);
		failed |= ferror(out) != 0;
	}
	smi_free_snapshot(&snapshot);
	failed |= !out || fclose(out);
	if (!failed)
		return page;
	exporter_page_put(page);
	return NULL;
}

struct exporter_page *exporter_metrics(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!last || (double)(now.tv_sec - last_time.tv_sec) +
		     (double)(now.tv_nsec - last_time.tv_nsec) / 1e9 > FRESH_SECONDS) {
		exporter_page_put(last);
		last = make();
		clock_gettime(CLOCK_MONOTONIC, &last_time);
	}
	if (last)
		last->references++;
	return last;
}
