/* SPDX-License-Identifier: MIT */
/* Queues, submissions and control blocks. */
#include "abi.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>
#include <xf86drm.h>

struct drm_spyre_context_info abi_context(int fd)
{
	struct drm_spyre_context_info info;
	struct drm_spyre_dev_query query = {
		.type = DRM_SPYRE_DEV_QUERY_CONTEXT,
		.size = sizeof(info),
		.pointer = PTR(&info),
	};
	int ret;

	memset(&info, 0xa5, sizeof(info));
	ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	if (ret)
		tap_bail("DEV_QUERY of the context: %s", strerror(-ret));
	return info;
}

int abi_context_reset(int fd, uint32_t *queues)
{
	struct drm_spyre_context_reset args = { .queues = NEVER };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_CONTEXT_RESET, &args);

	if (queues)
		*queues = args.queues;
	return ret;
}

static struct __user_cap_header_struct own_caps(void)
{
	return (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
}

bool abi_may_be_high(void)
{
	struct __user_cap_header_struct header = own_caps();
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		tap_bail("capget: %s", strerror(errno));
	return data[0].effective & 1u << CAP_SYS_NICE;
}

void abi_set_high(bool may)
{
	struct __user_cap_header_struct header = own_caps();
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		tap_bail("capget: %s", strerror(errno));
	data[0].effective &= ~(1u << CAP_SYS_NICE);
	if (may)
		data[0].effective |= 1u << CAP_SYS_NICE;
	if (syscall(SYS_capset, &header, data))
		tap_bail("capset of CAP_SYS_NICE: %s", strerror(errno));
}

int abi_queue_create(int fd, uint32_t priority, uint32_t timeout_ms, uint32_t *id)
{
	struct drm_spyre_queue_create args = { .priority = priority, .timeout_ms = timeout_ms };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args);

	*id = args.queue_id;
	return ret;
}

int abi_queue_destroy(int fd, uint32_t id)
{
	struct drm_spyre_queue_destroy args = { .queue_id = id };

	return abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &args);
}

struct drm_spyre_queue_query abi_queue_query(int fd, uint32_t id)
{
	struct drm_spyre_queue_query args = { .queue_id = id };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &args);

	if (ret)
		tap_bail("QUEUE_QUERY of %u: %s", id, strerror(-ret));
	return args;
}

uint32_t abi_syncobj(int fd)
{
	uint32_t handle;

	if (drmSyncobjCreate(fd, 0, &handle))
		tap_bail("SYNCOBJ_CREATE: %s", strerror(errno));
	return handle;
}

struct abi_queue abi_queue(int fd, uint32_t timeout_ms)
{
	struct abi_queue q = { .fd = fd };
	int ret = abi_queue_create(fd, DRM_SPYRE_PRIORITY_LOW, timeout_ms, &q.id);

	if (ret)
		tap_bail("QUEUE_CREATE: %s", strerror(-ret));
	q.syncobj = abi_syncobj(fd);
	q.results = abi_buf(fd, ABI_RESULTS * sizeof(struct drm_spyre_cb_result),
			    DRM_SPYRE_BO_HOST, 0);
	return q;
}

void abi_queue_free(struct abi_queue *q)
{
	abi_queue_destroy(q->fd, q->id);
	drmSyncobjDestroy(q->fd, q->syncobj);
	abi_buf_free(q->fd, &q->results);
}

struct drm_spyre_cb_result *abi_results(struct abi_queue *q)
{
	return q->results.map;
}

static int submit(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count,
		  const struct drm_spyre_sync *syncs, uint32_t num_syncs, uint32_t *error_cb)
{
	struct drm_spyre_submit args = {
		.queue_id = q->id,
		.cbs = { .stride = sizeof(*cbs), .count = count, .array = PTR(cbs) },
		.syncs = { .stride = sizeof(*syncs), .count = num_syncs, .array = PTR(syncs) },
		.result_handle = q->results.handle,
		.error_cb = 0xdeadbeef,
	};
	int ret;

	ret = abi_ioctl(q->fd, DRM_IOCTL_SPYRE_SUBMIT, &args);
	if (!ret)
		q->point++;
	if (error_cb)
		*error_cb = args.error_cb;
	return ret;
}

