// SPDX-License-Identifier: MIT
/* The drm backend: cards of spyre_vdev.ko, opened by their accel node. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"
#include "libspyre/base/sysfs.h"

/* DRM driver version of this interface; a new minor only adds to it. */
#define DRIVER_MAJOR 1
/* First minor with DRM_SPYRE_DMA_BOX. */
#define DRIVER_MINOR_BOXES 3
/* First minor with DRM_SPYRE_CB_PEER_COPY. */
#define DRIVER_MINOR_PEERS 4

static spyre_status drm_count(int *count)
{
	struct spyre_sysfs_cards cards;
	spyre_status status;

	status = spyre_sysfs_scan(&cards);
	*count = status ? 0 : cards.count;
	spyre_sysfs_fini(&cards);
	return status;
}

static spyre_status drm_usable(enum spyre_functions functions, int count, bool *usable)
{
	const struct spyre_sysfs_card *card;
	struct spyre_sysfs_cards cards;
	spyre_status status;
	int i;

	status = spyre_sysfs_scan(&cards);
	for (i = 0; i < count; i++) {
		card = &cards.card[i];
		usable[i] = !status && i < cards.count && !card->num_vfs &&
			    (functions != SPYRE_FUNCTIONS_PF || !card->vf) &&
			    (functions != SPYRE_FUNCTIONS_VF || card->vf);
	}
	spyre_sysfs_fini(&cards);
	return status;
}

/* Copies card @index of sysfs to @card. */
static spyre_status find_card(int index, struct spyre_sysfs_card *card)
{
	struct spyre_sysfs_cards cards;
	spyre_status status;

	status = spyre_sysfs_scan(&cards);
	if (!status && (index < 0 || index >= cards.count))
		status = spyre_error(SPYRE_ERROR_NO_DEVICE,
				     "no card %d: %d card(s) of " SPYRE_DRM_DRIVER
				     " under /sys/class/accel", index, cards.count);
	if (!status)
		*card = cards.card[index];
	spyre_sysfs_fini(&cards);
	return status;
}

static spyre_status drm_properties(int index, spyre_device_properties *properties)
{
	struct spyre_sysfs_card card;

	TRY(find_card(index, &card));
	spyre_sysfs_properties(&card, index, properties);
	return SPYRE_SUCCESS;
}

static spyre_status drm_peer_index(int index, int32_t *physical)
{
	struct spyre_sysfs_card card;

	TRY(find_card(index, &card));
	*physical = spyre_sysfs_peer_index(&card);
	return SPYRE_SUCCESS;
}

static const char *group_name(gid_t gid, char *buffer, size_t size)
{
	struct group entry, *found;

	if (!getgrgid_r(gid, &entry, buffer, size, &found) && found)
		return entry.gr_name;
	snprintf(buffer, size, "%u", (unsigned int)gid);
	return buffer;
}

static spyre_status permission_error(const char *node, int error)
{
	char buffer[1024];
	const char *group;
	struct stat st;

	if (stat(node, &st))
		return spyre_error(SPYRE_ERROR_NO_PERMISSION,
				   "cannot open %s: %s (errno %d); a folder above it is closed to this user",
				   node, strerror(error), error);
	group = group_name(st.st_gid, buffer, sizeof(buffer));
	if ((st.st_mode & 0060) == 0060 && st.st_gid)
		return spyre_error(SPYRE_ERROR_NO_PERMISSION,
				   "cannot open %s: %s (mode %04o, group %s); join the group with \"sudo usermod -aG %s $USER\" and log in again",
				   node, strerror(error), (unsigned int)st.st_mode & 07777, group,
				   group);
	return spyre_error(SPYRE_ERROR_NO_PERMISSION,
			   "cannot open %s: %s (mode %04o, group %s); udev's rules give it group render and mode 0660: \"sudo chgrp render %s; sudo chmod 0660 %s\", and the user must be in group render",
			   node, strerror(error), (unsigned int)st.st_mode & 07777, group, node,
			   node);
}

