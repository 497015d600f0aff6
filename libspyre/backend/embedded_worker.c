// SPDX-License-Identifier: MIT
/*
 * Worker threads of an embedded card: each takes a queue's first job and runs
 * its commands in order, or helps in a parallel section of another worker.
 * They start when work arrives that no idle thread can take.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "libspyre/backend/embedded.h"

/* How long an idle worker spins before it sleeps. */
#define IDLE_SPIN_NS 4000

bool embedded_should_stop(struct spyre_host *host, void *arg)
{
	struct embedded_job *job = arg;
	struct timespec now;

	if (atomic_load_explicit(&job->stop, memory_order_relaxed))
		return true;
	if (embedded_job_is_old(job)) {
		atomic_store(&job->stop, -ECANCELED);
		return true;
	}
	if (job->has_peers && embedded_peer_lost(job)) {
		atomic_store(&job->stop, -ENOLINK);
		return true;
	}
	if (job->deadline_ns == INT64_MAX)
		return false;
	/* The coarse clock is cheap to poll between tiles, and a limit needs milliseconds only. */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec * 1000000000ll + now.tv_nsec < job->deadline_ns)
		return false;
	atomic_store(&job->stop, -ETIME);
	return true;
}

static void section_run(struct embedded_section *section, struct spyre_worker *self)
{
	uint32_t i;

	while ((i = atomic_fetch_add_explicit(&section->next, 1, memory_order_relaxed)) <
	       section->n)
		section->fn(section->arg, i, self);
}

static void section_wait(struct embedded_section *section, struct spyre_spin *spin)
{
	uint64_t spin_end;
	uint32_t helpers;
	bool good;

	if (!atomic_load(&section->helpers))
		return;
	if (spyre_spin_begin(spin)) {
		spin_end = spyre_now_ns() + IDLE_SPIN_NS;
		do {
			spyre_cpu_relax();
			good = !atomic_load(&section->helpers);
		} while (!good && spyre_now_ns() < spin_end);
		spyre_spin_end(spin, good);
		if (good)
			return;
	}
	helpers = atomic_fetch_or(&section->helpers, EMBEDDED_SECTION_WAITED) |
		  EMBEDDED_SECTION_WAITED;
	while (helpers != EMBEDDED_SECTION_WAITED) {
		spyre_futex_wait(&section->helpers, helpers, INT64_MAX);
		helpers = atomic_load(&section->helpers);
	}
}

/* Caller holds the lock. */
static void section_unlist(struct embedded_device *device, struct embedded_section *section)
{
	TAILQ_REMOVE(&device->sections, section, link);
	section->listed = false;
}

void embedded_parallel(struct spyre_host *host, struct spyre_worker *self, u32 n,
		       spyre_work_fn fn, void *arg)
{
	struct embedded_device *device = ((struct embedded_host *)host)->device;
	struct embedded_section section = { .fn = fn, .arg = arg, .n = n, .listed = true,
					    .processor = embedded_processor() };

	/* Inline jobs are too short to wake another thread for. */
	if (n < 2 || device->config.threads < 2 || self == &device->inline_worker.base) {
		for (u32 i = 0; i < n; i++)
			fn(arg, i, self);
		return;
	}
	pthread_mutex_lock(&device->lock);
	TAILQ_INSERT_TAIL(&device->sections, &section, link);
	pthread_mutex_unlock(&device->lock);
	embedded_kick(device);

	section_run(&section, self);

	pthread_mutex_lock(&device->lock);
	if (section.listed)
		section_unlist(device, &section);
	pthread_mutex_unlock(&device->lock);
	section_wait(&section, &device->section_spin);
}

/*
 * Joins a section that has work left; caller holds the lock. A section has at most as many threads
 * as the card, also if its caller is not a worker.
 */
static struct embedded_section *take_section(struct embedded_device *device)
{
	struct embedded_section *section;

	while ((section = TAILQ_FIRST(&device->sections))) {
		const bool left = atomic_load_explicit(&section->next, memory_order_relaxed) <
				  section->n;

		if (!left || atomic_fetch_add(&section->helpers, 1) + 2 == device->config.threads)
			section_unlist(device, section);
		if (left)
			return section;
	}
	return NULL;
}

