/* SPDX-License-Identifier: MIT */
/* abi-fields: derives invalid values from the kind of a field, and checks the state afterwards. */
#include "fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

/* One walk over a target. */
struct walk {
	struct fields_context *c;
	const struct target *t;
	fields_issue issue;
	const char *how;
	uint32_t tried, failed, notes;
	/* the current field */
	const struct field *f;
};

struct fields_context fields_context(void)
{
	struct abi_prog p = abi_prog_add(1, 4);
	struct fields_context c = { .fd = abi_open() };

	c.queue = abi_queue(c.fd, 0);
	c.device = abi_buf(c.fd, FIELDS_BYTES, DRM_SPYRE_BO_DEVICE, FIELDS_VA);
	c.host = abi_buf(c.fd, FIELDS_BYTES, DRM_SPYRE_BO_HOST, 0);
	c.small = abi_buf(c.fd, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	c.image = abi_prog_encode(&p, &c.image_size);
	c.program = abi_prog_create(c.fd, &p);
	c.syncobj = abi_syncobj(c.fd);
	return c;
}

void fields_context_free(struct fields_context *c)
{
	abi_prog_destroy(c->fd, c->program);
	drmSyncobjDestroy(c->fd, c->syncobj);
	abi_buf_free(c->fd, &c->small);
	abi_buf_free(c->fd, &c->device);
	abi_buf_free(c->fd, &c->host);
	abi_queue_free(&c->queue);
	free(c->image);
	close(c->fd);
}

int fields_ioctl(struct fields_context *c, const struct target *t, void *argument)
{
	return abi_ioctl(c->fd, t->request, argument);
}

/* The ids that the next objects of each kind get: the lowest free ones. */
struct fields_state fields_state(struct fields_context *c)
{
	struct fields_state state = { 0 };
	struct drm_spyre_program_create program;

	abi_prog_destroy(c->fd, c->spare_program);
	abi_queue_destroy(c->fd, c->spare_queue);
	c->spare_program = c->spare_queue = 0;
	abi_wait(&c->queue, 10000);
	if (abi_bo(c->fd, PAGE, DRM_SPYRE_BO_HOST, &state.bo) ||
	    abi_queue_create(c->fd, 0, 0, &state.queue) ||
	    abi_prog_load(c->fd, c->image, c->image_size, &program))
		tap_bail("calls that worked before fail now");
	state.program = program.handle;
	state.syncobj = abi_syncobj(c->fd);
	abi_gem_close(c->fd, state.bo);
	abi_queue_destroy(c->fd, state.queue);
	abi_prog_destroy(c->fd, state.program);
	drmSyncobjDestroy(c->fd, state.syncobj);
	state.used = abi_memory(c->fd).used;
	return state;
}

void fields_same_state(struct fields_context *c, const struct fields_state *before,
		       const char *name)
{
	struct fields_state now;
	struct drm_spyre_cb cb = abi_cb_fill32(c->device.va, PAGE, 0x600d600d);

	fields_state(c);
	abi_memory_settles(c->fd, before->used);
	now = fields_state(c);
	if (memcmp(&now, before, sizeof(now)))
		tap_note("next BO %u, queue %u, program %u, syncobj %u, %llu bytes; before "
			 "%u, %u, %u, %u, %llu", now.bo, now.queue, now.program, now.syncobj,
			 (unsigned long long)now.used, before->bo, before->queue, before->program,
			 before->syncobj, (unsigned long long)before->used);
	tap_ok(!memcmp(&now, before, sizeof(now)), "%s: no handle, id or memory is leaked",
	       name);
	tap_ret(abi_run(&c->queue, &cb, 1), 0, "%s: new work is accepted", name);
	tap_eq(*(uint32_t *)c->device.map, 0x600d600d, "%s: new work completes", name);
}

/* --- one invalid value --- */

static void *subject_of(struct walk *w, void *argument)
{
	return w->t->subject ? w->t->subject(w->c) : argument;
}

/* Makes the good call with @size bytes at @offset of the subject replaced by @value. */
static int call_with(struct walk *w, uint32_t offset, const void *value, size_t size)
{
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 };
	int ret;

