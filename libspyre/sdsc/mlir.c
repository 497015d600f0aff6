// SPDX-License-Identifier: MIT
/*
 * bundle.mlir: the small fixed subset of MLIR that SDSC bundles use, one
 * operation per line. Values are evaluated as they are read, so what comes
 * out is the list of executes and loops with their addresses as "argument +
 * constant + stride * loop turn".
 */
#define _GNU_SOURCE	/* tdestroy() */
#include <ctype.h>
#include <inttypes.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/ir.h"

#define TRY(call) do { spyre_status s_ = (call); if (s_ != SPYRE_SUCCESS) return s_; } while (0)

#define MAX_MAP_DIMS 8
#define MAX_VALUES (1u << 20)
#define MAX_STMTS SPYRE_MAX_STEPS
#define ARG_TYPE "!sdscbundle.input_arg<index>"

/* In the text. Names are the file's choice: a hash of them could be made to collide. */
struct name {
	const char *text;
	uint32_t len;
};

struct named {
	struct name name;
	uint32_t depth;		/* visible within this many loops */
	struct named *older;
	struct ir_value value;
};

struct map {
	struct name name;
	uint32_t num_dims;
	uint32_t num_symbols;
	int64_t constant;
	int64_t dim[MAX_MAP_DIMS];
	int64_t symbol[MAX_MAP_DIMS];
};

struct loop {
	uint32_t stmt;		/* index of its LOOP statement */
	bool empty;
};

struct parser {
	const char *file;
	const char *at, *end;
	uint32_t line;
	struct ir_bundle *bundle;
	size_t room_stmts;
	void *values, *maps;		/* trees of struct named and struct map, by name */
	struct named *newest;
	uint32_t num_values;
	uint32_t num_symbols;		/* of all statements */
	struct loop loop[SPYRE_MAX_LOOPS];
	uint32_t depth;
	bool in_module, in_func, done_func, done;
};

__attribute__((format(printf, 2, 3)))
static spyre_status fail(const struct parser *p, const char *format, ...)
{
	char what[256], near[33];
	size_t n = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	while (n < sizeof(near) - 1 && p->at + n < p->end && isprint((unsigned char)p->at[n])) {
		near[n] = p->at[n];
		n++;
	}
	near[n] = '\0';
	return spyre_error(SPYRE_ERROR_PARSE, "%s:%u: %s at \"%s\"", p->file, p->line, what, near);
}

/* Room for one more element; doubles. */
static spyre_status grow(const struct parser *p, void *array, size_t *room, size_t used,
			 size_t size)
{
	void **list = array;
	void *more;
	size_t want;

	if (used < *room)
		return SPYRE_SUCCESS;
	want = *room ? *room * 2 : 64;
	more = realloc(*list, want * size);
	if (!more)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s:%u: no memory for %zu bytes",
				   p->file, p->line, want * size);
	*list = more;
	*room = want;
	return SPYRE_SUCCESS;
}

static void blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
}

/* Takes @token if it comes next. */
static bool take(struct parser *p, const char *token)
{
	size_t len = strlen(token);

	blanks(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len))
		return false;
	p->at += len;
	return true;
}

static spyre_status need(struct parser *p, const char *token)
{
	return take(p, token) ? SPYRE_SUCCESS : fail(p, "expected '%s'", token);
}

static spyre_status number(struct parser *p, int64_t *out)
{
	bool minus = take(p, "-");
	uint64_t n = 0;

	blanks(p);
	if (p->at >= p->end || !isdigit((unsigned char)*p->at))
		return fail(p, "expected a number");
	for (; p->at < p->end && isdigit((unsigned char)*p->at); p->at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p->at - '0'), &n) || n > INT64_MAX)
			return fail(p, "number beyond 63 bits");
	*out = minus ? -(int64_t)n : (int64_t)n;
	return SPYRE_SUCCESS;
}

