/* SPDX-License-Identifier: MIT */
/* abi-ioctl: programs and queues. */
#include "ioctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"

static void test_program_arguments(int fd, const uint8_t *image, uint64_t size)
{
	struct drm_spyre_program_create args;
	uint8_t *edge, *odd;

	tap_ret(abi_prog_load(fd, NULL, size, &args), -EFAULT, "PROGRAM_CREATE: image NULL");
	tap_ret(abi_prog_load(fd, abi_hole(), size, &args), -EFAULT,
		"PROGRAM_CREATE: image unmapped");
	tap_ret(abi_prog_load(fd, image, 0, &args), -EINVAL, "PROGRAM_CREATE: size 0");
	tap_ret(abi_prog_load(fd, image, 64 * MIB + 1, &args), -EINVAL,
		"PROGRAM_CREATE: a byte more than 64 MiB");
	tap_ret(abi_prog_load(fd, image, ~0ull, &args), -EINVAL, "PROGRAM_CREATE: size 2^64 - 1");
	memset(&args, 0, sizeof(args));
	args.data = PTR(image);
	args.size = size;
	args.flags = 1;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &args), -EINVAL,
		"PROGRAM_CREATE: flags");
	tap_eq(args.stop, 0, "PROGRAM_CREATE: flags: the verifier did not run");
	args.flags = 0;
	args.pad = 1;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &args), -EINVAL,
		"PROGRAM_CREATE: pad");

	edge = abi_guard(size);
	memcpy(edge, image, size);
	tap_ret(abi_prog_load(fd, edge, size, &args), 0,
		"PROGRAM_CREATE: image ends at its page's end");
	abi_prog_destroy(fd, args.handle);
	tap_ret(abi_prog_load(fd, edge, size + 1, &args), -EFAULT,
		"PROGRAM_CREATE: image extends past its page");
	abi_guard_free(edge, size);
	odd = malloc(size + 1);
	memcpy(odd + 1, image, size);
	tap_ret(abi_prog_load(fd, odd + 1, size, &args), 0,
		"PROGRAM_CREATE: image at an odd address (it is copied)");
	abi_prog_destroy(fd, args.handle);
	free(odd);
}

/* The required contents of each output after a refusal. */
static void refused(int fd, const char *what, const void *image, uint64_t size, uint32_t stop)
{
	struct drm_spyre_program_create args;

	tap_ret(abi_prog_load(fd, image, size, &args), -EINVAL, "verifier: %s", what);
	tap_eq(args.stop, stop, "verifier: %s: stop", what);
	tap_ok(args.stop_step != 0xa5a5a5a5 && args.stop_core != 0xa5a5a5a5 &&
	       args.stop_instr != 0xa5a5a5a5 && args.stop_view != 0xa5a5a5a5 &&
	       args.stop_value != 0xa5a5a5a5a5a5a5a5 && args.stop_limit != 0xa5a5a5a5a5a5a5a5,
	       "verifier: %s: position and values are written", what);
}

