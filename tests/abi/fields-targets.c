/* SPDX-License-Identifier: MIT */
/* abi-fields: the tables. A field of the header that is in no table fails the test. */
#include "fields.h"

#include <stdlib.h>
#include <string.h>

#include "prog.h"

#define BO_DEVICE DRM_SPYRE_BO_DEVICE
#define BO_HOST DRM_SPYRE_BO_HOST

static const struct field dev_query_fields[] = {
	FIELD(drm_spyre_dev_query, type, FIELD_ENUM, .arg = DRM_SPYRE_DEV_QUERY_CONTEXT),
	FIELD(drm_spyre_dev_query, size, FIELD_OTHER),
	FIELD(drm_spyre_dev_query, pointer, FIELD_WRITE,
	      .arg = sizeof(struct drm_spyre_memory_info), .how = FIELD_OR_NONE),
};

static void good_dev_query(struct fields_context *c, void *argument)
{
	struct drm_spyre_dev_query *args = argument;

	args->type = DRM_SPYRE_DEV_QUERY_MEMORY;
	args->size = sizeof(struct drm_spyre_memory_info);
	args->pointer = PTR(c->out);
}

static const struct field bo_create_fields[] = {
	FIELD(drm_spyre_bo_create, size, FIELD_OTHER),
	FIELD(drm_spyre_bo_create, flags, FIELD_FLAGS, .arg = BO_DEVICE | BO_HOST),
	FIELD(drm_spyre_bo_create, handle, FIELD_OUT),
};

static void good_bo_create(struct fields_context *c, void *argument)
{
	struct drm_spyre_bo_create *args = argument;

	(void)c;
	args->size = PAGE;
	args->flags = BO_DEVICE;
}

static void undo_bo_create(struct fields_context *c, const void *argument)
{
	abi_gem_close(c->fd, ((const struct drm_spyre_bo_create *)argument)->handle);
}

static const struct field bo_mmap_offset_fields[] = {
	FIELD(drm_spyre_bo_mmap_offset, handle, FIELD_BO, .arg = BO_DEVICE | BO_HOST),
	FIELD(drm_spyre_bo_mmap_offset, pad, FIELD_MBZ),
	FIELD(drm_spyre_bo_mmap_offset, offset, FIELD_OUT),
};

static void good_bo_mmap_offset(struct fields_context *c, void *argument)
{
	((struct drm_spyre_bo_mmap_offset *)argument)->handle = c->host.handle;
}

static bool has_async(struct fields_context *c)
{
	struct drm_spyre_vm_bind_op op = {
		.op = DRM_SPYRE_VM_UNMAP, .va = 3 * FIELDS_VA, .range = PAGE,
	};
	struct drm_spyre_vm_bind args = {
		.ops = { sizeof(op), 1, PTR(&op) }, .flags = DRM_SPYRE_VM_BIND_ASYNC,
	};

	return !abi_ioctl(c->fd, DRM_IOCTL_SPYRE_VM_BIND, &args);
}

/* A module that supports partitions has no 33rd core. */
static bool has_partitions(struct fields_context *c)
{
	struct drm_spyre_queue_create args = { .core_count = 33 };

	if (abi_ioctl(c->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args))
		return true;
	abi_queue_destroy(c->fd, args.queue_id);
	return false;
}

static const struct field vm_bind_fields[] = {
	FIELD(drm_spyre_vm_bind, ops, FIELD_ARRAY, .arg = sizeof(struct drm_spyre_vm_bind_op),
	      .max = 4096),
	FIELD(drm_spyre_vm_bind, flags, FIELD_FLAGS, .arg = DRM_SPYRE_VM_BIND_ASYNC),
	FIELD(drm_spyre_vm_bind, done, FIELD_OUT),
	FIELD(drm_spyre_vm_bind, syncs, FIELD_MBZ, .probe = has_async),
};

static void good_vm_bind(struct fields_context *c, void *argument)
{
	struct drm_spyre_vm_bind *args = argument;

	c->op = (struct drm_spyre_vm_bind_op){
		.op = DRM_SPYRE_VM_MAP, .handle = c->small.handle, .va = 2 * FIELDS_VA,
		.range = PAGE,
	};
	args->ops = (struct drm_spyre_array){ sizeof(c->op), 1, PTR(&c->op) };
}

