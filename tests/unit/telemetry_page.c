/* SPDX-License-Identifier: MIT */
/* Pages of embedded cards: publishing, reading, and every field that must not be trusted. */
#include "config.h"
#include "suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libspyre/telemetry/page.h"
#include "libspyre/telemetry/sources.h"
#include "tests/unit/fake_cards.h"

static char base[64], folder[96];
static spyre_telemetry_card cards[8];
static spyre_telemetry_process processes[8];

static const spyre_device_properties card0 = {
	.struct_size = sizeof(card0),
	.name = "Virtual Spyre",
	.uuid = "00000000-0000-4000-8000-000000000001",
	.bus_id = "embedded.0",
	.backend = SPYRE_BACKEND_EMBEDDED,
	.num_cores = 32,
	.lx_bytes = 2 << 20,
	.stick_bytes = 128,
	.clock_khz = 1500000,
	.memory_bytes = 16ull << 30,
	.unit = "scalar",
};

static void setup(void)
{
	/* Hides this machine's kernel cards. */
	snprintf(base, sizeof(base), "/tmp/spyre-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	snprintf(folder, sizeof(folder), "%s/spyre-%u", base, (unsigned int)geteuid());
	setenv("SPYRE_TELEMETRY_DIR", base, 1);
}

static void teardown(void)
{
	remove_tree(base);
}

/* Reads embedded cards only, since this machine may have others. */
static int read_cards(void)
{
	int count, i, kept = 0;

	ck_assert_int_eq(spyre_telemetry_cards(cards, sizeof(cards[0]), 8, &count), SPYRE_SUCCESS);
	ck_assert_int_le(count, 8);
	for (i = 0; i < count; i++)
		if (cards[i].host_pid)
			cards[kept++] = cards[i];
	return kept;
}

static int num_files(void)
{
	struct dirent *entry;
	int count = 0;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.' && strncmp(entry->d_name, "events", 6);
	if (dir)
		closedir(dir);
	return count;
}

/* A child that publishes a page, sets figures and waits until it is ended. */
static pid_t start_child(void)
{
	struct spyre_telemetry_page *page;
	int ready[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		page = spyre_telemetry_publish(&card0);
		if (!page)
			_exit(1);
		page->memory_used = 427 << 20;
		page->jobs = 12;
		page->busy = 1;	/* busy all the time */
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(page_of_a_child_appears_and_is_removed)
{
	pid_t child = start_child();
	int count;

	ck_assert_int_eq(read_cards(), 1);
	ck_assert_int_eq(cards[0].host_pid, child);
	ck_assert_uint_eq(cards[0].struct_size, sizeof(cards[0]));
	ck_assert_str_eq(cards[0].properties.uuid, card0.uuid);
	ck_assert_str_eq(cards[0].properties.bus_id, "embedded.0");
	ck_assert_int_eq(cards[0].properties.backend, SPYRE_BACKEND_EMBEDDED);
	ck_assert_uint_eq(cards[0].memory_total, 16ull << 30);
	ck_assert_uint_eq(cards[0].memory_used, 427 << 20);
	ck_assert_uint_eq(cards[0].jobs, 12);
	ck_assert_uint_eq(cards[0].utilization, 100);
	ck_assert_uint_le(cards[0].power_mw, SPYRE_POWER_LIMIT_MW);
	ck_assert_uint_eq(cards[0].generation, 0);
	ck_assert_int_eq(spyre_telemetry_processes(processes, sizeof(processes[0]), 8, &count),
			 SPYRE_SUCCESS);
	ck_assert_int_ge(count, 1);
	ck_assert_int_eq(processes[count - 1].pid, child);
	ck_assert_uint_eq(processes[count - 1].uid, geteuid());
	ck_assert_uint_eq(processes[count - 1].memory_used, 427 << 20);
	ck_assert_str_eq(processes[count - 1].name, program_invocation_short_name);
	end_child(child);
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(num_files(), 0);
}
END_TEST

START_TEST(modes_of_folder_and_file)
{
	struct spyre_telemetry_page *page = spyre_telemetry_publish(&card0);
	char path[160];
	struct stat st;

	ck_assert_ptr_nonnull(page);
	ck_assert_int_eq(stat(folder, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/%d.0.0", folder, (int)getpid());
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, sizeof(*page));
	spyre_telemetry_unpublish(page);
	ck_assert_int_ne(stat(path, &st), 0);
}
END_TEST

START_TEST(two_pages_of_one_card)
{
	struct spyre_telemetry_page *first = spyre_telemetry_publish(&card0);
	struct spyre_telemetry_page *second = spyre_telemetry_publish(&card0);

	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert_int_eq(read_cards(), 2);
	spyre_telemetry_unpublish(first);
	ck_assert_int_eq(read_cards(), 1);
	spyre_telemetry_unpublish(second);
	ck_assert_int_eq(num_files(), 0);
	spyre_telemetry_unpublish(NULL);
}
END_TEST

/* A folder lists its files in any order, so the first card may be the one that was read last. */
START_TEST(cards_keep_their_history_in_any_order)
{
	struct spyre_reading first = { .key.pid = 1 }, second = { .key.pid = 2 };

	second.card.timestamp_ns = spyre_telemetry_now();
	first.card.timestamp_ns = second.card.timestamp_ns + 1000;
	spyre_telemetry_remember(&first);
	spyre_telemetry_remember(&second);
	first.card.timestamp_ns += 100000000;
	second.card.timestamp_ns += 100000000;
	ck_assert(spyre_telemetry_compare(&first));
	ck_assert(spyre_telemetry_compare(&second));
}
END_TEST

/* Copies stay in one process: the card of a child has no path to this one's. */
START_TEST(links)
{
	spyre_device_properties card1 = card0, card5 = card0;
	struct spyre_telemetry_page *near, *far;
	spyre_peer_path path[3];
	pid_t child = start_child();

	snprintf(card1.bus_id, sizeof(card1.bus_id), "embedded.1");
	snprintf(card5.bus_id, sizeof(card5.bus_id), "embedded.5");
	card1.physical_index = 1;
	card5.physical_index = 5;
	near = spyre_telemetry_publish(&card1);
	far = spyre_telemetry_publish(&card5);
	ck_assert_int_eq(read_cards(), 3);
	/* This process is older than its child. */
	ck_assert_int_eq(cards[0].host_pid, getpid());
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(spyre_telemetry_peer_path(&cards[0], &cards[i], &path[i]),
				 SPYRE_SUCCESS);
	ck_assert_int_eq(path[0], SPYRE_PEER_SAME_CARD);
	ck_assert_int_eq(path[1], SPYRE_PEER_HOST);
	ck_assert_int_eq(path[2], SPYRE_PEER_NONE);
	end_child(child);
	spyre_telemetry_unpublish(near);
	spyre_telemetry_unpublish(far);
}
END_TEST

/* An embedded card computes on the processors that its process may use. */
START_TEST(processors_near_a_card)
{
	struct spyre_telemetry_page *page;
	char expected[16];
	cpu_set_t set;
	int cpu = sched_getcpu();

	ck_assert_int_ge(cpu, 0);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	page = spyre_telemetry_publish(&card0);
	ck_assert_int_eq(read_cards(), 1);
	snprintf(expected, sizeof(expected), "%d", cpu);
	ck_assert_str_eq(cards[0].cpu_list, expected);
	spyre_telemetry_unpublish(page);
}
END_TEST

START_TEST(idle_card_has_share_zero)
{
	struct spyre_telemetry_page *page = spyre_telemetry_publish(&card0);

	ck_assert_int_eq(read_cards(), 1);
	ck_assert_uint_eq(cards[0].utilization, 0);
	spyre_telemetry_unpublish(page);
}
END_TEST

START_TEST(forked_child_leaves_the_page)
{
	struct spyre_telemetry_page *page = spyre_telemetry_publish(&card0);
	int status;
	pid_t pid;

	ck_assert_ptr_nonnull(page);
	pid = fork();
	if (!pid) {
		spyre_telemetry_unpublish(page);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert_int_eq(num_files(), 1);
	ck_assert_int_eq(read_cards(), 1);
	page->jobs++;		/* still mapped here */
	spyre_telemetry_unpublish(page);
}
END_TEST

/* A valid page of this process, which tests corrupt. */
static struct spyre_telemetry_page good_page(void)
{
	struct spyre_telemetry_page page;

	memset(&page, 0, sizeof(page));
	page.magic = SPYRE_TELEMETRY_MAGIC;
	page.version = SPYRE_TELEMETRY_VERSION;
	page.bytes = sizeof(page);
	page.pid = getpid();
	page.uid = geteuid();
	ck_assert(spyre_telemetry_start_time(page.pid, &page.start_time));
	page.pid_namespace = spyre_telemetry_pid_namespace();
	page.properties = card0;
	page.memory_total = 1000;
	return page;
}

static void write_page(const char *name, const struct spyre_telemetry_page *page, size_t bytes)
{
	char path[200];
	FILE *file;

	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(page, 1, bytes, file), bytes);
	ck_assert_int_eq(fclose(file), 0);
}

/* Writes the page under this process's name. */
static void write_own(const struct spyre_telemetry_page *page, size_t bytes)
{
	char name[64];

	snprintf(name, sizeof(name), "%d.0.0", (int)getpid());
	write_page(name, page, bytes);
}

START_TEST(valid_page_is_accepted)
{
	struct spyre_telemetry_page page = good_page();

	/* Without this check, the tests below could pass for any reason. */
	write_own(&page, sizeof(page));
	ck_assert_int_eq(read_cards(), 1);
}
END_TEST

START_TEST(damaged_page_is_ignored)
{
	struct spyre_telemetry_page page = good_page();
	size_t bytes = sizeof(page);

	switch (_i) {
	case 0: page.magic ^= 1; break;
	case 1: page.version++; break;
	case 2: page.bytes--; break;
	case 3: page.pid++; break;
	case 4: page.uid++; break;
	case 5: page.sequence = 1; break;
	case 6: bytes--; break;
	case 7: bytes = 0; break;
	}
	write_own(&page, bytes);
	ck_assert_int_eq(read_cards(), 0);
	/* The process is alive and may be of another version, so its page is kept. */
	ck_assert_int_eq(num_files(), 1);
}
END_TEST

START_TEST(page_with_trailing_bytes)
{
	char bytes[sizeof(struct spyre_telemetry_page) + 8] = { 0 };
	struct spyre_telemetry_page page = good_page();

	memcpy(bytes, &page, sizeof(page));
	write_own((struct spyre_telemetry_page *)(void *)bytes, sizeof(bytes));
	ck_assert_int_eq(read_cards(), 0);
}
END_TEST

START_TEST(page_of_an_earlier_process_is_removed)
{
	struct spyre_telemetry_page page = good_page();

	page.start_time--;	/* same pid, started at another time */
	write_own(&page, sizeof(page));
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(num_files(), 0);
}
END_TEST

/* Writes the page as that of a process that has ended; fills @name. */
static void write_ended(struct spyre_telemetry_page *page, char name[64])
{
	page->pid = fork();
	if (!page->pid)
		_exit(0);
	ck_assert_int_eq(waitpid(page->pid, NULL, 0), page->pid);
	snprintf(name, 64, "%d.0.0", (int)page->pid);
	write_page(name, page, sizeof(*page));
}

START_TEST(publishing_removes_pages_of_ended_processes)
{
	struct spyre_telemetry_page page = good_page(), *mine;
	char name[64];

	write_ended(&page, name);
	mine = spyre_telemetry_publish(&card0);
	ck_assert_int_eq(num_files(), 1);
	spyre_telemetry_unpublish(mine);
	ck_assert_int_eq(num_files(), 0);
}
END_TEST

/* A container that shares the folder may have no process of this number, or another one. */
START_TEST(pages_of_other_namespaces_are_kept)
{
	struct spyre_telemetry_page page = good_page();
	char name[64];

	page.pid_namespace++;
	write_own(&page, sizeof(page));
	write_ended(&page, name);
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(num_files(), 2);
}
END_TEST

/* A page is empty while its process fills it, which may be one of another namespace. */
START_TEST(empty_page_is_removed_when_it_is_old)
{
	const struct timespec an_hour_ago[2] = { { .tv_sec = time(NULL) - 3600 },
						 { .tv_sec = time(NULL) - 3600 } };
	struct spyre_telemetry_page page = good_page();
	char name[64], path[200];

	page.magic = 0;
	write_ended(&page, name);
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(num_files(), 1);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, an_hour_ago, 0), 0);
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(num_files(), 0);
}
END_TEST

/* Cards are listed by the age of their processes, since pids start again from low numbers. */
START_TEST(cards_are_in_the_order_of_start)
{
	static const struct {
		int pid;
		unsigned int start;
	} process[] = { { 300, 50 }, { 100, 70 }, { 200, 90 }, { 90, 90 } };
	static const int order[] = { 300, 100, 90, 200 };
	struct spyre_telemetry_page page = good_page();
	char path[64], name[64];
	int i;

	fake_begin();
	for (i = 3; i >= 0; i--) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", process[i].pid,
			 process[i].pid);
		fake_file(path, "%d (spyre) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0\n",
			  process[i].pid, process[i].start);
		page.pid = process[i].pid;
		page.start_time = process[i].start;
		snprintf(name, sizeof(name), "%d.0.0", process[i].pid);
		write_page(name, &page, sizeof(page));
	}
	ck_assert_int_eq(read_cards(), 4);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(cards[i].host_pid, order[i]);
	fake_end();
}
END_TEST

