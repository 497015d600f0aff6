// SPDX-License-Identifier: MIT
#include "tests/abi/abi.h"

const char *node_path = "/dev/accel/accel0";

static int checks, failures;

bool ok(bool good, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", good ? "" : "not ", ++checks);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	failures += !good;
	return good;
}

void note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

int done_testing(void)
{
	printf("1..%d\n", checks);
	fflush(stdout);
	return failures ? 1 : 0;
}

void need(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

int call(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

bool gives(int expected, int fd, unsigned long request, void *argument, const char *format, ...)
{
	int got = call(fd, request, argument);
	char what[200];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (got == expected)
		return ok(true, "%s: %s", what, expected ? strerror(-expected) : "works");
	return ok(false, "%s: expected %d (%s), got %d (%s)", what, expected,
		  strerror(-expected), got, strerror(-got));
}

int node_open(void)
{
	const char *path = getenv("SPYRE_NODE");
	int fd;

	if (path)
		node_path = path;
	fd = open(node_path, O_RDWR | O_CLOEXEC);
	need(fd >= 0, node_path);
	return fd;
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

uint32_t bo_create(int fd, uint64_t size, uint32_t flags)
{
	struct drm_spyre_bo_create args = { .size = size, .flags = flags };

	need(!call(fd, DRM_IOCTL_SPYRE_BO_CREATE, &args), "BO_CREATE");
	return args.handle;
}

void *bo_map(int fd, uint32_t handle, size_t size)
{
	struct drm_spyre_bo_mmap_offset args = { .handle = handle };
	void *map;

	need(!call(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args), "BO_MMAP_OFFSET");
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, args.offset);
	need(map != MAP_FAILED, "mmap");
	return map;
}

void gem_close(int fd, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	need(!call(fd, DRM_IOCTL_GEM_CLOSE, &args), "GEM_CLOSE");
}

int vm_bind(int fd, uint32_t op, uint32_t flags, uint32_t handle, uint64_t offset, uint64_t va,
	    uint64_t range)
{
	struct drm_spyre_vm_bind_op ops = {
		.op = op, .flags = flags, .handle = handle,
		.bo_offset = offset, .va = va, .range = range,
	};
	struct drm_spyre_vm_bind args = {
		.ops = { .stride = sizeof(ops), .count = 1, .array = (uintptr_t)&ops },
	};

	return call(fd, DRM_IOCTL_SPYRE_VM_BIND, &args);
}

uint32_t queue_create(int fd, uint32_t priority, uint32_t timeout_ms)
{
	struct drm_spyre_queue_create args = { .priority = priority, .timeout_ms = timeout_ms };

	need(!call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args), "QUEUE_CREATE");
	return args.queue_id;
}

uint32_t syncobj_create(int fd)
{
	struct drm_syncobj_create args = { 0 };

	need(!call(fd, DRM_IOCTL_SYNCOBJ_CREATE, &args), "SYNCOBJ_CREATE");
	return args.handle;
}

int timeline_wait(int fd, uint32_t syncobj, uint64_t point, int ms)
{
	struct drm_syncobj_timeline_wait args = {
		.handles = (uintptr_t)&syncobj, .points = (uintptr_t)&point,
		.timeout_nsec = now_ns() + ms * 1000000ll, .count_handles = 1,
		.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
	};

	return call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &args);
}

int submit(int fd, uint32_t queue, const struct drm_spyre_cb *cbs, uint32_t num,
	   uint32_t result_bo, uint32_t syncobj, uint64_t point)
{
	struct drm_spyre_sync sync = {
		.handle = syncobj, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = point,
	};
	struct drm_spyre_submit args = {
		.queue_id = queue,
		.cbs = { .stride = sizeof(*cbs), .count = num, .array = (uintptr_t)cbs },
		.syncs = { .stride = sizeof(sync), .count = !!syncobj,
			   .array = (uintptr_t)&sync },
		.result_handle = result_bo,
	};

	return call(fd, DRM_IOCTL_SPYRE_SUBMIT, &args);
}

int submit_wait(int fd, uint32_t queue, const struct drm_spyre_cb *cbs, uint32_t num,
		uint32_t result_bo, uint32_t syncobj, uint64_t point)
{
	int ret = submit(fd, queue, cbs, num, result_bo, syncobj, point);

	return ret ? ret : timeline_wait(fd, syncobj, point, 60000);
}

static void *image_append(struct image *image, const void *bytes, size_t size)
{
	void *at = image->bytes + image->size;

	need(image->size + size <= sizeof(image->bytes), "image too large");
	memcpy(at, bytes, size);
	image->size += size;
	return at;
}

