// SPDX-License-Identifier: GPL-2.0-only
/*
 * The address space without a card: operations one by one, and a random sequence
 * of them compared with an array of pages.
 */
#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_gem.h>

#include "../spyre_bo.h"
#include "../spyre_device.h"
#include "../spyre_vm.h"

#define TEST_VA (3ull << DRM_SPYRE_SEGMENT_SHIFT)
#define TEST_PAGES 64
#define TEST_BOS 4
#define TEST_ROUNDS 3000
#define P(pages) ((u64)(pages) * DRM_SPYRE_VA_PAGE)

struct vm_test {
	struct spyre_vm *vm;
	struct spyre_bo *bo[TEST_BOS];
	/* BOs that have not been freed */
	u32 live;
};

struct vm_test_bo {
	struct spyre_bo base;
	u32 *live;
};

static void vm_test_bo_free(struct drm_gem_object *obj)
{
	struct vm_test_bo *bo = container_of(to_spyre_bo(obj), struct vm_test_bo, base);

	drm_gem_object_release(obj);
	--*bo->live;
	kfree(bo);
}

static const struct drm_gem_object_funcs vm_test_bo_funcs = {
	.free = vm_test_bo_free,
};

static const struct drm_driver vm_test_driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | DRIVER_GEM_GPUVA,
	.name = "spyre_vm_test",
	.major = 1,
};

static int vm_test_init(struct kunit *test)
{
	struct vm_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct spyre_device *spyre;
	struct vm_test_bo *bo;
	struct device *dev;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	dev = kunit_device_register(test, "spyre_vm_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	spyre = devm_drm_dev_alloc(dev, &vm_test_driver, struct spyre_device, drm);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, spyre);
	t->vm = spyre_vm_create(spyre);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->vm);
	for (i = 0; i < TEST_BOS; i++) {
		bo = kzalloc(sizeof(*bo), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, bo);
		bo->live = &t->live;
		bo->base.base.base.funcs = &vm_test_bo_funcs;
		drm_gem_private_object_init(&spyre->drm, &bo->base.base.base, P(TEST_PAGES));
		t->bo[i] = &bo->base;
		t->live++;
	}
	test->priv = t;
	return 0;
}

/* Mappings are all that holds a BO, and they go with the VM. */
static void vm_test_exit(struct kunit *test)
{
	struct vm_test *t = test->priv;
	u32 i;

	if (!t)
		return;
	for (i = 0; i < TEST_BOS; i++)
		spyre_bo_put(t->bo[i]);
	spyre_vm_destroy(t->vm);
	KUNIT_EXPECT_EQ(test, t->live, 0u);
}

static int vm_test_do(struct vm_test *t, const struct drm_spyre_vm_bind_op *from,
		      struct spyre_bo *bo)
{
	struct spyre_vm_op op = {};
	int ret;

	ret = spyre_vm_op_check(from);
	if (!ret)
		ret = spyre_vm_op_init(&op, from, bo ? &bo->base.base : NULL);
	if (ret)
		return ret;
	ret = spyre_vm_apply(t->vm, &op, 1, NULL);
	spyre_vm_op_fini(&op);
	return ret;
}

static int vm_test_map(struct vm_test *t, u64 va, u32 bo, u64 offset, u64 range, u32 flags)
{
	const struct drm_spyre_vm_bind_op op = {
		.op = DRM_SPYRE_VM_MAP, .handle = 1, .va = va, .range = range,
		.bo_offset = offset, .flags = flags,
	};

	return vm_test_do(t, &op, t->bo[bo]);
}

static int vm_test_unmap(struct vm_test *t, u64 va, u64 range)
{
	const struct drm_spyre_vm_bind_op op = {
		.op = DRM_SPYRE_VM_UNMAP, .va = va, .range = range,
	};

	return vm_test_do(t, &op, NULL);
}

/* The BO that is there, or -errno; its offset goes to @offset. */
static int vm_test_find(struct vm_test *t, u64 va, u64 size, bool write, u64 *offset)
{
	struct spyre_bo *bo = spyre_vm_find(t->vm, va, size, write, offset);
	u32 i;

	if (IS_ERR(bo))
		return PTR_ERR(bo);
	spyre_bo_put(bo);
	for (i = 0; i < TEST_BOS; i++)
		if (t->bo[i] == bo)
			return i;
	return -ENOENT;
}

