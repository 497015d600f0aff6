/* SPDX-License-Identifier: MIT */
/*
 * abi-compat: a 32-bit program, static and without a C library, so that any
 * compiler with -m32 can build it. Its ioctls use the kernel's 32-bit entry and
 * must behave like those of a 64-bit program.
 */
#include <drm/spyre_accel.h>

#define VA (64u << 20)
#define BYTES 16384u
#define EINVAL 22
#define EFAULT 14
#define ENOENT 2
#define E2BIG 7
#define EOPNOTSUPP 95

enum { SYS_exit = 1, SYS_write = 4, SYS_open = 5, SYS_close = 6, SYS_ioctl = 54, SYS_mmap2 = 192 };

static long call(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory");
	return ret;
}

static int tests, failures, node;

static void put(const char *text)
{
	long n = 0;

	while (text[n])
		n++;
	call(SYS_write, 1, (long)text, n, 0, 0);
}

static void put_number(long long n)
{
	char digits[24], *at = digits + sizeof(digits) - 1;
	unsigned int rest = n < 0 ? (unsigned int)-n : (unsigned int)n;

	*at = 0;
	do
		*--at = '0' + rest % 10;
	while (rest /= 10);
	if (n < 0)
		*--at = '-';
	put(at);
}

static void expect(long long got, long long want, const char *name)
{
	failures += got != want;
	put(got == want ? "ok " : "not ok ");
	put_number(++tests);
	put(" - ");
	put(name);
	put("\n");
	if (got == want)
		return;
	put("# got ");
	put_number(got);
	put(", expected ");
	put_number(want);
	put("\n");
}

static long give(unsigned long request, void *arg)
{
	return call(SYS_ioctl, node, (long)request, (long)arg, 0, 0);
}

static void clear(void *p, unsigned int size)
{
	volatile unsigned char *at = p;

	while (size--)
		*at++ = 0;
}

static __u64 address(const void *p)
{
	return (unsigned long)p;
}

static struct drm_spyre_card_info card;
static struct drm_spyre_memory_info memory;

static void test_query(void)
{
	struct drm_spyre_dev_query args;

	clear(&args, sizeof(args));
	args.type = DRM_SPYRE_DEV_QUERY_CARD;
	args.size = sizeof(card);
	args.pointer = address(&card);
	expect(give(DRM_IOCTL_SPYRE_DEV_QUERY, &args), 0, "DEV_QUERY of the card");
	expect(args.size, sizeof(card), "its size is that of a 64-bit program");
	expect(card.stick_bytes, DRM_SPYRE_STICK_BYTES, "its stick");
	expect(card.clock_khz, 1500000, "its clock");
	args.type = DRM_SPYRE_DEV_QUERY_MEMORY;
	args.size = sizeof(memory);
	args.pointer = address(&memory);
	expect(give(DRM_IOCTL_SPYRE_DEV_QUERY, &args), 0, "DEV_QUERY of the memory");
	expect(memory.free + memory.used == memory.total && memory.total == card.lpddr_bytes, 1,
	       "free + used = total");
	/* A 64-bit pointer must not be truncated. */
	args.pointer |= 1ull << 32;
	expect(give(DRM_IOCTL_SPYRE_DEV_QUERY, &args), -EFAULT, "an address above 4 GiB");
	args.type = ~0u;
	expect(give(DRM_IOCTL_SPYRE_DEV_QUERY, &args), -EINVAL, "an unknown type");
}

static __u32 create(__u32 flags)
{
	struct drm_spyre_bo_create args;

	clear(&args, sizeof(args));
	args.size = BYTES;
	args.flags = flags;
	expect(give(DRM_IOCTL_SPYRE_BO_CREATE, &args), 0, "BO_CREATE");
	return args.handle;
}

/* The offset is above 4 GiB; mmap2() counts pages. */
static volatile __u32 *map(__u32 handle)
{
	struct drm_spyre_bo_mmap_offset args;
	__u32 pages[2] = { 0, SYS_mmap2 };
	long p;

	clear(&args, sizeof(args));
	args.handle = handle;
	expect(give(DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), 0, "BO_MMAP_OFFSET");
	pages[0] = (__u32)(args.offset >> 12);
	/* The sixth argument is in ebp; the stack is not addressed meanwhile. */
	__asm__ volatile("push %%ebp; mov (%%eax), %%ebp; mov 4(%%eax), %%eax; int $0x80; pop %%ebp"
			 : "=a"(p)
			 : "a"(pages), "b"(0), "c"(BYTES), "d"(3), "S"(1), "D"(node) : "memory");
	expect((unsigned long)p < -4095ul, 1, "mmap2");
	return (volatile __u32 *)p;
}

static void bind(__u32 handle)
{
	struct drm_spyre_vm_bind_op op;
	struct drm_spyre_vm_bind args;

	clear(&op, sizeof(op));
	clear(&args, sizeof(args));
	op.handle = handle;
	op.va = VA;
	op.range = BYTES;
	args.ops.stride = sizeof(op);
	args.ops.count = 1;
	args.ops.array = address(&op);
	expect(give(DRM_IOCTL_SPYRE_VM_BIND, &args), 0, "VM_BIND");
	expect(args.done, 1, "VM_BIND: done");
	op.pad = 1;
	expect(give(DRM_IOCTL_SPYRE_VM_BIND, &args), -EINVAL, "VM_BIND: pad");
	op.pad = 0;
	args.ops.array |= 1ull << 32;
	expect(give(DRM_IOCTL_SPYRE_VM_BIND, &args), -EFAULT, "VM_BIND: array above 4 GiB");
}