/* A name after its sigil ('%' or '#'). */
static spyre_status name(struct parser *p, char sigil, struct name *out)
{
	blanks(p);
	if (p->at >= p->end || *p->at != sigil)
		return fail(p, "expected a name that starts with '%c'", sigil);
	out->text = ++p->at;
	while (p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_'))
		p->at++;
	out->len = (uint32_t)(p->at - out->text);
	return out->len && p->at - out->text <= 128 ? SPYRE_SUCCESS : fail(p, "bad name");
}

/* The end of a line of its own. */
static spyre_status line_end(struct parser *p)
{
	blanks(p);
	if (p->at < p->end && *p->at != '\n')
		return fail(p, "unexpected text");
	return SPYRE_SUCCESS;
}

/* Both kinds of entries begin with their name. */
static int by_name(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->text, y->text, x->len);
}

/* Puts a malloc'ed @entry into a tree, or frees it. */
static spyre_status enter(struct parser *p, void **tree, void *entry, char sigil)
{
	struct name *own = entry, *const *found;

	found = own ? tsearch(own, tree, by_name) : NULL;
	if (found && *found == own)
		return SPYRE_SUCCESS;
	if (found) {
		free(own);
		return fail(p, "%c%.*s is defined twice", sigil, (int)(*found)->len,
			    (*found)->text);
	}
	free(own);
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s:%u: no memory for a name", p->file,
			   p->line);
}

static spyre_status use(struct parser *p, struct ir_value *out)
{
	struct named *const *v;
	struct name key;

	TRY(name(p, '%', &key));
	v = tfind(&key, &p->values, by_name);
	if (!v)
		return fail(p, "%%%.*s is not defined here", (int)key.len, key.text);
	*out = (*v)->value;
	return SPYRE_SUCCESS;
}

static spyre_status define(struct parser *p, const struct name *key, const struct ir_value *value)
{
	struct named *own;

	if (p->num_values == MAX_VALUES)
		return fail(p, "more than %u values", MAX_VALUES);
	own = malloc(sizeof(*own));
	if (own)
		*own = (struct named){ *key, p->depth, p->newest, *value };
	TRY(enter(p, &p->values, own, '%'));
	p->newest = own;
	p->num_values++;
	return SPYRE_SUCCESS;
}

/* sum += scale * value; only addresses may have a base, and one at most. */
static spyre_status accumulate(struct parser *p, struct ir_value *sum, int64_t scale,
			       const struct ir_value *value)
{
	int64_t part;

	if (value->base != IR_BASE_NONE && scale) {
		if (sum->base != IR_BASE_NONE || scale != 1)
			return fail(p, "an address may be added once, and not multiplied");
		sum->base = value->base;
		sum->arg = value->arg;
	}
	if (__builtin_mul_overflow(scale, value->constant, &part) ||
	    __builtin_add_overflow(sum->constant, part, &sum->constant))
		return fail(p, "number beyond 63 bits");
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++)
		if (__builtin_mul_overflow(scale, value->turn[i], &part) ||
		    __builtin_add_overflow(sum->turn[i], part, &sum->turn[i]))
			return fail(p, "number beyond 63 bits");
	return SPYRE_SUCCESS;
}

/* "d0, d1" or "s0": consecutive names from 0 on, up to the closing bracket. */
static spyre_status map_names(struct parser *p, char letter, const char *close, uint32_t *count)
{
	char want[4];

	*count = 0;
	while (!take(p, close)) {
		if (*count && !take(p, ","))
			return fail(p, "expected ',' or '%s'", close);
		if (*count == MAX_MAP_DIMS)
			return fail(p, "more than %d of %c0, %c1, …", MAX_MAP_DIMS, letter, letter);
		snprintf(want, sizeof(want), "%c%u", letter, (*count)++);
		TRY(need(p, want));
	}
	return SPYRE_SUCCESS;
}

