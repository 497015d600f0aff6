// SPDX-License-Identifier: MIT
/* The checks of the machine for `spyre doctor`. */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <linux/io_uring.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <spyre/device.h>

#include "finding.h"
#include "host.h"

/*
 * A lower RLIMIT_MEMLOCK limits what can be registered: systemd's default of 8 MiB
 * is less than one layer's weights.
 */
#define GOOD_MEMLOCK (64ull << 20)

void finding_add(struct findings *findings, const char *check, enum finding_level level,
		 const char *format, ...)
{
	struct finding *f;
	va_list args;

	if (findings->count == FINDING_MAX)
		return;
	f = &findings->at[findings->count++];
	f->check = check;
	f->level = level;
	f->fix[0] = '\0';
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

void finding_fix(struct findings *findings, const char *format, ...)
{
	struct finding *f = &findings->at[findings->count - 1];
	va_list args;

	va_start(args, format);
	vsnprintf(f->fix, sizeof(f->fix), format, args);
	va_end(args);
}

/* Formats the distribution's command that installs dkms and the headers of kernel @release. */
static void headers_command(const char *os_release, const char *release, char *text, size_t size)
{
	char ids[256];

	host_distribution(os_release, ids, sizeof(ids));
	if (strstr(ids, " debian ") || strstr(ids, " ubuntu "))
		snprintf(text, size, "apt install dkms linux-headers-%s", release);
	else if (strstr(ids, " fedora ") || strstr(ids, " rhel "))
		snprintf(text, size, "dnf install dkms kernel-devel-%s", release);
	else if (strstr(ids, " arch "))
		snprintf(text, size, "pacman -S dkms linux-headers");
	else if (strstr(ids, " suse ") || strstr(ids, " opensuse "))
		snprintf(text, size, "zypper install dkms kernel-default-devel");
	else
		snprintf(text, size, "install dkms and the headers of kernel %s", release);
}

void finding_fix_no_module(struct findings *findings, const char *os_release, const char *release)
{
	unsigned int major = 0, minor = 0;
	char headers[256];

	if (sscanf(release, "%u.%u", &major, &minor) == 2 &&
	    (major < 6 || (major == 6 && minor < 12))) {
		finding_fix(findings,
			    "/dev/accel nodes need Linux 6.12 or later, this is %u.%u; "
			    "embedded cards need no module",
			    major, minor);
		return;
	}
	headers_command(os_release, release, headers, sizeof(headers));
	finding_fix(findings,
		    "for /dev/accel nodes: %s; dkms install spyre-vdev/%s; modprobe " HOST_MODULE
		    " (with the sources in /usr/src: configure --prefix=/usr); embedded cards need "
		    "no module",
		    headers, PACKAGE_VERSION);
}

void finding_module(struct findings *findings)
{
	char release[128], version[64];

	host_kernel_release(release, sizeof(release));
	if (host_module_loaded()) {
		host_module_version(version, sizeof(version));
		finding_add(findings, "module", FINDING_OK, HOST_MODULE " %s%sis loaded, kernel %s",
			    version, *version ? " " : "", release);
	} else if (host_module_installed()) {
		finding_add(findings, "module", FINDING_WARN,
			    HOST_MODULE
			    " is installed for kernel %s but not loaded; only embedded cards "
			    "are available",
			    release);
		finding_fix(findings, "modprobe " HOST_MODULE);
	} else {
		finding_add(findings, "module", FINDING_WARN,
			    "no " HOST_MODULE " for kernel %s; only embedded cards are available",
			    release);
		finding_fix_no_module(findings, "/etc/os-release", release);
	}
}

/* Returns true if the process has @group; root does not need it. */
static bool in_group(gid_t group)
{
	gid_t groups[1024];
	int n = getgroups(1024, groups);

	if (getegid() == group)
		return true;
	for (int i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}

static bool listed_in_group(const struct group *group, const char *user)
{
	for (char **member = group->gr_mem; *member; member++)
		if (!strcmp(*member, user))
			return true;
	return false;
}

static void fix_group(struct findings *findings, const char *path, const struct stat *st)
{
	const struct passwd *user = getpwuid(geteuid());
	const char *name = user ? user->pw_name : "$USER";
	const struct group *group = getgrgid(st->st_gid);

	if (!group || st->st_gid == 0 || (st->st_mode & 0060) != 0060)
		finding_fix(findings,
			    "chgrp render %s && chmod 0660 %s (udev's stock rules do "
			    "this)",
			    path, path);
	else if (listed_in_group(group, name))
		finding_fix(findings,
			    "log in again or run newgrp %s: %s joined the group after this "
			    "session began",
			    group->gr_name, name);
	else
		finding_fix(findings, "usermod -aG %s %s, then log in again", group->gr_name, name);
}

static void check_node(struct findings *findings, const char *path)
{
	const struct group *group;
	struct stat st;

	if (stat(path, &st)) {
		finding_add(findings, "node", FINDING_FAIL, "%s: %s, although the card exists",
			    path, strerror(errno));
		finding_fix(
			findings,
			"run udevadm trigger -s accel; in a container, pass the device through");
		return;
	}
	group = getgrgid(st.st_gid);
	if (!access(path, R_OK | W_OK)) {
		finding_add(findings, "node", FINDING_OK, "%s: mode %04o, group %s%s", path,
			    st.st_mode & 07777, group ? group->gr_name : "without a name",
			    in_group(st.st_gid) ? ", which includes this user" : "");
		return;
	}
	finding_add(findings, "node", FINDING_FAIL, "%s: mode %04o, group %s: %s", path,
		    st.st_mode & 07777, group ? group->gr_name : "without a name", strerror(errno));
	fix_group(findings, path, &st);
}

void finding_nodes(struct findings *findings)
{
	const struct group *render = getgrnam("render");
	const char *state;
	char path[64];
	int minor = -1, nodes = 0;

	while ((minor = host_next_node(minor + 1, path, sizeof(path))) >= 0) {
		check_node(findings, path);
		nodes++;
	}
	if (nodes)
		return;
	if (!render)
		state = "group render does not exist";
	else if (geteuid() == 0)
		state = "root needs no group";
	else
		state = in_group(render->gr_gid) ? "this user is in group render"
						 : "this user is not in group render";
	if (host_module_loaded()) {
		finding_add(findings, "node", FINDING_WARN,
			    HOST_MODULE " is loaded but has created no /dev/accel node; %s", state);
		finding_fix(findings, "check dmesg; modprobe -r " HOST_MODULE
				      " && modprobe " HOST_MODULE " cards=1");
	} else {
		finding_add(findings, "node", FINDING_OK,
			    "no /dev/accel node of " HOST_MODULE ", none expected; %s", state);
	}
}

void finding_memlock(struct findings *findings)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit)) {
		finding_add(findings, "memlock", FINDING_WARN, "RLIMIT_MEMLOCK: %s",
			    strerror(errno));
	} else if (limit.rlim_cur == RLIM_INFINITY) {
		finding_add(findings, "memlock", FINDING_OK, "RLIMIT_MEMLOCK is unlimited");
	} else if (limit.rlim_cur >= GOOD_MEMLOCK) {
		finding_add(findings, "memlock", FINDING_OK, "RLIMIT_MEMLOCK is %llu KiB",
			    (unsigned long long)limit.rlim_cur >> 10);
	} else {
		finding_add(findings, "memlock", FINDING_WARN,
			    "RLIMIT_MEMLOCK is %llu KiB: little host memory can be registered for "
			    "io_uring",
			    (unsigned long long)limit.rlim_cur >> 10);
		finding_fix(findings,
			    "add '@render - memlock unlimited' to "
			    "/etc/security/limits.d/spyre.conf and log in again, or LimitMEMLOCK= "
			    "in a unit");
	}
}