static __u32 queue_create(void)
{
	struct drm_spyre_queue_create args;

	clear(&args, sizeof(args));
	expect(give(DRM_IOCTL_SPYRE_QUEUE_CREATE, &args), 0, "QUEUE_CREATE");
	return args.queue_id;
}

/* Fills and waits; the syncobj calls are DRM core's. */
static void work(__u32 queue, __u32 results, volatile __u32 *device,
		 volatile struct drm_spyre_cb_result *result)
{
	struct drm_syncobj_create syncobj;
	struct drm_syncobj_wait wait;
	struct drm_spyre_submit args;
	struct drm_spyre_sync sync;
	struct drm_spyre_cb cb;

	clear(&syncobj, sizeof(syncobj));
	clear(&wait, sizeof(wait));
	clear(&args, sizeof(args));
	clear(&sync, sizeof(sync));
	clear(&cb, sizeof(cb));
	expect(give(DRM_IOCTL_SYNCOBJ_CREATE, &syncobj), 0, "SYNCOBJ_CREATE");
	sync.handle = syncobj.handle;
	sync.flags = DRM_SPYRE_SYNC_SIGNAL;
	cb.type = DRM_SPYRE_CB_FILL;
	cb.dst = VA;
	cb.size = BYTES;
	cb.pattern_size = 4;
	cb.pattern[0] = 0x12345678;
	args.queue_id = queue;
	args.cbs.stride = sizeof(cb);
	args.cbs.count = 1;
	args.cbs.array = address(&cb);
	args.syncs.stride = sizeof(sync);
	args.syncs.count = 1;
	args.syncs.array = address(&sync);
	args.result_handle = results;
	expect(give(DRM_IOCTL_SPYRE_SUBMIT, &args), 0, "SUBMIT");
	expect(args.error_cb, 0xffffffff, "SUBMIT: no control block is at fault");
	wait.handles = address(&syncobj.handle);
	wait.timeout_nsec = 0x7fffffffffffffffll;
	wait.count_handles = 1;
	expect(give(DRM_IOCTL_SYNCOBJ_WAIT, &wait), 0, "SYNCOBJ_WAIT");
	expect(device[0] == 0x12345678 && device[BYTES / 4 - 1] == 0x12345678, 1, "it is filled");
	expect(result->state, DRM_SPYRE_CB_DONE, "its result reports it");
	expect(result->bytes_written, BYTES, "and how much");

	cb.reserved[2] = 1ull << 63;
	expect(give(DRM_IOCTL_SPYRE_SUBMIT, &args), -EINVAL, "SUBMIT: a reserved bit");
	expect(args.error_cb, 0, "SUBMIT: names the control block");
	cb.reserved[2] = 0;
	cb.dst = VA + (1ull << 32);
	expect(give(DRM_IOCTL_SPYRE_SUBMIT, &args), -EFAULT, "SUBMIT: not mapped, by its high half");
	args.cbs.stride = 8;
	expect(give(DRM_IOCTL_SPYRE_SUBMIT, &args), -EINVAL, "SUBMIT: stride");
}

static void test_errors(__u32 queue)
{
	struct drm_spyre_program_create program;
	struct drm_spyre_queue_query query;
	unsigned char image[64];
	unsigned char any[256];

	clear(image, sizeof(image));
	clear(&program, sizeof(program));
	program.data = address(image);
	program.size = sizeof(image);
	expect(give(DRM_IOCTL_SPYRE_PROGRAM_CREATE, &program), -EINVAL, "PROGRAM_CREATE: zeros");
	expect(program.stop != 0, 1, "PROGRAM_CREATE: says why");
	clear(&query, sizeof(query));
	query.queue_id = queue;
	expect(give(DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), 0, "QUEUE_QUERY");
	expect(query.submitted, 1, "QUEUE_QUERY: refused work does not count");
	query.queue_id = ~0u;
	expect(give(DRM_IOCTL_SPYRE_QUEUE_QUERY, &query), -ENOENT, "QUEUE_QUERY: unknown");
	clear(any, sizeof(any));
	expect(give(_IOWR('d', 0x01, struct drm_spyre_submit), any), -EOPNOTSUPP, "GET_UNIQUE");
	expect(give(_IOWR('d', 0x02, struct drm_spyre_submit), any), -EOPNOTSUPP, "GET_MAGIC");
	expect(give(_IOWR('d', 0x9f, struct drm_spyre_submit), any), -EINVAL, "an unknown number");
}

static long open_node(void)
{
	static char path[] = "/dev/accel/accel0";
	long fd;

	for (; path[16] < '8'; path[16]++) {
		fd = call(SYS_open, (long)path, 2 | 02000000, 0, 0, 0);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	volatile __u32 *device;
	__u32 lpddr, results, queue;

	node = open_node();
	if (node < 0) {
		put("1..0 # SKIP no accel node\n");
		call(SYS_exit, 0, 0, 0, 0, 0);
	}
	test_query();
	lpddr = create(DRM_SPYRE_BO_DEVICE);
	results = create(DRM_SPYRE_BO_HOST);
	device = map(lpddr);
	bind(lpddr);
	queue = queue_create();
	work(queue, results, device, (volatile struct drm_spyre_cb_result *)map(results));
	test_errors(queue);
	put("1..");
	put_number(tests);
	put("\n");
	call(SYS_exit, failures != 0, 0, 0, 0, 0);
}
