// SPDX-License-Identifier: MIT
/* Launching a kernel: all checks come before anything is queued. */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/sizes.h"
#include "libspyre/runtime/kernel.h"
#include "libspyre/runtime/table.h"
#include "libspyre/sdsc/parse/symbols.h"

/* Front-ends copy 32-bit integers by kernels of fp32 and name indices unsigned. */
static bool same_format(spyre_format want, spyre_format has)
{
	if (want == has)
		return true;
	return (has == SPYRE_FORMAT_IEEE_INT32 || has == SPYRE_FORMAT_SENUINT32) &&
	       (want == SPYRE_FORMAT_IEEE_INT32 || want == SPYRE_FORMAT_SENUINT32 ||
		want == SPYRE_FORMAT_IEEE_FP32);
}

static spyre_status check_layout(const struct spyre_kernel *kernel, uint32_t index,
				 const spyre_layout *layout)
{
	const spyre_arg_info *want = &kernel->bundle.args[index];
	const struct bundle_arg_spec *spec = &kernel->bundle.specs[index];
	char wants[160], has[160];

	if (want->format && !same_format(want->format, layout->device_format))
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "kernel \"%s\", argument %u: it takes %s, the layout is %s",
				   kernel->bundle.name, index, spyre_format_name(want->format),
				   spyre_format_name(layout->device_format));
	if (!want->device_rank)		/* a table, or no SDSC uses it */
		return SPYRE_SUCCESS;
	if (layout->device_rank > SPYRE_MAX_DEVICE_RANK || !layout->device_rank ||
	    layout->device_size[layout->device_rank - 1] !=
		    want->device_size[want->device_rank - 1] ||
	    !bundle_same_sizes(want->device_size, want->device_rank - 1,
			       layout->device_size, layout->device_rank - 1))
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\", argument %u: it takes device size %s, the layout has %s",
				   kernel->bundle.name, index,
				   sizes_text(wants, sizeof(wants), want->device_size,
					      want->device_rank),
				   sizes_text(has, sizeof(has), layout->device_size,
					      layout->device_rank > SPYRE_MAX_DEVICE_RANK ? 0 :
					      layout->device_rank));
	if (spec->has_layout && spec->arrangement != layout->arrangement)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\", argument %u: launch_spec.json has element arrangement %d, the layout %d",
				   kernel->bundle.name, index, spec->arrangement,
				   layout->arrangement);
	return SPYRE_SUCCESS;
}

/* Compares the host tensor with launch_spec.json. */
static spyre_status check_host(const struct spyre_kernel *kernel, uint32_t index,
			       const spyre_host_tensor *host, const int64_t *values)
{
	const struct bundle_arg_spec *spec = &kernel->bundle.specs[index];
	char wants[160], has[160];
	int64_t want[SPYRE_MAX_RANK];
	bool same;

	if (spec->dtype != SPYRE_FORMAT_INVALID && spec->dtype != host->format)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "kernel \"%s\", argument %u: launch_spec.json has host format %s, the tensor is %s",
				   kernel->bundle.name, index, spyre_format_name(spec->dtype),
				   spyre_format_name(host->format) ?: "of no known format");
	if (!spec->has_shape)
		return SPYRE_SUCCESS;
	same = host->rank == spec->rank;
	for (uint32_t i = 0; i < spec->rank; i++) {
		want[i] = spec->shape[i] < 0 ? values[-1 - spec->shape[i]] : spec->shape[i];
		same = same && host->size[i] == want[i];
	}
	if (same)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "kernel \"%s\", argument %u: launch_spec.json has shape %s, the tensor has %s",
			   kernel->bundle.name, index,
			   sizes_text(wants, sizeof(wants), want, spec->rank),
			   sizes_text(has, sizeof(has), host->size,
				      host->rank > SPYRE_MAX_RANK ? 0 : host->rank));
}

static spyre_status check_arg(const struct spyre_kernel *kernel, uint32_t index,
			      const spyre_launch_arg *arg, const int64_t *values)
{
	spyre_status status = SPYRE_SUCCESS;

	if (arg->layout)
		status = check_layout(kernel, index, arg->layout);
	if (!status && arg->host)
		status = check_host(kernel, index, arg->host, values);
	if (!status && arg->address % SPYRE_STICK)
		status = spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				     "kernel \"%s\", argument %u: 0x%" PRIx64
				     " is not 128-byte aligned; use the start of an allocation "
				     "plus a multiple of 128", kernel->bundle.name, index,
				     arg->address);
	return status;
}

