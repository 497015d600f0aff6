/* SPDX-License-Identifier: MIT */
/*
 * Memory cgroups: the limit of a buffer's creator holds, no matter which process
 * touches it first, and reaching it is an error of that call alone. Needs root, to
 * create cgroups.
 */
#define _GNU_SOURCE
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#include "memcg.h"
#include "memory.h"

#define BIG (256 * MIB)
#define SMALL (16 * MIB)
#define VA (1024 * MIB)

static char root[] = "/tmp/abi-memcg.XXXXXX";
static char group[64];
static bool mounted;

static int write_file(const char *folder, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return abi_write_file(path, text);
}

uint64_t memcg_number(const char *name)
{
	unsigned long long value = 0;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu", &value) != 1)
		tap_bail("%s", path);
	fclose(f);
	return value;
}

static uint64_t group_key(const char *name, const char *key)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	return memory_key(path, key);
}

uint64_t memcg_stat(const char *key)
{
	return group_key("memory.stat", key);
}

uint64_t memcg_kills(void)
{
	return group_key("memory.events", "oom_kill");
}

static void remove_group(void)
{
	rmdir(group);
	if (mounted)
		umount2(root, MNT_DETACH);
	rmdir(root);
}

static void make_group(void)
{
	char limit[32];

	if (geteuid())
		tap_skip_all("needs root, to make a cgroup");
	if (!mkdtemp(root))
		tap_bail("%s: %s", root, strerror(errno));
	mounted = !mount("none", root, "cgroup2", 0, NULL);
	snprintf(group, sizeof(group), "%s/spyre-owner", root);
	atexit(remove_group);
	if (!mounted || write_file(root, "cgroup.subtree_control", "+memory") || mkdir(group, 0755))
		tap_skip_all("cgroup v2 with a memory controller is not available");
	snprintf(limit, sizeof(limit), "%llu", MEMCG_LIMIT);
	if (write_file(group, "memory.max", limit))
		tap_skip_all("memory.max cannot be set");
	write_file(group, "memory.swap.max", "0");
}

void memcg_join(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (write_file(group, "cgroup.procs", pid))
		_exit(99);
}

/* The observations of the process in the group. */
struct report {
	int big_fill, small_fill;
	uint64_t touched;
	int after;
	bool done;
};

static sigjmp_buf out;

static void on_bus_error(int signal)
{
	siglongjmp(out, signal);
}

static void live_within_limit(struct report *report)
{
	struct sigaction act = { .sa_handler = on_bus_error };
	int fd = abi_open();
	struct abi_queue q = abi_queue(fd, 0);
	struct abi_buf big = abi_buf(fd, BIG, DRM_SPYRE_BO_DEVICE, VA);
	struct abi_buf more;
	struct drm_spyre_cb cb = abi_cb_fill32(VA, BIG, 1);
	volatile uint64_t i = 0;

	report->big_fill = abi_run(&q, &cb, 1);
	abi_unbind(fd, VA, BIG);
	abi_buf_free(fd, &big);

	more = abi_buf(fd, SMALL, DRM_SPYRE_BO_DEVICE, VA);
	cb = abi_cb_fill32(VA, SMALL, 2);
	report->small_fill = abi_run(&q, &cb, 1);
	if (!report->small_fill && ((uint32_t *)more.map)[SMALL / 4 - 1] != 2)
		report->small_fill = -EILSEQ;

	big = abi_buf(fd, BIG, DRM_SPYRE_BO_DEVICE, 0);
	sigaction(SIGBUS, &act, NULL);
	if (!sigsetjmp(out, 1))
		for (; i < BIG; i += PAGE)
			((volatile uint8_t *)big.map)[i] = 1;
	report->touched = i;
	abi_buf_free(fd, &big);
	report->after = abi_run(&q, &cb, 1);
	report->done = true;
}

static void test_limit(int fd, struct abi_queue *q, struct abi_buf *mine)
{
	struct report *report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct drm_spyre_cb cb = abi_cb_fill32(mine->va, mine->size, 0);
	uint64_t used = abi_memory(fd).used;
	uint32_t rounds = 0, failed = 0;
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		memcg_join();
		live_within_limit(report);
		_exit(0);
	}
	do {
		cb.pattern[0] = ++rounds;
		failed += abi_run(q, &cb, 1) != 0;
		failed += ((uint32_t *)mine->map)[mine->size / 4 - 1] != rounds;
	} while (!waitpid(pid, &status, WNOHANG));
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status) && report->done,
	       "limit: the process in the group exits normally");
	tap_ret(report->big_fill, -ENOMEM, "limit: SUBMIT that needs 256 of 64 MiB gives ENOMEM");
	tap_ret(report->small_fill, 0, "limit: a later SUBMIT that needs 16 MiB succeeds");
	tap_ok(report->touched < MEMCG_LIMIT, "limit: a mapping gives SIGBUS (after %llu KiB)",
	       (unsigned long long)report->touched >> 10);
	tap_ret(report->after, 0, "limit: new work completes");
	tap_eq(memcg_kills(), 0, "limit: no process was killed");
	tap_ok(!failed && rounds, "limit: work of another process succeeds, %u times", rounds);
	tap_ok(abi_memory_settles(fd, used), "limit: all device memory is back");
	munmap(report, PAGE);
}