static spyre_status open_error(const char *node, int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return permission_error(node, error);
	case ENOENT:
		return spyre_error(SPYRE_ERROR_NO_DEVICE,
				   "%s does not exist though the card does; is udev (or devtmpfs) running here, and is the node passed into this container?",
				   node);
	case ENODEV:
	case ENXIO:
		return spyre_error(SPYRE_ERROR_NO_DEVICE, "%s: the card was unplugged", node);
	case ENOMEM:
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "cannot open %s: the host or the memory cgroup is full", node);
	default:
		return spyre_error(SPYRE_ERROR_SYSTEM, "cannot open %s: %s (errno %d)%s", node,
				   strerror(error), error,
				   error == EMFILE ? "; raise the limit (ulimit -n)" : "");
	}
}

static spyre_status check_version(struct spyre_drm_card *card)
{
	const char *node = card->base.properties.node;
	drmVersionPtr version = drmGetVersion(card->fd);
	spyre_status status = SPYRE_SUCCESS;

	if (!version)
		return spyre_error(SPYRE_ERROR_ABI_MISMATCH,
				   "%s: DRM_IOCTL_VERSION: %s (errno %d); this is not a card of " SPYRE_DRM_DRIVER,
				   node, strerror(errno), errno);
	if (strcmp(version->name, SPYRE_DRM_DRIVER))
		status = spyre_error(SPYRE_ERROR_ABI_MISMATCH,
				     "%s belongs to driver %s, not to " SPYRE_DRM_DRIVER, node,
				     version->name);
	else if (version->version_major != DRIVER_MAJOR)
		status = spyre_error(SPYRE_ERROR_ABI_MISMATCH,
				     "%s: the loaded " SPYRE_DRM_DRIVER " speaks version %d.%d, libspyre speaks %d.x; load the module that was built with this library (modprobe -r " SPYRE_DRM_DRIVER "; modprobe " SPYRE_DRM_DRIVER ")",
				     node, version->version_major, version->version_minor,
				     DRIVER_MAJOR);
	card->base.boxes = version->version_minor >= DRIVER_MINOR_BOXES;
	card->base.peers = version->version_minor >= DRIVER_MINOR_PEERS;
	drmFreeVersion(version);
	return status;
}

/* Replaces the properties from sysfs by those of the open node, which are complete. */
static spyre_status query_card(struct spyre_drm_card *card)
{
	spyre_device_properties *p = &card->base.properties;
	struct drm_spyre_card_info info = { 0 };
	struct drm_spyre_dev_query args = {
		.type = DRM_SPYRE_DEV_QUERY_CARD,
		.size = sizeof(info),
		.pointer = (uintptr_t)&info,
	};

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args))
		return spyre_drm_error(card, errno, "DRM_IOCTL_SPYRE_DEV_QUERY of the card");
	if (info.stick_bytes != DRM_SPYRE_STICK_BYTES ||
	    info.program_version < SPYRE_PROG_VERSION || !info.num_cores ||
	    info.num_cores > SPYRE_MAX_CORES)
		return spyre_error(SPYRE_ERROR_ABI_MISMATCH,
				   "%s: the card has %u cores, sticks of %u bytes and runs programs of version %u; libspyre needs 1 to %u cores, sticks of %u bytes and makes version %u: load the module that was built with this library",
				   p->node, info.num_cores, info.stick_bytes, info.program_version,
				   SPYRE_MAX_CORES, DRM_SPYRE_STICK_BYTES, SPYRE_PROG_VERSION);
	card->generation = info.generation;
	card->base.link_index = info.index;
	p->num_cores = info.num_cores;
	p->lx_bytes = info.lx_bytes;
	p->stick_bytes = info.stick_bytes;
	p->clock_khz = info.clock_khz;
	p->memory_bytes = info.lpddr_bytes;
	snprintf(p->unit, sizeof(p->unit), "%.*s", (int)sizeof(info.unit), (char *)info.unit);
	return SPYRE_SUCCESS;
}

