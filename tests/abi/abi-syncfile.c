/* SPDX-License-Identifier: MIT */
/* The card's fences as sync_files and eventfds, and other drivers' fences as waits. */
#include "fence.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/sync_file.h>
#include <xf86drm.h>

#define NONE ((struct drm_spyre_sync){ 0 })

/* The kernel's sw_sync: a fence that the test signals. */
struct sw_sync_create {
	uint32_t value;
	char name[32];
	int32_t fence;
};
#define SW_SYNC_CREATE _IOWR('W', 0, struct sw_sync_create)
#define SW_SYNC_INC _IOW('W', 1, uint32_t)

static int merge(int x, int y)
{
	struct sync_merge_data data = { .name = "both", .fd2 = y };

	return ioctl(x, SYNC_IOC_MERGE, &data) ? -errno : data.fence;
}

/* A sync_file is imported into a syncobj to wait for it. */
static uint32_t import(int fd, int file)
{
	uint32_t handle = abi_syncobj(fd);

	if (drmSyncobjImportSyncFile(fd, handle, file))
		tap_bail("SYNCOBJ_FD_TO_HANDLE: %s", strerror(errno));
	return handle;
}

static int submit_stamp(struct abi_queue *q, struct drm_spyre_sync a, struct drm_spyre_sync b)
{
	struct drm_spyre_cb stamp = abi_cb_timestamp();

	return abi_submit_sync(q, &stamp, 1, a, b);
}

static void test_export(int fd, struct abi_queue *q)
{
	struct { struct sync_file_info info; struct sync_fence_info fence[4]; } data;
	uint32_t s = abi_syncobj(fd);
	int file = -1;

	tap_ok(drmSyncobjExportSyncFile(fd, s, &file) && errno == EINVAL,
	       "export: a syncobj without a fence gives EINVAL");
	tap_ret(submit_stamp(q, abi_sync_signal(s, 0), NONE), 0,
		"export: a submission signals the syncobj");
	file = abi_sync_file(fd, s);
	tap_ok(abi_sync_file_poll(file, 10000), "export: poll reports it");
	memset(&data, 0, sizeof(data));
	data.info.num_fences = 4;
	data.info.sync_fence_info = PTR(data.fence);
	tap_ret(ioctl(file, SYNC_IOC_FILE_INFO, &data.info) ? -errno : 0, 0, "export: FILE_INFO");
	tap_eq(data.info.num_fences, 1, "export: one fence");
	tap_ok(data.info.status == 1 && data.fence[0].status == 1, "export: its status is success");
	tap_ok(!strcmp(data.fence[0].driver_name, "spyre_vdev") &&
	       !strcmp(data.fence[0].obj_name, "queue"), "export: names of driver and timeline");
	tap_ok(data.fence[0].timestamp_ns && data.fence[0].timestamp_ns <= abi_now_ns(),
	       "export: time of the signal");
	close(file);
	drmSyncobjDestroy(fd, s);
}

static void test_error(int fd, struct abi_queue *q)
{
	struct abi_gate gate = abi_gate();
	uint32_t in = abi_gate_syncobj(&gate, fd);
	int bad = abi_sync_file(fd, in), good, both;
	uint32_t s = abi_syncobj(fd), merged;

	submit_stamp(q, abi_sync_signal(s, 0), NONE);
	abi_wait(q, 10000);
	good = abi_sync_file(fd, s);
	both = merge(good, bad);
	tap_ok(both >= 0, "merge: a signalled and an unsignalled sync_file");
	tap_eq(abi_sync_file_status(bad), 0, "error: not signalled yet");
	tap_ok(!abi_sync_file_poll(both, 20), "merge: the merged sync_file is not signalled");
	merged = import(fd, both);
	tap_ret(submit_stamp(q, abi_sync_wait(merged, 0), NONE), 0,
		"merge: the merged sync_file as a wait");
	tap_ret(abi_wait(q, 20), -ETIME, "merge: the work waits for it");
	abi_gate_open(&gate);
	tap_ok(abi_sync_file_poll(bad, 10000), "error: a cancelled job's fence signals");
	tap_ret(abi_sync_file_status(bad), -ECANCELED, "error: the fence carries ECANCELED");
	tap_ok(abi_sync_file_poll(both, 10000), "merge: the merged sync_file signals");
	tap_ret(abi_sync_file_status(both), -ECANCELED, "merge: its status is the error");
	tap_ret(abi_wait(q, 10000), 0, "merge: the waiting work runs");
	tap_ret(abi_results(q)->status, 0,
		"merge: it succeeds, since errors of waits are not passed on");
	tap_eq(abi_sync_file_status(good), 1, "merge: the first sync_file is unchanged");
	close(good);
	close(bad);
	close(both);
	drmSyncobjDestroy(fd, in);
	drmSyncobjDestroy(fd, s);
	drmSyncobjDestroy(fd, merged);
	abi_gate_free(&gate);
}

