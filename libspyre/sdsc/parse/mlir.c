// SPDX-License-Identifier: MIT
/*
 * bundle.mlir: the small fixed subset of MLIR that SDSC bundles use, one
 * operation per line. Values are evaluated while they are read, so the result is
 * the list of executes and loops, with addresses as "argument + constant + stride
 * * iteration".
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/affine.h"
#include "libspyre/sdsc/parse/mlir.h"
#include "libspyre/sdsc/parse/name_table.h"

#define MAX_VALUES (1u << 20)
#define MAX_STMTS SPYRE_MAX_STEPS
#define ARG_TYPE "!sdscbundle.input_arg<index"

struct named {
	struct name name;
	uint32_t depth;		/* depth of the loop that ends its scope */
	struct ir_value value;
};

struct map {
	struct name name;
	struct affine affine;
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
	size_t capacity_stmts;
	struct name_table value_names, map_names;
	struct named *values;
	struct map *maps;
	size_t capacity_values, capacity_maps;
	uint32_t last_used;		/* value */
	struct ir_symbol *operands;	/* of the current statement */
	size_t capacity_operands;
	uint32_t num_symbols;		/* total of all statements */
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

/* Reserves element @count of an array. */
static spyre_status reserve(const struct parser *p, void *array, size_t *capacity, size_t count,
			    size_t size)
{
	if (spyre_array_reserve(array, capacity, count + 1, size))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s:%u: no memory for %zu bytes of the parsed bundle",
			   p->file, p->line, (count + 1) * size);
}

static void blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
}

/* Takes @token if it comes next. Inline, so that the compiler knows most tokens' lengths. */
static inline __attribute__((always_inline)) bool take(struct parser *p, const char *token)
{
	size_t len = strlen(token);

	blanks(p);
	if ((size_t)(p->end - p->at) < len || *p->at != *token || memcmp(p->at, token, len))
		return false;
	p->at += len;
	return true;
}

static spyre_status missing(struct parser *p, const char *token)
{
	return fail(p, "expected '%s'", token);
}

static inline __attribute__((always_inline)) spyre_status need(struct parser *p, const char *token)
{
	return take(p, token) ? SPYRE_SUCCESS : missing(p, token);
}

static spyre_status number(struct parser *p, int64_t *out)
{
	bool minus = take(p, "-");
	uint64_t n = 0;

	blanks(p);
	if (p->at >= p->end || *p->at < '0' || *p->at > '9')
		return fail(p, "expected a number");
	for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
		uint64_t more = n * 10 + (uint64_t)(*p->at - '0');

		if (n > INT64_MAX / 10 || more > INT64_MAX)
			return fail(p, "number beyond 63 bits");
		n = more;
	}
	*out = minus ? -(int64_t)n : (int64_t)n;
	return SPYRE_SUCCESS;
}

static const bool name_byte[256] = {
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['_'] = true,
};

/* Finds the end of a name, by four bytes at first: most names have more than 16. */
static const char *name_end(const char *at, const char *end)
{
	while (end - at >= 4 &&
	       name_byte[(unsigned char)at[0]] & name_byte[(unsigned char)at[1]] &
	       name_byte[(unsigned char)at[2]] & name_byte[(unsigned char)at[3]])
		at += 4;
	while (at < end && name_byte[(unsigned char)*at])
		at++;
	return at;
}

/* Reads a name after its sigil ('%' or '#'). */
static spyre_status name(struct parser *p, char sigil, struct name *out)
{
	blanks(p);
	if (p->at >= p->end || *p->at != sigil)
		return fail(p, "expected a name that starts with '%c'", sigil);
	out->text = ++p->at;
	p->at = name_end(p->at, p->end);
	out->len = (uint32_t)(p->at - out->text);
	return out->len && p->at - out->text <= 128 ? SPYRE_SUCCESS : fail(p, "expected a name of 1 to 128 letters, digits and '_'");
}

/* Expects the end of the line. */
static spyre_status line_end(struct parser *p)
{
	blanks(p);
	if (p->at < p->end && *p->at != '\n')
		return fail(p, "expected the end of the line");
	return SPYRE_SUCCESS;
}

