// SPDX-License-Identifier: MIT
/*
 * Each rank owns a segment, a memory file that the other ranks map. It holds a ring for each
 * class and sending rank. The sender writes the slots and @posted, the receiver @released; each
 * keeps its own count in the link and only compares it with the one in shared memory, so that
 * another rank can spoil data but not lead this one outside its slots.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libspyre/backend/futex.h"
#include "libspyre/comm/shm.h"
#include "libspyre/comm/socket.h"

/* Messages of one link that are on their way: enough for both ends to work at the same time. */
#define SLOTS 8
#define LINE 64

struct ring {
	_Alignas(LINE) _Atomic uint32_t posted;
	_Alignas(LINE) _Atomic uint32_t released;
	_Alignas(LINE) _Atomic uint32_t bytes[SLOTS];
};

struct segment {
	_Alignas(LINE) _Atomic uint32_t bell;
	_Alignas(LINE) _Atomic uint32_t sleepers;
	/* Index class * ranks + sender. The slots follow, from the next page on. */
	_Alignas(LINE) struct ring rings[];
};

struct comm_shm {
	int fd;
	size_t bytes;
	size_t slots_at;
	struct segment *own;
	struct spyre_spin spin;
	struct segment *of[SPYRE_COMM_MAX_RANKS];
};

/* The ring of a link, and the segment whose owner is at the other end. */
struct end {
	struct ring *ring;
	uint8_t *slots;
	struct segment *other;
};