static void test_program_verifier(int fd)
{
	struct abi_prog p = abi_prog_add(1, 4), bad;
	struct spyre_prog_header *h;
	uint64_t size;
	void *image = abi_prog_encode(&p, &size);

	h = image;
	refused(fd, "an image of one byte", image, 1, SPYRE_STOP_TRUNCATED);
	refused(fd, "image shorter than it says", image, size - 8, SPYRE_STOP_TRUNCATED);
	h->magic ^= 1;
	refused(fd, "magic", image, size, SPYRE_STOP_BAD_MAGIC);
	h->magic ^= 1;
	h->version = 9999;
	refused(fd, "version", image, size, SPYRE_STOP_BAD_VERSION);
	h->version = SPYRE_PROG_VERSION;
	h->reserved[5] = 1;
	refused(fd, "reserved field", image, size, SPYRE_STOP_BAD_HEADER);
	h->reserved[5] = 0;
	h->lx_kept = STICK;
	refused(fd, "more LX kept than used", image, size, SPYRE_STOP_BAD_HEADER);
	free(image);

#define REFUSED(what, stop, ...) do { \
	bad = p; \
	__VA_ARGS__; \
	image = abi_prog_encode(&bad, &size); \
	refused(fd, what, image, size, stop); \
	free(image); \
} while (0)
	REFUSED("operand extent too small", SPYRE_STOP_EXTENT, bad.operands[1].extent -= STICK);
	REFUSED("operand extent too large", SPYRE_STOP_EXTENT, bad.operands[0].extent += STICK);
	REFUSED("written operand declared read-only", SPYRE_STOP_ACCESS,
		bad.operands[0].flags = SPYRE_OPERAND_READ);
	REFUSED("opcode", SPYRE_STOP_BAD_OPCODE, bad.instr.opcode = 99);
	REFUSED("function", SPYRE_STOP_BAD_FUNC, bad.instr.func = 99);
	REFUSED("lanes", SPYRE_STOP_BAD_SHAPE, bad.instr.lanes = 129);
	REFUSED("format", SPYRE_STOP_BAD_FORMAT, bad.views[1].format = 250);
	REFUSED("operand index", SPYRE_STOP_BAD_VIEW, bad.views[2].operand = 3);
	REFUSED("LX view past lx_bytes", SPYRE_STOP_LX_OVERFLOW, bad.lx_bytes = STICK;
		bad.views[2].operand = SPYRE_VIEW_LX);
	REFUSED("work bound", SPYRE_STOP_TOO_LONG, bad.num_loops = 3;
		bad.loops[0] = bad.loops[1] = bad.loops[2] = 65535);
#undef REFUSED
}

void test_program(int fd)
{
	struct abi_prog p = abi_prog_add(1, 4);
	struct drm_spyre_program_create args;
	struct drm_spyre_program_destroy destroy = { 0 };
	uint64_t size;
	void *image = abi_prog_encode(&p, &size);

	tap_ret(abi_prog_load(fd, image, size, &args), 0, "PROGRAM_CREATE");
	tap_ok(args.handle && args.handle != 0xa5a5a5a5, "PROGRAM_CREATE: a handle");
	tap_ok(!args.stop && !args.stop_step && !args.stop_core && !args.stop_instr &&
	       !args.stop_view && !args.stop_value && !args.stop_limit,
	       "PROGRAM_CREATE: all stop fields are 0");
	tap_ok(args.cycles && args.cycles < 1000000, "PROGRAM_CREATE: %llu modelled cycles",
	       (unsigned long long)args.cycles);
	destroy.handle = args.handle;
	destroy.pad = 1;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &destroy), -EINVAL,
		"PROGRAM_DESTROY: pad");
	destroy.pad = 0;
	test_pointer(fd, "PROGRAM_DESTROY", DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &destroy, 0);
	tap_ret(abi_prog_destroy(fd, args.handle), -ENOENT, "PROGRAM_DESTROY: twice");
	tap_ret(abi_prog_destroy(fd, 0), -ENOENT, "PROGRAM_DESTROY: handle 0");
	tap_ret(abi_prog_destroy(fd, NEVER), -ENOENT, "PROGRAM_DESTROY: unknown handle");

	memset(&args, 0, sizeof(args));
	args.data = PTR(image);
	args.size = size;
	test_pointer(fd, "PROGRAM_CREATE", DRM_IOCTL_SPYRE_PROGRAM_CREATE, &args, 0);
	test_program_arguments(fd, image, size);
	test_program_verifier(fd);
	free(image);
	/* test_pointer() left a program; it is destroyed by number, as handles are small. */
	for (destroy.handle = 1; destroy.handle < 64; destroy.handle++)
		abi_prog_destroy(fd, destroy.handle);
}

/* The high class requires the privilege to raise the priority of processes. */
static void test_queue_high(int fd)
{
	const bool may = abi_may_be_high();
	struct drm_spyre_queue_create args = { .priority = DRM_SPYRE_PRIORITY_HIGH, .flags = 1 };
	uint32_t id;

	if (may) {
		tap_ret(abi_queue_create(fd, DRM_SPYRE_PRIORITY_HIGH, 0, &id), 0,
			"QUEUE_CREATE: the high class with CAP_SYS_NICE");
		abi_queue_destroy(fd, id);
		abi_set_high(false);
	}
	tap_ret(abi_queue_create(fd, DRM_SPYRE_PRIORITY_HIGH, 0, &id), -EACCES,
		"QUEUE_CREATE: the high class without CAP_SYS_NICE");
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args), -EINVAL,
		"QUEUE_CREATE: the high class, and flags");
	tap_ret(abi_queue_create(fd, DRM_SPYRE_PRIORITY_LOW, 0, &id), 0,
		"QUEUE_CREATE: the low class without it");
	abi_queue_destroy(fd, id);
	if (may)
		abi_set_high(true);
}

