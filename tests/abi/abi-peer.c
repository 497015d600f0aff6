/* SPDX-License-Identifier: MIT */
/*
 * Peers: device memory of another card or virtual function, and PEER_COPY. Needs two
 * functions (cards=2, or vfs=2); as root it also resets and unbinds the other card.
 */
#include "fence.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#define SIZE (2 * MIB)
#define NEAR_VA (64 * MIB)
#define FAR_VA (96 * MIB)

/* The other function: its node, and its card's index. */
static char far_node[32];
static uint32_t near_index, far_index;

/* A file of this card and one of the other, with memory, and a dma-buf of the other's. */
struct pair {
	int near, far;
	struct abi_queue queue;		/* of @near */
	struct abi_buf here, there;
	int dmabuf;
	uint32_t peer;			/* @there in @near */
};

static struct drm_spyre_card_info card_info(int fd)
{
	struct drm_spyre_card_info info = { 0 };
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD,
					     .size = sizeof(info), .pointer = PTR(&info) };

	if (abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query))
		tap_bail("DEV_QUERY of the card");
	return info;
}

static bool same_node(int fd, const struct stat *st)
{
	struct stat own;

	return !fstat(fd, &own) && own.st_rdev == st->st_rdev;
}

/* Finds a function that is not that of @fd, of another card if there is one. */
static bool find_far(int fd)
{
	struct drm_spyre_card_info info;
	bool found = false;
	char node[32];
	struct stat st;
	int i, other;

	near_index = card_info(fd).index;
	for (i = 0; i < 32; i++) {
		snprintf(node, sizeof(node), "/dev/accel/accel%d", i);
		if (stat(node, &st) || same_node(fd, &st))
			continue;
		other = open(node, O_RDWR | O_CLOEXEC);
		if (other < 0)
			continue;
		info = card_info(other);
		close(other);
		/* The memory of a card that is split belongs to its VFs. */
		if (info.num_vfs || (found && info.index == near_index))
			continue;
		snprintf(far_node, sizeof(far_node), "%s", node);
		far_index = info.index;
		found = true;
		if (far_index != near_index)
			return true;
	}
	return found;
}

static int far_open(void)
{
	int fd = -1, i;

	for (i = 0; i < 200 && fd < 0; i++) {
		fd = open(far_node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			abi_sleep_ms(20);
	}
	if (fd < 0)
		tap_bail("cannot open %s: %s", far_node, strerror(errno));
	return fd;
}

static int export(int fd, uint32_t handle, uint32_t flags)
{
	int dmabuf;

	if (drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC | flags, &dmabuf))
		tap_bail("PRIME_HANDLE_TO_FD: %s", strerror(errno));
	return dmabuf;
}

static uint32_t import(int fd, int dmabuf)
{
	uint32_t handle;

	if (drmPrimeFDToHandle(fd, dmabuf, &handle))
		tap_bail("PRIME_FD_TO_HANDLE: %s", strerror(errno));
	return handle;
}

static void fill(void *to, uint64_t bytes, uint32_t seed)
{
	uint32_t *word = to;

	for (uint64_t i = 0; i < bytes / 4; i++)
		word[i] = (seed = seed * 1664525 + 1013904223);
}

static struct pair pair_make(void)
{
	struct pair p = { .near = abi_open(), .far = far_open() };

	p.queue = abi_queue(p.near, 60000);
	p.here = abi_buf(p.near, SIZE, DRM_SPYRE_BO_DEVICE, NEAR_VA);
	p.there = abi_buf(p.far, SIZE, DRM_SPYRE_BO_DEVICE, FAR_VA);
	p.dmabuf = export(p.far, p.there.handle, DRM_RDWR);
	p.peer = import(p.near, p.dmabuf);
	fill(p.here.map, SIZE, 1);
	fill(p.there.map, SIZE, 2);
	return p;
}

static void pair_free(struct pair *p)
{
	abi_queue_free(&p->queue);
	abi_buf_free(p->near, &p->here);
	abi_gem_close(p->near, p->peer);
	close(p->near);
	if (p->there.map)
		abi_buf_free(p->far, &p->there);
	if (p->dmabuf >= 0)
		close(p->dmabuf);
	if (p->far >= 0)
		close(p->far);
}