void finding_io_uring(struct findings *findings)
{
	char line[64];
	bool known = host_read_line("/proc/sys/kernel/io_uring_disabled", line, sizeof(line));
	struct io_uring_params params = {0};
	long fd = syscall(SYS_io_uring_setup, 1, &params);
	int error = errno;

	if (fd >= 0) {
		close((int)fd);
		finding_add(findings, "io_uring", FINDING_OK, "io_uring works%s%s",
			    known ? ", kernel.io_uring_disabled=" : "", known ? line : "");
		return;
	}
	finding_add(findings, "io_uring", FINDING_WARN,
		    "io_uring_setup: %s%s%s; submissions use the ioctl, with the same results",
		    strerror(error), known ? ", kernel.io_uring_disabled=" : "", known ? line : "");
	if (known && strcmp(line, "0"))
		finding_fix(findings, "sysctl kernel.io_uring_disabled=0");
	else if (error == ENOSYS)
		finding_fix(findings,
			    "use a kernel with CONFIG_IO_URING, or a sandbox that allows it");
	else if (error == EPERM)
		finding_fix(
			findings,
			"use a seccomp profile (of the container runtime) that allows io_uring");
	else if (error == ENOMEM)
		finding_fix(findings, "raise RLIMIT_MEMLOCK");
}

void finding_hugepages(struct findings *findings)
{
	char line[128];

	if (!host_read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line))) {
		finding_add(findings, "hugepages", FINDING_WARN,
			    "the kernel has no transparent huge pages: first accesses to card "
			    "memory take more page faults");
		finding_fix(findings, "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
	} else if (strstr(line, "[never]")) {
		finding_add(findings, "hugepages", FINDING_WARN,
			    "transparent huge pages are off: first accesses to card memory take "
			    "more page faults");
		finding_fix(findings, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
	} else {
		finding_add(findings, "hugepages", FINDING_OK, "transparent huge pages: %s", line);
	}
}

void finding_vector_units(struct findings *findings)
{
	const char *const *name = spyre_host_units();
	char names[128] = "";
	size_t used = 0;
	bool scalar = !name[1];

	for (; *name && used < sizeof(names); name++)
		used += snprintf(names + used, sizeof(names) - used, " %s", *name);
	if (!scalar) {
		finding_add(findings, "cpu", FINDING_OK, "arithmetic units:%s", names);
	} else {
		finding_add(findings, "cpu", FINDING_WARN,
			    "arithmetic units:%s; the vector units give the same results faster",
			    names);
		finding_fix(findings, "in a virtual machine, pass the host's CPU through "
				      "(-cpu host or -cpu max)");
	}
}
