/* SPDX-License-Identifier: MIT */
/*
 * Contexts that compete for the card: none starves, none is stalled by another's
 * long work, and results do not depend on the competitors. The checks compare which
 * jobs had ended when another one ended, not durations.
 */
#include "abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

#define VA (64 * MIB)
#define WORK (128 * 1024ull)	/* of each of a program's three operands */
#define LX (64u * 1024)
#define MS(n) ((n) * 1000000ull)

static uint32_t num_cores;
static uint32_t iters_per_100ms;

/* A file with memory for sums and a program that adds. */
struct ctx {
	int fd;
	struct abi_buf mem;
	uint32_t program;
	uint64_t args[3];
};

struct shape {
	uint32_t cores;
	uint32_t lx;
	uint32_t iters;		/* 0: runs for hours */
	uint32_t sticks;	/* of each core, 0: its part of WORK */
};

static uint32_t program(int fd, struct shape shape)
{
	struct abi_prog p = abi_prog_add(shape.cores, shape.sticks ? shape.sticks :
						     WORK / STICK / shape.cores);

	p.lx_bytes = shape.lx;
	p.num_loops = shape.iters ? 1 : 2;
	p.loops[0] = shape.iters && shape.iters < 65535 ? shape.iters : 65535;
	p.loops[1] = 64;
	return abi_prog_create(fd, &p);
}

static struct ctx ctx_init(struct shape shape)
{
	struct ctx c = { .fd = abi_open() };
	int i;

	c.mem = abi_buf(c.fd, 3 * WORK, DRM_SPYRE_BO_DEVICE, VA);
	c.program = program(c.fd, shape);
	for (i = 0; i < 3; i++)
		c.args[i] = VA + i * WORK;
	return c;
}

static struct drm_spyre_cb work(struct ctx *c)
{
	return abi_cb_exec(c->program, c->args, 3);
}

static void queue_done(struct abi_queue *q)
{
	/* A mapping would keep its file open. */
	munmap(q->results.map, q->results.size);
}

static void ctx_free(struct ctx *c)
{
	munmap(c->mem.map, c->mem.size);
	close(c->fd);
}

static uint32_t iters(uint32_t ms)
{
	return iters_per_100ms * ms / 100 + 1;
}

static struct abi_queue queue_of(struct ctx *c, uint32_t priority, uint32_t timeout_ms)
{
	struct abi_queue q = abi_queue(c->fd, 0);
	int ret;

	abi_queue_destroy(c->fd, q.id);
	ret = abi_queue_create(c->fd, priority, timeout_ms, &q.id);
	if (ret)
		tap_bail("QUEUE_CREATE: %s", strerror(-ret));
	memset(q.results.map, 0, q.results.size);
	return q;
}

static bool is_done(struct abi_queue *q)
{
	volatile struct drm_spyre_cb_result *r = abi_results(q);

	return r->state == DRM_SPYRE_CB_DONE;
}

/* Number of preemptions of a file; ~0 if the driver does not report it. */
static uint64_t preempted(int fd)
{
	struct drm_spyre_context_info info = { 0 };
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CONTEXT,
					     .size = sizeof(info), .pointer = PTR(&info) };

	return abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query) ? ~0ull : info.preempted;
}

static void calibrate(void)
{
	struct drm_spyre_card_info card = { 0 };
	struct drm_spyre_dev_query query = { .size = sizeof(card), .pointer = PTR(&card) };
	struct abi_prog p;
	int fd = abi_open();

	abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	close(fd);
	num_cores = card.num_cores;
	p = abi_prog_add(num_cores, WORK / STICK / num_cores);
	p.num_loops = 1;
	p.loops[0] = 64;
	iters_per_100ms = (uint32_t)(64 * MS(100) / abi_prog_ns(&p)) + 1;
	tap_note("%u cores, %u iterations in 100 ms", num_cores, iters_per_100ms);
}

/* --- partitions --- */
static int create(int fd, uint32_t first, uint32_t count, uint32_t *id)
{
	struct drm_spyre_queue_create args = { .core_first = first, .core_count = count };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args);

	*id = args.queue_id;
	return ret;
}

