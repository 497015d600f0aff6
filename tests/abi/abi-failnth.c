/* SPDX-License-Identifier: MIT */
/*
 * Makes every call of the driver with its first allocation failing, then its
 * second, until it succeeds without a failure. Each failure returns an errno that
 * reports it, leaves nothing behind, and the next call works. Then four processes
 * work for a while with random failing allocations, while one is spared. Needs root
 * and a kernel with fault injection. ABI_SECONDS sets the duration of the last part
 * (8).
 */
#include "failnth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEBUGFS "/sys/kernel/debug/"
#define MOST 3000		/* allocations of one call */
#define PROCESSES 4u

static int fail_file;		/* /proc/thread-self/fail-nth */

static bool set(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Allocations that may sleep fail as well, without messages in the kernel log. */
static void configure(const char *probability)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bool copies = !strcmp(kinds[i], "fail_usercopy");
		const char *const values[][2] = {
			{ "verbose", "0" },
			{ "task-filter", "Y" },
			{ "interval", "1" },
			{ "times", "-1" },
			{ "probability", copies ? "0" : probability },
			{ "ignore-gfp-wait", "N" },
			{ "min-order", "0" },
		};
		size_t v;

		for (v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			snprintf(path, sizeof(path), DEBUGFS "%s/%s", kinds[i], values[v][0]);
			set(path, values[v][1]);
		}
	}
}

static void arm(unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(fail_file, text, n, 0) != n)
		tap_bail("fail-nth: %s", strerror(errno));
}

/* Returns true if the failure has happened. */
static bool disarm(void)
{
	char text[16] = "";
	bool happened;

	/* A failed copy to user space may be the copy requested here. */
	if (pread(fail_file, text, sizeof(text) - 1, 0) < 0)
		text[0] = 0;
	happened = !strtoul(text, NULL, 10);
	/* Writing 0 needs no allocation, but a copy from user space. */
	while (pwrite(fail_file, "0", 1, 0) != 1)
		;
	return happened;
}

/* -ENOSYS and similar: this driver does not have the call. */
static bool is_absent(int ret)
{
	return ret == -EINVAL || ret == -EOPNOTSUPP || ret == -ENOTTY || ret == -ENOSYS;
}

static bool is_plausible(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || ret == -EAGAIN;
}

static bool is_lost(const struct fail_call *f, int ret)
{
	return ret == -EFAULT && f->gives_number;
}

/* The numbers that the same call returned when it last succeeded. */
static void take_numbers(struct fail_ctx *c, const struct fail_ctx *first)
{
	c->handle = first->handle;
	c->file = first->file;
	c->imported = first->imported;
}

/* Makes one call with its @nth allocation failing; returns false if it has fewer. */
static bool one(struct fail_ctx *c, const struct fail_call *f, unsigned int nth, int *ret)
{
	static struct fail_ctx first;
	bool happened;

	c->round++;
	if (f->prepare)
		f->prepare(c);
	if (nth)
		arm(nth);
	*ret = f->call(c);
	happened = nth && disarm();
	if (!*ret)
		first = *c;
	else if (is_lost(f, *ret))
		take_numbers(c, &first);
	if (f->undo && (!*ret || is_lost(f, *ret)))
		f->undo(c);
	if (f->release)
		f->release(c);
	return happened;
}

static bool card_works(struct fail_ctx *c)
{
	struct drm_spyre_cb cb = abi_cb_fill32(FAIL_VA, PAGE, ~c->round);

	return !abi_run(&c->queue, &cb, 1) && *(uint32_t *)c->dev.map == ~c->round;
}

static void walk(struct fail_ctx *c, const struct fail_call *f)
{
	uint64_t used = abi_memory(c->fd).used;
	unsigned int nth, failed = 0, odd = 0, broken = 0;
	int ret;

	one(c, f, 0, &ret);
	if (is_absent(ret)) {
		tap_skip("not supported here", "%s", f->name);
		return;
	}
	if (!tap_ret(ret, 0, "%s without a failure", f->name))
		return;
	for (nth = 1; nth < MOST && one(c, f, nth, &ret); nth++) {
		failed += ret != 0;
		if (ret && !is_plausible(ret)) {
			odd++;
			tap_note("%s: allocation %u: %s", f->name, nth, strerror(-ret));
		}
		if (!card_works(c)) {
			broken++;
			tap_note("%s: after allocation %u the card does not work", f->name, nth);
		}
	}
	tap_ok(nth < MOST && !odd,
	       "%s: %u of %u injected failures reach the caller, all as errors of memory",
	       f->name, failed, nth - 1);
	tap_eq(broken, 0, "%s: the card works after each failure", f->name);
	one(c, f, 0, &ret);
	tap_ret(ret, 0, "%s works afterwards", f->name);
	tap_ok(abi_memory_settles(c->fd, used), "%s: no memory of the card is lost", f->name);
}

static void walk_all(struct fail_ctx *c, const struct fail_call *calls)
{
	for (; calls->name; calls++)
		walk(c, calls);
}

static struct fail_ctx start(void)
{
	struct abi_prog prog = abi_prog_add(2, FAIL_BYTES / STICK / 2);
	struct fail_ctx c = { .fd = abi_open(), .other = abi_open(),
			      .high = abi_may_be_high() };

