/* SPDX-License-Identifier: MIT */
/* The order of jobs, waits between them, and isolation of their data. */
#include "abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/sync_file.h>
#include <xf86drm.h>

#include "prog.h"

#define VA (64 * MIB)
#define WORK (64 * 1024u)	/* one iteration of the loop */

/* A file with memory for sums, and a program that runs for some time. */
struct ctx {
	int fd;
	struct abi_buf mem;
	uint32_t program;
	uint64_t args[3];
	struct drm_spyre_cb cb;
};

static uint32_t iterations_per_100ms;

static struct ctx ctx_make(const struct abi_prog *p)
{
	struct ctx c = { .fd = abi_open() };
	uint64_t extent = p->operands[0].extent;
	int i;

	c.mem = abi_buf(c.fd, 3 * extent, DRM_SPYRE_BO_DEVICE, VA);
	c.program = abi_prog_create(c.fd, p);
	for (i = 0; i < 3; i++)
		c.args[i] = VA + i * extent;
	return c;
}

static struct ctx ctx_init(uint32_t iterations)
{
	struct abi_prog p = abi_prog_add(1, WORK / STICK);

	p.num_loops = 1;
	p.loops[0] = iterations < 1 ? 1 : iterations > 65535 ? 65535 : iterations;
	return ctx_make(&p);
}

/* Work that ends only when it is stopped. */
static struct ctx ctx_long(void)
{
	struct abi_prog p = abi_prog_long();

	return ctx_make(&p);
}

static struct drm_spyre_cb work(struct ctx *c)
{
	return abi_cb_exec(c->program, c->args, 3);
}

static void ctx_free(struct ctx *c)
{
	munmap(c->mem.map, c->mem.size);
	close(c->fd);
}

static void calibrate(void)
{
	struct abi_prog p = abi_prog_add(1, WORK / STICK);

	p.num_loops = 1;
	p.loops[0] = 16;
	iterations_per_100ms = (uint32_t)(16 * 100000000ull / abi_prog_ns(&p)) + 1;
	tap_note("%u iterations in 100 ms", iterations_per_100ms);
}

/* Twelve low jobs keep every worker busy; a high one runs before the last. */
static void test_priority(void)
{
	struct ctx c = ctx_init(iterations_per_100ms);
	struct abi_queue low[12], high = abi_queue(c.fd, 0);
	struct drm_spyre_cb cb = work(&c), stamp = abi_cb_timestamp();
	uint64_t last = 0;
	int i, bad = 0;

	abi_queue_destroy(c.fd, high.id);
	abi_queue_create(c.fd, DRM_SPYRE_PRIORITY_HIGH, 0, &high.id);
	for (i = 0; i < 12; i++) {
		low[i] = abi_queue(c.fd, 60000);
		bad += abi_submit(&low[i], &cb, 1, NULL) != 0;
	}
	bad += abi_submit(&high, &stamp, 1, NULL) != 0;
	for (i = 0; i < 12; i++) {
		bad += abi_wait(&low[i], 60000) != 0 || abi_results(&low[i])->status;
		if (abi_results(&low[i])->start_ns > last)
			last = abi_results(&low[i])->start_ns;
		munmap(low[i].results.map, low[i].results.size);
	}
	bad += abi_wait(&high, 60000) != 0;
	tap_eq(bad, 0, "priority: all jobs complete");
	tap_ok(abi_results(&high)->start_ns < last,
	       "priority: the high job ends before the last low one");
	munmap(high.results.map, high.results.size);
	ctx_free(&c);
}

/* Jobs that wait for a busy card have not begun, so their time limit has not either. */
static void test_patience(void)
{
	struct ctx c = ctx_init(iterations_per_100ms * 3);
	struct abi_queue q[9];
	struct drm_spyre_cb cb = work(&c), stamp = abi_cb_timestamp();
	int i, bad = 0;

	for (i = 0; i < 8; i++) {
		q[i] = abi_queue(c.fd, 60000);
		bad += abi_submit(&q[i], &cb, 1, NULL) != 0;
	}
	q[8] = abi_queue(c.fd, 50);
	bad += abi_submit(&q[8], &stamp, 1, NULL) != 0;
	for (i = 0; i < 9; i++) {
		bad += abi_wait(&q[i], 60000) != 0 || abi_results(&q[i])->status;
		munmap(q[i].results.map, q[i].results.size);
	}
	tap_eq(bad, 0, "waiting: a limit of 50 ms is not reached behind eight jobs of 300 ms");
	ctx_free(&c);
}