static void good_vm_bind_unmap(struct fields_context *c, void *argument)
{
	good_vm_bind(c, argument);
	c->op = (struct drm_spyre_vm_bind_op){
		.op = DRM_SPYRE_VM_UNMAP, .va = 2 * FIELDS_VA, .range = PAGE,
	};
}

static void undo_vm_bind(struct fields_context *c, const void *argument)
{
	(void)argument;
	abi_unbind(c->fd, 2 * FIELDS_VA, PAGE);
}

static const struct field vm_bind_async_fields[] = {
	FIELD(drm_spyre_vm_bind, ops, FIELD_ARRAY, .arg = sizeof(struct drm_spyre_vm_bind_op),
	      .max = 4096),
	FIELD(drm_spyre_vm_bind, flags, FIELD_FLAGS, .arg = DRM_SPYRE_VM_BIND_ASYNC),
	FIELD(drm_spyre_vm_bind, done, FIELD_OUT),
	FIELD(drm_spyre_vm_bind, syncs, FIELD_ARRAY, .arg = sizeof(struct drm_spyre_sync),
	      .max = 64, .how = FIELD_OR_NONE),
};

static void good_sync(struct fields_context *c)
{
	c->sync = (struct drm_spyre_sync){
		.handle = c->syncobj, .flags = DRM_SPYRE_SYNC_SIGNAL,
	};
}

static void good_vm_bind_async(struct fields_context *c, void *argument)
{
	struct drm_spyre_vm_bind *args = argument;

	good_vm_bind(c, argument);
	good_sync(c);
	args->flags = DRM_SPYRE_VM_BIND_ASYNC;
	args->syncs = (struct drm_spyre_array){ sizeof(c->sync), 1, PTR(&c->sync) };
}

static const struct field map_fields[] = {
	FIELD(drm_spyre_vm_bind_op, op, FIELD_ENUM, .arg = DRM_SPYRE_VM_UNMAP),
	FIELD(drm_spyre_vm_bind_op, flags, FIELD_FLAGS, .arg = DRM_SPYRE_VM_MAP_READONLY),
	FIELD(drm_spyre_vm_bind_op, handle, FIELD_BO, .arg = BO_DEVICE),
	FIELD(drm_spyre_vm_bind_op, pad, FIELD_MBZ),
	FIELD(drm_spyre_vm_bind_op, bo_offset, FIELD_OTHER),
	FIELD(drm_spyre_vm_bind_op, va, FIELD_OTHER),
	FIELD(drm_spyre_vm_bind_op, range, FIELD_OTHER),
};

static const struct field unmap_fields[] = {
	FIELD(drm_spyre_vm_bind_op, op, FIELD_ENUM, .arg = DRM_SPYRE_VM_UNMAP),
	FIELD(drm_spyre_vm_bind_op, flags, FIELD_MBZ),
	FIELD(drm_spyre_vm_bind_op, handle, FIELD_MBZ),
	FIELD(drm_spyre_vm_bind_op, pad, FIELD_MBZ),
	FIELD(drm_spyre_vm_bind_op, bo_offset, FIELD_MBZ),
	FIELD(drm_spyre_vm_bind_op, va, FIELD_OTHER),
	FIELD(drm_spyre_vm_bind_op, range, FIELD_OTHER),
};

static void *subject_op(struct fields_context *c)
{
	return &c->op;
}

static const struct field sync_fields[] = {
	FIELD(drm_spyre_sync, handle, FIELD_SYNCOBJ),
	FIELD(drm_spyre_sync, flags, FIELD_FLAGS, .arg = DRM_SPYRE_SYNC_SIGNAL),
	FIELD(drm_spyre_sync, point, FIELD_OTHER),
};

static void *subject_sync(struct fields_context *c)
{
	return &c->sync;
}

