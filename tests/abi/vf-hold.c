/* SPDX-License-Identifier: MIT */
/*
 * Users who stall a call do not block root: a VF is unbound, removed and reset while
 * SUBMIT waits for a fence of another VF, and while the pages of arguments are
 * missing. Processes that import a buffer of another VF are killed at any moment.
 */
#include "vf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef ABI_URING
#include <liburing.h>
#endif
#include <linux/dma-buf.h>
#include <linux/userfaultfd.h>
#include <xf86drm.h>

#include "fence.h"

/* A broken driver blocks root for this long before the test gives up. */
#define GIVE_UP_MS 10000

/* --- root's calls --- */
enum act { UNBIND, NUM_VFS, RESET, NUM_ACTS };

static const char *const act_names[] = { "unbind", "num_vfs=0", "RESET" };

static int act(enum act act, const struct vf_device *vf)
{
	struct drm_spyre_reset args = { 0 };
	int fd, ret;

	if (act == UNBIND)
		return vf_bind("unbind", vf->name);
	if (act == NUM_VFS)
		return vf_set("0");
	fd = vf_open(vf);
	ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_RESET, &args);
	close(fd);
	return ret;
}

/* --- a fence of another VF --- */
struct hold {
	int one, two;			/* files of two VFs */
	struct abi_queue lender, waiter;
	struct abi_buf lent, work, mem;
	int fence;			/* sync_file of the running job on @one */
	uint32_t imported;		/* @lent on @two */
	bool ring;			/* submit through io_uring */
	atomic_int ret;			/* of the SUBMIT on @two, 1: not returned yet */
};

/* Attaches the fence of a long job to @lent. */
static void hold_fence(struct hold *h)
{
	struct abi_prog prog = abi_prog_long();
	uint32_t program = abi_prog_create(h->one, &prog), done = abi_syncobj(h->one);
	const uint64_t args[3] = {
		VF_DATA, VF_DATA + ABI_LONG_BYTES, VF_DATA + 2 * ABI_LONG_BYTES
	};
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);
	struct dma_buf_import_sync_file import = { .flags = DMA_BUF_SYNC_WRITE };
	int dmabuf = -1;

	h->work = abi_buf(h->one, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VF_DATA);
	h->lent = abi_buf(h->one, PAGE, DRM_SPYRE_BO_HOST, 0);
	h->lender = abi_queue(h->one, GIVE_UP_MS);
	if (abi_submit_sync(&h->lender, &cb, 1, abi_sync_signal(done, 0),
			    (struct drm_spyre_sync){ 0 }))
		tap_bail("the job of the other VF");
	h->fence = abi_sync_file(h->one, done);
	import.fd = h->fence;
	if (drmPrimeHandleToFD(h->one, h->lent.handle, DRM_CLOEXEC | DRM_RDWR, &dmabuf) ||
	    ioctl(dmabuf, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import) ||
	    drmPrimeFDToHandle(h->two, dmabuf, &h->imported))
		tap_bail("a dma-buf with a fence: %s", strerror(errno));
	close(dmabuf);
}

/* Submits through a separate ring, one of whose workers waits. */
static int ring_submit(int fd, const struct drm_spyre_submit *args)
{
#ifdef ABI_URING
	struct io_uring ring;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int ret;

	if (io_uring_queue_init(2, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32))
		tap_bail("io_uring_queue_init");
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		tap_bail("io_uring_get_sqe");
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	memcpy(sqe->cmd, args, sizeof(*args));
	io_uring_submit(&ring);
	if (io_uring_wait_cqe(&ring, &cqe))
		tap_bail("io_uring_wait_cqe");
	ret = cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
#else
	(void)fd;
	(void)args;
	return -ENOSYS;
#endif
}

static void *hold_submit(void *arg)
{
	struct hold *h = arg;
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&down, VF_DATA, h->imported, 0, PAGE);
	struct drm_spyre_submit args = {
		.queue_id = h->waiter.id,
		.cbs = { .stride = sizeof(cb), .count = 1, .array = PTR(&cb) },
	};

	h->ret = h->ring ? ring_submit(h->two, &args) :
			   abi_ioctl(h->two, DRM_IOCTL_SPYRE_SUBMIT, &args);
	return NULL;
}

static void hold_free(struct hold *h)
{
	close(h->fence);
	munmap(h->waiter.results.map, h->waiter.results.size);
	munmap(h->mem.map, h->mem.size);
	munmap(h->lent.map, h->lent.size);
	munmap(h->work.map, h->work.size);
	close(h->one);
	close(h->two);
}

