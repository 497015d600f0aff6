/* SPDX-License-Identifier: MIT */
/* Each VF has its share, isolated from the others. */
#include "vf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every VF has an identity; together they add up to the card. */
static void test_sums(const char *count)
{
	int pf = vf_open(&vf_pf), fd, n, i, j;
	struct drm_spyre_card_info card, info[VF_MAX];
	uint64_t cores = 0, bytes = 0;
	struct vf_device vf[VF_MAX];

	tap_ret(vf_set(count), 0, "num_vfs=%s", count);
	card = vf_card(pf);
	n = vf_list(vf);
	tap_eq(card.num_vfs, n, "%s VFs: number of nodes", count);
	tap_eq(card.vf, 0, "%s VFs: the PF is function 0", count);
	for (i = 0; i < n; i++) {
		fd = vf_open(&vf[i]);
		info[i] = vf_card(fd);
		cores += info[i].num_cores;
		bytes += info[i].lpddr_bytes;
		tap_ok(info[i].vf == (uint32_t)i + 1 && info[i].index == card.index &&
		       info[i].num_vfs == 0, "%s VFs: %s is VF %d of card %u", count, vf[i].name,
		       i + 1, card.index);
		tap_ok(vf_read(vf[i].name, "num_cores") == info[i].num_cores &&
		       vf_read(vf[i].name, "lpddr_total") == info[i].lpddr_bytes &&
		       vf_read(vf[i].name, "vf") == info[i].vf &&
		       vf_read(vf[i].name, "physfn/card_index") == card.index &&
		       vf_read(vf[i].name, "physfn/num_vfs") == (uint64_t)n,
		       "%s VFs: sysfs of VF %d agrees", count, i + 1);
		tap_ok(info[i].lpddr_bytes >= 16 * MIB && info[i].num_cores >= 1 &&
		       info[i].num_cores <= info[0].num_cores &&
		       info[i].num_cores + 1 >= info[0].num_cores, "%s VFs: VF %d has its share",
		       count, i + 1);
		tap_eq(vf_read(vf[i].name, "num_vfs"), ~0ull, "%s VFs: VF %d is not split", count,
		       i + 1);
		for (j = 0; j < i; j++)
			if (!memcmp(info[j].uuid, info[i].uuid, sizeof(card.uuid)))
				break;
		tap_ok(j == i && memcmp(card.uuid, info[i].uuid, sizeof(card.uuid)),
		       "%s VFs: VF %d has a distinct uuid", count, i + 1);
		close(fd);
	}
	tap_eq(cores, card.num_cores, "%s VFs: the cores add up to the card's", count);
	tap_eq(bytes, card.lpddr_bytes, "%s VFs: the memory adds up to the card's", count);
	tap_ret(vf_set("0"), 0, "%s VFs: num_vfs=0", count);
	tap_eq(vf_list(vf), 0, "%s VFs: their nodes are removed", count);
	close(pf);
}

/* One VF uses all of its memory: the other is not affected, the PF counts it. */
static void test_memory(int pf, int one, int two)
{
	uint64_t total = abi_memory(one).total, size = total;
	struct drm_spyre_memory_info info;
	uint32_t all, more, handle;

	tap_ret(abi_bo(one, size, DRM_SPYRE_BO_DEVICE, &all), 0, "VF 1 allocates all its %llu MiB",
		(unsigned long long)(size / MIB));
	tap_ret(abi_bo(one, PAGE, DRM_SPYRE_BO_DEVICE, &more), -ENOSPC, "VF 1: a page more");
	info = abi_memory(two);
	tap_ok(!info.used && info.free == info.total, "VF 2 still has all of its memory");
	tap_ret(abi_bo(two, PAGE, DRM_SPYRE_BO_DEVICE, &handle), 0,
		"VF 2 allocates all of its memory");
	info = abi_memory(pf);
	tap_ok(info.used == size + PAGE && info.free + info.used == info.total,
	       "DEV_QUERY of the PF shows the memory of both");
	tap_eq(vf_read(vf_pf.name,
	       "lpddr_used"), size + PAGE, "sysfs of the PF shows the memory of both");
	abi_gem_close(two, handle);
	tap_ok(!abi_mmap(two, all, PAGE), "a handle of VF 1 is unknown on VF 2");
	tap_ret(abi_bind(two, all, 0, VF_DATA, PAGE, 0), -ENOENT,
		"a handle of VF 1 cannot be bound on VF 2");
	abi_gem_close(one, all);
	tap_ok(abi_memory_settles(pf, 0), "all memory is back");
}

