/* SPDX-License-Identifier: MIT */
/*
 * Core DRM ioctls on the node. On accel nodes some of them dereference data that
 * only a primary node has, so all but a few are refused: every number, through both
 * entries (native and 32 bit), and under other ioctl types, which the core's 32-bit
 * entry ignores.
 */
#include "abi.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

static const uint8_t allowed[] = {
	0x00 /* VERSION */, 0x09 /* GEM_CLOSE */, 0x0c /* GET_CAP */,
	0x2d /* PRIME_HANDLE_TO_FD */, 0x2e /* PRIME_FD_TO_HANDLE */,
	0xbf /* SYNCOBJ_CREATE */, 0xc0 /* _DESTROY */, 0xc1 /* _HANDLE_TO_FD */,
	0xc2 /* _FD_TO_HANDLE */, 0xc3 /* _WAIT */, 0xc4 /* _RESET */, 0xc5 /* _SIGNAL */,
	0xca /* _TIMELINE_WAIT */, 0xcb /* _QUERY */, 0xcc /* _TRANSFER */,
	0xcd /* _TIMELINE_SIGNAL */, 0xcf /* _EVENTFD */,
};

static bool is_allowed(int nr)
{
	return memchr(allowed, nr, sizeof(allowed));
}

static bool is_core(int nr)
{
	return nr < DRM_COMMAND_BASE || nr >= DRM_COMMAND_END;
}

static uint8_t *arg;		/* 1 KiB below 4 GiB, for both entries */

static void prepare(uint8_t value)
{
	memset(arg, value, 1024);
}

static int native(int fd, unsigned long request)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static sigjmp_buf no_compat;

static void on_fault(int signal)
{
	siglongjmp(no_compat, signal);
}

/* int 0x80 enters the kernel like a 32-bit program. */
static int compat(int fd, unsigned long request)
{
#ifdef __x86_64__
	long ret = 54;		/* ioctl of i386 */

	__asm__ volatile("int $0x80" : "+a"(ret)
			 : "b"((long)fd), "c"(request), "d"((long)(uintptr_t)arg)
			 : "memory", "r8", "r9", "r10", "r11", "cc");
	return (int)ret;
#else
	return -ENOSYS;
#endif
}

static bool has_compat(int fd)
{
	struct sigaction act = { .sa_handler = on_fault }, old;
	volatile bool works = false;

	sigaction(SIGSEGV, &act, &old);
	if (!sigsetjmp(no_compat, 1))
		works = compat(fd, DRM_IOCTL_GET_CAP) != -ENOSYS;
	sigaction(SIGSEGV, &old, NULL);
	return works;
}

static const unsigned long directions[] = { _IOC_READ | _IOC_WRITE, _IOC_READ, _IOC_WRITE };

/* Each number that is not allowed, with arguments of zeros and of poison. */
static void test_refused(int fd, const char *entry, int (*call)(int fd, unsigned long request))
{
	int nr, d, refused = 0, wrong = 0, expected = 0, ret;
	uint8_t value;

	for (nr = 0; nr < 256; nr++) {
		if (!is_core(nr) || is_allowed(nr))
			continue;
		for (d = 0; d < 6; d++) {
			value = d < 3 ? 0 : 0xa5;
			prepare(value);
			ret = call(fd, _IOC(directions[d % 3], 'd', nr, 1024));
			expected++;
			refused += ret == -EOPNOTSUPP;
			if (ret != -EOPNOTSUPP && !wrong++)
				tap_note("%s: nr 0x%02x gave %d", entry, nr, ret);
		}
		prepare(0);
		expected++;
		refused += call(fd, _IOC(_IOC_NONE, 'd', nr, 0)) == -EOPNOTSUPP;
	}
	tap_eq(refused, expected, "%s: every other core number gives EOPNOTSUPP", entry);
}

/* Allowed calls must survive any argument; some results are known. */
static void test_allowed(int fd, const char *entry, int (*call)(int fd, unsigned long request))
{
	size_t i;
	int d;

	for (i = 0; i < sizeof(allowed); i++)
		for (d = 0; d < 6; d++) {
			prepare(d < 3 ? 0 : 0xa5);
			call(fd, _IOC(directions[d % 3], 'd', allowed[i], 1024));
			prepare(d < 3 ? 0 : 0xa5);
			call(fd, _IOC(directions[d % 3], 'd', allowed[i], 8));
		}
	tap_ok(true, "%s: the allowed ioctls survive arguments of zeros and of 0xa5", entry);
	prepare(0);
	tap_ret(call(fd, DRM_IOCTL_GEM_CLOSE), -EINVAL, "%s: GEM_CLOSE of handle 0", entry);
}

/* drm_compat_ioctl() checks the number only, so another type must not reach it. */
static void test_other_types(int fd, const char *entry, int (*call)(int fd, unsigned long request))
{
	static const char types[] = { 'x', 'D', 'e', 0, (char)0xff, 'f' };
	int nr, bad = 0, ret;
	size_t t;

	for (t = 0; t < sizeof(types); t++)
		for (nr = 0; nr < 256; nr++) {
			/* The file layer's ioctls, such as FIOCLEX, have their own numbers. */
			if (types[t] == 'f' && nr > 0x02)
				break;
			prepare(0);
			ret = call(fd, _IOC(_IOC_READ | _IOC_WRITE, types[t] & 0xff, nr, 64));
			if (ret != -ENOTTY && ret != -EOPNOTSUPP && !bad++)
				tap_note("%s: type 0x%02x nr 0x%02x gave %d", entry,
					 types[t] & 0xff, nr, ret);
		}
	tap_eq(bad, 0, "%s: other ioctl types are refused", entry);
}