static void help(struct embedded_worker *worker, struct embedded_section *section)
{
	embedded_keep_off(&worker->placement, section->processor);
	section_run(section, &worker->base);
	/* The caller may reuse the section's memory after this. */
	if (atomic_fetch_sub(&section->helpers, 1) == (EMBEDDED_SECTION_WAITED | 1))
		spyre_futex_wake(&section->helpers, 1);
}

/* Takes @queue, which is runnable, unless its first job has to wait for the scratchpads. */
static bool queue_take(struct embedded_queue *queue)
{
	const struct embedded_job *job = TAILQ_FIRST(&queue->jobs);
	struct embedded_lx *lx = embedded_queue_lx(queue);

	if (job->needs_lx && lx->busy)
		return false;
	TAILQ_REMOVE(&queue->device->runnable[queue->class], queue, link);
	queue->state = EMBEDDED_QUEUE_RUNNING;
	lx->busy |= job->needs_lx;
	return true;
}

static struct embedded_queue *take_queue(struct embedded_device *device, int class)
{
	struct embedded_queue *queue;

	TAILQ_FOREACH(queue, &device->runnable[class], link)
		if (queue_take(queue))
			return queue;
	return NULL;
}

static enum spyre_stop command_run(struct embedded_worker *worker, struct embedded_job *job,
				   struct embedded_command *c)
{
	struct embedded_device *device = worker->device;
	struct spyre_host *host = &device->host.base;
	struct spyre_exec exec;

	switch (c->type) {
	case SPYRE_COMMAND_EXEC:
		exec = (struct spyre_exec){
			.host = host,
			.job = job,
			.prog = &c->exec.program->program,
			.operand = c->exec.operand,
			.lx = job->needs_lx ? embedded_queue_lx(job->queue)->core : NULL,
		};
		return spyre_card_exec(&exec, &worker->base);
	case SPYRE_COMMAND_DMA:
		return spyre_card_dma(host, job, &worker->base, c->dma.desc, c->dma.device,
				      c->dma.host, c->dma.host_bytes);
	case SPYRE_COMMAND_COPY:
		return spyre_card_copy(host, job, &worker->base, c->copy.dst, c->copy.src,
				       c->copy.bytes);
	case SPYRE_COMMAND_FILL:
		return spyre_card_fill(host, job, &worker->base, c->fill.dst, c->fill.bytes,
				       c->fill.pattern, c->fill.pattern_bytes);
	case SPYRE_COMMAND_PEER:
		return embedded_peer_run(host, job, &worker->base, c);
	case SPYRE_COMMAND_TIMESTAMP:
		break;
	}
	return SPYRE_STOP_NONE;
}

static void page_count(struct spyre_telemetry_page *page, const struct spyre_counters *cost)
{
	spyre_telemetry_count(&page->launches, cost->launches);
	spyre_telemetry_count(&page->copies, cost->copies);
	spyre_telemetry_count(&page->cycles, cost->cycles);
	spyre_telemetry_count(&page->macs, cost->macs);
	spyre_telemetry_count(&page->bytes_read, cost->bytes_read);
	spyre_telemetry_count(&page->bytes_written, cost->bytes_written);
	spyre_telemetry_count(&page->rdma_read, cost->rdma_read);
	spyre_telemetry_count(&page->rdma_written, cost->rdma_written);
	spyre_telemetry_count(&page->pcie_rx_bytes, cost->pcie_rx_bytes);
	spyre_telemetry_count(&page->pcie_tx_bytes, cost->pcie_tx_bytes);
	spyre_telemetry_count(&page->pt_cycles, cost->pt_cycles);
	spyre_telemetry_count(&page->sfu_cycles, cost->sfu_cycles);
	spyre_telemetry_count(&page->dma_cycles, cost->dma_cycles);
}

static void command_report(struct embedded_queue *queue, uint32_t slot, int status,
			   const struct spyre_counters *cost, uint64_t start, uint64_t end)
{
	static const struct spyre_counters none;
	struct spyre_command_result *result = &queue->base.results[slot];
	struct spyre_telemetry_page *page = queue->device->page;

	if (status)
		cost = &none;
	result->status = status;
	result->cycles = cost->cycles;
	result->bytes_read = cost->bytes_read;
	result->bytes_written = cost->bytes_written;
	result->macs = cost->macs;
	result->start_ns = start;
	result->end_ns = end;
	result->rdma = cost->rdma_read + cost->rdma_written;
	__atomic_store_n(&result->state, 1, __ATOMIC_RELEASE);
	if (page && !status)
		page_count(page, cost);
}

