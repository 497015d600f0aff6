// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs: copied and verified once, then run any number of times.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "spyre_charge.h"
#include "spyre_device.h"
#include "spyre_file.h"
#include "spyre_lpddr.h"
#include "spyre_program.h"

#define SPYRE_PROGRAM_MAX_BYTES (64ull << 20)

static void spyre_program_release(struct kref *ref)
{
	struct spyre_program_object *program =
		container_of(ref, struct spyre_program_object, ref);

	spyre_lpddr_uncharge(program->owner, program->charged);
	spyre_file_put(program->owner);
	kvfree(program->image);
	kfree(program);
}

void spyre_program_put(struct spyre_program_object *program)
{
	if (IS_ERR_OR_NULL(program))
		return;
	kref_put(&program->ref, spyre_program_release);
}

DEFINE_FREE(spyre_program_put, struct spyre_program_object *, spyre_program_put(_T))

struct spyre_program_object *spyre_program_lookup(struct spyre_file *sfile, u32 handle)
{
	struct spyre_program_object *program;

	xa_lock(&sfile->programs);
	program = xa_load(&sfile->programs, handle);
	if (program)
		kref_get(&program->ref);
	xa_unlock(&sfile->programs);
	return program;
}

/* Allocates an object without an image, with the card's memory charged for the image. */
static struct spyre_program_object *spyre_program_alloc(struct spyre_file *sfile, u64 size)
{
	struct spyre_program_object *program = kzalloc(sizeof(*program), SPYRE_GFP);
	int ret;

	if (!program)
		return ERR_PTR(-ENOMEM);
	program->charged = PAGE_ALIGN(size);
	ret = spyre_lpddr_charge(sfile, program->charged);
	if (ret) {
		kfree(program);
		return ERR_PTR(ret);
	}
	kref_init(&program->ref);
	program->owner = spyre_file_get(sfile);
	return program;
}

static int spyre_program_load(struct spyre_program_object *program,
			      struct drm_spyre_program_create *args)
{
	struct spyre_device *spyre = program->owner->spyre;
	struct spyre_verify_error why = {};
	int ret;

	program->image = kvmalloc(args->size, SPYRE_GFP);
	if (!program->image)
		return -ENOMEM;
	if (copy_from_user(program->image, u64_to_user_ptr(args->data), args->size))
		return -EFAULT;

	ret = spyre_program_verify(program->image, args->size, spyre->num_cores,
				   &program->base, &why);
	if (ret) {
		args->stop = why.stop;
		args->stop_step = why.step;
		args->stop_core = why.core;
		args->stop_instr = why.instr;
		args->stop_view = why.view;
		args->stop_value = why.value;
		args->stop_limit = why.limit;
		return ret;
	}
	args->cycles = program->base.cost.cycles;
	return 0;
}

int spyre_ioctl_program_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_program_object *program __free(spyre_program_put) = NULL;
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_program_create *args = data;
	const u64 from = args->data, size = args->size;
	const u32 unknown = args->flags | args->pad;
	int ret;

	memset(args, 0, sizeof(*args));
	args->data = from;
	args->size = size;
	if (unknown || !size || size > SPYRE_PROGRAM_MAX_BYTES)
		return -EINVAL;
	if (spyre_file_is_stale(sfile))
		return -EIO;

	program = spyre_program_alloc(sfile, size);
	if (IS_ERR(program))
		return PTR_ERR(program);
	ret = spyre_program_load(program, args);
	if (ret)
		return ret;
	ret = xa_alloc(&sfile->programs, &args->handle, program, XA_LIMIT(1, INT_MAX),
		       SPYRE_GFP);
	if (ret)
		return ret;
	program = NULL;	/* the handle owns it */
	return 0;
}

int spyre_ioctl_program_destroy(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_program_destroy *args = data;
	struct spyre_program_object *program;

	if (args->pad)
		return -EINVAL;
	program = xa_erase(&to_spyre_file(file)->programs, args->handle);
	if (!program)
		return -ENOENT;
	spyre_program_put(program);
	return 0;
}
