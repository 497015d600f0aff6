// SPDX-License-Identifier: MIT
/*
 * The core's ioctls: every number that is not the driver's own is either one
 * that is allowed on purpose or gives -EOPNOTSUPP, for any caller.
 */
#include "tests/abi/abi.h"

/* libdrm 2.4.114 does not have it yet. */
#define NR_SYNCOBJ_EVENTFD 0xcf

static bool allowed(unsigned int nr)
{
	static const unsigned int list[] = {
		_IOC_NR(DRM_IOCTL_VERSION), _IOC_NR(DRM_IOCTL_GET_CAP),
		_IOC_NR(DRM_IOCTL_GEM_CLOSE), _IOC_NR(DRM_IOCTL_PRIME_HANDLE_TO_FD),
		_IOC_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE), _IOC_NR(DRM_IOCTL_SYNCOBJ_CREATE),
		_IOC_NR(DRM_IOCTL_SYNCOBJ_DESTROY), _IOC_NR(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD),
		_IOC_NR(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE), _IOC_NR(DRM_IOCTL_SYNCOBJ_TRANSFER),
		_IOC_NR(DRM_IOCTL_SYNCOBJ_WAIT), _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT),
		NR_SYNCOBJ_EVENTFD, _IOC_NR(DRM_IOCTL_SYNCOBJ_RESET),
		_IOC_NR(DRM_IOCTL_SYNCOBJ_SIGNAL), _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL),
		_IOC_NR(DRM_IOCTL_SYNCOBJ_QUERY),
	};
	size_t i;

	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (list[i] == nr)
			return true;
	return false;
}

/* Several argument sizes: the core copies as many bytes as the number says. */
static void test_number(int fd, unsigned int nr)
{
	static const unsigned int sizes[] = { 0, 8, 64, 1024 };
	bool driver = nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END;
	unsigned int known = driver && nr <= DRM_COMMAND_BASE + DRM_SPYRE_SUBMIT;
	uint8_t buffer[1024];
	bool good = true;
	int got = 0;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(buffer, 0, sizeof(buffer));
		got = call(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', nr, sizes[i]), buffer);
		if (driver && !known)
			good = good && got == -EINVAL;
		else if (!driver && !allowed(nr))
			good = good && got == -EOPNOTSUPP;
	}
	ok(good, "number 0x%02x of type 'd' %s (last: %d)", nr,
	   driver ? (known ? "is the driver's" : "is unknown") :
	   allowed(nr) ? "is allowed" : "is not supported", got);
}

int main(void)
{
	char name[32] = "";
	struct drm_version version = { .name_len = sizeof(name) - 1, .name = name };
	struct drm_get_cap cap = { .capability = DRM_CAP_SYNCOBJ_TIMELINE };
	struct drm_unique unique = { 0 };
	struct drm_auth auth = { 0 };
	struct drm_mode_create_dumb dumb = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_gem_flink flink = { 0 };
	int fd = node_open();
	unsigned int nr;

	gives(0, fd, DRM_IOCTL_VERSION, &version, "VERSION");
	ok(!strcmp(name, "spyre_vdev"), "the driver is %s", name);
	gives(0, fd, DRM_IOCTL_GET_CAP, &cap, "GET_CAP");
	ok(cap.value == 1, "timeline syncobjs");
	gives(-EOPNOTSUPP, fd, DRM_IOCTL_GET_UNIQUE, &unique, "GET_UNIQUE");
	gives(-EOPNOTSUPP, fd, DRM_IOCTL_GET_MAGIC, &auth, "GET_MAGIC");
	gives(-EOPNOTSUPP, fd, DRM_IOCTL_MODE_CREATE_DUMB, &dumb, "MODE_CREATE_DUMB");
	flink.handle = bo_create(fd, PAGE, DRM_SPYRE_BO_DEVICE);
	gives(-EOPNOTSUPP, fd, DRM_IOCTL_GEM_FLINK, &flink, "GEM_FLINK");
	for (nr = 0; nr < 256; nr++)
		test_number(fd, nr);
	ok(call(fd, _IO('x', 0), NULL) < 0, "an ioctl of another type fails");
	close(fd);
	return done_testing();
}
