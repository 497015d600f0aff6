/* SPDX-License-Identifier: MIT */
#include "fence.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/sync_file.h>
#include <xf86drm.h>

#define GATE_VA (512 * MIB)

struct abi_gate abi_gate_make(void)
{
	struct abi_prog prog = abi_prog_long();
	struct abi_gate gate = { .fd = abi_open() };

	gate.queue = abi_queue(gate.fd, 60000);
	gate.mem = abi_buf(gate.fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, GATE_VA);
	gate.program = abi_prog_create(gate.fd, &prog);
	gate.syncobj = abi_syncobj(gate.fd);
	return gate;
}

void abi_gate_shut(struct abi_gate *gate)
{
	struct drm_spyre_cb cb;
	uint64_t args[3];
	int i;

	for (i = 0; i < 3; i++)
		args[i] = GATE_VA + i * ABI_LONG_BYTES;
	cb = abi_cb_exec(gate->program, args, 3);
	if (abi_submit_sync(&gate->queue, &cb, 1, abi_sync_signal(gate->syncobj, 0),
			    (struct drm_spyre_sync){ 0 }))
		tap_bail("the gate's job");
}

struct abi_gate abi_gate(void)
{
	struct abi_gate gate = abi_gate_make();

	abi_gate_shut(&gate);
	return gate;
}

uint32_t abi_gate_syncobj(const struct abi_gate *gate, int fd)
{
	int file = abi_sync_file(gate->fd, gate->syncobj);
	uint32_t handle = abi_syncobj(fd);

	if (drmSyncobjImportSyncFile(fd, handle, file))
		tap_bail("SYNCOBJ_FD_TO_HANDLE: %s", strerror(errno));
	close(file);
	return handle;
}

void abi_gate_open(struct abi_gate *gate)
{
	if (gate->queue.id)
		abi_queue_destroy(gate->fd, gate->queue.id);
	gate->queue.id = 0;
}

void abi_gate_free(struct abi_gate *gate)
{
	abi_gate_open(gate);
	abi_buf_free(gate->fd, &gate->mem);
	/* A map would keep the file open, and with it what its addresses name. */
	munmap(gate->queue.results.map, gate->queue.results.size);
	close(gate->fd);
}

struct drm_spyre_sync abi_sync_wait(uint32_t handle, uint64_t point)
{
	return (struct drm_spyre_sync){ .handle = handle, .point = point };
}

struct drm_spyre_sync abi_sync_signal(uint32_t handle, uint64_t point)
{
	return (struct drm_spyre_sync){
		.handle = handle, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = point
	};
}

int abi_sync_file(int fd, uint32_t handle)
{
	int file = -1;

	if (drmSyncobjExportSyncFile(fd, handle, &file))
		tap_bail("SYNCOBJ_HANDLE_TO_FD: %s", strerror(errno));
	return file;
}

int abi_sync_file_status(int file)
{
	struct sync_file_info info = { 0 };

	return ioctl(file, SYNC_IOC_FILE_INFO, &info) ? -errno : info.status;
}

bool abi_sync_file_poll(int file, unsigned int ms)
{
	struct pollfd fds = { .fd = file, .events = POLLIN };

	return poll(&fds, 1, (int)ms) == 1 && (fds.revents & POLLIN);
}
