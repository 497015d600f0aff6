/* SPDX-License-Identifier: MIT */
/* Lifetimes: forks, pinned memory under copies, contexts under host functions. */
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_check.h"

#define MIB (1u << 20)

/*
 * The thread sanitizer allows no new threads in a child of a threaded process;
 * the address sanitizer's allocator may be locked there for good, if a thread
 * of the parent was in it at the fork. libc's is safe.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define THREADS_AFTER_FORK false
#else
#define THREADS_AFTER_FORK true
#endif

static int use_card(spyre_context *context)
{
	spyre_devptr address;
	uint32_t value = 0;

	if (spyre_mem_alloc(context, 4096, &address) ||
	    spyre_memset_async(get_stream(context, 0), address, "seen", 4, 4096) ||
	    spyre_memcpy_d2h(context, &value, address, 4))
		return 1;
	return memcmp(&value, "seen", 4) ? 2 : 0;
}

/* The parent's card is busy; the child opens its own, as the error text advises. */
START_TEST(child_opens)
{
	spyre_context *context = open_card();
	int status;
	pid_t pid;

	ck_assert_int_eq(use_card(context), 0);
	if (!THREADS_AFTER_FORK) {
		ck_ok(spyre_context_destroy(context));
		return;
	}
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		spyre_context *own;
		int result;

		alarm(60);
		if (spyre_context_create(0, 0, &own))
			_exit(10);
		result = use_card(own);
		_exit(spyre_context_destroy(own) ? 11 : result);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(use_card(context), 0);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static void hold(void *data)
{
	while (!__atomic_load_n((int *)data, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* Memory freed while a copy waits for it remains until then, but is unknown meanwhile. */
START_TEST(pinned_under_copy)
{
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 1);
	spyre_pointer_info info = { .struct_size = sizeof(info) };
	uint8_t *pinned, *back = malloc(MIB);
	spyre_devptr device;
	int go = 0;

	ck_assert_ptr_nonnull(back);
	ck_ok(spyre_mem_alloc(context, MIB, &device));
	ck_ok(spyre_host_alloc(context, MIB, (void **)&pinned));
	random_bytes(pinned, MIB, 7);
	ck_ok(spyre_stream_host_fn(stream, hold, &go));
	ck_ok(spyre_memcpy_h2d_async(stream, device, pinned, MIB));
	ck_ok(spyre_host_free(context, pinned));
	ck_ok(spyre_host_pointer_query(context, pinned, &info));
	ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);
	ck_status(spyre_host_free(context, pinned), SPYRE_ERROR_INVALID_ARGUMENT);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_memcpy_d2h(context, back, device, MIB));
	for (uint64_t i = 0, value = 0, state = 7 * 2 + 1; i < MIB; i++) {
		if (i % 8 == 0)
			value = random_next(&state);
		if (back[i] != (uint8_t)(value >> i % 8 * 8))
			ck_abort_msg("byte %llu", (unsigned long long)i);
	}
	free(back);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

struct chain {
	spyre_context *context;
	int left;
};

/* Each call queues the next one on another stream, which may have been idle. */
static void pass_on(void *data)
{
	struct chain *chain = data;

	usleep(2000);
	if (chain->left-- <= 0)
		return;
	spyre_stream_host_fn(get_stream(chain->context, chain->left % 3), pass_on, chain);
}

START_TEST(destroy_under_host_functions)
{
	for (int round = 0; round < 5; round++) {
		struct chain chain = { .context = open_card(), .left = 20 };

		ck_ok(spyre_stream_host_fn(get_stream(chain.context, 2), pass_on, &chain));
		ck_ok(spyre_context_destroy(chain.context));
		ck_assert_int_eq(chain.left, -1);
	}
}
END_TEST

/* A query whose struct_size is not set reports that. */
START_TEST(struct_size)
{
	spyre_context *context = open_card();
	spyre_memory_info memory = { 0 };
	spyre_pointer_info pointer = { 0 };
	spyre_stream_stats stats = { 0 };
	spyre_device_properties properties = { .struct_size = 4 };

	ck_status(spyre_mem_info(context, &memory), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("spyre_memory_info");
	ck_status(spyre_pointer_query(context, 0, &pointer), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_host_pointer_query(context, context, &pointer),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_stream_get_stats(get_stream(context, 0), &stats),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_context_get_properties(context, &properties),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("struct_size is 4");
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("lifetime");

	tcase_add_test(tests, child_opens);
	tcase_add_test(tests, pinned_under_copy);
	tcase_add_test(tests, destroy_under_host_functions);
	tcase_add_test(tests, struct_size);
	return run_suite("runtime_lifetime", tests);
}
