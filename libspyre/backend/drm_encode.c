// SPDX-License-Identifier: MIT
/* Translates commands into control blocks; drm_submit.c sends them. */
#include "config.h"

#include <string.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"

/* DMA descriptors are passed to the kernel unchanged, so the layouts must agree. */
#define SAME_FIELD(field) \
	static_assert(offsetof(struct spyre_dma_desc, field) == \
		      offsetof(struct drm_spyre_dma, field), #field)
static_assert(sizeof(struct spyre_dma_desc) == sizeof(struct drm_spyre_dma), "size");
SAME_FIELD(direction);
SAME_FIELD(host_format);
SAME_FIELD(device_format);
SAME_FIELD(num_dims);
SAME_FIELD(num_bounds);
SAME_FIELD(flags);
SAME_FIELD(host_offset);
SAME_FIELD(dim);
SAME_FIELD(bound);
static_assert(sizeof(struct spyre_dma_dim) == sizeof(struct drm_spyre_dma_dim), "dim");
static_assert(offsetof(struct spyre_dma_dim, host_stride) ==
	      offsetof(struct drm_spyre_dma_dim, host_stride), "dim.host_stride");
static_assert(sizeof(struct spyre_dma_bound) == sizeof(struct drm_spyre_dma_bound), "bound");
static_assert(offsetof(struct spyre_dma_bound, coef) ==
	      offsetof(struct drm_spyre_dma_bound, coef), "bound.coef");
static_assert(offsetof(struct spyre_dma_desc, box.device_offset) ==
	      offsetof(struct drm_spyre_dma, bound[0].limit), "box.device_offset");
static_assert(offsetof(struct spyre_dma_desc, box.device_stride) ==
	      offsetof(struct drm_spyre_dma, bound[0].coef), "box.device_stride");
static_assert(SPYRE_DMA_BOX == DRM_SPYRE_DMA_BOX, "flags");
static_assert((int)SPYRE_DMA_H2D == DRM_SPYRE_DMA_H2D && (int)SPYRE_DMA_D2H == DRM_SPYRE_DMA_D2H,
	      "direction");
static_assert((int)SPYRE_FMT_FP64 == DRM_SPYRE_FORMAT_FP64 &&
	      (int)SPYRE_FMT_BFLOAT16 == DRM_SPYRE_FORMAT_BFLOAT16, "formats");

const char *spyre_drm_command_name(const struct spyre_command *command)
{
	switch (command->type) {
	case SPYRE_COMMAND_EXEC:
		return "EXEC";
	case SPYRE_COMMAND_DMA:
		return command->dma.desc->direction == SPYRE_DMA_H2D ? "DMA H2D" : "DMA D2H";
	case SPYRE_COMMAND_COPY:
		return "COPY";
	case SPYRE_COMMAND_FILL:
		return "FILL";
	case SPYRE_COMMAND_TIMESTAMP:
		return "TIMESTAMP";
	case SPYRE_COMMAND_PEER:
		return command->peer.sends ? "PEER_COPY write" : "PEER_COPY read";
	}
	return "unknown command";
}

static void encode_exec(const struct spyre_command *command, struct drm_spyre_cb *cb)
{
	cb->type = DRM_SPYRE_CB_EXEC;
	cb->program = ((const struct spyre_drm_program *)command->exec.program)->handle;
	cb->num_args = command->exec.num_args;
	cb->args = (uintptr_t)command->exec.args;
}

static void encode_dma(struct spyre_drm_card *card, const struct spyre_command *command,
		       struct drm_spyre_cb *cb)
{
	uint64_t offset;
	uint32_t handle;

	cb->type = DRM_SPYRE_CB_DMA;
	cb->desc = (uintptr_t)command->dma.desc;
	cb->size = command->dma.host_bytes;
	if (command->dma.desc->direction == SPYRE_DMA_H2D)
		cb->dst = command->dma.device;
	else
		cb->src = command->dma.device;
	if (spyre_drm_host_lookup(card, command->dma.host, command->dma.host_bytes, &handle,
				  &offset)) {
		cb->host_handle = handle;
		cb->host_offset = offset;
	} else {
		/* The kernel pins the span for this job. */
		cb->host_addr = (uintptr_t)command->dma.host;
	}
}

static void encode_fill(const struct spyre_command *command, struct drm_spyre_cb *cb)
{
	cb->type = DRM_SPYRE_CB_FILL;
	cb->dst = command->fill.dst;
	cb->size = command->fill.bytes;
	cb->pattern_size = command->fill.pattern_bytes;
	if (command->fill.pattern_bytes <= sizeof(cb->pattern))
		memcpy(cb->pattern, command->fill.pattern, command->fill.pattern_bytes);
}

spyre_status spyre_drm_encode(struct spyre_drm_card *card, const struct spyre_command *command,
			      uint32_t index, struct drm_spyre_cb *cb)
{
	memset(cb, 0, sizeof(*cb));
	switch (command->type) {
	case SPYRE_COMMAND_EXEC:
		encode_exec(command, cb);
		return SPYRE_SUCCESS;
	case SPYRE_COMMAND_DMA:
		encode_dma(card, command, cb);
		return SPYRE_SUCCESS;
	case SPYRE_COMMAND_COPY:
		cb->type = DRM_SPYRE_CB_COPY;
		cb->dst = command->copy.dst;
		cb->src = command->copy.src;
		cb->size = command->copy.bytes;
		return SPYRE_SUCCESS;
	case SPYRE_COMMAND_FILL:
		encode_fill(command, cb);
		return SPYRE_SUCCESS;
	case SPYRE_COMMAND_TIMESTAMP:
		cb->type = DRM_SPYRE_CB_TIMESTAMP;
		return SPYRE_SUCCESS;
	case SPYRE_COMMAND_PEER:
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: the kernel module has no copies between cards",
				   card->base.properties.node);
	}
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: command %u has unknown type %u",
			   card->base.properties.node, index, (unsigned int)command->type);
}