	c.queue = abi_queue(c.fd, 60000);
	c.dev = abi_buf(c.fd, 3 * FAIL_BYTES, DRM_SPYRE_BO_DEVICE, FAIL_VA);
	c.host = abi_buf(c.fd, FAIL_BYTES, DRM_SPYRE_BO_HOST, 0);
	c.image = abi_prog_encode(&prog, &c.image_size);
	c.program = abi_prog_create(c.fd, &prog);
	c.user = aligned_alloc(PAGE, FAIL_BYTES);
	if (!c.user)
		tap_bail("no memory");
	memset(c.user, 7, FAIL_BYTES);
	return c;
}

static void stop(struct fail_ctx *c)
{
	abi_queue_free(&c->queue);
	munmap(c->dev.map, c->dev.size);
	munmap(c->host.map, c->host.size);
	close(c->other);
	close(c->fd);
	free(c->image);
	free(c->user);
}

void fail_renew(struct fail_ctx *c)
{
	const uint32_t round = c->round;

	stop(c);
	*c = start();
	c->round = round;
}

/* Results of the soak's processes, in shared memory. */
struct tally {
	atomic_uint calls, failed, odd, broken;
};

/* Makes one call with random failing allocations. */
static void soak_call(struct fail_ctx *c, const struct fail_call *f, struct tally *tally)
{
	int ret;

	c->round++;
	if (f->prepare)
		f->prepare(c);
	set("/proc/thread-self/make-it-fail", "1");
	ret = f->call(c);
	while (!set("/proc/thread-self/make-it-fail", "0"))
		;
	if (!ret && f->undo)
		f->undo(c);
	if (f->release)
		f->release(c);
	tally->calls++;
	tally->failed += ret != 0;
	if (ret && !is_plausible(ret) && !is_absent(ret)) {
		tally->odd++;
		tap_note("%s: %s", f->name, strerror(-ret));
	}
}

/* Makes all calls in turn until @end, on its own files. */
static void soak_process(uint64_t end, struct tally *tally)
{
	const struct fail_call *tables[] = { fail_memory_calls, fail_work_calls,
					     fail_uring_calls };
	struct fail_ctx c = start();
	const struct fail_call *f;
	unsigned int t;

	for (t = 0; abi_now_ns() < end; t = (t + 1) % 3)
		for (f = tables[t]; f->name && abi_now_ns() < end; f++)
			soak_call(&c, f, tally);
	tally->broken += !card_works(&c);
	stop(&c);
}

/* FNV-1a of a sum that the card computes in poisoned memory. */
static uint64_t checksum(struct fail_ctx *c)
{
	const uint64_t args[3] = { FAIL_VA, FAIL_VA + FAIL_BYTES, FAIL_VA + 2 * FAIL_BYTES };
	struct drm_spyre_cb cb = abi_cb_exec(c->program, args, 3);
	const uint8_t *out = c->dev.map;
	uint64_t sum = 0xcbf29ce484222325ull;
	uint32_t i;

	memset(c->dev.map, 0xee, FAIL_BYTES);
	if (abi_run(&c->queue, &cb, 1))
		return 0;
	for (i = 0; i < FAIL_BYTES; i++)
		sum = (sum ^ out[i]) * 0x100000001b3ull;
	return sum;
}

static void fill_operands(struct fail_ctx *c)
{
	uint16_t *in = (uint16_t *)((uint8_t *)c->dev.map + FAIL_BYTES);
	uint32_t i;

	for (i = 0; i < FAIL_BYTES; i++)
		in[i] = abi_dl16((int)(i % 509) - 254);
}

/*
 * Four processes make all calls while one percent of their allocations fails. This
 * process is spared, and its results are the same each time.
 */
static void soak(struct fail_ctx *c, unsigned int seconds)
{
	struct tally *tally = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t end = abi_now_ns() + seconds * 1000000000ull, used = abi_memory(c->fd).used, sum;
	unsigned int rounds = 0, wrong = 0, died = 0, i;
	int status;

	fill_operands(c);
	sum = checksum(c);
	configure("1");
	for (i = 0; i < PROCESSES; i++)
		if (!fork()) {
			soak_process(end, tally);
			fflush(stdout);
			_exit(0);
		}
	for (; abi_now_ns() < end; rounds++)
		wrong += checksum(c) != sum;
	while (wait(&status) > 0)
		died += !WIFEXITED(status) || WEXITSTATUS(status);
	configure("0");
	tap_note("%u calls in %u s, %u of them failed; %u results", tally->calls, seconds,
		 tally->failed, rounds);
	tap_eq(died, 0, "allocations fail at random: all processes exit normally");
	tap_eq(tally->odd, 0, "allocations fail at random: all errors report memory");
	tap_ok(tally->failed > 0, "allocations fail at random: some calls failed");
	tap_eq(tally->broken, 0, "allocations fail at random: the card works for each process");
	tap_ok(sum && rounds && !wrong,
	       "allocations fail at random: results of an unaffected process are right (%u wrong)",
	       wrong);
	tap_ok(abi_memory_settles(c->fd, used), "allocations fail at random: all memory is back");
	munmap(tally, PAGE);
}

int main(void)
{
	const char *seconds = getenv("ABI_SECONDS");
	struct fail_ctx c;
	int watch;

	watch = abi_open();
	fail_file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_file < 0 || access(DEBUGFS "failslab", W_OK))
		tap_skip_all("needs root and a kernel with CONFIG_FAILSLAB");
	configure("0");
	c = start();
	walk_all(&c, fail_memory_calls);
	walk_all(&c, fail_work_calls);
	walk_all(&c, fail_uring_calls);
	walk_all(&c, fail_reset_calls);
	soak(&c, seconds ? atoi(seconds) : 8);
	stop(&c);
	tap_ok(abi_memory_settles(watch, 0), "all memory is back once the file is closed");
	return tap_done();
}