/* The lender's job ends, by its end or that of its VF, but not by its limit. */
static void fence_ends(struct hold *h, enum act how, const char *what)
{
	if (how == NUM_VFS) {
		tap_ret(abi_sync_file_status(h->fence), -ENODEV,
			"%s: num_vfs=0 ends the foreign job before its limit does", what);
		return;
	}
	tap_eq(abi_sync_file_status(h->fence), 0, "%s: %s returns before it signals", what,
	       act_names[how]);
	abi_queue_free(&h->lender);
	tap_ok(abi_sync_file_poll(h->fence, 20000), "%s: the foreign fence signals", what);
}

static void test_foreign_fence(enum act how, bool ring)
{
	struct hold h = { .ret = 1, .ring = ring };
	struct vf_device vf[VF_MAX];
	pthread_t thread;
	char what[64];

	snprintf(what, sizeof(what), "foreign fence%s, %s", ring ? ", by a ring" : "",
		 act_names[how]);
	vf_set("2");
	vf_list(vf);
	/* The waiting VF comes first, as num_vfs=0 removes them in order. */
	h.one = vf_open(&vf[1]);
	h.two = vf_open(&vf[0]);
	h.mem = abi_buf(h.two, PAGE, DRM_SPYRE_BO_DEVICE, VF_DATA);
	h.waiter = abi_queue(h.two, 0);
	hold_fence(&h);
	if (pthread_create(&thread, NULL, hold_submit, &h))
		tap_bail("pthread_create");
	abi_sleep_ms(100);
	tap_eq(h.ret, 1, "%s: SUBMIT waits for the foreign fence", what);
	tap_ret(act(how, &vf[0]), 0, "%s: root's call", what);
	/* RESET leaves the call waiting, an absent device does not. */
	if (how != RESET)
		pthread_join(thread, NULL);
	fence_ends(&h, how, what);
	if (how == RESET)
		pthread_join(thread, NULL);
	/* EIO: the call began after the reset, on a slow machine. */
	if (how == RESET)
		tap_ret2(h.ret, -ECANCELED, -EIO, "%s: SUBMIT", what);
	else
		tap_ret(h.ret, -ENODEV, "%s: SUBMIT", what);
	hold_free(&h);
	tap_ret(vf_set("0"), 0, "%s: num_vfs=0 afterwards", what);
}

/* --- missing pages --- */
enum where {
	IN_STRUCT, IN_CBS, IN_SYNCS, IN_DESC, IN_HOST, IN_IMAGE, IN_BO, IN_QUEUE, IN_OPS,
	IN_QUERY,
#ifdef ABI_URING
	IN_RING,
#endif
	NUM_WHERE
};

static const char *const where_names[] = {
	"SUBMIT's struct", "control blocks", "syncs", "a DMA descriptor", "pinned memory",
	"PROGRAM_CREATE's image", "BO_CREATE's struct", "QUEUE_CREATE's struct",
	"VM_BIND's operations", "DEV_QUERY's output", "control blocks of a ring",
};

struct fault {
	enum where where;
	int fd;
	struct abi_queue *queue;
	uint8_t *page;			/* the missing page */
	atomic_int ret;			/* 1: not returned yet */
};

static int fault_submit(struct fault *f)
{
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	static uint8_t host[MOST_PAGE] __attribute__((aligned(MOST_PAGE)));
	struct drm_spyre_cb cb = abi_cb_dma(&down, VF_DATA, host, PAGE);
	struct drm_spyre_submit args = {
		.queue_id = f->queue->id,
		.cbs = { .stride = sizeof(cb), .count = 1, .array = PTR(&cb) },
	};

	if (f->where == IN_STRUCT)
		return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_SUBMIT, f->page);
	if (f->where == IN_DESC)
		cb.desc = PTR(f->page);
	else if (f->where == IN_HOST)
		cb.host_addr = PTR(f->page);
	else if (f->where == IN_SYNCS)
		args.syncs = (struct drm_spyre_array) { .stride = sizeof(struct drm_spyre_sync),
							.count = 1, .array = PTR(f->page) };
	else
		args.cbs.array = PTR(f->page);
#ifdef ABI_URING
	if (f->where == IN_RING)
		return ring_submit(f->fd, &args);
#endif
	return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_SUBMIT, &args);
}