static const struct field program_create_fields[] = {
	FIELD(drm_spyre_program_create, data, FIELD_READ),
	FIELD(drm_spyre_program_create, size, FIELD_OTHER),
	FIELD(drm_spyre_program_create, flags, FIELD_MBZ),
	FIELD(drm_spyre_program_create, handle, FIELD_OUT),
	FIELD(drm_spyre_program_create, stop, FIELD_OUT),
	FIELD(drm_spyre_program_create, stop_step, FIELD_OUT),
	FIELD(drm_spyre_program_create, stop_core, FIELD_OUT),
	FIELD(drm_spyre_program_create, stop_instr, FIELD_OUT),
	FIELD(drm_spyre_program_create, stop_view, FIELD_OUT),
	FIELD(drm_spyre_program_create, pad, FIELD_MBZ),
	FIELD(drm_spyre_program_create, stop_value, FIELD_OUT),
	FIELD(drm_spyre_program_create, stop_limit, FIELD_OUT),
	FIELD(drm_spyre_program_create, cycles, FIELD_OUT),
};

static void good_program_create(struct fields_context *c, void *argument)
{
	struct drm_spyre_program_create *args = argument;

	args->data = PTR(c->image);
	args->size = c->image_size;
}

static void undo_program_create(struct fields_context *c, const void *argument)
{
	abi_prog_destroy(c->fd, ((const struct drm_spyre_program_create *)argument)->handle);
}

static const struct field program_destroy_fields[] = {
	FIELD(drm_spyre_program_destroy, handle, FIELD_PROGRAM),
	FIELD(drm_spyre_program_destroy, pad, FIELD_MBZ),
};

/* Each good call destroys one; another is created for the next. */
static void good_program_destroy(struct fields_context *c, void *argument)
{
	struct drm_spyre_program_create args;

	abi_prog_destroy(c->fd, c->spare_program);
	if (abi_prog_load(c->fd, c->image, c->image_size, &args))
		tap_bail("PROGRAM_CREATE");
	c->spare_program = args.handle;
	((struct drm_spyre_program_destroy *)argument)->handle = c->spare_program;
}

static const struct field queue_create_fields[] = {
	FIELD(drm_spyre_queue_create, flags, FIELD_MBZ),
	FIELD(drm_spyre_queue_create, priority, FIELD_ENUM, .arg = DRM_SPYRE_PRIORITY_HIGH),
	FIELD(drm_spyre_queue_create, timeout_ms, FIELD_ENUM, .arg = 60000),
	FIELD(drm_spyre_queue_create, queue_id, FIELD_OUT),
	FIELD(drm_spyre_queue_create, core_first, FIELD_ENUM, .probe = has_partitions),
	FIELD(drm_spyre_queue_create, core_count, FIELD_ENUM, .arg = 32,
	      .probe = has_partitions),
};

static void good_queue_create(struct fields_context *c, void *argument)
{
	(void)c;
	((struct drm_spyre_queue_create *)argument)->timeout_ms = 1000;
}

static void undo_queue_create(struct fields_context *c, const void *argument)
{
	abi_queue_destroy(c->fd, ((const struct drm_spyre_queue_create *)argument)->queue_id);
}

static const struct field queue_destroy_fields[] = {
	FIELD(drm_spyre_queue_destroy, queue_id, FIELD_QUEUE),
	FIELD(drm_spyre_queue_destroy, pad, FIELD_MBZ),
};

static void good_queue_destroy(struct fields_context *c, void *argument)
{
	abi_queue_destroy(c->fd, c->spare_queue);
	if (abi_queue_create(c->fd, 0, 0, &c->spare_queue))
		tap_bail("QUEUE_CREATE");
	((struct drm_spyre_queue_destroy *)argument)->queue_id = c->spare_queue;
}

static const struct field queue_query_fields[] = {
	FIELD(drm_spyre_queue_query, queue_id, FIELD_QUEUE),
	FIELD(drm_spyre_queue_query, state, FIELD_OUT),
	FIELD(drm_spyre_queue_query, error, FIELD_OUT),
	FIELD(drm_spyre_queue_query, pad, FIELD_MBZ),
	FIELD(drm_spyre_queue_query, submitted, FIELD_OUT),
	FIELD(drm_spyre_queue_query, completed, FIELD_OUT),
};

static void good_queue_query(struct fields_context *c, void *argument)
{
	((struct drm_spyre_queue_query *)argument)->queue_id = c->queue.id;
}