/* One term of an affine expression: 5, s0, d0, 128*d0, d0*128. */
static spyre_status map_term(struct parser *p, struct map *map)
{
	int64_t factor = 1, after = 1, index;
	int64_t *slot;
	bool is_dim;

	blanks(p);
	if (p->at < p->end && (isdigit((unsigned char)*p->at) || *p->at == '-')) {
		TRY(number(p, &factor));
		if (!take(p, "*")) {
			if (__builtin_add_overflow(map->constant, factor, &map->constant))
				return fail(p, "number beyond 63 bits");
			return SPYRE_SUCCESS;
		}
	}
	is_dim = take(p, "d");
	if (!is_dim)
		TRY(need(p, "s"));
	TRY(number(p, &index));
	if (index < 0 || index >= (is_dim ? map->num_dims : map->num_symbols))
		return fail(p, "%c%" PRId64 " is not a parameter of the map", is_dim ? 'd' : 's',
			    index);
	if (take(p, "*"))
		TRY(number(p, &after));
	slot = is_dim ? &map->dim[index] : &map->symbol[index];
	if (__builtin_mul_overflow(factor, after, &factor) ||
	    __builtin_add_overflow(*slot, factor, slot))
		return fail(p, "number beyond 63 bits");
	return SPYRE_SUCCESS;
}

/* #map_0 = affine_map<(d0)[s0] -> (s0 + 128*d0)> */
static spyre_status parse_map(struct parser *p)
{
	struct map map = { 0 }, *own;

	TRY(name(p, '#', &map.name));
	TRY(need(p, "="));
	TRY(need(p, "affine_map<("));
	TRY(map_names(p, 'd', ")", &map.num_dims));
	if (take(p, "["))
		TRY(map_names(p, 's', "]", &map.num_symbols));
	TRY(need(p, "->"));
	TRY(need(p, "("));
	do
		TRY(map_term(p, &map));
	while (take(p, "+"));
	TRY(need(p, ")>"));
	own = malloc(sizeof(*own));
	if (own)
		*own = map;
	TRY(enter(p, &p->maps, own, '#'));
	return line_end(p);
}

/* Operands of an affine.apply, up to the closing bracket. */
static spyre_status apply_list(struct parser *p, const int64_t *factor, uint32_t count,
			       const char *close, struct ir_value *sum)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ir_value v;

		if (i)
			TRY(need(p, ","));
		TRY(use(p, &v));
		TRY(accumulate(p, sum, factor[i], &v));
	}
	return need(p, close);
}

static spyre_status parse_apply(struct parser *p, struct ir_value *out)
{
	const struct map *map, *const *found;
	struct name key;

	TRY(name(p, '#', &key));
	found = tfind(&key, &p->maps, by_name);
	if (!found)
		return fail(p, "#%.*s is not defined", (int)key.len, key.text);
	map = *found;
	out->constant = map->constant;
	TRY(need(p, "("));
	TRY(apply_list(p, map->dim, map->num_dims, ")", out));
	if (map->num_symbols) {
		TRY(need(p, "["));
		TRY(apply_list(p, map->symbol, map->num_symbols, "]", out));
	}
	return SPYRE_SUCCESS;
}

/* The base that a parameter stands for, by its name and not its position. */
static spyre_status param_value(struct parser *p, const struct name *key, struct ir_value *out)
{
	static const char tail[] = "_base_addr";
	const char *text = key->text;
	uint32_t len = key->len;
	uint32_t n = 0, digits = 0;

	if (len <= sizeof(tail) - 1 ||
	    memcmp(text + len - (sizeof(tail) - 1), tail, sizeof(tail) - 1))
		return fail(p, "expected %%arg_<n>_base_addr or %%pool_base_addr");
	len -= sizeof(tail) - 1;
	if (len == 4 && !memcmp(text, "pool", 4)) {
		out->base = IR_BASE_POOL;
		p->bundle->has_pool = true;
		return SPYRE_SUCCESS;
	}
	for (uint32_t i = 4; i < len && isdigit((unsigned char)text[i]) && digits < 4; i++) {
		n = n * 10 + (uint32_t)(text[i] - '0');
		digits++;
	}
	if (len < 5 || memcmp(text, "arg_", 4) || !digits || 4 + digits != len)
		return fail(p, "expected %%arg_<n>_base_addr or %%pool_base_addr");
	if (n >= SPYRE_MAX_OPERANDS)
		return fail(p, "argument %u, at most %u are supported", n, SPYRE_MAX_OPERANDS);
	out->base = IR_BASE_ARG;
	out->arg = n;
	return SPYRE_SUCCESS;
}

