// SPDX-License-Identifier: MIT
/*
 * Coverage: KCOV lists the PCs that this thread executed in the kernel; those of
 * the driver count, singly and in pairs.
 */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kcov.h>

#define BUFFER (256u << 10)	/* PCs of one call */
#define MAP_BITS 20

static unsigned long *buffer;
static unsigned long base, size;	/* of the driver's text */
static uint8_t *pcs;			/* one bit for each byte of text */
static uint8_t seen[1 << (MAP_BITS - 3)];
static uint32_t num_pcs, num_features;
static uint8_t last_kind;

static bool find_module(void)
{
	FILE *file = fopen("/proc/modules", "r");
	char line[512], name[64];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %lu %*s %*s %*s %lx", name, &size, &base) == 3 &&
		    !strcmp(name, "spyre_vdev"))
			break;
		else
			base = 0;
	if (file)
		fclose(file);
	pcs = base ? calloc(size / 8 + 1, 1) : NULL;
	return pcs;
}

bool fz_kcov_open(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (!find_module() || ioctl(fd, KCOV_INIT_TRACE, (unsigned long)BUFFER))
		goto fail;
	buffer = mmap(NULL, BUFFER * sizeof(*buffer), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (buffer == MAP_FAILED)
		goto fail;
	/* It stays open and enabled until the program ends. */
	if (!ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		return true;
	munmap(buffer, BUFFER * sizeof(*buffer));
fail:
	buffer = NULL;
	close(fd);
	return false;
}

static uint32_t feature(uint64_t key)
{
	uint32_t bit = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> (64 - MAP_BITS));

	if (seen[bit / 8] & 1 << bit % 8)
		return 0;
	seen[bit / 8] |= 1 << bit % 8;
	num_features++;
	return 1;
}

void fz_kcov_begin(void)
{
	if (buffer)
		__atomic_store_n(&buffer[0], 0, __ATOMIC_RELAXED);
}

uint32_t fz_kcov_end(void)
{
	unsigned long n, i, at, before = 0;
	uint32_t found = 0;

	n = buffer ? __atomic_load_n(&buffer[0], __ATOMIC_RELAXED) : 0;
	for (i = 1; i <= n; i++) {
		at = buffer[i] - base;
		if (at >= size)
			continue;
		if (!(pcs[at / 8] & 1 << at % 8)) {
			pcs[at / 8] |= 1 << at % 8;
			num_pcs++;
		}
		found += feature(before << 32 | at);
		before = at;
	}
	fz_kcov_begin();
	return found;
}

uint32_t fz_kcov_result(uint8_t kind, int result)
{
	uint64_t key = 1ull << 63 | (uint64_t)last_kind << 24 | (uint64_t)kind << 16 |
		       (uint16_t)result;

	last_kind = kind;
	return feature(key);
}

uint32_t fz_kcov_pcs(void)
{
	return num_pcs;
}

uint32_t fz_kcov_features(void)
{
	return num_features;
}
