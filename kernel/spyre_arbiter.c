// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arbiter: fair in what the card is, which is cores and places.
 *
 * A place is the right to use the host's processors; there are max_active.  A
 * job in its turn has one, and as many cores of its queue's partition as its
 * widest program.  Its context pays for the time with the greater of the two
 * shares of the card, so that many narrow jobs and few wide ones weigh the
 * same.  Within a class the context that has had least is next, whatever the
 * number of its queues; its queues take turns.  One that comes back after a
 * pause begins where the others are, less one turn at most: nobody saves up.
 *
 * The high class comes first.  While the low class waits, it is owed a part
 * of what the high one uses, and comes first itself as soon as that makes a
 * turn.
 *
 * A job that cannot have its cores yet keeps those of its partition from all
 * that come after it, else a wide one would never find them free at once.
 */
#include <linux/bitops.h>
#include <linux/minmax.h>

#include <drm/spyre_accel.h>

#include "spyre_arbiter.h"

/* Shares of the card are counted in so many parts. */
#define SPYRE_ARB_PARTS 1024u
/* Claims that cannot start yet looked at in one go, with interrupts off. */
#define SPYRE_ARB_SCAN 128u
/* The low class does not save up either, nor does it run up debts. */
#define SPYRE_ARB_OWED_MAX (4 * (s64)SPYRE_ARB_SLICE_NS)

#define LOW DRM_SPYRE_PRIORITY_LOW
#define HIGH DRM_SPYRE_PRIORITY_HIGH

static struct spyre_arb_context *to_context(struct rb_node *node)
{
	return rb_entry(node, struct spyre_arb_context, node);
}

static u64 spyre_context_key(const struct spyre_arb_context *context)
{
	return context->vtime + context->ahead;
}

static bool spyre_context_less(struct rb_node *a, const struct rb_node *b)
{
	return spyre_context_key(to_context(a)) <
	       spyre_context_key(rb_entry(b, struct spyre_arb_context, node));
}

static void spyre_context_queue(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	rb_add_cached(&context->node, &arb->class[context->class].contexts, spyre_context_less);
}

static void spyre_context_unqueue(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	struct spyre_arb_class *class = &arb->class[context->class];
	struct rb_node *first = rb_first_cached(&class->contexts);

	/* The one that has had least tells how far the class has come. */
	class->vtime = max(class->vtime, to_context(first)->vtime);
	rb_erase_cached(&context->node, &class->contexts);
}

/* Where @context goes on that has had nothing to do: it keeps what it lacks of one turn. */
static u64 spyre_context_start(const struct spyre_arb_class *class,
			       const struct spyre_arb_context *context)
{
	return max(context->vtime, class->vtime - min(class->vtime, SPYRE_ARB_SLICE_NS));
}

/* One more claim of @context waits or runs. */
static void spyre_context_enter(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	struct spyre_arb_class *class = &arb->class[context->class];
	struct rb_node *first;

	class->claims++;
	if (context->claims++)
		return;
	first = rb_first_cached(&class->contexts);
	if (first)
		class->vtime = max(class->vtime, to_context(first)->vtime);
	context->vtime = spyre_context_start(class, context);
	spyre_context_queue(arb, context);
}

static void spyre_context_leave(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	struct spyre_arb_class *class = &arb->class[context->class];

	class->claims--;
	if (!--context->claims)
		spyre_context_unqueue(arb, context);
	if (!arb->class[LOW].claims) {
		arb->owed = 0;
		arb->low_turn = false;
	}
}

/* What ns of @claim cost: the greater of its shares of cores and places. */
static u64 spyre_claim_cost(const struct spyre_arbiter *arb, const struct spyre_claim *claim,
			    u64 ns)
{
	const u32 cores = claim->cores * SPYRE_ARB_PARTS / arb->num_cores;

	return ns * max(cores, SPYRE_ARB_PARTS / arb->max_active) / SPYRE_ARB_PARTS;
}

