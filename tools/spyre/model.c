// SPDX-License-Identifier: MIT
/* Reads the sizes of a language model from a config.json of transformers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "model.h"

/* Larger than any size of a model, and small enough for products of three in 64 bits. */
#define MAX_SIZE (1 << 20)

/* Features of a type of model that its config.json does not state. */
struct architecture {
	const char *type;
	bool qkv_bias, sinks, experts, mamba;
};

static const struct architecture architectures[] = {
	{ .type = "llama" },
	{ .type = "mistral" },
	{ .type = "ministral" },
	{ .type = "ministral3" },
	{ .type = "qwen2", .qkv_bias = true },
	{ .type = "qwen2_5_vl", .qkv_bias = true },
	{ .type = "qwen2_5_vl_text", .qkv_bias = true },
	{ .type = "gpt_oss", .sinks = true, .experts = true },
	{ .type = "granitemoehybrid", .experts = true, .mamba = true },
};

#define NUM_ARCHITECTURES (sizeof(architectures) / sizeof(architectures[0]))

/* Fields of models that also see are in text_config; older files have all of them outside. */
struct reader {
	const char *path;
	yyjson_val *text, *root;
	struct text *why;
};

static yyjson_val *find(const struct reader *r, const char *name)
{
	yyjson_val *value = yyjson_obj_get(r->text, name);

	if (!value)
		value = yyjson_obj_get(r->root, name);
	return yyjson_is_null(value) ? NULL : value;
}

static bool flag(const struct reader *r, const char *name, bool otherwise)
{
	yyjson_val *value = find(r, name);

	return yyjson_is_bool(value) ? yyjson_get_bool(value) : otherwise;
}

/*
 * Reads a size of at least 1, or 0 if @otherwise is 0. @otherwise replaces a missing one,
 * unless it is negative.
 */
static int read_size(const struct reader *r, const char *name, int64_t otherwise, int64_t *size)
{
	yyjson_val *value = find(r, name);
	int64_t least = otherwise != 0;

	if (!value && otherwise < 0)
		return explain(r->why, "%s: the field \"%s\" is missing; pass the config.json of a "
			       "language model", r->path, name);
	*size = value ? yyjson_get_sint(value) : otherwise;
	if (value && (!yyjson_is_int(value) || *size < least || *size > MAX_SIZE))
		return explain(r->why, "%s: \"%s\" is not a number from %" PRId64 " to %d", r->path,
			       name, least, MAX_SIZE);
	return 0;
}

static int count_layer(const struct reader *r, struct model *m, const char *kind)
{
	if (!strcmp(kind, "full_attention") || !strcmp(kind, "attention"))
		m->full_layers++;
	else if (!strcmp(kind, "sliding_attention"))
		m->window_layers++;
	else if (!strcmp(kind, "mamba"))
		m->mamba_layers++;
	else
		return explain(r->why, "%s: unknown kind of layer \"%.40s\"; valid: full_attention, "
			       "sliding_attention, attention, mamba", r->path, kind);
	return 0;
}

/* Counts the layers of each kind; without a list, all of them are alike. */
static int read_layers(const struct reader *r, const struct architecture *a, struct model *m)
{
	yyjson_val *list = find(r, "layer_types"), *value;
	size_t i, n;

	if (read_size(r, "num_hidden_layers", -1, &m->layers) ||
	    read_size(r, "sliding_window", 0, &m->window))
		return -1;
	if (!list)
		list = find(r, "layers_block_type");
	if (!list && (a->mamba || a->sinks))
		return explain(r->why, "%s: the field \"layer_types\" is missing, and the layers of "
			       "%s are not alike; add it", r->path, a->type);
	if (!flag(r, "use_sliding_window", true))
		m->window = 0;
	if (!list) {
		*(m->window ? &m->window_layers : &m->full_layers) = m->layers;
		return 0;
	}
	if (yyjson_arr_size(list) != (size_t)m->layers)
		return explain(r->why, "%s: \"layer_types\" has %zu entries, \"num_hidden_layers\" is "
			       "%" PRId64, r->path, yyjson_arr_size(list), m->layers);
	yyjson_arr_foreach(list, i, n, value)
	{
		const char *kind = yyjson_get_str(value);

		if (count_layer(r, m, kind ? kind : ""))
			return -1;
	}
	if (m->window_layers && !m->window)
		return explain(r->why, "%s: layers have a window, but the field \"sliding_window\" is "
			       "missing", r->path);
	return 0;
}

static int read_attention(const struct reader *r, const struct architecture *a, struct model *m)
{
	yyjson_val *positions = find(r, "position_embedding_type");
	bool bias = flag(r, "attention_bias", a->sinks);

	if (read_size(r, "num_attention_heads", -1, &m->heads) ||
	    read_size(r, "num_key_value_heads", m->heads, &m->kv_heads) ||
	    read_size(r, "head_dim", m->hidden / m->heads, &m->head_dim))
		return -1;
	if (m->heads % m->kv_heads || !m->head_dim || m->head_dim % 2)
		return explain(r->why, "%s: %" PRId64 " heads of %" PRId64 " columns cannot share %"
			       PRId64 " heads of keys", r->path, m->heads, m->head_dim, m->kv_heads);
	m->rotary = !yyjson_equals_str(positions, "nope");
	m->sinks = a->sinks;
	m->qkv_bias = bias || a->qkv_bias;
	m->out_bias = bias;
	return 0;
}

