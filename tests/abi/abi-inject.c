/* SPDX-License-Identifier: MIT */
/*
 * Injected faults: each kind follows the path of a real one and leaves a device
 * coredump that describes it. Needs root and debugfs.
 */
#define _GNU_SOURCE
#include "abi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <drm/spyre_coredump.h>

#include "prog.h"

#define VA (64 * MIB)
#define STICKS 64u
#define BYTES ((uint64_t)STICKS * STICK)
#define DUMP_MAX (4 * MIB)

static char folder[256];	/* the card's, in debugfs */
static uint8_t dump[DUMP_MAX];

struct ctx {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;
	uint32_t program;
	uint64_t args[3];
};

static struct ctx ctx_open(uint32_t timeout_ms)
{
	struct abi_prog prog = abi_prog_add(1, STICKS);
	struct ctx c = { .fd = abi_open() };
	uint16_t *in;
	uint32_t i;

	c.queue = abi_queue(c.fd, timeout_ms);
	c.mem = abi_buf(c.fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, VA);
	c.program = abi_prog_create(c.fd, &prog);
	in = c.mem.map;
	for (i = 0; i < 3; i++)
		c.args[i] = VA + i * BYTES;
	for (i = 0; i < BYTES; i++)
		in[BYTES / 2 + i] = abi_dl16((int)(i % 509) - 254);
	return c;
}

static void ctx_close(struct ctx *c)
{
	munmap(c->queue.results.map, c->queue.results.size);
	munmap(c->mem.map, c->mem.size);
	close(c->fd);
}

static ssize_t read_file(const char *path, void *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (have < size && (n = read(fd, (char *)data + have, size - have)) > 0)
		have += n;
	close(fd);
	return have;
}

static int inject(const char *format, unsigned long long client)
{
	char path[300], text[160];

	snprintf(path, sizeof(path), "%s/inject", folder);
	snprintf(text, sizeof(text), format, client);
	return abi_write_file(path, text);
}

static bool shows(const char *file, const char *text)
{
	static char buffer[65536];
	char path[300];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	n = read_file(path, buffer, sizeof(buffer) - 1);
	if (n < 0)
		return false;
	buffer[n] = '\0';
	return strstr(buffer, text);
}

/* Reads the coredump of a virtual card into @dump and deletes it; returns its size, or 0. */
static size_t take_dump(void)
{
	struct dirent *entry;
	char path[300];
	ssize_t n = 0;
	DIR *all;

	for (int tries = 0; tries < 200 && n <= 0; tries++) {
		all = opendir("/sys/class/devcoredump");
		while (all && n <= 0 && (entry = readdir(all))) {
			if (strncmp(entry->d_name, "devcd", 5))
				continue;
			snprintf(path, sizeof(path), "/sys/class/devcoredump/%.32s/data",
				 entry->d_name);
			n = read_file(path, dump, sizeof(dump));
			if (n < 8 || memcmp(dump, DRM_SPYRE_COREDUMP_MAGIC, 8))
				n = 0;
			else
				abi_write_file(path, "0");
		}
		if (all)
			closedir(all);
		if (n <= 0)
			abi_sleep_ms(10);
	}
	return n > 0 ? n : 0;
}

/* Returns the section of this kind, or the first one; NULL if there is none. */
static const void *section(size_t size, uint32_t type, uint32_t index, uint64_t bytes)
{
	const struct drm_spyre_coredump_header *header = (const void *)dump;
	size_t at = header->header_bytes;

	for (uint32_t i = 0; i < header->num_sections; i++) {
		const struct drm_spyre_coredump_section *s = (const void *)(dump + at);

		if (size - at < sizeof(*s) || size - at - sizeof(*s) < s->bytes)
			return NULL;
		if (s->type == type && s->index == index && s->bytes >= bytes)
			return s + 1;
		at += sizeof(*s) + ((s->bytes + 7) & ~7ull);
	}
	return NULL;
}