/* A program may use at most the cores of its VF. */
static void test_cores(int fd)
{
	uint32_t cores = vf_card(fd).num_cores;
	struct drm_spyre_program_create args;
	struct abi_prog p = abi_prog_add(cores + 1, 1);
	uint64_t size;
	void *image = abi_prog_encode(&p, &size);

	tap_ret(abi_prog_load(fd, image, size, &args), -EINVAL, "a program for %u of %u cores",
		cores + 1, cores);
	free(image);
	p = abi_prog_add(cores, 1);
	tap_ret(abi_prog_destroy(fd, abi_prog_create(fd, &p)), 0,
		"a program for all %u cores", cores);
}

static void test_results(int fd, const uint8_t *expected, const char *what)
{
	uint8_t got[VF_ADD_BYTES];

	if (tap_ret(vf_run_add(fd, got), 0, "%s: a program adds", what))
		tap_ok(!memcmp(got, expected, sizeof(got)), "%s: the same bytes as the whole card",
		       what);
}

/* One VF has work for hours; jobs of the other take as long as if alone. */
static void test_saturated(int one, int two, const uint8_t *expected)
{
	uint64_t busy = vf_read(vf_pf.name, "busy_ns"), start = abi_now_ns();
	struct drm_spyre_counters other = { 0 };
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_COUNTERS,
					     .size = sizeof(other), .pointer = PTR(&other) };
	uint8_t got[VF_ADD_BYTES];
	struct abi_queue q;
	struct abi_buf mem;
	int i, right = 0;

	abi_ioctl(two, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	tap_ok(other.power_mw && other.temperature_mc, "VF 2 models %u mW at rest",
	       other.power_mw);
	vf_saturate(one, &q, &mem);
	for (i = 0; i < 20; i++)
		right += !vf_run_add(two, got) && !memcmp(got, expected, sizeof(got));
	tap_eq(right, 20, "VF 1 has work for hours: 20 jobs of VF 2 are done and right");
	tap_ok(vf_read(vf_pf.name, "busy_ns") > busy, "the PF's busy_ns counts VF 1's time");
	tap_ok(vf_read(vf_pf.name, "busy_ns") - busy <= abi_now_ns() - start,
	       "the PF's busy_ns weights it by its share of the card");
	abi_queue_free(&q);
	abi_buf_free(one, &mem);
}

void vf_test_share(void)
{
	uint8_t expected[VF_ADD_BYTES];
	struct vf_device vf[VF_MAX];
	int pf = vf_open(&vf_pf), one, two;
	char total[32];

	test_sums("1");
	test_sums("3");
	snprintf(total, sizeof(total), "%llu",
		 (unsigned long long)vf_read(vf_pf.name, "total_vfs"));
	test_sums(total);

	tap_ret(vf_run_add(pf, expected), 0, "the whole card: a program adds");
	tap_ret(vf_set("2"), 0, "num_vfs=2");
	if (!tap_eq(vf_list(vf), 2, "two nodes"))
		tap_bail("without VFs there is nothing to test");
	one = vf_open(&vf[0]);
	two = vf_open(&vf[1]);
	test_memory(pf, one, two);
	test_cores(two);
	test_results(one, expected, "VF 1");
	test_results(two, expected, "VF 2");
	test_saturated(one, two, expected);
	close(one);
	close(two);
	close(pf);
	tap_ret(vf_set("0"), 0, "num_vfs=0");
}