/* The limit may expire at the very end of a job: either way it ends once and correctly. */
static void test_timeout_race(void)
{
	struct ctx c = ctx_init(iterations_per_100ms / 20 + 1);
	struct drm_spyre_cb cb = work(&c);
	struct drm_spyre_queue_query query;
	struct abi_queue q;
	int i, done = 0, late = 0, bad = 0;

	for (i = 0; i < 150; i++) {
		q = abi_queue(c.fd, 2 + i % 8);
		memset(abi_results(&q), 0, 64);
		bad += abi_submit(&q, &cb, 1, NULL) || abi_wait(&q, 20000);
		query = abi_queue_query(c.fd, q.id);
		if (!abi_results(&q)->status)
			done++;
		else if (abi_results(&q)->status == -ETIME && query.error == -ETIME)
			late++;
		else
			bad++;
		bad += query.completed != 1 || abi_results(&q)->state != DRM_SPYRE_CB_DONE;
		abi_queue_free(&q);
		bad += abi_context_reset(c.fd, NULL) != 0;
	}
	tap_eq(bad, 0, "timeout race: 150 jobs of 5 ms, limits of 2 to 9 ms (%d done, %d late)",
	       done, late);
	ctx_free(&c);
}

/* A long job of one file must not prevent another file's jobs from running. */
static void test_beside_long_work(void)
{
	struct ctx slow = ctx_long(), quick = ctx_init(1);
	struct abi_queue a = abi_queue(slow.fd, 1000), b = abi_queue(quick.fd, 0);
	struct drm_spyre_cb cb = work(&slow), other = work(&quick);

	tap_ret(abi_submit(&a, &cb, 1, NULL), 0, "two files: endless work, limit 1 s");
	abi_sleep_ms(20);
	tap_ret(abi_run(&b, &other, 1), 0, "two files: work of the other file completes");
	tap_ret(abi_wait(&a, 30000), 0, "two files: the endless work ends");
	tap_ret(abi_results(&a)->status, -ETIME, "two files: it reports ETIME");
	tap_ret(abi_run(&b, &other, 1), 0, "long work: new work of the other file completes");
	munmap(a.results.map, a.results.size);
	munmap(b.results.map, b.results.size);
	ctx_free(&slow);
	ctx_free(&quick);
}

/* Shares @syncobj of one file with another, like two processes. */
static uint32_t share(int from, uint32_t syncobj, int to)
{
	uint32_t handle = 0;
	int fd;

	if (drmSyncobjHandleToFD(from, syncobj, &fd) || drmSyncobjFDToHandle(to, fd, &handle))
		tap_bail("sharing a syncobj: %s", strerror(errno));
	close(fd);
	return handle;
}

/*
 * b's jobs wait for a's. One of b's queues is destroyed before a ends: that does
 * not block, although its fence stays behind a's.
 */