static spyre_status check_args(struct spyre_kernel *kernel, const spyre_launch_arg *args,
			       uint32_t num_args, struct kernel_sizes *sizes)
{
	struct spyre_span spans[SPYRE_MAX_OPERANDS];
	spyre_status status;

	for (uint32_t i = 0; i < num_args; i++) {
		uint64_t bytes = kernel->bundle.args[i].bytes;

		TRY(check_arg(kernel, i, &args[i], sizes->values));
		if (kernel->bundle.table[i]) {
			TRY(table_bytes(kernel, i, &args[i], &sizes->bytes[i]));
			bytes = sizes->bytes[i] > bytes ? sizes->bytes[i] : bytes;
		}
		spans[i] = (struct spyre_span){
			.address = args[i].address,
			.bytes = bytes,
			.what = "argument",
			.index = i,
		};
	}
	status = spyre_memory_check(kernel->context, spans, num_args);
	if (status)
		return spyre_error_prefix(status, "kernel \"%s\"", kernel->bundle.name);
	return SPYRE_SUCCESS;
}

static spyre_status bind_one(const struct spyre_kernel *kernel, const spyre_binding *binding,
			     int64_t *values, uint32_t *bound)
{
	const struct spyre_bundle *b = &kernel->bundle;
	const struct bundle_symbol *symbol;
	int at;

	if (!binding->symbol)
		return spyre_null_argument("spyre_launch_ex", "bindings[].symbol");
	at = symbols_find(b->symbols, b->num_symbols, binding->symbol);
	if (at < 0)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\" has no symbol \"%.64s\" among its %u (value %" PRId64 ")",
				   b->name, binding->symbol, b->num_symbols, binding->value);
	symbol = &b->symbols[at];
	if (*bound >> at & 1)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\": symbol %s is bound twice, to %" PRId64 " and %" PRId64,
				   b->name, symbol->name, values[at], binding->value);
	if (binding->value < symbol->min || binding->value > symbol->max)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\": symbol %s = %" PRId64 ", it takes %" PRId64 " to %" PRId64,
				   b->name, symbol->name, binding->value, symbol->min, symbol->max);
	if (binding->value % symbol->granularity)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\": symbol %s = %" PRId64 ", it takes multiples of %" PRId64 " up to %" PRId64,
				   b->name, symbol->name, binding->value, symbol->granularity,
				   symbol->max);
	*bound |= 1u << at;
	values[at] = binding->value;
	return SPYRE_SUCCESS;
}

static spyre_status bind_all(const struct spyre_kernel *kernel, const spyre_launch_params *params,
			     int64_t *values)
{
	const struct spyre_bundle *b = &kernel->bundle;
	uint32_t bound = 0;

	if (params->num_bindings && !params->bindings)
		return spyre_null_argument("spyre_launch_ex", "bindings");
	for (uint32_t i = 0; i < params->num_bindings; i++) {
		spyre_status status = bind_one(kernel, &params->bindings[i], values, &bound);

		if (status)
			return status;
	}
	for (uint32_t i = 0; i < b->num_symbols; i++)
		if (!(bound >> i & 1))
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "kernel \"%s\": symbol %s (%" PRId64 " to %" PRId64 ") is not bound; give it a value (spyre_launch_ex, spyre launch --bind %s=N)",
					   b->name, b->symbols[i].name, b->symbols[i].min,
					   b->symbols[i].max, b->symbols[i].name);
	return SPYRE_SUCCESS;
}

/* Checks everything of a launch except addresses and symbols. */
static spyre_status check_call(spyre_stream *stream, spyre_kernel *kernel, const void *args,
			       uint32_t num_args)
{
	spyre_status status = spyre_stream_check(stream);

	if (!status)
		status = kernel_check(kernel);
	if (status)
		return status;
	if (stream->context != kernel->context)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_launch: kernel \"%s\" and the stream belong to two contexts",
				   kernel->bundle.name);
	if (num_args != kernel->bundle.num_args)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\" takes %u arguments, the launch gives %u",
				   kernel->bundle.name, kernel->bundle.num_args, num_args);
	return num_args && !args ? spyre_null_argument("spyre_launch", "args") : SPYRE_SUCCESS;
}