/*
 * Runs a command unless its job has to stop, and returns its status. The context fails
 * before the result becomes visible; @fault has the kind if this was its first fault.
 */
static int command_step(struct embedded_worker *worker, struct embedded_job *job,
			struct embedded_command *command, enum spyre_fault_kind *fault)
{
	enum spyre_fault_kind kind;
	enum spyre_stop stop;
	int status;

	if (embedded_job_is_old(job))
		return -ECANCELED;
	if (job->has_peers && embedded_peer_lost(job))
		return -ENOLINK;
	stop = command_run(worker, job, command);
	if (stop == SPYRE_STOP_NONE)
		return 0;
	/* An index beyond its extent, or an error that the checks should have excluded. */
	status = stop != SPYRE_STOP_CANCELLED ? -EFAULT : atomic_load(&job->stop) ?: -ECANCELED;
	if (status != -EFAULT && status != -ETIME)
		return status;
	kind = status == -EFAULT ? spyre_fault_of_stop(stop) : SPYRE_FAULT_KIND_TIMEOUT;
	if (embedded_card_fault(job, kind))
		*fault = kind;
	return status;
}

/* Runs @job and returns the time at which it ended. Meanwhile only this worker
 * changes queue->failed, or queue_destroy(), which has removed the later jobs. */
static uint64_t job_run(struct embedded_worker *worker, struct embedded_job *job, uint64_t now,
			bool *failed)
{
	enum spyre_fault_kind fault = SPYRE_FAULT_KIND_NONE;
	struct embedded_queue *queue = job->queue;

	job->deadline_ns = queue->timeout_ns ? (int64_t)(now + queue->timeout_ns) : INT64_MAX;
	for (uint32_t i = 0; i < job->num_commands; i++) {
		struct embedded_command *command = &job->commands[i];
		uint64_t start = now;
		int status = *failed ? -ECANCELED : command_step(worker, job, command, &fault);

		*failed |= status != 0;
		now = spyre_now_ns();
		command_report(queue, job->first_result + i, status, &command->cost, start, now);
	}
	embedded_count_job(queue->device, *failed);
	embedded_fault_log(queue->device, fault);
	return now;
}

static void publish_busy(struct embedded_device *device, uint64_t since_ns)
{
	if (device->page)
		atomic_store_explicit(&device->page->busy,
				      spyre_telemetry_busy_word(device->busy_ns, since_ns),
				      memory_order_relaxed);
}

static void busy_begin(struct embedded_device *device, uint64_t now)
{
	if (device->running++)
		return;
	device->busy_since_ns = now;
	publish_busy(device, now);
}

/*
 * Readers count a busy card's time up to their own clock, and totals must not fall: the period is
 * marked first, so that its end is later than the clock of each reader that saw no mark.
 */
static void busy_end(struct embedded_device *device)
{
	struct spyre_telemetry_page *page = device->page;

	if (--device->running)
		return;
	if (page)
		atomic_fetch_or(&page->busy, SPYRE_TELEMETRY_ENDING);
	/* It orders the mark and the clock, no data; gcc has no fences with ThreadSanitizer. */
#ifndef __SANITIZE_THREAD__
	atomic_thread_fence(memory_order_seq_cst);
#endif
	device->busy_ns += spyre_now_ns() - device->busy_since_ns;
	publish_busy(device, 0);
	if (page)
		atomic_store_explicit(&page->busy_ns, device->busy_ns, memory_order_release);
}

bool embedded_work_left(const struct embedded_device *device)
{
	return !TAILQ_EMPTY(&device->runnable[0]) || !TAILQ_EMPTY(&device->runnable[1]) ||
	       !TAILQ_EMPTY(&device->sections);
}

/* Runs the first job of @queue, which is in state RUNNING; the lock is held
 * before and after. @more: there is other work to take. */