static void test_partition_arguments(void)
{
	const uint32_t half = num_cores / 2;
	struct ctx wide = ctx_init((struct shape){ .cores = num_cores, .iters = 1 });
	struct abi_queue q = abi_queue(wide.fd, 0);
	struct drm_spyre_cb cbs[2] = { abi_cb_timestamp(), work(&wide) };
	uint32_t id, error_cb;

	tap_ret(create(wide.fd, 1, 0, &id), -EINVAL, "partition: first core 1, no count: EINVAL");
	tap_ret(create(wide.fd, num_cores, 1, &id), -EINVAL,
		"partition: first core past the last: EINVAL");
	tap_ret(create(wide.fd, 0, num_cores + 1, &id), -EINVAL,
		"partition: one core more than the card has: EINVAL");
	tap_ret(create(wide.fd, 1, num_cores, &id), -EINVAL,
		"partition: the last core is past the end: EINVAL");
	tap_ret(create(wide.fd, 2, 0xffffffff, &id), -EINVAL,
		"partition: first + count wraps (large count): EINVAL");
	tap_ret(create(wide.fd, 0xffffffff, 2, &id), -EINVAL,
		"partition: first + count wraps (large first): EINVAL");
	tap_ret(create(wide.fd, 0, num_cores, &id), 0, "partition: all cores, given explicitly");
	abi_queue_destroy(wide.fd, q.id);
	q.id = id;
	tap_ret(abi_run(&q, cbs, 2), 0,
		"partition: a queue of all cores runs a program of all cores");
	abi_queue_destroy(wide.fd, q.id);
	tap_ret(create(wide.fd, half, num_cores - half, &q.id), 0,
		"partition: a queue of the upper half");
	tap_ret(abi_submit(&q, cbs, 2, &error_cb), -EINVAL,
		"partition: a program of all cores: EINVAL");
	tap_eq(error_cb, 1, "partition: error_cb is the index of that block");
	tap_ret(abi_run(&q, cbs, 1), 0, "partition: the queue still runs other work");
	queue_done(&q);
	ctx_free(&wide);
}

/* Work for hours on one half of the card, and other work on the other half. */
static void test_partitions(void)
{
	const uint32_t half = num_cores / 2;
	struct ctx slow = ctx_init((struct shape){ .cores = half });
	struct ctx quick = ctx_init((struct shape){ .cores = half, .iters = iters(20) });
	struct abi_queue a = abi_queue(slow.fd, 0), b = abi_queue(quick.fd, 0);
	struct drm_spyre_cb cb = work(&slow), other = work(&quick);
	int i, bad = 0;

	abi_queue_destroy(a.fd, a.id);
	abi_queue_destroy(b.fd, b.id);
	bad += create(a.fd, 0, half, &a.id) != 0 || create(b.fd, half, half, &b.id) != 0;
	memset(a.results.map, 0, PAGE);
	bad += abi_submit(&a, &cb, 1, NULL) != 0;
	for (i = 0; i < 5; i++)
		bad += abi_run(&b, &other, 1) != 0;
	tap_eq(bad, 0, "halves: jobs run on the other half");
	tap_ok(!is_done(&a), "halves: the long job is still running");
	queue_done(&a);
	queue_done(&b);
	ctx_free(&slow);
	ctx_free(&quick);
}

/* --- time slices --- */

/*
 * Two contexts use all cores and LX for hours; another one repeatedly needs the
 * same for a moment.
 */
static void test_short_beside_long(void)
{
	struct ctx slow = ctx_init((struct shape){ .cores = num_cores, .lx = LX });
	struct ctx quick = ctx_init((struct shape){ .cores = num_cores, .lx = LX, .iters = 1 });
	struct abi_queue a[2], b = abi_queue(quick.fd, 0);
	struct drm_spyre_cb cb = work(&slow), other = work(&quick);
	uint64_t count;
	int i, bad = 0;

	for (i = 0; i < 2; i++) {
		a[i] = queue_of(&slow, DRM_SPYRE_PRIORITY_LOW, 60000);
		bad += abi_submit(&a[i], &cb, 1, NULL) != 0;
	}
	abi_sleep_ms(20);
	for (i = 0; i < 50; i++)
		bad += abi_run(&b, &other, 1) != 0;
	tap_eq(bad, 0, "two long jobs: 50 short jobs complete");
	tap_ok(!is_done(&a[0]) && !is_done(&a[1]), "two long jobs: both are still running");
	count = preempted(slow.fd);
	if (count == ~0ull)
		tap_skip("fdinfo does not report preemptions",
			 "two long jobs: the file is preempted at least 20 times");
	else
		tap_ok(count >= 20, "two long jobs: the file is preempted at least 20 times (%llu)",
		       (unsigned long long)count);
	for (i = 0; i < 2; i++)
		queue_done(&a[i]);
	queue_done(&b);
	ctx_free(&slow);
	ctx_free(&quick);
}

