/* SPDX-License-Identifier: MIT */
/* Kernel cards and their processes, read from a fake sysfs and procfs. */
#include "config.h"
#include "suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <spyre/telemetry.h>

#include "libspyre/backend/backend.h"
#include "tests/unit/fake_cards.h"

static char pages[64];
static spyre_telemetry_card cards[8];
static spyre_telemetry_process processes[8];

static void setup(void)
{
	fake_begin();
	snprintf(pages, sizeof(pages), "%s/pages", fake_root());
	setenv("SPYRE_TELEMETRY_DIR", pages, 1);
	fake_file("/proc/uptime", "1\n");
}

static int read_cards(void)
{
	int count = -1;

	ck_assert_int_eq(spyre_telemetry_cards(cards, sizeof(cards[0]), 8, &count), SPYRE_SUCCESS);
	return count;
}

static int read_processes(void)
{
	int count = -1;

	ck_assert_int_eq(spyre_telemetry_processes(processes, sizeof(processes[0]), 8, &count),
			 SPYRE_SUCCESS);
	return count;
}

START_TEST(no_accel_class)
{
	int count = -1;

	ck_assert_int_eq(spyre_backend_drm.count(&count), SPYRE_SUCCESS);
	ck_assert_int_eq(count, 0);
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(read_processes(), 0);
}
END_TEST

START_TEST(cards_in_order_of_index)
{
	spyre_device_properties p = { .struct_size = sizeof(p) };
	char node[96];
	int count;

	fake_stranger(0);
	fake_card(1, 1, "/dev/null");
	fake_card(2, 0, "/dev/zero");
	fake_file("/sys/class/accel/accelx/device/card_index", "0\n");
	ck_assert_int_eq(spyre_backend_drm.count(&count), SPYRE_SUCCESS);
	ck_assert_int_eq(count, 2);
	ck_assert_int_eq(spyre_backend_drm.properties(0, &p), SPYRE_SUCCESS);
	snprintf(node, sizeof(node), "%s/dev/accel/accel2", fake_root());
	ck_assert_str_eq(p.node, node);
	ck_assert_str_eq(p.bus_id, "spyre_vdev.0");
	ck_assert_str_eq(p.uuid, "0b5a9c3e-0000-4000-8000-000000000000");
	ck_assert_str_eq(p.unit, "avx2");
	ck_assert_uint_eq(p.num_cores, 32);
	ck_assert_uint_eq(p.memory_bytes, 16ull << 30);
	ck_assert_int_eq(p.backend, SPYRE_BACKEND_DRM);
	ck_assert_int_eq(spyre_backend_drm.properties(1, &p), SPYRE_SUCCESS);
	ck_assert_str_eq(p.bus_id, "spyre_vdev.1");
	ck_assert_int_eq(spyre_backend_drm.properties(2, &p), SPYRE_ERROR_NO_DEVICE);
	ck_assert_int_eq(spyre_backend_drm.properties(-1, &p), SPYRE_ERROR_NO_DEVICE);
}
END_TEST

/* Checks the bus ids, in order, that the library shows for a value of FLEX_DEVICE. */
static void shows(const char *flex, const char *expected)
{
	spyre_device_properties p = { .struct_size = sizeof(p) };
	char list[256] = "";
	int count, i;

	if (flex)
		setenv("FLEX_DEVICE", flex, 1);
	else
		unsetenv("FLEX_DEVICE");
	ck_assert_int_eq(spyre_device_count(&count), SPYRE_SUCCESS);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(spyre_device_get_properties(i, &p), SPYRE_SUCCESS);
		strcat(strcat(list, *list ? " " : ""), p.bus_id);
	}
	ck_assert_str_eq(list, expected);
}

