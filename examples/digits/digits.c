// SPDX-License-Identifier: MIT
/*
 * Classifies the held-out third of the UCI handwritten digits on a Spyre card.
 * Every tensor operation is an SDSC bundle that is written, loaded and launched
 * here through libspyre's public interface; the arg-max is done on the host.
 */
#include "config.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "half.h"
#include "network.h"
#include "progress.h"
#include "reference.h"

/* Below these the program fails. DL16 has 9 bits of fraction: images whose two
 * best logits differ by less than that may go either way. */
#define ACCURACY_FLOOR 0.95
#define AGREEMENT_FLOOR 0.99

struct settings {
	int device;
	uint32_t batch;
	/* Passes over the images, and at least this long. */
	uint32_t repeat;
	uint32_t seconds;
	bool verbose;
	const char *data;
	const char *bundles;
};

/* The bundles' folder when none is given; removed once they are loaded. */
static char temporary[4096];

struct job {
	struct settings settings;
	struct images images;
	struct weights weights;
	struct network network;
	uint32_t batches;
	/* Pinned; rows of the last batch beyond the images are zero. */
	uint16_t *inputs;
	uint16_t *logits;
	uint64_t batches_done;
	uint32_t passes;
	uint64_t checksum;
	double start;
	double end;
};

struct score {
	uint32_t right;
	uint32_t agreeing;
	float largest_difference;
};

static uint32_t number_or_die(const char *name, uint32_t min, uint32_t max)
{
	char *end;
	long long number = strtoll(optarg, &end, 10);

	if (end == optarg || *end || number < min || number > max) {
		fprintf(stderr, "digits: --%s takes a number from %u to %u, not '%s'\n", name, min,
			max, optarg);
		exit(2);
	}
	return (uint32_t)number;
}

static void usage(FILE *to)
{
	fputs("Usage: digits [OPTION]…\n"
	      "Classifies 599 handwritten digits on a Spyre card.\n\n"
	      "  --device N     card (default 0)\n"
	      "  --batch N      images per launch (default 64)\n"
	      "  --repeat N     run N times (default 1)\n"
	      "  --seconds N    run again until N seconds have passed\n"
	      "  --data DIR     folder of digits.u8 and weights.f16\n"
	      "  --bundles DIR  keep the five SDSC bundles in DIR\n"
	      "  --verbose      show the images that were classified wrongly\n\n"
	      "Exit status: 0; 1 when accuracy is below 0.95, agreement with the host below\n"
	      "0.99, or an error; 2 for bad usage.\n",
	      to);
}

static void parse_options(struct settings *settings, int argc, char **argv)
{
	static const struct option options[] = {
		{"device", required_argument, NULL, 'd'},
		{"batch", required_argument, NULL, 'b'},
		{"repeat", required_argument, NULL, 'r'},
		{"data", required_argument, NULL, 'D'},
		{"seconds", required_argument, NULL, 's'},
		{"bundles", required_argument, NULL, 'B'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	*settings = (struct settings){.batch = 64, .repeat = 1};
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'd':
			settings->device = (int)number_or_die("device", 0, 1023);
			break;
		case 'b':
			settings->batch = number_or_die("batch", 1, 4096);
			break;
		case 'r':
			settings->repeat = number_or_die("repeat", 1, 1000000);
			break;
		case 's':
			settings->seconds = number_or_die("seconds", 1, 86400);
			break;
		case 'D':
			settings->data = optarg;
			break;
		case 'B':
			settings->bundles = optarg;
			break;
		case 'v':
			settings->verbose = true;
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : 2);
		}
	}
	if (optind < argc) {
		usage(stderr);
		exit(2);
	}
}

/* The source tree where there is one, else what was installed. */
static const char *data_directory(void)
{
	if (!access(DIGITS_SOURCE_DIR "/digits.u8", R_OK))
		return DIGITS_SOURCE_DIR;
	return DIGITS_DATA_DIR;
}

