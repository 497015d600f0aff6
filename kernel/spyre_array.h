/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arrays in user memory with a stride: an element that user space
 * knows longer must be zero past what this kernel knows (-E2BIG).
 */
#ifndef SPYRE_ARRAY_H
#define SPYRE_ARRAY_H

#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/spyre_accel.h>

#include "spyre_charge.h"

/* In bytes, whatever the size of the host's pages. */
#define SPYRE_ARRAY_MAX_STRIDE 4096u

/*
 * Copies min..max elements of @size bytes; kvfree() the result.  No element
 * type has grown yet: when one does, its first size becomes the least stride.
 */
static inline void *spyre_array_get(const struct drm_spyre_array *array, size_t size,
				    u32 min, u32 max)
{
	const u8 __user *from = u64_to_user_ptr(array->array);
	u8 *copy;
	int ret = 0;
	u32 i;

	if (array->count < min || array->count > max)
		return ERR_PTR(-EINVAL);
	if (!array->count)
		return NULL;
	if (array->stride < size || array->stride > SPYRE_ARRAY_MAX_STRIDE)
		return ERR_PTR(-EINVAL);
	copy = kvmalloc_array(array->count, size, SPYRE_GFP);
	if (!copy)
		return ERR_PTR(-ENOMEM);

	if (array->stride == size) {
		if (copy_from_user(copy, from, array->count * size))
			ret = -EFAULT;
	} else {
		for (i = 0; i < array->count && !ret; i++)
			ret = copy_struct_from_user(copy + i * size, size,
						    from + (size_t)i * array->stride,
						    array->stride);
	}
	if (ret) {
		kvfree(copy);
		return ERR_PTR(ret);
	}
	return copy;
}

#endif