static const struct field submit_fields[] = {
	FIELD(drm_spyre_submit, queue_id, FIELD_QUEUE),
	FIELD(drm_spyre_submit, flags, FIELD_MBZ),
	FIELD(drm_spyre_submit, cbs, FIELD_ARRAY, .arg = sizeof(struct drm_spyre_cb), .max = 256),
	FIELD(drm_spyre_submit, syncs, FIELD_ARRAY, .arg = sizeof(struct drm_spyre_sync),
	      .max = 64, .how = FIELD_OR_NONE),
	FIELD(drm_spyre_submit, result_handle, FIELD_BO, .arg = BO_HOST, .how = FIELD_OR_NONE),
	FIELD(drm_spyre_submit, error_cb, FIELD_OUT),
	FIELD(drm_spyre_submit, result_offset, FIELD_OTHER),
};

static void good_submit(struct fields_context *c, void *argument)
{
	struct drm_spyre_submit *args = argument;

	good_sync(c);
	c->cb = abi_cb_timestamp();
	args->queue_id = c->queue.id;
	args->cbs = (struct drm_spyre_array){ sizeof(c->cb), 1, PTR(&c->cb) };
	args->syncs = (struct drm_spyre_array){ sizeof(c->sync), 1, PTR(&c->sync) };
	args->result_handle = c->host.handle;
}

static void *subject_cb(struct fields_context *c)
{
	return &c->cb;
}

/* Fields that a type does not use must be zero; CB() lists those that it uses. */
#define CB_FIELDS(name, program_, num_args_, args_, desc_, dst_, src_, size_, host_addr_, \
		  host_handle_, pattern_size_, host_offset_, pattern_) \
static const struct field name[] = { \
	FIELD(drm_spyre_cb, type, FIELD_ENUM1, .arg = DRM_SPYRE_CB_PEER_COPY), \
	FIELD(drm_spyre_cb, flags, FIELD_MBZ), \
	FIELD(drm_spyre_cb, program, program_), \
	FIELD(drm_spyre_cb, num_args, num_args_), \
	FIELD(drm_spyre_cb, args, args_, .arg = 24), \
	FIELD(drm_spyre_cb, desc, desc_, .arg = DESC_BYTES), \
	FIELD(drm_spyre_cb, dst, dst_), \
	FIELD(drm_spyre_cb, src, src_), \
	FIELD(drm_spyre_cb, size, size_), \
	FIELD(drm_spyre_cb, host_addr, host_addr_, .arg = SPAN_BYTES), \
	FIELD(drm_spyre_cb, host_handle, host_handle_, .arg = BO_HOST, \
	      .how = FIELD_OR_ADDRESS), \
	FIELD(drm_spyre_cb, pattern_size, pattern_size_), \
	FIELD(drm_spyre_cb, host_offset, host_offset_), \
	FIELD(drm_spyre_cb, pattern, pattern_), \
	FIELD(drm_spyre_cb, reserved, FIELD_MBZ), \
}

#define DESC_BYTES sizeof(struct drm_spyre_dma)
#define SPAN_BYTES 4096
#define MBZ FIELD_MBZ
#define OTHER FIELD_OTHER
CB_FIELDS(timestamp_fields, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ);
CB_FIELDS(fill_fields, MBZ, MBZ, MBZ, MBZ, OTHER, MBZ, OTHER, MBZ, MBZ, OTHER, MBZ, OTHER);
CB_FIELDS(copy_fields, MBZ, MBZ, MBZ, MBZ, OTHER, OTHER, OTHER, MBZ, MBZ, MBZ, MBZ, MBZ);
CB_FIELDS(exec_fields, FIELD_PROGRAM, OTHER, FIELD_READ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ,
	  MBZ);
CB_FIELDS(h2d_fields, MBZ, MBZ, MBZ, FIELD_READ, OTHER, MBZ, OTHER, FIELD_READ, OTHER, MBZ, MBZ,
	  MBZ);
CB_FIELDS(d2h_fields, MBZ, MBZ, MBZ, FIELD_READ, MBZ, OTHER, OTHER, FIELD_WRITE, OTHER, MBZ, MBZ,
	  MBZ);