/* Errors that the allowed ioctls return for arguments of zeros, or none. */
static bool is_plain_error(int ret)
{
	static const int known[] = {
		0, -EINVAL, -ENOENT, -EFAULT, -EBADF, -EPERM, -EACCES, -EOPNOTSUPP,
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (ret == known[i])
			return true;
	return false;
}

/* Pages below 4 GiB, so that their address fits into an argument of 32-bit programs. */
static void *low_pages(size_t count)
{
	const size_t bytes = count * PAGE;
	uintptr_t at;
	void *pages;

	for (at = 0x10000000; at < 0xf0000000; at += 0x1000000) {
		pages = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (pages != MAP_FAILED)
			return pages;
	}
	tap_bail("mmap below 4 GiB: %s", strerror(errno));
	return NULL;
}

/*
 * Every number, direction and size, with an unmapped argument, and one that ends at
 * the last mapped byte.
 */
static void test_places(const char *entry, int (*call)(int fd, unsigned long request))
{
	static const unsigned int sizes[] = { 0, 1, 8, 24, 64, 1024, 16383 };
	uint8_t *good = arg, *edge, *places[3];
	unsigned int nr, d, s, p, bad = 0, calls = 0;
	int fd = abi_open(), ret;

	edge = low_pages(5);
	if (mprotect(edge + 4 * PAGE, PAGE, PROT_NONE))
		tap_bail("mprotect: %s", strerror(errno));
	edge += 4 * PAGE;
	for (nr = 0; nr < 256; nr++)
		for (d = 0; is_core(nr) && d < 4; d++)
			for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
				places[0] = NULL;
				places[1] = edge;
				places[2] = edge - sizes[s];
				for (p = 0; p < 3; p++, calls++) {
					memset(edge - 4 * PAGE, 0, 4 * PAGE);
					arg = places[p];
					ret = call(fd, _IOC(d, 'd', nr, sizes[s]));
					if (is_allowed(nr) ? is_plain_error(ret) :
							     ret == -EOPNOTSUPP)
						continue;
					if (!bad++)
						tap_note("%s: nr 0x%02x, %u bytes, place %u: %d",
							 entry, nr, sizes[s], p, ret);
				}
			}
	arg = good;
	munmap(edge - 4 * PAGE, 5 * PAGE);
	close(fd);
	tap_eq(bad, 0, "%s: %u calls with arguments unmapped or at a page's end", entry, calls);
}

static void test_oopses(int fd)
{
	struct drm_unique unique = { 0 };
	struct drm_auth auth = { 0 };

	tap_note("the next two oops when the core sees them");
	tap_ret(abi_ioctl(fd, DRM_IOCTL_GET_UNIQUE, &unique), -EOPNOTSUPP, "GET_UNIQUE");
	tap_ret(abi_ioctl(fd, DRM_IOCTL_GET_MAGIC, &auth), -EOPNOTSUPP, "GET_MAGIC");
}

static void test_legacy_memory(int fd)
{
	struct drm_mode_create_dumb dumb = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_gem_flink flink = { 0 };
	struct drm_gem_open open_name = { .name = 1 };
	uint32_t handle;

	tap_ret(abi_ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &dumb), -EOPNOTSUPP, "dumb buffers");
	if (abi_bo(fd, PAGE, DRM_SPYRE_BO_HOST, &handle))
		tap_bail("BO_CREATE");
	flink.handle = handle;
	tap_ret(abi_ioctl(fd, DRM_IOCTL_GEM_FLINK, &flink), -EOPNOTSUPP, "GEM_FLINK");
	tap_ret(abi_ioctl(fd, DRM_IOCTL_GEM_OPEN, &open_name), -EOPNOTSUPP, "GEM_OPEN");
	abi_gem_close(fd, handle);
}

static void test_identity(int fd)
{
	drmVersionPtr version = drmGetVersion(fd);
	uint64_t value = 99;

	if (tap_ok(version != NULL, "VERSION")) {
		tap_ok(!strcmp(version->name, "spyre_vdev"), "VERSION: name %s", version->name);
		tap_eq(version->version_major, 1, "VERSION: major");
		tap_note("spyre_vdev %d.%d.%d: %s", version->version_major, version->version_minor,
			 version->version_patchlevel, version->desc);
		drmFreeVersion(version);
	}
	tap_ok(!drmGetCap(fd, DRM_CAP_SYNCOBJ, &value) && value == 1, "GET_CAP: syncobj");
	tap_ok(!drmGetCap(fd, DRM_CAP_SYNCOBJ_TIMELINE, &value) && value == 1,
	       "GET_CAP: timeline syncobj");
	tap_ok(!drmGetCap(fd, DRM_CAP_PRIME, &value) &&
	       value == (DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT), "GET_CAP: PRIME both ways");
	value = 99;
	tap_ok(drmGetCap(fd, DRM_CAP_DUMB_BUFFER, &value) || value == 0,
	       "GET_CAP: no dumb buffers");
}

int main(void)
{
	int fd = abi_open();

	arg = low_pages(1);
	tap_note("uid %d", (int)getuid());
	test_identity(fd);
	test_oopses(fd);
	test_legacy_memory(fd);
	test_refused(fd, "native", native);
	test_other_types(fd, "native", native);
	test_allowed(fd, "native", native);
	test_places("native", native);
	prepare(0);
	if (has_compat(fd)) {
		test_refused(fd, "32 bit", compat);
		test_other_types(fd, "32 bit", compat);
		test_allowed(fd, "32 bit", compat);
		test_places("32 bit", compat);
	} else {
		tap_skip("this kernel has no 32-bit entry", "32 bit");
	}
	test_identity(fd);
	return tap_done();
}