START_TEST(functions_of_cards)
{
	int count;

	unsetenv("SPYRE_BACKEND");
	fake_card(0, 0, "/dev/null");
	fake_card(5, 1, "/dev/zero");
	shows("PF", "spyre_vdev.0 spyre_vdev.1");
	ck_assert_int_eq(spyre_device_count(&count), SPYRE_SUCCESS);
	setenv("FLEX_DEVICE", "VF", 1);
	ck_assert_int_eq(spyre_device_count(&count), SPYRE_ERROR_NO_DRIVER);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "num_vfs"));

	fake_split(0, 2);
	fake_vf(3, 0, 2);
	fake_vf(4, 0, 1);
	shows("PF", "spyre_vdev.1");
	shows("VF", "spyre_vdev_vf.0 spyre_vdev_vf.1");
	shows(NULL, "spyre_vdev_vf.0 spyre_vdev_vf.1 spyre_vdev.1");
	setenv("SPYRE_DEVICES", "0,2,3", 1);
	shows(NULL, "spyre_vdev_vf.1 spyre_vdev.1");
	unsetenv("SPYRE_DEVICES");
	setenv("AIU_WORLD_SIZE", "2", 1);
	shows(NULL, "spyre_vdev_vf.0 spyre_vdev_vf.1");
	unsetenv("AIU_WORLD_SIZE");

	/* Telemetry shows all of them, the card first. */
	ck_assert_int_eq(read_cards(), 4);
	ck_assert_str_eq(cards[0].properties.name, "Virtual Spyre (2 VFs)");
	ck_assert_str_eq(cards[1].properties.name, "Virtual Spyre VF 1");
	ck_assert_str_eq(cards[2].properties.name, "Virtual Spyre VF 2");
	ck_assert_str_eq(cards[3].properties.name, "Virtual Spyre");
	fake_split(1, 1);
	setenv("FLEX_DEVICE", "PF", 1);
	ck_assert_int_eq(spyre_device_count(&count), SPYRE_ERROR_NO_DRIVER);
	unsetenv("FLEX_DEVICE");
}
END_TEST

START_TEST(readings)
{
	fake_card(0, 0, "/dev/null");
	fake_file("/sys/module/spyre_vdev/version", "0.1.0\n");
	ck_assert_int_eq(read_cards(), 1);
	ck_assert_int_eq(cards[0].host_pid, 0);
	ck_assert_uint_eq(cards[0].memory_total, 16ull << 30);
	ck_assert_uint_eq(cards[0].memory_used, 3ull << 30);
	ck_assert_uint_eq(cards[0].jobs, 77);
	ck_assert_uint_eq(cards[0].errors, 2);
	ck_assert_uint_eq(cards[0].macs, 18446744073709551614ull);
	ck_assert_uint_eq(cards[0].rdma_read, 3 << 20);
	ck_assert_uint_eq(cards[0].rdma_written, 4 << 20);
	ck_assert_uint_eq(cards[0].pcie_rx_bytes, 5 << 20);
	ck_assert_uint_eq(cards[0].pcie_tx_bytes, 6 << 20);
	ck_assert_uint_eq(cards[0].pt_cycles, 1001);
	ck_assert_uint_eq(cards[0].sfu_cycles, 1002);
	ck_assert_uint_eq(cards[0].dma_cycles, 1003);
	ck_assert_uint_eq(cards[0].launches, 41);
	ck_assert_uint_eq(cards[0].copies, 42);
	ck_assert_uint_eq(cards[0].memory_peak, 4ull << 30);
	ck_assert_uint_eq(cards[0].energy_mj, 123456);
	ck_assert_uint_eq(cards[0].faults_timeout, 1);
	ck_assert_uint_eq(cards[0].faults_access, 2);
	ck_assert_uint_eq(cards[0].faults_escape, 3);
	ck_assert_uint_eq(cards[0].faults_compute, 4);
	ck_assert_uint_eq(cards[0].power_mw, 31250);
	ck_assert_uint_eq(cards[0].temperature_mc, 41500);
	ck_assert_uint_eq(cards[0].generation, 0);
	ck_assert_str_eq(cards[0].driver_version, "0.1.0");
	/* busy_ns of the fake tree does not change. */
	ck_assert_uint_eq(cards[0].utilization, 0);
}
END_TEST