static struct drm_spyre_peer_copy copy_of(const struct pair *p, uint32_t direction, uint64_t bytes)
{
	return (struct drm_spyre_peer_copy){
		.direction = direction, .handle = p->peer, .rows = 1, .row_bytes = bytes,
	};
}

static struct drm_spyre_cb cb_of(const struct drm_spyre_peer_copy *copy, uint64_t va)
{
	struct drm_spyre_cb cb = { .type = DRM_SPYRE_CB_PEER_COPY, .desc = PTR(copy) };

	if (copy->direction == DRM_SPYRE_PEER_WRITE)
		cb.src = va;
	else
		cb.dst = va;
	return cb;
}

static int run(struct pair *p, const struct drm_spyre_peer_copy *copy, uint64_t va)
{
	struct drm_spyre_cb cb = cb_of(copy, va);

	return abi_run(&p->queue, &cb, 1);
}

static void test_import(void)
{
	struct pair p = pair_make();
	struct drm_spyre_bo_mmap_offset offset = { .handle = p.peer };
	struct drm_spyre_bo_info info = { 0 };
	struct abi_buf host = abi_buf(p.far, PAGE, DRM_SPYRE_BO_HOST, 0);
	int dmabuf, own;

	tap_ret(memory_info(p.near, p.peer, &info), 0, "BO_INFO of a peer");
	tap_eq(info.flags, DRM_SPYRE_BO_PEER, "its flags");
	tap_eq(info.size, SIZE, "its size");
	tap_eq(import(p.near, p.dmabuf), p.peer, "the second import has the same handle");
	tap_ret(abi_ioctl(p.near, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &offset), -EINVAL,
		"BO_MMAP_OFFSET of a peer");
	dmabuf = export(p.near, p.peer, DRM_RDWR);
	tap_eq(import(p.far, dmabuf), p.there.handle, "its dma-buf is that of the other card's BO");
	close(dmabuf);

	own = export(p.near, p.here.handle, DRM_RDWR);
	tap_eq(import(p.near, own), p.here.handle, "a BO of this card is no peer");
	close(own);
	dmabuf = export(p.far, host.handle, DRM_RDWR);
	tap_ret(memory_info(p.near, import(p.near, dmabuf), &info), 0, "import of host memory");
	tap_eq(info.flags, DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORTED, "stays host memory");
	close(dmabuf);
	abi_buf_free(p.far, &host);
	tap_eq(memory_fdinfo(p.near, "drm-total-lpddr5:"), SIZE,
	       "fdinfo counts a peer where it was allocated");
	pair_free(&p);
}

/* A peer is no operand, host span or result. */
static void test_other_uses(void)
{
	struct pair p = pair_make();
	struct drm_spyre_dma desc = abi_dma_raw(DRM_SPYRE_DMA_H2D, STICK);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&desc, NEAR_VA, p.peer, 0, STICK);
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	struct abi_buf results = p.queue.results;
	uint32_t at = 0;

	tap_ret(abi_bind(p.near, p.peer, 0, FAR_VA, SIZE, 0), -EXDEV, "VM_BIND of a peer");
	tap_ret(abi_submit(&p.queue, &cb, 1, &at), -EXDEV, "DMA with a peer as host memory");
	tap_eq(at, 0, "error_cb names the block");
	p.queue.results.handle = p.peer;
	tap_ret(abi_submit(&p.queue, &stamp, 1, NULL), -EXDEV, "a peer as result BO");
	p.queue.results = results;
	pair_free(&p);
}

struct refusal {
	const char *name;
	int error;
	struct drm_spyre_peer_copy copy;
	struct drm_spyre_cb cb;		/* desc 0: filled in */
};

