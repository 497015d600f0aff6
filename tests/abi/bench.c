// SPDX-License-Identifier: MIT
/*
 * What a SUBMIT costs against an ioctl that does nothing, in one run.
 *
 *	bench [ROUNDS]
 */
#include "tests/abi/abi.h"

#define REPEATS 7
#define BURST 8

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, REPEATS, sizeof(*values), compare);
	return values[REPEATS / 2];
}

static struct drm_spyre_cb cbs[64];

/*
 * Time per SUBMIT of @num control blocks.  In bursts, because the kernel walks
 * all unreached points of a timeline whenever one is added; the waits between
 * them do not count.
 */
static double burst_ns(int fd, uint32_t queue, uint32_t syncobj, uint32_t result_bo,
		       uint64_t *point, uint32_t num, int rounds)
{
	uint64_t spent = 0, start;
	int i, j;

	for (i = 0; i < rounds; i += BURST) {
		start = now_ns();
		for (j = 0; j < BURST; j++)
			need(!submit(fd, queue, cbs, num, result_bo, syncobj, ++*point), "SUBMIT");
		spent += now_ns() - start;
		need(!timeline_wait(fd, syncobj, *point, 60000), "wait");
	}
	return (double)spent / i;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, fd = node_open(), r, i;
	uint32_t queue = queue_create(fd, 0, 0), syncobj = syncobj_create(fd);
	uint32_t result_bo = bo_create(fd, PAGE, DRM_SPYRE_BO_HOST);
	double empty[REPEATS], one[REPEATS], batch[REPEATS], trip[REPEATS];
	uint64_t point = 0, start;

	for (i = 0; i < 64; i++)
		cbs[i].type = DRM_SPYRE_CB_TIMESTAMP;
	for (r = 0; r < REPEATS; r++) {
		start = now_ns();
		for (i = 0; i < rounds; i++) {
			struct drm_spyre_dev_query q = { 0 };

			need(!call(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &q), "DEV_QUERY");
		}
		empty[r] = (double)(now_ns() - start) / rounds;

		one[r] = burst_ns(fd, queue, syncobj, result_bo, &point, 1, rounds);
		batch[r] = burst_ns(fd, queue, syncobj, result_bo, &point, 64, rounds / 16) / 64;

		start = now_ns();
		for (i = 0; i < rounds / 10; i++)
			need(!submit_wait(fd, queue, cbs, 1, result_bo, syncobj, ++point), "SUBMIT");
		trip[r] = (double)(now_ns() - start) / (rounds / 10);
	}
	printf("empty_ioctl_ns %.0f\n", median(empty));
	printf("submit_timestamp_ns %.0f\n", median(one));
	printf("submit_timestamp_batch64_ns_per_cb %.0f\n", median(batch));
	printf("submit_and_wait_ns %.0f\n", median(trip));
	printf("submit_over_empty %.2f\n", median(one) / median(empty));
	close(fd);
	return 0;
}
