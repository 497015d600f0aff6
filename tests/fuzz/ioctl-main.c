// SPDX-License-Identifier: MIT
/*
 * fuzz-ioctl: the loop, its corpus, and the checks of an execution: documented
 * errnos only, all memory returned, no reports in the kernel log. Prints TAP.
 */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MAX_CORPUS 8192
#define CHECK_EVERY 256		/* executions between checks of memory and log */
#define STUCK_SECONDS 120

static struct options {
	double seconds;
	uint64_t executions, seed;
	const char *corpus, *seeds, *last, *input;
	unsigned int processes;
	bool user;
} options = { .seconds = 10 };

static struct fz_world world;
static struct fz_input corpus[MAX_CORPUS], recent[CHECK_EVERY], *at_work = recent;
static uint32_t corpus_size, loaded;
static uint64_t executions, calls;
/* Totals of all workers, including killed ones. */
static _Atomic uint64_t *all_executions, *all_calls;
static int kmsg = -1, last = -1;
static uint64_t memory_before;
static volatile uint64_t heartbeat;

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static const char *folder(void)
{
	const char *tmp = getenv("TMPDIR");

	return options.corpus ? options.corpus : tmp ? tmp : "/tmp";
}

void fz_die(const char *format, ...)
{
	va_list args;

	fputs("Bail out! fuzz-ioctl: ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(2);
}

static void keep(const char *name, const struct fz_input *input)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder(), name);
	if (!fz_write(path, input))
		printf("# cannot write %s: %s\n", path, strerror(errno));
}

/* Saves the current input and those before it, since the cause may be some executions old. */
void fz_fail(const char *format, ...)
{
	char name[64];
	va_list args;
	uint32_t i;

	printf("not ok 1 - ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" (execution %llu)\n1..1\n", (unsigned long long)executions);
	fflush(stdout);
	keep("fuzz-ioctl-failed", at_work);
	for (i = 0; i < 16 && i < executions; i++) {
		snprintf(name, sizeof(name), "fuzz-ioctl-failed-%u", i);
		keep(name, &recent[(executions - i) % CHECK_EVERY]);
	}
	printf("# the input is in %s/fuzz-ioctl-failed\n", folder());
	_exit(1);
}

/*
 * The errors of docs/uapi.md and docs/error-and-reset.md, and the fuzzer's code for
 * "not possible now".
 */
static bool documented(int ret)
{
	static const int known[] = {
		0, EINVAL, ENOENT, EFAULT, E2BIG, ENOSPC, ENOMEM, EACCES, EPERM, EOPNOTSUPP, ENOTTY,
		ECANCELED, ENODEV, EINTR, ETIME, EIO, EDQUOT,
	};
	size_t i;

	/* The kernel gives it for the call's own descriptor, which another process has closed. */
	if (ret == -EBADF)
		return fz_shares_files();
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (ret == -known[i])
			return true;
	return false;
}

/* Kinds whose errno always comes from the driver. */
static bool drivers_own(uint8_t kind)
{
	return kind >= FZ_DEV_QUERY && kind <= FZ_RESET && kind != FZ_MMAP && kind != FZ_MUNMAP &&
	       kind != FZ_GEM_CLOSE && kind != FZ_URING_SUBMIT;
}

/*
 * Returns the number of calls of @input up to the last that covered something new;
 * 0 if none did.
 */
static uint32_t execute(struct fz_input *input)
{
	uint32_t i, fresh = 0, news;
	int ret;

	recent[executions % CHECK_EVERY] = *input;
	at_work = &recent[executions % CHECK_EVERY];
	if (last >= 0 && pwrite(last, input, sizeof(*input), 0) != sizeof(*input))
		fz_die("%s: %s", options.last, strerror(errno));
	fz_kcov_begin();
	for (i = 0; i < input->count; i++) {
		input->call[i].kind %= FZ_KIND_COUNT;
		ret = fz_call(&world, &input->call[i]);
		/*
		 * Only the parent counts coverage: the child shares its memory and
		 * is not traced.
		 */
		news = fz_is_child() ? 0 : fz_kcov_end() +
		       fz_kcov_result(input->call[i].kind, ret);
		if (news)
			fresh = i + 1;
		if (!documented(ret) && drivers_own(input->call[i].kind))
			fz_fail("%s gives %s", fz_kind_name(input->call[i].kind), strerror(-ret));
	}
	if (fz_is_child())
		_exit(0);
	fz_world_reset(&world);
	/* Other workers read the mailbox for themselves. */
	if (!options.processes)
		fz_mail_drain(&world);
	if (fz_kcov_end())
		fresh = input->count;
	calls += i;
	executions++;
	heartbeat++;
	*all_calls += i;
	++*all_executions;
	return fresh;
}

static uint64_t memory_used(void)
{
	struct drm_spyre_memory_info info = { 0 };
	struct drm_spyre_dev_query args = {
		.type = DRM_SPYRE_DEV_QUERY_MEMORY,
		.size = sizeof(info),
		.pointer = (uintptr_t)&info,
	};
	int fd = open(world.node, O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args))
		fz_die("cannot query the card's memory: %s", strerror(errno));
	close(fd);
	return info.used;
}