static void test_refusals(void)
{
	struct pair p = pair_make();
	const struct drm_spyre_peer_copy good = copy_of(&p, DRM_SPYRE_PEER_READ, STICK);
	struct abi_buf host = abi_buf(p.near, PAGE, DRM_SPYRE_BO_HOST, 0);
	struct refusal list[40];
	unsigned int n = 0;
	uint32_t at;

#define ADD(text, errno_, ...) do { \
	list[n] = (struct refusal){ text, errno_, good, cb_of(&good, NEAR_VA) }; \
	list[n].cb.desc = 0; \
	struct drm_spyre_peer_copy *copy = &list[n].copy; \
	struct drm_spyre_cb *cb = &list[n].cb; \
	(void)copy; \
	(void)cb; \
	__VA_ARGS__; \
	n++; \
} while (0)
	ADD("direction 2", -EINVAL, copy->direction = 2);
	ADD("reserved[0]", -EINVAL, copy->reserved[0] = 1);
	ADD("reserved[1]", -EINVAL, copy->reserved[1] = 1ull << 63);
	ADD("no rows", -EINVAL, copy->rows = 0);
	ADD("2^31 + 1 rows", -EINVAL, copy->rows = (1ull << 31) + 1, copy->stride = STICK,
	    copy->local_stride = STICK);
	ADD("no bytes", -EINVAL, copy->row_bytes = 0);
	ADD("rows of 2^64 - 1 bytes", -EINVAL, copy->row_bytes = ~0ull);
	ADD("stride below the row", -EINVAL, copy->rows = 2, copy->stride = STICK - 1,
	    copy->local_stride = STICK);
	ADD("local stride below the row", -EINVAL, copy->rows = 2, copy->stride = STICK,
	    copy->local_stride = 0);
	ADD("strides whose sum wraps", -EINVAL, copy->rows = 3, copy->stride = 1ull << 63,
	    copy->local_stride = STICK);
	ADD("offset at the end", -EINVAL, copy->offset = SIZE);
	ADD("one byte too many", -EINVAL, copy->offset = SIZE - STICK + 1);
	ADD("offset 2^64 - 1", -EINVAL, copy->offset = ~0ull);
	ADD("a row too many here", -EFAULT, copy->rows = 2, copy->stride = STICK,
	    copy->local_stride = SIZE - STICK + 1);
	ADD("a row too many there", -EINVAL, copy->rows = 2, copy->stride = SIZE - STICK + 1,
	    copy->local_stride = STICK);
	ADD("unknown handle", -ENOENT, copy->handle = NEVER);
	ADD("handle 0", -ENOENT, copy->handle = 0);
	ADD("host memory", -EINVAL, copy->handle = host.handle);
	ADD("address that is not mapped", -EFAULT, cb->dst = FAR_VA);
	ADD("mapping that ends early", -EFAULT, cb->dst = NEAR_VA + SIZE - STICK + 1);
	ADD("both addresses", -EINVAL, cb->src = NEAR_VA);
	ADD("the wrong address", -EINVAL, cb->dst = 0, cb->src = NEAR_VA);
	ADD("write with dst", -EINVAL, copy->direction = DRM_SPYRE_PEER_WRITE);
	ADD("descriptor that cannot be read", -EFAULT, cb->desc = PTR(abi_hole()));
	ADD("size", -EINVAL, cb->size = STICK);
	ADD("flags", -EINVAL, cb->flags = 1);
	ADD("program", -EINVAL, cb->program = 1);
	ADD("num_args", -EINVAL, cb->num_args = 1);
	ADD("args", -EINVAL, cb->args = 1);
	ADD("host_addr", -EINVAL, cb->host_addr = 1);
	ADD("host_handle", -EINVAL, cb->host_handle = p.peer);
	ADD("host_offset", -EINVAL, cb->host_offset = 1);
	ADD("pattern_size", -EINVAL, cb->pattern_size = 1);
	ADD("pattern", -EINVAL, cb->pattern[1] = 1);
	ADD("reserved of the block", -EINVAL, cb->reserved[2] = 1);
#undef ADD
	for (unsigned int i = 0; i < n; i++) {
		struct drm_spyre_cb cbs[2] = { abi_cb_timestamp(), list[i].cb };

		if (!cbs[1].desc)
			cbs[1].desc = PTR(&list[i].copy);
		at = 0;
		tap_ret(abi_submit(&p.queue, cbs, 2, &at), list[i].error, "PEER_COPY: %s",
			list[i].name);
		if (at != 1)
			tap_ok(false, "PEER_COPY: %s: error_cb is %u", list[i].name, at);
	}
	tap_ret(run(&p, &good, NEAR_VA), 0, "the copy without these mistakes");
	abi_buf_free(p.near, &host);
	pair_free(&p);
}

