/* SPDX-License-Identifier: MIT */
/* Parts of dmon and pmon. */
#ifndef SMI_MONITOR_H
#define SMI_MONITOR_H

#include "tools/smi/rates.h"

/* monitor.c */
const char *smi_monitor_groups(const struct smi_options *options);
void smi_monitor_header(const struct smi_options *options);
/* Prints the cards or processes of @now that are chosen, with rates since @then. */
void smi_monitor_rows(const struct smi_snapshot *now, const struct smi_snapshot *then,
		      const struct smi_host *host, const struct smi_options *options);

#endif /* SMI_MONITOR_H */
