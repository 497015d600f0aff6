/* SPDX-License-Identifier: MIT */
/* Sizes of a language model, from a config.json of transformers. */
#ifndef SPYRE_TOOL_MODEL_H
#define SPYRE_TOOL_MODEL_H

#include "spyre.h"

/* Layers of each kind, and what a step of decoding needs to know of them. */
struct model {
	/* File name without its folder and ".json", and the type of the text model. */
	char name[64];
	char type[32];
	int64_t layers, hidden, vocabulary;
	bool tied;

	/* Layers with attention to the whole context, and to a window. */
	int64_t full_layers, window_layers, window;
	int64_t heads, kv_heads, head_dim;
	bool rotary, qkv_bias, out_bias, sinks;

	/* Columns of the MLP that every token passes; 0: none. */
	int64_t mlp;
	/* Experts of a layer, 0: none; those of a token; columns of one. */
	int64_t experts, chosen, expert_mlp;
	/* Router and experts have biases, and gate and up are clamped. */
	bool clamped;

	/* Layers of Mamba 2. */
	int64_t mamba_layers, mamba_heads, mamba_head_dim, mamba_groups, mamba_state, mamba_taps;
};

/* Reads the config.json @path. Returns 0, or -1 with @why. */
int model_read(const char *path, struct model *model, struct text *why);

/*
 * Checks that @cards can share the model: each has the same number of heads and of
 * columns. Returns 0, or -1 with @why, which names the first size that does not divide.
 */
int model_divisible(const struct model *model, int64_t cards, struct text *why);

#endif /* SPYRE_TOOL_MODEL_H */
