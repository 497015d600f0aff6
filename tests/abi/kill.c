// SPDX-License-Identifier: MIT
/*
 * Trouble: a job past its queue's limit kills that queue alone; destroying a
 * queue, closing the node and dying with work in flight all end cleanly.
 */
#include "tests/abi/abi.h"

#define VA PAGE
#define STICKS 1024u
#define BYTES (STICKS * 128u)
/* A legitimate program of minutes. */
#define LONG_TURNS 60000u

struct context {
	int fd;
	uint32_t program, result_bo, syncobj;
	struct drm_spyre_cb_result *results;
	uint64_t args[3];
};

static void context_open(struct context *c)
{
	struct image image;
	uint32_t bo;

	c->fd = node_open();
	bo = bo_create(c->fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE);
	need(!vm_bind(c->fd, DRM_SPYRE_VM_MAP, 0, bo, 0, VA, 3 * BYTES), "VM_BIND");
	image_add(&image, STICKS, LONG_TURNS);
	c->program = program_create(c->fd, &image);
	c->result_bo = bo_create(c->fd, PAGE, DRM_SPYRE_BO_HOST);
	c->results = bo_map(c->fd, c->result_bo, PAGE);
	c->syncobj = syncobj_create(c->fd);
	c->args[0] = VA;
	c->args[1] = VA + BYTES;
	c->args[2] = VA + 2 * BYTES;
}

static struct drm_spyre_cb long_cb(const struct context *c)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_EXEC, .program = c->program,
				      .num_args = 3, .args = (uintptr_t)c->args };
}

static struct drm_spyre_queue_query query(int fd, uint32_t queue)
{
	struct drm_spyre_queue_query q = { .queue_id = queue };

	need(!call(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &q), "QUEUE_QUERY");
	return q;
}

static void wait_running(const struct context *c, uint32_t queue)
{
	int i;

	/* No state says "running": give the engine time to begin. */
	for (i = 0; i < 50 && query(c->fd, queue).submitted; i++)
		usleep(4000);
}

static void test_timeout(void)
{
	struct context c;
	struct drm_spyre_cb cbs[2], stamp = { .type = DRM_SPYRE_CB_TIMESTAMP };
	struct drm_spyre_queue_query q;
	uint32_t bad, good, behind;
	uint64_t start = now_ns(), took;
	int ret;

	context_open(&c);
	bad = queue_create(c.fd, 0, 300);
	good = queue_create(c.fd, 0, 0);
	cbs[0] = long_cb(&c);
	cbs[1] = stamp;
	memset(c.results, 0, PAGE);
	ok(!submit(c.fd, bad, cbs, 2, c.result_bo, c.syncobj, 1), "a long job, limit 300 ms");
	behind = syncobj_create(c.fd);
	ok(!submit(c.fd, bad, &stamp, 1, 0, behind, 1), "a job behind it");
	ret = timeline_wait(c.fd, c.syncobj, 1, 20000);
	took = (now_ns() - start) / 1000000;
	ok(!ret && took >= 300, "it ends, after %llu ms", (unsigned long long)took);
	ok(c.results[0].state == DRM_SPYRE_CB_DONE && c.results[0].status == -ETIME,
	   "its result is ETIME (%d)", c.results[0].status);
	ok(c.results[1].state == DRM_SPYRE_CB_DONE && c.results[1].status == -ECANCELED,
	   "the control block behind it is cancelled (%d)", c.results[1].status);
	ok(!timeline_wait(c.fd, behind, 1, 20000), "so is the job behind it");
	q = query(c.fd, bad);
	ok(q.state == DRM_SPYRE_QUEUE_KILLED && q.error == -ETIME && q.submitted == 2 &&
	   q.completed == 2, "the queue is killed, error %d, %llu of %llu jobs done", q.error,
	   (unsigned long long)q.completed, (unsigned long long)q.submitted);
	ok(submit(c.fd, bad, &stamp, 1, 0, 0, 0) == -ECANCELED, "it takes no more work");
	ok(!submit_wait(c.fd, good, &stamp, 1, 0, c.syncobj, 2), "another queue still works");
	q = query(c.fd, good);
	ok(q.state == DRM_SPYRE_QUEUE_OK && !q.error && q.completed == 1, "and is fine");
	close(c.fd);
}

/* The shortest limit. */
static void test_short_timeout(void)
{
	struct context c;
	struct drm_spyre_cb cb;
	uint32_t queue;
	uint64_t start = now_ns(), took;
	int ret;

	context_open(&c);
	cb = long_cb(&c);
	queue = queue_create(c.fd, 0, 1);
	memset(c.results, 0, PAGE);
	ret = submit_wait(c.fd, queue, &cb, 1, c.result_bo, c.syncobj, 1);
	took = (now_ns() - start) / 1000000;
	ok(!ret && c.results[0].status == -ETIME && query(c.fd, queue).error == -ETIME,
	   "a limit of 1 ms ends a long job after %llu ms", (unsigned long long)took);
	close(c.fd);
}

