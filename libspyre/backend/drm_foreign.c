// SPDX-License-Identifier: MIT
/*
 * Objects of other contexts of this process in a card's file: their buffers, for copies
 * between cards, and the timelines of their queues, for waits. Each is imported once and
 * kept until its owner frees it, or the card is closed.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include <xf86drm.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/array.h"
#include "libspyre/base/error.h"

/* Protects the list of open cards; taken before the lock of a card's table. */
static pthread_mutex_t cards_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, spyre_drm_card) cards = TAILQ_HEAD_INITIALIZER(cards);
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&cards_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&cards_lock);
}

/* The child shares the files of its parent's cards and must not close their handles. */
static void in_child(void)
{
	TAILQ_INIT(&cards);
	pthread_mutex_unlock(&cards_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void spyre_drm_foreign_open(struct spyre_drm_card *card)
{
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&cards_lock);
	TAILQ_INSERT_TAIL(&cards, card, link);
	pthread_mutex_unlock(&cards_lock);
}

void spyre_drm_foreign_close(struct spyre_drm_card *card)
{
	pthread_mutex_lock(&cards_lock);
	TAILQ_REMOVE(&cards, card, link);
	pthread_mutex_unlock(&cards_lock);
	/* The handles end with the file. */
	free(card->foreign);
}

static struct spyre_drm_foreign *find(struct spyre_drm_card *card, const void *owner,
				      uint32_t theirs)
{
	for (size_t i = 0; i < card->num_foreign; i++)
		if (card->foreign[i].owner == owner && card->foreign[i].theirs == theirs)
			return &card->foreign[i];
	return NULL;
}

bool spyre_drm_foreign_has_buffer(struct spyre_drm_card *card, uint32_t handle)
{
	for (size_t i = 0; i < card->num_foreign; i++)
		if (card->foreign[i].is_buffer && card->foreign[i].ours == handle)
			return true;
	return false;
}

static void release(struct spyre_drm_card *card, const struct spyre_drm_foreign *entry)
{
	bool shared = false;

	if (!entry->is_buffer) {
		drmSyncobjDestroy(card->fd, entry->ours);
		return;
	}
	/* A file has one handle per buffer: the application may have imported it as well. */
	for (size_t i = 0; i < card->device.count; i++)
		shared |= card->device.range[i].handle == entry->ours;
	if (!shared)
		spyre_drm_gem_close(card, entry->ours);
}

void spyre_drm_foreign_drop(const void *owner, uint32_t theirs)
{
	struct spyre_drm_foreign *entry;
	struct spyre_drm_card *card;

	pthread_mutex_lock(&cards_lock);
	TAILQ_FOREACH(card, &cards, link) {
		pthread_mutex_lock(&card->device_lock);
		entry = find(card, owner, theirs);
		if (entry) {
			release(card, entry);
			*entry = card->foreign[--card->num_foreign];
		}
		pthread_mutex_unlock(&card->device_lock);
	}
	pthread_mutex_unlock(&cards_lock);
}

static int export(const struct spyre_drm_card *from, bool is_buffer, uint32_t theirs, int *fd)
{
	if (is_buffer)
		return drmPrimeHandleToFD(from->fd, theirs, DRM_CLOEXEC | DRM_RDWR, fd);
	return drmSyncobjHandleToFD(from->fd, theirs, fd);
}

static int import(struct spyre_drm_card *card, bool is_buffer, int fd, uint32_t *ours)
{
	if (is_buffer)
		return drmPrimeFDToHandle(card->fd, fd, ours);
	return drmSyncobjFDToHandle(card->fd, fd, ours);
}

spyre_status spyre_drm_foreign_get(struct spyre_drm_card *card, struct spyre_drm_card *from,
				   const void *owner, bool is_buffer, uint32_t theirs,
				   uint32_t *ours)
{
	struct spyre_drm_foreign entry = {
		.owner = owner, .is_buffer = is_buffer, .theirs = theirs,
	};
	const struct spyre_drm_foreign *found;
	int fd = -1, error = 0;

	pthread_mutex_lock(&card->device_lock);
	found = find(card, owner, theirs);
	if (found)
		*ours = found->ours;
	else if (!spyre_array_reserve(&card->foreign, &card->max_foreign, card->num_foreign + 1,
				      sizeof(*card->foreign)))
		error = ENOMEM;
	else if (export(from, is_buffer, theirs, &fd) || import(card, is_buffer, fd, &entry.ours))
		error = errno;
	if (!found && !error) {
		card->foreign[card->num_foreign++] = entry;
		*ours = entry.ours;
	}
	pthread_mutex_unlock(&card->device_lock);
	if (fd >= 0)
		close(fd);
	if (!error)
		return SPYRE_SUCCESS;
	return spyre_drm_error(card, error, "import of a %s of %s",
			       is_buffer ? "buffer" : "queue's timeline",
			       from->base.properties.node);
}