#define EXPECT_AT(va, size, bo, at) do {						\
	u64 found_at = ~0ull;								\
											\
	KUNIT_EXPECT_EQ(test, bo, vm_test_find(t, va, size, false, &found_at));	\
	KUNIT_EXPECT_EQ(test, (u64)(at), found_at);					\
} while (0)
#define EXPECT_NONE(va, size, write) do {						\
	u64 found_at;									\
											\
	KUNIT_EXPECT_EQ(test, -EFAULT, vm_test_find(t, va, size, write, &found_at));	\
} while (0)

static void vm_find(struct kunit *test)
{
	struct vm_test *t = test->priv;

	EXPECT_NONE(TEST_VA, 1, false);
	KUNIT_ASSERT_EQ(test, 0, vm_test_map(t, TEST_VA, 1, P(2), P(4), 0));
	EXPECT_AT(TEST_VA, 1, 1, P(2));
	EXPECT_AT(TEST_VA, P(4), 1, P(2));
	EXPECT_AT(TEST_VA + 130, 77, 1, P(2) + 130);
	EXPECT_AT(TEST_VA + P(4) - 1, 1, 1, P(6) - 1);
	EXPECT_NONE(TEST_VA + P(4) - 1, 2, false);
	EXPECT_NONE(TEST_VA - 1, 2, false);
	EXPECT_NONE(TEST_VA, P(4) + 1, false);
	EXPECT_NONE(TEST_VA, 0, false);
	EXPECT_NONE(TEST_VA, ~0ull, false);
	EXPECT_NONE(1ull << SPYRE_VA_BITS, 1, false);
	EXPECT_NONE(~0ull, 1, false);
	EXPECT_NONE(0, 1, false);
}

static void vm_check(struct kunit *test)
{
	static const struct drm_spyre_vm_bind_op right = {
		.op = DRM_SPYRE_VM_MAP, .handle = 1, .va = TEST_VA, .range = P(1),
	};
	const u64 segment = 1ull << DRM_SPYRE_SEGMENT_SHIFT;
	struct drm_spyre_vm_bind_op op = right;

	KUNIT_EXPECT_EQ(test, 0, spyre_vm_op_check(&op));
#define EXPECT_BAD(field, wrong) do {							\
	op = right;									\
	op.field = wrong;								\
	KUNIT_EXPECT_EQ_MSG(test, -EINVAL, spyre_vm_op_check(&op), #field " = " #wrong);\
} while (0)
	EXPECT_BAD(op, 2);
	EXPECT_BAD(flags, 2);
	EXPECT_BAD(pad, 1);
	EXPECT_BAD(bo_offset, 1);
	EXPECT_BAD(va, TEST_VA + 1);
	EXPECT_BAD(va, 0);
	EXPECT_BAD(va, 1ull << SPYRE_VA_BITS);
	EXPECT_BAD(va, ~0ull << PAGE_SHIFT);
	EXPECT_BAD(range, 0);
	EXPECT_BAD(range, P(1) + 1);
	EXPECT_BAD(range, segment + P(1));
	EXPECT_BAD(range, ~0ull << PAGE_SHIFT);
	op = (struct drm_spyre_vm_bind_op) {
		.op = DRM_SPYRE_VM_UNMAP, .va = TEST_VA, .range = P(1),
	};
	KUNIT_EXPECT_EQ(test, 0, spyre_vm_op_check(&op));
	op.flags = DRM_SPYRE_VM_MAP_READONLY;
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_vm_op_check(&op));
	op.flags = 0;
	op.handle = 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_vm_op_check(&op));

	/* First page, and the ends of segments. */
	op = right;
	op.va = P(1);
	op.range = segment - P(1);
	KUNIT_EXPECT_EQ(test, 0, spyre_vm_op_check(&op));
	op.range = segment;
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_vm_op_check(&op));
	op.va = 7 * segment;
	KUNIT_EXPECT_EQ(test, 0, spyre_vm_op_check(&op));
	op.va = 2 * segment - P(1);
	op.range = P(2);
	KUNIT_EXPECT_EQ(test, -EINVAL, spyre_vm_op_check(&op));
}