/* Adds to its own result, so that work done twice or not at all is detected. */
static void run_sum(struct ctx *c, struct abi_queue *q, uint8_t *result)
{
	struct drm_spyre_cb cb;
	uint16_t *mem = c->mem.map;
	uint32_t i;
	int ret;

	for (i = 0; i < WORK / 2; i++) {
		mem[i] = 0;
		mem[WORK / 2 + i] = abi_dl16((int)(i * 7 % 31) - 15);
	}
	c->args[0] = c->args[1] = VA;
	c->args[2] = VA + WORK;
	cb = work(c);
	ret = abi_run(q, &cb, 1);
	if (ret)
		tap_bail("the sum does not run: %s", strerror(-ret));
	memcpy(result, mem, WORK);
}

static void test_same_results(void)
{
	struct ctx sum = ctx_init((struct shape){ .cores = num_cores, .lx = LX,
						  .iters = iters(100) });
	struct ctx other = ctx_init((struct shape){ .cores = num_cores, .lx = LX });
	struct abi_queue q = abi_queue(sum.fd, 60000);
	struct abi_queue busy = queue_of(&other, DRM_SPYRE_PRIORITY_LOW, 60000);
	uint8_t *alone = malloc(WORK), *beside = malloc(WORK);
	struct drm_spyre_cb cb = work(&other);
	int i, same = 0;

	run_sum(&sum, &q, alone);
	abi_submit(&busy, &cb, 1, NULL);
	for (i = 0; i < 3; i++) {
		run_sum(&sum, &q, beside);
		same += !memcmp(alone, beside, WORK);
	}
	tap_eq(same, 3, "results: the same bytes with and without another context");
	tap_ok(alone[0] | alone[1], "results: not all zero");
	tap_ok(!is_done(&busy), "results: the other context was running throughout");
	free(alone);
	free(beside);
	queue_done(&q);
	queue_done(&busy);
	ctx_free(&sum);
	ctx_free(&other);
}

/* More jobs of hours than the card can run, all of one class, and one job of the other class. */
static void saturated_by(uint32_t class, const char *what)
{
	struct ctx hog = ctx_init((struct shape){ .cores = num_cores });
	struct ctx one = ctx_init((struct shape){ .cores = num_cores, .iters = iters(30) });
	struct abi_queue h[12], q = queue_of(&one, !class, 60000);
	struct drm_spyre_cb cb = work(&hog), other = work(&one);
	int i, bad = 0, done = 0;

	for (i = 0; i < 12; i++) {
		h[i] = queue_of(&hog, class, 60000);
		bad += abi_submit(&h[i], &cb, 1, NULL) != 0;
	}
	bad += abi_run(&q, &other, 1) != 0;
	for (i = 0; i < 12; i++) {
		done += is_done(&h[i]);
		queue_done(&h[i]);
	}
	tap_eq(bad, 0, "%s: a job of the other class succeeds", what);
	tap_eq(done, 0, "%s: the jobs of this class are still running", what);
	queue_done(&q);
	ctx_free(&hog);
	ctx_free(&one);
}

/* 64 queues of one file get no larger share of the card than one queue of another file. */
static void test_share_is_the_contexts(void)
{
	enum { QUEUES = 64, EACH = 4, JOBS = 40 };
	struct ctx many = ctx_init((struct shape){ .cores = num_cores, .iters = iters(4) });
	struct ctx one = ctx_init((struct shape){ .cores = num_cores, .iters = iters(4) });
	struct abi_queue m[QUEUES], q = abi_queue(one.fd, 60000);
	struct drm_spyre_cb cb = work(&many), other = work(&one);
	uint64_t before = 0, after = 0;
	int i, n, bad = 0;

	for (i = 0; i < QUEUES; i++)
		m[i] = queue_of(&many, DRM_SPYRE_PRIORITY_LOW, 60000);
	for (n = 0; n < EACH; n++)
		for (i = 0; i < QUEUES; i++)
			bad += abi_submit(&m[i], &cb, 1, NULL) != 0;
	for (i = 0; i < QUEUES; i++)
		before += abi_queue_query(many.fd, m[i].id).completed;
	for (i = 0; i < JOBS; i++)
		bad += abi_submit(&q, &other, 1, NULL) != 0;
	bad += abi_wait(&q, 100000) != 0;
	for (i = 0; i < QUEUES; i++) {
		after += abi_queue_query(many.fd, m[i].id).completed;
		queue_done(&m[i]);
	}
	tap_eq(bad, 0, "share: all jobs complete");
	/* Running jobs are not counted, so each side may have a few more. */
	tap_ok(after - before >= JOBS / 4 && after - before <= JOBS * 3,
	       "share: %d jobs of one queue during %llu of another file's 64 queues", JOBS,
	       (unsigned long long)(after - before));
	queue_done(&q);
	ctx_free(&many);
	ctx_free(&one);
}

