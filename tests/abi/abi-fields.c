/* SPDX-License-Identifier: MIT */
/*
 * Every field of every argument, invalid in turn, by table (fields-targets.c); the
 * argument itself at invalid addresses and of other sizes; no side effects remain.
 */
#include "config.h"

#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The argument: unmapped, ending at the last mapped byte, and read-only. */
static void test_place(struct fields_context *c, const struct target *t)
{
	static const uint64_t nowhere[] = { 0, 8, 0xffff888000000000ull, 0x800000000000ull, ~0ull };
	const size_t size = _IOC_SIZE(t->request);
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 }, *p = abi_guard(size), *odd;
	uint32_t i, bad = 0;

	for (i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		bad += abi_ioctl(c->fd, t->request, (void *)(uintptr_t)nowhere[i]) != -EFAULT;
	bad += abi_ioctl(c->fd, t->request, abi_hole()) != -EFAULT;
	for (i = 1; i <= size; i++)
		bad += abi_ioctl(c->fd, t->request, p + i) != -EFAULT;
	tap_eq(bad, 0, "%s: argument unmapped, or partly unmapped", t->name);

	t->good(c, argument);
	memcpy(p, argument, size);
	tap_ret(abi_ioctl(c->fd, t->request, p), 0, "%s: argument ends with its page", t->name);
	if (t->undo)
		t->undo(c, p);
	abi_guard_free(p, size);
	odd = malloc(size + 1);
	memset(argument, 0, sizeof(argument));
	t->good(c, argument);
	memcpy(odd + 1, argument, size);
	tap_ret(abi_ioctl(c->fd, t->request, odd + 1), 0, "%s: argument at an odd address",
		t->name);
	memcpy(argument, odd + 1, size);
	if (t->undo)
		t->undo(c, argument);
	free(odd);
}

/*
 * Ioctl numbers from other versions of the header. Each runs on its own file,
 * because a call that does not report the objects it created leaves them behind.
 */
static int call_sized(const struct target *t, unsigned int direction, size_t size, uint8_t fill,
		      uint8_t *out)
{
	struct fields_context c = fields_context();
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 };
	uint8_t *p = abi_guard(size ? size : 1);
	int ret;

	t->good(&c, argument);
	memset(p, fill, size ? size : 1);
	memcpy(p, argument, size < _IOC_SIZE(t->request) ? size : _IOC_SIZE(t->request));
	ret = abi_ioctl(c.fd, _IOC(direction, 'd', _IOC_NR(t->request), size), p);
	memcpy(out, p, size);
	abi_guard_free(p, size ? size : 1);
	fields_context_free(&c);
	return ret;
}

static void test_sizes(const struct target *t)
{
	static const unsigned int directions[] = { _IOC_NONE, _IOC_READ, _IOC_WRITE };
	const size_t size = _IOC_SIZE(t->request);
	uint8_t out[FIELDS_MAX_ARGUMENT + 64], fill = 0xa5;
	uint32_t i, bad = 0;
	size_t s;

	tap_ret(call_sized(t, _IOC_READ | _IOC_WRITE, size + 32, fill, out), 0,
		"%s: from a newer header, 32 bytes longer", t->name);
	for (s = size; s < size + 32; s++)
		bad += out[s] != fill;
	tap_eq(bad, 0, "%s: the kernel writes none of the additional bytes", t->name);
	tap_ret(call_sized(t, _IOC_READ | _IOC_WRITE, t->first_size, 0, out), 0,
		"%s: the struct of the first version, %u bytes", t->name, t->first_size);
	/*
	 * Half an argument has no correct result; the kernel must only not access
	 * more than half.
	 */
	for (s = 0; s < size; s += 4)
		call_sized(t, _IOC_READ | _IOC_WRITE, s, 0, out);
	for (i = 0; i < 3; i++)
		call_sized(t, directions[i], size, 0, out);
	tap_ok(true, "%s: shorter sizes and other directions cause no harm", t->name);
}