/* Between the classes: the low one earns while it waits and pays while it keeps others waiting. */
static void spyre_arbiter_owe(struct spyre_arbiter *arb, u32 class, u64 cost)
{
	if (class == HIGH && arb->class[LOW].waiting)
		arb->owed = min(arb->owed + (s64)(cost / (SPYRE_ARB_LOW_PART - 1)),
				SPYRE_ARB_OWED_MAX);
	else if (class == LOW && arb->class[HIGH].waiting)
		arb->owed = max(arb->owed - (s64)cost, -SPYRE_ARB_OWED_MAX);
	if (arb->owed >= (s64)SPYRE_ARB_SLICE_NS)
		arb->low_turn = true;
	else if (arb->owed < (s64)SPYRE_ARB_SLICE_NS / 2)
		arb->low_turn = false;
}

/* Puts what @claim's turn has cost so far on its context's bill. */
static void spyre_claim_bill(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now)
{
	struct spyre_arb_context *context = claim->context;
	const u64 due = spyre_claim_cost(arb, claim, now > claim->since ? now - claim->since : 0);
	const u64 more = due > claim->paid ? due - claim->paid : 0;
	const u64 expected = min(more, claim->ahead);

	spyre_context_unqueue(arb, context);
	claim->paid += more;
	claim->ahead -= expected;
	context->ahead -= expected;
	context->vtime += more;
	spyre_context_queue(arb, context);
	spyre_arbiter_owe(arb, context->class, more);
}

/* Lower comes first. */
static u32 spyre_arbiter_rank(const struct spyre_arbiter *arb, u32 class)
{
	return (class == LOW) != arb->low_turn;
}

static u32 spyre_arbiter_first_class(const struct spyre_arbiter *arb)
{
	return arb->low_turn ? LOW : HIGH;
}

void spyre_arbiter_init(struct spyre_arbiter *arb, u32 num_cores, u32 max_active, u32 pool)
{
	u32 i;

	*arb = (struct spyre_arbiter) {
		.num_cores = num_cores,
		.free = GENMASK(num_cores - 1, 0),
		.max_active = max_active,
		.pool = pool,
	};
	INIT_LIST_HEAD(&arb->active);
	for (i = 0; i < SPYRE_ARB_CLASSES; i++)
		arb->class[i].contexts = RB_ROOT_CACHED;
}

void spyre_arb_context_init(struct spyre_arb_context *context, u32 class)
{
	*context = (struct spyre_arb_context) { .class = class };
	INIT_LIST_HEAD(&context->waiting);
}

void spyre_claim_init(struct spyre_arbiter *arb, struct spyre_claim *claim,
		      struct spyre_arb_context *context, u32 first, u32 count)
{
	*claim = (struct spyre_claim) { .context = context };
	claim->partition = count ? GENMASK(first + count - 1, first) :
				   GENMASK(arb->num_cores - 1, 0);
	INIT_LIST_HEAD(&claim->node);
}

static bool spyre_claim_fits(const struct spyre_claim *claim, u32 cores)
{
	return hweight32(claim->partition & cores) >= claim->cores;
}

/* Whether there is a thread to run it on. */
static bool spyre_claim_can_run(const struct spyre_arbiter *arb, const struct spyre_claim *claim)
{
	const struct spyre_arb_context *context = claim->context;

	if (claim->runner != SPYRE_RUNNER_NONE || !context->own_taken)
		return true;
	return !claim->own_only && arb->pool_taken < arb->pool &&
	       context->pool_taken < max(arb->pool / 2, 1u);
}

/* The pool first: what needs the context's own runner should find it free. */
static void spyre_claim_take_runner(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	struct spyre_arb_context *context = claim->context;

	if (claim->runner != SPYRE_RUNNER_NONE)
		return;
	if (!claim->own_only && arb->pool_taken < arb->pool &&
	    context->pool_taken < max(arb->pool / 2, 1u)) {
		claim->runner = SPYRE_RUNNER_POOL;
		context->pool_taken++;
		arb->pool_taken++;
	} else {
		claim->runner = SPYRE_RUNNER_OWN;
		context->own_taken = true;
	}
}

static void spyre_claim_drop_runner(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	struct spyre_arb_context *context = claim->context;

	if (claim->runner == SPYRE_RUNNER_POOL) {
		context->pool_taken--;
		arb->pool_taken--;
	} else if (claim->runner == SPYRE_RUNNER_OWN) {
		context->own_taken = false;
	}
	claim->runner = SPYRE_RUNNER_NONE;
}

static void spyre_claim_take_cores(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	u32 cores = claim->partition & arb->free, n;

	claim->held = 0;
	for (n = 0; n < claim->cores; n++) {
		claim->held |= cores & -cores;
		cores &= cores - 1;
	}
	arb->free &= ~claim->held;
}