/* Read-only mappings here, and read-only dma-bufs there. */
static void test_readonly(void)
{
	struct pair p = pair_make();
	struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_READ, STICK);
	struct abi_buf closed = abi_buf(p.far, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	int dmabuf = export(p.far, closed.handle, 0);

	abi_bind(p.near, p.here.handle, 0, FAR_VA, SIZE, DRM_SPYRE_VM_MAP_READONLY);
	tap_ret(run(&p, &copy, FAR_VA), -EFAULT, "read into a read-only mapping");
	copy.direction = DRM_SPYRE_PEER_WRITE;
	tap_ret(run(&p, &copy, FAR_VA), 0, "write from a read-only mapping");
	copy.handle = import(p.near, dmabuf);
	tap_ret(run(&p, &copy, NEAR_VA), -EACCES, "write to a read-only dma-buf");
	copy.direction = DRM_SPYRE_PEER_READ;
	tap_ret(run(&p, &copy, NEAR_VA), 0, "read from a read-only dma-buf");
	close(dmabuf);
	abi_buf_free(p.far, &closed);
	pair_free(&p);
}

static uint64_t cycles_of(uint64_t bytes, uint64_t rows)
{
	uint64_t cycles;

	if (near_index == far_index)
		cycles = bytes / 35 + 16;
	else if (near_index / 4 == far_index / 4)
		cycles = (bytes + 41) / 42;
	else
		cycles = (2 * bytes + 41) / 42;
	cycles = cycles > rows ? cycles : rows;
	if (near_index == far_index)
		return cycles;
	return cycles + (near_index / 4 == far_index / 4 ? 1500 : 4500);
}

static void test_rows(uint32_t direction)
{
	const char *name = direction == DRM_SPYRE_PEER_WRITE ? "write" : "read";
	const bool write = direction == DRM_SPYRE_PEER_WRITE;
	const bool crosses = near_index != far_index;
	struct pair p = pair_make();
	struct drm_spyre_peer_copy copy = copy_of(&p, direction, 1000);
	struct drm_spyre_context_info before, after;
	const struct drm_spyre_cb_result *result;
	uint8_t *want = malloc(SIZE), *dst, *src;
	uint64_t bytes, to, from;

	copy.rows = 900;
	copy.stride = 1777;
	copy.local_stride = 1031;
	copy.offset = 13;
	bytes = copy.rows * copy.row_bytes;
	dst = write ? p.there.map : p.here.map;
	src = write ? p.here.map : p.there.map;
	memcpy(want, dst, SIZE);
	for (uint64_t i = 0; i < copy.rows; i++) {
		to = write ? 13 + i * 1777 : 7 + i * 1031;
		from = write ? 7 + i * 1031 : 13 + i * 1777;
		memcpy(want + to, src + from, 1000);
	}
	before = abi_context(p.near);
	tap_ret(run(&p, &copy, NEAR_VA + 7), 0, "%s: rows with a pitch", name);
	tap_ok(!memcmp(want, dst, SIZE), "%s: the rows, and nothing else, were written", name);
	result = abi_results(&p.queue);
	tap_eq(result->cycles, cycles_of(bytes, copy.rows), "%s: cycles", name);
	tap_eq(result->rdma, crosses ? bytes : 0, "%s: bytes between cards", name);
	tap_eq(result->bytes_read, crosses && !write ? 0 : bytes, "%s: bytes read", name);
	tap_eq(result->bytes_written, crosses && write ? 0 : bytes, "%s: bytes written", name);
	after = abi_context(p.near);
	tap_eq(after.rdma_read - before.rdma_read, crosses && !write ? bytes : 0,
	       "%s: the context's bytes from other cards", name);
	tap_eq(after.rdma_written - before.rdma_written, crosses && write ? bytes : 0,
	       "%s: the context's bytes to other cards", name);
	if (crosses)
		tap_eq(memory_fdinfo(p.near, write ? "spyre-rdma-written:" : "spyre-rdma-read:"),
		       bytes, "%s: fdinfo has them", name);
	after = abi_context(p.far);
	tap_eq(after.jobs + after.cycles + after.rdma_read + after.rdma_written, 0,
	       "%s: the other card's context did nothing", name);
	free(want);
	pair_free(&p);
}

