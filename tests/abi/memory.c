/* SPDX-License-Identifier: MIT */
/* Queries of memory use, by each interface of the kernel. */
#include "memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

int memory_info(int fd, uint32_t handle, struct drm_spyre_bo_info *info)
{
	memset(info, 0xa5, sizeof(*info));
	info->handle = handle;
	return abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_INFO, info);
}

uint64_t memory_resident(int fd, uint32_t handle)
{
	struct drm_spyre_bo_info info;

	if (memory_info(fd, handle, &info))
		tap_bail("BO_INFO");
	return info.resident;
}

/* Returns the number after "@key" and a colon or blank, scaled by its unit. */
uint64_t memory_key(const char *path, const char *key)
{
	uint64_t value = UINT64_MAX, number;
	char line[256], unit[8];
	size_t length = strlen(key);
	FILE *f = fopen(path, "re");
	int fields;

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, length) || !strchr(": \t", line[length]))
			continue;
		unit[0] = 0;
		fields = sscanf(line + length + 1, "%" SCNu64 " %7s", &number, unit);
		if (fields < 1)
			break;
		value = number;
		if (!strcmp(unit, "KiB"))
			value <<= 10;
		else if (!strcmp(unit, "MiB"))
			value <<= 20;
		break;
	}
	fclose(f);
	return value;
}

uint64_t memory_fdinfo(int fd, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return memory_key(path, key);
}

uint64_t memory_sysfs(const char *name)
{
	char node[PATH_MAX], device[NAME_MAX], path[PATH_MAX];
	uint64_t value = UINT64_MAX;
	FILE *f;

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "/sys/bus/platform/devices/%.64s/%.64s", device, name);
	f = fopen(path, "re");
	if (!f)
		return UINT64_MAX;
	if (fscanf(f, "%" SCNu64, &value) != 1)
		value = UINT64_MAX;
	fclose(f);
	return value;
}