/* --- a buffer's owner is in the group, the first process to touch it is not --- */
void memcg_send_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(socket, &msg, 0) != 1)
		_exit(98);
}

int memcg_receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != 1)
		tap_bail("the owner is gone");
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		tap_bail("no descriptor came");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Creates two buffers, touches neither, and waits until it may exit. */
static void own(int socket)
{
	int fd = abi_open(), dmabuf;
	uint64_t sizes[2] = { SMALL, BIG };
	uint32_t handle, i;
	char byte;

	for (i = 0; i < 2; i++) {
		if (abi_bo(fd, sizes[i], DRM_SPYRE_BO_DEVICE, &handle) ||
		    drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC | DRM_RDWR, &dmabuf))
			_exit(97);
		memcg_send_fd(socket, dmabuf);
		close(dmabuf);
	}
	if (read(socket, &byte, 1) < 0)
		_exit(96);
}

static void touch(int fd, struct abi_queue *q, int small, int big)
{
	uint64_t before = memcg_number("memory.current"), now;
	struct drm_spyre_cb cb = abi_cb_fill32(VA, SMALL, 3);
	uint32_t a = 0, b = 0;

	if (drmPrimeFDToHandle(fd, small, &a) || drmPrimeFDToHandle(fd, big, &b))
		tap_bail("PRIME import");
	tap_ok(before < SMALL, "owner: its group is not charged yet (%llu KiB)",
	       (unsigned long long)before >> 10);
	abi_bind(fd, a, 0, VA, SMALL, 0);
	tap_ret(abi_run(q, &cb, 1), 0, "owner: another process's work touches 16 MiB first");
	now = memcg_number("memory.current");
	tap_ok(now >= before + SMALL && now < before + SMALL + 4 * MIB,
	       "owner: its group is charged for them (%llu KiB more)",
	       (unsigned long long)(now - before) >> 10);
	abi_bind(fd, b, 0, VA, BIG, 0);
	cb = abi_cb_fill32(VA, BIG, 3);
	tap_ret(abi_run(q, &cb, 1), -ENOMEM,
		"owner: its limit applies to others' work on its memory");
	tap_eq(memcg_kills(), 0, "owner: no process was killed");
	abi_unbind(fd, VA, BIG);
	abi_gem_close(fd, a);
	abi_gem_close(fd, b);
}

static void test_owner_pays(int fd, struct abi_queue *q)
{
	uint64_t used = abi_memory(fd).used;
	int socket, small, big, status = 0, i;
	pid_t pid = abi_fork(&socket);

	if (!pid) {
		memcg_join();
		own(socket);
		_exit(0);
	}
	small = memcg_receive_fd(socket);
	big = memcg_receive_fd(socket);
	touch(fd, q, small, big);
	close(small);
	close(big);
	close(socket);
	waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status), "owner: exits normally");
	tap_ok(abi_memory_settles(fd, used), "owner: its device memory is back");
	for (i = 0; i < 500 && memcg_number("memory.current") >= SMALL / 2; i++)
		abi_sleep_ms(10);
	tap_ok(memcg_number("memory.current") < SMALL / 2, "owner: its group's charge is back");
}

int main(void)
{
	int fd = abi_open();
	struct abi_queue q;
	struct abi_buf mine;
	uint64_t used;

	make_group();
	q = abi_queue(fd, 0);
	mine = abi_buf(fd, MIB, DRM_SPYRE_BO_DEVICE, 64 * MIB);
	used = abi_memory(fd).used;
	test_limit(fd, &q, &mine);
	test_owner_pays(fd, &q);
	memcg_test_jobs(fd);
	memcg_test_files(fd);
	memcg_test_charge();
	/* The last process has ended, but its card memory may still be on the way back. */
	tap_ok(abi_memory_settles(fd, used), "charge: all device memory is back");
	memcg_test_oom(fd);
	abi_buf_free(fd, &mine);
	abi_queue_free(&q);
	return tap_done();
}