static int read_mlp(const struct reader *r, const struct architecture *a, struct model *m)
{
	int64_t columns;

	if (read_size(r, "intermediate_size", -1, &columns))
		return -1;
	if (!a->experts) {
		m->mlp = columns;
		return 0;
	}
	if (read_size(r, "num_local_experts", a->mamba ? 0 : -1, &m->experts) ||
	    read_size(r, "shared_intermediate_size", 0, &m->mlp))
		return -1;
	if (!m->experts)
		return 0;
	m->expert_mlp = columns;
	m->clamped = a->sinks;
	if (read_size(r, "num_experts_per_tok", -1, &m->chosen))
		return -1;
	if (m->chosen > m->experts)
		return explain(r->why, "%s: \"num_experts_per_tok\" is %" PRId64 ", there are %" PRId64
			       " experts", r->path, m->chosen, m->experts);
	return 0;
}

static int read_mamba(const struct reader *r, struct model *m)
{
	if (!m->mamba_layers)
		return 0;
	if (read_size(r, "mamba_n_heads", -1, &m->mamba_heads) ||
	    read_size(r, "mamba_d_head", -1, &m->mamba_head_dim) ||
	    read_size(r, "mamba_d_state", -1, &m->mamba_state) ||
	    read_size(r, "mamba_n_groups", 1, &m->mamba_groups) ||
	    read_size(r, "mamba_d_conv", 4, &m->mamba_taps))
		return -1;
	if (m->mamba_heads % m->mamba_groups)
		return explain(r->why, "%s: %" PRId64 " heads of Mamba cannot share %" PRId64
			       " groups", r->path, m->mamba_heads, m->mamba_groups);
	return 0;
}

static const struct architecture *find_architecture(const char *type)
{
	for (size_t i = 0; i < NUM_ARCHITECTURES; i++)
		if (!strcmp(architectures[i].type, type))
			return &architectures[i];
	return NULL;
}

static int unknown_architecture(const struct reader *r, const char *type)
{
	char valid[256] = "";

	for (size_t i = 0; i < NUM_ARCHITECTURES; i++)
		snprintf(valid + strlen(valid), sizeof(valid) - strlen(valid), "%s%s",
			 i ? ", " : "", architectures[i].type);
	return explain(r->why, "%s: unknown architecture (model_type) \"%.40s\"; valid: %s", r->path,
		       type, valid);
}

static int read_model(const struct reader *r, struct model *m)
{
	const char *type = yyjson_get_str(yyjson_obj_get(r->text, "model_type"));
	const struct architecture *a;

	if (!type)
		return explain(r->why, "%s: the field \"model_type\" is missing; pass the config.json "
			       "of a language model", r->path);
	a = find_architecture(type);
	if (!a)
		return unknown_architecture(r, type);
	snprintf(m->type, sizeof(m->type), "%s", type);
	m->tied = flag(r, "tie_word_embeddings", false);
	if (read_size(r, "hidden_size", -1, &m->hidden) ||
	    read_size(r, "vocab_size", -1, &m->vocabulary) || read_layers(r, a, m) ||
	    read_attention(r, a, m) || read_mlp(r, a, m))
		return -1;
	return read_mamba(r, m);
}

/* "tools/models/llama-3.1-8b.json" is "llama-3.1-8b". */
static void name_after(const char *path, struct model *m)
{
	const char *slash = strrchr(path, '/');
	size_t length;

	snprintf(m->name, sizeof(m->name), "%s", slash ? slash + 1 : path);
	length = strlen(m->name);
	if (length > 5 && !strcmp(m->name + length - 5, ".json"))
		m->name[length - 5] = '\0';
}

int model_read(const char *path, struct model *model, struct text *why)
{
	struct reader reader = { .path = path, .why = why };
	yyjson_read_err err;
	yyjson_doc *doc;
	int failed;

	memset(model, 0, sizeof(*model));
	name_after(path, model);
	doc = yyjson_read_file(path, 0, NULL, &err);
	if (!doc && err.code == YYJSON_READ_ERROR_FILE_OPEN)
		return explain(why, "cannot read '%s': %s", path, strerror(errno));
	if (!doc)
		return explain(why, "cannot read '%s': %s at byte %zu", path, err.msg, err.pos);
	reader.root = yyjson_doc_get_root(doc);
	reader.text = yyjson_obj_get(reader.root, "text_config");
	if (!reader.text)
		reader.text = reader.root;
	failed = read_model(&reader, model);
	yyjson_doc_free(doc);
	return failed;
}

int model_divisible(const struct model *model, int64_t cards, struct text *why)
{
	/* Cards beyond the number of heads of keys, or of groups, share them. */
	int64_t keys = model->kv_heads < cards ? cards % model->kv_heads : model->kv_heads % cards;
	const struct {
		const char *name;
		int64_t size;
	} sizes[] = {
		{ "attention heads", model->full_layers + model->window_layers ? model->heads : 0 },
		{ "columns of the MLP", model->mlp },
		{ "columns of an expert", model->expert_mlp },
		{ "heads of Mamba", model->mamba_heads },
		{ "words of the vocabulary", model->vocabulary },
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].size % cards)
			return explain(why, "%" PRId64 " %s are not divisible by %" PRId64
				       " cards; choose another --cards", sizes[i].size, sizes[i].name,
				       cards);
	if (keys)
		return explain(why, "%" PRId64 " heads of keys cannot be shared by %" PRId64
			       " cards; choose another --cards", model->kv_heads, cards);
	return 0;
}
