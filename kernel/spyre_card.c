// SPDX-License-Identifier: GPL-2.0-only
/*
 * PF and VFs of a card: splitting it, the share of each, and their totals.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/platform_device.h>
#include <linux/wait_bit.h>

#include <drm/drm_drv.h>

#include "spyre_card.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_events.h"

/* Load is reported over the last one to two of these. */
#define SPYRE_SAMPLE_NS NSEC_PER_SEC
/* Work of closed files ends long before this. */
#define SPYRE_CARD_SETTLE_JIFFIES HZ

void spyre_card_init(struct spyre_device *spyre)
{
	struct spyre_card *card = &spyre->card;

	mutex_init(&card->lock);
	spin_lock_init(&card->list_lock);
	INIT_LIST_HEAD(&card->vfs);
	spyre->since_ns = ktime_get_ns();
	card->sample[0].ns = spyre->since_ns;
	card->sample[1].ns = card->sample[0].ns;
}

int spyre_card_check_vfs(u32 num_cores, u64 lpddr_bytes, u32 count)
{
	if (count > SPYRE_MAX_VFS || count > num_cores ||
	    (u64)count * SPYRE_LPDDR_MIN_MIB > lpddr_bytes >> 20)
		return -ERANGE;
	return 0;
}

u32 spyre_card_total_vfs(const struct spyre_device *spyre)
{
	u32 count = SPYRE_MAX_VFS;

	while (spyre_card_check_vfs(spyre->num_cores, spyre->lpddr_bytes, count))
		count--;
	return count;
}

int spyre_card_hold(struct spyre_device *spyre)
{
	return atomic_inc_unless_negative(&spyre->card.users) ? 0 : -EBUSY;
}

void spyre_card_release(struct spyre_device *spyre)
{
	if (atomic_dec_and_test(&spyre->card.users))
		wake_up_var(&spyre->card.users);
}

u32 spyre_card_cpus(const struct spyre_device *spyre)
{
	const u32 cpus = num_online_cpus();

	if (!spyre->pf)
		return cpus;
	return max(1u, cpus * spyre->num_cores / spyre->pf->num_cores);
}

/* Returns the share of VF @vf of @count. */
static struct spyre_share spyre_card_share(const struct spyre_device *spyre, u32 vf, u32 count)
{
	const u32 cores = spyre->num_cores;
	const u32 mib = spyre->lpddr_bytes >> 20;

	return (struct spyre_share) {
		.vf = vf,
		.num_cores = cores / count + (vf <= cores % count),
		.lpddr_bytes = (u64)(mib / count + (vf <= mib % count)) << 20,
	};
}

static struct platform_device *spyre_card_make_vf(struct spyre_device *spyre, u32 vf, u32 count)
{
	const struct spyre_share share = spyre_card_share(spyre, vf, count);
	const struct platform_device_info info = {
		.parent = spyre->drm.dev,
		.name = SPYRE_VF_DEVICE,
		.id = spyre->index * SPYRE_MAX_VFS + vf - 1,
		.data = &share,
		.size_data = sizeof(share),
	};
	struct platform_device *pdev;
	int ret;

	lockdep_assert_held(&spyre->card.lock);
	WRITE_ONCE(spyre->card.vf_error, 0);
	pdev = platform_device_register_full(&info);
	if (IS_ERR(pdev))
		return pdev;
	/* The device exists even if its driver, or the core, refused to bind it. */
	ret = READ_ONCE(spyre->card.vf_error);
	if (!ret && !device_is_bound(&pdev->dev))
		ret = -ENODEV;
	if (ret) {
		platform_device_unregister(pdev);
		return ERR_PTR(ret);
	}
	return pdev;
}

static void spyre_card_join(struct spyre_device *spyre)
{
	struct spyre_card *card = &spyre->card;
	u32 i;

	lockdep_assert_held(&card->lock);
	for (i = 0; i < SPYRE_MAX_VFS; i++) {
		platform_device_unregister(card->vf_device[i]);
		card->vf_device[i] = NULL;
	}
	WRITE_ONCE(card->num_vfs, 0);
	atomic_set(&card->users, 0);
}

static int spyre_card_split(struct spyre_device *spyre, u32 count)
{
	struct spyre_card *card = &spyre->card;
	struct platform_device *pdev;
	u32 i;
	int ret;

	lockdep_assert_held(&card->lock);
	ret = spyre_card_check_vfs(spyre->num_cores, spyre->lpddr_bytes, count);
	if (ret)
		return ret;
	if (!wait_var_event_timeout(&card->users, !atomic_cmpxchg(&card->users, 0, -1),
				    SPYRE_CARD_SETTLE_JIFFIES))
		return -EBUSY;
	for (i = 0; i < count; i++) {
		pdev = spyre_card_make_vf(spyre, i + 1, count);
		if (IS_ERR(pdev)) {
			spyre_card_join(spyre);
			return PTR_ERR(pdev);
		}
		card->vf_device[i] = pdev;
	}
	WRITE_ONCE(card->num_vfs, count);
	return 0;
}