static void spyre_claim_drop_cores(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	arb->free |= claim->held;
	claim->held = 0;
}

static void spyre_claim_set_state(struct spyre_claim *claim, u32 state)
{
	/* Pairs with the acquire of a thread that waits for its job's turn. */
	smp_store_release(&claim->state, state);
}

/* From here to spyre_claim_end_wait() it counts as waiting. */
static void spyre_claim_wait(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	list_add_tail(&claim->node, &claim->context->waiting);
	arb->class[claim->context->class].waiting++;
	WRITE_ONCE(arb->waiting, arb->waiting + 1);
	spyre_claim_set_state(claim, SPYRE_CLAIM_WAITING);
}

static void spyre_claim_end_wait(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	list_del_init(&claim->node);
	arb->class[claim->context->class].waiting--;
	WRITE_ONCE(arb->waiting, arb->waiting - 1);
}

void spyre_arbiter_request(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			   bool own_only)
{
	const u32 rank = spyre_arbiter_rank(arb, claim->context->class);
	struct spyre_claim *other;

	claim->cores = cores;
	claim->own_only = own_only;
	spyre_context_enter(arb, claim->context);
	spyre_claim_wait(arb, claim);
	/* A class that comes first does not wait for the end of the other's turns. */
	list_for_each_entry(other, &arb->active, node)
		if (rank < spyre_arbiter_rank(arb, other->context->class))
			WRITE_ONCE(other->slice_end, 0);
}

static void spyre_claim_activate(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now)
{
	struct spyre_arb_context *context = claim->context;

	spyre_claim_end_wait(arb, claim);
	spyre_claim_take_runner(arb, claim);
	spyre_claim_take_cores(arb, claim);
	list_add_tail(&claim->node, &arb->active);
	arb->num_active++;
	claim->since = now;
	claim->paid = 0;
	claim->ahead = spyre_claim_cost(arb, claim, SPYRE_ARB_SLICE_NS);
	WRITE_ONCE(claim->slice_end, now + SPYRE_ARB_SLICE_NS);
	/* What runs is as good as paid for: the next place is another context's. */
	spyre_context_unqueue(arb, context);
	context->ahead += claim->ahead;
	spyre_context_queue(arb, context);
	spyre_claim_set_state(claim, SPYRE_CLAIM_ACTIVE);
}

/* Takes cores and place, not the runner, and settles the bill. */
static void spyre_claim_deactivate(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now)
{
	struct spyre_arb_context *context = claim->context;

	spyre_claim_bill(arb, claim, now);
	spyre_context_unqueue(arb, context);
	context->ahead -= claim->ahead;
	spyre_context_queue(arb, context);
	claim->ahead = 0;
	spyre_claim_drop_cores(arb, claim);
	list_del_init(&claim->node);
	arb->num_active--;
}

typedef bool (*spyre_claim_fn)(const struct spyre_arbiter *arb, struct spyre_claim *claim,
			       void *arg);

/* The first claim, in the order of turns, that @fn takes, of so many. */
static struct spyre_claim *spyre_arbiter_find(struct spyre_arbiter *arb, spyre_claim_fn fn,
					      void *arg)
{
	u32 class = spyre_arbiter_first_class(arb), left = SPYRE_ARB_SCAN, i;
	struct spyre_claim *claim;
	struct rb_node *node;

	for (i = 0; i < SPYRE_ARB_CLASSES; i++, class ^= LOW ^ HIGH) {
		if (!arb->class[class].waiting)
			continue;
		for (node = rb_first_cached(&arb->class[class].contexts); node;
		     node = rb_next(node)) {
			list_for_each_entry(claim, &to_context(node)->waiting, node) {
				if (fn(arb, claim, arg))
					return claim;
				if (!--left)
					return NULL;
			}
		}
	}
	return NULL;
}

/* @arg: cores that nobody has or comes before for. */
static bool spyre_claim_may_start(const struct spyre_arbiter *arb, struct spyre_claim *claim,
				  void *arg)
{
	u32 *cores = arg;

	if (!spyre_claim_can_run(arb, claim))
		return false;
	if (spyre_claim_fits(claim, *cores))
		return true;
	*cores &= ~claim->partition;
	return false;
}

