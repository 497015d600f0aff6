/* SPDX-License-Identifier: MIT */
/*
 * abi-fields: the tables of SUBMIT again through io_uring, whose command area holds
 * the same struct, and the fields of the SQE around it.
 */
#include "config.h"

#ifdef HAVE_LIBURING

#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <liburing.h>

static struct io_uring ring;
/* Changes the SQE before its submission. */
static void (*tamper)(struct io_uring_sqe *sqe, uint64_t value);
static uint64_t tamper_value;
static uint64_t extra;

static int issue(struct fields_context *c, const struct target *t, void *argument)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		tap_bail("no SQE");
	memset(sqe, 0, ring.flags & IORING_SETUP_SQE128 ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = c->fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	if (ring.flags & IORING_SETUP_SQE128)
		memcpy(sqe->cmd, argument, _IOC_SIZE(t->request));
	if (tamper)
		tamper(sqe, tamper_value);
	ret = io_uring_submit(&ring);
	if (ret < 0)
		tap_bail("io_uring_enter: %s", strerror(-ret));
	ret = io_uring_wait_cqe(&ring, &cqe);
	if (ret)
		tap_bail("io_uring_wait_cqe: %s", strerror(-ret));
	ret = cqe->res;
	extra = ring.flags & IORING_SETUP_CQE32 ? cqe->big_cqe[0] : 0;
	io_uring_cqe_seen(&ring, cqe);
	return ret;
}

static bool open_ring(unsigned int flags)
{
	struct io_uring_params params = { .flags = flags };
	int ret = io_uring_queue_init_params(8, &ring, &params);

	if (!ret)
		return true;
	tap_skip(strerror(-ret), "io_uring with flags 0x%x", flags);
	return false;
}

static void set_op(struct io_uring_sqe *sqe, uint64_t value)
{
	sqe->cmd_op = (uint32_t)value;
}

static void set_flags(struct io_uring_sqe *sqe, uint64_t value)
{
	sqe->uring_cmd_flags = (uint32_t)value;
}

static void set_pad(struct io_uring_sqe *sqe, uint64_t value)
{
	sqe->__pad1 = (uint32_t)value;
}

static void set_fixed(struct io_uring_sqe *sqe, uint64_t value)
{
	sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	sqe->buf_index = (uint16_t)value;
}

/* Sets a byte of the command area after the struct. */
static void set_tail(struct io_uring_sqe *sqe, uint64_t value)
{
	sqe->cmd[sizeof(struct drm_spyre_submit) + value] = 1;
}

static const struct target *submit_target(const char *name)
{
	uint32_t i;

	for (i = 0; i < fields_num_targets; i++)
		if (!strcmp(fields_targets[i].name, name))
			return &fields_targets[i];
	tap_bail("no target %s", name);
}

static int tampered(struct fields_context *c, const struct target *t,
		    void (*how)(struct io_uring_sqe *sqe, uint64_t value), uint64_t value)
{
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 };
	int ret;

	tamper = how;
	tamper_value = value;
	t->good(c, argument);
	ret = issue(c, t, argument);
	tamper = NULL;
	return ret;
}

/*
 * The result of a request that names a buffer which is not registered, and does not
 * use it.  Older kernels look for it before the driver sees the request, newer ones
 * where it is used; a request to a file of another kind tells them apart.
 */
static int unused_buffer(const struct fields_context *c, const struct target *t)
{
	struct fields_context other = *c;
	int ret;

	other.fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (other.fd < 0)
		tap_bail("socket: %s", strerror(errno));
	ret = tampered(&other, t, set_fixed, 0);
	close(other.fd);
	return ret == -EFAULT ? -EFAULT : 0;
}

