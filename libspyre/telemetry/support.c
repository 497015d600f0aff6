// SPDX-License-Identifier: MIT
/* Helpers that the sources of telemetry share. */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/base/sysfs.h"
#include "libspyre/telemetry/sources.h"

uint64_t spyre_telemetry_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool spyre_telemetry_start_time(int32_t pid, uint64_t *start_time)
{
	char path[256], text[1024], *field;
	int i;

	/* That of the first thread: qemu-user makes up a program's /proc/PID/stat of itself. */
	snprintf(path, sizeof(path), "%s/proc/%" PRId32 "/task/%" PRId32 "/stat",
		 spyre_sysfs_root(), pid, pid);
	if (!spyre_sysfs_read(path, text, sizeof(text)))
		return false;
	/* Field 2, the name, may contain blanks and brackets, so the last bracket ends it. */
	field = strrchr(text, ')');
	for (i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	return field && sscanf(field, "%" SCNu64, start_time) == 1;
}

uint64_t spyre_telemetry_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

void spyre_telemetry_clean(char *text, size_t size)
{
	size_t i;

	text[size - 1] = '\0';
	for (i = 0; text[i]; i++)
		if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
			text[i] = '?';
	memset(text + i, 0, size - i);
}

int32_t spyre_telemetry_pid(const char *name)
{
	unsigned long pid;
	char *end;

	if (name[0] < '1' || name[0] > '9')
		return 0;
	pid = strtoul(name, &end, 10);
	return *end || pid > INT32_MAX ? 0 : (int32_t)pid;
}

/* Reserves entry @count of @size bytes; false, with an error text, if memory is short. */
static bool reserve(void *array, int count, size_t *capacity, size_t size)
{
	if (spyre_array_reserve(array, capacity, (size_t)count + 1, size))
		return true;
	(void)spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
			  "no host memory for a list of %d telemetry entries", count + 1);
	return false;
}

struct spyre_reading *spyre_readings_add(struct spyre_readings *readings)
{
	struct spyre_reading *added;

	if (!reserve(&readings->reading, readings->count, &readings->capacity, sizeof(*added)))
		return NULL;
	added = &readings->reading[readings->count++];
	memset(added, 0, sizeof(*added));
	return added;
}

spyre_telemetry_process *spyre_processes_add(struct spyre_processes *processes)
{
	spyre_telemetry_process *added;

	if (!reserve(&processes->process, processes->count, &processes->capacity, sizeof(*added)))
		return NULL;
	added = &processes->process[processes->count++];
	memset(added, 0, sizeof(*added));
	return added;
}