static void segment_ring(struct segment *segment)
{
	atomic_fetch_add(&segment->bell, 1);
	if (atomic_load(&segment->sleepers))
		syscall(SYS_futex, &segment->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void *ring_reserve(struct comm_link *link, uint32_t ahead)
{
	const struct end *end = link->end;
	const uint32_t next = link->count + ahead;

	if (next - atomic_load_explicit(&end->ring->released, memory_order_acquire) >= SLOTS)
		return NULL;
	return end->slots + (size_t)(next % SLOTS) * link->comm->chunk;
}

static spyre_status ring_post(struct comm_link *link, uint32_t bytes)
{
	const struct end *end = link->end;

	atomic_store_explicit(&end->ring->bytes[link->count % SLOTS], bytes, memory_order_relaxed);
	atomic_store_explicit(&end->ring->posted, ++link->count, memory_order_release);
	segment_ring(end->other);
	return SPYRE_SUCCESS;
}

static const void *ring_peek(struct comm_link *link, uint32_t ahead, uint32_t *bytes)
{
	const struct end *end = link->end;
	const uint32_t next = link->count + ahead;
	const uint32_t arrived = atomic_load_explicit(&end->ring->posted, memory_order_acquire) -
				 link->count;

	if (ahead >= arrived || ahead >= SLOTS)
		return NULL;
	*bytes = atomic_load_explicit(&end->ring->bytes[next % SLOTS], memory_order_relaxed);
	return end->slots + (size_t)(next % SLOTS) * link->comm->chunk;
}

static spyre_status ring_release(struct comm_link *link)
{
	const struct end *end = link->end;

	atomic_store_explicit(&end->ring->released, ++link->count, memory_order_release);
	segment_ring(end->other);
	return SPYRE_SUCCESS;
}

static const struct comm_link_ops ring_ops = {
	.name = "shm",
	.reserve = ring_reserve,
	.post = ring_post,
	.peek = ring_peek,
	.release = ring_release,
};

static size_t rings_bytes(const spyre_comm *comm)
{
	size_t bytes = sizeof(struct segment) +
		       (size_t)COMM_CLASSES * comm->size * sizeof(struct ring);

	return (bytes + 4095) & ~(size_t)4095;
}

static spyre_status map(struct comm_shm *shm, int fd, struct segment **segment)
{
	void *memory = mmap(NULL, shm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	/* The file of another rank may be sealed against writing. */
	if (memory == MAP_FAILED)
		return spyre_error(errno == EPERM || errno == EACCES ? SPYRE_ERROR_REMOTE :
				   SPYRE_ERROR_OUT_OF_HOST_MEMORY, "cannot map %zu bytes of shared "
				   "memory: %s", shm->bytes, strerror(errno));
	*segment = memory;
	return SPYRE_SUCCESS;
}

static spyre_status segment_create(struct comm_shm *shm)
{
	shm->fd = memfd_create("spyre-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shm->fd < 0 || ftruncate(shm->fd, shm->bytes) ||
	    fcntl(shm->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "cannot create a segment of %zu "
				   "bytes: %s", shm->bytes, strerror(errno));
	return map(shm, shm->fd, &shm->own);
}

spyre_status comm_shm_open(spyre_comm *comm)
{
	struct comm_shm *shm = calloc(1, sizeof(*shm));
	spyre_status status;

	if (!shm)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
	shm->fd = -1;
	shm->slots_at = rings_bytes(comm);
	shm->bytes = shm->slots_at + (size_t)COMM_CLASSES * comm->size * SLOTS * comm->chunk;
	comm->shm = shm;
	status = segment_create(shm);
	if (!status)
		comm->bell = &shm->own->bell;
	return status;
}

/* Refuses a file that its owner could shorten, which would end this process by SIGBUS. */
static spyre_status check_file(const struct comm_shm *shm, int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &stat) ||
	    stat.st_size != (off_t)shm->bytes)
		return spyre_error(SPYRE_ERROR_REMOTE, "its segment does not have the expected %zu "
				   "bytes, or is not sealed", shm->bytes);
	return SPYRE_SUCCESS;
}

static spyre_status link_init(spyre_comm *comm, struct comm_link *link, enum comm_class class,
			      uint32_t sender, struct segment *owner, struct segment *other)
{
	const size_t index = (size_t)class * comm->size + sender;
	struct end *end = calloc(1, sizeof(*end));

	if (!end)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a link");
	end->ring = &owner->rings[index];
	end->slots = (uint8_t *)owner + comm->shm->slots_at + index * SLOTS * comm->chunk;
	end->other = other;
	link->ops = &ring_ops;
	link->comm = comm;
	link->end = end;
	return SPYRE_SUCCESS;
}

spyre_status comm_shm_connect(spyre_comm *comm, uint32_t rank, int64_t deadline_ns, bool *told)
{
	struct comm_peer *peer = &comm->peers[rank];
	struct comm_shm *shm = comm->shm;
	spyre_status status, sent;
	int fd;

	/* A rank that has failed no longer takes the file, but has told its reason before. */
	sent = comm_send_fd(peer->control, shm->fd, deadline_ns);
	TRY(comm_recv_fd(peer->control, deadline_ns, &fd));
	*told = fd < 0;
	if (*told)
		return comm_read_failure(comm, rank, deadline_ns);
	status = sent ? spyre_error(sent, "the connection ended") : check_file(shm, fd);
	if (!status)
		status = map(shm, fd, &shm->of[rank]);
	close(fd);
	for (int class = 0; !status && class < COMM_CLASSES; class++) {
		status = link_init(comm, &peer->link[class][COMM_SEND], class, comm->rank,
				   shm->of[rank], shm->of[rank]);
		if (!status)
			status = link_init(comm, &peer->link[class][COMM_RECV], class, rank,
					   shm->own, shm->of[rank]);
	}
	return status;
}

static void ends_free(spyre_comm *comm)
{
	for (uint32_t rank = 0; comm->peers && rank < comm->size; rank++)
		for (int class = 0; class < COMM_CLASSES; class++)
			for (int direction = 0; direction < COMM_DIRECTIONS; direction++) {
				struct comm_link *link = &comm->peers[rank].link[class][direction];

				if (link->ops == &ring_ops)
					free(link->end);
			}
}

void comm_shm_close(spyre_comm *comm)
{
	struct comm_shm *shm = comm->shm;

	if (!shm)
		return;
	ends_free(comm);
	for (uint32_t rank = 0; rank < comm->size; rank++)
		if (shm->of[rank])
			munmap(shm->of[rank], shm->bytes);
	if (shm->own)
		munmap(shm->own, shm->bytes);
	if (shm->fd >= 0)
		close(shm->fd);
	free(shm);
	comm->shm = NULL;
}

void comm_shm_ring_own(spyre_comm *comm)
{
	segment_ring(comm->shm->own);
}

/* Iterations of a spin, about 20 us: a message of another processor takes a few. */
#define SPINS 400

static bool spin(struct comm_shm *shm, uint32_t value)
{
	bool rung = false;

	if (!spyre_spin_begin(&shm->spin))
		return false;
	for (int i = 0; i < SPINS && !rung; i++) {
		spyre_cpu_relax();
		rung = atomic_load_explicit(&shm->own->bell, memory_order_acquire) != value;
	}
	spyre_spin_end(&shm->spin, rung);
	return rung;
}

void comm_shm_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns)
{
	struct timespec ts = { deadline_ns / 1000000000, deadline_ns % 1000000000 };
	struct segment *own = comm->shm->own;

	if (spin(comm->shm, value))
		return;
	atomic_fetch_add(&own->sleepers, 1);
	syscall(SYS_futex, &own->bell, FUTEX_WAIT_BITSET, value, &ts, NULL,
		FUTEX_BITSET_MATCH_ANY);
	atomic_fetch_sub(&own->sleepers, 1);
}
