// SPDX-License-Identifier: MIT
/* Kernel cards as sysfs shows them. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/base/sysfs.h"

#define SYSFS_PATH 512

const char *spyre_sysfs_root(void)
{
	const char *root = secure_getenv("SPYRE_FSROOT");

	return root && strlen(root) < SYSFS_PATH / 4 ? root : "";
}

bool spyre_sysfs_read(const char *path, char *text, size_t size)
{
	ssize_t got;
	int fd;

	text[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	do {
		got = read(fd, text, size - 1);
	} while (got < 0 && errno == EINTR);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	return true;
}

bool spyre_sysfs_read_line(const char *path, char *line, size_t size)
{
	bool found = spyre_sysfs_read(path, line, size);

	line[strcspn(line, "\n")] = '\0';
	return found;
}

static bool read_accel(int minor, const char *file, char *line, size_t size)
{
	char path[SYSFS_PATH];

	snprintf(path, sizeof(path), "%s/sys/class/accel/accel%d/%s", spyre_sysfs_root(), minor,
		 file);
	return spyre_sysfs_read_line(path, line, size);
}

/* Gives the last component of a link of the accel device; false if there is no such link. */
static bool link_name(int minor, const char *link, char *name, size_t size)
{
	char path[SYSFS_PATH], target[SYSFS_PATH];
	const char *base;
	ssize_t length;
	size_t bytes;

	snprintf(path, sizeof(path), "%s/sys/class/accel/accel%d/%s", spyre_sysfs_root(), minor,
		 link);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	bytes = strlen(base) + 1;
	if (bytes > size)
		return false;
	memcpy(name, base, bytes);
	return true;
}

static bool parse_u64(const char *text, uint64_t *value)
{
	unsigned long long parsed;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	parsed = strtoull(text, &end, 10);
	if (errno || *end)
		return false;
	*value = parsed;
	return true;
}

bool spyre_sysfs_string(const struct spyre_sysfs_card *card, const char *attribute,
			char *value, size_t size)
{
	char file[64];

	snprintf(file, sizeof(file), "device/%s", attribute);
	return read_accel(card->minor, file, value, size);
}

bool spyre_sysfs_u64(const struct spyre_sysfs_card *card, const char *attribute,
		     uint64_t *value)
{
	char line[32];

	return spyre_sysfs_string(card, attribute, line, sizeof(line)) &&
	       parse_u64(line, value);
}