/* A BO of this card at the far end. */
static void test_own_card(void)
{
	struct pair p = pair_make();
	struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_READ, 64);
	uint8_t *map = p.here.map, *want = malloc(SIZE);

	copy.handle = p.here.handle;
	copy.rows = 1000;
	copy.stride = copy.local_stride = 256;
	memcpy(want, map, SIZE);
	for (int i = 0; i < 1000; i++)
		memcpy(want + 128 + i * 256, want + i * 256, 64);
	tap_ret(run(&p, &copy, NEAR_VA + 128), 0, "own card: columns of a matrix to others");
	tap_ok(!memcmp(want, map, SIZE), "own card: the bytes");
	tap_eq(abi_results(&p.queue)->rdma, 0, "own card: nothing crosses a link");
	tap_ret(run(&p, &copy, NEAR_VA + 63), -EINVAL, "own card: rows that overlap");
	tap_ret(run(&p, &copy, NEAR_VA), -EINVAL, "own card: the same rows");
	copy.local_stride = 300;
	tap_ret(run(&p, &copy, NEAR_VA + 128), -EINVAL, "own card: different pitches");
	/* The kernel's own mapping of a buffer may differ from use to use. */
	copy = copy_of(&p, DRM_SPYRE_PEER_WRITE, SIZE / 2 + 1);
	copy.handle = p.here.handle;
	copy.offset = SIZE / 2 - 1;
	tap_ret(run(&p, &copy, NEAR_VA), -EINVAL, "own card: ranges that overlap by two bytes");
	free(want);
	pair_free(&p);
}

/* The exporter closes everything before the copy; its memory ends with the peer. */
static void test_exporter_closes(void)
{
	struct pair p = pair_make();
	const struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_READ, SIZE);
	uint8_t *want = malloc(SIZE);
	int watch = far_open();
	const uint64_t used = abi_memory(watch).used;

	memcpy(want, p.there.map, SIZE);
	abi_buf_free(p.far, &p.there);
	p.there.map = NULL;
	close(p.dmabuf);
	close(p.far);
	p.dmabuf = p.far = -1;
	tap_ok(abi_memory_settles(watch, used), "the memory stays charged while a peer has it");
	tap_ret(run(&p, &copy, NEAR_VA), 0, "copy from memory whose file is closed");
	tap_ok(!memcmp(want, p.here.map, SIZE), "its bytes");
	abi_gem_close(p.near, p.peer);
	tap_ok(abi_memory_settles(watch, 0), "the memory is free when the peer is closed");
	free(want);
	close(watch);
	p.peer = 0;
	pair_free(&p);
}

static void send_fd(int socket, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	if (sendmsg(socket, &message, 0) != 1)
		_exit(1);
}

static int receive_fd(int socket)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		tap_bail("no dma-buf from the other process");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* The exporting process is killed while the copy waits. */
static void test_exporter_dies(void)
{
	struct pair p = pair_make();
	struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_READ, SIZE);
	struct abi_gate gate = abi_gate();
	uint32_t wait = abi_gate_syncobj(&gate, p.near);
	struct drm_spyre_cb cb;
	uint8_t *want = malloc(SIZE);
	int socket, dmabuf, status, watch;
	pid_t child = abi_fork(&socket);

	if (!child) {
		struct abi_buf buf;
		int fd = far_open();

		buf = abi_buf(fd, SIZE, DRM_SPYRE_BO_DEVICE, 0);
		fill(buf.map, SIZE, 77);
		send_fd(socket, export(fd, buf.handle, DRM_RDWR));
		pause();
		_exit(0);
	}
	dmabuf = receive_fd(socket);
	copy.handle = import(p.near, dmabuf);
	close(dmabuf);
	cb = cb_of(&copy, NEAR_VA);
	tap_ret(abi_submit_sync(&p.queue, &cb, 1, abi_sync_wait(wait, 0),
				(struct drm_spyre_sync){ 0 }), 0, "a copy that waits");
	abi_gem_close(p.near, copy.handle);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	abi_gate_open(&gate);
	tap_ret(abi_wait(&p.queue, 10000), 0, "it ends after the exporter was killed");
	tap_ret(abi_results(&p.queue)->status, 0, "and succeeds");
	fill(want, SIZE, 77);
	tap_ok(!memcmp(want, p.here.map, SIZE), "with the bytes of the dead process");
	abi_gate_free(&gate);
	free(want);
	close(socket);
	pair_free(&p);
	watch = far_open();
	/* Some time after the copy that used it: the next test counts from here. */
	tap_ok(abi_memory_settles(watch, 0), "and its memory comes back");
	close(watch);
}

