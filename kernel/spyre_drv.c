// SPDX-License-Identifier: GPL-2.0-only
/*
 * spyre_vdev: virtual IBM Spyre cards behind the kernel's accel interface.
 *
 * Each card, and each VF of one, is a platform device with one /dev/accel node.
 * This file creates the devices and lists the operations of a node.
 */
#include <linux/fpu.h>
#include <linux/mm.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>

#include "spyre_bind.h"
#include "spyre_bo.h"
#include "spyre_card.h"
#include "spyre_compat.h"
#include "spyre_coredump.h"
#include "spyre_debugfs.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_hwmon.h"
#include "spyre_inject.h"
#include "spyre_lpddr.h"
#include "spyre_prime.h"
#include "spyre_program.h"
#include "spyre_query.h"
#include "spyre_queue.h"
#include "spyre_reset.h"
#include "spyre_shmem.h"
#include "spyre_submit.h"
#include "spyre_telemetry.h"
#include "spyre_uring.h"
#include "tests/kcov.h"

#define SPYRE_LPDDR_MAX_MIB (128u << 10)

static unsigned int cards = 1;
static unsigned int cores = SPYRE_MAX_CORES;
static unsigned int lpddr_mib;
static unsigned int vfs;

static int spyre_param_cards(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, DRM_SPYRE_MAX_CARDS);
}

static int spyre_param_cores(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, SPYRE_MAX_CORES);
}

static int spyre_param_lpddr(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, SPYRE_LPDDR_MIN_MIB, SPYRE_LPDDR_MAX_MIB);
}

static int spyre_param_vfs(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 0, SPYRE_MAX_VFS);
}

static const struct kernel_param_ops spyre_cards_ops = {
	.set = spyre_param_cards, .get = param_get_uint,
};

static const struct kernel_param_ops spyre_cores_ops = {
	.set = spyre_param_cores, .get = param_get_uint,
};

static const struct kernel_param_ops spyre_lpddr_ops = {
	.set = spyre_param_lpddr, .get = param_get_uint,
};

static const struct kernel_param_ops spyre_vfs_ops = {
	.set = spyre_param_vfs, .get = param_get_uint,
};

module_param_cb(cards, &spyre_cards_ops, &cards, 0444);
MODULE_PARM_DESC(cards, "number of cards, 1 to 8 (1)");
module_param_cb(cores, &spyre_cores_ops, &cores, 0444);
MODULE_PARM_DESC(cores, "cores of a card, 1 to 32 (32)");
module_param_cb(lpddr_mib, &spyre_lpddr_ops, &lpddr_mib, 0444);
MODULE_PARM_DESC(lpddr_mib, "LPDDR5 of a card in MiB, 16 to 131072 (half of the host's memory)");
module_param_cb(vfs, &spyre_vfs_ops, &vfs, 0444);
MODULE_PARM_DESC(vfs, "virtual functions that each card is split into, 0 to 16 (0)");

static struct platform_device *spyre_cards[DRM_SPYRE_MAX_CARDS];

static const struct drm_ioctl_desc spyre_ioctls[] = {
	DRM_IOCTL_DEF_DRV(SPYRE_DEV_QUERY, spyre_ioctl_dev_query, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_CREATE, spyre_ioctl_bo_create, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_MMAP_OFFSET, spyre_ioctl_bo_mmap_offset, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_VM_BIND, spyre_ioctl_vm_bind, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_PROGRAM_CREATE, spyre_ioctl_program_create, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_PROGRAM_DESTROY, spyre_ioctl_program_destroy, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_CREATE, spyre_ioctl_queue_create, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_DESTROY, spyre_ioctl_queue_destroy, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_QUERY, spyre_ioctl_queue_query, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_SUBMIT, spyre_ioctl_submit, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_RESET, spyre_ioctl_reset, DRM_ROOT_ONLY),
	DRM_IOCTL_DEF_DRV(SPYRE_CONTEXT_RESET, spyre_ioctl_context_reset, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_INFO, spyre_ioctl_bo_info, 0),
};

/*
 * The core's ioctls that make sense on this node.  Some of the others
 * dereference the DRM master, which an accel file does not have.
 */
