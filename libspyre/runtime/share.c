// SPDX-License-Identifier: MIT
/* Device memory across processes: dma-bufs, and IPC handles that name a dma-buf. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libspyre/runtime/block.h"
#include "libspyre/runtime/context.h"

/* "spyreIPC", followed by the contents of a handle. */
#define HANDLE_MAGIC 0x4350496572797073ull

struct handle {
	uint64_t magic;
	int32_t pid;
	int32_t fd;		/* in the exporting process */
	uint64_t device;	/* identifies the dma-buf behind @fd */
	uint64_t inode;
	uint64_t offset;
	uint64_t bytes;
	uint64_t reserved[2];
};

static_assert(sizeof(struct handle) == sizeof(spyre_ipc_handle), "handle");

static spyre_status check_sharing(const struct spyre_context *context, const char *function)
{
	if (context->ops->mem_export && context->ops->mem_import)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_UNSUPPORTED,
			   "%s: card %d is embedded, its memory belongs to this process alone; use a "
			   "card of the kernel (spyre_vdev)", function, context->index);
}

/* Finds the block of a live allocation; caller holds the lock. */
static struct spyre_block *find_block(struct spyre_context *context, spyre_devptr address,
				      uint64_t *offset, uint64_t *bytes)
{
	struct spyre_memory *memory = &context->memory;
	struct spyre_block *block;
	uint64_t base, size;

	if (!spyre_block_lookup(memory, address, &base, &size))
		return NULL;
	block = memory->blocks[spyre_block_index(memory, address)];
	*offset = address - block->va;
	*bytes = base + size - address;
	return block;
}

static spyre_status export_locked(struct spyre_context *context, spyre_devptr address,
				  struct spyre_block **block, int *fd, uint64_t *offset,
				  uint64_t *bytes)
{
	*block = find_block(context, address, offset, bytes);
	if (!*block)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				   "0x%" PRIx64 " is not in a live allocation of this context",
				   address);
	/* Offsets in an import count from its window, not from the start of the dma-buf. */
	if ((*block)->imported)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "0x%" PRIx64 " is imported memory; pass on the dma-buf or handle "
				   "that it came from", address);
	return context->ops->mem_export(context->card, (*block)->va, fd);
}

spyre_status spyre_mem_export_dmabuf(spyre_context *context, spyre_devptr address, int *fd,
				     uint64_t *offset, uint64_t *bytes)
{
	spyre_status status = spyre_context_check(context);
	struct spyre_block *block;
	uint64_t left = 0;

	if (status)
		return status;
	if (!fd || !offset)
		return spyre_null_argument("spyre_mem_export_dmabuf", fd ? "offset" : "fd");
	*fd = -1;
	status = check_sharing(context, "spyre_mem_export_dmabuf");
	if (status)
		return status;
	pthread_rwlock_wrlock(&context->memory.lock);
	status = export_locked(context, address, &block, fd, offset, &left);
	pthread_rwlock_unlock(&context->memory.lock);
	if (bytes)
		*bytes = left;
	if (status)
		return spyre_error_prefix(status, "spyre_mem_export_dmabuf");
	return SPYRE_SUCCESS;
}

/* Checks [offset, offset + bytes) and widens it to whole pages. */
static spyre_status check_window(int fd, uint64_t offset, uint64_t *bytes)
{
	off_t end = lseek(fd, 0, SEEK_END);
	uint64_t size = end < 0 ? 0 : (uint64_t)end;

	if (end < 0)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "file descriptor %d is not a dma-buf: %s", fd, strerror(errno));
	if (offset % SPYRE_STICK || *bytes % SPYRE_STICK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot import %" PRIu64 " bytes at offset %" PRIu64
				   ": both must be multiples of %d", *bytes, offset, SPYRE_STICK);
	if (offset >= size || *bytes > size - offset)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%" PRIu64 " bytes at %" PRIu64 " are not in a dma-buf of %" PRIu64
				   " bytes", *bytes, offset, size);
	if (!*bytes)
		*bytes = size - offset;
	return SPYRE_SUCCESS;
}

static spyre_status import(struct spyre_context *context, int fd, uint64_t offset, uint64_t bytes,
			   spyre_devptr *address)
{
	struct spyre_import window = { .fd = fd };
	struct spyre_block *block;
	spyre_status status;
	uint64_t inside;

	status = check_window(fd, offset, &bytes);
	if (status)
		return status;
	inside = offset % SPYRE_VA_PAGE;
	window.offset = offset - inside;
	pthread_rwlock_wrlock(&context->memory.lock);
	status = spyre_block_import(context, (inside + bytes + SPYRE_VA_PAGE - 1) &
				    ~(SPYRE_VA_PAGE - 1), &window, &block);
	if (!status) {
		block->offset = inside;
		block->size = bytes;
		context->memory.allocations++;
		*address = block->va + inside;
	}
	pthread_rwlock_unlock(&context->memory.lock);
	return status;
}

