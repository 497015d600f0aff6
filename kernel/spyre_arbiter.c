// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arbiter shares out the card's cores and places.
 *
 * A place is the right to use the host's processors; there are max_active.  A
 * job has one during its time slice, and as many cores of its queue's partition
 * as its widest program needs.  Its context is charged for the time by the
 * greater of its shares of cores and places, so that many narrow jobs and few
 * wide ones are measured alike.  Within a class the context with the least
 * service runs next, whatever the number of its queues; its queues alternate.
 * A context that returns after a pause starts level with the others, less one
 * slice at most.  One that stays but cannot use its share, for lack of queues or
 * cores, is charged more the further it falls behind.  No context accumulates
 * credit.
 *
 * The high class precedes the low one.  While the low class waits, it is owed a
 * part of the time that the high class uses, and takes precedence as soon as
 * this amounts to a slice.
 *
 * A job that cannot get its cores yet reserves those of its partition against
 * all later claims; otherwise a wide job might never find them free together.
 *
 * No decision iterates over claims that cannot start.  The waiting claims of a
 * context, and the contexts of a class, are trees in the order of service.  Each
 * node holds the union of the cores that the claims below it request, for each
 * kind of runner that these claims can use.  A claim that is found either starts
 * or removes at least one core from the search, so a decision takes at most 33
 * descents of two trees per class, for any number of contexts and queues.
 */
#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/rbtree_augmented.h>

#include <drm/spyre_accel.h>

#include "spyre_arbiter.h"

/* A whole card in units of shares. */
#define SPYRE_ARB_PARTS 1024u
/* A context that is further behind its class is charged more for its time. */
#define SPYRE_ARB_LAG (4 * SPYRE_ARB_SLICE_NS)
/* Larger lags count as this one, so that products of a lag and a slice fit into 64 bits. */
#define SPYRE_ARB_LAG_MAX BIT_ULL(40)
/* Stands for cores where a claim needs none. */
#define SPYRE_ARB_NO_CORES BIT_ULL(32)
/* Limits the credit and the debt of the low class. */
#define SPYRE_ARB_OWED_MAX (4 * (s64)SPYRE_ARB_SLICE_NS)

#define LOW DRM_SPYRE_PRIORITY_LOW
#define HIGH DRM_SPYRE_PRIORITY_HIGH

static struct spyre_arb_context *to_context(struct rb_node *node)
{
	return rb_entry(node, struct spyre_arb_context, node);
}

static struct spyre_claim *to_claim(struct rb_node *node)
{
	return rb_entry(node, struct spyre_claim, wait);
}

/* Returns the mask of cores from which @claim's cores are taken. */
static u64 spyre_claim_needs(const struct spyre_claim *claim)
{
	return claim->cores ? claim->partition : SPYRE_ARB_NO_CORES;
}

/* The least level of runners that @claim can use. */
static u32 spyre_claim_level(const struct spyre_claim *claim)
{
	if (claim->runner != SPYRE_RUNNER_NONE)
		return SPYRE_LEVEL_BEGUN;
	return claim->own_only ? SPYRE_LEVEL_OWN : SPYRE_LEVEL_POOL;
}

/* Recomputes the needs of @claim and those below it; true if that changes nothing. */
static bool spyre_claim_sum(struct spyre_claim *claim, bool exit)
{
	const struct rb_node *left = claim->wait.rb_left, *right = claim->wait.rb_right;
	struct spyre_arb_needs sum = {};
	bool same = true;
	u32 i;

	for (i = 0; i < SPYRE_ARB_LEVELS; i++) {
		if (i >= spyre_claim_level(claim))
			sum.of[i] = spyre_claim_needs(claim);
		if (left)
			sum.of[i] |= rb_entry(left, struct spyre_claim, wait)->below.of[i];
		if (right)
			sum.of[i] |= rb_entry(right, struct spyre_claim, wait)->below.of[i];
		same = same && sum.of[i] == claim->below.of[i];
	}
	claim->below = sum;
	return exit && same;
}

RB_DECLARE_CALLBACKS(static, spyre_claim_callbacks, struct spyre_claim, wait, below,
		     spyre_claim_sum)

static bool spyre_claim_less(struct rb_node *a, const struct rb_node *b)
{
	return to_claim(a)->order < rb_entry(b, struct spyre_claim, wait)->order;
}