static void serve(struct embedded_worker *worker, struct embedded_queue *queue, bool more)
{
	struct embedded_device *device = queue->device;
	struct embedded_job *job = TAILQ_FIRST(&queue->jobs);
	bool failed = queue->failed;
	uint64_t now = spyre_now_ns();

	busy_begin(device, now);
	pthread_mutex_unlock(&device->lock);
	if (more)
		embedded_kick(device);

	now = job_run(worker, job, now, &failed);
	embedded_queue_advance(queue, job->point);

	pthread_mutex_lock(&device->lock);
	busy_end(device);
	if (job->needs_lx)
		embedded_queue_lx(queue)->busy = false;
	queue->failed |= failed;
	embedded_queue_retire(queue);
	embedded_job_free(job);
}

/* Takes and does one piece of work; called and returns with the lock held. */
static bool work_once(struct embedded_worker *worker)
{
	struct embedded_device *device = worker->device;
	struct embedded_section *section = NULL;
	struct embedded_queue *queue;
	bool more;

	queue = take_queue(device, 0);
	if (!queue)
		section = take_section(device);
	if (!queue && !section)
		queue = take_queue(device, 1);
	if (!queue && !section)
		return false;
	more = embedded_work_left(device);
	if (section) {
		pthread_mutex_unlock(&device->lock);
		if (more)
			embedded_kick(device);
		help(worker, section);
		pthread_mutex_lock(&device->lock);
		return true;
	}

	serve(worker, queue, more);
	return true;
}

static bool spin_idle(struct embedded_device *device, uint32_t seen)
{
	uint64_t spin_end;
	bool good = false;

	if (!spyre_spin_begin(&device->spin))
		return false;
	atomic_fetch_add(&device->spinners, 1);
	spin_end = spyre_now_ns() + IDLE_SPIN_NS;
	do {
		for (int i = 0; i < 16 && !good; i++) {
			spyre_cpu_relax();
			good = atomic_load(&device->signal) != seen;
		}
	} while (!good && spyre_now_ns() < spin_end);
	atomic_fetch_sub(&device->spinners, 1);
	spyre_spin_end(&device->spin, good);
	return good;
}

/* Sleeps until work arrives; called and returns with the lock held. */
static void idle(struct embedded_device *device)
{
	uint32_t seen = atomic_load(&device->signal);

	pthread_mutex_unlock(&device->lock);
	if (!spin_idle(device, seen)) {
		atomic_fetch_add(&device->sleepers, 1);
		spyre_futex_wait(&device->signal, seen, INT64_MAX);
		atomic_fetch_sub(&device->sleepers, 1);
	}
	pthread_mutex_lock(&device->lock);
}

/* The card's arithmetic keeps denormals, even if the application flushes them. */
struct arithmetic {
#if defined(__x86_64__)
	unsigned int csr;
#else
	fenv_t env;
#endif
};

static struct arithmetic arithmetic_enter(void)
{
	struct arithmetic old;

#if defined(__x86_64__)
	old.csr = _mm_getcsr();
	_mm_setcsr(0x1f80);
#else
	fegetenv(&old.env);
	fesetenv(FE_DFL_ENV);
#endif
	return old;
}

static void arithmetic_leave(const struct arithmetic *old)
{
#if defined(__x86_64__)
	_mm_setcsr(old->csr);
#else
	fesetenv(&old->env);
#endif
}

