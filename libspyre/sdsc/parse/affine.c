// SPDX-License-Identifier: MIT
/* Expressions of affine maps: see affine.h. */
#include "libspyre/sdsc/parse/affine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 32u

struct eval {
	const struct affine *map;
	const struct ir_value *dims, *symbols;
	const char *at;
	uint32_t depth;
	struct affine_error *error;
};

__attribute__((format(printf, 3, 4)))
static bool fail(struct eval *e, spyre_status status, const char *format, ...)
{
	va_list args;

	e->error->status = status;
	e->error->at = e->at;
	va_start(args, format);
	vsnprintf(e->error->what, sizeof(e->error->what), format, args);
	va_end(args);
	return false;
}

bool affine_add(struct ir_value *sum, int64_t scale, const struct ir_value *value,
		const char **why)
{
	int64_t part;

	*why = "an address may be added once, and not multiplied";
	if (value->base != IR_BASE_NONE && scale) {
		if (sum->base != IR_BASE_NONE || scale != 1)
			return false;
		sum->base = value->base;
		sum->arg = value->arg;
	}
	*why = "number beyond 63 bits";
	if (__builtin_mul_overflow(scale, value->constant, &part) ||
	    __builtin_add_overflow(sum->constant, part, &sum->constant))
		return false;
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++)
		if (__builtin_mul_overflow(scale, value->per_iter[i], &part) ||
		    __builtin_add_overflow(sum->per_iter[i], part, &sum->per_iter[i]))
			return false;
	return true;
}

static bool is_constant(const struct ir_value *v)
{
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++)
		if (v->per_iter[i])
			return false;
	return v->base == IR_BASE_NONE;
}

static bool take(struct eval *e, const char *token)
{
	size_t len = strlen(token);

	while (e->at < e->map->end && (*e->at == ' ' || *e->at == '\t'))
		e->at++;
	if ((size_t)(e->map->end - e->at) < len || memcmp(e->at, token, len))
		return false;
	e->at += len;
	return true;
}

static bool number(struct eval *e, int64_t *out)
{
	uint64_t n = 0;

	take(e, "");
	if (e->at >= e->map->end || !isdigit((unsigned char)*e->at))
		return fail(e, SPYRE_ERROR_PARSE, "expected a number");
	for (; e->at < e->map->end && isdigit((unsigned char)*e->at); e->at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*e->at - '0'), &n) || n > INT64_MAX)
			return fail(e, SPYRE_ERROR_PARSE, "number beyond 63 bits");
	*out = (int64_t)n;
	return true;
}

static bool sum(struct eval *e, struct ir_value *out);

/* Parses d0, s0, 5, -x or (x). */
static bool factor(struct eval *e, struct ir_value *out)
{
	struct ir_value value = { 0 };
	const char *why;
	int64_t index;
	bool is_dim;

	memset(out, 0, sizeof(*out));
	if (e->depth == MAX_DEPTH)
		return fail(e, SPYRE_ERROR_PARSE, "brackets nested more than %u deep", MAX_DEPTH);
	if (take(e, "(") || take(e, "-")) {
		bool minus = e->at[-1] == '-', ok;

		e->depth++;
		ok = minus ? factor(e, &value) : sum(e, &value);
		e->depth--;
		if (!ok)
			return false;
		if (!minus && !take(e, ")"))
			return fail(e, SPYRE_ERROR_PARSE, "expected ')'");
		return affine_add(out, minus ? -1 : 1, &value, &why) ||
		       fail(e, SPYRE_ERROR_PARSE, "%s", why);
	}
	if (e->at < e->map->end && isdigit((unsigned char)*e->at))
		return number(e, &out->constant);
	is_dim = take(e, "d");
	if (!is_dim && !take(e, "s"))
		return fail(e, SPYRE_ERROR_PARSE, "expected a number, d<n> or s<n>");
	if (!number(e, &index))
		return false;
	if (index >= (is_dim ? e->map->num_dims : e->map->num_symbols))
		return fail(e, SPYRE_ERROR_PARSE, "%c%" PRId64 " is not a parameter of the map",
			    is_dim ? 'd' : 's', index);
	*out = is_dim ? e->dims[index] : e->symbols[index];
	return true;
}

static bool multiply(struct eval *e, struct ir_value *left, const struct ir_value *right)
{
	struct ir_value product = { 0 };
	bool constant = is_constant(right);
	const char *why;

	if (!constant && !is_constant(left))
		return fail(e, SPYRE_ERROR_PARSE, "a product needs a constant factor");
	if (!(constant ? affine_add(&product, right->constant, left, &why) :
			 affine_add(&product, left->constant, right, &why)))
		return fail(e, SPYRE_ERROR_PARSE, "%s", why);
	*left = product;
	return true;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

enum division { FLOORDIV, CEILDIV, MOD };

/*
 * Loops add multiples of @per_iter. If the divisor divides these, the quotient is
 * that of the constant plus @per_iter / divisor per iteration.
 */
static bool divide(struct eval *e, struct ir_value *left, const struct ir_value *right,
		   enum division how)
{
	static const char *const names[] = { "floordiv", "ceildiv", "mod" };
	int64_t by = right->constant, rest;

	if (!is_constant(right) || by < 1)
		return fail(e, SPYRE_ERROR_PARSE, "%s needs a constant divisor from 1 on",
			    names[how]);
	if (left->base != IR_BASE_NONE)
		return fail(e, SPYRE_ERROR_UNSUPPORTED, "%s of an address", names[how]);
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++) {
		if (left->per_iter[i] % by)
			return fail(e, SPYRE_ERROR_UNSUPPORTED,
				    "%s by %" PRId64 " of a value that grows by %" PRId64 " per loop iteration",
				    names[how], by, left->per_iter[i]);
		left->per_iter[i] = how == MOD ? 0 : left->per_iter[i] / by;
	}
	rest = left->constant - floor_div(left->constant, by) * by;
	if (how == MOD)
		left->constant = rest;
	else
		left->constant = floor_div(left->constant, by) + (how == CEILDIV && rest);
	return true;
}

static bool term(struct eval *e, struct ir_value *out)
{
	struct ir_value right;

	if (!factor(e, out))
		return false;
	for (;;) {
		enum division how = FLOORDIV;

		if (take(e, "*")) {
			if (!factor(e, &right) || !multiply(e, out, &right))
				return false;
			continue;
		}
		if (take(e, "ceildiv"))
			how = CEILDIV;
		else if (take(e, "mod"))
			how = MOD;
		else if (!take(e, "floordiv"))
			return true;
		if (!factor(e, &right) || !divide(e, out, &right, how))
			return false;
	}
}

static bool sum(struct eval *e, struct ir_value *out)
{
	struct ir_value right;
	const char *why;

	if (!term(e, out))
		return false;
	for (;;) {
		bool minus = take(e, "-");

		if (!minus && !take(e, "+"))
			return true;
		if (!term(e, &right))
			return false;
		if (!affine_add(out, minus ? -1 : 1, &right, &why))
			return fail(e, SPYRE_ERROR_PARSE, "%s", why);
	}
}

bool affine_eval(const struct affine *map, const struct ir_value *dims,
		 const struct ir_value *symbols, struct ir_value *out, const char **stop,
		 struct affine_error *error)
{
	struct eval e = { .map = map, .dims = dims, .symbols = symbols, .at = map->text,
			  .error = error };

	if (!sum(&e, out))
		return false;
	*stop = e.at;
	return true;
}