/* The same for contexts: their claims that have a runner count. */
static bool spyre_context_sum(struct spyre_arb_context *context, bool exit)
{
	const struct rb_node *left = context->node.rb_left, *right = context->node.rb_right;
	struct spyre_arb_offers sum = context->offers;
	bool same = true;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sum.of); i++) {
		if (left)
			sum.of[i] |= rb_entry(left, struct spyre_arb_context, node)->below.of[i];
		if (right)
			sum.of[i] |= rb_entry(right, struct spyre_arb_context, node)->below.of[i];
		same = same && sum.of[i] == context->below.of[i];
	}
	context->below = sum;
	return exit && same;
}

RB_DECLARE_CALLBACKS(static, spyre_context_callbacks, struct spyre_arb_context, node, below,
		     spyre_context_sum)

static u64 spyre_context_key(const struct spyre_arb_context *context)
{
	return context->vtime + context->ahead;
}

static bool spyre_context_less(struct rb_node *a, const struct rb_node *b)
{
	return spyre_context_key(to_context(a)) <
	       spyre_context_key(rb_entry(b, struct spyre_arb_context, node));
}

/* Returns the level of free runners for @context, given whether the pool has any. */
static u32 spyre_context_level(const struct spyre_arbiter *arb,
			       const struct spyre_arb_context *context, bool pool)
{
	if (!context->own_taken)
		return SPYRE_LEVEL_OWN;
	return pool && context->pool_taken < max(arb->pool / 2, 1u) ? SPYRE_LEVEL_POOL :
								      SPYRE_LEVEL_BEGUN;
}

static bool spyre_arbiter_has_pool(const struct spyre_arbiter *arb)
{
	return arb->pool_taken < arb->pool;
}

/* Records the needs of those claims that @context has runners for. */
static void spyre_context_offer(const struct spyre_arbiter *arb,
				struct spyre_arb_context *context)
{
	struct rb_node *root = context->waiting.rb_root.rb_node;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(context->offers.of); i++)
		context->offers.of[i] = root ?
			to_claim(root)->below.of[spyre_context_level(arb, context, i)] : 0;
}

/* Updates the tree of its class after the claims or runners of @context have changed. */
static void spyre_context_update(const struct spyre_arbiter *arb,
				 struct spyre_arb_context *context)
{
	spyre_context_offer(arb, context);
	spyre_context_callbacks.propagate(&context->node, NULL);
}

static void spyre_context_queue(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	spyre_context_offer(arb, context);
	context->below = context->offers;
	rb_add_augmented_cached(&context->node, &arb->class[context->class].contexts,
				spyre_context_less, &spyre_context_callbacks);
}

static void spyre_context_unqueue(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	rb_erase_augmented_cached(&context->node, &arb->class[context->class].contexts,
				  &spyre_context_callbacks);
}

/* Returns the progress of @class less @back. */
static u64 spyre_class_floor(const struct spyre_arb_class *class, u64 back)
{
	return class->front - min(class->front, back);
}

/* Returns the vtime of @context after a pause: behind its class by one slice at most. */
static u64 spyre_context_start(const struct spyre_arb_class *class,
			       const struct spyre_arb_context *context)
{
	return max(context->vtime, spyre_class_floor(class, SPYRE_ARB_SLICE_NS));
}

/*
 * Charges @cost to @context.  A context that lags far behind its class could
 * not use its share, and must not monopolise the card until it has caught up.
 * The further it lags the more it is charged, so that its lag counts only
 * logarithmically.  Contexts that lag equally, because they need the same
 * cores, are charged equally and share equally.
 */
static void spyre_context_pay(const struct spyre_arb_class *class,
			      struct spyre_arb_context *context, u64 cost)
{
	const u64 floor = spyre_class_floor(class, SPYRE_ARB_LAG);
	u64 lag, piece;

	/* Each piece removes a quarter of the remaining lag, so this takes some dozen rounds. */
	while (cost && context->vtime < floor) {
		lag = min(floor - context->vtime, SPYRE_ARB_LAG_MAX);
		piece = min(cost, SPYRE_ARB_SLICE_NS / 4);
		context->vtime += piece + lag * piece / SPYRE_ARB_SLICE_NS;
		cost -= piece;
	}
	context->vtime += cost;
}

/* Records the start of a slice of @context that will cost @ahead. */
static void spyre_context_begin_slice(struct spyre_arbiter *arb,
				      struct spyre_arb_context *context, u64 ahead)
{
	struct spyre_arb_class *class = &arb->class[context->class];