static uint32_t read_u32(const struct spyre_sysfs_card *card, const char *attribute)
{
	uint64_t value = 0;

	spyre_sysfs_u64(card, attribute, &value);
	return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* True if accel<minor> is a card of spyre_vdev; fills @card. */
static bool probe(int minor, struct spyre_sysfs_card *card)
{
	unsigned int node_major, node_minor;
	char driver[32], line[32];
	uint64_t index;

	if (!link_name(minor, "device/driver", driver, sizeof(driver)) ||
	    strcmp(driver, SPYRE_DRM_DRIVER))
		return false;
	memset(card, 0, sizeof(*card));
	card->minor = minor;
	card->card_index = minor;
	if (spyre_sysfs_u64(card, "card_index", &index) && index <= INT32_MAX)
		card->card_index = (int)index;
	card->vf = read_u32(card, "vf");
	card->num_vfs = read_u32(card, "num_vfs");
	if (read_accel(minor, "dev", line, sizeof(line)) &&
	    sscanf(line, "%u:%u", &node_major, &node_minor) == 2)
		card->rdev = makedev(node_major, node_minor);
	link_name(minor, "device", card->bus_id, sizeof(card->bus_id));
	return true;
}

static int by_index(const void *left, const void *right)
{
	const struct spyre_sysfs_card *a = left, *b = right;

	if (a->card_index != b->card_index)
		return a->card_index < b->card_index ? -1 : 1;
	if (a->vf != b->vf)
		return a->vf < b->vf ? -1 : 1;
	return (a->minor > b->minor) - (a->minor < b->minor);
}

/* Minor number of a directory entry "accelN", -1 for others. */
static int entry_minor(const char *name)
{
	uint64_t minor;

	if (strncmp(name, "accel", 5) || !parse_u64(name + 5, &minor) || minor > INT32_MAX)
		return -1;
	return (int)minor;
}

static spyre_status add_card(struct spyre_sysfs_cards *cards, const struct spyre_sysfs_card *card)
{
	if (!spyre_array_reserve(&cards->card, &cards->capacity, (size_t)cards->count + 1,
				 sizeof(*cards->card)))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory to list %d accel devices", cards->count + 1);
	cards->card[cards->count++] = *card;
	return SPYRE_SUCCESS;
}

spyre_status spyre_sysfs_scan(struct spyre_sysfs_cards *cards)
{
	spyre_status status = SPYRE_SUCCESS;
	struct spyre_sysfs_card card;
	char path[SYSFS_PATH];
	struct dirent *entry;
	int minor;
	DIR *dir;

	memset(cards, 0, sizeof(*cards));
	snprintf(path, sizeof(path), "%s/sys/class/accel", spyre_sysfs_root());
	dir = opendir(path);
	if (!dir) {
		if (errno == ENOENT || errno == ENOTDIR)
			return SPYRE_SUCCESS;
		return spyre_error(errno == EACCES ? SPYRE_ERROR_NO_PERMISSION
						   : SPYRE_ERROR_SYSTEM,
				   "cannot list %s: %s (errno %d); is sysfs mounted and readable?",
				   path, strerror(errno), errno);
	}
	while (!status && (entry = readdir(dir))) {
		minor = entry_minor(entry->d_name);
		if (minor >= 0 && probe(minor, &card))
			status = add_card(cards, &card);
	}
	closedir(dir);
	if (cards->count > 1)
		qsort(cards->card, cards->count, sizeof(*cards->card), by_index);
	return status;
}

void spyre_sysfs_fini(struct spyre_sysfs_cards *cards)
{
	free(cards->card);
	memset(cards, 0, sizeof(*cards));
}

int32_t spyre_sysfs_peer_index(const struct spyre_sysfs_card *card)
{
	char path[SYSFS_PATH];

	/* The counter came with the copies; only root may read it, but all see that it is there. */
	snprintf(path, sizeof(path), "%s/sys/class/accel/accel%d/device/rdma_read",
		 spyre_sysfs_root(), card->minor);
	return access(path, F_OK) ? -1 : card->card_index;
}

void spyre_sysfs_node(const struct spyre_sysfs_card *card, char *path, size_t size)
{
	snprintf(path, size, "%s/dev/accel/accel%d", spyre_sysfs_root(), card->minor);
}

void spyre_sysfs_properties(const struct spyre_sysfs_card *card, int position,
			    spyre_device_properties *properties)
{
	spyre_device_properties p = { .struct_size = properties->struct_size };

	if (card->vf)
		snprintf(p.name, sizeof(p.name), "Virtual Spyre VF %" PRIu32, card->vf);
	else if (card->num_vfs)
		snprintf(p.name, sizeof(p.name), "Virtual Spyre (%" PRIu32 " VFs)", card->num_vfs);
	else
		snprintf(p.name, sizeof(p.name), "Virtual Spyre");
	memcpy(p.bus_id, card->bus_id, sizeof(p.bus_id));
	spyre_sysfs_node(card, p.node, sizeof(p.node));
	spyre_sysfs_string(card, "uuid", p.uuid, sizeof(p.uuid));
	spyre_sysfs_string(card, "unit", p.unit, sizeof(p.unit));
	p.backend = SPYRE_BACKEND_DRM;
	p.index = position;
	p.physical_index = position;
	p.num_cores = read_u32(card, "num_cores");
	p.lx_bytes = read_u32(card, "lx_bytes");
	p.stick_bytes = read_u32(card, "stick_bytes");
	p.clock_khz = read_u32(card, "clock_khz");
	spyre_sysfs_u64(card, "lpddr_total", &p.memory_bytes);
	*properties = p;
}