/*
 * One file has many more jobs of hours with scratchpads, and a few without, than the
 * card has places, so that most of its claims cannot run. Another file's fills
 * complete all the same.
 */
static void test_crowd(uint32_t cores, const char *what)
{
	enum { CROWD = 200, PLAIN = 3, FILLS = 50 };
	struct ctx crowd = ctx_init((struct shape){ .cores = cores, .lx = LX, .sticks = 8 });
	int victim = abi_open();
	struct abi_buf mem = abi_buf(victim, 4 * MIB, DRM_SPYRE_BO_DEVICE, VA);
	struct abi_queue c[CROWD + PLAIN], q = abi_queue(victim, 60000);
	struct drm_spyre_cb cb = work(&crowd), fill;
	int i, bad = 0, done = 0, wrong = 0;

	for (i = 0; i < CROWD + PLAIN; i++) {
		if (i == CROWD)
			cb.program = program(crowd.fd, (struct shape){ .cores = cores,
								       .sticks = 8 });
		c[i] = queue_of(&crowd, DRM_SPYRE_PRIORITY_LOW, 60000);
		bad += abi_submit(&c[i], &cb, 1, NULL) != 0;
	}
	tap_eq(bad, 0, "%s: a job on each of %d queues of one file", what, CROWD + PLAIN);
	for (i = 0; i < FILLS && !bad; i++) {
		fill = abi_cb_fill32(VA, mem.size, i + 1);
		bad += abi_run(&q, &fill, 1) != 0;
		wrong += ((uint32_t *)mem.map)[mem.size / 4 - 1] != (uint32_t)i + 1;
	}
	tap_eq(bad, 0, "%s: %d fills of another file complete", what, i);
	tap_eq(wrong, 0, "%s: each fill has its value", what);
	for (i = 0; i < CROWD + PLAIN; i++) {
		done += is_done(&c[i]);
		queue_done(&c[i]);
	}
	tap_eq(done, 0, "%s: the file had all of its work left", what);
	queue_done(&q);
	munmap(mem.map, mem.size);
	close(victim);
	ctx_free(&crowd);
}

/* --- jobs that end while they wait for a time slice --- */
static void test_stop_in_the_queue(void)
{
	enum { FILES = 6 };
	struct ctx c[FILES];
	struct abi_queue q[FILES];
	struct drm_spyre_cb cb;
	uint64_t start, longest = 0;
	int i, bad = 0, cancelled = 0;

	for (i = 0; i < FILES; i++) {
		c[i] = ctx_init((struct shape){ .cores = num_cores, .lx = LX });
		q[i] = queue_of(&c[i], DRM_SPYRE_PRIORITY_LOW, 60000);
		cb = work(&c[i]);
		bad += abi_submit(&q[i], &cb, 1, NULL) != 0;
	}
	abi_sleep_ms(100);
	/* At most one is running. */
	for (i = 0; i < FILES; i++) {
		start = abi_now_ns();
		bad += abi_queue_destroy(c[i].fd, q[i].id) != 0;
		if (abi_now_ns() - start > longest)
			longest = abi_now_ns() - start;
		bad += abi_wait(&q[i], 10000) != 0;
		cancelled += abi_results(&q[i])->status == -ECANCELED;
		queue_done(&q[i]);
		ctx_free(&c[i]);
	}
	tap_eq(bad, 0, "stop: six jobs that share the card are destroyed");
	tap_eq(cancelled, FILES, "stop: all report ECANCELED");
	tap_ok(longest < MS(5000), "stop: QUEUE_DESTROY took at most %llu ms",
	       (unsigned long long)longest / 1000000);
}