START_TEST(missing_or_odd_attributes)
{
	fake_card(0, 0, "/dev/null");
	fake_remove("/sys/devices/platform/spyre_vdev.0/power_mw");
	fake_remove("/sys/devices/platform/spyre_vdev.0/busy_ns");
	fake_file("/sys/devices/platform/spyre_vdev.0/jobs", "many\n");
	fake_file("/sys/devices/platform/spyre_vdev.0/errors", "-1\n");
	fake_file("/sys/devices/platform/spyre_vdev.0/cycles", "99999999999999999999999\n");
	fake_file("/sys/devices/platform/spyre_vdev.0/num_cores", "99999999999\n");
	ck_assert_int_eq(read_cards(), 1);
	ck_assert_uint_eq(cards[0].power_mw, UINT32_MAX);
	ck_assert_uint_eq(cards[0].busy_ns, UINT64_MAX);
	ck_assert_uint_eq(cards[0].utilization, UINT32_MAX);
	ck_assert_uint_eq(cards[0].jobs, UINT64_MAX);
	ck_assert_uint_eq(cards[0].errors, UINT64_MAX);
	ck_assert_uint_eq(cards[0].cycles, UINT64_MAX);
	ck_assert_uint_eq(cards[0].properties.num_cores, 0);
	ck_assert_str_eq(cards[0].driver_version, "");
}
END_TEST

START_TEST(processes_of_nodes)
{
	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	fake_open_node(100, "python3", 5, "/dev/null", 7, 1024);
	fake_open_node(100, "python3", 6, "/dev/null", 8, 2048);	/* a second client */
	fake_open_node(100, "python3", 9, "/dev/null", 7, 1024);	/* dup of fd 5 */
	fake_open_node(200, "evil\033[2Jname", 3, "/dev/zero", 9, 4);
	fake_open_node(300, "stranger", 3, "/dev/full", 10, 4);
	fake_file("/proc/300/fdinfo/3", "pos:\t0\n");
	ck_assert_int_eq(read_processes(), 2);
	ck_assert_int_eq(processes[0].card, 0);
	ck_assert_int_eq(processes[0].pid, 100);
	ck_assert_uint_eq(processes[0].uid, getuid());
	ck_assert_str_eq(processes[0].name, "python3");
	ck_assert_uint_eq(processes[0].memory_used, 3072 * 1024);
	ck_assert_uint_eq(processes[0].busy_ns, 15000);
	ck_assert_int_eq(processes[1].card, 1);
	ck_assert_int_eq(processes[1].pid, 200);
	ck_assert_str_eq(processes[1].name, "evil?[2Jname");
	ck_assert_uint_eq(processes[1].memory_used, 4096);
}
END_TEST

/* A process has the sums of its contexts; one without a key makes its sum unknown. */
START_TEST(counters_of_processes)
{
	fake_card(0, 0, "/dev/null");
	fake_open_node(100, "two", 5, "/dev/null", 7, 1024);
	fake_open_node(100, "two", 6, "/dev/null", 8, 1024);
	fake_file("/proc/100/fdinfo/5", "drm-driver:\tspyre_vdev\ndrm-client-id:\t7\n"
		  "spyre-launches:\t5\nspyre-pcie-rx:\t4097\nspyre-copies:\t18446744073709551615\n"
		  "spyre-peak-lpddr5:\t12 KiB\nspyre-resets:\t2\nspyre-jobs:\t1\n");
	fake_file("/proc/100/fdinfo/6", "drm-driver:\tspyre_vdev\ndrm-client-id:\t8\n"
		  "spyre-launches:\t6\nspyre-pcie-rx:\t1\nspyre-copies:\t1\n"
		  "spyre-peak-lpddr5:\t4 KiB\nspyre-resets:\t1\n");
	ck_assert_int_eq(read_processes(), 1);
	ck_assert_uint_eq(processes[0].launches, 11);
	ck_assert_uint_eq(processes[0].pcie_rx_bytes, 4098);
	ck_assert_uint_eq(processes[0].copies, UINT64_MAX);
	ck_assert_uint_eq(processes[0].memory_peak, 16384);
	ck_assert_uint_eq(processes[0].resets, 3);
	ck_assert_uint_eq(processes[0].jobs, UINT64_MAX);
}
END_TEST

START_TEST(client_of_two_processes_counts_once)
{
	int count;

	fake_card(0, 0, "/dev/null");
	fake_open_node(100, "parent", 5, "/dev/null", 7, 1024);
	fake_open_node(101, "child", 5, "/dev/null", 7, 1024);
	count = read_processes();
	ck_assert_int_eq(count, 1);
	ck_assert_uint_eq(processes[0].memory_used, 1024 * 1024);
}
END_TEST