/* Adds a name to a table. */
static spyre_status enter(struct parser *p, struct name_table *table, const void *entries,
			  size_t entry_bytes, const struct name *key, char sigil)
{
	enum name_result result = name_add(table, entries, entry_bytes, key);

	if (result == NAME_EXISTS)
		return fail(p, "%c%.*s is defined twice", sigil, (int)key->len, key->text);
	if (result == NAME_NO_MEMORY)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s:%u: no memory for a name",
				   p->file, p->line);
	return SPYRE_SUCCESS;
}

static bool is_value(const struct parser *p, uint32_t index, const struct name *key)
{
	return index < p->value_names.num && name_equal(&p->values[index].name, key);
}

/*
 * Finds a value. Most are used right after their definition, or in the order of definitions with
 * one other value between two, so that those are tried before the name is hashed.
 */
static uint32_t find_value(const struct parser *p, const struct name *key)
{
	if (is_value(p, p->value_names.num - 1, key))
		return p->value_names.num - 1;
	if (is_value(p, p->last_used + 2, key))
		return p->last_used + 2;
	return name_find(&p->value_names, p->values, sizeof(*p->values), key);
}

static spyre_status use(struct parser *p, struct ir_value *out)
{
	struct name key;
	uint32_t at;

	TRY(name(p, '%', &key));
	at = find_value(p, &key);
	if (at == NAME_NONE)
		return fail(p, "%%%.*s is not defined here", (int)key.len, key.text);
	p->last_used = at;
	*out = p->values[at].value;
	return SPYRE_SUCCESS;
}

static spyre_status define(struct parser *p, const struct name *key, const struct ir_value *value)
{
	uint32_t n = p->value_names.num;

	if (n == MAX_VALUES)
		return fail(p, "more than %u values", MAX_VALUES);
	TRY(reserve(p, &p->values, &p->capacity_values, n, sizeof(*p->values)));
	TRY(enter(p, &p->value_names, p->values, sizeof(*p->values), key, '%'));
	p->values[n] = (struct named){ *key, p->depth, *value };
	return SPYRE_SUCCESS;
}

/* sum += scale * value; fails if both have a base, or if a base would be scaled. */
static spyre_status accumulate(struct parser *p, struct ir_value *sum, int64_t scale,
			       const struct ir_value *value)
{
	const char *why;

	return affine_add(sum, scale, value, &why) ? SPYRE_SUCCESS : fail(p, "%s", why);
}

/* Reads "d0, d1" or "s0": consecutive names from 0 on, up to the closing bracket. */
static spyre_status map_names(struct parser *p, char letter, const char *close, uint32_t *count)
{
	char want[4];

	*count = 0;
	while (!take(p, close)) {
		if (*count && !take(p, ","))
			return fail(p, "expected ',' or '%s'", close);
		if (*count == AFFINE_MAX_PARAMETERS)
			return fail(p, "more than %u of %c0, %c1, …", AFFINE_MAX_PARAMETERS,
				    letter, letter);
		snprintf(want, sizeof(want), "%c%u", letter, (*count)++);
		TRY(need(p, want));
	}
	return SPYRE_SUCCESS;
}

static spyre_status map_value(struct parser *p, const struct affine *map,
			      const struct ir_value *dims, const struct ir_value *symbols,
			      struct ir_value *out, const char **stop)
{
	struct affine_error error;

	if (affine_eval(map, dims, symbols, out, stop, &error))
		return SPYRE_SUCCESS;
	if (error.status == SPYRE_ERROR_UNSUPPORTED)
		return spyre_error(error.status, "%s:%u: %s (docs/unsupported.md)", p->file,
				   p->line, error.what);
	/* The map of an affine.apply is in another line; its errors are reported at the apply. */
	if (error.at >= p->at && error.at <= p->end)
		p->at = error.at;
	return fail(p, "%s", error.what);
}