static void *scratch_new(void)
{
	void *scratch = mmap(NULL, SPYRE_SCRATCH_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return scratch == MAP_FAILED ? NULL : scratch;
}

/* True if @worker has its scratch memory, which is mapped when it first runs a job. */
static bool scratch_get(struct embedded_worker *worker)
{
	if (!worker->base.scratch)
		worker->base.scratch = scratch_new();
	return worker->base.scratch;
}

bool embedded_inline_serve(struct embedded_queue *queue)
{
	struct embedded_device *device = queue->device;
	struct embedded_job *job = TAILQ_FIRST(&queue->jobs);
	struct arithmetic old;

	if (queue->state != EMBEDDED_QUEUE_IDLE || TAILQ_NEXT(job, link) || !job->light ||
	    job->pending_waits || device->inline_busy || embedded_job_watches(job, device))
		return false;
	if (!scratch_get(&device->inline_worker))
		return false;
	device->inline_busy = true;
	device->inline_worker.device = device;
	queue->state = EMBEDDED_QUEUE_RUNNING;
	old = arithmetic_enter();
	serve(&device->inline_worker, queue, false);
	arithmetic_leave(&old);
	device->inline_busy = false;
	return true;
}

/*
 * A worker that sleeps needs longer to wake up than this thread to get here, and longer again to
 * wake this thread afterwards. The card does not get more threads by this: some worker stays idle.
 */
void embedded_waiter_serve(struct embedded_queue *queue, uint64_t point)
{
	struct embedded_device *device = queue->device;
	struct arithmetic old;
	bool served = false, more;

	pthread_mutex_lock(&device->lock);
	if (!device->waiter_busy && scratch_get(&device->waiter)) {
		device->waiter_busy = true;
		device->waiter.device = device;
		old = arithmetic_enter();
		while (queue->state == EMBEDDED_QUEUE_RUNNABLE &&
		       TAILQ_FIRST(&queue->jobs)->point <= point &&
		       device->running < device->config.threads && queue_take(queue)) {
			serve(&device->waiter, queue, embedded_work_left(device));
			served = true;
		}
		arithmetic_leave(&old);
		device->waiter_busy = false;
	}
	/* Later jobs, and those that waited for these, are the workers' again. */
	more = served && embedded_work_left(device);
	pthread_mutex_unlock(&device->lock);
	if (more)
		embedded_kick(device);
}

static void *worker_main(void *arg)
{
	struct embedded_worker *worker = arg;
	struct embedded_device *device = worker->device;
	char name[16];

	snprintf(name, sizeof(name), "spyre%d.%u", device->index, worker->index);
	pthread_setname_np(pthread_self(), name);
	arithmetic_enter();
	embedded_placement_init(&worker->placement);
	pthread_mutex_lock(&device->lock);
	while (!device->stop)
		if (!work_once(worker))
			idle(device);
	pthread_mutex_unlock(&device->lock);
	return NULL;
}

/* Starts one more worker; caller holds the lock. */
static bool worker_start(struct embedded_device *device)
{
	uint32_t index = atomic_load(&device->started);
	struct embedded_worker *worker = &device->workers[index];
	sigset_t all, old;
	void *scratch;
	int err;

	scratch = scratch_new();
	if (!scratch)
		return false;
	worker->base.scratch = scratch;
	worker->device = device;
	worker->index = index;
	/* Workers block all signals, so that the application's threads receive them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&worker->thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		munmap(scratch, SPYRE_SCRATCH_BYTES);
		errno = err;
		return false;
	}
	atomic_store(&device->started, index + 1);
	return true;
}

spyre_status embedded_workers_start(struct embedded_device *device)
{
	bool ok = true;

	if (atomic_load_explicit(&device->started, memory_order_relaxed))
		return SPYRE_SUCCESS;
	pthread_mutex_lock(&device->lock);
	if (!atomic_load(&device->started))
		ok = worker_start(device);
	pthread_mutex_unlock(&device->lock);
	if (ok)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_SYSTEM,
			   "embedded card %d cannot start a thread: %s; check ulimit -u",
			   device->index, strerror(errno));
}

void embedded_kick(struct embedded_device *device)
{
	atomic_fetch_add(&device->signal, 1);
	/* A spinning worker sees the signal and kicks again if it leaves work. */
	if (atomic_load(&device->spinners))
		return;
	if (atomic_load(&device->sleepers)) {
		spyre_futex_wake(&device->signal, 1);
		return;
	}
	if (atomic_load(&device->started) >= device->config.threads)
		return;
	pthread_mutex_lock(&device->lock);
	if (atomic_load(&device->started) < device->config.threads && !device->stop)
		worker_start(device);
	pthread_mutex_unlock(&device->lock);
}

void embedded_workers_stop(struct embedded_device *device)
{
	uint32_t started;

	pthread_mutex_lock(&device->lock);
	device->stop = true;
	started = atomic_load(&device->started);
	pthread_mutex_unlock(&device->lock);
	atomic_fetch_add(&device->signal, 1);
	spyre_futex_wake(&device->signal, INT_MAX);
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(device->workers[i].thread, NULL);
		munmap(device->workers[i].base.scratch, SPYRE_SCRATCH_BYTES);
	}
	if (device->inline_worker.base.scratch)
		munmap(device->inline_worker.base.scratch, SPYRE_SCRATCH_BYTES);
	if (device->waiter.base.scratch)
		munmap(device->waiter.base.scratch, SPYRE_SCRATCH_BYTES);
}
