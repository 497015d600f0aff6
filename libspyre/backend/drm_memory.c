// SPDX-License-Identifier: MIT
/* Device ranges (a BO mapped at an address of the context) and pinned host memory. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"

void spyre_drm_gem_close(struct spyre_drm_card *card, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	if (drmIoctl(card->fd, DRM_IOCTL_GEM_CLOSE, &args))
		spyre_log(SPYRE_LOG_DEBUG, "%s: GEM_CLOSE of handle %u: %s",
			  card->base.properties.node, handle, strerror(errno));
}

/* After ENOSPC a query still gives the free and total bytes for the text. */
static spyre_status create_error(struct spyre_drm_card *card, int error, uint64_t bytes,
				 const char *kind)
{
	uint64_t total, used;

	if (error == ENOSPC &&
	    !card->base.ops->mem_info(&card->base, &total, &used))
		return spyre_drm_error(card, error,
				       "DRM_IOCTL_SPYRE_BO_CREATE of %" PRIu64 " bytes of %s memory (%"
				       PRIu64 " of %" PRIu64 " bytes are free)", bytes, kind,
				       total - used, total);
	return spyre_drm_error(card, error,
			       "DRM_IOCTL_SPYRE_BO_CREATE of %" PRIu64 " bytes of %s memory", bytes,
			       kind);
}

static spyre_status vm_bind(struct spyre_drm_card *card, struct drm_spyre_vm_bind_op *op)
{
	struct drm_spyre_vm_bind args = {
		.ops = { .stride = sizeof(*op), .count = 1, .array = (uintptr_t)op },
	};

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_VM_BIND, &args))
		return spyre_drm_error(card, errno, "DRM_IOCTL_SPYRE_VM_BIND: %s [0x%" PRIx64
				       ", +0x%" PRIx64 ")",
				       op->op == DRM_SPYRE_VM_MAP ? "map" : "unmap",
				       (uint64_t)op->va, (uint64_t)op->range);
	return SPYRE_SUCCESS;
}

static bool device_insert(struct spyre_drm_card *card, struct spyre_drm_range range)
{
	bool reserved;

	pthread_mutex_lock(&card->device_lock);
	reserved = spyre_drm_ranges_reserve(&card->device);
	if (reserved)
		spyre_drm_ranges_insert(&card->device, range);
	pthread_mutex_unlock(&card->device_lock);
	return reserved;
}

/* Removes a range from the table and closes its handle; the mapping keeps the buffer alive. */
static bool device_remove(struct spyre_drm_card *card, uint64_t va)
{
	const struct spyre_drm_range *there;
	struct spyre_drm_range range = { 0 };
	bool found, shared;

	pthread_mutex_lock(&card->device_lock);
	there = spyre_drm_ranges_find(&card->device, va);
	if (there)
		range = *there;
	pthread_mutex_unlock(&card->device_lock);
	/* Other contexts must not keep the memory that this one frees. */
	if (there)
		spyre_drm_foreign_drop(card, range.handle);

	pthread_mutex_lock(&card->device_lock);
	found = spyre_drm_ranges_remove(&card->device, va, &range);
	shared = found && spyre_drm_foreign_has_buffer(card, range.handle);
	for (size_t i = 0; found && card->imports && i < card->device.count; i++)
		shared |= card->device.range[i].handle == range.handle;
	if (found && !shared)
		spyre_drm_gem_close(card, range.handle);
	pthread_mutex_unlock(&card->device_lock);
	return found;
}

spyre_status spyre_drm_mem_map(struct spyre_card *base, uint64_t va, uint64_t bytes)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_bo_create create = { .size = bytes, .flags = DRM_SPYRE_BO_DEVICE };
	struct drm_spyre_vm_bind_op op = { .op = DRM_SPYRE_VM_MAP, .va = va, .range = bytes };
	struct spyre_drm_range range = { .start = va, .bytes = bytes };
	spyre_status status;

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_BO_CREATE, &create))
		return create_error(card, errno, bytes, "device");
	range.handle = create.handle;
	op.handle = create.handle;
	if (!device_insert(card, range)) {
		spyre_drm_gem_close(card, create.handle);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no host memory to note %" PRIu64 " bytes of device memory", bytes);
	}
	status = vm_bind(card, &op);
	if (status)
		device_remove(card, va);
	return status;
}

spyre_status spyre_drm_mem_export(struct spyre_card *base, uint64_t va, int *fd)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	const struct spyre_drm_range *range;
	int error = EINVAL;

	pthread_mutex_lock(&card->device_lock);
	range = spyre_drm_ranges_find(&card->device, va);
	if (range)
		error = drmPrimeHandleToFD(card->fd, range->handle, DRM_CLOEXEC | DRM_RDWR, fd) ?
			errno : 0;
	pthread_mutex_unlock(&card->device_lock);
	if (!error)
		return SPYRE_SUCCESS;
	return spyre_drm_error(card, error, "DRM_IOCTL_PRIME_HANDLE_TO_FD of the memory at 0x%"
			       PRIx64, va);
}

static spyre_status import_error(struct spyre_drm_card *card, int error, int fd)
{
	if (error == EINVAL || error == EBADF || error == ENOTTY)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: file descriptor %d is not a dma-buf that this card can use: %s (errno %d)",
				   card->base.properties.node, fd, strerror(error), error);
	return spyre_drm_error(card, error, "DRM_IOCTL_PRIME_FD_TO_HANDLE of file descriptor %d",
			       fd);
}