static void image_start(struct image *image, uint32_t operands, uint32_t steps, uint32_t instrs,
			uint32_t views, uint32_t lx_bytes)
{
	struct spyre_prog_header header = {
		.magic = SPYRE_PROG_MAGIC, .version = SPYRE_PROG_VERSION, .num_cores = 1,
		.num_operands = operands, .num_steps = steps, .num_streams = 1,
		.lx_bytes = lx_bytes,
		.instr_bytes = instrs * sizeof(struct spyre_instr) +
			       views * sizeof(struct spyre_view),
	};

	header.size = sizeof(header) + operands * sizeof(struct spyre_prog_operand) +
		      steps * sizeof(struct spyre_prog_step) +
		      sizeof(struct spyre_prog_stream) + header.instr_bytes;
	image->size = 0;
	image_append(image, &header, sizeof(header));
}

static void image_operand(struct image *image, uint64_t extent, uint32_t flags)
{
	struct spyre_prog_operand operand = { .extent = extent, .flags = flags };

	image_append(image, &operand, sizeof(operand));
}

static void image_step(struct image *image, uint32_t kind, uint32_t count)
{
	struct spyre_prog_step step = {
		.kind = kind, .count = count, .num_streams = kind == SPYRE_STEP_PHASE,
	};

	image_append(image, &step, sizeof(step));
}

static void image_stream(struct image *image, uint32_t instrs)
{
	struct spyre_prog_stream stream = { .num_instrs = instrs };

	image_append(image, &stream, sizeof(stream));
}

static void image_instr(struct image *image, uint16_t opcode, uint16_t func, uint32_t sticks,
			uint32_t num_views, const uint16_t *operand)
{
	struct spyre_instr instr = {
		.opcode = opcode, .func = func, .num_dims = 1, .num_views = num_views,
		.count = { sticks }, .lanes = 64,
	};
	uint32_t i;

	image_append(image, &instr, sizeof(instr));
	for (i = 0; i < num_views; i++) {
		struct spyre_view view = {
			.operand = operand[i], .format = SPYRE_FMT_SEN169_FP16, .stride = { 128 },
		};

		image_append(image, &view, sizeof(view));
	}
}

void image_add(struct image *image, uint32_t sticks, uint32_t turns)
{
	const uint64_t extent = sticks * 128ull;

	image_start(image, 3, turns > 1 ? 3 : 1, 1, 3, 0);
	image_operand(image, extent, SPYRE_OPERAND_WRITE);
	image_operand(image, extent, SPYRE_OPERAND_READ);
	image_operand(image, extent, SPYRE_OPERAND_READ);
	if (turns > 1)
		image_step(image, SPYRE_STEP_LOOP, turns);
	image_step(image, SPYRE_STEP_PHASE, 0);
	if (turns > 1)
		image_step(image, SPYRE_STEP_END, 0);
	image_stream(image, 1);
	image_instr(image, SPYRE_OP_SFU, SPYRE_FUNC_ADD, sticks, 3, (uint16_t[]){ 0, 1, 2 });
}

void image_add_lx(struct image *image, uint32_t sticks)
{
	const uint64_t extent = sticks * 128ull;

	image_start(image, 3, 1, 2, 6, extent);
	image_operand(image, extent, SPYRE_OPERAND_WRITE);
	image_operand(image, extent, SPYRE_OPERAND_READ);
	image_operand(image, extent, SPYRE_OPERAND_READ);
	image_step(image, SPYRE_STEP_PHASE, 0);
	image_stream(image, 2);
	image_instr(image, SPYRE_OP_SFU, SPYRE_FUNC_ADD, sticks, 3,
		    (uint16_t[]){ SPYRE_VIEW_LX, 1, 2 });
	image_instr(image, SPYRE_OP_SFU, SPYRE_FUNC_ADD, sticks, 3,
		    (uint16_t[]){ 0, SPYRE_VIEW_LX, 2 });
}

void image_peek_lx(struct image *image, uint32_t sticks)
{
	const uint64_t extent = sticks * 128ull;

	image_start(image, 1, 1, 1, 2, extent);
	image_operand(image, extent, SPYRE_OPERAND_WRITE);
	image_step(image, SPYRE_STEP_PHASE, 0);
	image_stream(image, 1);
	image_instr(image, SPYRE_OP_MOVE, SPYRE_FUNC_NONE, sticks, 2,
		    (uint16_t[]){ 0, SPYRE_VIEW_LX });
}

uint32_t program_create(int fd, const struct image *image)
{
	struct drm_spyre_program_create args = {
		.data = (uintptr_t)image->bytes, .size = image->size,
	};

	if (call(fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &args)) {
		note("verifier: stop %u step %u core %u instr %u view %u value %llu limit %llu",
		     args.stop, args.stop_step, args.stop_core, args.stop_instr, args.stop_view,
		     (unsigned long long)args.stop_value, (unsigned long long)args.stop_limit);
		need(false, "PROGRAM_CREATE");
	}
	return args.handle;
}