CB_FIELDS(dma_bo_fields, MBZ, MBZ, MBZ, FIELD_READ, OTHER, MBZ, OTHER, MBZ, FIELD_BO, MBZ, OTHER,
	  MBZ);
#undef DESC_BYTES
#define DESC_BYTES sizeof(struct drm_spyre_peer_copy)
CB_FIELDS(peer_read_fields, MBZ, MBZ, MBZ, FIELD_READ, OTHER, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ);
CB_FIELDS(peer_write_fields, MBZ, MBZ, MBZ, FIELD_READ, MBZ, OTHER, MBZ, MBZ, MBZ, MBZ, MBZ, MBZ);
#undef DESC_BYTES
#undef MBZ
#undef OTHER

static void good_fill(struct fields_context *c, void *argument)
{
	good_submit(c, argument);
	c->cb = abi_cb_fill32(c->device.va, PAGE, 1);
}

static void good_copy(struct fields_context *c, void *argument)
{
	good_submit(c, argument);
	c->cb = abi_cb_copy(c->device.va, c->device.va + PAGE, PAGE);
}

static void good_exec(struct fields_context *c, void *argument)
{
	uint32_t i;

	good_submit(c, argument);
	for (i = 0; i < 3; i++)
		c->args[i] = c->device.va + i * PAGE;
	c->cb = abi_cb_exec(c->program, c->args, 3);
}

static uint8_t span[2 * SPAN_BYTES] __attribute__((aligned(SPAN_BYTES)));

static void good_h2d(struct fields_context *c, void *argument)
{
	good_submit(c, argument);
	c->desc = abi_dma_raw(DRM_SPYRE_DMA_H2D, SPAN_BYTES);
	c->cb = abi_cb_dma(&c->desc, c->device.va, span, SPAN_BYTES);
}

static void good_d2h(struct fields_context *c, void *argument)
{
	good_submit(c, argument);
	c->desc = abi_dma_raw(DRM_SPYRE_DMA_D2H, SPAN_BYTES);
	c->cb = abi_cb_dma(&c->desc, c->device.va, span, SPAN_BYTES);
}

static void good_dma_bo(struct fields_context *c, void *argument)
{
	good_submit(c, argument);
	c->desc = abi_dma_raw(DRM_SPYRE_DMA_H2D, SPAN_BYTES);
	c->cb = abi_cb_dma_bo(&c->desc, c->device.va, c->host.handle, 0, SPAN_BYTES);
}

static const struct field desc_fields[] = {
	FIELD(drm_spyre_dma, direction, FIELD_ENUM, .arg = DRM_SPYRE_DMA_D2H),
	FIELD(drm_spyre_dma, host_format, FIELD_ENUM1, .arg = DRM_SPYRE_FORMAT_FP64),
	FIELD(drm_spyre_dma, device_format, FIELD_ENUM1, .arg = DRM_SPYRE_FORMAT_FP64),
	FIELD(drm_spyre_dma, num_dims, FIELD_ENUM1, .arg = DRM_SPYRE_DMA_MAX_DIMS),
	FIELD(drm_spyre_dma, num_bounds, FIELD_ENUM, .arg = DRM_SPYRE_DMA_MAX_BOUNDS),
	FIELD(drm_spyre_dma, flags, FIELD_FLAGS, .arg = DRM_SPYRE_DMA_BOX),
	FIELD(drm_spyre_dma, pad, FIELD_MBZ),
	FIELD(drm_spyre_dma, host_offset, FIELD_OTHER),
	FIELD(drm_spyre_dma, dim[0].pad, FIELD_MBZ),
	FIELD(drm_spyre_dma, dim[1].pad, FIELD_MBZ),
};

static void *subject_desc(struct fields_context *c)
{
	return &c->desc;
}

/* A BO of the card itself may be at the far end, so one card suffices. */
static void good_peer_read(struct fields_context *c, void *argument)
{
	good_submit(c, argument);
	c->peer = (struct drm_spyre_peer_copy){
		.direction = DRM_SPYRE_PEER_READ, .handle = c->small.handle, .rows = 2,
		.row_bytes = STICK, .stride = STICK, .local_stride = STICK,
	};
	c->cb = (struct drm_spyre_cb){
		.type = DRM_SPYRE_CB_PEER_COPY, .desc = PTR(&c->peer), .dst = c->device.va,
	};
}