/* A reader without descriptors neither takes live processes for ended ones nor misses cards. */
START_TEST(few_descriptors)
{
	struct spyre_telemetry_page page = good_page();
	struct rlimit old, few;
	int first, count, status, refused = 0;

	write_own(&page, sizeof(page));
	ck_assert_int_eq(read_cards(), 1);
	first = dup(0);
	close(first);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	for (few = old, few.rlim_cur = first; few.rlim_cur < first + 8u; few.rlim_cur++) {
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		status = spyre_telemetry_cards(cards, sizeof(cards[0]), 8, &count);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
		ck_assert_msg(status ? !count : count >= 1, "%d cards", count);
		refused += status != SPYRE_SUCCESS;
		ck_assert_int_eq(num_files(), 1);
	}
	ck_assert_int_gt(refused, 0);
	ck_assert_int_lt(refused, 8);
}
END_TEST

/* The pages of one user are limited: root reads those of all users. */
START_TEST(very_many_pages)
{
	struct spyre_telemetry_page page = good_page();
	int kernel, count, i;
	char name[64];

	ck_assert_int_eq(spyre_telemetry_cards(NULL, 0, 0, &kernel), SPYRE_SUCCESS);
	for (i = 0; i < 4096 + 3; i++) {
		page.sequence = (uint32_t)i;
		snprintf(name, sizeof(name), "%d.0.%d", (int)getpid(), i);
		write_page(name, &page, sizeof(page));
	}
	ck_assert_int_eq(spyre_telemetry_cards(NULL, 0, 0, &count), SPYRE_SUCCESS);
	ck_assert_int_eq(count, kernel + 4096);
}
END_TEST