static spyre_status parse_params(struct parser *p)
{
	uint32_t count = 0;

	for (bool first = true; !take(p, ")"); first = false) {
		struct ir_value value = { 0 };
		struct name key;

		if (!first)
			TRY(need(p, ","));
		TRY(name(p, '%', &key));
		TRY(param_value(p, &key, &value));
		TRY(define(p, &key, &value));
		/* Arguments that no SDSC uses may not be listed. */
		if (value.base == IR_BASE_ARG && value.arg >= count)
			count = value.arg + 1;
		TRY(need(p, ":"));
		TRY(need(p, ARG_TYPE));
	}
	p->bundle->num_args = count;
	return SPYRE_SUCCESS;
}

static spyre_status parse_func(struct parser *p)
{
	if (!p->in_module || p->in_func || p->done_func)
		return fail(p, "one function in one module is expected");
	TRY(need(p, "@sdsc_bundle"));
	TRY(need(p, "("));
	TRY(parse_params(p));
	TRY(need(p, "{"));
	p->in_func = true;
	return line_end(p);
}

static spyre_status add_stmt(struct parser *p, const struct ir_stmt *stmt)
{
	if (p->bundle->num_stmts == MAX_STMTS)
		return fail(p, "more than %u statements", MAX_STMTS);
	TRY(grow(p, &p->bundle->stmts, &p->room_stmts, p->bundle->num_stmts,
		 sizeof(*p->bundle->stmts)));
	p->bundle->stmts[p->bundle->num_stmts++] = *stmt;
	return SPYRE_SUCCESS;
}

/* %x = … */
static spyre_status parse_assign(struct parser *p)
{
	struct ir_value value = { 0 }, other;
	struct name key;

	TRY(name(p, '%', &key));
	TRY(need(p, "="));
	if (take(p, "sdscbundle.input_arg_extract value from")) {
		TRY(use(p, &value));
		TRY(need(p, ":"));
		TRY(need(p, ARG_TYPE));
		TRY(need(p, "->"));
		TRY(need(p, "index"));
	} else if (take(p, "arith.constant")) {
		TRY(number(p, &value.constant));
		TRY(need(p, ":"));
		TRY(need(p, "index"));
	} else if (take(p, "arith.addi")) {
		TRY(use(p, &value));
		TRY(need(p, ","));
		TRY(use(p, &other));
		TRY(accumulate(p, &value, 1, &other));
		TRY(need(p, ":"));
		TRY(need(p, "index"));
	} else if (take(p, "affine.apply")) {
		TRY(parse_apply(p, &value));
		if (take(p, ":"))
			TRY(need(p, "index"));
	} else {
		return fail(p, "unknown operation");
	}
	TRY(define(p, &key, &value));
	return line_end(p);
}

/* A loop bound: a value that is one number. */
static spyre_status bound(struct parser *p, int64_t *out)
{
	struct ir_value v;

	TRY(use(p, &v));
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++)
		if (v.turn[i] || v.base != IR_BASE_NONE)
			return fail(p, "loop bounds must be constants");
	*out = v.constant;
	return SPYRE_SUCCESS;
}