static void check_memory(void)
{
	const double until = seconds_now() + 30;
	uint64_t used;

	while ((used = memory_used()) != memory_before) {
		if (seconds_now() > until)
			fz_fail("%llu bytes of device memory are used, %llu before",
				(unsigned long long)used, (unsigned long long)memory_before);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

static void check_log(void)
{
	static const char *const bad[] = {
		"BUG:", "WARNING:", "KASAN", "UBSAN", "KCSAN", "INFO: task", "Oops", "refcount_t",
		"general protection", "circular locking", "recursive locking", "inconsistent",
		"suspicious RCU", "unreferenced object", "DEBUG_LOCKS",
	};
	char line[2048];
	ssize_t n;
	size_t i;

	while (kmsg >= 0 && ((n = read(kmsg, line, sizeof(line) - 1)) > 0 ||
			     (n < 0 && errno == EPIPE))) {
		line[n > 0 ? n : 0] = 0;
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			if (strstr(line, bad[i]))
				fz_fail("the kernel says: %s",
					strchr(line, ';') ? strchr(line, ';') + 1 : line);
	}
}

static void add(const struct fz_input *input, uint32_t count)
{
	struct fz_input *entry;
	char name[32];

	if (corpus_size == MAX_CORPUS)
		return;
	entry = &corpus[corpus_size++];
	*entry = *input;
	entry->count = count;
	if (options.corpus) {
		snprintf(name, sizeof(name), "input-%05u", corpus_size);
		keep(name, entry);
	}
}

static void load(const char *path, const char *prefix)
{
	struct dirent **entries;
	char name[PATH_MAX];
	int i, n = scandir(path, &entries, NULL, alphasort);

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (!strncmp(entries[i]->d_name, prefix, strlen(prefix)) &&
		    entries[i]->d_name[0] != '.' && corpus_size < MAX_CORPUS) {
			/* The machine may have crashed while a file was written. */
			if (fz_read(name, &corpus[corpus_size]))
				corpus_size++;
			else if (!prefix[0])
				fz_die("%s is not an input", name);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	loaded = corpus_size;
}

/* Detects a call that does not return, which the loop itself could not notice. */
static void *watch(void *unused)
{
	uint64_t beat = 0;
	unsigned int quiet = 0;

	(void)unused;
	for (;;) {
		sleep(1);
		quiet = heartbeat == beat ? quiet + 1 : 0;
		beat = heartbeat;
		if (quiet == STUCK_SECONDS)
			fz_fail("a call has not come back for %d s", STUCK_SECONDS);
	}
	return NULL;
}

static void find_node(void)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *entry;
	DIR *dir = opendir("/sys/class/accel");
	ssize_t n;

	while (dir && !world.node[0] && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/accel/%s/device/driver", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (!strstr(target, "/spyre_vdev"))
			continue;
		snprintf(world.node, sizeof(world.node), "/dev/accel/%.32s", entry->d_name);
		snprintf(path, sizeof(path), "/sys/class/accel/%s/device", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (strrchr(target, '/'))
			snprintf(world.debugfs, sizeof(world.debugfs),
				 "/sys/kernel/debug/accel/%.64s", strrchr(target, '/') + 1);
	}
	if (dir)
		closedir(dir);
	if (!world.node[0]) {
		puts("1..0 # SKIP no accel node of spyre_vdev");
		exit(0);
	}
}

/* Switches to uid 1000 in the node's group; coverage and log stay open. */
static void drop_privileges(void)
{
	struct stat st;

	if (stat(world.node, &st) || setgroups(1, &st.st_gid) || setgid(1000) || setuid(1000))
		fz_die("cannot become a plain user: %s", strerror(errno));
}

static void say_where(bool kcov)
{
	struct utsname name;

	uname(&name);
	printf("# kernel %s %s, uid %d, seed %llu, %s\n", name.release, name.version, (int)getuid(),
	       (unsigned long long)options.seed,
	       kcov ? "guided by KCOV" : "no KCOV: guided by results alone");
}

static void progress(double start)
{
	const double seconds = seconds_now() - start;

	printf("# %llu executions, %llu calls, %.0f s, %.0f/s, %u PCs, %u features, corpus %u\n",
	       (unsigned long long)executions, (unsigned long long)calls, seconds,
	       executions / (seconds + 1e-9), fz_kcov_pcs(), fz_kcov_features(), corpus_size);
	fflush(stdout);
}

static void next_input(struct fz_input *input)
{
	if (!corpus_size || !fz_random(16)) {
		fz_generate(input);
		return;
	}
	/* The latest corpus entries are the most promising. */
	*input = corpus[fz_random(4) || corpus_size < 64 ? fz_random(corpus_size) :
			corpus_size - 1 - fz_random(64)];
	fz_mutate(input, &corpus[fz_random(corpus_size)]);
}

static void fuzz(void)
{
	const double start = seconds_now(), end = start + options.seconds;
	double said = start;
	struct fz_input input;
	uint32_t i, fresh;

	for (i = 0; i < loaded; i++) {
		input = corpus[i];
		execute(&input);
	}
	while (options.executions ? executions < options.executions : seconds_now() < end) {
		next_input(&input);
		fresh = execute(&input);
		if (fresh)
			add(&input, fresh);
		if (executions % CHECK_EVERY || options.processes)
			continue;
		check_memory();
		check_log();
		if (seconds_now() > said + 30) {
			said = seconds_now();
			progress(start);
		}
	}
	check_memory();
	check_log();
	progress(start);
}

/* Runs until it is killed. */
static void worker(uint64_t number)
{
	pthread_t watcher;

	fz_srandom(options.seed + number * 0x9e3779b97f4a7c15ull);
	options.executions = UINT64_MAX;
	/* A worker may live too briefly to replay the known inputs. */
	loaded = 0;
	if (pthread_create(&watcher, NULL, watch, NULL))
		fz_die("no second thread");
	fuzz();
}

static void supervise(void)
{
	const double start = seconds_now();
	uint64_t killed;

	killed = fz_supervise(options.processes, options.seconds, worker, check_log);
	fz_mail_drain(&world);
	executions = *all_executions;
	calls = *all_calls;
	check_memory();
	check_log();
	progress(start);
	printf("# %llu processes killed in the middle\n", (unsigned long long)killed);
}

static void usage(void)
{
	puts("usage: fuzz-ioctl [--seconds N | --executions N] [--seed N] [--user] [--corpus DIR]\n"
	     "                  [--processes N] [--seeds DIR] [--last FILE] [INPUT]\n\n"
	     "Calls the node of the first spyre_vdev card in random ways. Root has coverage.\n\n"
	     "  --seconds N     how long (10)\n"
	     "  --executions N  how many inputs, instead\n"
	     "  --seed N        another run\n"
	     "  --user          as uid 1000 in the node's group, with root's coverage\n"
	     "  --processes N   that many at once, which pass descriptors on and are killed at work;\n"
	     "                  not guided by coverage, --seconds only\n"
	     "  --corpus DIR    start from its inputs as well, keep those that did something new\n"
	     "  --seeds DIR     inputs to start from ($SPYRE_SRCDIR/tests/fuzz/corpus-ioctl)\n"
	     "  --last FILE     keep the input at work, for kernels that die of it\n"
	     "  INPUT           run this one alone, --executions times");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static char seeds[PATH_MAX];
	const char *source = getenv("SPYRE_SRCDIR");
	int i;

	snprintf(seeds, sizeof(seeds), "%s/tests/fuzz/corpus-ioctl", source ? source : ".");
	options.seeds = seeds;
	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(argv[i], "--user"))
			options.user = true;
		else if (argv[i][0] != '-')
			options.input = argv[i];
		else if (!value)
			usage();
		else if (!strcmp(argv[i], "--seconds"))
			options.seconds = atof(argv[++i]);
		else if (!strcmp(argv[i], "--executions"))
			options.executions = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			options.seed = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--processes"))
			options.processes = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--corpus"))
			options.corpus = argv[++i];
		else if (!strcmp(argv[i], "--seeds"))
			options.seeds = argv[++i];
		else if (!strcmp(argv[i], "--last"))
			options.last = argv[++i];
		else
			usage();
	}
}

/* Runs one input as often as requested. */
static void replay(void)
{
	const uint64_t times = options.executions ? options.executions : 1;
	struct fz_input input;

	if (!fz_read(options.input, &input))
		fz_die("%s is not an input", options.input);
	while (executions < times)
		execute(&input);
	check_memory();
	check_log();
}

int main(int argc, char **argv)
{
	pthread_t watcher;
	bool kcov;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	fz_srandom(options.seed);
	find_node();
	kcov = !options.processes && fz_kcov_open();
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg >= 0)
		lseek(kmsg, 0, SEEK_END);
	if (options.last) {
		last = open(options.last, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (last < 0)
			fz_die("%s: %s", options.last, strerror(errno));
	}
	if (options.user)
		drop_privileges();
	say_where(kcov);
	fz_world_init(&world);
	memory_before = memory_used();
	all_executions = mmap(NULL, 2 * sizeof(*all_executions), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all_executions == MAP_FAILED)
		fz_die("no memory for counters: %s", strerror(errno));
	all_calls = all_executions + 1;
	/* Workers start their own watchers, because a process with threads must not fork. */
	if (!options.processes && pthread_create(&watcher, NULL, watch, NULL))
		fz_die("no second thread");
	if (options.input) {
		replay();
	} else {
		load(options.seeds, "");
		/* Continues a previous run. */
		if (options.corpus)
			load(options.corpus, "input-");
		if (options.processes)
			supervise();
		else
			fuzz();
	}
	printf("ok 1 - refusals have a documented errno, %llu executions\n",
	       (unsigned long long)executions);
	puts("ok 2 - all device memory came back");
	printf("ok 3 - the kernel log is quiet%s\n", kmsg < 0 ? " # SKIP it is closed to us" : "");
	puts("1..3");
	return 0;
}
