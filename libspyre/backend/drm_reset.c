// SPDX-License-Identifier: MIT
/* State of a context, and the resets of a context and of a card. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"

static_assert((int)SPYRE_CONTEXT_OK == DRM_SPYRE_CONTEXT_OK &&
	      (int)SPYRE_CONTEXT_FAULTED == DRM_SPYRE_CONTEXT_FAULTED &&
	      (int)SPYRE_CONTEXT_STALE == DRM_SPYRE_CONTEXT_STALE, "states");
static_assert((int)SPYRE_FAULT_TIMEOUT == DRM_SPYRE_FAULT_TIMEOUT &&
	      (int)SPYRE_FAULT_ACCESS == DRM_SPYRE_FAULT_ACCESS &&
	      (int)SPYRE_FAULT_ESCAPE == DRM_SPYRE_FAULT_ESCAPE &&
	      (int)SPYRE_FAULT_COMPUTE == DRM_SPYRE_FAULT_COMPUTE, "faults");

static int query(struct spyre_drm_card *card, uint32_t type, void *info, uint32_t size)
{
	struct drm_spyre_dev_query args = {
		.type = type, .size = size, .pointer = (uintptr_t)info,
	};

	return drmIoctl(card->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args) ? errno : 0;
}

bool spyre_drm_generation(struct spyre_drm_card *card, uint64_t *generation)
{
	struct drm_spyre_card_info info = { 0 };

	if (query(card, DRM_SPYRE_DEV_QUERY_CARD, &info, sizeof(info)))
		return false;
	*generation = info.generation;
	return true;
}

bool spyre_drm_is_stale(struct spyre_drm_card *card)
{
	uint64_t generation;

	return spyre_drm_generation(card, &generation) && generation != card->generation;
}

spyre_status spyre_drm_state(struct spyre_card *base, struct spyre_card_state *state)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_context_info info = { 0 };

	*state = (struct spyre_card_state){ .generation = card->generation };
	if (!spyre_drm_generation(card, &state->card_generation)) {
		if (errno != ENODEV)
			return spyre_drm_error(card, errno, "DRM_IOCTL_SPYRE_DEV_QUERY of the card");
		state->health = SPYRE_CONTEXT_LOST;
		return SPYRE_SUCCESS;
	}
	if (state->card_generation != card->generation) {
		state->health = SPYRE_CONTEXT_STALE;
		return SPYRE_SUCCESS;
	}
	/* Modules before 1.2 do not mark contexts as failed; their queues fail one by one. */
	if (query(card, DRM_SPYRE_DEV_QUERY_CONTEXT, &info, sizeof(info)))
		return SPYRE_SUCCESS;
	if (info.state <= DRM_SPYRE_CONTEXT_STALE)
		state->health = (spyre_context_health)info.state;
	if (info.fault <= DRM_SPYRE_FAULT_COMPUTE)
		state->fault = (spyre_fault)info.fault;
	return SPYRE_SUCCESS;
}

spyre_status spyre_drm_context_reset(struct spyre_card *base, bool repeated)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_context_reset args = { 0 };

	/* The first reset has killed the queues: they refuse what is submitted since. */
	if (repeated)
		return SPYRE_SUCCESS;
	/* Modules before 1.2 lack this ioctl; destroying the queues stops all work there. */
	if (!drmIoctl(card->fd, DRM_IOCTL_SPYRE_CONTEXT_RESET, &args) || errno == EINVAL)
		return SPYRE_SUCCESS;
	return spyre_drm_error(card, errno, "DRM_IOCTL_SPYRE_CONTEXT_RESET");
}

spyre_status spyre_drm_reset(struct spyre_drm_card *card, uint64_t *generation)
{
	struct drm_spyre_reset args = { 0 };
	int error;

	if (!drmIoctl(card->fd, DRM_IOCTL_SPYRE_RESET, &args)) {
		*generation = args.generation;
		return SPYRE_SUCCESS;
	}
	error = errno;
	if (error == EACCES || error == EPERM)
		return spyre_error(SPYRE_ERROR_NO_PERMISSION,
				   "%s: resetting a card stops the work of everybody on it and takes CAP_SYS_ADMIN: run it as root (sudo)",
				   card->base.properties.node);
	if (error == EIO)
		return spyre_error(SPYRE_ERROR_DEVICE_LOST,
				   "%s: DRM_IOCTL_SPYRE_RESET: the card does not answer; unbind and bind the driver (docs/error-and-reset.md), or reload spyre_vdev",
				   card->base.properties.node);
	return spyre_drm_error(card, error, "DRM_IOCTL_SPYRE_RESET");
}
