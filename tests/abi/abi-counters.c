/* SPDX-License-Identifier: MIT */
/*
 * Access to the totals of a card: with counters_paranoid a user without CAP_PERFMON
 * sees only the totals of the own context; without it everyone sees all.
 */
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user.h"

#define VA (64 * MIB)
#define LOAD_NS 10000000u

static const char *const exact[] = {
	"jobs", "errors", "cycles", "macs", "bytes_read", "bytes_written", "rdma_read",
	"rdma_written", "pcie_rx_bytes", "pcie_tx_bytes", "pt_cycles", "sfu_cycles", "dma_cycles",
	"launches", "copies", "energy_mj", "faults_timeout", "faults_access", "faults_escape",
	"faults_compute", "context_events",
};

static char folder[PATH_MAX];	/* the card's in sysfs */

static struct drm_spyre_counters counters(int fd)
{
	struct drm_spyre_counters info = { 0 };
	struct drm_spyre_dev_query query = {
		.type = DRM_SPYRE_DEV_QUERY_COUNTERS, .size = sizeof(info), .pointer = PTR(&info),
	};

	if (abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query))
		tap_bail("DEV_QUERY of the counters");
	return info;
}

/* Returns 0 and sets the number, or returns -errno. */
static int read_file(const char *path, uint64_t *value)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	*value = strtoull(text, NULL, 10);
	return got > 0 ? 0 : -EIO;
}

static int read_attribute(const char *name, uint64_t *value)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return read_file(path, value);
}

static bool is_paranoid(void)
{
	char text[8] = "";
	FILE *f = fopen("/sys/module/spyre_vdev/parameters/counters_paranoid", "re");

	tap_ok(f && fgets(text, sizeof(text), f), "the module has counters_paranoid");
	if (f)
		fclose(f);
	return text[0] != 'N';
}

static void find_folder(void)
{
	char node[64], device[64];

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		tap_skip_all("no accel node of spyre_vdev");
	snprintf(folder, sizeof(folder), "/sys/bus/platform/devices/%s", device);
}

/* Runs work in a context that is invisible to the others. */
static void work(int fd)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct abi_buf mem = abi_buf(fd, MIB, DRM_SPYRE_BO_DEVICE, VA);
	struct drm_spyre_cb cb = abi_cb_fill32(VA, MIB, 1);

	tap_ret(abi_run(&q, &cb, 1), 0, "a context writes 1 MiB");
	abi_buf_free(fd, &mem);
	abi_queue_free(&q);
}

/* As a plain user: the file of another context shows none of @fd's work, or all of it. */
static void test_query(int fd, int mine, bool paranoid)
{
	struct drm_spyre_counters before = counters(mine), after;

	work(fd);
	after = counters(mine);
	if (paranoid) {
		tap_ok(after.jobs == before.jobs && after.bytes_written == before.bytes_written &&
		       after.cycles == before.cycles && after.busy_ns == before.busy_ns,
		       "query: another context's counters do not change");
		tap_ok(!after.jobs && !after.busy_ns,
		       "query: they count only that context's work, which is 0");
	} else {
		tap_ok(after.jobs > before.jobs &&
		       after.bytes_written >= before.bytes_written + MIB,
		       "query: counters of other contexts include all work");
	}
	after = counters(fd);
	tap_ok(after.jobs >= 1 && after.bytes_written >= MIB && after.busy_ns,
	       "query: the context that worked has its counters");
	tap_ok(after.power_mw && after.timestamp_ns, "query: power and time are those of the card");
}

static void test_sysfs(bool paranoid)
{
	uint64_t value;
	char path[PATH_MAX + 64];
	uint32_t i;
	glob_t found;

	for (i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
		tap_ret(read_attribute(exact[i], &value), paranoid ? -EACCES : 0,
			"sysfs: %s, read by an unprivileged user", exact[i]);
	tap_ret(read_attribute("busy_ns", &value), 0, "sysfs: busy_ns is readable by all users");
	if (paranoid)
		tap_eq(value % LOAD_NS, 0, "sysfs: busy_ns is rounded to 10 ms");
	tap_ret(read_attribute("lpddr_used", &value), 0,
		"sysfs: lpddr_used is readable by all users");
	tap_ret(read_attribute("power_mw", &value), 0, "sysfs: power_mw is readable by all users");
	snprintf(path, sizeof(path), "%s/hwmon/hwmon*/energy1_input", folder);
	if (!glob(path, 0, NULL, &found)) {
		tap_ret(read_file(found.gl_pathv[0], &value), paranoid ? -EACCES : 0,
			"hwmon: energy1_input, read by an unprivileged user");
		globfree(&found);
	}
}

static void test_root(int fd)
{
	struct drm_spyre_counters before = counters(fd), after;
	uint64_t value;
	uint32_t i;
	int other = user_open(USER_A);

	work(other);
	after = counters(fd);
	tap_ok(after.jobs > before.jobs && after.bytes_written >= before.bytes_written + MIB,
	       "root: counters include all work");
	for (i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
		tap_ret(read_attribute(exact[i], &value), 0, "root: reads %s", exact[i]);
	close(other);
}

int main(void)
{
	bool paranoid;
	int fd = abi_open(), mine;

	find_folder();
	paranoid = is_paranoid();
	if (user_is_root()) {
		test_root(fd);
		user_be(USER_B);
	}
	mine = abi_open();
	test_query(fd, mine, paranoid);
	test_sysfs(paranoid);
	return tap_done();
}