/* Reads affine_map<(d0)[s0] -> (s0 + 128*d0)> and checks it by evaluating it for 0. */
static spyre_status map_body(struct parser *p, struct affine *map)
{
	static const struct ir_value zeros[AFFINE_MAX_PARAMETERS];
	struct ir_value value;

	TRY(need(p, "affine_map<("));
	TRY(map_names(p, 'd', ")", &map->num_dims));
	if (take(p, "["))
		TRY(map_names(p, 's', "]", &map->num_symbols));
	TRY(need(p, "->"));
	TRY(need(p, "("));
	map->text = p->at;
	map->end = memchr(p->at, '\n', (size_t)(p->end - p->at));
	if (!map->end)
		map->end = p->end;
	TRY(map_value(p, map, zeros, zeros, &value, &p->at));
	return need(p, ")>");
}

/* Parses #map_0 = affine_map<…> */
static spyre_status parse_map(struct parser *p)
{
	struct map map = { 0 };
	uint32_t n = p->map_names.num;

	TRY(name(p, '#', &map.name));
	TRY(need(p, "="));
	TRY(map_body(p, &map.affine));
	if (n == MAX_VALUES)
		return fail(p, "more than %u maps", MAX_VALUES);
	TRY(reserve(p, &p->maps, &p->capacity_maps, n, sizeof(*p->maps)));
	TRY(enter(p, &p->map_names, p->maps, sizeof(*p->maps), &map.name, '#'));
	p->maps[n] = map;
	return line_end(p);
}

/* Reads the operands of an affine.apply, up to the closing bracket. */
static spyre_status apply_list(struct parser *p, uint32_t count, const char *close,
			       struct ir_value *values)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			TRY(need(p, ","));
		TRY(use(p, &values[i]));
	}
	return need(p, close);
}

static spyre_status parse_apply(struct parser *p, struct ir_value *out)
{
	struct ir_value dims[AFFINE_MAX_PARAMETERS], symbols[AFFINE_MAX_PARAMETERS];
	struct affine map = { 0 };
	const char *stop;
	struct name key;
	uint32_t at;

	blanks(p);
	if (p->at < p->end && *p->at == 'a') {
		TRY(map_body(p, &map));
	} else {
		TRY(name(p, '#', &key));
		at = name_find(&p->map_names, p->maps, sizeof(*p->maps), &key);
		if (at == NAME_NONE)
			return fail(p, "#%.*s is not defined", (int)key.len, key.text);
		map = p->maps[at].affine;
	}
	TRY(need(p, "("));
	TRY(apply_list(p, map.num_dims, ")", dims));
	if (map.num_symbols) {
		TRY(need(p, "["));
		TRY(apply_list(p, map.num_symbols, "]", symbols));
	}
	return map_value(p, &map, dims, symbols, out, &stop);
}

/*
 * sdscbundle.device_mem_allocate: memory for intermediates, which all iterations
 * of a loop share. Front-ends write "N bytes : index"; accepted are also a number
 * without the unit, a constant, both also in brackets, and an attribute {size = …}.
 */
static spyre_status parse_allocate(struct parser *p, struct ir_value *out)
{
	struct ir_bundle *bundle = p->bundle;
	bool brackets = take(p, "("), braces = !brackets && take(p, "{");
	struct ir_value size = { 0 };

	if (braces) {
		TRY(need(p, "size"));
		TRY(need(p, "="));
	}
	blanks(p);
	if (p->at < p->end && *p->at == '%')
		TRY(use(p, &size));
	else
		TRY(number(p, &size.constant));
	if (braces && take(p, ":"))
		TRY(take(p, "index") ? SPYRE_SUCCESS : need(p, "i64"));
	if (brackets || braces)
		TRY(need(p, brackets ? ")" : "}"));
	else
		take(p, "bytes");
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++)
		if (size.per_iter[i] || size.base != IR_BASE_NONE)
			return fail(p, "the size of an allocation must be a constant");
	if (size.constant < 1 || (uint64_t)size.constant > SPYRE_MAX_EXTENT)
		return fail(p, "allocation of %" PRId64 " bytes, expected 1 to %llu",
			    size.constant, SPYRE_MAX_EXTENT);
	if (bundle->num_mem == IR_MAX_MEM)
		return fail(p, "more than %u allocations", IR_MAX_MEM);
	out->base = IR_BASE_MEM;
	out->arg = bundle->num_mem;
	bundle->mem[bundle->num_mem++] =
		(struct ir_mem){ (uint64_t)size.constant, p->line };
	TRY(need(p, ":"));
	if (take(p, "index"))
		return take(p, "->") ? need(p, "index") : SPYRE_SUCCESS;
	TRY(need(p, "()"));
	TRY(need(p, "->"));
	return need(p, "index");
}