static void test_dump(struct ctx *c, const char *kind, uint32_t fault, int error)
{
	size_t size = take_dump();
	const struct drm_spyre_coredump_header *header = (const void *)dump;
	const struct drm_spyre_context_info *context;
	const struct drm_spyre_coredump_operand *operand;
	const struct drm_spyre_coredump_fault *f;
	const struct drm_spyre_coredump_info *info;
	const struct spyre_prog_header *prog;

	if (!tap_ok(size > sizeof(*header), "%s: there is a coredump (%zu bytes)", kind, size))
		return;
	tap_eq(header->version, DRM_SPYRE_COREDUMP_VERSION, "%s: dump: version", kind);
	tap_eq(header->size, size, "%s: dump: its size", kind);
	f = section(size, DRM_SPYRE_COREDUMP_FAULT, 1, sizeof(*f));
	context = section(size, DRM_SPYRE_COREDUMP_CONTEXT, 0, sizeof(*context));
	info = section(size, DRM_SPYRE_COREDUMP_INFO, 0, sizeof(*info));
	operand = section(size, DRM_SPYRE_COREDUMP_OPERANDS, 1, 3 * sizeof(*operand));
	prog = section(size, DRM_SPYRE_COREDUMP_PROGRAM, 1, sizeof(*prog));
	if (!tap_ok(f && context && info && operand && prog, "%s: dump: its sections", kind))
		return;
	tap_eq(f->fault, fault, "%s: dump: fault", kind);
	tap_ret(f->error, error, "%s: dump: errno", kind);
	tap_eq(f->num_cbs, 3, "%s: dump: control blocks", kind);
	tap_eq(f->queue, c->queue.id, "%s: dump: queue", kind);
	tap_eq(context->id, abi_context(c->fd).id, "%s: dump: context", kind);
	tap_eq((uint32_t)info->pid, (uint32_t)getpid(), "%s: dump: process", kind);
	tap_ok(!strncmp((const char *)info->comm, "abi-inject", 10) ||
	       !strncmp((const char *)info->comm,
	       "lt-abi-inject", 13), "%s: dump: name of the process", kind);
	tap_ok(operand[0].address == c->args[0] && operand[2].address == c->args[2] &&
	       operand[1].extent == BYTES, "%s: dump: operands", kind);
	tap_eq(prog->magic, SPYRE_PROG_MAGIC, "%s: dump: program", kind);
	tap_ok(section(size, DRM_SPYRE_COREDUMP_CB, 2, 1) &&
	       section(size, DRM_SPYRE_COREDUMP_QUEUES, 0, 1) &&
	       section(size, DRM_SPYRE_COREDUMP_CARD, 0, 1),
	       "%s: dump: the remaining sections", kind);
	/* The input of the sum is user data. */
	tap_ok(!memmem(dump, size, (uint8_t *)c->mem.map + BYTES, 64),
	       "%s: dump: no contents of user memory", kind);
}

static void test_kind(const char *kind, uint32_t fault, int error)
{
	struct ctx c = ctx_open(100), other = ctx_open(0);
	struct drm_spyre_cb exec = abi_cb_exec(c.program, c.args, 3), stamp = abi_cb_timestamp();
	struct drm_spyre_cb cbs[3] = { stamp, exec, stamp };
	struct drm_spyre_cb theirs = abi_cb_exec(other.program, other.args, 3);
	struct drm_spyre_cb_result *r = abi_results(&c.queue);
	static uint8_t want[BYTES];
	char text[96];

	tap_ret(abi_run(&other.queue, &theirs, 1), 0, "%s: another context works", kind);
	memcpy(want, other.mem.map, BYTES);
	memset(other.mem.map, 0xee, BYTES);
	snprintf(text, sizeof(text), "client=%%llu fault=%s after=1\n", kind);
	tap_ret(inject(text, abi_context(c.fd).id), 0, "%s: the injection is accepted", kind);
	snprintf(text, sizeof(text), "client=%llu fault=%s after=1 times=1",
		 (unsigned long long)abi_context(c.fd).id, kind);
	tap_ok(shows("inject", text), "%s: debugfs lists it", kind);
	tap_ret(abi_run(&other.queue, &theirs, 1), 0,
		"%s: a job of another context succeeds", kind);
	tap_ok(!memcmp(want, other.mem.map, BYTES),
	       "%s: results of the other context are unchanged", kind);
	tap_ret(abi_submit(&c.queue, cbs, 3, NULL), 0, "%s: SUBMIT of three control blocks", kind);
	tap_ret(abi_wait(&c.queue, 20000), 0, "%s: the job ends", kind);
	tap_ret(r[0].status, 0, "%s: the first block succeeds", kind);
	tap_ret(r[1].status, error, "%s: the second block reports the fault", kind);
	tap_ret(r[2].status, -ECANCELED, "%s: the third block reports ECANCELED", kind);
	tap_eq(abi_context(c.fd).state, DRM_SPYRE_CONTEXT_FAULTED,
	       "%s: the context is faulted", kind);
	tap_eq(abi_context(c.fd).fault, fault, "%s: the kind of fault", kind);
	tap_ret(abi_context(c.fd).error, error, "%s: the errno of the fault", kind);
	tap_eq(abi_context(c.fd).fault_cb, 1, "%s: the control block of the fault", kind);
	snprintf(text, sizeof(text), "fault %s error %d", kind[0] == 'h' ? "timeout" : kind, error);
	tap_ok(shows("state", text), "%s: debugfs shows the fault", kind);
	test_dump(&c, kind, fault, error);
	tap_ret(abi_context_reset(c.fd, NULL), 0, "%s: CONTEXT_RESET", kind);
	abi_queue_free(&c.queue);
	c.queue = abi_queue(c.fd, 0);
	tap_ret(abi_run(&c.queue, cbs, 3), 0, "%s: the same job then runs", kind);
	tap_ok(!memcmp(want, c.mem.map, BYTES), "%s: its results are right", kind);
	ctx_close(&c);
	ctx_close(&other);
	/* At most ten dumps per second are made. */
	abi_sleep_ms(150);
}