	w->t->good(w->c, argument);
	memcpy((uint8_t *)subject_of(w, argument) + offset, value, size);
	ret = w->issue(w->c, w->t, argument);
	if (!ret && w->t->undo)
		w->t->undo(w->c, argument);
	return ret;
}

static const char *errno_name(int ret)
{
	const char *name = ret ? strerrorname_np(-ret) : "0";

	return name ? name : "?";
}

static void expect(struct walk *w, int want, uint32_t offset, const void *value, size_t size,
		   const char *what)
{
	int ret = call_with(w, w->f->offset + offset, value, size);

	w->tried++;
	if (ret == want)
		return;
	w->failed++;
	if (w->notes++ >= 4)
		return;
	tap_note("%s%s: %s: %s gives %s, expected %s", w->t->name, w->how, w->f->name, what,
		 errno_name(ret), errno_name(want));
}

static void expect_number(struct walk *w, int want, uint64_t value)
{
	char what[32];

	snprintf(what, sizeof(what), "0x%llx", (unsigned long long)value);
	expect(w, want, 0, &value, w->f->size, what);
}

static void walk_flags(struct walk *w)
{
	uint32_t bit;

	for (bit = 0; bit < 8u * w->f->size; bit++)
		if (!(w->f->arg & 1ull << bit))
			expect_number(w, -EINVAL, (w->f->arg & -w->f->arg) | 1ull << bit);
	expect_number(w, -EINVAL, ~0ull);
}

/* Each bit of each byte, one by one. */
static void walk_mbz(struct walk *w)
{
	char what[32];
	uint32_t bit;
	uint8_t value;

	for (bit = 0; bit < 8u * w->f->size; bit++) {
		value = 1 << bit % 8;
		snprintf(what, sizeof(what), "bit %u", bit);
		expect(w, -EINVAL, bit / 8, &value, 1, what);
	}
}

static void walk_enum(struct walk *w)
{
	const uint64_t most = w->f->size == 8 ? ~0ull : (1ull << 8 * w->f->size) - 1;
	uint64_t bit;

	if (w->f->kind == FIELD_ENUM1)
		expect_number(w, -EINVAL, 0);
	expect_number(w, -EINVAL, w->f->arg + 1);
	for (bit = 1; bit && bit <= most; bit <<= 1)
		if (bit > w->f->arg)
			expect_number(w, -EINVAL, bit);
	expect_number(w, -EINVAL, most);
}

/* Handles are local to a file: another file's object of that number must not be used. */
static uint32_t foreign(struct walk *w, struct fields_context *other)
{
	struct abi_prog p = abi_prog_add(1, 1);
	uint32_t id = 0, i;

	*other = (struct fields_context){ .fd = abi_open() };
	for (i = 0; i < 64; i++) {
		switch (w->f->kind) {
		case FIELD_BO: abi_bo(other->fd, PAGE, (uint32_t)w->f->arg & 1 ? 1 : 2, &id); break;
		case FIELD_PROGRAM: id = abi_prog_create(other->fd, &p); break;
		case FIELD_QUEUE: abi_queue_create(other->fd, 0, 0, &id); break;
		default: id = abi_syncobj(other->fd); break;
		}
	}
	return id;
}

static void walk_handle(struct walk *w)
{
	static const uint32_t never[] = { NEVER, NEVER - 1, 1u << 31, 0x7fffffff, 1u << 24, 257 };
	struct fields_context other;
	uint32_t i, id;

	expect_number(w, w->f->how & FIELD_OR_NONE ? 0 :
			 w->f->how & FIELD_OR_ADDRESS ? -EFAULT : -ENOENT, 0);
	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		expect_number(w, -ENOENT, never[i]);
	id = foreign(w, &other);
	expect_number(w, -ENOENT, id);
	close(other.fd);
	if (w->f->kind == FIELD_BO && !(w->f->arg & DRM_SPYRE_BO_HOST))
		expect_number(w, -EINVAL, w->c->host.handle);
	if (w->f->kind == FIELD_BO && !(w->f->arg & DRM_SPYRE_BO_DEVICE))
		expect_number(w, -EINVAL, w->c->small.handle);
	if (w->f->kind == FIELD_BO) {
		/* A closed handle. */
		abi_bo(w->c->fd, PAGE, DRM_SPYRE_BO_HOST, &id);
		abi_gem_close(w->c->fd, id);
		expect_number(w, -ENOENT, id);
	}
}