static bool spyre_core_ioctl_allowed(unsigned int nr)
{
	switch (nr) {
	case DRM_IOCTL_NR(DRM_IOCTL_VERSION):
	case DRM_IOCTL_NR(DRM_IOCTL_GET_CAP):
	case DRM_IOCTL_NR(DRM_IOCTL_GEM_CLOSE):
	case DRM_IOCTL_NR(DRM_IOCTL_PRIME_HANDLE_TO_FD):
	case DRM_IOCTL_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_CREATE):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_DESTROY):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_TRANSFER):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_WAIT):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_EVENTFD):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_RESET):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_SIGNAL):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_QUERY):
		return true;
	default:
		return false;
	}
}

/*
 * Unplug waits for code between drm_dev_enter() and drm_dev_exit(), and a user
 * controls the duration of a page fault in an argument and of another driver's
 * fence.  So the ioctls enter the device only around accesses to the card:
 *
 *	BO_CREATE, PROGRAM_CREATE	charging LPDDR5 (spyre_lpddr_charge())
 *	QUEUE_CREATE			publication of the queue
 *	SUBMIT, also by io_uring	publication of the job, after all waits
 *	RESET				all of it: uses the engine's threads, copies nothing,
 *					waits only for work that was told to stop
 *
 * The other calls use objects of the file, which holds the device's memory.  The
 * engine exists after an unplug, but without threads and jobs, so QUEUE_DESTROY,
 * CONTEXT_RESET and close() have nothing to wait for.  DEV_QUERY reads stored
 * numbers.  VM_BIND, BO_MMAP_OFFSET, BO_INFO, QUEUE_QUERY, PROGRAM_DESTROY, page
 * faults and the cancellation of ring commands do not access the card.
 * drm_ioctl() itself rejects calls after the unplug.
 */
typedef long (*spyre_ioctl_fn)(struct file *filp, unsigned int cmd, unsigned long arg);

static long spyre_do_ioctl(struct file *filp, unsigned int cmd, unsigned long arg,
			   spyre_ioctl_fn fn)
{
	const unsigned int nr = DRM_IOCTL_NR(cmd);

	/* The core's compat path does not check the type. */
	if (_IOC_TYPE(cmd) != DRM_IOCTL_BASE)
		return -ENOTTY;
	if ((nr < DRM_COMMAND_BASE || nr >= DRM_COMMAND_END) && !spyre_core_ioctl_allowed(nr))
		return -EOPNOTSUPP;
	return fn(filp, cmd, arg);
}

static long spyre_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return spyre_do_ioctl(filp, cmd, arg, drm_ioctl);
}

#ifdef CONFIG_COMPAT
static long spyre_compat_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return spyre_do_ioctl(filp, cmd, arg, drm_compat_ioctl);
}
#else
#define spyre_compat_ioctl NULL
#endif

static const struct file_operations spyre_fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = spyre_ioctl,
	.compat_ioctl = spyre_compat_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = drm_gem_mmap,
	.get_unmapped_area = spyre_shmem_get_unmapped_area,
	.uring_cmd = spyre_uring_cmd,
	.fop_flags = FOP_UNSIGNED_OFFSET,
	.show_fdinfo = drm_show_fdinfo,
};

/*
 * Versions of the interface:
 * 1.0	initial
 * 1.1	RESET, io_uring
 * 1.2	CONTEXT_RESET, BO_INFO, context query, asynchronous VM_BIND, core
 *	partitions, imported dma-bufs, virtual functions
 * 1.3	DMA of boxes
 * 1.4	PEER_COPY, counters of peer bytes
 * 1.5	counters of PCIe bytes, units, launches, energy, peak memory and faults
 */
static const struct drm_driver spyre_driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | SPYRE_DRIVER_GEM_GPUVA |
			   DRIVER_SYNCOBJ | DRIVER_SYNCOBJ_TIMELINE,
	.name = SPYRE_DRIVER,
	.desc = "virtual IBM Spyre card",
	.major = 1,
	.minor = 5,
	.fops = &spyre_fops,
	.open = spyre_file_open,
	.postclose = spyre_file_close,
	.ioctls = spyre_ioctls,
	.num_ioctls = ARRAY_SIZE(spyre_ioctls),
	.gem_prime_import = spyre_prime_import,
	.show_fdinfo = spyre_file_show_fdinfo,
};