START_TEST(node_without_figures)
{
	fake_card(0, 0, "/dev/null");
	fake_open_node(100, "old", 5, "/dev/null", 7, 1024);
	fake_file("/proc/100/fdinfo/5", "drm-driver:\tspyre_vdev\ndrm-client-id:\t1\n");
	ck_assert_int_eq(read_processes(), 1);
	ck_assert_uint_eq(processes[0].memory_used, UINT64_MAX);
	ck_assert_uint_eq(processes[0].busy_ns, UINT64_MAX);
	ck_assert_uint_eq(processes[0].launches, UINT64_MAX);
	ck_assert_uint_eq(processes[0].resets, UINT64_MAX);
}
END_TEST

START_TEST(node_that_cannot_be_opened)
{
	struct spyre_card *card;

	fake_card(0, 0, "/dev/null");
	ck_assert_int_eq(spyre_backend_drm.open(1, &card), SPYRE_ERROR_NO_DEVICE);
	/* The node does not exist. */
	ck_assert_int_eq(spyre_backend_drm.open(0, &card), SPYRE_ERROR_NO_DEVICE);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "/dev/accel/accel0"));
	/* The node is a different device. */
	fake_link("/dev/accel/accel0", "/dev/null");
	ck_assert_int_eq(spyre_backend_drm.open(0, &card), SPYRE_ERROR_ABI_MISMATCH);
	fake_remove("/dev/accel/accel0");
	if (!geteuid())
		return;		/* root may open anything */
	fake_file("/dev/accel/accel0", "x");
	{
		char path[128];

		snprintf(path, sizeof(path), "%s/dev/accel/accel0", fake_root());
		ck_assert_int_eq(chmod(path, 0), 0);
	}
	ck_assert_int_eq(spyre_backend_drm.open(0, &card), SPYRE_ERROR_NO_PERMISSION);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "render"));
}
END_TEST

static spyre_peer_path path_of(int a, int b)
{
	spyre_peer_path path;

	ck_assert_int_eq(spyre_telemetry_peer_path(&cards[a], &cards[b], &path), SPYRE_SUCCESS);
	return path;
}

/* Cards 0 and 3 share a switch, 4 has another one; 3 has two functions. */
static void cards_of_two_switches(void)
{
	setenv("SPYRE_BACKEND", "drm", 1);
	fake_card(0, 0, "/dev/null");
	fake_card(1, 3, "/dev/zero");
	fake_card(2, 4, "/dev/full");
	fake_split(3, 2);
	fake_vf(3, 3, 1);
	fake_vf(4, 3, 2);
	fake_file("/sys/devices/platform/spyre_vdev_vf.48/rdma_read", "0\n");
	fake_file("/sys/devices/platform/spyre_vdev_vf.49/rdma_read", "0\n");
}

START_TEST(links)
{
	spyre_peer_path path;

	cards_of_two_switches();
	ck_assert_int_eq(read_cards(), 5);
	ck_assert_int_eq(cards[2].physical_card, 3);
	ck_assert_int_eq(path_of(0, 0), SPYRE_PEER_SAME_CARD);
	ck_assert_int_eq(path_of(0, 1), SPYRE_PEER_SWITCH);
	ck_assert_int_eq(path_of(3, 0), SPYRE_PEER_SWITCH);
	ck_assert_int_eq(path_of(2, 3), SPYRE_PEER_SAME_CARD);
	ck_assert_int_eq(path_of(4, 3), SPYRE_PEER_HOST);
	/* Programs see the functions of card 3, and not the card. */
	ck_assert_int_eq(spyre_device_get_peer_path(1, 2, &path), SPYRE_SUCCESS);
	ck_assert_int_eq(path, SPYRE_PEER_SAME_CARD);
	ck_assert_int_eq(spyre_device_get_peer_path(0, 2, &path), SPYRE_SUCCESS);
	ck_assert_int_eq(path, SPYRE_PEER_SWITCH);
	ck_assert_int_eq(spyre_device_get_peer_path(3, 2, &path), SPYRE_SUCCESS);
	ck_assert_int_eq(path, SPYRE_PEER_HOST);
}
END_TEST

