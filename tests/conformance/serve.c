// SPDX-License-Identifier: MIT
/*
 * Calls libspyre for a client at the other end of two pipes, so that tests in Python reach a
 * library that their own process cannot load, such as one for another architecture. A request
 * is a line of words, with the bytes of a tensor behind that of 'put'; the answer is "ok" and
 * a number, with bytes behind that of 'get', or "error STATUS TEXT". card.py's PipeCard is the
 * client. Elements pass the pipes little endian.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/spyre.h>

#define MAX_KERNELS 16
#define MAX_ARGS 64
#define MAX_BINDINGS 16
#define MAX_LINE 65536

struct server {
	spyre_context *context;
	spyre_stream *stream;
	spyre_kernel *kernels[MAX_KERNELS];
	/** Words of the request that were not taken yet. */
	char *rest;
};

_Noreturn __attribute__((format(printf, 1, 2))) static void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("serve: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static char *take_word(struct server *server)
{
	char *word = strtok_r(server->rest, " \n", &server->rest);

	if (!word)
		give_up("a request ends too early");
	return word;
}

static int64_t take_number(struct server *server)
{
	const char *word = take_word(server);
	char *end;
	/* Addresses of the card use all 64 bits, sizes have a sign. */
	int64_t number = *word == '-' ? strtoll(word, &end, 10) : (int64_t)strtoull(word, &end, 10);

	if (*end)
		give_up("'%s' is not a number", word);
	return number;
}

static uint32_t take_count(struct server *server, uint32_t limit)
{
	int64_t count = take_number(server);

	if (count < 0 || count > limit)
		give_up("a count of %" PRId64 " exceeds %u", count, limit);
	return (uint32_t)count;
}

static spyre_kernel **take_kernel(struct server *server)
{
	return &server->kernels[take_count(server, MAX_KERNELS - 1)];
}

static spyre_status take_layout(struct server *server, spyre_layout *layout)
{
	spyre_format format = spyre_format_from_name(take_word(server));
	uint32_t rank = take_count(server, SPYRE_MAX_DEVICE_RANK);
	int64_t size[SPYRE_MAX_DEVICE_RANK], stride[SPYRE_MAX_DEVICE_RANK];

	for (uint32_t d = 0; d < rank; d++)
		size[d] = take_number(server);
	for (uint32_t d = 0; d < rank; d++)
		stride[d] = take_number(server);
	return spyre_layout_init_explicit(layout, rank, size, stride, format, 0);
}

/*
 * Allocates the tensor's elements, *@bytes bytes of zero, which the caller frees also if the
 * description is refused.
 */
static spyre_status take_host(struct server *server, spyre_host_tensor *host, size_t *bytes)
{
	spyre_format format = spyre_format_from_name(take_word(server));
	uint32_t rank = take_count(server, SPYRE_MAX_RANK);
	int64_t size[SPYRE_MAX_RANK];
	spyre_status status;
	void *data;

	*bytes = spyre_format_bytes(format);
	for (uint32_t d = 0; d < rank; d++) {
		size[d] = take_number(server);
		*bytes *= (size_t)size[d];
	}
	data = calloc(1, *bytes ? *bytes : 1);
	if (!data)
		give_up("no memory for a tensor of %zu bytes", *bytes);
	status = spyre_host_tensor_dense(host, data, format, rank, size);
	/* A refused description has no elements. */
	host->data = data;
	return status;
}

/* Between the order of the pipes and that of this host, which are the same on most. */
static void swap_elements(const spyre_host_tensor *host, size_t bytes)
{
	size_t element = spyre_format_bytes(host->format);

	for (size_t i = 0; i < bytes; i += element) {
		char *at = (char *)host->data + i;
		uint16_t two;
		uint32_t four;
		uint64_t eight;

		if (element == 2) {
			memcpy(&two, at, 2);
			two = le16toh(two);
			memcpy(at, &two, 2);
		} else if (element == 4) {
			memcpy(&four, at, 4);
			four = le32toh(four);
			memcpy(at, &four, 4);
		} else if (element == 8) {
			memcpy(&eight, at, 8);
			eight = le64toh(eight);
			memcpy(at, &eight, 8);
		}
	}
}

static void answer(spyre_status status, uint64_t number)
{
	if (status)
		printf("error %d %s\n", status, spyre_last_error());
	else
		printf("ok %" PRIu64 "\n", number);
}

static void serve_bytes(struct server *server)
{
	spyre_layout layout;
	spyre_status status = take_layout(server, &layout);

	answer(status, status ? 0 : spyre_layout_bytes(&layout));
}

static void serve_alloc(struct server *server)
{
	uint64_t bytes = (uint64_t)take_number(server);
	spyre_devptr address = 0;
	spyre_status status = spyre_mem_alloc(server->context, bytes, &address);

	answer(status, address);
}

static void serve_free(struct server *server)
{
	answer(spyre_mem_free(server->context, (spyre_devptr)take_number(server)), 0);
}

/* The tensor of 'put' and 'get': where it is on the card, and its elements here. */
struct tensor {
	spyre_devptr address;
	spyre_layout layout;
	spyre_host_tensor host;
	size_t bytes;
};

/* The caller frees the elements also if the tensor is refused. */
static spyre_status take_tensor(struct server *server, struct tensor *t)
{
	spyre_status status, second;

	t->address = (spyre_devptr)take_number(server);
	status = take_layout(server, &t->layout);
	second = take_host(server, &t->host, &t->bytes);
	return status ? status : second;
}

static void serve_put(struct server *server)
{
	struct tensor t;
	spyre_status status = take_tensor(server, &t);

	/* The bytes are there even if the request is refused. */
	if (fread(t.host.data, 1, t.bytes, stdin) != t.bytes)
		give_up("the client sent less than %zu bytes", t.bytes);
	if (!status) {
		swap_elements(&t.host, t.bytes);
		status = spyre_copy_h2d(server->context, t.address, &t.layout, &t.host);
	}
	answer(status, 0);
	free(t.host.data);
}

static void serve_get(struct server *server)
{
	struct tensor t;
	spyre_status status = take_tensor(server, &t);

	if (!status)
		status = spyre_copy_d2h(server->context, &t.host, t.address, &t.layout);
	answer(status, t.bytes);
	if (!status) {
		swap_elements(&t.host, t.bytes);
		fwrite(t.host.data, 1, t.bytes, stdout);
	}
	free(t.host.data);
}

static void serve_fill(struct server *server)
{
	spyre_devptr address = (spyre_devptr)take_number(server);
	size_t bytes = (size_t)take_number(server);
	int byte = (int)take_number(server);
	void *filled = malloc(bytes ? bytes : 1);

	if (!filled)
		give_up("no memory for %zu bytes", bytes);
	memset(filled, byte, bytes);
	answer(spyre_memcpy_h2d(server->context, address, filled, bytes), 0);
	free(filled);
}

static void serve_load(struct server *server)
{
	spyre_kernel_options options = { .struct_size = sizeof(options) };
	spyre_status status;
	uint32_t place = 0;
	char *directory;

	options.lx_kept = (uint32_t)take_number(server);
	/* A path may have spaces. */
	directory = server->rest;
	directory[strcspn(directory, "\n")] = 0;
	while (place < MAX_KERNELS && server->kernels[place])
		place++;
	if (place == MAX_KERNELS)
		give_up("%d kernels are loaded already", MAX_KERNELS);
	status = spyre_kernel_load_ex(server->context, directory, &options,
				      &server->kernels[place]);
	answer(status, place);
}

static void serve_unload(struct server *server)
{
	spyre_kernel **kernel = take_kernel(server);

	answer(spyre_kernel_unload(*kernel), 0);
	*kernel = NULL;
}

/* launch KERNEL ARGS BINDINGS, ADDRESS and layout for each argument, SYMBOL VALUE for each. */
static void serve_launch(struct server *server)
{
	spyre_kernel *kernel = *take_kernel(server);
	spyre_launch_arg args[MAX_ARGS] = { 0 };
	spyre_layout layouts[MAX_ARGS];
	spyre_binding bindings[MAX_BINDINGS] = { 0 };
	spyre_launch_params params = { .struct_size = sizeof(params),
				       .args = args, .bindings = bindings };
	spyre_status status = 0;

	params.num_args = take_count(server, MAX_ARGS);
	params.num_bindings = take_count(server, MAX_BINDINGS);
	for (uint32_t i = 0; i < params.num_args && !status; i++) {
		args[i].address = (spyre_devptr)take_number(server);
		args[i].layout = &layouts[i];
		status = take_layout(server, &layouts[i]);
	}
	for (uint32_t i = 0; i < params.num_bindings && !status; i++) {
		bindings[i].symbol = take_word(server);
		bindings[i].value = take_number(server);
	}
	if (!status)
		status = spyre_launch_ex(server->stream, kernel, &params);
	if (!status)
		status = spyre_stream_synchronize(server->stream);
	answer(status, 0);
}

static const struct {
	const char *name;
	void (*serve)(struct server *server);
} requests[] = {
	{ "bytes", serve_bytes }, { "alloc", serve_alloc }, { "free", serve_free },
	{ "put", serve_put }, { "get", serve_get }, { "fill", serve_fill },
	{ "load", serve_load }, { "unload", serve_unload }, { "launch", serve_launch },
};

static void serve(struct server *server)
{
	const char *name = take_word(server);

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (!strcmp(name, requests[i].name)) {
			requests[i].serve(server);
			fflush(stdout);
			return;
		}
	give_up("there is no request '%s'", name);
}

int main(void)
{
	static char line[MAX_LINE];
	struct server server = { 0 };

	if (spyre_context_create(0, 0, &server.context) ||
	    spyre_stream_get(server.context, 0, &server.stream))
		give_up("%s", spyre_last_error());
	while (fgets(line, sizeof(line), stdin)) {
		server.rest = line;
		serve(&server);
	}
	return spyre_context_destroy(server.context) ? 1 : 0;
}