static void test_syntax(void)
{
	static const char *const bad[] = {
		"", "fault=none", "client=1", "fault=access client=0", "fault=access times=0",
		"fault=access after=-1", "fault=access after=99999999999", "fault=access x=1",
		"client=any fault=", "fault",
	};
	unsigned int i, n = 0;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		n += inject(bad[i], 0) == -EINVAL;
	/* An empty write does not reach the driver. */
	tap_eq(n, sizeof(bad) / sizeof(bad[0]) - 1, "syntax: invalid texts are refused");
	for (i = 0; i < 32 && !inject("client=%llu fault=compute", ~0ull); i++)
		;
	tap_ret(inject("client=%llu fault=compute", ~0ull), -ENOSPC,
		"syntax: 32 injections are accepted");
	tap_ret(inject("clear", 0), 0, "syntax: clear");
	tap_ok(!shows("inject", "client="), "syntax: no injection is left");
}

/* times=, client=any, and dumps that are not read. */
static void test_any(void)
{
	struct drm_spyre_cb fill;
	struct ctx c = ctx_open(0);
	int i, bad = 0;

	tap_ret(inject("client=any fault=access times=3", 0), 0,
		"any: an injection for three blocks");
	for (i = 0; i < 4; i++) {
		fill = abi_cb_fill32(VA, PAGE, 1);
		bad += abi_run(&c.queue, &fill, 1) != (i < 3 ? -EFAULT : 0);
		abi_queue_free(&c.queue);
		bad += abi_context_reset(c.fd, NULL) != 0;
		c.queue = abi_queue(c.fd, 0);
	}
	tap_eq(bad, 0, "any: three fills fail, the next one succeeds");
	ctx_close(&c);
	tap_ok(take_dump() > 0, "any: there is one dump");
}

static bool find_folder(void)
{
	char node[64], device[64];

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		return false;
	if (access("/sys/kernel/debug/accel", F_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	snprintf(folder, sizeof(folder), "/sys/kernel/debug/accel/%s", device);
	return !access(folder, F_OK);
}

int main(void)
{
	int fd = abi_open();
	uint64_t used = abi_memory(fd).used;

	if (geteuid())
		tap_skip_all("debugfs is root's");
	if (!find_folder())
		tap_skip_all("no debugfs of the card in this kernel");
	if (!access("/sys/class/devcoredump", F_OK))
		while (take_dump())
			;
	test_syntax();
	test_kind("access", DRM_SPYRE_FAULT_ACCESS, -EFAULT);
	test_kind("escape", DRM_SPYRE_FAULT_ESCAPE, -EFAULT);
	test_kind("compute", DRM_SPYRE_FAULT_COMPUTE, -EIO);
	test_kind("hang", DRM_SPYRE_FAULT_TIMEOUT, -ETIME);
	test_any();
	tap_ok(shows("state",
	       "client ") && shows("bos", "client "), "debugfs: state and bos list the files");
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
	return tap_done();
}