/* scf.for %i_0 = %c0 to %loop_bound_0 step %c1 { */
static spyre_status parse_for(struct parser *p)
{
	struct ir_stmt stmt = { .kind = IR_STMT_LOOP, .line = p->line };
	struct ir_value value = { 0 };
	int64_t from, to, step, turns;
	struct name key;

	TRY(name(p, '%', &key));
	TRY(need(p, "="));
	TRY(bound(p, &from));
	TRY(need(p, "to"));
	TRY(bound(p, &to));
	TRY(need(p, "step"));
	TRY(bound(p, &step));
	TRY(need(p, "{"));
	if (p->depth == SPYRE_MAX_LOOPS)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s:%u: more than %u loops in one another (docs/unsupported.md)",
				   p->file, p->line, SPYRE_MAX_LOOPS);
	if (from < 0 || to < 0 || step < 1)
		return fail(p, "loop from %" PRId64 " to %" PRId64 " by %" PRId64 "; bounds start at 0, steps at 1",
			    from, to, step);
	turns = to > from ? (to - from - 1) / step + 1 : 0;
	if (turns > SPYRE_MAX_COUNT)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s:%u: loop of %" PRId64 " turns, the card's counters end at %u (docs/unsupported.md)",
				   p->file, p->line, turns, SPYRE_MAX_COUNT);
	stmt.count = (uint32_t)turns;
	p->loop[p->depth] = (struct loop){ p->bundle->num_stmts, !turns };
	value.constant = from;
	value.turn[p->depth] = step;
	p->depth++;
	TRY(define(p, &key, &value));
	TRY(add_stmt(p, &stmt));
	return line_end(p);
}

static void drop_stmts(struct ir_bundle *bundle, uint32_t from)
{
	for (uint32_t i = from; i < bundle->num_stmts; i++) {
		free(bundle->stmts[i].file);
		free(bundle->stmts[i].symbols);
	}
	bundle->num_stmts = from;
}

static spyre_status close_for(struct parser *p)
{
	struct ir_stmt stmt = { .kind = IR_STMT_END, .line = p->line };
	struct loop *loop = &p->loop[--p->depth];

	while (p->newest && p->newest->depth > p->depth) {
		struct named *v = p->newest;

		p->newest = v->older;
		p->num_values--;
		tdelete(v, &p->values, by_name);
		free(v);
	}
	/* A loop without turns or without executes does nothing. */
	if (loop->empty || p->bundle->num_stmts == loop->stmt + 1) {
		drop_stmts(p->bundle, loop->stmt);
		return SPYRE_SUCCESS;
	}
	return add_stmt(p, &stmt);
}

static spyre_status parse_close(struct parser *p)
{
	if (p->depth)
		TRY(close_for(p));
	else if (p->in_func) {
		p->in_func = false;
		p->done_func = true;
	} else if (p->in_module && p->done_func) {
		p->done = true;
	} else {
		return fail(p, "'}' without '{'");
	}
	return line_end(p);
}

/* File names stay within the bundle's directory. */
static spyre_status file_name(struct parser *p, char **out)
{
	const char *start;
	size_t len;

	TRY(need(p, "\""));
	start = p->at;
	while (p->at < p->end && *p->at != '"' && *p->at != '\n')
		p->at++;
	len = (size_t)(p->at - start);
	TRY(need(p, "\""));
	if (!len || len >= IR_NAME_BYTES || memchr(start, '/', len) || start[0] == '.' ||
	    memchr(start, '\0', len))
		return fail(p, "sdsc_filename must be a plain file name of less than %u bytes",
			    IR_NAME_BYTES);
	*out = strndup(start, len);
	return *out ? SPYRE_SUCCESS : spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
						  "%s:%u: no memory", p->file, p->line);
}

static spyre_status parse_operands(struct parser *p, struct ir_stmt *stmt)
{
	size_t room = 0;

	TRY(need(p, "("));
	while (!take(p, ")")) {
		if (stmt->num_symbols)
			TRY(need(p, ","));
		if (p->num_symbols++ == MAX_VALUES)
			return fail(p, "more than %u operands in all", MAX_VALUES);
		TRY(grow(p, &stmt->symbols, &room, stmt->num_symbols, sizeof(*stmt->symbols)));
		TRY(use(p, &stmt->symbols[stmt->num_symbols].value));
		stmt->num_symbols++;
	}
	return SPYRE_SUCCESS;
}