/* Imports a dma-buf and inserts @range with its handle into the table. */
static int import_range(struct spyre_drm_card *card, int fd, struct spyre_drm_range *range)
{
	int error = 0;

	pthread_mutex_lock(&card->device_lock);
	if (!spyre_drm_ranges_reserve(&card->device))
		error = ENOMEM;
	else if (drmPrimeFDToHandle(card->fd, fd, &range->handle))
		error = errno;
	if (!error) {
		card->imports = true;
		spyre_drm_ranges_insert(&card->device, *range);
	}
	pthread_mutex_unlock(&card->device_lock);
	return error;
}

spyre_status spyre_drm_mem_import(struct spyre_card *base, uint64_t va, uint64_t bytes, int fd,
				  uint64_t offset)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_vm_bind_op op = {
		.op = DRM_SPYRE_VM_MAP, .va = va, .range = bytes, .bo_offset = offset,
	};
	struct spyre_drm_range range = { .start = va, .bytes = bytes, .offset = offset };
	spyre_status status;
	int error;

	error = import_range(card, fd, &range);
	if (error)
		return import_error(card, error, fd);
	op.handle = range.handle;
	status = vm_bind(card, &op);
	if (status)
		device_remove(card, va);
	return status;
}

void spyre_drm_mem_unmap(struct spyre_card *base, uint64_t va, uint64_t bytes)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct drm_spyre_vm_bind_op op = { .op = DRM_SPYRE_VM_UNMAP, .va = va, .range = bytes };

	if (!device_remove(card, va)) {
		spyre_log(SPYRE_LOG_WARN, "%s: nothing is mapped at 0x%" PRIx64,
			  base->properties.node, va);
		return;
	}
	/* A failure (the card was unplugged) leaves nothing to undo. */
	(void)vm_bind(card, &op);
}

static spyre_status map_host_bo(struct spyre_drm_card *card, uint32_t handle, size_t bytes,
				void **address)
{
	struct drm_spyre_bo_mmap_offset args = { .handle = handle };

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args))
		return spyre_drm_error(card, errno, "DRM_IOCTL_SPYRE_BO_MMAP_OFFSET of handle %u",
				       handle);
	*address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, card->fd,
			(off_t)args.offset);
	if (*address == MAP_FAILED)
		return spyre_drm_error(card, errno, "mmap of %zu bytes of pinned host memory", bytes);
	return SPYRE_SUCCESS;
}

spyre_status spyre_drm_host_bo(struct spyre_drm_card *card, size_t bytes, void **address,
			       uint32_t *handle)
{
	struct drm_spyre_bo_create create = { .size = bytes, .flags = DRM_SPYRE_BO_HOST };
	spyre_status status;

	if (drmIoctl(card->fd, DRM_IOCTL_SPYRE_BO_CREATE, &create))
		return create_error(card, errno, bytes, "pinned host");
	status = map_host_bo(card, create.handle, bytes, address);
	if (status)
		spyre_drm_gem_close(card, create.handle);
	else
		*handle = create.handle;
	return status;
}

static bool host_insert(struct spyre_drm_card *card, struct spyre_drm_range range)
{
	bool reserved;

	pthread_rwlock_wrlock(&card->host_lock);
	reserved = spyre_drm_ranges_reserve(&card->host);
	if (reserved) {
		spyre_drm_ranges_insert(&card->host, range);
		atomic_store(&card->host_count, card->host.count);
	}
	pthread_rwlock_unlock(&card->host_lock);
	return reserved;
}

spyre_status spyre_drm_host_alloc(struct spyre_card *base, size_t bytes, void **address)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct spyre_drm_range range;
	void *start;

	if (bytes > SIZE_MAX - page)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "%zu bytes of pinned host memory are more than can exist", bytes);
	bytes = (bytes + page - 1) / page * page;
	TRY(spyre_drm_host_bo(card, bytes, &start, &range.handle));
	range.start = (uintptr_t)start;
	range.bytes = bytes;
	if (!host_insert(card, range)) {
		munmap(start, bytes);
		spyre_drm_gem_close(card, range.handle);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no host memory to note %zu bytes of pinned memory", bytes);
	}
	*address = start;
	return SPYRE_SUCCESS;
}

void spyre_drm_host_free(struct spyre_card *base, void *address, size_t bytes)
{
	struct spyre_drm_card *card = spyre_drm_card(base);
	struct spyre_drm_range range;
	bool found;

	pthread_rwlock_wrlock(&card->host_lock);
	found = spyre_drm_ranges_remove(&card->host, (uintptr_t)address, &range);
	atomic_store(&card->host_count, card->host.count);
	pthread_rwlock_unlock(&card->host_lock);
	if (!found) {
		spyre_log(SPYRE_LOG_WARN, "%s: no pinned host memory starts at %p",
			  base->properties.node, address);
		return;
	}
	munmap(address, range.bytes);
	spyre_drm_gem_close(card, range.handle);
}

bool spyre_drm_host_lookup(struct spyre_drm_card *card, const void *address, uint64_t bytes,
			   uint32_t *handle, uint64_t *offset)
{
	const struct spyre_drm_range *range;
	bool inside = false;

	/* Most programs pin nothing: one load spares them the lock. */
	if (!atomic_load_explicit(&card->host_count, memory_order_acquire))
		return false;
	pthread_rwlock_rdlock(&card->host_lock);
	range = spyre_drm_ranges_find(&card->host, (uintptr_t)address);
	if (range) {
		*offset = (uintptr_t)address - range->start;
		inside = bytes <= range->bytes - *offset;
		*handle = range->handle;
	}
	pthread_rwlock_unlock(&card->host_lock);
	return inside;
}