int spyre_card_set_vfs(struct spyre_device *spyre, u32 count)
{
	struct spyre_card *card = &spyre->card;
	int ret;

	scoped_guard(mutex, &card->lock) {
		if (count == card->num_vfs)
			return 0;
		if (count && card->num_vfs)
			return -EBUSY;
		if (count) {
			ret = spyre_card_split(spyre, count);
			if (ret)
				return ret;
		} else {
			spyre_card_join(spyre);
		}
		spyre_events_add_card(spyre, "vfs", count);
	}
	kobject_uevent(&spyre->drm.dev->kobj, KOBJ_CHANGE);
	return 0;
}

void spyre_card_remove_vfs(struct spyre_device *spyre)
{
	guard(mutex)(&spyre->card.lock);
	if (spyre->card.num_vfs)
		spyre_card_join(spyre);
}

int spyre_card_add_vf(struct spyre_device *vf)
{
	struct spyre_card *card = &vf->pf->card;
	int ret;

	ret = sysfs_create_link(&vf->drm.dev->kobj, &vf->pf->drm.dev->kobj, "physfn");
	if (ret)
		return ret;
	guard(spinlock)(&card->list_lock);
	list_add_tail(&vf->vf_node, &card->vfs);
	return 0;
}

void spyre_card_vf_failed(struct spyre_device *pf, int error)
{
	WRITE_ONCE(pf->card.vf_error, error);
}

/* Adds a VF's totals to its card's. The busy time is weighted by the VF's part of the card. */
static void spyre_vf_read_load(struct spyre_device *vf, struct spyre_stats *stats)
{
	spyre_engine_read_stats(&vf->engine, stats);
	stats->busy_ns = mul_u64_u32_div(stats->busy_ns, vf->num_cores, vf->pf->num_cores);
}

void spyre_card_remove_vf(struct spyre_device *vf)
{
	struct spyre_card *card = &vf->pf->card;
	struct spyre_stats stats;

	sysfs_remove_link(&vf->drm.dev->kobj, "physfn");
	guard(spinlock)(&card->list_lock);
	spyre_vf_read_load(vf, &stats);
	spyre_stats_add(&card->retired, &stats);
	list_del(&vf->vf_node);
}

static void spyre_card_read_load(struct spyre_device *spyre, struct spyre_stats *stats)
{
	struct spyre_stats more;
	struct spyre_device *vf;

	lockdep_assert_held(&spyre->card.list_lock);
	if (spyre->pf) {
		spyre_vf_read_load(spyre, stats);
		return;
	}
	spyre_engine_read_stats(&spyre->engine, stats);
	spyre_stats_add(stats, &spyre->card.retired);
	list_for_each_entry(vf, &spyre->card.vfs, vf_node) {
		spyre_vf_read_load(vf, &more);
		spyre_stats_add(stats, &more);
	}
}

void spyre_card_read_stats(struct spyre_device *spyre, struct spyre_stats *stats)
{
	if (spyre->pf) {
		spyre_engine_read_stats(&spyre->engine, stats);
		return;
	}
	guard(spinlock)(&spyre->card.list_lock);
	spyre_card_read_load(spyre, stats);
}

u64 spyre_card_read_energy(struct spyre_device *spyre)
{
	struct spyre_stats stats;
	u64 now;

	scoped_guard(spinlock, &spyre->card.list_lock) {
		now = ktime_get_ns();
		spyre_card_read_load(spyre, &stats);
	}
	return spyre_energy_model(stats.busy_ns, now - spyre->since_ns, stats.cost.macs,
				  stats.cost.bytes_read + stats.cost.bytes_written);
}

u64 spyre_card_lpddr_used(struct spyre_device *spyre)
{
	u64 used = atomic64_read(&spyre->lpddr.used);
	struct spyre_device *vf;

	guard(spinlock)(&spyre->card.list_lock);
	list_for_each_entry(vf, &spyre->card.vfs, vf_node)
		used += atomic64_read(&vf->lpddr.used);
	return used;
}

void spyre_card_read_power(struct spyre_device *spyre, u32 *milliwatt, u32 *millicelsius)
{
	struct spyre_card *card = &spyre->card;
	struct spyre_engine_sample now, since;

	scoped_guard(spinlock, &card->list_lock) {
		now.ns = ktime_get_ns();
		spyre_card_read_load(spyre, &now.stats);
		if (now.ns - card->sample[0].ns > SPYRE_SAMPLE_NS) {
			card->sample[1] = card->sample[0];
			card->sample[0] = now;
		}
		since = card->sample[1];
	}
	spyre_power_model(now.stats.busy_ns - since.stats.busy_ns, max(now.ns - since.ns, 1ull),
			  now.stats.cost.macs - since.stats.cost.macs,
			  now.stats.cost.bytes_read - since.stats.cost.bytes_read +
			  now.stats.cost.bytes_written - since.stats.cost.bytes_written,
			  milliwatt, millicelsius);
}

u32 spyre_card_get_vfs(struct spyre_device *spyre, struct spyre_device *vfs[SPYRE_MAX_VFS])
{
	struct spyre_device *vf;
	u32 count = 0;

	guard(spinlock)(&spyre->card.list_lock);
	list_for_each_entry(vf, &spyre->card.vfs, vf_node) {
		drm_dev_get(&vf->drm);
		vfs[count++] = vf;
	}
	return count;
}
