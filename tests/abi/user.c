/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE	/* setresuid() */
#include "user.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"

bool user_is_root(void)
{
	return !geteuid();
}

void user_be(uint32_t uid)
{
	char node[PATH_MAX], device[NAME_MAX];
	struct stat st;

	if (!abi_find(node, sizeof(node), device, sizeof(device)) || stat(node, &st))
		tap_skip_all("no accel node of spyre_vdev");
	/* The saved ids stay root's: user_back() needs them. */
	if (setresgid(st.st_gid, st.st_gid, 0) || setresuid(uid, uid, 0))
		tap_bail("setresuid to %u: %s", uid, strerror(errno));
}

void user_back(void)
{
	if (setresuid(0, 0, 0) || setresgid(0, 0, 0))
		tap_bail("setresuid back: %s", strerror(errno));
}

int user_open(uint32_t uid)
{
	int fd;

	user_be(uid);
	fd = abi_open();
	user_back();
	return fd;
}