static void test_waiting_for_another_file(void)
{
	struct ctx a = ctx_long(), b = ctx_init(1);
	struct abi_queue qa = abi_queue(a.fd, 60000), gone = abi_queue(b.fd, 0);
	struct abi_queue stays = abi_queue(b.fd, 0);
	struct drm_spyre_cb cb = work(&a), stamp = abi_cb_timestamp();
	struct drm_spyre_sync wait = { .point = 1 }, none = { 0 };
	uint64_t start, point = 0;

	tap_ret(abi_submit(&qa, &cb, 1, NULL), 0, "across files: a has long work");
	wait.handle = share(a.fd, qa.syncobj, b.fd);
	memset(abi_results(&gone), 0, 64);
	memset(abi_results(&stays), 0, 64);
	tap_ret(abi_submit_sync(&gone, &stamp, 1, wait, none), 0,
		"across files: b's first queue waits for it");
	tap_ret(abi_submit_sync(&stays, &stamp, 1, wait, none), 0,
		"across files: b's second queue waits for it");
	start = abi_now_ns();
	tap_ret(abi_queue_destroy(b.fd, gone.id), 0,
		"across files: QUEUE_DESTROY of one waiting queue");
	tap_ok(abi_now_ns() - start < 10000000000ull,
	       "across files: it took %llu ms, without waiting for a",
	       (unsigned long long)(abi_now_ns() - start) / 1000000);
	tap_ret(abi_wait(&stays, 50), -ETIME, "across files: the other one still waits");
	munmap(qa.results.map, qa.results.size);
	ctx_free(&a);
	tap_ret(abi_wait(&gone, 20000), 0,
		"across files: a is closed, the fence of the destroyed queue signals");
	tap_ret(abi_results(&gone)->status, -ECANCELED, "across files: its job reports ECANCELED");
	tap_ret(abi_wait(&stays, 20000), 0, "across files: the fence of the other queue signals");
	tap_ret(abi_results(&stays)->status, 0, "across files: its job succeeded");
	drmSyncobjQuery(b.fd, &wait.handle, &point, 1);
	tap_eq(point, 1, "across files: a's timeline reaches its point");
	munmap(gone.results.map, gone.results.size);
	munmap(stays.results.map, stays.results.size);
	ctx_free(&b);
}

/*
 * When QUEUE_DESTROY returns, the running job has stopped; the other jobs of the
 * queue end shortly after.
 */
static void test_destroy_is_done(void)
{
	struct ctx c = ctx_long();
	struct drm_spyre_cb cbs[2] = { work(&c), abi_cb_timestamp() };
	struct drm_spyre_cb_result *r;
	struct abi_queue q;
	int i, n, fences = 0, results = 0;

	for (i = 0; i < 10; i++) {
		q = abi_queue(c.fd, 0);
		r = abi_results(&q);
		memset(r, 0, PAGE);
		for (n = 0; n < 8; n++)
			abi_submit(&q, cbs, 2, NULL);
		abi_sleep_ms(i);
		abi_queue_destroy(c.fd, q.id);
		fences += !abi_wait(&q, 1000);
		results += r[0].state == DRM_SPYRE_CB_DONE && r[1].state == DRM_SPYRE_CB_DONE;
		drmSyncobjDestroy(c.fd, q.syncobj);
		abi_buf_free(c.fd, &q.results);
	}
	tap_eq(fences, 10, "destroy: all fences signal");
	tap_eq(results, 10, "destroy: results are complete when the fences signal");
	ctx_free(&c);
}

static void test_sync_file_status(void)
{
	struct ctx c = ctx_long();
	struct abi_queue q = abi_queue(c.fd, 50);
	struct drm_spyre_cb cb = work(&c);
	struct sync_file_info info = { 0 };
	uint32_t binary = abi_syncobj(c.fd);
	struct drm_spyre_sync signal = { .handle = binary, .flags = DRM_SPYRE_SYNC_SIGNAL };
	int file = -1;

	abi_submit_sync(&q, &cb, 1, signal, (struct drm_spyre_sync){ 0 });
	drmSyncobjExportSyncFile(c.fd, binary, &file);
	abi_wait(&q, 20000);
	munmap(q.results.map, q.results.size);
	ctx_free(&c);
	tap_ok(!ioctl(file, SYNC_IOC_FILE_INFO, &info), "sync_file: outlives its file");
	tap_ret(info.status, -ETIME, "sync_file: its status is that of the job");
	close(file);
}

/* --- scratchpads --- */
#define LX (256u * 1024)

