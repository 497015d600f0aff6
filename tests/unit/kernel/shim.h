/* SPDX-License-Identifier: MIT */
/*
 * The part of the kernel's interface that the arbiter uses, for programs: its
 * source is built unchanged with the headers in this folder. The trees are treaps,
 * which have the interface of red-black trees and a shape that depends only on the
 * number of insertions.
 */
#ifndef TESTS_UNIT_KERNEL_SHIM_H
#define TESTS_UNIT_KERNEL_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef int64_t s64;
typedef uint64_t u64;

#define U32_MAX UINT32_MAX
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#define BIT_ULL(n) (1ull << (n))
#define GENMASK(high, low) ((u32)((~0ull >> (63 - (high))) & (~0ull << (low))))
#define hweight32(mask) ((u32)__builtin_popcount(mask))

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

/* There is one thread, so plain accesses suffice. */
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define smp_store_release(pointer, value) (*(pointer) = (value))

struct list_head {
	struct list_head *next, *prev;
};

#define list_for_each_entry(entry, head, member) \
	for ((entry) = container_of((head)->next, __typeof__(*(entry)), member); \
	     &(entry)->member != (head); \
	     (entry) = container_of((entry)->member.next, __typeof__(*(entry)), member))

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	node->next = head;
	node->prev = head->prev;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

struct rb_node {
	struct rb_node *parent, *rb_left, *rb_right;
	u32 priority;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct rb_augment_callbacks {
	/* Updates @rb and its ancestors up to the first that does not change. */
	void (*propagate)(struct rb_node *rb, struct rb_node *stop);
	/* Updates @rb alone. */
	void (*compute)(struct rb_node *rb);
};

#define RB_ROOT_CACHED ((struct rb_root_cached){ { NULL } })
#define rb_entry(node, type, member) container_of(node, type, member)

#define RB_DECLARE_CALLBACKS(scope, name, type, member, sum, recompute)			\
scope void name##_propagate(struct rb_node *rb, struct rb_node *stop)			\
{											\
	while (rb != stop && !recompute(rb_entry(rb, type, member), true))		\
		rb = rb->parent;							\
}											\
scope void name##_compute(struct rb_node *rb)						\
{											\
	recompute(rb_entry(rb, type, member), false);					\
}											\
scope const struct rb_augment_callbacks name = { name##_propagate, name##_compute };

typedef bool (*rb_less_fn)(struct rb_node *a, const struct rb_node *b);

static inline struct rb_node *rb_first_cached(const struct rb_root_cached *tree)
{
	struct rb_node *node = tree->rb_root.rb_node;

	while (node && node->rb_left)
		node = node->rb_left;
	return node;
}

static inline struct rb_node *rb_next(struct rb_node *node)
{
	if (node->rb_right) {
		for (node = node->rb_right; node->rb_left; node = node->rb_left)
			;
		return node;
	}
	while (node->parent && node == node->parent->rb_right)
		node = node->parent;
	return node->parent;
}

/* Returns the pointer that points at @node. */
static inline struct rb_node **rb_link(struct rb_root *root, struct rb_node *node)
{
	if (!node->parent)
		return &root->rb_node;
	return node == node->parent->rb_left ? &node->parent->rb_left : &node->parent->rb_right;
}

/* Swaps @node with its parent by a rotation. */
static inline void rb_rotate_up(struct rb_root *root, struct rb_node *node,
				const struct rb_augment_callbacks *augment)
{
	struct rb_node *parent = node->parent, *inner;

	*rb_link(root, parent) = node;
	node->parent = parent->parent;
	parent->parent = node;
	if (node == parent->rb_left) {
		inner = node->rb_right;
		node->rb_right = parent;
		parent->rb_left = inner;
	} else {
		inner = node->rb_left;
		node->rb_left = parent;
		parent->rb_right = inner;
	}
	if (inner)
		inner->parent = parent;
	augment->compute(parent);
	augment->compute(node);
}

static inline void rb_compute_up(struct rb_node *node, const struct rb_augment_callbacks *augment)
{
	for (; node; node = node->parent)
		augment->compute(node);
}

static inline void rb_add_augmented_cached(struct rb_node *node, struct rb_root_cached *tree,
					   rb_less_fn less,
					   const struct rb_augment_callbacks *augment)
{
	static u32 random = 1;
	struct rb_node **link = &tree->rb_root.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = less(node, parent) ? &parent->rb_left : &parent->rb_right;
	}
	random = random * 1664525u + 1013904223u;
	*node = (struct rb_node){ .parent = parent, .priority = random >> 8 };
	*link = node;
	rb_compute_up(node, augment);
	while (node->parent && node->priority > node->parent->priority)
		rb_rotate_up(&tree->rb_root, node, augment);
}

static inline void rb_erase_augmented_cached(struct rb_node *node, struct rb_root_cached *tree,
					     const struct rb_augment_callbacks *augment)
{
	struct rb_node *child;

	while (node->rb_left || node->rb_right) {
		child = node->rb_left;
		if (!child || (node->rb_right && node->rb_right->priority > child->priority))
			child = node->rb_right;
		rb_rotate_up(&tree->rb_root, child, augment);
	}
	*rb_link(&tree->rb_root, node) = NULL;
	rb_compute_up(node->parent, augment);
}

#endif