/* Determines the base of a parameter by its name, not by its position. */
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

/*
 * Parses the type of a parameter. That of an address is input_arg<index>; the size of a
 * dimension also has a granularity and a maximum.
 */
static spyre_status param_type(struct parser *p, bool *is_size, struct ir_size_param *size)
{
	TRY(need(p, ":"));
	TRY(need(p, ARG_TYPE));
	*is_size = take(p, ",");
	if (!*is_size)
		return need(p, ">");
	TRY(need(p, "granularity"));
	TRY(need(p, "="));
	TRY(number(p, &size->granularity));
	TRY(need(p, ","));
	TRY(need(p, "max_value"));
	TRY(need(p, "="));
	TRY(number(p, &size->max));
	if (size->granularity < 1 || size->max < 1 || size->max % size->granularity)
		return fail(p, "granularity %" PRId64 " and max_value %" PRId64 "; both start at 1, and max_value is a multiple of the other",
			    size->granularity, size->max);
	return need(p, ">");
}

/* Adds a parameter that is the size of a dimension. */
static spyre_status size_param(struct parser *p, const struct name *key,
			       struct ir_size_param *size, struct ir_value *out)
{
	static const char tail[] = "_base";
	struct ir_bundle *bundle = p->bundle;
	uint32_t len = key->len;

	if (len > sizeof(tail) - 1 &&
	    !memcmp(key->text + len - (sizeof(tail) - 1), tail, sizeof(tail) - 1))
		len -= sizeof(tail) - 1;
	if (len >= sizeof(size->name))
		return fail(p, "name of more than %zu bytes for the size of a dimension",
			    sizeof(size->name) - 1);
	if (bundle->num_size_params == IR_MAX_SIZE_PARAMS)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s:%u: %%%.*s is one size of a dimension too many, a bundle has at most %u (docs/unsupported.md)",
				   p->file, p->line, (int)key->len, key->text, IR_MAX_SIZE_PARAMS);
	memcpy(size->name, key->text, len);
	size->line = p->line;
	out->base = IR_BASE_SIZE;
	out->arg = bundle->num_size_params;
	bundle->size_param[bundle->num_size_params++] = *size;
	return SPYRE_SUCCESS;
}

static spyre_status parse_params(struct parser *p)
{
	uint32_t count = 0;

	for (bool first = true; !take(p, ")"); first = false) {
		struct ir_size_param size = { 0 };
		struct ir_value value = { 0 };
		struct name key;
		bool is_size;

		if (!first)
			TRY(need(p, ","));
		TRY(name(p, '%', &key));
		TRY(param_type(p, &is_size, &size));
		TRY(is_size ? size_param(p, &key, &size, &value) : param_value(p, &key, &value));
		/* A launch passes the values in the order of the parameters. */
		if (!is_size && p->bundle->num_size_params)
			return fail(p, "the sizes of dimensions must follow all addresses");
		TRY(define(p, &key, &value));
		/* The list may lack arguments that no SDSC uses. */
		if (value.base == IR_BASE_ARG && value.arg >= count)
			count = value.arg + 1;
	}
	p->bundle->num_args = count;
	return SPYRE_SUCCESS;
}

static spyre_status parse_func(struct parser *p)
{
	if (!p->in_module || p->in_func || p->done_func)
		return fail(p, "expected one function in one module");
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
	TRY(reserve(p, &p->bundle->stmts, &p->capacity_stmts, p->bundle->num_stmts,
		    sizeof(*p->bundle->stmts)));
	p->bundle->stmts[p->bundle->num_stmts++] = *stmt;
	return SPYRE_SUCCESS;
}

