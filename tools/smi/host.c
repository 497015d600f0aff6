/* SPDX-License-Identifier: MIT */
/* Load of the host, for aiu-smi's columns. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "tools/smi/rates.h"

static void read_processors(struct smi_host *host)
{
	uint64_t user, nice, system, idle, wait, irq, softirq, busy;
	FILE *file = fopen("/proc/stat", "re");
	int count;

	host->cpu_percent = NAN;
	if (!file)
		return;
	count = fscanf(file, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		       " %" SCNu64 " %" SCNu64, &user, &nice, &system, &idle, &wait, &irq, &softirq);
	fclose(file);
	if (count != 7)
		return;
	busy = user + nice + system + irq + softirq;
	idle += wait;
	if ((host->busy || host->idle) && busy + idle > host->busy + host->idle)
		host->cpu_percent = 100.0 * (double)sysconf(_SC_NPROCESSORS_ONLN) *
				    (double)(busy - host->busy) /
				    (double)(busy + idle - host->busy - host->idle);
	host->busy = busy;
	host->idle = idle;
}

static void read_memory(struct smi_host *host)
{
	uint64_t total = 0, available = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	host->memory_percent = NAN;
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "MemTotal: %" SCNu64, &total);
		sscanf(line, "MemAvailable: %" SCNu64, &available);
	}
	if (file)
		fclose(file);
	if (total && available <= total)
		host->memory_percent = 100.0 * (double)(total - available) / (double)total;
}

void smi_read_host(struct smi_host *host)
{
	read_processors(host);
	read_memory(host);
}