/* A fence is passed to another file and outlives its own. */
static void test_other_file(int fd, struct abi_queue *q)
{
	int other = abi_open(), file;
	struct abi_queue theirs = abi_queue(other, 0);
	uint32_t s = abi_syncobj(other), in;

	tap_ret(submit_stamp(&theirs, abi_sync_signal(s, 0), NONE), 0,
		"other file: a job that signals");
	file = abi_sync_file(other, s);
	in = import(fd, file);
	tap_ret(submit_stamp(q, abi_sync_wait(in, 0), NONE), 0,
		"other file: a job that waits for it");
	munmap(theirs.results.map, theirs.results.size);
	close(other);
	tap_ret(abi_wait(q, 10000), 0, "other file: closing the signalling file ends the wait");
	tap_ok(abi_sync_file_poll(file, 5000), "other file: the sync_file outlives the file");
	tap_ok(abi_sync_file_status(file), "other file: its status is that of the job");
	close(file);
	drmSyncobjDestroy(fd, in);
}

static bool same_card(int a, int b)
{
	struct drm_spyre_card_info card[2] = { 0 };
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD,
					     .size = sizeof(card[0]) };

	query.pointer = PTR(&card[0]);
	if (abi_ioctl(a, DRM_IOCTL_SPYRE_DEV_QUERY, &query))
		tap_bail("DEV_QUERY");
	query.pointer = PTR(&card[1]);
	query.size = sizeof(card[1]);
	return abi_ioctl(b, DRM_IOCTL_SPYRE_DEV_QUERY, &query) ||
	       !memcmp(card[0].uuid, card[1].uuid, sizeof(card[0].uuid));
}

/* Opens a file of a card other than @fd's; -1 if there is none. */
static int other_card(int fd)
{
	char node[32];
	int i, other;

	for (i = 0; i < 16; i++) {
		snprintf(node, sizeof(node), "/dev/accel/accel%d", i);
		other = open(node, O_RDWR | O_CLOEXEC);
		if (other >= 0 && !same_card(fd, other))
			return other;
		if (other >= 0)
			close(other);
	}
	return -1;
}

/* The schedulers of two cards are independent: the other's fence is a foreign one. */
static void test_other_card(int fd, struct abi_queue *q)
{
	struct abi_prog p = abi_prog_long();
	int other = other_card(fd), file;
	struct drm_spyre_cb cb;
	struct abi_queue theirs;
	struct abi_buf mem;
	uint32_t program, out, in;
	uint64_t args[3];

	if (other < 0) {
		tap_skip("needs a second card (cards=2)", "fence of another card");
		return;
	}
	theirs = abi_queue(other, 60000);
	mem = abi_buf(other, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, 256 * MIB);
	program = abi_prog_create(other, &p);
	for (int i = 0; i < 3; i++)
		args[i] = mem.va + i * ABI_LONG_BYTES;
	cb = abi_cb_exec(program, args, 3);
	out = abi_syncobj(other);
	tap_ret(abi_submit_sync(&theirs, &cb, 1, abi_sync_signal(out, 0), NONE), 0,
		"other card: work for hours");
	file = abi_sync_file(other, out);
	in = import(fd, file);
	tap_ret(submit_stamp(q, abi_sync_wait(in, 0), NONE), 0,
		"other card: its fence as a wait of this card");
	tap_ret(abi_wait(q, 100), -ETIME, "other card: the work of this card waits");
	abi_queue_destroy(other, theirs.id);
	tap_ret(abi_wait(q, 10000), 0, "other card: the end of that job ends the wait");
	tap_ret(abi_results(q)->status, 0, "other card: its error does not fail this card's work");
	tap_ret(abi_sync_file_status(file), -ECANCELED, "other card: the fence carries the error");
	close(file);
	drmSyncobjDestroy(fd, in);
	munmap(theirs.results.map, theirs.results.size);
	abi_buf_free(other, &mem);
	close(other);
}