static uint32_t lx_program(int fd, bool store, uint32_t kept)
{
	struct spyre_view lx = { .operand = SPYRE_VIEW_LX, .format = SPYRE_FMT_SEN169_FP16,
				 .stride = { STICK } };
	struct spyre_view mem = { .operand = 0, .format = SPYRE_FMT_SEN169_FP16,
				  .stride = { STICK } };
	struct abi_prog p = {
		.cores = 1,
		.lx_bytes = LX,
		.lx_kept = kept,
		.num_operands = 1,
		.operands = { { .extent = LX,
				.flags = store ? SPYRE_OPERAND_WRITE : SPYRE_OPERAND_READ } },
		.instr = { .opcode = SPYRE_OP_MOVE, .num_dims = 1, .num_views = 2,
			   .count = { LX / STICK }, .lanes = 64 },
		.views = { store ? mem : lx, store ? lx : mem },
	};

	return abi_prog_create(fd, &p);
}

/* A file with programs that fill the scratchpad of a core from memory, and dump it. */
struct pad {
	int fd;
	struct abi_buf mem;
	struct abi_queue q;
	uint32_t load, store;
};

static struct pad pad_init(uint32_t kept)
{
	struct pad p = { .fd = abi_open() };

	p.mem = abi_buf(p.fd, LX, DRM_SPYRE_BO_DEVICE, VA);
	p.q = abi_queue(p.fd, 0);
	p.load = lx_program(p.fd, false, kept);
	p.store = lx_program(p.fd, true, kept);
	return p;
}

static void pad_free(struct pad *p)
{
	munmap(p->mem.map, LX);
	munmap(p->q.results.map, p->q.results.size);
	close(p->fd);
}

static uint32_t pad_fill(struct pad *p)
{
	const uint64_t arg = VA;
	struct drm_spyre_cb load = abi_cb_exec(p->load, &arg, 1);

	memset(p->mem.map, 0x5e, LX);
	return abi_run(&p->q, &load, 1) != 0;
}

/* Returns how many bytes of the scratchpad are not zero. */
static uint32_t pad_dump(struct pad *p, uint32_t *bad)
{
	const uint64_t arg = VA;
	struct drm_spyre_cb store = abi_cb_exec(p->store, &arg, 1);
	const uint8_t *bytes = p->mem.map;
	uint32_t i, count = 0;

	memset(p->mem.map, 0xff, LX);
	*bad += abi_run(&p->q, &store, 1) != 0;
	for (i = 0; i < LX; i++)
		count += bytes[i] != 0;
	return count;
}

/* The pages of the closed file are free, and dirty, when the spy's scratchpad is allocated. */
static void test_scratchpad(void)
{
	uint32_t round, bad = 0, others = 0, own = 0;
	struct pad gone, live, spy;

	for (round = 0; round < 8; round++) {
		gone = pad_init(0);
		live = pad_init(0);
		spy = pad_init(0);
		bad += pad_fill(&gone) + pad_fill(&live);
		pad_free(&gone);
		others += pad_dump(&spy, &bad);
		bad += pad_fill(&spy);
		own += pad_dump(&spy, &bad);
		pad_free(&live);
		pad_free(&spy);
	}
	tap_eq(bad, 0, "scratchpad: filled and dumped in three files, 8 times");
	tap_eq(others, 0, "scratchpad: no byte of another file, open or closed, shows");
	tap_eq(own, 0, "scratchpad: no byte of the file's own earlier program shows");
}

static uint32_t card_cores(int fd)
{
	struct drm_spyre_card_info card = { 0 };
	struct drm_spyre_dev_query query = { .size = sizeof(card), .pointer = PTR(&card) };

	abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	return card.num_cores;
}

/* Returns how many of the first @kept bytes of the scratchpad are not those of pad_fill(). */
static uint32_t pad_lost(struct pad *p, uint32_t kept, uint32_t *bad)
{
	const uint8_t *bytes = p->mem.map;
	uint32_t i, lost = 0;

	pad_dump(p, bad);
	for (i = 0; i < kept; i++)
		lost += bytes[i] != 0x5e;
	return lost;
}

/*
 * Runs a program that clears the scratchpads of @cores from byte @kept on, and adds zeroes
 * to zeroes at their end.
 */
