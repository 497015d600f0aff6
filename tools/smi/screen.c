/* SPDX-License-Identifier: MIT */
/* The default screen: 80 columns, arranged like nvidia-smi's. */
#include "config.h"

#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "tools/smi/smi.h"

#define MIB (UINT64_C(1) << 20)

static const char line[] =
"+------------------------------------------------------------------------------+";

static void print_mib(char *text, size_t size, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		snprintf(text, size, "N/A");
	else
		snprintf(text, size, "%" PRIu64 "MiB", (bytes + MIB / 2) / MIB);
}

static void print_u32(char *text, size_t size, uint32_t value, uint32_t divisor,
		      const char *unit)
{
	if (value == UINT32_MAX)
		snprintf(text, size, "N/A");
	else
		snprintf(text, size, "%u%s", (value + divisor / 2) / divisor, unit);
}

static void print_u64(char *text, size_t size, uint64_t value)
{
	if (value == UINT64_MAX)
		snprintf(text, size, "N/A");
	else if (value < 100000000)
		snprintf(text, size, "%" PRIu64, value);
	else
		snprintf(text, size, "%.2e", (double)value);
}

static const char *driver_version(const struct smi_snapshot *snapshot)
{
	int i;

	for (i = 0; i < snapshot->num_cards; i++)
		if (snapshot->cards[i].driver_version[0])
			return snapshot->cards[i].driver_version;
	return "N/A";
}

static void print_head(const struct smi_snapshot *snapshot)
{
	uint32_t version = spyre_version();
	char date[64], library[32];
	struct tm tm;

	localtime_r(&snapshot->time.tv_sec, &tm);
	strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", &tm);
	snprintf(library, sizeof(library), "%u.%u.%u", version >> 16, version >> 8 & 0xff,
		 version & 0xff);
	printf("%s\n%s\n", date, line);
	printf("| SPYRE-SMI %-11.11s  Driver Version: %-11.11s  Library Version: %-8.8s|\n", VERSION,
	       driver_version(snapshot), library);
	puts("|----------------------------------+-------------------------+-----------------|");
	puts("| Card  Name              Backend  | Bus-Id             Host |     Jobs  Fails |");
	puts("|  Temp             Pwr:Usage/Cap  |            Memory-Usage | Card-Util Cores |");
	puts("|==================================+=========================+=================|");
}

static void print_card(const spyre_telemetry_card *card, int index)
{
	char power[24], limit[12], temperature[16], used[24], total[24], memory[64], draw[40];
	char utilization[16], jobs[24], fails[24], cores[16], host[16] = "-";

	print_u32(temperature, sizeof(temperature), card->temperature_mc, 1000, "C");
	print_u32(power, sizeof(power), card->power_mw, 1000, "W");
	print_u32(limit, sizeof(limit), card->power_limit_mw, 1000, "W");
	snprintf(draw, sizeof(draw), "%s / %s", power, limit);
	print_mib(used, sizeof(used), card->memory_used);
	print_mib(total, sizeof(total), card->memory_total);
	snprintf(memory, sizeof(memory), "%s / %s", used, total);
	print_u32(utilization, sizeof(utilization), card->utilization, 1, "%");
	print_u64(jobs, sizeof(jobs), card->jobs);
	print_u64(fails, sizeof(fails), card->errors);
	print_u32(cores, sizeof(cores),
		  card->properties.num_cores ? card->properties.num_cores : UINT32_MAX, 1, "");
	if (card->host_pid)
		snprintf(host, sizeof(host), "%" PRId32, card->host_pid);
	printf("| %4d  %-17.17s %-8s | %-15.15s %7.7s | %8.8s %6.6s |\n", index,
	       card->properties.name,
	       card->properties.backend == SPYRE_BACKEND_DRM ? "drm" : "embedded",
	       card->properties.bus_id, host, jobs, fails);
	printf("| %5.5s %25.25s  | %23.23s | %9.9s %5.5s |\n", temperature, draw, memory,
	       utilization, cores);
	puts("+----------------------------------+-------------------------+-----------------+");
}

static void print_process(const spyre_telemetry_process *process)
{
	char buffer[1024], user[32], memory[32];
	struct passwd entry, *found;

	if (!getpwuid_r(process->uid, &entry, buffer, sizeof(buffer), &found) && found)
		snprintf(user, sizeof(user), "%s", entry.pw_name);
	else if (process->uid == UINT32_MAX)
		snprintf(user, sizeof(user), "N/A");
	else
		snprintf(user, sizeof(user), "%" PRIu32, process->uid);
	print_mib(memory, sizeof(memory), process->memory_used);
	printf("| %4d %10" PRId32 "  %-12.12s  %-30.30s %14.14s |\n", process->card, process->pid,
	       user, process->name, memory);
}

static void print_processes(const struct smi_snapshot *snapshot)
{
	int i, shown = 0;

	printf("\n%s\n", line);
	puts("| Processes:                                                                   |");
	puts("| Card        PID  User          Process name                     Memory-Usage |");
	puts("|==============================================================================|");
	for (i = 0; i < snapshot->num_processes; i++) {
		if (!snapshot->chosen[snapshot->processes[i].card])
			continue;
		print_process(&snapshot->processes[i]);
		shown++;
	}
	if (!shown)
		puts("|  No running processes found                                                  |");
	puts(line);
}

void smi_screen(const struct smi_snapshot *snapshot)
{
	int i;

	print_head(snapshot);
	for (i = 0; i < snapshot->num_cards; i++)
		if (snapshot->chosen[i])
			print_card(&snapshot->cards[i], i);
	if (!snapshot->num_chosen) {
		puts("|  No cards found                                                              |");
		puts(line);
	}
	print_processes(snapshot);
}