/* The result of a query is written up to its last byte and no further. */
static void test_query(struct fields_context *c, uint32_t type, uint32_t size)
{
	struct drm_spyre_dev_query args = { .type = type };
	uint8_t a[512], b[512];
	uint32_t i, bad = 0, s;

	if (type == DRM_SPYRE_DEV_QUERY_CONTEXT &&
	    abi_ioctl(c->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args) == -EINVAL) {
		tap_skip("the module lacks this ioctl", "DEV_QUERY %u", type);
		return;
	}
	for (s = 0; s <= size + 64; s += 4) {
		memset(a, 0xa5, sizeof(a));
		memset(b, 0x5a, sizeof(b));
		args = (struct drm_spyre_dev_query){ .type = type, .size = s, .pointer = PTR(a) };
		bad += abi_ioctl(c->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args) != 0 || args.size != size;
		args = (struct drm_spyre_dev_query){ .type = type, .size = s, .pointer = PTR(b) };
		bad += abi_ioctl(c->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args) != 0;
		for (i = 0; i < sizeof(a); i++) {
			const bool kept = a[i] == 0xa5 && b[i] == 0x5a;

			bad += kept != (i >= (s < size ? s : size));
		}
	}
	tap_eq(bad, 0, "DEV_QUERY %u: %u bytes for a buffer of 0 to %u", type, size, size + 64);
}

/* A result is written completely: state last, reserved as 0. */
static void test_result(struct fields_context *c)
{
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct drm_spyre_cb_result a, b, *result = abi_results(&c->queue);
	const uint8_t *x = (uint8_t *)&a, *y = (uint8_t *)&b;
	uint32_t i, kept = 0;

	memset(result, 0xa5, 2 * sizeof(*result));
	abi_submit(&c->queue, &cb, 1, NULL);
	abi_wait(&c->queue, 10000);
	a = result[0];
	tap_eq(result[1].rdma, 0xa5a5a5a5a5a5a5a5, "result: nothing past it is written");
	memset(result, 0x5a, sizeof(*result));
	abi_submit(&c->queue, &cb, 1, NULL);
	abi_wait(&c->queue, 10000);
	b = *result;
	for (i = 0; i < sizeof(a); i++)
		kept += x[i] == 0xa5 && y[i] == 0x5a;
	tap_eq(kept, 0, "result: every byte is written");
	tap_eq(a.rdma, 0, "result: rdma is 0");
}

static void test_target(const struct target *t)
{
	struct fields_context c = fields_context();
	struct fields_state before;

	if (t->root && geteuid()) {
		tap_skip("only root may call it", "%s", t->name);
	} else if (!fields_supported(&c, t)) {
		tap_skip("the module lacks this ioctl", "%s", t->name);
	} else {
		before = fields_state(&c);
		fields_walk(&c, t, fields_ioctl, "");
		if (!t->subject)
			test_place(&c, t);
		fields_same_state(&c, &before, t->name);
		/* Runs on its own files; a reset of the card makes this one stale. */
		if (!t->subject)
			test_sizes(t);
	}
	fields_context_free(&c);
}

/* Numbers after the last one, with arguments of all kinds. */
static void test_unknown_numbers(int fd)
{
	uint8_t *p = abi_guard(256);
	uint32_t nr, size, bad = 0, calls = 0;

	for (nr = DRM_COMMAND_BASE + DRM_SPYRE_BO_INFO + 1; nr < DRM_COMMAND_END; nr++)
		for (size = 0; size <= 256; size += 32, calls++)
			bad += abi_ioctl(fd, _IOC(calls & 3, 'd', nr, size),
					 calls & 4 ? p + 256 - size : NULL) != -EINVAL;
	tap_eq(bad, 0, "driver numbers that do not exist give EINVAL, %u calls", calls);
	abi_guard_free(p, 256);
}

int main(void)
{
	struct fields_context c = fields_context();
	struct drm_spyre_memory_info before = abi_memory(c.fd);
	uint32_t i;

	test_query(&c, DRM_SPYRE_DEV_QUERY_CARD, sizeof(struct drm_spyre_card_info));
	test_query(&c, DRM_SPYRE_DEV_QUERY_MEMORY, sizeof(struct drm_spyre_memory_info));
	test_query(&c, DRM_SPYRE_DEV_QUERY_COUNTERS, sizeof(struct drm_spyre_counters));
	test_query(&c, DRM_SPYRE_DEV_QUERY_CONTEXT, sizeof(struct drm_spyre_context_info));
	test_result(&c);
	test_unknown_numbers(c.fd);
	for (i = 0; i < fields_num_targets; i++)
		if (!fields_targets[i].root)
			test_target(&fields_targets[i]);
#ifdef HAVE_LIBURING
	test_fields_uring();
#else
	tap_skip("built without liburing", "io_uring");
#endif
	tap_ok(abi_memory_settles(c.fd, before.used), "all memory is back");
	/* A reset of the card makes other files stale, so it comes last. */
	for (i = 0; i < fields_num_targets; i++)
		if (fields_targets[i].root)
			test_target(&fields_targets[i]);
	fields_context_free(&c);
	return tap_done();
}
