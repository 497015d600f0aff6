// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounting of the card's memory by user: the amount that each owns and may allocate.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>

#include "spyre_card.h"
#include "spyre_charge.h"
#include "spyre_device.h"
#include "spyre_file.h"
#include "spyre_lpddr.h"

/* Part of the capacity that is reserved for users who own less than their share. */
#define SPYRE_LPDDR_KEPT 16
/* Part of the capacity that is a user's share. */
#define SPYRE_LPDDR_SHARE 128

void spyre_lpddr_init(struct spyre_lpddr *lpddr)
{
	spin_lock_init(&lpddr->lock);
	INIT_LIST_HEAD(&lpddr->users);
}

static struct spyre_lpddr_user *spyre_lpddr_find(struct spyre_lpddr *lpddr, kuid_t uid)
{
	struct spyre_lpddr_user *user;

	lockdep_assert_held(&lpddr->lock);
	list_for_each_entry(user, &lpddr->users, node)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

int spyre_lpddr_open(struct spyre_file *sfile)
{
	struct spyre_lpddr *lpddr = &sfile->spyre->lpddr;
	struct spyre_lpddr_user *user, *fresh;
	const kuid_t uid = current_uid();

	if (ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE))
		return 0;
	fresh = kzalloc(sizeof(*fresh), SPYRE_GFP);
	if (!fresh)
		return -ENOMEM;
	scoped_guard(spinlock, &lpddr->lock) {
		user = spyre_lpddr_find(lpddr, uid);
		if (!user) {
			user = no_free_ptr(fresh);
			user->uid = uid;
			list_add(&user->node, &lpddr->users);
		}
		user->files++;
	}
	sfile->user = user;
	kfree(fresh);
	return 0;
}

void spyre_lpddr_close(struct spyre_file *sfile)
{
	struct spyre_lpddr *lpddr = &sfile->spyre->lpddr;
	struct spyre_lpddr_user *user = sfile->user;

	if (!user)
		return;
	scoped_guard(spinlock, &lpddr->lock) {
		if (--user->files)
			return;
		list_del(&user->node);
	}
	kfree(user);
}

static u64 spyre_lpddr_part(u64 total, u32 divisor)
{
	return round_down(div_u64(total, divisor), PAGE_SIZE);
}

/* Returns the bytes that the file can allocate; @used are those of all users of the function. */
static u64 spyre_lpddr_grant(const struct spyre_file *sfile, u64 used)
{
	const u64 total = sfile->spyre->lpddr_bytes, left = total - used;
	const u64 kept = spyre_lpddr_part(total, SPYRE_LPDDR_KEPT);
	const u64 share = spyre_lpddr_part(total, SPYRE_LPDDR_SHARE);
	u64 own, beyond;

	if (!sfile->user)
		return left;
	beyond = left > kept ? left - kept : 0;
	own = READ_ONCE(sfile->user->used);
	return own < share ? max(beyond, min(left, share - own)) : beyond;
}

static int spyre_lpddr_take(struct spyre_file *sfile, u64 bytes)
{
	struct spyre_lpddr *lpddr = &sfile->spyre->lpddr;

	guard(spinlock)(&lpddr->lock);
	if (bytes > spyre_lpddr_grant(sfile, atomic64_read(&lpddr->used)))
		return -ENOSPC;
	atomic64_add(bytes, &lpddr->used);
	if (sfile->user)
		WRITE_ONCE(sfile->user->used, sfile->user->used + bytes);
	WRITE_ONCE(sfile->peak, max_t(u64, sfile->peak, atomic64_add_return(bytes, &sfile->used)));
	return 0;
}

static void spyre_lpddr_note_peak(struct spyre_device *spyre)
{
	const s64 used = spyre_card_lpddr_used(spyre);
	s64 peak = atomic64_read(&spyre->lpddr.peak);

	while (used > peak && !atomic64_try_cmpxchg(&spyre->lpddr.peak, &peak, used))
		;
}

u64 spyre_lpddr_peak(struct spyre_device *spyre)
{
	return atomic64_read(&spyre->lpddr.peak);
}

int spyre_lpddr_charge(struct spyre_file *sfile, u64 bytes)
{
	struct spyre_device *spyre = sfile->spyre;
	int ret, idx;

	/* An unplugged card grants no memory; files release theirs later. */
	if (!drm_dev_enter(&spyre->drm, &idx))
		return -ENODEV;
	ret = spyre_card_hold(spyre);
	if (!ret) {
		ret = spyre_lpddr_take(sfile, bytes);
		if (ret)
			spyre_card_release(spyre);
	}
	if (!ret) {
		spyre_lpddr_note_peak(spyre);
		if (spyre->pf)
			spyre_lpddr_note_peak(spyre->pf);
	}
	drm_dev_exit(idx);
	return ret;
}

void spyre_lpddr_uncharge(struct spyre_file *sfile, u64 bytes)
{
	struct spyre_device *spyre = sfile->spyre;

	atomic64_sub(bytes, &sfile->used);
	scoped_guard(spinlock, &spyre->lpddr.lock) {
		atomic64_sub(bytes, &spyre->lpddr.used);
		if (sfile->user)
			WRITE_ONCE(sfile->user->used, sfile->user->used - bytes);
	}
	spyre_card_release(spyre);
}

u64 spyre_lpddr_free(struct spyre_file *sfile)
{
	return spyre_lpddr_grant(sfile, spyre_card_lpddr_used(sfile->spyre));
}