/* Waiting for others is not the waiting job's fault. */
static void test_patience(void)
{
	struct context c;
	/* enough to need a worker */
	struct drm_spyre_cb cb, fill = { .type = DRM_SPYRE_CB_FILL, .dst = VA, .size = 3 * BYTES,
					 .pattern_size = 1 };
	uint32_t queues[10], i;
	bool killed = false;

	context_open(&c);
	cb = long_cb(&c);
	for (i = 0; i < 10; i++) {
		queues[i] = queue_create(c.fd, 0, 200);
		submit(c.fd, queues[i], &cb, 1, 0, c.syncobj, i + 1);
	}
	queues[0] = queue_create(c.fd, 0, 1);
	submit(c.fd, queues[0], &fill, 1, 0, c.syncobj, 11);
	ok(!timeline_wait(c.fd, c.syncobj, 11, 60000), "a short job behind ten long ones ends");
	killed = query(c.fd, queues[0]).error;
	ok(!killed, "and was not killed for waiting longer than its limit");
	close(c.fd);
}

static void test_priority(void)
{
	struct context c;
	/* enough to need a worker */
	struct drm_spyre_cb cb, fill = { .type = DRM_SPYRE_CB_FILL, .dst = VA, .size = 3 * BYTES,
					 .pattern_size = 1 };
	uint32_t low, high, i;

	context_open(&c);
	cb = long_cb(&c);
	/* Keep every worker busy, then queue low before high. */
	for (i = 0; i < 8; i++)
		submit(c.fd, queue_create(c.fd, 0, 300), &cb, 1, 0, 0, 0);
	low = queue_create(c.fd, 0, 0);
	high = queue_create(c.fd, 1, 0);
	usleep(20000);
	memset(c.results, 0, PAGE);
	submit(c.fd, low, &fill, 1, c.result_bo, c.syncobj, 1);
	{
		struct drm_spyre_sync sync = { .handle = c.syncobj, .point = 2,
					       .flags = DRM_SPYRE_SYNC_SIGNAL };
		struct drm_spyre_submit s = {
			.queue_id = high,
			.cbs = { .stride = sizeof(fill), .count = 1, .array = (uintptr_t)&fill },
			.syncs = { .stride = sizeof(sync), .count = 1, .array = (uintptr_t)&sync },
			.result_handle = c.result_bo, .result_offset = 64,
		};

		need(!call(c.fd, DRM_IOCTL_SPYRE_SUBMIT, &s), "SUBMIT");
	}
	timeline_wait(c.fd, c.syncobj, 2, 60000);
	ok(c.results[1].start_ns && c.results[1].start_ns < c.results[0].start_ns,
	   "the high class starts before the low one");
	close(c.fd);
}

static void test_destroy(void)
{
	struct context c;
	struct drm_spyre_cb cb, stamp = { .type = DRM_SPYRE_CB_TIMESTAMP };
	struct drm_spyre_queue_destroy d;
	uint32_t behind;
	uint64_t start;

	context_open(&c);
	d = (struct drm_spyre_queue_destroy){ .queue_id = queue_create(c.fd, 0, 60000) };
	cb = long_cb(&c);
	memset(c.results, 0, PAGE);
	behind = syncobj_create(c.fd);
	submit(c.fd, d.queue_id, &cb, 1, c.result_bo, c.syncobj, 1);
	submit(c.fd, d.queue_id, &stamp, 1, 0, behind, 1);
	wait_running(&c, d.queue_id);
	start = now_ns();
	gives(0, c.fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &d, "QUEUE_DESTROY with work in flight");
	ok(now_ns() - start < 5000000000ull, "does not wait for its end (%llu ms)",
	   (unsigned long long)(now_ns() - start) / 1000000);
	need(!timeline_wait(c.fd, c.syncobj, 1, 10000), "wait");
	ok(c.results[0].status == -ECANCELED,
	   "the running job is cancelled (%d)", c.results[0].status);
	ok(!timeline_wait(c.fd, behind, 1, 10000), "and so is the one behind it");
	close(c.fd);
}