#ifndef DRM_IOCTL_SYNCOBJ_EVENTFD	/* missing in older libdrm */
struct drm_syncobj_eventfd {
	__u32 handle;
	__u32 flags;
	__u64 point;
	__s32 fd;
	__u32 pad;
};
#define DRM_IOCTL_SYNCOBJ_EVENTFD DRM_IOWR(0xcf, struct drm_syncobj_eventfd)
#endif

static int event_register(int fd, uint32_t handle, uint64_t point, int event, uint32_t flags)
{
	struct drm_syncobj_eventfd args = {
		.handle = handle, .flags = flags, .point = point, .fd = event,
	};

	return abi_ioctl(fd, DRM_IOCTL_SYNCOBJ_EVENTFD, &args);
}

static uint64_t event_count(int event, int ms)
{
	struct pollfd fds = { .fd = event, .events = POLLIN };
	uint64_t count;

	if (poll(&fds, 1, ms) != 1 || read(event, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

static void test_eventfd(int fd, struct abi_queue *q)
{
	const uint64_t big = (1ull << 32) + 7;
	uint32_t t = abi_syncobj(fd);
	int event = eventfd(0, EFD_CLOEXEC);

	tap_ret(event_register(fd, t, big, event, 0), 0,
		"eventfd: for a point beyond 2^32 that has no fence yet");
	tap_ret(submit_stamp(q, abi_sync_signal(t, 7), NONE), 0, "eventfd: signal point 7");
	abi_wait(q, 10000);
	tap_eq(event_count(event, 50), 0, "eventfd: does not fire for point 2^32 + 7");
	tap_ret(submit_stamp(q, abi_sync_signal(t, big), NONE), 0, "eventfd: signal 2^32 + 7");
	tap_eq(event_count(event, 10000), 1, "eventfd: fires");
	tap_ret(event_register(fd, t, big, event, 0), 0, "eventfd: for a point that is reached");
	tap_eq(event_count(event, 10000), 1, "eventfd: fires at once");
	tap_ret(event_register(fd, t, big, event, 8), -EINVAL, "eventfd: unknown flag");
	tap_ret(event_register(fd, NEVER, 1, event, 0), -ENOENT, "eventfd: unknown syncobj");
	tap_ret(event_register(fd, t, big + 1, event,
			       DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE), 0,
		"eventfd: for a fence to be available");
	tap_ret(submit_stamp(q, abi_sync_signal(t, big + 1), NONE), 0,
		"eventfd: a fence is submitted");
	tap_eq(event_count(event, 10000), 1, "eventfd: fires");
	abi_wait(q, 10000);
	close(event);
	drmSyncobjDestroy(fd, t);
}

/* SUBMIT never waits for a fence to be created; the core's wait does if requested. */
static void test_wait_for_submit(int fd, struct abi_queue *q)
{
	const uint32_t flag = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
	uint32_t t = abi_syncobj(fd);
	uint64_t point = (1ull << 40) + 1, start = abi_now_ns();

	tap_ret(submit_stamp(q, abi_sync_wait(t, point), NONE), -EINVAL,
		"no fence yet: SUBMIT is refused");
	tap_ok(abi_now_ns() - start < 1000000000ull, "no fence yet: SUBMIT returns at once");
	tap_ok(drmSyncobjTimelineWait(fd, &t, &point, 1, (int64_t)abi_now_ns() + 20000000, 0,
				      NULL) && errno == EINVAL,
	       "no fence yet: TIMELINE_WAIT gives EINVAL");
	tap_ok(drmSyncobjTimelineWait(fd, &t, &point, 1, (int64_t)abi_now_ns() + 20000000, flag,
				      NULL) && errno == ETIME,
	       "no fence yet: with WAIT_FOR_SUBMIT it waits for a submission");
	tap_ret(submit_stamp(q, abi_sync_signal(t, point), NONE), 0,
		"no fence yet: a submission provides it");
	tap_ok(!drmSyncobjTimelineWait(fd, &t, &point, 1, (int64_t)abi_now_ns() + 10000000000,
				       flag, NULL), "no fence yet: the wait ends");
	tap_ret(submit_stamp(q, abi_sync_wait(t, point - 1), NONE), 0,
		"a point below one that has a fence has that fence");
	tap_ret(submit_stamp(q, abi_sync_wait(t, 1), NONE), 0,
		"a wait for point 1, far below it, is accepted");
	tap_ret(abi_wait(q, 10000), 0, "it completes");
	drmSyncobjDestroy(fd, t);
}

static int sw_sync_fence(int timeline, uint32_t value)
{
	struct sw_sync_create args = { .value = value, .name = "foreign" };

	if (ioctl(timeline, SW_SYNC_CREATE, &args))
		tap_bail("SW_SYNC_IOC_CREATE_FENCE: %s", strerror(errno));
	return args.fence;
}

static void test_foreign(int fd, struct abi_queue *q)
{
	const char *path = "/sys/kernel/debug/sync/sw_sync";
	int timeline = open(path, O_RDWR | O_CLOEXEC), other, file;
	struct drm_spyre_memory_info before;
	struct abi_buf buf;
	struct abi_queue theirs;
	uint32_t in, one = 1;
	struct drm_spyre_cb fill;

	if (timeline < 0) {
		tap_skip("needs CONFIG_SW_SYNC, debugfs and root", "foreign fence");
		return;
	}
	file = sw_sync_fence(timeline, 1);
	in = import(fd, file);
	close(file);
	tap_ret(submit_stamp(q, abi_sync_wait(in, 0), NONE), 0,
		"foreign: a foreign fence as a wait");
	tap_ret(abi_wait(q, 50), -ETIME, "foreign: the work waits for it");
	ioctl(timeline, SW_SYNC_INC, &one);
	tap_ret(abi_wait(q, 10000), 0, "foreign: its signal ends the wait");
	drmSyncobjDestroy(fd, in);

	/* A fence that does not signal before the file is closed. */
	before = abi_memory(fd);
	other = abi_open();
	theirs = abi_queue(other, 0);
	buf = abi_buf(other, MIB, DRM_SPYRE_BO_DEVICE, 256 * MIB);
	file = sw_sync_fence(timeline, 100);
	in = import(other, file);
	fill = abi_cb_fill32(buf.va, MIB, 1);
	tap_ret(abi_submit_sync(&theirs, &fill, 1, abi_sync_wait(in, 0), NONE), 0,
		"foreign, unsignalled: a foreign fence as a wait");
	munmap(theirs.results.map, theirs.results.size);
	munmap(buf.map, MIB);
	close(other);
	tap_ret(submit_stamp(q, NONE, NONE) ?: abi_wait(q, 10000), 0,
		"foreign, unsignalled: after close() other files' work completes");
	/*
	 * Its timeline signals the remaining fences with an error. The kernel does
	 * so without a reference, under the lock that the fence's release takes: it
	 * must not be released there.
	 */
	close(timeline);
	tap_ok(abi_memory_settles(fd, before.used),
	       "foreign, unsignalled: once the fence ends all memory is back");
	close(file);
}

int main(void)
{
	int fd = abi_open();
	struct abi_queue q = abi_queue(fd, 0);

	test_export(fd, &q);
	test_error(fd, &q);
	test_other_file(fd, &q);
	test_other_card(fd, &q);
	test_eventfd(fd, &q);
	test_wait_for_submit(fd, &q);
	test_foreign(fd, &q);
	abi_queue_free(&q);
	close(fd);
	return tap_done();
}