static void good_peer_write(struct fields_context *c, void *argument)
{
	good_peer_read(c, argument);
	c->peer.direction = DRM_SPYRE_PEER_WRITE;
	c->cb.src = c->cb.dst;
	c->cb.dst = 0;
}

static const struct field peer_fields[] = {
	FIELD(drm_spyre_peer_copy, direction, FIELD_ENUM, .arg = DRM_SPYRE_PEER_WRITE),
	FIELD(drm_spyre_peer_copy, handle, FIELD_BO, .arg = BO_DEVICE),
	FIELD(drm_spyre_peer_copy, offset, FIELD_OTHER),
	FIELD(drm_spyre_peer_copy, rows, FIELD_OTHER),
	FIELD(drm_spyre_peer_copy, row_bytes, FIELD_OTHER),
	FIELD(drm_spyre_peer_copy, stride, FIELD_OTHER),
	FIELD(drm_spyre_peer_copy, local_stride, FIELD_OTHER),
	FIELD(drm_spyre_peer_copy, reserved, FIELD_MBZ),
};

static void *subject_peer(struct fields_context *c)
{
	return &c->peer;
}

static const struct field reset_fields[] = {
	FIELD(drm_spyre_reset, flags, FIELD_MBZ),
	FIELD(drm_spyre_reset, pad, FIELD_MBZ),
	FIELD(drm_spyre_reset, generation, FIELD_OUT),
};

static const struct field context_reset_fields[] = {
	FIELD(drm_spyre_context_reset, flags, FIELD_MBZ),
	FIELD(drm_spyre_context_reset, queues, FIELD_OUT),
};

static void good_nothing(struct fields_context *c, void *argument)
{
	(void)c;
	(void)argument;
}

/* The queue is dead. */
static void undo_reset(struct fields_context *c, const void *argument)
{
	(void)argument;
	abi_queue_destroy(c->fd, c->queue.id);
	if (abi_queue_create(c->fd, 0, 0, &c->queue.id))
		tap_bail("QUEUE_CREATE after a reset");
}

static const struct field bo_info_fields[] = {
	FIELD(drm_spyre_bo_info, handle, FIELD_BO, .arg = BO_DEVICE | BO_HOST),
	FIELD(drm_spyre_bo_info, flags, FIELD_OUT),
	FIELD(drm_spyre_bo_info, size, FIELD_OUT),
	FIELD(drm_spyre_bo_info, resident, FIELD_OUT),
};

static void good_bo_info(struct fields_context *c, void *argument)
{
	((struct drm_spyre_bo_info *)argument)->handle = c->host.handle;
}

#define TARGET(name_, NAME, type, table, ...) { \
	.name = name_, .request = DRM_IOCTL_SPYRE_##NAME, .fields = table, \
	.num_fields = sizeof(table) / sizeof(table[0]), __VA_ARGS__ \
}
#define PART(name_, NAME, type, table, ...) \
	TARGET(name_, NAME, type, table, .size = sizeof(struct type), __VA_ARGS__)