static int fault_call(struct fault *f)
{
	struct drm_spyre_program_create program = { .data = PTR(f->page), .size = PAGE };
	struct drm_spyre_vm_bind bind = {
		.ops = { .stride = sizeof(struct drm_spyre_vm_bind_op), .count = 1,
			 .array = PTR(f->page) },
	};
	struct drm_spyre_dev_query query = {
		.type = DRM_SPYRE_DEV_QUERY_CARD, .size = sizeof(struct drm_spyre_card_info),
		.pointer = PTR(f->page),
	};

	switch (f->where) {
	case IN_IMAGE:
		return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &program);
	case IN_BO:
		return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_BO_CREATE, f->page);
	case IN_QUEUE:
		return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, f->page);
	case IN_OPS:
		return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_VM_BIND, &bind);
	case IN_QUERY:
		return abi_ioctl(f->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	default:
		return fault_submit(f);
	}
}

static void *fault_thread(void *arg)
{
	struct fault *f = arg;

	f->ret = fault_call(f);
	return NULL;
}

/* Memory whose pages the test provides on demand; -1 if this kernel does not support that. */
static int fault_memory(uint8_t **pages, size_t bytes)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	*pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = PTR(*pages);
	range.range.len = bytes;
	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range))
		return fd;
	close(fd);
	munmap(*pages, bytes);
	return -1;
}

/* Waits until @count threads have met a missing page. */
static void fault_await(int uffd, int count)
{
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	struct uffd_msg fault;

	while (count-- > 0)
		if (poll(&ready, 1, GIVE_UP_MS) != 1 ||
		    read(uffd, &fault, sizeof(fault)) != sizeof(fault))
			tap_bail("page fault: %d calls do not touch their page", count + 1);
}

struct provider {
	int uffd;
	uint8_t *pages;
	size_t bytes;
	atomic_bool now;	/* root no longer waits */
	bool late;		/* root waited longer than with any working driver */
};

static void *provider_thread(void *arg)
{
	struct provider *p = arg;
	struct uffdio_zeropage zero = { .range = { .start = PTR(p->pages), .len = p->bytes } };
	const uint64_t end = abi_now_ns() + GIVE_UP_MS * 1000000ull;

	while (!p->now && abi_now_ns() < end)
		abi_sleep_ms(5);
	p->late = !p->now;
	if (ioctl(p->uffd, UFFDIO_ZEROPAGE, &zero))
		tap_bail("UFFDIO_ZEROPAGE: %s", strerror(errno));
	return NULL;
}

/* A page of zeros is valid as data and as QUEUE_CREATE's struct, but not as any other argument. */
static void fault_result(const struct fault *f, enum act how, const char *what)
{
	const int ret = f->ret;

	if (f->where == IN_QUERY)
		tap_ret(ret, 0, "%s: %s: the kept numbers", what, where_names[f->where]);
	else if (f->where == IN_HOST)
		tap_ret(ret, how == RESET ? -ECANCELED : -ENODEV, "%s: %s", what,
			where_names[f->where]);
	else if (f->where == IN_QUEUE)
		tap_ret(ret, how == RESET ? -EIO : -ENODEV, "%s: %s", what,
			where_names[f->where]);
	else
		tap_ok(ret < 0, "%s: %s: the call fails (%d)", what, where_names[f->where], ret);
}

static void fault_act(struct provider *p, enum act how, const struct vf_device *vf, int fd)
{
	struct abi_buf mem = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VF_DATA);
	struct abi_queue queue = abi_queue(fd, 0);
	pthread_t thread[NUM_WHERE], provider;
	struct fault fault[NUM_WHERE];
	char what[64];
	int i;

	snprintf(what, sizeof(what), "page fault, %s", act_names[how]);
	for (i = 0; i < NUM_WHERE; i++) {
		fault[i] = (struct fault) { .where = i, .fd = fd, .queue = &queue, .ret = 1,
					    .page = p->pages + i * PAGE };
		if (pthread_create(&thread[i], NULL, fault_thread, &fault[i]))
			tap_bail("pthread_create");
	}
	fault_await(p->uffd, NUM_WHERE);
	for (i = 0; i < NUM_WHERE; i++)
		tap_eq(fault[i].ret, 1, "%s: %s: the call waits", what, where_names[i]);
	if (pthread_create(&provider, NULL, provider_thread, p))
		tap_bail("pthread_create");
	tap_ret(act(how, vf), 0, "%s: root's call", what);
	p->now = true;
	pthread_join(provider, NULL);
	tap_ok(!p->late, "%s: it returns before the pages are provided", what);
	for (i = 0; i < NUM_WHERE; i++) {
		pthread_join(thread[i], NULL);
		fault_result(&fault[i], how, what);
	}
	munmap(queue.results.map, queue.results.size);
	munmap(mem.map, mem.size);
}