/* The importer is killed while its copies run: the memory comes back. */
static void test_importer_dies(void)
{
	int watch = far_open(), fd = far_open(), socket, status;
	const uint64_t idle = abi_memory(watch).used;
	struct abi_buf buf = abi_buf(fd, SIZE, DRM_SPYRE_BO_DEVICE, 0);
	int dmabuf = export(fd, buf.handle, DRM_RDWR);
	pid_t child = abi_fork(&socket);
	char byte;

	if (!child) {
		struct drm_spyre_peer_copy copy = { .rows = 1, .row_bytes = SIZE };
		struct drm_spyre_cb cbs[256];
		struct abi_queue queue;
		int near = abi_open();

		queue = abi_queue(near, 60000);
		abi_buf(near, SIZE, DRM_SPYRE_BO_DEVICE, NEAR_VA);
		copy.handle = import(near, dmabuf);
		for (int i = 0; i < 256; i++)
			cbs[i] = cb_of(&copy, NEAR_VA);
		for (int i = 0; i < 20; i++)
			abi_submit(&queue, cbs, 256, NULL);
		_exit(write(socket, "", 1) != 1 || pause());
	}
	tap_eq(read(socket, &byte, 1), 1, "another process copies from this one's memory");
	abi_buf_free(fd, &buf);
	close(dmabuf);
	close(fd);
	tap_eq(abi_memory(watch).used, idle + SIZE, "which is in use when this one has closed it");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	tap_ok(abi_memory_settles(watch, idle), "and free after the importer was killed");
	close(socket);
	close(watch);
}

/* Ends a job of @fd by its time limit, which marks the context. */
static void break_context(int fd)
{
	struct abi_prog prog = abi_prog_long();
	struct abi_queue queue = abi_queue(fd, 50);
	struct abi_buf mem = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, 512 * MIB);
	const uint64_t args[3] = { mem.va, mem.va + ABI_LONG_BYTES, mem.va + 2 * ABI_LONG_BYTES };
	struct drm_spyre_cb cb = abi_cb_exec(abi_prog_create(fd, &prog), args, 3);

	tap_ret(abi_run(&queue, &cb, 1), -ETIME, "a job of the other context exceeds its limit");
	abi_queue_free(&queue);
	abi_buf_free(fd, &mem);
}

static void test_owner_fails(void)
{
	struct pair p = pair_make();
	const struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_READ, SIZE);
	struct drm_spyre_cb cb = cb_of(&copy, NEAR_VA), stamp = abi_cb_timestamp();
	struct abi_queue other = abi_queue(p.near, 0), again;
	struct abi_gate gate = abi_gate();
	uint32_t wait = abi_gate_syncobj(&gate, p.near);

	tap_ret(abi_submit_sync(&p.queue, &cb, 1, abi_sync_wait(wait, 0),
				(struct drm_spyre_sync){ 0 }), 0, "a copy waits");
	break_context(p.far);
	tap_ret(abi_submit(&other, &cb, 1, NULL), -ENOLINK, "a new copy is refused");
	abi_gate_open(&gate);
	tap_ret(abi_wait(&p.queue, 10000), 0, "the one that waited ends");
	tap_ret(abi_results(&p.queue)->status, -ENOLINK, "with -ENOLINK");
	tap_ret(abi_queue_query(p.near, p.queue.id).error, -ENOLINK, "its queue has failed");
	tap_eq(abi_context(p.near).state, DRM_SPYRE_CONTEXT_OK, "its context has not");
	tap_ret(abi_run(&other, &stamp, 1), 0, "other queues go on");
	tap_ret(abi_context_reset(p.far, NULL), 0, "CONTEXT_RESET of the other context");
	again = abi_queue(p.near, 0);
	tap_ret(abi_run(&again, &cb, 1), 0, "then copies work again");
	abi_queue_free(&again);
	abi_queue_free(&other);
	abi_gate_free(&gate);
	pair_free(&p);
}

