// SPDX-License-Identifier: MIT
/* Programs: the kernel copies and verifies the image. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"

static void fill_why(const struct drm_spyre_program_create *args, struct spyre_verify_error *why)
{
	*why = (struct spyre_verify_error){
		.stop = (enum spyre_stop)args->stop,
		.step = args->stop_step,
		.core = args->stop_core,
		.instr = args->stop_instr,
		.view = args->stop_view,
		.value = args->stop_value,
		.limit = args->stop_limit,
	};
}

static spyre_status create_error(struct spyre_drm_card *card, int error,
				 const struct drm_spyre_program_create *args)
{
	if (error == EINVAL && args->stop)
		return spyre_error(SPYRE_ERROR_VERIFY,
				   "%s: the kernel's verifier refused a program of %llu bytes: %s at step %u, core %u, instruction %u, view %u: %llu, limit %llu",
				   card->base.properties.node, (unsigned long long)args->size,
				   spyre_stop_name((enum spyre_stop)args->stop), args->stop_step,
				   args->stop_core, args->stop_instr, args->stop_view,
				   (unsigned long long)args->stop_value,
				   (unsigned long long)args->stop_limit);
	return spyre_drm_error(card, error,
			       "DRM_IOCTL_SPYRE_PROGRAM_CREATE of an image of %llu bytes",
			       (unsigned long long)args->size);
}

/*
 * The kernel reports cycles only. Traffic and multiply-adds come from the same
 * verifier in this process: it is the same source, so the figures are the same.
 */
static void fill_cost(struct spyre_drm_card *card, const void *image, size_t bytes,
		      uint64_t cycles, struct spyre_counters *cost)
{
	struct spyre_verify_error why;
	struct spyre_program program;

	*cost = (struct spyre_counters){ .cycles = cycles };
	if (!spyre_program_verify(image, bytes, card->base.properties.num_cores, &program, &why) &&
	    program.cost.cycles == cycles)
		*cost = program.cost;
}

spyre_status spyre_drm_program_create(struct spyre_card *base, void **image, size_t bytes,
				      struct spyre_program_handle **program,
				      struct spyre_verify_error *why)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_program_create args = { .data = (uintptr_t)*image, .size = bytes };
	struct spyre_drm_program *made;

	*why = (struct spyre_verify_error){ .stop = SPYRE_STOP_NONE };
	made = calloc(1, sizeof(*made));
	if (!made)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no host memory for the handle of a program");
	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &args)) {
		int error = errno;

		fill_why(&args, why);
		free(made);
		return create_error(card, error, &args);
	}
	made->base.card = base;
	made->handle = args.handle;
	fill_cost(card, *image, bytes, args.cycles, &made->base.cost);
	*program = &made->base;
	return SPYRE_SUCCESS;
}

void spyre_drm_program_destroy(struct spyre_program_handle *program)
{
	struct spyre_drm_program *gone = (struct spyre_drm_program *)program;
	struct drm_spyre_program_destroy args = { .handle = gone->handle };

	/* This fails only after an unplug, when the program no longer exists. */
	(void)drmIoctl(spyre_drm_card(program->card)->fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &args);
	free(gone);
}