static void test_page_fault(enum act how)
{
	struct provider p = { .bytes = NUM_WHERE * PAGE };
	struct vf_device vf[VF_MAX];
	int fd;

	p.uffd = fault_memory(&p.pages, p.bytes);
	if (p.uffd < 0) {
		tap_skip("no userfaultfd", "page fault, %s", act_names[how]);
		return;
	}
	vf_set("2");
	vf_list(vf);
	fd = vf_open(&vf[1]);
	fault_act(&p, how, &vf[1], fd);
	close(fd);
	close(p.uffd);
	munmap(p.pages, p.bytes);
	tap_ret(vf_set("0"), 0, "page fault, %s: num_vfs=0 afterwards", act_names[how]);
}

/* --- kills during import --- */
#define IMPORT_BYTES (16 * MIB)
#define SHMEM_HUGE "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define TAINT_WARN 512

static uint64_t tainted(void)
{
	char line[32] = "";
	int fd = open("/proc/sys/kernel/tainted", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
		tap_bail("/proc/sys/kernel/tainted");
	close(fd);
	return strtoull(line, NULL, 10);
}

/* Sets the huge-page mode of shared memory and returns the previous one. */
static void shmem_huge(const char *now, char before[16])
{
	char line[128] = "", *from;
	int fd = open(SHMEM_HUGE, O_RDONLY | O_CLOEXEC);

	if (read(fd, line, sizeof(line) - 1) < 0)
		line[0] = 0;
	close(fd);
	from = strchr(line, '[');
	snprintf(before, 16, "%.*s", from ? (int)strcspn(from + 1, "]") : 0, from ? from + 1 : "");
	abi_write_file(SHMEM_HUGE, now);
}

/* Imports a buffer whose pages exist but have no kernel address; returns the time in ns. */
static uint64_t import_once(const struct vf_device vf[2], int ready)
{
	int from = vf_open(&vf[0]), to = vf_open(&vf[1]), dmabuf = -1;
	struct abi_buf buf = abi_buf(from, IMPORT_BYTES, DRM_SPYRE_BO_HOST, 0);
	uint32_t handle;
	uint64_t start;

	memset(buf.map, 1, IMPORT_BYTES);
	if (drmPrimeHandleToFD(from, buf.handle, DRM_CLOEXEC | DRM_RDWR, &dmabuf) ||
	    (ready >= 0 && write(ready, "", 1) != 1))
		tap_bail("export: %s", strerror(errno));
	start = abi_now_ns();
	if (drmPrimeFDToHandle(to, dmabuf, &handle))
		tap_bail("import: %s", strerror(errno));
	start = abi_now_ns() - start;
	munmap(buf.map, IMPORT_BYTES);
	close(dmabuf);
	close(from);
	close(to);
	return start;
}

static void import_and_die(const struct vf_device vf[2], uint64_t delay_ns)
{
	int ready;
	pid_t pid = abi_fork(&ready);
	uint64_t start;
	char c;

	if (!pid) {
		import_once(vf, ready);
		_exit(0);
	}
	if (read(ready, &c, 1) != 1)
		tap_bail("the child did not export");
	for (start = abi_now_ns(); abi_now_ns() - start < delay_ns;)
		;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready);
}

static void test_kill_import(void)
{
	const char *env = getenv("ABI_ROUNDS");
	const int kills = 16 * (env ? atoi(env) : 1);
	struct vf_device vf[VF_MAX];
	char huge[16];
	uint64_t took;
	int i;

	if (tainted() & TAINT_WARN) {
		tap_skip("the kernel is tainted by an earlier warning", "kill: imports");
		return;
	}
	vf_set("2");
	vf_list(vf);
	/* Allocating single pages takes time. */
	shmem_huge("deny", huge);
	took = import_once(vf, -1);
	for (i = 0; i < kills; i++)
		import_and_die(vf, took * (i % 16) / 16);
	abi_write_file(SHMEM_HUGE, huge);
	tap_note("an import takes %llu us", (unsigned long long)took / 1000);
	tap_ok(!(tainted() & TAINT_WARN), "kill: %d importing processes, no kernel warning", kills);
	tap_ret(vf_set("0"), 0, "kill: num_vfs=0");
}

void vf_test_hold(void)
{
	enum act how;

	for (how = 0; how < NUM_ACTS; how++) {
		test_foreign_fence(how, false);
#ifdef ABI_URING
		test_foreign_fence(how, true);
#endif
		test_page_fault(how);
	}
	test_kill_import();
}
