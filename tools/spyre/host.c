// SPDX-License-Identifier: MIT
/* Queries facts about the machine without opening a card. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host.h"

/* The kernel assigns minors 0..255 to accel nodes. */
#define MAX_MINOR 256

bool host_read_line(const char *path, char *buffer, size_t bytes)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(buffer, (int)bytes, file);

	if (file)
		fclose(file);
	if (!good)
		*buffer = '\0';
	buffer[strcspn(buffer, "\n")] = '\0';
	return good;
}

bool host_module_loaded(void)
{
	return !access("/sys/module/" HOST_MODULE, F_OK);
}

void host_module_version(char *buffer, size_t bytes)
{
	host_read_line("/sys/module/" HOST_MODULE "/version", buffer, bytes);
}

void host_kernel_release(char *buffer, size_t bytes)
{
	struct utsname name;

	snprintf(buffer, bytes, "%s", uname(&name) ? "unknown" : name.release);
}

void host_distribution(const char *path, char *buffer, size_t bytes)
{
	FILE *file = fopen(path, "re");
	size_t used = 1;
	char line[256];

	snprintf(buffer, bytes, " ");
	while (file && fgets(line, sizeof(line), file)) {
		bool id = !strncmp(line, "ID=", 3) || !strncmp(line, "ID_LIKE=", 8);

		for (char *c = strchr(line, '='); id && c && *++c && used + 2 < bytes;)
			if (*c != '"' && *c != '\'')
				buffer[used++] = *c == '\n' ? ' ' : *c;
		if (buffer[used - 1] != ' ' && used + 1 < bytes)
			buffer[used++] = ' ';
		buffer[used] = '\0';
	}
	if (file)
		fclose(file);
}

bool host_module_installed(void)
{
	char release[128], path[256];
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file;

	host_kernel_release(release, sizeof(release));
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", release);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && getline(&line, &size, file) > 0) {
		char *colon = strchr(line, ':');

		if (colon)
			*colon = '\0';
		found = strstr(line, "/" HOST_MODULE ".ko") != NULL;
	}
	free(line);
	fclose(file);
	return found;
}

int host_next_node(int minor, char *path, size_t bytes)
{
	for (; minor < MAX_MINOR; minor++) {
		char link[128], target[PATH_MAX];
		ssize_t length;
		char *base;

		snprintf(link, sizeof(link), "/sys/class/accel/accel%d/device/driver", minor);
		length = readlink(link, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		base = strrchr(target, '/');
		if (strcmp(base ? base + 1 : target, HOST_MODULE))
			continue;
		snprintf(path, bytes, "/dev/accel/accel%d", minor);
		return minor;
	}
	return -1;
}
