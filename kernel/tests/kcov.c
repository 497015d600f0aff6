// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/kcov for kernels without CONFIG_KCOV: the same three calls,
 * for one task at a time, and the module's own code alone.  Compiled in by
 * make module SPYRE_KCOV=1, for fuzz-ioctl; not part of the driver.
 */
#include <linux/debugfs.h>
#include <linux/kcov.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "kcov.h"

#define SPYRE_KCOV_MAX BIT(20)

/* Protects everything below except the data that the traced task reads. */
static DEFINE_MUTEX(spyre_kcov_lock);
static struct dentry *spyre_kcov_file;
/* PCs, behind their number. */
static unsigned long *spyre_kcov_area;
static unsigned long spyre_kcov_size;
/* Cleared before the area goes, by the task itself or after its end. */
static struct task_struct *spyre_kcov_task;

noinline void notrace __sanitizer_cov_trace_pc(void)
{
	unsigned long at;

	if (READ_ONCE(spyre_kcov_task) != current || !in_task())
		return;
	at = READ_ONCE(spyre_kcov_area[0]) + 1;
	if (at >= spyre_kcov_size)
		return;
	WRITE_ONCE(spyre_kcov_area[0], at);
	/* An interrupt in between has come and gone. */
	barrier();
	spyre_kcov_area[at] = _RET_IP_;
}

static long spyre_kcov_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	guard(mutex)(&spyre_kcov_lock);
	switch (cmd) {
	case KCOV_INIT_TRACE:
		if (spyre_kcov_area)
			return -EBUSY;
		if (arg < 2 || arg > SPYRE_KCOV_MAX)
			return -EINVAL;
		spyre_kcov_area = vmalloc_user(arg * sizeof(*spyre_kcov_area));
		if (!spyre_kcov_area)
			return -ENOMEM;
		spyre_kcov_size = arg;
		return 0;
	case KCOV_ENABLE:
		if (!spyre_kcov_area || spyre_kcov_task)
			return -EBUSY;
		if (arg != KCOV_TRACE_PC)
			return -EINVAL;
		WRITE_ONCE(spyre_kcov_task, current);
		return 0;
	case KCOV_DISABLE:
		if (spyre_kcov_task != current)
			return -EINVAL;
		WRITE_ONCE(spyre_kcov_task, NULL);
		return 0;
	default:
		return -ENOTTY;
	}
}

static int spyre_kcov_mmap(struct file *file, struct vm_area_struct *vma)
{
	guard(mutex)(&spyre_kcov_lock);
	return spyre_kcov_area ? remap_vmalloc_range(vma, spyre_kcov_area, 0) : -EINVAL;
}

/* One open file at a time, so this is the end of the task's interest as well. */
static int spyre_kcov_release(struct inode *inode, struct file *file)
{
	guard(mutex)(&spyre_kcov_lock);
	WRITE_ONCE(spyre_kcov_task, NULL);
	vfree(spyre_kcov_area);
	spyre_kcov_area = NULL;
	file->private_data = NULL;
	inode->i_private = NULL;
	return 0;
}

static int spyre_kcov_open(struct inode *inode, struct file *file)
{
	guard(mutex)(&spyre_kcov_lock);
	if (inode->i_private)
		return -EBUSY;
	inode->i_private = file;
	return 0;
}

static const struct file_operations spyre_kcov_fops = {
	.owner = THIS_MODULE,
	.open = spyre_kcov_open,
	.release = spyre_kcov_release,
	.unlocked_ioctl = spyre_kcov_ioctl,
	.mmap = spyre_kcov_mmap,
};

void spyre_kcov_init(void)
{
	spyre_kcov_file = debugfs_create_file_unsafe("kcov", 0600, NULL, NULL, &spyre_kcov_fops);
}

void spyre_kcov_exit(void)
{
	debugfs_remove(spyre_kcov_file);
}
