// SPDX-License-Identifier: MIT
/*
 * The SUBMIT ioctl of spyre_vdev.ko against one that does nothing (DEV_QUERY
 * that only asks for a size), straight on the node: the way in and out of the
 * kernel is the same, the rest is what a submission costs its caller.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <xf86drm.h>

#include <uapi/drm/spyre_accel.h>

/* Fewer than a queue takes, so that no SUBMIT waits for space. */
#define BURST 32

struct submit {
	int fd;
	uint32_t queue, timeline;
	uint64_t point;
	uint32_t cbs;		/* control blocks of one submission */
	struct drm_spyre_cb cb[64];
};

static bool failed(int result, const char *what)
{
	if (!result)
		return false;
	fprintf(stderr, "spyre-bench: %s: %s\n", what, strerror(errno));
	return true;
}

static bool submit_once(struct submit *s, struct drm_spyre_sync *sync)
{
	struct drm_spyre_submit submit = {
		.queue_id = s->queue,
		.cbs = { sizeof(s->cb[0]), s->cbs, (uintptr_t)s->cb },
		.syncs = { sizeof(*sync), sync ? 1 : 0, (uintptr_t)sync },
	};

	return !failed(drmIoctl(s->fd, DRM_IOCTL_SPYRE_SUBMIT, &submit), "SUBMIT");
}

static bool wait_point(struct submit *s)
{
	return !failed(drmSyncobjTimelineWait(s->fd, &s->timeline, &s->point, 1, INT64_MAX,
					      DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL, NULL),
		       "waiting for the timeline");
}

static double run_submit(void *state)
{
	struct submit *s = state;
	struct drm_spyre_sync sync = {
		.handle = s->timeline, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = ++s->point,
	};
	const double start = bench_now();
	double took;

	for (int i = 0; i < BURST - 1; i++) {
		if (!submit_once(s, NULL))
			return -1;
	}
	took = (bench_now() - start) / (BURST - 1);
	/* Not measured: the last one tells when the queue is empty again. */
	return submit_once(s, &sync) && wait_point(s) ? took : -1;
}

static double run_round_trip(void *state)
{
	struct submit *s = state;
	const double start = bench_now();

	for (int i = 0; i < BURST; i++) {
		struct drm_spyre_sync sync = {
			.handle = s->timeline, .flags = DRM_SPYRE_SYNC_SIGNAL,
			.point = ++s->point,
		};

		if (!submit_once(s, &sync) || !wait_point(s))
			return -1;
	}
	return (bench_now() - start) / BURST;
}

static double run_empty(void *state)
{
	struct submit *s = state;
	const double start = bench_now();

	for (int i = 0; i < 1000; i++) {
		struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD };

		if (failed(drmIoctl(s->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query), "DEV_QUERY"))
			return -1;
	}
	return (bench_now() - start) / 1000;
}

static bool open_node(struct submit *s, const char *node)
{
	struct drm_spyre_queue_create queue = { .priority = DRM_SPYRE_PRIORITY_LOW };

	s->fd = open(node, O_RDWR | O_CLOEXEC);
	if (s->fd < 0) {
		fprintf(stderr, "spyre-bench: cannot open %s: %s\n", node, strerror(errno));
		return false;
	}
	if (failed(drmIoctl(s->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &queue), "QUEUE_CREATE") ||
	    failed(drmSyncobjCreate(s->fd, 0, &s->timeline), "creating a timeline"))
		return false;
	s->queue = queue.queue_id;
	for (int i = 0; i < 64; i++)
		s->cb[i].type = DRM_SPYRE_CB_TIMESTAMP;
	return true;
}

bool bench_submit(struct bench_report *report, const struct bench_options *options)
{
	static const struct {
		const char *name;
		double (*run)(void *state);
		uint32_t cbs;
	} kind[] = {
		{ "VM: SUBMIT of 1 control block", run_submit, 1 },
		{ "VM: SUBMIT of 64 control blocks", run_submit, 64 },
		{ "VM: SUBMIT of 1 + wait", run_round_trip, 1 },
	};
	struct submit s = { .fd = -1 };
	bool ok = open_node(&s, options->node);

	for (int i = 0; ok && i < 3; i++) {
		const struct bench_pair pair = { kind[i].run, run_empty, &s, 0 };
		struct bench_result result = { .unit = "us", .peer = "empty ioctl (DEV_QUERY)" };

		s.cbs = kind[i].cbs;
		snprintf(result.name, sizeof(result.name), "%s", kind[i].name);
		ok = bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_time(report, &result, 1e6);
	}
	if (s.fd >= 0)
		close(s.fd);
	return ok;
}