/* A module older than interface 1.4 has no counters of copies between cards. */
START_TEST(links_of_an_old_module)
{
	spyre_peer_path path;

	setenv("SPYRE_BACKEND", "drm", 1);
	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	fake_remove("/sys/devices/platform/spyre_vdev.1/rdma_read");
	ck_assert_int_eq(read_cards(), 2);
	ck_assert_int_eq(path_of(0, 1), SPYRE_PEER_NONE);
	ck_assert_int_eq(path_of(1, 1), SPYRE_PEER_SAME_CARD);
	ck_assert_int_eq(spyre_device_get_peer_path(0, 1, &path), SPYRE_SUCCESS);
	ck_assert_int_eq(path, SPYRE_PEER_NONE);
}
END_TEST

START_TEST(processors_near_a_card)
{
	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	fake_file("/sys/devices/platform/spyre_vdev.1/numa_node", "1\n");
	fake_file("/sys/devices/system/node/node1/cpulist", "8-15,24-31\n");
	ck_assert_int_eq(read_cards(), 2);
	ck_assert_str_eq(cards[0].cpu_list, "");
	ck_assert_str_eq(cards[0].numa_list, "");
	ck_assert_str_eq(cards[1].cpu_list, "8-15,24-31");
	ck_assert_str_eq(cards[1].numa_list, "1");
	/* The kernel's text for a device without a node. */
	fake_file("/sys/devices/platform/spyre_vdev.1/numa_node", "-1\n");
	ck_assert_int_eq(read_cards(), 2);
	ck_assert_str_eq(cards[1].numa_list, "");
}
END_TEST

START_TEST(bad_arguments)
{
	spyre_telemetry_card older = { .struct_size = sizeof(older) - 8 };
	spyre_peer_path path;

	int count;

	ck_assert_int_eq(spyre_telemetry_cards(cards, sizeof(cards[0]), 8, NULL),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_cards(NULL, sizeof(cards[0]), 8, &count),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_cards(cards, sizeof(cards[0]) - 1, 8, &count),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_cards(cards, sizeof(cards[0]), -1, &count),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_processes(NULL, 0, 1, &count),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	fake_card(0, 0, "/dev/null");
	ck_assert_int_eq(read_cards(), 1);
	ck_assert_int_eq(spyre_telemetry_peer_path(cards, cards, NULL),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_peer_path(cards, NULL, &path),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_peer_path(&older, cards, &path),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "struct_size"));
}
END_TEST

START_TEST(short_array_and_wide_stride)
{
	static struct {
		spyre_telemetry_card card;
		char more[40];
	} wide[2];
	int count;

	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	memset(wide, 0x5a, sizeof(wide));
	ck_assert_int_eq(spyre_telemetry_cards(&wide[0].card, sizeof(wide[0]), 1, &count),
			 SPYRE_SUCCESS);
	ck_assert_int_eq(count, 2);
	ck_assert_str_eq(wide[0].card.properties.bus_id, "spyre_vdev.0");
	ck_assert_uint_eq((unsigned char)wide[0].more[0], 0x5a);
	ck_assert_uint_eq(((unsigned char *)&wide[1])[0], 0x5a);
	ck_assert_int_eq(spyre_telemetry_cards(&wide[0].card, sizeof(wide[0]), 2, &count),
			 SPYRE_SUCCESS);
	ck_assert_str_eq(wide[1].card.properties.bus_id, "spyre_vdev.1");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("telemetry_kernel");
	TCase *tcase = tcase_create("kernel");

	tcase_add_checked_fixture(tcase, setup, fake_end);
	tcase_add_test(tcase, no_accel_class);
	tcase_add_test(tcase, cards_in_order_of_index);
	tcase_add_test(tcase, functions_of_cards);
	tcase_add_test(tcase, readings);
	tcase_add_test(tcase, missing_or_odd_attributes);
	tcase_add_test(tcase, processes_of_nodes);
	tcase_add_test(tcase, counters_of_processes);
	tcase_add_test(tcase, client_of_two_processes_counts_once);
	tcase_add_test(tcase, node_without_figures);
	tcase_add_test(tcase, node_that_cannot_be_opened);
	tcase_add_test(tcase, links);
	tcase_add_test(tcase, links_of_an_old_module);
	tcase_add_test(tcase, processors_near_a_card);
	tcase_add_test(tcase, bad_arguments);
	tcase_add_test(tcase, short_array_and_wide_stride);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