	spyre_context_unqueue(arb, context);
	class->front = max(class->front, context->vtime);
	context->ahead += ahead;
	spyre_context_queue(arb, context);
}

/* Counts one more claim of @context that waits or runs. */
static void spyre_context_enter(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	struct spyre_arb_class *class = &arb->class[context->class];

	class->claims++;
	if (context->claims++)
		return;
	context->vtime = spyre_context_start(class, context);
	spyre_context_queue(arb, context);
}

static void spyre_context_leave(struct spyre_arbiter *arb, struct spyre_arb_context *context)
{
	struct spyre_arb_class *class = &arb->class[context->class];

	class->claims--;
	if (!--context->claims)
		spyre_context_unqueue(arb, context);
	/* The low class keeps its debt, so that it cannot be shed by a pause. */
	if (!arb->class[LOW].claims) {
		arb->owed = min(arb->owed, (s64)0);
		arb->low_first = false;
	}
}

/* Returns the cost of @ns of @claim, by the greater of its shares of cores and places. */
static u64 spyre_claim_cost(const struct spyre_arbiter *arb, const struct spyre_claim *claim,
			    u64 ns)
{
	const u32 cores = claim->cores * SPYRE_ARB_PARTS / arb->num_cores;

	return ns * max(cores, SPYRE_ARB_PARTS / arb->max_active) / SPYRE_ARB_PARTS;
}

/* Credits the low class while it waits, and debits it while it keeps the high class waiting. */
static void spyre_arbiter_owe(struct spyre_arbiter *arb, u32 class, u64 cost)
{
	if (class == HIGH && arb->class[LOW].waiting)
		arb->owed = min(arb->owed + (s64)(cost / (SPYRE_ARB_LOW_PART - 1)),
				SPYRE_ARB_OWED_MAX);
	else if (class == LOW && arb->class[HIGH].waiting)
		arb->owed = max(arb->owed - (s64)cost, -SPYRE_ARB_OWED_MAX);
	if (arb->owed >= (s64)SPYRE_ARB_SLICE_NS)
		arb->low_first = true;
	else if (arb->owed < (s64)SPYRE_ARB_SLICE_NS / 2)
		arb->low_first = false;
}

/* Adds the cost of @claim's slice so far to its context's vtime. */
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
	spyre_context_pay(&arb->class[context->class], context, more);
	spyre_context_queue(arb, context);
	spyre_arbiter_owe(arb, context->class, more);
}

/* Returns the rank of a class; the class with the lower rank takes precedence. */
static u32 spyre_arbiter_rank(const struct spyre_arbiter *arb, u32 class)
{
	return (class == LOW) != arb->low_first;
}