static void test_queue_create(int fd)
{
	const uint32_t classes = abi_may_be_high() ? 2 : 1;
	struct drm_spyre_queue_create args = { .queue_id = 0xa5a5a5a5 };
	uint32_t ids[257], i, made;

	test_pointer(fd, "QUEUE_CREATE", DRM_IOCTL_SPYRE_QUEUE_CREATE, &args, 0);
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args), 0, "QUEUE_CREATE: defaults");
	tap_ok(args.queue_id && args.queue_id != 0xa5a5a5a5, "QUEUE_CREATE: a non-zero id");
	abi_queue_destroy(fd, args.queue_id);
	args.flags = 1;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args), -EINVAL, "QUEUE_CREATE: flags");
	tap_ret(abi_queue_create(fd, 2, 0, ids), -EINVAL, "QUEUE_CREATE: unknown priority");
	tap_ret(abi_queue_create(fd, ~0u, 0, ids), -EINVAL, "QUEUE_CREATE: priority ~0");
	tap_ret(abi_queue_create(fd, 0, 60001, ids), -EINVAL, "QUEUE_CREATE: timeout of 60001 ms");
	tap_ret(abi_queue_create(fd, 0, ~0u, ids), -EINVAL, "QUEUE_CREATE: timeout ~0");
	/* test_pointer() left a queue. */
	for (i = 1; i < 16; i++)
		abi_queue_destroy(fd, i);
	for (made = 0; made < 256; made++)
		if (abi_queue_create(fd, made % classes, made & 2 ? 60000 : 1, &ids[made]))
			break;
	tap_eq(made, 256, "QUEUE_CREATE: 256 queues of all permitted classes");
	tap_ret(abi_queue_create(fd, 0, 0, &ids[256]), -ENOSPC, "QUEUE_CREATE: the 257th");
	for (i = 0; i < made; i++)
		abi_queue_destroy(fd, ids[i]);
}

void test_queue(int fd)
{
	struct drm_spyre_queue_query query;
	struct drm_spyre_queue_destroy destroy = { 0 };
	uint32_t id;

	test_queue_create(fd);
	test_queue_high(fd);
	if (abi_queue_create(fd, 0, 0, &id))
		tap_bail("QUEUE_CREATE");
	memset(&query, 0xa5, sizeof(query));
	query.queue_id = id;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), -EINVAL, "QUEUE_QUERY: pad");
	query.pad = 0;
	query.queue_id = id;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), 0, "QUEUE_QUERY");
	tap_ok(query.queue_id == id && !query.pad && query.state == DRM_SPYRE_QUEUE_OK &&
	       !query.error && !query.submitted && !query.completed,
	       "QUEUE_QUERY: a new queue is idle and has no error");
	test_pointer(fd, "QUEUE_QUERY", DRM_IOCTL_SPYRE_QUEUE_QUERY, &query, 0);
	query.queue_id = 0;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), -ENOENT, "QUEUE_QUERY: id 0");
	query.queue_id = NEVER;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), -ENOENT,
		"QUEUE_QUERY: unknown id");
	destroy.queue_id = id;
	destroy.pad = 1;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &destroy), -EINVAL,
		"QUEUE_DESTROY: pad");
	destroy.pad = 0;
	test_pointer(fd, "QUEUE_DESTROY", DRM_IOCTL_SPYRE_QUEUE_DESTROY, &destroy, 0);
	tap_ret(abi_queue_destroy(fd, id), -ENOENT, "QUEUE_DESTROY: twice");
	tap_ret(abi_queue_destroy(fd, 0), -ENOENT, "QUEUE_DESTROY: id 0");
	tap_ret(abi_queue_destroy(fd, NEVER), -ENOENT, "QUEUE_DESTROY: unknown id");
}