static void spyre_device_free(struct drm_device *drm, void *data)
{
	struct spyre_device *spyre = data;

	if (spyre->sched_wq)
		destroy_workqueue(spyre->sched_wq);
	if (spyre->timeout_wq)
		destroy_workqueue(spyre->timeout_wq);
	spyre_engine_free(&spyre->engine);
	if (spyre->pf)
		drm_dev_put(&spyre->pf->drm);
}

static u64 spyre_lpddr_bytes(void)
{
	const u64 half = round_down((u64)totalram_pages() * PAGE_SIZE / 2, 1u << 20);

	if (lpddr_mib)
		return (u64)lpddr_mib << 20;
	return clamp(half, (u64)SPYRE_LPDDR_MIN_MIB << 20, (u64)SPYRE_LPDDR_MAX_MIB << 20);
}

/* Sets the size of a device: that of a card, or the share that its parent assigned to a VF. */
static void spyre_init_device(struct spyre_device *spyre, struct platform_device *pdev)
{
	const struct spyre_share *share = dev_get_platdata(&pdev->dev);

	uuid_gen(&spyre->uuid);
	spyre_card_init(spyre);
	spyre_lpddr_init(&spyre->lpddr);
	spyre_reset_init(spyre);
	spyre_prime_start(spyre);
	spyre_inject_init(spyre);
	spyre_coredump_init(spyre);
	if (!share) {
		spyre->index = pdev->id;
		spyre->num_cores = cores;
		spyre->lpddr_bytes = spyre_lpddr_bytes();
		return;
	}
	spyre->pf = dev_get_drvdata(pdev->dev.parent);
	drm_dev_get(&spyre->pf->drm);
	spyre->index = spyre->pf->index;
	spyre->vf = share->vf;
	spyre->num_cores = share->num_cores;
	spyre->lpddr_bytes = share->lpddr_bytes;
}

static int spyre_start_engine(struct spyre_device *spyre)
{
	char name[32];
	int ret;

	if (spyre->vf)
		snprintf(name, sizeof(name), "spyre%uvf%u", spyre->index, spyre->vf);
	else
		snprintf(name, sizeof(name), "spyre%u", spyre->index);
	/* A bound workqueue: the submitter's CPU continues with the job, and no other is woken. */
	spyre->sched_wq = alloc_workqueue("spyre-sched",
					  WQ_MEM_RECLAIM | WQ_HIGHPRI | SPYRE_WQ_BOUND, 0);
	spyre->timeout_wq = alloc_ordered_workqueue("spyre-timeout", WQ_MEM_RECLAIM);
	if (!spyre->sched_wq || !spyre->timeout_wq)
		return -ENOMEM;
	ret = spyre_engine_start(&spyre->engine, name, spyre->num_cores,
				 spyre_card_cpus(spyre));
	if (ret)
		spyre_engine_stop(&spyre->engine);
	return ret;
}

/* Open files stay open; their calls return -ENODEV from here on. */
static void spyre_stop(struct spyre_device *spyre)
{
	drm_dev_unplug(&spyre->drm);
	spyre_prime_stop(spyre);
	spyre_hwmon_stop(spyre);
	spyre_engine_stop(&spyre->engine);
	/* No job runs any more, so no further fault can be raised. */
	spyre_coredump_stop(spyre);
	spyre_inject_clear(spyre);
}

static int spyre_start(struct spyre_device *spyre)
{
	int ret;

	ret = drmm_add_action_or_reset(&spyre->drm, spyre_device_free, spyre);
	if (ret)
		return ret;
	ret = spyre_start_engine(spyre);
	if (ret)
		return ret;
	ret = spyre_hwmon_start(spyre);
	if (ret)
		goto stop_engine;
	ret = drm_dev_register(&spyre->drm, 0);
	if (ret)
		goto stop_hwmon;
	spyre_debugfs_start(spyre);
	if (spyre->pf)
		ret = spyre_card_add_vf(spyre);
	else
		ret = spyre_card_set_vfs(spyre, vfs);
	if (ret)
		spyre_stop(spyre);
	return ret;

stop_hwmon:
	spyre_hwmon_stop(spyre);
stop_engine:
	spyre_engine_stop(&spyre->engine);
	return ret;
}