/* The limit applies to the time in their own slices, and each job reaches it. */
static void test_limits(void)
{
	enum { FILES = 4, LIMIT_MS = 400 };
	struct ctx c[FILES], quick;
	struct abi_queue q[FILES], fine;
	struct drm_spyre_cb cb;
	uint64_t start = abi_now_ns(), ns;
	int i, bad = 0, late = 0;

	for (i = 0; i < FILES; i++) {
		c[i] = ctx_init((struct shape){ .cores = num_cores });
		q[i] = queue_of(&c[i], DRM_SPYRE_PRIORITY_LOW, LIMIT_MS);
	}
	quick = ctx_init((struct shape){ .cores = num_cores, .iters = iters(250) });
	/*
	 * A sixth of its limit in its own slices, but longer than the limit with
	 * those of the others.
	 */
	fine = queue_of(&quick, DRM_SPYRE_PRIORITY_LOW, 1500);
	for (i = 0; i < FILES; i++) {
		cb = work(&c[i]);
		bad += abi_submit(&q[i], &cb, 1, NULL) != 0;
	}
	cb = work(&quick);
	tap_ret(abi_run(&fine, &cb, 1), 0, "limits: a job below its limit succeeds");
	for (i = 0; i < FILES; i++) {
		bad += abi_wait(&q[i], 60000) != 0;
		late += abi_results(&q[i])->status == -ETIME;
	}
	ns = abi_now_ns() - start;
	for (i = 0; i < FILES; i++) {
		queue_done(&q[i]);
		ctx_free(&c[i]);
	}
	tap_eq(bad, 0, "limits: all long jobs end");
	tap_eq(late, FILES, "limits: all report ETIME");
	tap_ok(ns >= MS(FILES * LIMIT_MS),
	       "limits: each ran for its whole limit (%llu ms in total)",
	       (unsigned long long)ns / 1000000);
	queue_done(&fine);
	ctx_free(&quick);
}

/* --- many --- */
#define FILES 64
#define QUEUES 64

/* One job on each queue of a file, without results. */
static int submit_everywhere(struct ctx *c, uint32_t syncobj[QUEUES])
{
	struct drm_spyre_cb cb = work(c);
	struct drm_spyre_submit args;
	struct drm_spyre_sync done = { .flags = DRM_SPYRE_SYNC_SIGNAL };
	const bool high = abi_may_be_high();
	uint32_t id;
	int i, bad = 0;

	for (i = 0; i < QUEUES; i++) {
		syncobj[i] = done.handle = abi_syncobj(c->fd);
		bad += abi_queue_create(c->fd, high && i % 4 == 3, 60000, &id) != 0;
		args = (struct drm_spyre_submit){
			.queue_id = id,
			.cbs = { .stride = sizeof(cb), .count = 1, .array = PTR(&cb) },
			.syncs = { .stride = sizeof(done), .count = 1, .array = PTR(&done) },
		};
		bad += abi_ioctl(c->fd, DRM_IOCTL_SPYRE_SUBMIT, &args) != 0;
	}
	return bad;
}

static void test_many(void)
{
	static uint32_t syncobj[FILES][QUEUES];
	static struct ctx c[FILES];
	int i, bad = 0, waits = 0;

	for (i = 0; i < FILES; i++) {
		c[i] = ctx_init((struct shape){ .cores = 1 + i % num_cores, .iters = 1,
						.sticks = 8, .lx = i % 3 ? 0 : LX });
		bad += submit_everywhere(&c[i], syncobj[i]);
	}
	for (i = 0; i < FILES; i++) {
		waits += drmSyncobjWait(c[i].fd, syncobj[i], QUEUES,
					(int64_t)(abi_now_ns() + MS(150000)),
					DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL, NULL) != 0;
		ctx_free(&c[i]);
	}
	tap_eq(bad, 0, "many: %d files of %d queues, a job on each", FILES, QUEUES);
	tap_eq(waits, 0, "many: all fences signal");
}

int main(void)
{
	int watch = abi_open();
	uint64_t used = abi_memory(watch).used;

	calibrate();
	test_partition_arguments();
	test_partitions();
	test_short_beside_long();
	test_same_results();
	if (abi_may_be_high()) {
		saturated_by(DRM_SPYRE_PRIORITY_HIGH, "high class full");
		saturated_by(DRM_SPYRE_PRIORITY_LOW, "low class full");
	} else {
		tap_skip("the high class requires CAP_SYS_NICE", "high class full, low class full");
	}
	test_share_is_the_contexts();
	test_crowd(1, "crowd, one core each");
	test_crowd(num_cores, "crowd, all cores each");
	test_stop_in_the_queue();
	test_limits();
	test_many();
	tap_ok(abi_memory_settles(watch, used), "all memory is back");
	return tap_done();
}
