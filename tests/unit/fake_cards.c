/* SPDX-License-Identifier: MIT */
/* A tree that looks like /sys and /proc of a machine with cards. */
#include "config.h"

#include <check.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/unit/fake_cards.h"

static char root[64];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void fake_begin(void)
{
	snprintf(root, sizeof(root), "/tmp/spyre-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(setenv("SPYRE_FSROOT", root, 1), 0);
}

void fake_end(void)
{
	unsetenv("SPYRE_FSROOT");
	remove_tree(root);
}

const char *fake_root(void)
{
	return root;
}

static void full_path(const char *path, char *full, size_t size)
{
	char *slash;

	snprintf(full, size, "%s%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
}

void fake_file(const char *path, const char *format, ...)
{
	char full[256];
	va_list args;
	FILE *file;

	full_path(path, full, sizeof(full));
	file = fopen(full, "w");
	ck_assert_msg(file != NULL, "cannot write %s", full);
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	ck_assert_int_eq(fclose(file), 0);
}

void fake_link(const char *path, const char *target)
{
	char full[256];

	full_path(path, full, sizeof(full));
	unlink(full);
	ck_assert_int_eq(symlink(target, full), 0);
}

void fake_remove(const char *path)
{
	char full[256];

	full_path(path, full, sizeof(full));
	remove_tree(full);
}

static void attribute(int card_index, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void attribute(int card_index, const char *name, const char *format, ...)
{
	char path[128], value[64];
	va_list args;

	snprintf(path, sizeof(path), "/sys/devices/platform/spyre_vdev.%d/%s", card_index, name);
	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	fake_file(path, "%s\n", value);
}

static void accel(int minor, const char *name, int index, const char *driver)
{
	char path[128], target[128];

	snprintf(path, sizeof(path), "/sys/devices/platform/%s.%d/driver", name, index);
	snprintf(target, sizeof(target), "../../../bus/platform/drivers/%s", driver);
	fake_link(path, target);
	snprintf(path, sizeof(path), "/sys/class/accel/accel%d/device", minor);
	snprintf(target, sizeof(target), "../../../devices/platform/%s.%d", name, index);
	fake_link(path, target);
}

void fake_card(int minor, int card_index, const char *device)
{
	char path[128];
	struct stat st;

	accel(minor, "spyre_vdev", card_index, "spyre_vdev");
	ck_assert_int_eq(stat(device, &st), 0);
	snprintf(path, sizeof(path), "/sys/class/accel/accel%d/dev", minor);
	fake_file(path, "%u:%u\n", major(st.st_rdev), minor(st.st_rdev));
	attribute(card_index, "card_index", "%d", card_index);
	attribute(card_index, "num_cores", "%d", 32);
	attribute(card_index, "lx_bytes", "%d", 2 << 20);
	attribute(card_index, "stick_bytes", "%d", 128);
	attribute(card_index, "clock_khz", "%d", 1500000);
	attribute(card_index, "lpddr_total", "%llu", 16ull << 30);
	attribute(card_index, "lpddr_used", "%llu", 3ull << 30);
	attribute(card_index, "busy_ns", "%d", 5000000);
	attribute(card_index, "jobs", "%d", 77);
	attribute(card_index, "errors", "%d", 2);
	attribute(card_index, "cycles", "%llu", 123456789012345ull);
	attribute(card_index, "macs", "%llu", 18446744073709551614ull);
	attribute(card_index, "bytes_read", "%d", 1 << 20);
	attribute(card_index, "bytes_written", "%d", 2 << 20);
	attribute(card_index, "rdma_read", "%d", 3 << 20);
	attribute(card_index, "rdma_written", "%d", 4 << 20);
	attribute(card_index, "pcie_rx_bytes", "%d", 5 << 20);
	attribute(card_index, "pcie_tx_bytes", "%d", 6 << 20);
	attribute(card_index, "pt_cycles", "%d", 1001);
	attribute(card_index, "sfu_cycles", "%d", 1002);
	attribute(card_index, "dma_cycles", "%d", 1003);
	attribute(card_index, "launches", "%d", 41);
	attribute(card_index, "copies", "%d", 42);
	attribute(card_index, "lpddr_peak", "%llu", 4ull << 30);
	attribute(card_index, "energy_mj", "%d", 123456);
	attribute(card_index, "faults_timeout", "%d", 1);
	attribute(card_index, "faults_access", "%d", 2);
	attribute(card_index, "faults_escape", "%d", 3);
	attribute(card_index, "faults_compute", "%d", 4);
	attribute(card_index, "power_mw", "%d", 31250);
	attribute(card_index, "temperature_mc", "%d", 41500);
	attribute(card_index, "generation", "%d", 0);
	attribute(card_index, "uuid", "0b5a9c3e-0000-4000-8000-00000000000%d", card_index);
	attribute(card_index, "unit", "avx2");
}

void fake_split(int card_index, int num_vfs)
{
	attribute(card_index, "vf", "0");
	attribute(card_index, "num_vfs", "%d", num_vfs);
}

void fake_vf(int minor, int card_index, int vf)
{
	const int id = 16 * card_index + vf - 1;
	char path[128];

	accel(minor, "spyre_vdev_vf", id, "spyre_vdev");
	snprintf(path, sizeof(path), "/sys/devices/platform/spyre_vdev_vf.%d/card_index", id);
	fake_file(path, "%d\n", card_index);
	snprintf(path, sizeof(path), "/sys/devices/platform/spyre_vdev_vf.%d/vf", id);
	fake_file(path, "%d\n", vf);
}

void fake_stranger(int minor)
{
	accel(minor, "ivpu", minor, "intel_vpu");
}

void fake_open_node(int pid, const char *comm, int fd, const char *device, int client,
		    unsigned long kib)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fake_file(path, "%s\n", comm);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	fake_link(path, device);
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	fake_file(path,
		  "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t5\ndrm-driver:\tspyre_vdev\n"
		  "drm-client-id:\t%d\ndrm-engine-spyre:\t%d ns\n"
		  "drm-total-lpddr5:\t%lu KiB\ndrm-shared-lpddr5:\t0\n", client, client * 1000, kib);
}