static int by_id(const void *a, const void *b)
{
	const struct ir_symbol *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static spyre_status parse_ids(struct parser *p, struct ir_stmt *stmt)
{
	uint32_t n = 0;
	int64_t id;

	TRY(need(p, "\"symbol_ids\""));
	TRY(need(p, "="));
	TRY(need(p, "["));
	while (!take(p, "]")) {
		if (n)
			TRY(need(p, ","));
		TRY(number(p, &id));
		if (id >= 0)
			return fail(p, "symbol id %" PRId64 ", they are negative", id);
		if (n == stmt->num_symbols)
			return fail(p, "more symbol_ids than the %u operands", n);
		stmt->symbols[n++].id = id;
	}
	if (n != stmt->num_symbols)
		return fail(p, "%u symbol_ids for %u operands", n, stmt->num_symbols);
	if (n)
		qsort(stmt->symbols, n, sizeof(*stmt->symbols), by_id);
	for (uint32_t i = 1; i < n; i++)
		if (stmt->symbols[i].id == stmt->symbols[i - 1].id)
			return fail(p, "symbol id %" PRId64 " twice", stmt->symbols[i].id);
	return SPYRE_SUCCESS;
}

/* sdscbundle.sdsc_execute (…) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, …]} */
static spyre_status parse_execute(struct parser *p, struct ir_stmt *stmt)
{
	TRY(parse_operands(p, stmt));
	TRY(need(p, "{"));
	TRY(need(p, "sdsc_filename"));
	TRY(need(p, "="));
	TRY(file_name(p, &stmt->file));
	if (take(p, ","))
		TRY(parse_ids(p, stmt));
	else if (stmt->num_symbols)
		return fail(p, "%u operands without symbol_ids", stmt->num_symbols);
	TRY(need(p, "}"));
	TRY(line_end(p));
	return add_stmt(p, stmt);
}

static spyre_status parse_body(struct parser *p)
{
	if (*p->at == '%')
		return parse_assign(p);
	if (take(p, "scf.for"))
		return parse_for(p);
	if (take(p, "sdscbundle.sdsc_execute")) {
		struct ir_stmt stmt = { .kind = IR_STMT_EXECUTE, .line = p->line };
		spyre_status status = parse_execute(p, &stmt);

		if (status != SPYRE_SUCCESS) {
			free(stmt.file);
			free(stmt.symbols);
		}
		return status;
	}
	if (take(p, "return")) {
		if (p->depth)
			return fail(p, "return within a loop");
		return line_end(p);
	}
	return fail(p, "unknown operation");
}

static spyre_status parse_line(struct parser *p)
{
	blanks(p);
	if (p->at == p->end || *p->at == '\n' || take(p, "//")) {
		while (p->at < p->end && *p->at != '\n')
			p->at++;
		return SPYRE_SUCCESS;
	}
	if (p->done)
		return fail(p, "text after the module");
	if (take(p, "}"))
		return parse_close(p);
	if (p->in_func)
		return parse_body(p);
	if (*p->at == '#')
		return parse_map(p);
	if (take(p, "func.func"))
		return parse_func(p);
	if (!p->in_module && take(p, "module")) {
		p->in_module = true;
		TRY(need(p, "{"));
		return line_end(p);
	}
	return fail(p, "expected a module with a function @sdsc_bundle");
}

spyre_status ir_parse_mlir(const char *file, const char *text, size_t size,
			   struct ir_bundle *bundle)
{
	struct parser p = { .file = file, .at = text, .end = text + size, .line = 1,
			    .bundle = bundle };
	spyre_status status = SPYRE_SUCCESS;

	memset(bundle, 0, sizeof(*bundle));
	while (status == SPYRE_SUCCESS && p.at < p.end) {
		status = parse_line(&p);
		if (status == SPYRE_SUCCESS && p.at < p.end) {
			p.at++;
			p.line++;
		}
	}
	if (status == SPYRE_SUCCESS && !p.done)
		status = fail(&p, "the file ends within the module");
	if (status == SPYRE_SUCCESS && !bundle->num_stmts)
		status = fail(&p, "there is no sdsc_execute to run");
	tdestroy(p.values, free);
	tdestroy(p.maps, free);
	if (status != SPYRE_SUCCESS)
		ir_bundle_fini(bundle);
	return status;
}

void ir_bundle_fini(struct ir_bundle *bundle)
{
	drop_stmts(bundle, 0);
	free(bundle->stmts);
	memset(bundle, 0, sizeof(*bundle));
}