START_TEST(other_files_are_kept)
{
	struct spyre_telemetry_page page = good_page();
	char path[200];

	write_page("notes", &page, sizeof(page));
	write_page("1.2", &page, sizeof(page));
	write_page("999999999.0.0.tmp", &page, sizeof(page));
	write_page("0.0.0", &page, sizeof(page));
	write_page("-5.0.0", &page, sizeof(page));
	write_page("007.0.0", &page, sizeof(page));
	snprintf(path, sizeof(path), "%s/%d.0.1", folder, (int)getpid());
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/%d.0.2", folder, (int)getpid());
	ck_assert_int_eq(symlink("/dev/zero", path), 0);
	snprintf(path, sizeof(path), "%s/%d.0.3", folder, (int)getpid());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(read_cards(), 0);
	ck_assert_int_eq(num_files(), 9);
}
END_TEST

START_TEST(symlink_to_a_good_page_is_not_followed)
{
	struct spyre_telemetry_page page = good_page();
	char path[200], target[200];

	write_page("good", &page, sizeof(page));
	snprintf(target, sizeof(target), "%s/good", folder);
	snprintf(path, sizeof(path), "%s/%d.0.0", folder, (int)getpid());
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(read_cards(), 0);
}
END_TEST

START_TEST(numbers_and_texts_are_validated)
{
	struct spyre_telemetry_page page = good_page();

	memset(page.process, 'A', sizeof(page.process));
	memset(page.properties.uuid, 0xff, sizeof(page.properties.uuid));
	strcpy(page.properties.name, "\033]0;owned\a");
	page.properties.backend = SPYRE_BACKEND_DRM;
	page.properties.index = -7;
	page.properties.num_cores = UINT32_MAX;
	strcpy(page.properties.node, "/dev/accel/accel0");
	page.memory_used = 2000;
	page.busy = UINT64_MAX;
	write_own(&page, sizeof(page));
	ck_assert_int_eq(read_cards(), 1);
	ck_assert_str_eq(cards[0].properties.name, "?]0;owned?");
	ck_assert_uint_eq(strlen(cards[0].properties.uuid), sizeof(page.properties.uuid) - 1);
	ck_assert_int_eq(cards[0].properties.uuid[0], '?');
	ck_assert_int_eq(cards[0].properties.backend, SPYRE_BACKEND_EMBEDDED);
	ck_assert_str_eq(cards[0].properties.node, "");
	ck_assert_int_ge(cards[0].properties.index, 0);
	ck_assert_uint_eq(cards[0].properties.num_cores, 0);
	ck_assert_uint_eq(cards[0].memory_used, 1000);
}
END_TEST