static int spyre_probe(struct platform_device *pdev)
{
	struct spyre_device *spyre;
	int ret;

	spyre = devm_drm_dev_alloc(&pdev->dev, &spyre_driver, struct spyre_device, drm);
	if (IS_ERR(spyre)) {
		ret = PTR_ERR(spyre);
	} else {
		platform_set_drvdata(pdev, spyre);
		spyre_init_device(spyre, pdev);
		ret = spyre_start(spyre);
	}
	if (ret && dev_get_platdata(&pdev->dev))
		spyre_card_vf_failed(dev_get_drvdata(pdev->dev.parent), ret);
	return ret;
}

static void spyre_remove(struct platform_device *pdev)
{
	struct spyre_device *spyre = platform_get_drvdata(pdev);

	if (!spyre->pf)
		spyre_card_remove_vfs(spyre);
	spyre_stop(spyre);
	if (spyre->pf)
		spyre_card_remove_vf(spyre);
}

static const struct platform_device_id spyre_ids[] = {
	{ .name = SPYRE_DRIVER },
	{ .name = SPYRE_VF_DEVICE },
	{ }
};

static struct platform_driver spyre_platform_driver = {
	.probe = spyre_probe,
	.remove = spyre_remove,
	.id_table = spyre_ids,
	.driver = {
		.name = SPYRE_DRIVER,
		.dev_groups = spyre_groups,
		/* Callers that create VFs wait until these are probed. */
		.probe_type = PROBE_FORCE_SYNCHRONOUS,
	},
};

static void spyre_remove_cards(void)
{
	u32 i;

	for (i = 0; i < DRM_SPYRE_MAX_CARDS; i++)
		platform_device_unregister(spyre_cards[i]);
}

static int __init spyre_init(void)
{
	u32 i;
	int ret;

	if (!kernel_fpu_available()) {
		pr_err("spyre_vdev: the kernel cannot use this processor's floating point, which computes the card's numbers\n");
		return -ENODEV;
	}
	ret = spyre_card_check_vfs(cores, spyre_lpddr_bytes(), vfs);
	if (ret) {
		pr_err("spyre_vdev: vfs=%u is more than the card can be split into: a VF has a core and %u MiB at least\n",
		       vfs, SPYRE_LPDDR_MIN_MIB);
		return ret;
	}
	ret = spyre_queue_init();
	if (ret)
		return ret;
	ret = spyre_prime_init();
	if (ret) {
		spyre_queue_exit();
		return ret;
	}
	spyre_shmem_mount();
	spyre_kcov_init();
	ret = platform_driver_register(&spyre_platform_driver);
	if (ret)
		goto fail;
	for (i = 0; i < cards; i++) {
		struct platform_device *pdev =
			platform_device_register_simple(SPYRE_DRIVER, i, NULL, 0);

		if (IS_ERR(pdev)) {
			ret = PTR_ERR(pdev);
			spyre_remove_cards();
			platform_driver_unregister(&spyre_platform_driver);
			goto fail;
		}
		spyre_cards[i] = pdev;
	}
	return 0;

fail:
	spyre_shmem_unmount();
	spyre_prime_exit();
	spyre_queue_exit();
	spyre_kcov_exit();
	return ret;
}

static void __exit spyre_exit(void)
{
	spyre_remove_cards();
	platform_driver_unregister(&spyre_platform_driver);
	spyre_kcov_exit();
	spyre_queue_exit();
	spyre_prime_exit();
	spyre_shmem_unmount();
	/* Waits for the RCU callbacks of the last fences, which are in this module. */
	rcu_barrier();
}

module_init(spyre_init);
module_exit(spyre_exit);

MODULE_AUTHOR("The spyre_vdev developers");
MODULE_DESCRIPTION("virtual IBM Spyre accelerator cards");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