/* Parses the operand of an input_arg_extract, whose type repeats that of the parameter. */
static spyre_status parse_extract(struct parser *p, struct ir_value *value)
{
	struct ir_size_param size = { 0 };
	bool is_size;

	TRY(use(p, value));
	TRY(param_type(p, &is_size, &size));
	if (is_size != (value->base == IR_BASE_SIZE))
		return fail(p, "the type differs from that of the parameter");
	if (is_size) {
		const struct ir_size_param *param = &p->bundle->size_param[value->arg];

		if (size.granularity != param->granularity || size.max != param->max)
			return fail(p, "granularity %" PRId64 " and max_value %" PRId64 ", in line %u they are %" PRId64 " and %" PRId64,
				    size.granularity, size.max, param->line, param->granularity,
				    param->max);
	}
	TRY(need(p, "->"));
	return need(p, "index");
}

/* Parses %x = … */
static spyre_status parse_assign(struct parser *p)
{
	struct ir_value value = { 0 }, other;
	struct name key;

	TRY(name(p, '%', &key));
	TRY(need(p, "="));
	if (take(p, "sdscbundle.input_arg_extract value from")) {
		TRY(parse_extract(p, &value));
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
	} else if (take(p, "sdscbundle.device_mem_allocate")) {
		TRY(parse_allocate(p, &value));
	} else {
		return fail(p, "unknown operation");
	}
	TRY(define(p, &key, &value));
	return line_end(p);
}

/* Reads a loop bound, which must be a constant. */
static spyre_status bound(struct parser *p, int64_t *out)
{
	struct ir_value v;

	TRY(use(p, &v));
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++)
		if (v.per_iter[i] || v.base != IR_BASE_NONE)
			return fail(p, "loop bounds must be constants");
	*out = v.constant;
	return SPYRE_SUCCESS;
}

/* Parses scf.for %i_0 = %c0 to %loop_bound_0 step %c1 { */
static spyre_status parse_for(struct parser *p)
{
	struct ir_stmt stmt = { .kind = IR_STMT_LOOP, .line = p->line };
	struct ir_value value = { 0 };
	int64_t from, to, step, iters;
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
				   "%s:%u: loops nested more than %u deep (docs/unsupported.md)",
				   p->file, p->line, SPYRE_MAX_LOOPS);
	if (step < 1 || __builtin_sub_overflow(to, from, &iters))
		return fail(p, "loop from %" PRId64 " to %" PRId64 " by %" PRId64 "; steps start at 1",
			    from, to, step);
	iters = iters > 0 ? (iters - 1) / step + 1 : 0;
	if (iters > SPYRE_MAX_COUNT)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s:%u: loop of %" PRId64 " iterations, the card's counters have at most %u (docs/unsupported.md)",
				   p->file, p->line, iters, SPYRE_MAX_COUNT);
	stmt.count = (uint32_t)iters;
	p->loop[p->depth] = (struct loop){ p->bundle->num_stmts, !iters };
	value.constant = from;
	value.per_iter[p->depth] = step;
	p->depth++;
	TRY(define(p, &key, &value));
	TRY(add_stmt(p, &stmt));
	return line_end(p);
}