START_TEST(open_folder_is_not_used)
{
	struct spyre_telemetry_page good = good_page(), *page;

	ck_assert_int_eq(mkdir(folder, 0700), 0);
	write_own(&good, sizeof(good));
	ck_assert_int_eq(chmod(folder, 0770), 0);
	ck_assert_int_eq(read_cards(), 0);
	page = spyre_telemetry_publish(&card0);
	ck_assert_ptr_nonnull(page);	/* private memory */
	page->jobs = 1;
	ck_assert_int_eq(num_files(), 1);
	spyre_telemetry_unpublish(page);
	ck_assert_int_eq(num_files(), 1);
}
END_TEST

START_TEST(symlink_for_a_folder_is_not_used)
{
	struct spyre_telemetry_page *page;
	char target[96];

	snprintf(target, sizeof(target), "%s/elsewhere", base);
	ck_assert_int_eq(mkdir(target, 0700), 0);
	ck_assert_int_eq(symlink(target, folder), 0);
	page = spyre_telemetry_publish(&card0);
	ck_assert_ptr_nonnull(page);
	ck_assert_int_eq(num_files(), 0);
	spyre_telemetry_unpublish(page);
	/* Nothing was written through the link. */
	ck_assert_int_eq(rmdir(target), 0);
}
END_TEST

