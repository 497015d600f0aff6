/* SPDX-License-Identifier: MIT */
/* Parts of dmon and pmon. */
#ifndef SMI_MONITOR_H
#define SMI_MONITOR_H

#include "tools/smi/smi.h"

/* Load of the host between two readings; NAN: unknown. */
struct smi_host {
	double cpu_percent;		/* summed over the processors, as in top */
	double memory_percent;
	uint64_t busy, idle;		/* of the last reading, in ticks */
};

/* host.c: reads the load since the last call; a first one sets only the memory. */
void smi_read_host(struct smi_host *host);

/* monitor.c */
const char *smi_monitor_groups(const struct smi_options *options);
void smi_monitor_header(const struct smi_options *options);
/* Prints the cards or processes of @now that are chosen, with rates since @then. */
void smi_monitor_rows(const struct smi_snapshot *now, const struct smi_snapshot *then,
		      const struct smi_host *host, const struct smi_options *options);

#endif /* SMI_MONITOR_H */