static spyre_status close_for(struct parser *p)
{
	struct ir_stmt stmt = { .kind = IR_STMT_END, .line = p->line };
	struct loop *loop = &p->loop[--p->depth];

	while (p->value_names.num && p->values[p->value_names.num - 1].depth > p->depth)
		name_remove_last(&p->value_names, &p->values[p->value_names.num - 1].name);
	/* A loop without iterations or executes is dropped. */
	if (loop->empty || p->bundle->num_stmts == loop->stmt + 1) {
		p->bundle->num_stmts = loop->stmt;
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

/* Reads a file name, which must not leave the bundle's directory. */
static spyre_status file_name(struct parser *p, const char **out)
{
	const char *start;
	char *copy;
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
	copy = spyre_region_alloc(&p->bundle->memory, len + 1);
	if (!copy)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "%s:%u: no memory for %zu bytes of a file name", p->file,
				   p->line, len + 1);
	memcpy(copy, start, len);
	copy[len] = '\0';
	*out = copy;
	return SPYRE_SUCCESS;
}

/* Parses the operands of an execute into p->operands, which lack their ids. */
static spyre_status parse_operands(struct parser *p, uint32_t *count)
{
	uint32_t n = 0;

	TRY(need(p, "("));
	while (!take(p, ")")) {
		if (n)
			TRY(need(p, ","));
		if (p->num_symbols++ == MAX_VALUES)
			return fail(p, "more than %u operands in all", MAX_VALUES);
		TRY(reserve(p, &p->operands, &p->capacity_operands, n, sizeof(*p->operands)));
		TRY(use(p, &p->operands[n++].value));
	}
	*count = n;
	return SPYRE_SUCCESS;
}

static int by_id(const void *a, const void *b)
{
	const struct ir_symbol *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts by ascending id. Most files list -1, -2, …, which only needs a reversal. */
static void sort_symbols(struct ir_symbol *symbols, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && symbols[i].id < symbols[i - 1].id)
		i++;
	if (i < n) {
		qsort(symbols, n, sizeof(*symbols), by_id);
		return;
	}
	for (i = 0; i < n / 2; i++) {
		struct ir_symbol swap = symbols[i];

		symbols[i] = symbols[n - 1 - i];
		symbols[n - 1 - i] = swap;
	}
}

/* Parses the ids of @operands operands and sorts p->operands by them. */
static spyre_status parse_ids(struct parser *p, uint32_t operands)
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
			return fail(p, "symbol id %" PRId64 ", expected a negative number", id);
		if (n == operands)
			return fail(p, "more symbol_ids than the %u operands", n);
		p->operands[n++].id = id;
	}
	if (n != operands)
		return fail(p, "%u symbol_ids for %u operands", n, operands);
	sort_symbols(p->operands, n);
	for (uint32_t i = 1; i < n; i++)
		if (p->operands[i].id == p->operands[i - 1].id)
			return fail(p, "symbol id %" PRId64 " twice", p->operands[i].id);
	return SPYRE_SUCCESS;
}

/* Gives a statement a copy of the operands, which takes no more memory than they need. */
static spyre_status copy_operands(struct parser *p, struct ir_stmt *stmt, uint32_t operands)
{
	size_t bytes = operands * sizeof(*p->operands);

	if (!operands)
		return SPYRE_SUCCESS;
	stmt->symbols = spyre_region_alloc(&p->bundle->memory, bytes);
	if (!stmt->symbols)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s:%u: no memory for %zu bytes of the parsed bundle",
				   p->file, p->line, bytes);
	memcpy(stmt->symbols, p->operands, bytes);
	stmt->num_symbols = operands;
	return SPYRE_SUCCESS;
}

/* Parses sdscbundle.sdsc_execute (…) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, …]} */
static spyre_status parse_execute(struct parser *p, struct ir_stmt *stmt)
{
	uint32_t operands = 0;

	TRY(parse_operands(p, &operands));
	TRY(need(p, "{"));
	TRY(need(p, "sdsc_filename"));
	TRY(need(p, "="));
	TRY(file_name(p, &stmt->file));
	if (take(p, ","))
		TRY(parse_ids(p, operands));
	else if (operands)
		return fail(p, "%u operands without symbol_ids", operands);
	TRY(need(p, "}"));
	TRY(line_end(p));
	TRY(copy_operands(p, stmt, operands));
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

		return parse_execute(p, &stmt);
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
	while (!status && p.at < p.end) {
		status = parse_line(&p);
		if (!status && p.at < p.end) {
			p.at++;
			p.line++;
		}
	}
	if (!status && !p.done)
		status = fail(&p, "the file ends within the module");
	if (!status && !bundle->num_stmts)
		status = fail(&p, "there is no sdsc_execute to run");
	name_fini(&p.value_names);
	name_fini(&p.map_names);
	free(p.values);
	free(p.maps);
	free(p.operands);
	if (status)
		ir_bundle_fini(bundle);
	return status;
}
