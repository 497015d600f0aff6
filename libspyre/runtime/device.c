// SPDX-License-Identifier: MIT
/* Enumeration: the backend, the number of cards and their properties. Opens nothing. */
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/runtime/context.h"
#include "libspyre/runtime/visible.h"

enum choice {
	CHOICE_AUTO,
	CHOICE_DRM,
	CHOICE_EMBEDDED,
};

static spyre_status choice_read(enum choice *choice, const char **why)
{
	const char *backend = getenv("SPYRE_BACKEND");
	const char *flex = getenv("FLEX_DEVICE");

	*choice = CHOICE_AUTO;
	*why = "";
	if (flex && *flex) {
		*why = "FLEX_DEVICE";
		if (!strcmp(flex, "MOCK"))
			*choice = CHOICE_EMBEDDED;
		else if (!strcmp(flex, "PF") || !strcmp(flex, "VF"))
			*choice = CHOICE_DRM;
		else
			return spyre_error(SPYRE_ERROR_CONFIGURATION,
					   "FLEX_DEVICE=\"%s\": expected PF, VF (the kernel's cards) or "
					   "MOCK (the embedded card)", flex);
	}
	/* SPYRE_BACKEND takes precedence over the variables of other runtimes. */
	if (backend && *backend) {
		*why = "SPYRE_BACKEND";
		if (!strcmp(backend, "embedded"))
			*choice = CHOICE_EMBEDDED;
		else if (!strcmp(backend, "drm"))
			*choice = CHOICE_DRM;
		else
			return spyre_error(SPYRE_ERROR_CONFIGURATION,
					   "SPYRE_BACKEND=\"%s\": expected drm or embedded", backend);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_backend_choose(const struct spyre_backend_ops **ops, int *total)
{
	enum choice choice;
	const char *why;
	spyre_status status;

	status = choice_read(&choice, &why);
	if (status)
		return status;
	if (choice != CHOICE_EMBEDDED) {
		*ops = &spyre_backend_drm;
		*total = 0;
		status = spyre_backend_drm.count(total);
		if (choice == CHOICE_DRM) {
			if (!status && *total <= 0)
				status = spyre_error(SPYRE_ERROR_NO_DRIVER,
						     "%s asks for the kernel's card, but there is no "
						     "/dev/accel node of spyre_vdev; run modprobe "
						     "spyre_vdev, or set SPYRE_BACKEND=embedded", why);
			return status;
		}
		if (!status && *total > 0)
			return SPYRE_SUCCESS;
	}
	*ops = &spyre_backend_embedded;
	return spyre_backend_embedded.count(total);
}

static enum spyre_functions functions_wanted(void)
{
	const char *flex = getenv("FLEX_DEVICE");

	if (flex && !strcmp(flex, "PF"))
		return SPYRE_FUNCTIONS_PF;
	return flex && !strcmp(flex, "VF") ? SPYRE_FUNCTIONS_VF : SPYRE_FUNCTIONS_ALL;
}

/* Sets usable[i] for the visible cards of @total; fails if none is of the requested kind. */
static spyre_status usable_read(const struct spyre_backend_ops *ops, int total, bool *usable)
{
	const enum spyre_functions functions = functions_wanted();
	spyre_status status;
	int i;

	for (i = 0; i < SPYRE_MAX_CARDS; i++)
		usable[i] = true;
	if (total > SPYRE_MAX_CARDS)
		total = SPYRE_MAX_CARDS;
	if (!ops->usable)
		return SPYRE_SUCCESS;
	status = ops->usable(functions, total, usable);
	for (i = 0; i < total && !status; i++)
		if (usable[i])
			return SPYRE_SUCCESS;
	if (!status && functions == SPYRE_FUNCTIONS_PF)
		status = spyre_error(SPYRE_ERROR_NO_DRIVER,
				     "FLEX_DEVICE=PF asks for a whole card, and all are split into "
				     "virtual functions: write 0 to num_vfs of one "
				     "(/sys/bus/platform/devices/spyre_vdev.N/), or unset it");
	else if (!status && functions == SPYRE_FUNCTIONS_VF)
		status = spyre_error(SPYRE_ERROR_NO_DRIVER,
				     "FLEX_DEVICE=VF asks for a virtual function, and no card is "
				     "split: write their number to num_vfs of one "
				     "(/sys/bus/platform/devices/spyre_vdev.N/), or unset it");
	return status;
}

static spyre_status visible_read(struct spyre_visible *visible,
				 const struct spyre_backend_ops **ops, int *total)
{
	const char *name = "SPYRE_DEVICES";
	const char *devices = getenv(name);
	bool usable[SPYRE_MAX_CARDS];

	if (!devices || !*devices) {
		const char *older = getenv("SPYRE_VISIBLE_DEVICES");

		if (older && *older) {
			name = "SPYRE_VISIBLE_DEVICES";
			devices = older;
		}
	}
	TRY(spyre_backend_choose(ops, total));
	TRY(usable_read(*ops, *total, usable));
	return spyre_visible_parse(visible, *total, name, devices, getenv("AIU_WORLD_SIZE"),
				   usable, *ops);
}

spyre_status spyre_device_count(int *count)
{
	const struct spyre_backend_ops *ops;
	struct spyre_visible visible;
	spyre_status status;
	int total;

	if (!count)
		return spyre_null_argument("spyre_device_count", "count");
	*count = 0;
	status = visible_read(&visible, &ops, &total);
	if (!status)
		*count = visible.count;
	return status;
}

spyre_status spyre_device_resolve(int index, const struct spyre_backend_ops **ops, int *physical)
{
	struct spyre_visible visible;
	int total;

	TRY(visible_read(&visible, ops, &total));
	if (index < 0 || index >= visible.count)
		return spyre_error(SPYRE_ERROR_NO_DEVICE,
				   "card %d: %d of %d cards are visible, numbered from 0; see "
				   "SPYRE_DEVICES and AIU_WORLD_SIZE", index, visible.count, total);
	*physical = visible.physical[index];
	return SPYRE_SUCCESS;
}

spyre_status spyre_device_get_properties(int index, spyre_device_properties *out)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };
	const struct spyre_backend_ops *ops;
	int physical;

	TRY(spyre_struct_check("spyre_device_get_properties", "device_properties", out));
	TRY(spyre_device_resolve(index, &ops, &physical));
	TRY(ops->properties(physical, &properties));
	properties.index = index;
	properties.physical_index = physical;
	spyre_struct_write(out, out->struct_size, &properties, sizeof(properties));
	return SPYRE_SUCCESS;
}
