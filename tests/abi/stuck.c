/* SPDX-License-Identifier: MIT */
#include "abi.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stuck.h"

/* Copies the lines of a file into comments of TAP. */
static void copy_file(FILE *out, const char *path)
{
	FILE *in = fopen(path, "re");
	char line[512];

	if (!in) {
		fprintf(out, "# cannot open %s: %s\n", path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = 0;
		fprintf(out, "#   %s\n", line);
	}
	fclose(in);
}

static void copy_states(FILE *out)
{
	glob_t files;
	size_t i;

	if (glob("/sys/kernel/debug/accel/*/state", 0, NULL, &files)) {
		fprintf(out, "# no /sys/kernel/debug/accel/*/state can be read\n");
		return;
	}
	for (i = 0; i < files.gl_pathc; i++) {
		fprintf(out, "# %s\n", files.gl_pathv[i]);
		copy_file(out, files.gl_pathv[i]);
	}
	globfree(&files);
}

/* Reads the name of a process without the newline; empty if it has ended. */
static void read_name(const char *pid, char *name, size_t size)
{
	char path[PATH_MAX];
	FILE *file;

	name[0] = 0;
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(name, (int)size, file))
		name[0] = 0;
	name[strcspn(name, "\n")] = 0;
	fclose(file);
}

/* Copies the stacks of the driver's threads, its workers, and processes of this program. */
static void copy_stacks(FILE *out)
{
	char path[PATH_MAX], own[64], name[64];
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		return;
	read_name("self", own, sizeof(own));
	while ((entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		read_name(entry->d_name, name, sizeof(name));
		if (!strstr(name, "spyre") && strcmp(name, own))
			continue;
		fprintf(out, "# %s %s\n", entry->d_name, name);
		snprintf(path, sizeof(path), "/proc/%s/stack", entry->d_name);
		copy_file(out, path);
	}
	closedir(proc);
}

/* Written in one call, so that reports of several processes do not mix. */
static void report(const char *object, uint64_t number, unsigned int ms)
{
	size_t size = 0, done = 0;
	char *text = NULL;
	ssize_t n = 0;
	FILE *out;

	out = open_memstream(&text, &size);
	if (!out)
		return;
	fprintf(out, "# process %d has waited %u ms for %s %llu\n", (int)getpid(), ms, object,
		(unsigned long long)number);
	copy_states(out);
	copy_stacks(out);
	if (!fclose(out))
		while (done < size && (n = write(STDERR_FILENO, text + done, size - done)) > 0)
			done += (size_t)n;
	free(text);
}

/* Number of jobs that the card has completed, or a negative errno. */
static int64_t completed(int fd)
{
	struct drm_spyre_counters info = { 0 };
	struct drm_spyre_dev_query query = {
		.type = DRM_SPYRE_DEV_QUERY_COUNTERS, .size = sizeof(info), .pointer = PTR(&info),
	};
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);

	return ret ? ret : (int64_t)info.jobs;
}

int stuck_wait_point(int fd, uint32_t syncobj, uint64_t point, unsigned int patience_ms)
{
	int64_t jobs = completed(fd), before = jobs;
	unsigned int waited = 0;
	int ret;

	for (;;) {
		ret = abi_wait_point(fd, syncobj, point, patience_ms);
		if (ret != -ETIME)
			return ret;
		jobs = completed(fd);
		if (jobs < 0)
			return (int)jobs;
		if (!waited || jobs == before)
			report("a timeline's point", point, waited + patience_ms);
		if (jobs == before)
			return -ETIME;
		before = jobs;
		waited += patience_ms;
	}
}

/* The same for the card that exists now. */
static int64_t card_completed(void)
{
	char node[PATH_MAX], device[NAME_MAX];
	int64_t jobs;
	int fd;

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		return -ENODEV;
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	jobs = completed(fd);
	close(fd);
	return jobs;
}

static bool has_ended(pid_t pid, int *status, unsigned int ms)
{
	unsigned int i;

	for (i = 0; i < ms; i += 10) {
		if (waitpid(pid, status, WNOHANG))
			return true;
		abi_sleep_ms(10);
	}
	return false;
}

bool stuck_wait_exit(pid_t pid, int *status, unsigned int patience_ms)
{
	int64_t jobs = card_completed(), before;
	unsigned int waited = 0;

	while (!has_ended(pid, status, patience_ms)) {
		waited += patience_ms;
		before = jobs;
		jobs = card_completed();
		report("the end of process", (uint64_t)pid, waited);
		if (jobs == before)
			return false;
	}
	return true;
}