static uint32_t pad_other(struct pad *p, uint32_t cores, uint32_t lx_bytes, uint32_t kept)
{
	struct spyre_view lx = { .operand = SPYRE_VIEW_LX, .format = SPYRE_FMT_SEN169_FP16,
				 .offset = lx_bytes - STICK };
	struct abi_prog other = {
		.cores = cores,
		.lx_bytes = lx_bytes,
		.lx_kept = kept,
		.instr = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_ADD, .num_views = 3,
			   .lanes = 64 },
		.views = { lx, lx, lx },
	};
	struct drm_spyre_cb cb = abi_cb_exec(abi_prog_create(p->fd, &other), NULL, 0);

	return abi_run(&p->q, &cb, 1) != 0;
}

/* Kept contents of LX are there for the next program of the file, and for no other file. */
static void test_kept(void)
{
	const uint32_t kept = LX / 2;
	uint32_t round, cores, bad = 0, lost = 0, others = 0, beyond = 0;
	struct pad gone, live, spy;

	for (round = 0; round < 4; round++) {
		gone = pad_init(LX);
		live = pad_init(kept);
		spy = pad_init(LX);
		cores = card_cores(spy.fd);
		bad += pad_fill(&gone) + pad_fill(&live);
		pad_free(&gone);
		others += pad_dump(&spy, &bad);
		lost += pad_lost(&live, kept, &bad);
		/* The dump, too, has cleared what is not kept. */
		beyond += pad_dump(&live, &bad) != kept;
		/* Less and more of it, on fewer and more cores, below and above. */
		bad += pad_other(&live, 1, 2 * LX, kept);
		bad += pad_other(&live, cores, kept + STICK, kept);
		bad += pad_other(&live, cores, SPYRE_LX_BYTES, LX);
		lost += pad_lost(&live, kept, &bad);
		bad += pad_fill(&spy);
		lost += pad_lost(&live, kept, &bad) + pad_lost(&spy, LX, &bad);
		pad_free(&live);
		pad_free(&spy);
	}
	tap_eq(bad, 0, "kept: programs that keep a part of the scratchpad, 4 times");
	tap_eq(lost, 0, "kept: no byte is lost to other programs of the file, or other files");
	tap_eq(others, 0, "kept: no byte of another file, open or closed, shows");
	tap_eq(beyond, 0, "kept: what lies behind is cleared");
}

/* A file whose first program needs little of the scratchpad has it all when one keeps it. */
static void test_kept_after_small(void)
{
	struct pad p = pad_init(LX);
	uint32_t bad = 0, lost;

	bad += pad_other(&p, 1, STICK, 0);
	bad += pad_fill(&p);
	bad += pad_other(&p, card_cores(p.fd), SPYRE_LX_BYTES, LX);
	lost = pad_lost(&p, LX, &bad);
	tap_eq(bad, 0, "kept: after a smaller program, before a larger one");
	tap_eq(lost, 0, "kept: no byte is lost when the scratchpads grow");
	pad_free(&p);
}

static void test_fdinfo(void)
{
	struct ctx c = ctx_init(1);
	char path[64], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", c.fd);
	f = fopen(path, "r");
	tap_ok(f && fread(text, 1, sizeof(text) - 1, f) > 0, "fdinfo: can be read");
	if (f)
		fclose(f);
	tap_ok(strstr(text, "drm-driver:\tspyre_vdev") && strstr(text, "drm-client-id:") &&
	       strstr(text, "drm-engine-spyre:") && strstr(text, "drm-cycles-spyre:"),
	       "fdinfo: driver, client, engine time and cycles");
	tap_ok(strstr(text, "drm-total-lpddr5:\t192 KiB"), "fdinfo: device memory");
	ctx_free(&c);
}

int main(void)
{
	int watch = abi_open();
	uint64_t used = abi_memory(watch).used;

	calibrate();
	if (abi_may_be_high())
		test_priority();
	else
		tap_skip("the high class requires CAP_SYS_NICE", "priority");
	test_patience();
	test_timeout_race();
	test_beside_long_work();
	test_waiting_for_another_file();
	test_destroy_is_done();
	test_sync_file_status();
	test_scratchpad();
	test_kept();
	test_kept_after_small();
	test_fdinfo();
	tap_ok(abi_memory_settles(watch, used), "all memory is back");
	return tap_done();
}