static spyre_status enqueue(spyre_stream *stream, spyre_kernel *kernel,
			    struct kernel_variant *variant, const spyre_launch_arg *args,
			    spyre_devptr pool, uint64_t *seq)
{
	uint64_t addresses[SPYRE_MAX_OPERANDS];
	struct spyre_command command = { .type = SPYRE_COMMAND_EXEC };
	struct spyre_work work = {
		.what = "launch", .kernel = kernel, .variant = variant, .pool = pool,
		.commands = &command, .num_commands = 1,
	};
	const struct spyre_bundle_operand *operands = kernel->bundle.operands;
	uint32_t num_operands = kernel->bundle.num_operands;

	command.exec.program = kernel->program;
	if (variant) {
		operands = variant->operands;
		num_operands = variant->num_operands;
		command.exec.program = variant->program;
	}
	for (uint32_t i = 0; i < num_operands; i++)
		addresses[i] = operands[i].kind == SPYRE_OPERAND_POOL ?
			       pool + operands[i].offset : args[operands[i].arg].address;
	command.exec.args = addresses;
	command.exec.num_args = num_operands;
	return spyre_stream_enqueue(stream, &work, seq);
}

/* Queues a launch with intermediates, which concurrent streams must not share. */
static spyre_status enqueue_pooled(spyre_stream *stream, spyre_kernel *kernel,
				   struct kernel_variant *variant, const spyre_launch_arg *args)
{
	struct kernel_pool *pool;
	spyre_status status;
	uint64_t seq;

	pthread_mutex_lock(&kernel->pools_lock);
	status = kernel_pool_take(kernel, stream, &pool);
	if (!status)
		status = enqueue(stream, kernel, variant, args, pool->address, &seq);
	if (!status)
		kernel_pool_used(kernel, pool, stream, seq);
	pthread_mutex_unlock(&kernel->pools_lock);
	return status;
}

static spyre_status launch(spyre_stream *stream, spyre_kernel *kernel,
			   const spyre_launch_params *params)
{
	const bool has_sizes = kernel->bundle.num_symbols || kernel->has_tables;
	struct kernel_sizes sizes;
	struct kernel_variant *variant = NULL;
	spyre_status status;

	/* Only tables and variants of sizes, which are rare, read more than the values. */
	if (has_sizes)
		memset(&sizes, 0, sizeof(sizes));
	else
		memset(sizes.values, 0, sizeof(sizes.values));
	status = bind_all(kernel, params, sizes.values);
	if (!status)
		status = check_args(kernel, params->args, params->num_args, &sizes);
	if (!status && has_sizes)
		status = kernel_variant_get(kernel, &sizes, &variant);
	if (status)
		return status;
	if (kernel->bundle.pool_bytes && !stream->capture)
		status = enqueue_pooled(stream, kernel, variant, params->args);
	else if (kernel->bundle.pool_bytes)
		status = enqueue(stream, kernel, variant, params->args, SPYRE_POOL_OF_GRAPH, NULL);
	else
		status = enqueue(stream, kernel, variant, params->args, 0, NULL);
	kernel_variant_put(kernel, variant);
	return status;
}

spyre_status spyre_launch(spyre_stream *stream, spyre_kernel *kernel, const spyre_arg *args,
			  uint32_t num_args)
{
	spyre_launch_arg list[SPYRE_MAX_OPERANDS];
	spyre_launch_params params = { .args = list, .num_args = num_args };
	spyre_status status = check_call(stream, kernel, args, num_args);

	if (status)
		return status;
	for (uint32_t i = 0; i < num_args; i++)
		list[i] = (spyre_launch_arg){ args[i].address, args[i].layout, NULL };
	return launch(stream, kernel, &params);
}

spyre_status spyre_launch_ex(spyre_stream *stream, spyre_kernel *kernel,
			     const spyre_launch_params *params)
{
	spyre_launch_params own = { 0 };

	if (!params)
		return spyre_null_argument("spyre_launch_ex", "params");
	TRY(spyre_struct_check("spyre_launch_ex", "launch_params", params));
	/* Callers of an older version pass a shorter struct. */
	memcpy(&own, params, params->struct_size < sizeof(own) ? params->struct_size : sizeof(own));
	TRY(check_call(stream, kernel, own.args, own.num_args));
	return launch(stream, kernel, &own);
}
