// SPDX-License-Identifier: MIT
/*
 * Memory of embedded cards on a host with pages of 64 KiB, as kernels of arm64 and Power have:
 * system calls refuse addresses within a page, and take lengths in whole pages. Ranges of the card
 * are multiples of 4 KiB there as well, so that neighbours share pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libspyre/backend/embedded.h"
#include "runtime_check.h"

#define PAGE 65536ull
#define MIB (1ull << 20)
#define BASE (64 * MIB)

long __real_sysconf(int name);
long __wrap_sysconf(int name);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_mprotect(void *at, size_t bytes, int protection);
int __wrap_mprotect(void *at, size_t bytes, int protection);
int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool starts_page(const void *at)
{
	if (!((uintptr_t)at % PAGE))
		return true;
	errno = EINVAL;
	return false;
}

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE ? (long)PAGE : __real_sysconf(name);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	uint8_t *map;
	uint64_t skip;

	if (at || !(flags & MAP_ANONYMOUS))
		return __real_mmap(at, bytes, protection, flags, fd, offset);
	map = __real_mmap(NULL, pages(bytes) + PAGE, protection, flags, fd, offset);
	if (map == MAP_FAILED)
		return map;
	skip = -(uintptr_t)map % PAGE;
	if (skip)
		munmap(map, skip);
	munmap(map + skip + pages(bytes), PAGE - skip);
	return map + skip;
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
	return starts_page(at) ? __real_mprotect(at, pages(bytes), protection) : -1;
}

int __wrap_madvise(void *at, size_t bytes, int advice)
{
	return starts_page(at) ? __real_madvise(at, pages(bytes), advice) : -1;
}

static bool all(const uint8_t *bytes, uint64_t n, uint8_t value)
{
	return !n || (*bytes == value && !memcmp(bytes, bytes + 1, n - 1));
}

/* Ranges of the card one after the other: within a page, across two, of whole pages, of many. */
static const uint64_t sizes[] = {
	4096, 8192, PAGE - 12288, PAGE, PAGE + 4096, 4096, 2 * PAGE - 4096, 4 * MIB + 20480, 12288,
};
#define RANGES (sizeof(sizes) / sizeof(sizes[0]))

static struct spyre_card *card;
static uint64_t place[RANGES];

static void setup(void)
{
	uint64_t at = BASE;

	ck_assert_int_eq(spyre_backend_embedded.open(0, &card), SPYRE_SUCCESS);
	for (size_t i = 0; i < RANGES; at += sizes[i++])
		place[i] = at;
}

static void teardown(void)
{
	spyre_backend_embedded.close(card);
}

static uint8_t *memory_of(size_t range)
{
	return embedded_host((struct embedded_card *)card, place[range]);
}

static void map(size_t range)
{
	const spyre_status status =
		spyre_backend_embedded.mem_map(card, place[range], sizes[range]);

	ck_assert_msg(!status, "range %zu: %s", range, spyre_last_error());
	ck_assert_msg(all(memory_of(range), sizes[range], 0), "range %zu is not zero", range);
	memset(memory_of(range), (int)range + 1, sizes[range]);
}

static void check_all(void)
{
	for (size_t i = 0; i < RANGES; i++)
		ck_assert_msg(all(memory_of(i), sizes[i], (uint8_t)(i + 1)), "range %zu changed", i);
}

/* Each range in turn is unmapped and mapped again: it is zero then, and the others stay. */
START_TEST(neighbours)
{
	for (size_t i = 0; i < RANGES; i++)
		map(i);
	check_all();
	for (size_t i = 0; i < RANGES; i++) {
		spyre_backend_embedded.mem_unmap(card, place[i], sizes[i]);
		ck_assert_msg(all(memory_of(i), sizes[i], 0), "range %zu is not zero", i);
		map(i);
		check_all();
	}
}
END_TEST

/* Bytes that a job leaves in a range after its end do not reach the next one there. */
START_TEST(late_stores)
{
	for (size_t i = 0; i < RANGES; i++)
		map(i);
	for (size_t i = 0; i < RANGES; i++) {
		spyre_backend_embedded.mem_unmap(card, place[i], sizes[i]);
		memset(memory_of(i), 0xee, sizes[i]);
		map(i);
		check_all();
	}
}
END_TEST

static uint64_t resident(const uint8_t *at, uint64_t bytes)
{
	const uint64_t page = (uint64_t)__real_sysconf(_SC_PAGESIZE);
	unsigned char *state = malloc(bytes / page);
	uint64_t n = 0;

	ck_assert_ptr_nonnull(state);
	ck_assert_int_eq(mincore((void *)at, bytes, state), 0);
	for (uint64_t i = 0; i < bytes / page; i++)
		n += state[i] & 1 ? page : 0;
	free(state);
	return n;
}

START_TEST(unmapping_frees_pages)
{
	const size_t large = RANGES - 2;
	const uint8_t *first;

	for (size_t i = 0; i < RANGES; i++)
		map(i);
	first = (uint8_t *)pages((uintptr_t)memory_of(large));
	ck_assert_uint_eq(resident(first, 4 * MIB - PAGE), 4 * MIB - PAGE);
	spyre_backend_embedded.mem_unmap(card, place[large], sizes[large]);
	ck_assert_uint_eq(resident(first, 4 * MIB - PAGE), 0);
	map(large);
	check_all();
}
END_TEST

/* Through the library: large tensors, whose sizes are not those of pages. */
START_TEST(tensors)
{
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 0);
	const uint64_t bytes = MIB + 128;
	uint8_t *got = malloc(bytes);
	spyre_devptr address[3];

	ck_assert_ptr_nonnull(got);
	for (int round = 0; round < 2; round++) {
		for (int i = round; i < 3 - round; i++) {
			ck_ok(spyre_mem_alloc(context, bytes, &address[i]));
			ck_ok(spyre_memcpy_d2h(context, got, address[i], bytes));
			ck_assert(all(got, bytes, 0));
			ck_ok(spyre_memset_async(stream, address[i], &(char){ 'a' + (char)i }, 1,
						 bytes));
		}
		for (int i = 0; i < 3; i++) {
			ck_ok(spyre_stream_synchronize(stream));
			ck_ok(spyre_memcpy_d2h(context, got, address[i], bytes));
			ck_assert(all(got, bytes, (uint8_t)('a' + i)));
		}
		ck_ok(spyre_mem_free(context, address[1]));
	}
	free(got);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("ranges"), *library = tcase_create("library");
	Suite *suite = suite_create("embedded_pages");

	setenv("SPYRE_BACKEND", "embedded", 1);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, neighbours);
	tcase_add_test(tests, late_stores);
	tcase_add_test(tests, unmapping_frees_pages);
	tcase_add_test(library, tensors);
	suite_add_tcase(suite, tests);
	suite_add_tcase(suite, library);
	return suite_run(suite);
}