static void vm_bounds_of_bo(struct kunit *test)
{
	struct vm_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, -EINVAL, vm_test_map(t, TEST_VA, 0, 0, P(TEST_PAGES + 1), 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, vm_test_map(t, TEST_VA, 0, P(1), P(TEST_PAGES), 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, vm_test_map(t, TEST_VA, 0, P(TEST_PAGES), P(1), 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			vm_test_map(t, TEST_VA, 0, ~0ull << PAGE_SHIFT, P(2), 0));
	EXPECT_NONE(TEST_VA, 1, false);
	KUNIT_EXPECT_EQ(test, 0, vm_test_map(t, TEST_VA, 0, P(TEST_PAGES - 1), P(1), 0));
	EXPECT_AT(TEST_VA, P(1), 0, P(TEST_PAGES - 1));
}

/* Over the middle, over several, to the byte. */
static void vm_remap(struct kunit *test)
{
	struct vm_test *t = test->priv;

	vm_test_map(t, TEST_VA, 0, 0, P(8), 0);
	KUNIT_ASSERT_EQ(test, 0, vm_test_map(t, TEST_VA + P(3), 1, P(9), P(2), 0));
	EXPECT_AT(TEST_VA, P(3), 0, 0);
	EXPECT_AT(TEST_VA + P(3), P(2), 1, P(9));
	EXPECT_AT(TEST_VA + P(5), P(3), 0, P(5));
	EXPECT_NONE(TEST_VA + P(2), P(2), false);
	EXPECT_NONE(TEST_VA + P(4), P(2), false);

	vm_test_map(t, TEST_VA + P(8), 2, 0, P(4), 0);
	KUNIT_ASSERT_EQ(test, 0, vm_test_unmap(t, TEST_VA + P(1), P(9)));
	EXPECT_AT(TEST_VA, P(1), 0, 0);
	EXPECT_NONE(TEST_VA + P(1), 1, false);
	EXPECT_NONE(TEST_VA + P(9), 1, false);
	EXPECT_AT(TEST_VA + P(10), P(2), 2, P(2));

	/* Adjacent mappings are two, even if they continue one BO. */
	vm_test_map(t, TEST_VA + P(20), 3, 0, P(1), 0);
	vm_test_map(t, TEST_VA + P(21), 3, P(1), P(1), 0);
	EXPECT_AT(TEST_VA + P(20), P(1), 3, 0);
	EXPECT_AT(TEST_VA + P(21), P(1), 3, P(1));
	EXPECT_NONE(TEST_VA + P(20), P(2), false);
	KUNIT_EXPECT_EQ(test, 0, vm_test_unmap(t, TEST_VA, P(TEST_PAGES)));
	KUNIT_EXPECT_EQ(test, 0, vm_test_unmap(t, TEST_VA, P(TEST_PAGES)));
	EXPECT_NONE(TEST_VA, 1, false);
}

static void vm_readonly(struct kunit *test)
{
	struct vm_test *t = test->priv;
	u64 at;

	vm_test_map(t, TEST_VA, 0, 0, P(8), DRM_SPYRE_VM_MAP_READONLY);
	EXPECT_AT(TEST_VA, P(8), 0, 0);
	EXPECT_NONE(TEST_VA, 1, true);
	/* The pieces stay what they were. */
	vm_test_map(t, TEST_VA + P(3), 1, 0, P(1), 0);
	EXPECT_NONE(TEST_VA + P(2), 1, true);
	EXPECT_NONE(TEST_VA + P(4), 1, true);
	KUNIT_EXPECT_EQ(test, 1, vm_test_find(t, TEST_VA + P(3), P(1), true, &at));
	vm_test_map(t, TEST_VA, 0, 0, P(8), 0);
	KUNIT_EXPECT_EQ(test, 0, vm_test_find(t, TEST_VA, P(8), true, &at));
}

/* A mapping keeps its BO alive, and releases it at its end. */
static void vm_keeps_bo(struct kunit *test)
{
	struct vm_test *t = test->priv;

	vm_test_map(t, TEST_VA, 0, 0, P(8), 0);
	vm_test_unmap(t, TEST_VA + P(2), P(1));
	spyre_bo_put(t->bo[0]);
	KUNIT_EXPECT_EQ(test, t->live, (u32)TEST_BOS);
	vm_test_unmap(t, TEST_VA, P(2));
	KUNIT_EXPECT_EQ(test, t->live, (u32)TEST_BOS);
	vm_test_map(t, TEST_VA, 1, 0, P(8), 0);
	KUNIT_EXPECT_EQ(test, t->live, (u32)TEST_BOS - 1);
	t->bo[0] = NULL;
}

/* The content of the window's pages; a mapping is known by the operation that made it. */
struct vm_page {
	int bo;
	u32 offset;
	u32 made;
	bool readonly;
};

static void vm_random_compare(struct kunit *test, struct vm_test *t, struct rnd_state *random,
			      const struct vm_page *page)
{
	u32 first = prandom_u32_state(random) % TEST_PAGES, i;
	u32 num = 1 + prandom_u32_state(random) % (TEST_PAGES - first);
	bool write = prandom_u32_state(random) & 1, one = true;
	u64 at;
	int found;

	for (i = 0; i < TEST_PAGES; i++) {
		found = vm_test_find(t, TEST_VA + P(i), P(1), false, &at);
		KUNIT_ASSERT_EQ(test, found, page[i].bo);
		if (found >= 0)
			KUNIT_ASSERT_EQ(test, at, P(page[i].offset));
		found = vm_test_find(t, TEST_VA + P(i), P(1), true, &at);
		KUNIT_ASSERT_EQ(test, found, page[i].readonly ? -EFAULT : page[i].bo);
	}
	for (i = first; i < first + num; i++)
		one &= page[i].bo >= 0 && page[i].made == page[first].made &&
		       !(write && page[i].readonly);
	found = vm_test_find(t, TEST_VA + P(first), P(num), write, &at);
	KUNIT_ASSERT_EQ(test, found, one ? page[first].bo : -EFAULT);
}

static void vm_random(struct kunit *test)
{
	struct vm_test *t = test->priv;
	struct vm_page *page = kunit_kcalloc(test, TEST_PAGES, sizeof(*page), GFP_KERNEL);
	struct rnd_state random;
	u32 round, first, num, offset, i;
	bool readonly;
	int bo, ret;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < TEST_PAGES; i++)
		page[i].bo = -EFAULT;
	prandom_seed_state(&random, 4);
	for (round = 1; round <= TEST_ROUNDS; round++) {
		first = prandom_u32_state(&random) % TEST_PAGES;
		num = 1 + prandom_u32_state(&random) % (TEST_PAGES - first);
		/* Small ones leave something to cut. */
		if (prandom_u32_state(&random) & 3)
			num = 1 + num % 6 % (TEST_PAGES - first);
		offset = prandom_u32_state(&random) % (TEST_PAGES - num + 1);
		bo = prandom_u32_state(&random) % (TEST_BOS + 1);
		readonly = prandom_u32_state(&random) & 1;
		if (bo == TEST_BOS) {
			bo = -EFAULT;
			readonly = false;
			ret = vm_test_unmap(t, TEST_VA + P(first), P(num));
		} else {
			ret = vm_test_map(t, TEST_VA + P(first), bo, P(offset), P(num),
					  readonly ? DRM_SPYRE_VM_MAP_READONLY : 0);
		}
		KUNIT_ASSERT_EQ(test, 0, ret);
		for (i = 0; i < num; i++)
			page[first + i] = (struct vm_page) {
				.bo = bo, .offset = offset + i, .made = round,
				.readonly = readonly,
			};
		vm_random_compare(test, t, &random, page);
	}
}

static struct kunit_case vm_tests[] = {
	KUNIT_CASE(vm_find),
	KUNIT_CASE(vm_check),
	KUNIT_CASE(vm_bounds_of_bo),
	KUNIT_CASE(vm_remap),
	KUNIT_CASE(vm_readonly),
	KUNIT_CASE(vm_keeps_bo),
	KUNIT_CASE_SLOW(vm_random),
	{}
};

static struct kunit_suite vm_suite = {
	.name = "spyre_vm",
	.init = vm_test_init,
	.exit = vm_test_exit,
	.test_cases = vm_tests,
};

kunit_test_suite(vm_suite);