static spyre_status init_card(struct spyre_drm_card *card)
{
	const char *node = card->base.properties.node;
	spyre_status status;

	card->fd = open(node, O_RDWR | O_CLOEXEC);
	if (card->fd < 0)
		return open_error(node, errno);
	status = check_version(card);
	if (!status)
		status = query_card(card);
	if (!status)
		status = spyre_drm_submit_choose(card);
	if (status) {
		close(card->fd);
		return status;
	}
	pthread_mutex_init(&card->device_lock, NULL);
	pthread_rwlock_init(&card->host_lock, NULL);
	spyre_drm_foreign_open(card);
	return SPYRE_SUCCESS;
}

static spyre_status drm_open(int index, struct spyre_card **opened)
{
	struct spyre_drm_card *card;
	spyre_status status;

	card = calloc(1, sizeof(*card));
	if (!card)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a card");
	card->base.ops = &spyre_backend_drm;
	card->base.properties.struct_size = sizeof(card->base.properties);
	status = drm_properties(index, &card->base.properties);
	if (!status)
		status = init_card(card);
	if (status) {
		free(card);
		return status;
	}
	*opened = &card->base;
	return SPYRE_SUCCESS;
}

static void drm_close(struct spyre_card *base)
{
	struct spyre_drm_card *card = spyre_drm_card(base);

	spyre_drm_foreign_close(card);
	spyre_drm_ring_close(card->ring);
	close(card->fd);
	spyre_drm_ranges_fini(&card->device);
	spyre_drm_ranges_fini(&card->host);
	pthread_mutex_destroy(&card->device_lock);
	pthread_rwlock_destroy(&card->host_lock);
	free(card);
}

static spyre_status drm_device_reset(int index, uint64_t *generation)
{
	struct spyre_card *card;
	spyre_status status;

	status = drm_open(index, &card);
	if (status)
		return status;
	status = spyre_drm_reset(spyre_drm_card(card), generation);
	drm_close(card);
	return status;
}

static spyre_status drm_mem_info(struct spyre_card *base, uint64_t *total, uint64_t *used)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_memory_info info = { 0 };
	struct drm_spyre_dev_query args = {
		.type = DRM_SPYRE_DEV_QUERY_MEMORY,
		.size = sizeof(info),
		.pointer = (uintptr_t)&info,
	};

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args))
		return spyre_drm_error(card, errno, "DRM_IOCTL_SPYRE_DEV_QUERY of the memory");
	*total = info.total;
	*used = info.used;
	return SPYRE_SUCCESS;
}

const struct spyre_backend_ops spyre_backend_drm = {
	.id = SPYRE_BACKEND_DRM,
	.count = drm_count,
	.usable = drm_usable,
	.properties = drm_properties,
	.peer_index = drm_peer_index,
	.open = drm_open,
	.close = drm_close,
	.mem_info = drm_mem_info,
	.mem_map = spyre_drm_mem_map,
	.mem_unmap = spyre_drm_mem_unmap,
	.mem_export = spyre_drm_mem_export,
	.mem_import = spyre_drm_mem_import,
	.host_alloc = spyre_drm_host_alloc,
	.host_free = spyre_drm_host_free,
	.program_create = spyre_drm_program_create,
	.program_destroy = spyre_drm_program_destroy,
	.queue_create = spyre_drm_queue_create,
	.queue_destroy = spyre_drm_queue_destroy,
	.submit = spyre_drm_submit,
	.wait = spyre_drm_wait,
	.completed = spyre_drm_completed,
	.state = spyre_drm_state,
	.context_reset = spyre_drm_context_reset,
	.queue_renew = spyre_drm_queue_renew,
	.device_reset = drm_device_reset,
};