/* Waits by fences of the other card, whose syncobj this file imports. */
static void test_waits(void)
{
	struct pair p = pair_make();
	struct abi_queue theirs = abi_queue(p.far, 60000);
	struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_READ, SIZE);
	struct drm_spyre_cb set = abi_cb_fill32(FAR_VA, SIZE, 0), cb = cb_of(&copy, NEAR_VA);
	uint32_t here;
	bool ok = true;
	int fd;

	if (drmSyncobjHandleToFD(p.far, theirs.syncobj, &fd) ||
	    drmSyncobjFDToHandle(p.near, fd, &here))
		tap_bail("a syncobj of the other card: %s", strerror(errno));
	close(fd);
	for (uint32_t i = 1; i <= 100 && ok; i++) {
		memset(set.pattern, 0, sizeof(set.pattern));
		memcpy(set.pattern, &i, sizeof(i));
		ok = !abi_submit(&theirs, &set, 1, NULL) &&
		     !abi_submit_sync(&p.queue, &cb, 1, abi_sync_wait(here, theirs.point),
				      (struct drm_spyre_sync){ 0 }) &&
		     !abi_wait(&p.queue, 10000);
		for (uint64_t k = 0; k < SIZE / 4 && ok; k += 1023)
			ok = ((uint32_t *)p.here.map)[k] == i;
	}
	tap_ok(ok, "copies wait for the other card's fills, 100 times");
	abi_queue_free(&theirs);
	pair_free(&p);
}

static const char *far_device(char *path, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/sys/class/accel/%s/device", strrchr(far_node, '/') + 1);
	n = readlink(link, path, size - 1);
	if (n < 0)
		tap_bail("%s: %s", link, strerror(errno));
	path[n] = 0;
	return strrchr(path, '/') + 1;
}

/* Root resets or unbinds the other card while a copy waits, and before a copy. */
static void test_card_goes(bool unbind)
{
	const char *name = unbind ? "unbind" : "reset";
	struct pair p = pair_make();
	struct drm_spyre_peer_copy copy = copy_of(&p, DRM_SPYRE_PEER_WRITE, SIZE);
	struct drm_spyre_cb cb = cb_of(&copy, NEAR_VA), stamp = abi_cb_timestamp();
	struct abi_queue other = abi_queue(p.near, 0);
	struct abi_gate gate = abi_gate();
	uint32_t wait = abi_gate_syncobj(&gate, p.near);
	struct drm_spyre_reset reset = { 0 };
	char path[256];
	const char *device = far_device(path, sizeof(path));
	int fd = far_open();

	tap_ret(abi_submit_sync(&p.queue, &cb, 1, abi_sync_wait(wait, 0),
				(struct drm_spyre_sync){ 0 }), 0, "%s: a copy waits", name);
	if (unbind)
		tap_ret(abi_write_file("/sys/bus/platform/drivers/spyre_vdev/unbind", device), 0,
			"%s of the other card", name);
	else
		tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_RESET, &reset), 0, "%s of the other card",
			name);
	close(fd);
	tap_ret(abi_submit(&other, &cb, 1, NULL), -ENOLINK, "%s: a new copy is refused", name);
	abi_gate_open(&gate);
	tap_ret(abi_wait(&p.queue, 10000), 0, "%s: the one that waited ends", name);
	tap_ret(abi_results(&p.queue)->status, -ENOLINK, "%s: with -ENOLINK", name);
	tap_ret(abi_run(&other, &stamp, 1), 0, "%s: this card goes on", name);
	abi_queue_free(&other);
	abi_gate_free(&gate);
	pair_free(&p);
	if (unbind)
		tap_ret(abi_write_file("/sys/bus/platform/drivers/spyre_vdev/bind", device), 0,
			"the other card is bound again");
	if (unbind && !find_far(abi_open()))
		tap_bail("the other card has no node");
	p = pair_make();
	copy = copy_of(&p, DRM_SPYRE_PEER_WRITE, SIZE);
	tap_ret(run(&p, &copy, NEAR_VA), 0, "%s: copies to new memory work", name);
	pair_free(&p);
}

int main(void)
{
	int fd = abi_open();
	bool found = find_far(fd);

	close(fd);
	if (!found)
		tap_skip_all("needs a second card or VF (cards=2)");
	tap_note("card %u and %s of card %u", near_index, far_node, far_index);
	test_import();
	test_other_uses();
	test_refusals();
	test_readonly();
	test_rows(DRM_SPYRE_PEER_READ);
	test_rows(DRM_SPYRE_PEER_WRITE);
	test_own_card();
	test_exporter_closes();
	test_exporter_dies();
	test_importer_dies();
	test_owner_fails();
	test_waits();
	if (getuid()) {
		tap_skip("needs root", "reset and unbind of the other card");
	} else {
		test_card_goes(false);
		test_card_goes(true);
	}
	return tap_done();
}