#define CB(name_, table, good_, ...) \
	PART(name_, SUBMIT, drm_spyre_cb, table, .good = good_, .subject = subject_cb, \
	     ##__VA_ARGS__)

const struct target fields_targets[] = {
	TARGET("DEV_QUERY", DEV_QUERY, drm_spyre_dev_query, dev_query_fields,
	       .good = good_dev_query, .first_size = 16),
	TARGET("BO_CREATE", BO_CREATE, drm_spyre_bo_create, bo_create_fields,
	       .good = good_bo_create, .undo = undo_bo_create, .first_size = 16),
	TARGET("BO_MMAP_OFFSET", BO_MMAP_OFFSET, drm_spyre_bo_mmap_offset, bo_mmap_offset_fields,
	       .good = good_bo_mmap_offset, .first_size = 16),
	TARGET("VM_BIND", VM_BIND, drm_spyre_vm_bind, vm_bind_fields, .good = good_vm_bind,
	       .undo = undo_vm_bind, .first_size = 24),
	PART("VM_BIND, a MAP", VM_BIND, drm_spyre_vm_bind_op, map_fields, .good = good_vm_bind,
	     .undo = undo_vm_bind, .subject = subject_op),
	PART("VM_BIND, an UNMAP", VM_BIND, drm_spyre_vm_bind_op, unmap_fields,
	     .good = good_vm_bind_unmap, .subject = subject_op),
	TARGET("VM_BIND, ASYNC", VM_BIND, drm_spyre_vm_bind, vm_bind_async_fields,
	       .good = good_vm_bind_async, .undo = undo_vm_bind, .first_size = 40, .since = 2),
	PART("VM_BIND, ASYNC, a MAP", VM_BIND, drm_spyre_vm_bind_op, map_fields,
	     .good = good_vm_bind_async, .undo = undo_vm_bind, .subject = subject_op, .since = 2),
	PART("VM_BIND, ASYNC, a sync", VM_BIND, drm_spyre_sync, sync_fields,
	     .good = good_vm_bind_async, .undo = undo_vm_bind, .subject = subject_sync,
	     .since = 2),
	TARGET("PROGRAM_CREATE", PROGRAM_CREATE, drm_spyre_program_create, program_create_fields,
	       .good = good_program_create, .undo = undo_program_create, .first_size = 72),
	TARGET("PROGRAM_DESTROY", PROGRAM_DESTROY, drm_spyre_program_destroy,
	       program_destroy_fields, .good = good_program_destroy, .first_size = 8),
	TARGET("QUEUE_CREATE", QUEUE_CREATE, drm_spyre_queue_create, queue_create_fields,
	       .good = good_queue_create, .undo = undo_queue_create, .first_size = 16),
	TARGET("QUEUE_DESTROY", QUEUE_DESTROY, drm_spyre_queue_destroy, queue_destroy_fields,
	       .good = good_queue_destroy, .first_size = 8),
	TARGET("QUEUE_QUERY", QUEUE_QUERY, drm_spyre_queue_query, queue_query_fields,
	       .good = good_queue_query, .first_size = 32),
	TARGET("SUBMIT", SUBMIT, drm_spyre_submit, submit_fields, .good = good_submit,
	       .first_size = 56),
	PART("SUBMIT, a sync", SUBMIT, drm_spyre_sync, sync_fields, .good = good_submit,
	     .subject = subject_sync),
	CB("SUBMIT, TIMESTAMP", timestamp_fields, good_submit),
	CB("SUBMIT, FILL", fill_fields, good_fill),
	CB("SUBMIT, COPY", copy_fields, good_copy),
	CB("SUBMIT, EXEC", exec_fields, good_exec),
	CB("SUBMIT, DMA H2D", h2d_fields, good_h2d),
	CB("SUBMIT, DMA D2H", d2h_fields, good_d2h),
	CB("SUBMIT, DMA from a BO", dma_bo_fields, good_dma_bo),
	PART("SUBMIT, DMA descriptor", SUBMIT, drm_spyre_dma, desc_fields, .good = good_h2d,
	     .subject = subject_desc),
	CB("SUBMIT, PEER_COPY read", peer_read_fields, good_peer_read, .since = 4),
	CB("SUBMIT, PEER_COPY write", peer_write_fields, good_peer_write, .since = 4),
	PART("SUBMIT, copy of PEER_COPY", SUBMIT, drm_spyre_peer_copy, peer_fields,
	     .good = good_peer_read, .subject = subject_peer, .since = 4),
	TARGET("CONTEXT_RESET", CONTEXT_RESET, drm_spyre_context_reset, context_reset_fields,
	       .good = good_nothing, .undo = undo_reset, .first_size = 8, .since = 2),
	TARGET("BO_INFO", BO_INFO, drm_spyre_bo_info, bo_info_fields, .good = good_bo_info,
	       .first_size = 24, .since = 2),
	TARGET("RESET", RESET, drm_spyre_reset, reset_fields, .good = good_nothing,
	       .undo = undo_reset, .first_size = 16, .root = true),
};

const uint32_t fields_num_targets = sizeof(fields_targets) / sizeof(fields_targets[0]);
