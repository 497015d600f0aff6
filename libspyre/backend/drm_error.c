// SPDX-License-Identifier: MIT
/* From errno to a status and a text that says what to do. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/error.h"

static const struct {
	int error;
	spyre_status status;
	const char *remedy;
} meanings[] = {
	{ ENODEV, SPYRE_ERROR_DEVICE_LOST,
	  "the card was unplugged: destroy the context and create a new one" },
	{ ENXIO, SPYRE_ERROR_DEVICE_LOST,
	  "the card was unplugged: destroy the context and create a new one" },
	{ EIO, SPYRE_ERROR_DEVICE_LOST,
	  "the card stopped answering: reset it (spyre-smi reset), or reload spyre_vdev" },
	{ ECANCELED, SPYRE_ERROR_CANCELLED,
	  "earlier work of this context failed or timed out: spyre_context_reset() brings its streams back" },
	{ ETIME, SPYRE_ERROR_TIMEOUT, "the work ran past its time limit and was stopped" },
	{ ETIMEDOUT, SPYRE_ERROR_TIMEOUT, "the work ran past its time limit and was stopped" },
	{ ENOSPC, SPYRE_ERROR_OUT_OF_DEVICE_MEMORY,
	  "free device memory, or load spyre_vdev with a larger lpddr_mib=" },
	{ ENOMEM, SPYRE_ERROR_OUT_OF_HOST_MEMORY,
	  "the host or the memory cgroup of this process is full: free host memory or raise the limit" },
	{ EACCES, SPYRE_ERROR_NO_PERMISSION, "check the rights of the node and of this process" },
	{ EPERM, SPYRE_ERROR_NO_PERMISSION, "check the rights of the node and of this process" },
	{ E2BIG, SPYRE_ERROR_ABI_MISMATCH,
	  "spyre_vdev is older than libspyre: load the module of this version" },
	{ ENOTTY, SPYRE_ERROR_ABI_MISMATCH,
	  "spyre_vdev is older than libspyre: load the module of this version" },
	{ EOPNOTSUPP, SPYRE_ERROR_ABI_MISMATCH,
	  "spyre_vdev is older than libspyre: load the module of this version" },
	{ EMFILE, SPYRE_ERROR_SYSTEM, "close files or raise the limit (ulimit -n)" },
	{ ENFILE, SPYRE_ERROR_SYSTEM, "the system has too many open files (sysctl fs.file-max)" },
	{ EXDEV, SPYRE_ERROR_INVALID_ARGUMENT,
	  "the memory belongs to another card: import it into a context of that card, and copy it with spyre_memcpy_peer_async()" },
	{ EFAULT, SPYRE_ERROR_INVALID_ARGUMENT,
	  "host memory that was given is not mapped, or may not be read or written" },
	{ EINVAL, SPYRE_ERROR_INVALID_ARGUMENT,
	  "the kernel refused an argument: library and module may not fit together" },
	{ ENOENT, SPYRE_ERROR_INVALID_ARGUMENT,
	  "a handle is not, or no longer, known to the kernel" },
};

spyre_status spyre_drm_error(struct spyre_drm_card *card, int error, const char *format, ...)
{
	spyre_status status = SPYRE_ERROR_SYSTEM;
	const char *remedy = "see the kernel log (dmesg)";
	char what[256];
	va_list args;
	size_t i;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].error == error) {
			status = meanings[i].status;
			remedy = meanings[i].remedy;
			break;
		}
	}
	/* The kernel returns EIO for a file opened before a reset. */
	if (error == EIO && spyre_drm_is_stale(card)) {
		status = SPYRE_ERROR_DEVICE_RESET;
		remedy = "the card was reset: destroy the context and create another";
	}
	return spyre_error(status, "%s: %s: %s (errno %d); %s", card->base.properties.node, what,
			   strerror(error), error, remedy);
}