int abi_submit(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count,
	       uint32_t *error_cb)
{
	struct drm_spyre_sync done = {
		.handle = q->syncobj,
		.flags = DRM_SPYRE_SYNC_SIGNAL,
		.point = q->point + 1,
	};

	return submit(q, cbs, count, &done, 1, error_cb);
}

int abi_submit_sync(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count,
		    struct drm_spyre_sync a, struct drm_spyre_sync b)
{
	struct drm_spyre_sync syncs[3] = {
		{ .handle = q->syncobj, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = q->point + 1 },
	};
	uint32_t n = 1;

	if (a.handle)
		syncs[n++] = a;
	if (b.handle)
		syncs[n++] = b;
	return submit(q, cbs, count, syncs, n, NULL);
}

int abi_wait_point(int fd, uint32_t syncobj, uint64_t point, unsigned int ms)
{
	int64_t deadline = (int64_t)(abi_now_ns() + ms * 1000000ull);
	int ret;

	if (point)
		ret = drmSyncobjTimelineWait(fd, &syncobj, &point, 1, deadline, 0, NULL);
	else
		ret = drmSyncobjWait(fd, &syncobj, 1, deadline, 0, NULL);
	return ret ? -errno : 0;
}

int abi_wait(struct abi_queue *q, unsigned int ms)
{
	return q->point ? abi_wait_point(q->fd, q->syncobj, q->point, ms) : 0;
}

int abi_run(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count)
{
	struct drm_spyre_cb_result *results = abi_results(q);
	uint32_t i;
	int ret;

	memset(results, 0xa5, count * sizeof(*results));
	ret = abi_submit(q, cbs, count, NULL);
	if (!ret)
		ret = abi_wait(q, 60000);
	for (i = 0; !ret && i < count; i++) {
		if (results[i].state != DRM_SPYRE_CB_DONE)
			ret = -EPROTO;
		else
			ret = results[i].status;
	}
	return ret;
}

struct drm_spyre_cb abi_cb_timestamp(void)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_TIMESTAMP };
}

struct drm_spyre_cb abi_cb_fill32(uint64_t dst, uint64_t size, uint32_t value)
{
	struct drm_spyre_cb cb = {
		.type = DRM_SPYRE_CB_FILL,
		.dst = dst,
		.size = size,
		.pattern_size = 4,
	};

	memcpy(cb.pattern, &value, sizeof(value));
	return cb;
}

struct drm_spyre_cb abi_cb_copy(uint64_t dst, uint64_t src, uint64_t size)
{
	return (struct drm_spyre_cb){
		.type = DRM_SPYRE_CB_COPY, .dst = dst, .src = src, .size = size
	};
}

struct drm_spyre_cb abi_cb_dma(const struct drm_spyre_dma *desc, uint64_t device, void *host,
			       uint64_t size)
{
	bool h2d = desc->direction == DRM_SPYRE_DMA_H2D;

	return (struct drm_spyre_cb){
		.type = DRM_SPYRE_CB_DMA,
		.desc = PTR(desc),
		.dst = h2d ? device : 0,
		.src = h2d ? 0 : device,
		.size = size,
		.host_addr = PTR(host),
	};
}

struct drm_spyre_cb abi_cb_dma_bo(const struct drm_spyre_dma *desc, uint64_t device,
				  uint32_t handle, uint64_t offset, uint64_t size)
{
	struct drm_spyre_cb cb = abi_cb_dma(desc, device, NULL, size);

	cb.host_handle = handle;
	cb.host_offset = offset;
	return cb;
}

struct drm_spyre_cb abi_cb_exec(uint32_t program, const uint64_t *args, uint32_t num_args)
{
	return (struct drm_spyre_cb){
		.type = DRM_SPYRE_CB_EXEC,
		.program = program,
		.num_args = num_args,
		.args = PTR(args),
	};
}

struct drm_spyre_dma abi_dma_raw(uint8_t direction, uint64_t bytes)
{
	return (struct drm_spyre_dma){
		.direction = direction,
		.host_format = DRM_SPYRE_FORMAT_IEEE_FP32,
		.device_format = DRM_SPYRE_FORMAT_IEEE_FP32,
		.num_dims = 2,
		.dim = {
			{ .count = (uint32_t)(bytes / STICK), .host_stride = STICK },
			{ .count = STICK / 4, .host_stride = 4 },
		},
	};
}