static void *read_only(void)
{
	static void *page;

	if (!page)
		page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page;
}

static uint64_t field_value(struct walk *w, uint32_t offset)
{
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 };
	uint64_t value = 0;

	w->t->good(w->c, argument);
	memcpy(&value, (uint8_t *)subject_of(w, argument) + w->f->offset + offset, 8);
	return value;
}

/* The address at @offset of the field, of @bytes that the kernel reads or writes (@write). */
static void walk_address(struct walk *w, uint32_t offset, size_t bytes, bool write)
{
	static const uint64_t nowhere[] = {
		0xffff888000000000ull, 0xffffffff81000000ull, 1ull << 63, 0x800000000000ull, ~0ull,
		~0ull - 63, 64,
	};
	const uint64_t good = field_value(w, offset);
	uint8_t *edge;
	uint64_t at = 0;
	uint32_t i;

	if (!(w->f->how & FIELD_OR_NONE))
		expect(w, -EFAULT, offset, &at, 8, "NULL");
	at = PTR(abi_hole());
	expect(w, -EFAULT, offset, &at, 8, "an unmapped address");
	for (i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		at = nowhere[i];
		expect(w, -EFAULT, offset, &at, 8, "an address outside user space");
	}
	if (write) {
		at = PTR(read_only());
		expect(w, -EFAULT, offset, &at, 8, "read-only memory");
	}
	edge = abi_guard(bytes);
	memcpy(edge, (void *)(uintptr_t)good, bytes);
	at = PTR(edge);
	expect(w, 0, offset, &at, 8, "memory that ends with its page");
	at = PTR(edge + 1);
	expect(w, -EFAULT, offset, &at, 8, "memory of which a byte is missing");
	abi_guard_free(edge, bytes);
	edge = malloc(bytes + 1);
	memcpy(edge + 1, (void *)(uintptr_t)good, bytes);
	at = PTR(edge + 1);
	expect(w, 0, offset, &at, 8, "an odd address");
	free(edge);
}

/* Two elements of @stride bytes at a page's end; the last byte of the second is @tail. */
static int longer(struct walk *w, uint32_t stride, uint32_t at, uint8_t tail)
{
	const struct drm_spyre_array good = {
		.stride = stride, .count = 1, .array = field_value(w, 8),
	};
	struct drm_spyre_array array = good;
	uint8_t *edge = abi_guard(stride);
	int ret;

	memset(edge, 0, stride);
	memcpy(edge, (void *)(uintptr_t)good.array, w->f->arg);
	if (at < stride)
		edge[at] = tail;
	array.array = PTR(edge);
	ret = call_with(w, w->f->offset, &array, sizeof(array));
	abi_guard_free(edge, stride);
	return ret;
}

static void expect_longer(struct walk *w, int want, uint32_t stride, uint32_t at)
{
	int ret = longer(w, stride, at, 0x80);

	w->tried++;
	if (ret == want)
		return;
	w->failed++;
	tap_note("%s%s: %s: stride %u with a tail of %s gives %s, expected %s", w->t->name, w->how,
		 w->f->name, stride, at < stride ? "more" : "zeros", errno_name(ret),
		 errno_name(want));
}

static void walk_array(struct walk *w)
{
	const uint32_t size = (uint32_t)w->f->arg;
	const uint32_t bad_stride[] = { 0, 1, 8, size / 2, size - 8, size - 1, 4097, 1u << 16,
					1u << 31, ~0u, ~0u & ~7u };
	const uint32_t bad_count[] = { w->f->max + 1, 2 * w->f->max, 1u << 16, 1u << 31, ~0u };
	uint32_t i, value = 0;

	for (i = 0; i < sizeof(bad_stride) / sizeof(bad_stride[0]); i++)
		expect(w, -EINVAL, 0, &bad_stride[i], 4, "a wrong stride");
	expect(w, w->f->how & FIELD_OR_NONE ? 0 : -EINVAL, 4, &value, 4, "no element");
	for (i = 0; i < sizeof(bad_count) / sizeof(bad_count[0]); i++)
		expect(w, -EINVAL, 4, &bad_count[i], 4, "too many elements");
	walk_address(w, 8, size, false);
	expect_longer(w, 0, size + 8, ~0u);
	expect_longer(w, 0, size + 1, ~0u);
	expect_longer(w, 0, 4096, ~0u);
	for (i = size; i < size + 16; i++)
		expect_longer(w, -E2BIG, size + 16, i);
	expect_longer(w, -E2BIG, 4096, 4095);
}