static u32 spyre_arbiter_first_class(const struct spyre_arbiter *arb)
{
	return arb->low_first ? LOW : HIGH;
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
	*context = (struct spyre_arb_context) { .class = class, .waiting = RB_ROOT_CACHED };
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

/* Prefers the pool, so that claims that need the context's own runner find it free. */
static void spyre_claim_take_runner(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	struct spyre_arb_context *context = claim->context;

	if (claim->runner != SPYRE_RUNNER_NONE)
		return;
	if (!claim->own_only && spyre_arbiter_has_pool(arb) &&
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

/* Returns those of @cores that are free and not reserved for another claim. */
static void spyre_claim_take_cores(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores)
{
	u32 n;

	cores &= claim->partition;

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
	/* Pairs with the acquire of a thread that waits for its job's next slice. */
	smp_store_release(&claim->state, state);
}

/* Counts a claim as waiting, until spyre_claim_end_wait(). */
static void spyre_claim_wait(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	struct spyre_arb_context *context = claim->context;

	claim->order = arb->waits++;
	claim->wait = (struct rb_node) {};
	spyre_claim_sum(claim, false);
	rb_add_augmented_cached(&claim->wait, &context->waiting, spyre_claim_less,
				&spyre_claim_callbacks);
	spyre_context_update(arb, context);
	arb->class[context->class].waiting++;
	WRITE_ONCE(arb->waiting, arb->waiting + 1);
	spyre_claim_set_state(claim, SPYRE_CLAIM_WAITING);
}

static void spyre_claim_end_wait(struct spyre_arbiter *arb, struct spyre_claim *claim)
{
	struct spyre_arb_context *context = claim->context;

	rb_erase_augmented_cached(&claim->wait, &context->waiting, &spyre_claim_callbacks);
	spyre_context_update(arb, context);
	arb->class[context->class].waiting--;
	WRITE_ONCE(arb->waiting, arb->waiting - 1);
}

/*
 * Charges running slices up to now before a claim of @class begins to wait.  If
 * no claim of the class was waiting, the time that its contexts have used was
 * taken from no other context, and the arriving one starts level with them.
 */
static void spyre_arbiter_settle(struct spyre_arbiter *arb, u32 class, u64 now)
{
	const bool free = !arb->class[class].waiting;
	struct spyre_claim *active;

	list_for_each_entry(active, &arb->active, node) {
		spyre_claim_bill(arb, active, now);
		if (free && active->context->class == class)
			spyre_context_begin_slice(arb, active->context, 0);
	}
}

void spyre_arbiter_request(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			   bool own_only, u64 now)
{
	const u32 rank = spyre_arbiter_rank(arb, claim->context->class);
	struct spyre_claim *other;

	spyre_arbiter_settle(arb, claim->context->class, now);
	claim->cores = cores;
	claim->own_only = own_only;
	spyre_context_enter(arb, claim->context);
	spyre_claim_wait(arb, claim);
	/* The class that takes precedence does not wait for the end of the other's slices. */
	list_for_each_entry(other, &arb->active, node)
		if (rank < spyre_arbiter_rank(arb, other->context->class))
			WRITE_ONCE(other->slice_end, 0);
}

static void spyre_claim_activate(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
				 u64 now)
{
	spyre_claim_end_wait(arb, claim);
	spyre_claim_take_runner(arb, claim);
	spyre_claim_take_cores(arb, claim, cores);
	list_add_tail(&claim->node, &arb->active);
	arb->num_active++;
	claim->since = now;
	claim->paid = 0;
	claim->ahead = spyre_claim_cost(arb, claim, SPYRE_ARB_SLICE_NS);
	WRITE_ONCE(claim->slice_end, now + SPYRE_ARB_SLICE_NS);
	/* The slice is charged when it starts, so that the next place goes to another context. */
	spyre_context_begin_slice(arb, claim->context, claim->ahead);
	spyre_claim_set_state(claim, SPYRE_CLAIM_ACTIVE);
}

/* Releases cores and place of a claim, but not its runner, and charges its context. */
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

/* Returns the first waiting claim of @context that can run and needs any of @want. */
static struct spyre_claim *spyre_context_first(const struct spyre_arbiter *arb,
					       const struct spyre_arb_context *context, u64 want)
{
	const u32 level = spyre_context_level(arb, context, spyre_arbiter_has_pool(arb));
	struct rb_node *node = context->waiting.rb_root.rb_node;
	struct spyre_claim *claim;

	while (node) {
		claim = to_claim(node);
		if (node->rb_left && to_claim(node->rb_left)->below.of[level] & want)
			node = node->rb_left;
		else if (spyre_claim_level(claim) <= level && spyre_claim_needs(claim) & want)
			return claim;
		else
			node = node->rb_right;
	}
	return NULL;
}

/* Returns the first such claim of all contexts of a class. */
static struct spyre_claim *spyre_class_first(const struct spyre_arbiter *arb, u32 class, u64 want)
{
	struct rb_node *node = arb->class[class].contexts.rb_root.rb_node;
	const bool pool = spyre_arbiter_has_pool(arb);
	struct spyre_arb_context *context;

	while (node) {
		context = to_context(node);
		if (node->rb_left && to_context(node->rb_left)->below.of[pool] & want)
			node = node->rb_left;
		else if (context->offers.of[pool] & want)
			return spyre_context_first(arb, context, want);
		else
			node = node->rb_right;
	}
	return NULL;
}

/*
 * A claim that cannot get its cores reserves them against later claims.  The
 * search then continues with fewer cores: claims that it passed over need none
 * of @want, and so none of the rest of it.
 */
static struct spyre_claim *spyre_class_next_start(const struct spyre_arbiter *arb, u32 class,
						  u64 *want)
{
	struct spyre_claim *claim;

	while ((claim = spyre_class_first(arb, class, *want))) {
		if (spyre_claim_fits(claim, *want))
			return claim;
		*want &= ~spyre_claim_needs(claim);
	}
	return NULL;
}

struct spyre_claim *spyre_arbiter_pick(struct spyre_arbiter *arb, u64 now)
{
	u64 want = arb->free | SPYRE_ARB_NO_CORES;
	u32 class = spyre_arbiter_first_class(arb);
	struct spyre_claim *claim;

	if (!arb->waiting || arb->num_active >= arb->max_active)
		return NULL;
	claim = spyre_class_next_start(arb, class, &want);
	if (!claim)
		claim = spyre_class_next_start(arb, class ^ LOW ^ HIGH, &want);
	if (claim)
		spyre_claim_activate(arb, claim, want, now);
	return claim;
}

/* Returns the first waiting claim that has a runner. */
static struct spyre_claim *spyre_arbiter_next(const struct spyre_arbiter *arb)
{
	const u32 class = spyre_arbiter_first_class(arb);

	return spyre_class_first(arb, class, ~0ull) ?:
	       spyre_class_first(arb, class ^ LOW ^ HIGH, ~0ull);
}

/* Returns true if a claim of @context would precede all waiting claims. */
static bool spyre_context_comes_first(struct spyre_arbiter *arb,
				      const struct spyre_arb_context *context)
{
	struct spyre_claim *next;
	u32 rank, other;

	if (!arb->waiting)
		return true;
	next = spyre_arbiter_next(arb);
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
	spyre_claim_take_cores(arb, claim, arb->free);
	claim->since = now;
	claim->paid = 0;
	claim->ahead = 0;
	spyre_claim_set_state(claim, SPYRE_CLAIM_LIGHT);
	return true;
}

/* Returns true if @claim, which precedes @active, needs its place or cores; else reserves cores. */
static bool spyre_claim_wants(const struct spyre_arbiter *arb, const struct spyre_claim *claim,
			      const struct spyre_claim *active, u64 *want)
{
	const u64 needs = spyre_claim_needs(claim);

	if (spyre_claim_fits(claim, *want & arb->free)) {
		if (arb->num_active >= arb->max_active)
			return true;
	} else if (needs & active->held) {
		return true;
	}
	*want &= ~needs;
	return false;
}

/*
 * Returns the same for the contexts of @active's class.  Claims of its own
 * context alternate with it; claims of others count if they would precede it
 * had it ended.
 */
static bool spyre_class_takes_over(const struct spyre_arbiter *arb,
				   const struct spyre_claim *active, u64 want)
{
	const struct spyre_arb_context *own = active->context;
	const u64 key = spyre_context_key(own) - active->ahead;
	struct spyre_claim *claim;

	while ((claim = spyre_class_first(arb, own->class, want))) {
		if (claim->context != own && spyre_context_key(claim->context) > key)
			break;
		if (spyre_claim_wants(arb, claim, active, &want))
			return true;
	}
	while ((claim = spyre_context_first(arb, own, want)))
		if (spyre_claim_wants(arb, claim, active, &want))
			return true;
	return false;
}

/* Returns true if a claim that precedes @active needs its place or cores. */
static bool spyre_arbiter_takes_over(const struct spyre_arbiter *arb,
				     const struct spyre_claim *active)
{
	const u32 first = spyre_arbiter_first_class(arb);
	u64 want = arb->free | active->held | SPYRE_ARB_NO_CORES;
	struct spyre_claim *claim;

	if (first != active->context->class)
		while ((claim = spyre_class_first(arb, first, want)))
			if (spyre_claim_wants(arb, claim, active, &want))
				return true;
	return spyre_class_takes_over(arb, active, want);
}

bool spyre_arbiter_yields(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now)
{
	if (claim->state != SPYRE_CLAIM_ACTIVE || now < claim->slice_end)
		return false;
	spyre_claim_bill(arb, claim, now);
	if (!spyre_arbiter_takes_over(arb, claim)) {
		spyre_context_begin_slice(arb, claim->context, 0);
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
	spyre_context_update(arb, claim->context);
	spyre_claim_set_state(claim, SPYRE_CLAIM_IDLE);
	spyre_context_leave(arb, claim->context);
}

struct spyre_claim *spyre_arbiter_any_waiting(struct spyre_arbiter *arb)
{
	struct rb_node *node, *first;
	u32 class;

	/* Contexts without a waiting claim have a running one, so only few are passed over. */
	for (class = 0; class < SPYRE_ARB_CLASSES; class++) {
		for (node = rb_first_cached(&arb->class[class].contexts); node;
		     node = rb_next(node)) {
			first = rb_first_cached(&to_context(node)->waiting);
			if (first)
				return to_claim(first);
		}
	}
	return NULL;
}