spyre_status spyre_mem_import_dmabuf(spyre_context *context, int fd, uint64_t offset,
				     uint64_t bytes, spyre_devptr *address)
{
	spyre_status status = spyre_context_check(context);

	if (status)
		return status;
	if (!address)
		return spyre_null_argument("spyre_mem_import_dmabuf", "address");
	*address = 0;
	status = check_sharing(context, "spyre_mem_import_dmabuf");
	if (status)
		return status;
	status = import(context, fd, offset, bytes, address);
	if (status)
		return spyre_error_prefix(status, "spyre_mem_import_dmabuf");
	return SPYRE_SUCCESS;
}

spyre_status spyre_ipc_get_handle(spyre_context *context, spyre_devptr address,
				  spyre_ipc_handle *out)
{
	struct handle handle = { .magic = HANDLE_MAGIC, .pid = getpid() };
	spyre_status status = spyre_context_check(context);
	struct spyre_block *block;
	struct stat st = { 0 };
	int fd = -1;

	if (status)
		return status;
	if (!out)
		return spyre_null_argument("spyre_ipc_get_handle", "handle");
	status = check_sharing(context, "spyre_ipc_get_handle");
	if (status)
		return status;
	pthread_rwlock_wrlock(&context->memory.lock);
	status = export_locked(context, address, &block, &fd, &handle.offset, &handle.bytes);
	/* All handles of a block name one descriptor, which is closed with the block. */
	if (!status && block->ipc_fd >= 0)
		close(fd);
	else if (!status)
		block->ipc_fd = fd;
	if (!status) {
		handle.fd = block->ipc_fd;
		if (fstat(handle.fd, &st))
			status = spyre_error(SPYRE_ERROR_SYSTEM, "cannot identify the dma-buf of the memory: %s",
					     strerror(errno));
	}
	pthread_rwlock_unlock(&context->memory.lock);
	if (status)
		return spyre_error_prefix(status, "spyre_ipc_get_handle");
	handle.device = st.st_dev;
	handle.inode = st.st_ino;
	memcpy(out, &handle, sizeof(handle));
	return SPYRE_SUCCESS;
}

static spyre_status fetch_error(const struct handle *handle, const char *call, int error)
{
	if (error == EPERM || error == EACCES)
		return spyre_error(SPYRE_ERROR_NO_PERMISSION,
				   "%s of process %d: %s; both processes must be of one user, and sysctl "
				   "kernel.yama.ptrace_scope 0, or the other one calls "
				   "prctl(PR_SET_PTRACER); or pass a dma-buf over a socket "
				   "(spyre_mem_export_dmabuf)", call, handle->pid, strerror(error));
	if (error == ESRCH || error == EBADF)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "the memory of the handle is gone: process %d has ended or freed it",
				   handle->pid);
	return spyre_error(SPYRE_ERROR_SYSTEM, "%s of process %d: %s (errno %d)", call,
			   handle->pid, strerror(error), error);
}

/* Opens the handle's dma-buf in this process. */
static spyre_status fetch(const struct handle *handle, int *fd)
{
	struct stat st;
	int pidfd;

	pidfd = syscall(SYS_pidfd_open, handle->pid, 0);
	if (pidfd < 0)
		return fetch_error(handle, "pidfd_open", errno);
	*fd = syscall(SYS_pidfd_getfd, pidfd, handle->fd, 0);
	if (*fd < 0) {
		int error = errno;

		close(pidfd);
		return fetch_error(handle, "pidfd_getfd", error);
	}
	close(pidfd);
	/* Process ids and descriptors are reused, so the inode identifies the dma-buf. */
	if (!fstat(*fd, &st) && st.st_dev == handle->device && st.st_ino == handle->inode)
		return SPYRE_SUCCESS;
	close(*fd);
	return fetch_error(handle, "fstat", EBADF);
}

spyre_status spyre_ipc_open_handle(spyre_context *context, const spyre_ipc_handle *in,
				   spyre_devptr *address)
{
	spyre_status status = spyre_context_check(context);
	struct handle handle;
	int fd = -1;

	if (status)
		return status;
	if (!in || !address)
		return spyre_null_argument("spyre_ipc_open_handle", in ? "address" : "handle");
	*address = 0;
	status = check_sharing(context, "spyre_ipc_open_handle");
	if (status)
		return status;
	memcpy(&handle, in, sizeof(handle));
	if (handle.magic != HANDLE_MAGIC || handle.reserved[0] || handle.reserved[1] ||
	    handle.pid <= 0 || handle.fd < 0 || !handle.bytes)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_ipc_open_handle: these bytes are not a handle of "
				   "spyre_ipc_get_handle()");
	status = fetch(&handle, &fd);
	if (!status) {
		status = import(context, fd, handle.offset, handle.bytes, address);
		close(fd);
	}
	if (status)
		return spyre_error_prefix(status, "spyre_ipc_open_handle");
	return SPYRE_SUCCESS;
}