/* A byte that two calls leave with two patterns was not written. */
static void walk_out(struct walk *w)
{
	uint8_t a[FIELDS_MAX_ARGUMENT], b[FIELDS_MAX_ARGUMENT], kept = 0;
	uint8_t *each[2] = { a, b };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		memset(each[i], 0, FIELDS_MAX_ARGUMENT);
		w->t->good(w->c, each[i]);
		memset(each[i] + w->f->offset, i ? 0x5a : 0xa5, w->f->size);
		if (w->issue(w->c, w->t, each[i]))
			tap_note("%s: %s: the previous value is not ignored", w->t->name, w->f->name);
		if (w->t->undo)
			w->t->undo(w->c, each[i]);
	}
	w->tried += 2;
	for (i = w->f->offset; i < w->f->offset + w->f->size; i++)
		kept |= a[i] == 0xa5 && b[i] == 0x5a;
	if (!kept)
		return;
	w->failed++;
	tap_note("%s: %s: not all of it is written", w->t->name, w->f->name);
}

static void walk_field(struct walk *w)
{
	switch (w->f->kind) {
	case FIELD_FLAGS: walk_flags(w); break;
	case FIELD_MBZ: walk_mbz(w); break;
	case FIELD_ENUM:
	case FIELD_ENUM1: walk_enum(w); break;
	case FIELD_BO:
	case FIELD_PROGRAM:
	case FIELD_QUEUE:
	case FIELD_SYNCOBJ: walk_handle(w); break;
	case FIELD_READ:
		walk_address(w, 0, w->f->arg ? w->f->arg : w->c->image_size, false);
		break;
	case FIELD_WRITE: walk_address(w, 0, w->f->arg, true); break;
	case FIELD_ARRAY: walk_array(w); break;
	case FIELD_OUT:
		if (w->issue == fields_ioctl)
			walk_out(w);
		break;
	case FIELD_OTHER: break;
	}
}

/* A field that no table lists would remain untested unnoticed. */
static bool complete(const struct target *t)
{
	const uint32_t size = t->size ? t->size : _IOC_SIZE(t->request);
	uint32_t at = 0, i;

	if (t->fields[0].offset == 0 && size == sizeof(struct drm_spyre_dma))
		return true;	/* its dims and bounds are checked by the verifier's tests */
	for (i = 0; i < t->num_fields && t->fields[i].offset == at; i++)
		at += t->fields[i].size;
	return at == size;
}

uint32_t fields_walk(struct fields_context *c, const struct target *t, fields_issue issue,
		     const char *how)
{
	struct walk w = { .c = c, .t = t, .issue = issue, .how = how };
	uint8_t nothing = 0;
	uint32_t i;

	tap_ok(complete(t), "%s%s: the table covers every field", t->name, how);
	w.f = &(struct field){ .name = "nothing wrong", .how = 0 };
	if (!tap_ret(call_with(&w, 0, &nothing, 0), 0,
	"%s%s: the valid call succeeds", t->name, how))
		return 0;
	for (i = 0; i < t->num_fields; i++) {
		w.f = &t->fields[i];
		w.notes = 0;
		if (w.f->probe && !w.f->probe(c))
			tap_skip("the module lacks this ioctl", "%s%s: %s", t->name, how,
				 w.f->name);
		else
			walk_field(&w);
	}
	tap_eq(w.failed, 0, "%s%s: %u values of its fields", t->name, how, w.tried);
	return w.tried;
}

bool fields_supported(struct fields_context *c, const struct target *t)
{
	struct walk w = { .c = c, .t = t, .issue = fields_ioctl };

	return !t->since || call_with(&w, 0, "", 0) != -EINVAL;
}