struct spyre_claim *spyre_arbiter_pick(struct spyre_arbiter *arb, u64 now)
{
	struct spyre_claim *claim;
	u32 cores = arb->free;

	if (!arb->waiting || arb->num_active >= arb->max_active)
		return NULL;
	claim = spyre_arbiter_find(arb, spyre_claim_may_start, &cores);
	if (claim)
		spyre_claim_activate(arb, claim, now);
	return claim;
}

static bool spyre_claim_is_next(const struct spyre_arbiter *arb, struct spyre_claim *claim,
				void *arg)
{
	return spyre_claim_can_run(arb, claim);
}

/* Whether a claim of @context would come before all that wait. */
static bool spyre_context_comes_first(struct spyre_arbiter *arb,
				      const struct spyre_arb_context *context)
{
	struct spyre_claim *next;
	u32 rank, other;

	if (!arb->waiting)
		return true;
	next = spyre_arbiter_find(arb, spyre_claim_is_next, NULL);
	if (!next)
		return true;
	rank = spyre_arbiter_rank(arb, context->class);
	other = spyre_arbiter_rank(arb, next->context->class);
	if (rank != other)
		return rank < other;
	return spyre_context_start(&arb->class[context->class], context) <
	       spyre_context_key(next->context);
}

bool spyre_arbiter_pick_light(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			      u64 now)
{
	claim->cores = cores;
	if (!spyre_claim_fits(claim, arb->free) ||
	    !spyre_context_comes_first(arb, claim->context))
		return false;
	spyre_context_enter(arb, claim->context);
	spyre_claim_take_cores(arb, claim);
	claim->since = now;
	claim->paid = 0;
	claim->ahead = 0;
	spyre_claim_set_state(claim, SPYRE_CLAIM_LIGHT);
	return true;
}

/* @arg: an active claim.  Whether @claim comes before it and wants what it has. */
static bool spyre_claim_wants(const struct spyre_arbiter *arb, struct spyre_claim *claim,
			      void *arg)
{
	const struct spyre_claim *active = arg;
	const u32 rank = spyre_arbiter_rank(arb, claim->context->class);
	const u32 other = spyre_arbiter_rank(arb, active->context->class);

	if (rank > other || !spyre_claim_can_run(arb, claim))
		return false;
	if (rank == other && claim->context != active->context &&
	    spyre_context_key(claim->context) >
	    spyre_context_key(active->context) - active->ahead)
		return false;
	if (!spyre_claim_fits(claim, arb->free))
		return claim->partition & active->held;
	return arb->num_active >= arb->max_active;
}

bool spyre_arbiter_yields(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now)
{
	if (claim->state != SPYRE_CLAIM_ACTIVE || now < claim->slice_end)
		return false;
	spyre_claim_bill(arb, claim, now);
	if (!spyre_arbiter_find(arb, spyre_claim_wants, claim)) {
		WRITE_ONCE(claim->slice_end, now + SPYRE_ARB_SLICE_NS);
		return false;
	}
	spyre_claim_deactivate(arb, claim, now);
	spyre_claim_wait(arb, claim);
	return true;
}

void spyre_arbiter_withdraw(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	spyre_claim_end_wait(arb, claim);
	spyre_claim_set_state(claim, SPYRE_CLAIM_ENDING);
}

void spyre_arbiter_release(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now)
{
	switch (claim->state) {
	case SPYRE_CLAIM_ACTIVE:
		spyre_claim_deactivate(arb, claim, now);
		break;
	case SPYRE_CLAIM_LIGHT:
		spyre_claim_bill(arb, claim, now);
		spyre_claim_drop_cores(arb, claim);
		break;
	case SPYRE_CLAIM_ENDING:
		break;
	default:
		return;
	}
	spyre_claim_drop_runner(arb, claim);
	spyre_claim_set_state(claim, SPYRE_CLAIM_IDLE);
	spyre_context_leave(arb, claim->context);
}

static bool spyre_claim_any(const struct spyre_arbiter *arb, struct spyre_claim *claim,
			    void *arg)
{
	return true;
}

struct spyre_claim *spyre_arbiter_any_waiting(struct spyre_arbiter *arb)
{
	return arb->waiting ? spyre_arbiter_find(arb, spyre_claim_any, NULL) : NULL;
}