/* A queue that waits for a fence that is far away is destroyed at once. */
static void test_destroy_waiting(void)
{
	struct context c, other;
	struct drm_spyre_cb cb, stamp = { .type = DRM_SPYRE_CB_TIMESTAMP };
	struct drm_spyre_sync syncs[2];
	struct drm_spyre_submit s = { 0 };
	struct drm_spyre_queue_destroy d;
	uint64_t start;

	context_open(&c);
	context_open(&other);
	cb = long_cb(&c);
	submit(c.fd, queue_create(c.fd, 0, 2000), &cb, 1, 0, c.syncobj, 1);
	d = (struct drm_spyre_queue_destroy){ .queue_id = queue_create(c.fd, 0, 0) };
	syncs[0] = (struct drm_spyre_sync){ .handle = c.syncobj, .point = 1 };
	syncs[1] = (struct drm_spyre_sync){ .handle = c.syncobj, .point = 2,
					    .flags = DRM_SPYRE_SYNC_SIGNAL };
	s.queue_id = d.queue_id;
	s.cbs = (struct drm_spyre_array){ sizeof(stamp), 1, (uintptr_t)&stamp };
	s.syncs = (struct drm_spyre_array){ sizeof(syncs[0]), 2, (uintptr_t)syncs };
	s.result_handle = c.result_bo;
	memset(c.results, 0, PAGE);
	gives(0, c.fd, DRM_IOCTL_SPYRE_SUBMIT, &s, "a job that waits for a long one");
	start = now_ns();
	gives(0, c.fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &d, "QUEUE_DESTROY of its queue");
	ok(now_ns() - start < 900000000ull, "is done in %llu ms",
	   (unsigned long long)(now_ns() - start) / 1000000);
	need(!timeline_wait(c.fd, c.syncobj, 2, 20000), "wait");
	ok(c.results[0].status == -ECANCELED,
	   "the job is cancelled (%d)", c.results[0].status);
	close(other.fd);
	close(c.fd);
}

static void test_close(void)
{
	struct context c;
	struct drm_spyre_cb cb;
	uint64_t start;
	int i;

	for (i = 0; i < 5; i++) {
		context_open(&c);
		cb = long_cb(&c);
		submit(c.fd, queue_create(c.fd, 0, 60000), &cb, 1, c.result_bo, c.syncobj, 1);
		submit(c.fd, queue_create(c.fd, 1, 60000), &cb, 1, c.result_bo, c.syncobj, 2);
		if (i & 1)
			usleep(20000);
		munmap(c.results, PAGE);
		start = now_ns();
		close(c.fd);
	}
	ok(now_ns() - start < 5000000000ull, "close with work in flight takes %llu ms",
	   (unsigned long long)(now_ns() - start) / 1000000);
}

static void test_sigkill(void)
{
	struct context c;
	struct drm_spyre_cb cb, stamp = { .type = DRM_SPYRE_CB_TIMESTAMP };
	uint64_t start;
	int i, status = 0, ends[2];
	char byte;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		need(!pipe(ends), "pipe");
		pid = fork();
		if (!pid) {
			context_open(&c);
			cb = long_cb(&c);
			submit(c.fd, queue_create(c.fd, 0, 60000), &cb, 1, c.result_bo, c.syncobj, 1);
			byte = 1;
			if (write(ends[1], &byte, 1) != 1)
				_exit(1);
			timeline_wait(c.fd, c.syncobj, 1, 60000);
			_exit(2);
		}
		need(read(ends[0], &byte, 1) == 1, "read");
		start = now_ns();
		kill(pid, 9);
		waitpid(pid, &status, 0);
		close(ends[0]);
		close(ends[1]);
	}
	ok(WIFSIGNALED(status) && now_ns() - start < 5000000000ull,
	   "a process that is killed with work in flight is gone in %llu ms",
	   (unsigned long long)(now_ns() - start) / 1000000);
	context_open(&c);
	ok(!submit_wait(c.fd, queue_create(c.fd, 0, 0), &stamp, 1, 0, c.syncobj, 1),
	   "the card works for the next");
	close(c.fd);
}

/* Fences may outlive all that made them. */
static void test_exported_fence(void)
{
	struct context c;
	struct drm_spyre_cb stamp = { .type = DRM_SPYRE_CB_TIMESTAMP };
	struct drm_syncobj_handle out;
	char path[64], text[256];
	uint32_t binary;
	int fd;

	context_open(&c);
	binary = syncobj_create(c.fd);
	submit(c.fd, queue_create(c.fd, 0, 0), &stamp, 1, 0, binary, 0);
	out = (struct drm_syncobj_handle){ .handle = binary,
		.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE };
	gives(0, c.fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &out, "export a fence as a sync file");
	close(c.fd);
	usleep(100000);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", out.fd);
	fd = open(path, O_RDONLY);
	ok(fd >= 0 && read(fd, text, sizeof(text)) > 0, "it can be looked at after close");
	close(fd);
	close(out.fd);
}

int main(void)
{
	test_timeout();
	test_short_timeout();
	test_patience();
	test_priority();
	test_destroy();
	test_destroy_waiting();
	test_close();
	test_sigkill();
	test_exported_fence();
	return done_testing();
}