static void test_buffers(struct fields_context *c)
{
	const struct target *t = submit_target("SUBMIT"), *dma = submit_target("SUBMIT, DMA H2D");
	static uint8_t memory[16384] __attribute__((aligned(4096)));
	struct iovec buffer = { memory, sizeof(memory) };
	const int unused = unused_buffer(c, t);

	tap_ret(tampered(c, t, set_fixed, 0), unused, "SQE: a buffer although none is registered");
	tap_ret(tampered(c, dma, set_fixed, 0), -EFAULT, "SQE: a host span in such a buffer");
	if (io_uring_register_buffers(&ring, &buffer, 1))
		tap_bail("io_uring_register_buffers");
	tap_ret(tampered(c, t, set_fixed, 0), 0, "SQE: a buffer that no span uses");
	tap_ret(tampered(c, dma, set_fixed, 0), -EFAULT, "SQE: a host span outside the buffer");
	tap_ret(tampered(c, t, set_fixed, 1), unused, "SQE: buffer 1 of 1");
	tap_ret(tampered(c, dma, set_fixed, 1), -EFAULT, "SQE: a host span in buffer 1 of 1");
	tap_ret(tampered(c, t, set_fixed, 0xffff), unused, "SQE: buffer 65535");
	tap_ret(tampered(c, dma, set_fixed, 0xffff), -EFAULT, "SQE: a host span in buffer 65535");
	io_uring_unregister_buffers(&ring);
}

static void test_sqe(struct fields_context *c)
{
	const struct target *t = submit_target("SUBMIT");
	uint32_t bit, bad = 0;
	uint64_t i;

	tap_ret(tampered(c, t, set_op, 0), -ENOTTY, "SQE: cmd_op 0");
	for (bit = 0; bit < 32; bit++)
		bad += tampered(c, t, set_op, DRM_SPYRE_URING_SUBMIT ^ 1u << bit) != -ENOTTY;
	bad += tampered(c, t, set_op, ~0u) != -ENOTTY;
	tap_eq(bad, 0, "SQE: every other cmd_op");
	for (bit = 1, bad = 0; bit < 32; bit++)
		bad += tampered(c, t, set_flags, 1u << bit) != -EINVAL;
	tap_eq(bad, 0, "SQE: every unknown flag");
	for (bit = 0, bad = 0; bit < 32; bit++)
		bad += tampered(c, t, set_pad, 1u << bit) != -EINVAL;
	tap_eq(bad, 0, "SQE: every bit of its pad");
	for (i = 0, bad = 0; i < 80 - sizeof(struct drm_spyre_submit); i++)
		bad += tampered(c, t, set_tail, i) != -E2BIG;
	tap_eq(bad, 0, "SQE: every byte past the struct");
	test_buffers(c);
}

/* With small and large CQEs: the same errors; a large one reports the block. */
static void test_walk(unsigned int flags, const char *how)
{
	struct fields_context c = fields_context();
	struct fields_state before = fields_state(&c);
	const struct target *fill = submit_target("SUBMIT, FILL");
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 };
	uint32_t i;

	if (!open_ring(flags))
		goto free;
	for (i = 0; i < fields_num_targets; i++)
		if (_IOC_NR(fields_targets[i].request) == DRM_COMMAND_BASE + DRM_SPYRE_SUBMIT)
			fields_walk(&c, &fields_targets[i], issue, how);
	if (flags & IORING_SETUP_CQE32) {
		fill->good(&c, argument);
		c.cb.flags = 1;
		tap_ret(issue(&c, fill, argument), -EINVAL, "CQE32: a bad control block");
		tap_eq(extra, 0, "CQE32: reports the first control block");
		c.cb.flags = 0;
		((struct drm_spyre_submit *)argument)->flags = 1;
		tap_ret(issue(&c, fill, argument), -EINVAL, "CQE32: a bad submission");
		tap_eq((uint32_t)extra, ~0u, "CQE32: reports that no control block failed");
		test_sqe(&c);
	}
	fields_same_state(&c, &before, "io_uring");
	io_uring_queue_exit(&ring);
free:
	fields_context_free(&c);
}

void test_fields_uring(void)
{
	struct fields_context c = fields_context();
	uint8_t argument[FIELDS_MAX_ARGUMENT] = { 0 };
	const struct target *t = submit_target("SUBMIT");

	t->good(&c, argument);
	if (open_ring(0)) {
		tap_ret(issue(&c, t, argument), -EINVAL, "SQE: of 64 bytes");
		io_uring_queue_exit(&ring);
	}
	if (open_ring(IORING_SETUP_CQE32)) {
		tap_ret(issue(&c, t, argument), -EINVAL, "SQE: of 64 bytes, CQE of 32");
		io_uring_queue_exit(&ring);
	}
	fields_context_free(&c);
	test_walk(IORING_SETUP_SQE128, ", io_uring");
	test_walk(IORING_SETUP_SQE128 | IORING_SETUP_CQE32, ", io_uring with CQE32");
}

#endif /* HAVE_LIBURING */