START_TEST(missing_folder)
{
	struct spyre_telemetry_page *page;

	setenv("SPYRE_TELEMETRY_DIR", "/proc/no/such/folder", 1);
	ck_assert_int_eq(read_cards(), 0);
	page = spyre_telemetry_publish(&card0);
	ck_assert_ptr_nonnull(page);
	page->busy = 5;
	spyre_telemetry_unpublish(page);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("telemetry_page");
	TCase *tcase = tcase_create("page");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);	/* thousands of files on a busy machine */
	tcase_add_test(tcase, page_of_a_child_appears_and_is_removed);
	tcase_add_test(tcase, modes_of_folder_and_file);
	tcase_add_test(tcase, two_pages_of_one_card);
	tcase_add_test(tcase, cards_keep_their_history_in_any_order);
	tcase_add_test(tcase, links);
	tcase_add_test(tcase, processors_near_a_card);
	tcase_add_test(tcase, idle_card_has_share_zero);
	tcase_add_test(tcase, forked_child_leaves_the_page);
	tcase_add_test(tcase, valid_page_is_accepted);
	tcase_add_loop_test(tcase, damaged_page_is_ignored, 0, 8);
	tcase_add_test(tcase, page_with_trailing_bytes);
	tcase_add_test(tcase, page_of_an_earlier_process_is_removed);
	tcase_add_test(tcase, publishing_removes_pages_of_ended_processes);
	tcase_add_test(tcase, pages_of_other_namespaces_are_kept);
	tcase_add_test(tcase, empty_page_is_removed_when_it_is_old);
	tcase_add_test(tcase, cards_are_in_the_order_of_start);
	tcase_add_test(tcase, few_descriptors);
	tcase_add_test(tcase, very_many_pages);
	tcase_add_test(tcase, other_files_are_kept);
	tcase_add_test(tcase, symlink_to_a_good_page_is_not_followed);
	tcase_add_test(tcase, numbers_and_texts_are_validated);
	tcase_add_test(tcase, open_folder_is_not_used);
	tcase_add_test(tcase, symlink_for_a_folder_is_not_used);
	tcase_add_test(tcase, missing_folder);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
