// SPDX-License-Identifier: MIT
/* Programs of a kernel for values of its symbols and sizes of its tables, in an LRU cache. */
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/runtime/kernel.h"
#include "libspyre/sdsc/lower/compile.h"
#include "libspyre/sdsc/lower/rows.h"

/* The front-end makes at most this many buckets. */
#define MAX_VARIANTS 32u

static bool is_own(const struct spyre_kernel *kernel, const struct kernel_sizes *sizes)
{
	for (uint32_t i = 0; i < kernel->bundle.num_symbols; i++)
		if (sizes->values[i] != kernel->bundle.symbols[i].max)
			return false;
	return !kernel->has_tables;
}

/* Caller holds the lock. */
static void drop_ref(struct spyre_kernel *kernel, struct kernel_variant *variant)
{
	if (--variant->refs)
		return;
	kernel->context->ops->program_destroy(variant->program);
	free(variant);
}

/* Moves the variant to the front and takes a reference; caller holds the lock. */
static struct kernel_variant *find(struct spyre_kernel *kernel, const struct kernel_sizes *sizes)
{
	struct kernel_variant *v;

	TAILQ_FOREACH(v, &kernel->variants, link) {
		if (memcmp(&v->sizes, sizes, sizeof(*sizes)))
			continue;
		TAILQ_REMOVE(&kernel->variants, v, link);
		TAILQ_INSERT_HEAD(&kernel->variants, v, link);
		v->refs++;
		return v;
	}
	return NULL;
}

spyre_status kernel_copy_image(const struct spyre_bundle *bundle, void **copy)
{
	*copy = spyre_array_alloc(bundle->image_bytes);
	if (!*copy)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "kernel \"%s\": no memory for a program of %zu bytes",
				   bundle->name, bundle->image_bytes);
	memcpy(*copy, bundle->image, bundle->image_bytes);
	return SPYRE_SUCCESS;
}

/* Labels are for traces only, which do without them if there is no memory. */
static void copy_labels(const struct spyre_bundle *from, struct spyre_bundle *to)
{
	const size_t bytes = from->num_labels * sizeof(*from->labels);

	to->labels = bytes ? malloc(bytes) : NULL;
	if (to->labels)
		memcpy(to->labels, from->labels, bytes);
	else
		to->num_labels = 0;
}

/* Makes the program for other values of the symbols, or a copy of the kernel's own. */
static spyre_status make_image(struct spyre_kernel *kernel, const int64_t *values,
			       struct spyre_bundle *bundle)
{
	if (kernel->source)
		return spyre_bundle_lower(kernel->source, values,
					  kernel->context->card->properties.num_cores, bundle);
	*bundle = kernel->bundle;
	copy_labels(&kernel->bundle, bundle);
	if (!kernel_copy_image(&kernel->bundle, &bundle->image))
		return SPYRE_SUCCESS;
	free(bundle->labels);
	return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
}

static spyre_status build(struct spyre_kernel *kernel, const struct kernel_sizes *sizes,
			  struct kernel_variant **out)
{
	struct kernel_variant *v = calloc(1, sizeof(*v));
	struct spyre_bundle *bundle = malloc(sizeof(*bundle));
	spyre_status status;

	if (!v || !bundle) {
		free(v);
		free(bundle);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "kernel \"%s\": no memory for a program of other sizes",
				   kernel->bundle.name);
	}
	status = make_image(kernel, sizes->values, bundle);
	if (!status) {
		rows_of_launch(bundle->image, bundle, sizes->bytes);
		status = kernel_create_program(kernel, bundle, &v->program);
		v->sizes = *sizes;
		v->num_operands = bundle->num_operands;
		memcpy(v->operands, bundle->operands, sizeof(v->operands));
		spyre_bundle_fini(bundle);
	}
	free(bundle);
	if (!status)
		*out = v;
	else
		free(v);
	return status;
}

spyre_status kernel_variant_get(struct spyre_kernel *kernel, const struct kernel_sizes *sizes,
				struct kernel_variant **out)
{
	struct kernel_variant *made, *last;

	*out = NULL;
	if (is_own(kernel, sizes))
		return SPYRE_SUCCESS;
	pthread_mutex_lock(&kernel->variants_lock);
	*out = find(kernel, sizes);
	pthread_mutex_unlock(&kernel->variants_lock);
	if (*out)
		return SPYRE_SUCCESS;
	/* Compiling without the lock lets launches with other sizes proceed. */
	TRY(build(kernel, sizes, &made));
	pthread_mutex_lock(&kernel->variants_lock);
	*out = find(kernel, sizes);
	if (*out) {	/* another thread has compiled the same one */
		made->refs = 1;
		drop_ref(kernel, made);
	} else {
		made->refs = 2;
		TAILQ_INSERT_HEAD(&kernel->variants, made, link);
		*out = made;
		if (++kernel->num_variants > MAX_VARIANTS) {
			last = TAILQ_LAST(&kernel->variants, kernel_variant_list);
			TAILQ_REMOVE(&kernel->variants, last, link);
			kernel->num_variants--;
			drop_ref(kernel, last);
		}
	}
	pthread_mutex_unlock(&kernel->variants_lock);
	return SPYRE_SUCCESS;
}

void kernel_variant_ref(struct spyre_kernel *kernel, struct kernel_variant *variant)
{
	if (!variant)
		return;
	pthread_mutex_lock(&kernel->variants_lock);
	variant->refs++;
	pthread_mutex_unlock(&kernel->variants_lock);
}

void kernel_variant_put(struct spyre_kernel *kernel, struct kernel_variant *variant)
{
	if (!variant)
		return;
	pthread_mutex_lock(&kernel->variants_lock);
	drop_ref(kernel, variant);
	pthread_mutex_unlock(&kernel->variants_lock);
}

void kernel_variants_drop(struct spyre_kernel *kernel)
{
	struct kernel_variant *v;

	while ((v = TAILQ_FIRST(&kernel->variants))) {
		TAILQ_REMOVE(&kernel->variants, v, link);
		drop_ref(kernel, v);
	}
}
