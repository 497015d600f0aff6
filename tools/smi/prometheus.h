/* SPDX-License-Identifier: MIT */
/* Metrics in Prometheus' text format. */
#ifndef SMI_PROMETHEUS_H
#define SMI_PROMETHEUS_H

#include "tools/smi/smi.h"

/*
 * Adds a label, "NAME=VALUE", to all samples that are written from now on. Returns NULL, or the
 * reason for which it cannot.
 */
const char *smi_prometheus_label(const char *text);
/* Writes the metrics of the chosen cards and their processes; errors are those of @out. */
void smi_prometheus(FILE *out, const struct smi_snapshot *snapshot);
/*
 * Writes them to @path so that a reader sees the old file or the new one, or to standard
 * output if @path is NULL. Returns an exit status, with a message on standard error.
 */
int smi_prometheus_file(const char *path, const struct smi_snapshot *snapshot);

#endif /* SMI_PROMETHEUS_H */
