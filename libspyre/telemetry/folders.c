// SPDX-License-Identifier: MIT
/* The folders in which processes publish pages and log events, one of each user. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/telemetry/sources.h"

typedef spyre_status visit_fn(int folder, uint32_t owner, void *data);

spyre_status spyre_telemetry_not_opened(const char *name)
{
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_SYSTEM, "cannot read the telemetry of embedded cards (%s): %s",
			   name, strerror(errno));
}

static spyre_status visit_folder(int base, const char *name, uint32_t owner, visit_fn *visit,
				 void *data)
{
	spyre_status status = SPYRE_SUCCESS;
	struct stat st;
	int folder;

	folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return spyre_telemetry_not_opened(name);
	if (!fstat(folder, &st) && st.st_uid == owner && !(st.st_mode & 077))
		status = visit(folder, owner, data);
	close(folder);
	return status;
}

/* Root sees the folders of all users. */
static spyre_status visit_all(int base, visit_fn *visit, void *data)
{
	spyre_status status = SPYRE_SUCCESS;
	struct dirent *entry;
	unsigned int owner;
	char again[32];
	DIR *dir;
	int fd;

	fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		status = spyre_telemetry_not_opened("all users");
		if (fd >= 0)
			close(fd);
		return status;
	}
	while (!status && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "spyre-%10u", &owner) != 1)
			continue;
		snprintf(again, sizeof(again), "spyre-%u", owner);
		if (!strcmp(again, entry->d_name))
			status = visit_folder(base, entry->d_name, owner, visit, data);
	}
	closedir(dir);
	return status;
}

spyre_status spyre_telemetry_visit_folders(visit_fn *visit, void *data)
{
	const char *path = secure_getenv("SPYRE_TELEMETRY_DIR");
	spyre_status status;
	char name[32];
	int base;

	base = open(path && *path ? path : "/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return spyre_telemetry_not_opened("SPYRE_TELEMETRY_DIR");
	if (geteuid() == 0) {
		status = visit_all(base, visit, data);
	} else {
		snprintf(name, sizeof(name), "spyre-%u", (unsigned int)geteuid());
		status = visit_folder(base, name, geteuid(), visit, data);
	}
	close(base);
	return status;
}