static int make_bundle_directory(struct settings *settings)
{
	const char *parent = getenv("TMPDIR");

	if (settings->bundles) {
		if (!mkdir(settings->bundles, 0777) || errno == EEXIST)
			return 0;
		fprintf(stderr, "digits: %s: %s\n", settings->bundles, strerror(errno));
		return -1;
	}
	snprintf(temporary, sizeof(temporary), "%s/digits-XXXXXX",
		 parent && *parent ? parent : "/tmp");
	if (!mkdtemp(temporary)) {
		fprintf(stderr, "digits: %s: %s\n", temporary, strerror(errno));
		temporary[0] = '\0';
		return -1;
	}
	settings->bundles = temporary;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_bundle_directory(void)
{
	if (*temporary)
		nftw(temporary, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static int prepare(struct job *job)
{
	struct settings *s = &job->settings;
	const char *data = s->data ? s->data : data_directory();

	if (images_load(&job->images, data) || weights_load(&job->weights, data) ||
	    make_bundle_directory(s) ||
	    network_open(&job->network, s->device, s->bundles, &job->weights, s->batch))
		return -1;
	job->batches = (job->images.count + s->batch - 1) / s->batch;
	if (network_host_memory(&job->network, job->batches * s->batch, PIXELS, &job->inputs) ||
	    network_host_memory(&job->network, job->batches * s->batch, CLASSES, &job->logits))
		return -1;
	for (size_t i = 0; i < (size_t)job->images.count * PIXELS; i++)
		job->inputs[i] = half_from_sixteenths(job->images.pixels[i]);
	return 0;
}

/* FNV-1a, 64 bits, of the logits of all images. */
static uint64_t checksum(const uint16_t *logits, size_t count)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	/* The low byte first on any host, so that all print the same sum. */
	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ (logits[i] & 0xff)) * 0x100000001b3ull;
		hash = (hash ^ logits[i] >> 8) * 0x100000001b3ull;
	}
	return hash;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void batch_done(void *data)
{
	struct job *job = data;
	const struct settings *s = &job->settings;
	uint64_t batches = (uint64_t)s->repeat * job->batches;
	double part = (double)++job->batches_done / (double)batches;
	double time = s->seconds ? (now() - job->start) / s->seconds : 1;

	progress_show(part < time ? part : time, job->batches_done * s->batch);
}

/* One pass over the images. The logits must be those of the pass before. */
static int run_pass(struct job *job)
{
	size_t count = (size_t)job->images.count * CLASSES;
	uint64_t sum;

	/* A pass that writes nothing must not look like the one before. */
	memset(job->logits, 0, count * sizeof(*job->logits));
	if (network_run(&job->network, job->inputs, job->logits, job->batches, batch_done, job))
		return -1;
	sum = checksum(job->logits, count);
	if (!job->passes++)
		job->checksum = sum;
	if (sum == job->checksum)
		return 0;
	progress_end();
	fprintf(stderr, "digits: pass %u: checksum %016" PRIx64 ", but %016" PRIx64 " before\n",
		job->passes, sum, job->checksum);
	return -1;
}

static int run(struct job *job)
{
	int err = 0;

	job->start = now();
	while (!err &&
	       (job->passes < job->settings.repeat || now() - job->start < job->settings.seconds))
		err = run_pass(job);
	job->end = now();
	progress_end();
	return err;
}

static void show_image(const struct job *job, uint32_t i, int guess, int reference)
{
	const uint8_t *pixels = job->images.pixels + (size_t)i * PIXELS;

	printf("image %u: a %u, taken for a %d (fp32 on the host: %d)\n", job->images.source[i],
	       job->images.labels[i], guess, reference);
	for (int y = 0; y < 8; y++) {
		fputs("    ", stdout);
		for (int x = 0; x < 8; x++) {
			char shade = " .:-=+*#%@"[pixels[8 * y + x] * 9 / 16];

			putchar(shade);
			putchar(shade);
		}
		putchar('\n');
	}
}

static struct score judge(const struct job *job)
{
	struct score score = {0};

	for (uint32_t i = 0; i < job->images.count; i++) {
		float device[CLASSES], host[CLASSES];
		int guess, reference;

		reference_logits(&job->weights, job->images.pixels + (size_t)i * PIXELS, host);
		for (int j = 0; j < CLASSES; j++) {
			device[j] = half_to_float(job->logits[(size_t)i * CLASSES + j]);
			score.largest_difference =
				fmaxf(score.largest_difference, fabsf(device[j] - host[j]));
		}
		guess = largest(device);
		reference = largest(host);
		score.right += guess == job->images.labels[i];
		score.agreeing += guess == reference;
		if (job->settings.verbose && guess != job->images.labels[i])
			show_image(job, i, guess, reference);
	}
	return score;
}

static void print_card(const struct job *job)
{
	const spyre_device_properties *p = &job->network.device;

	printf("card              %d, %s (%s, %s)\n", p->index, p->name,
	       p->backend == SPYRE_BACKEND_DRM ? p->node : "embedded in this process",
	       *p->unit ? p->unit : "unit unknown");
	printf("network           %d -> %u -> %d, %d bundles on up to %u cores, %d streams\n",
	       PIXELS, job->weights.hidden, CLASSES, NUM_LAYERS, job->network.cores, NUM_STREAMS);
	printf("images            %u of %u, held out in training\n", job->images.count,
	       job->images.total);
}

static int report(struct job *job)
{
	struct score score = judge(job);
	double accuracy = (double)score.right / job->images.count;
	double agreement = (double)score.agreeing / job->images.count;
	double images = (double)job->images.count * job->passes;
	double seconds = job->end - job->start;
	struct network_totals totals;

	if (network_get_totals(&job->network, &totals))
		return -1;
	printf("accuracy          %.4f (%u of %u)\n", accuracy, score.right, job->images.count);
	printf("agreement         %.4f with fp32 on the host, logits within %.4f\n", agreement,
	       score.largest_difference);
	printf("launches          %" PRIu64 " of kernels, %" PRIu64 " of copies\n", totals.launches,
	       totals.copies);
	printf("bytes moved       %" PRIu64 " to the card, %" PRIu64 " back; in the card %" PRIu64
	       " read, %" PRIu64 " written\n",
	       job->network.bytes_to_card, job->network.bytes_from_card, totals.bytes_read,
	       totals.bytes_written);
	printf("modelled time     %.3f ms (%" PRIu64 " cycles, %.1f million multiply-adds)\n",
	       (double)totals.cycles / job->network.device.clock_khz, totals.cycles,
	       totals.macs / 1e6);
	printf("host time         %.3f ms (%u passes, %.0f images/s)\n", seconds * 1e3, job->passes,
	       images / seconds);
	printf("output checksum   %016" PRIx64 "\n", job->checksum);
	if (accuracy >= ACCURACY_FLOOR && agreement >= AGREEMENT_FLOOR)
		return 0;
	fprintf(stderr,
		"digits: accuracy %.4f and agreement %.4f; at least %.2f and %.2f are "
		"expected\n",
		accuracy, agreement, ACCURACY_FLOOR, AGREEMENT_FLOOR);
	return -1;
}

int main(int argc, char **argv)
{
	static struct job job;
	int err;

	parse_options(&job.settings, argc, argv);
	err = prepare(&job);
	/* A loaded kernel does not need its files any more. */
	remove_bundle_directory();
	if (!err) {
		print_card(&job);
		fflush(stdout);
		err = run(&job);
	}
	if (!err)
		err = report(&job);
	network_close(&job.network);
	weights_free(&job.weights);
	images_free(&job.images);
	if (fflush(stdout) || ferror(stdout)) {
		perror("digits: standard output");
		err = -1;
	}
	return err ? 1 : 0;
}
