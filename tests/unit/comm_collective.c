/* SPDX-License-Identifier: MIT */
/*
 * Collectives on 1 to 8 ranks, processes and threads, against a reference that is computed on
 * the host: the contributions added in the order of the ranks, in fp32, and rounded once.
 */
#include "config.h"

#include <pthread.h>

#include "comm_ranks.h"

#define MAX_RANKS 8
#define SUM ((spyre_reduction){ .op = SPYRE_REDUCE_SUM })


/* Rounds as a copy to the card does. */
static float dl16(float x)
{
	double number = x;
	uint16_t bits;

	rank_ok(spyre_format_encode(SPYRE_FORMAT_SEN169_FP16, &number, 1, &bits));
	rank_ok(spyre_format_decode(SPYRE_FORMAT_SEN169_FP16, &bits, 1, &number));
	return (float)number;
}

#define VALUES 511

static float table[MAX_RANKS][VALUES];

static void fill_table(void)
{
	for (uint32_t rank = 0; rank < MAX_RANKS; rank++)
		for (int i = 0; i < VALUES; i++)
			table[rank][i] = dl16((float)(i - VALUES / 2) / 16.0f * (1 + rank));
}

/* Element @i of the contribution of @rank, which depends on both; rounded to DL16. */
static float value(uint32_t rank, uint64_t i)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const uint32_t hash = (uint32_t)(i * 2654435761u + rank * 40503u);

	pthread_once(&once, fill_table);
	return table[rank][(hash >> 20) % VALUES];
}

struct tensor {
	int64_t size[2];
	uint64_t count;
	spyre_format format;
	spyre_layout layout;
	spyre_devptr address;
	float *host;
};

static struct tensor tensor_new(struct rank *rank, int64_t rows, int64_t columns)
{
	struct tensor t = { .size = { rows, columns }, .count = (uint64_t)(rows * columns) };

	rank_ok(spyre_layout_init(&t.layout, 2, t.size, SPYRE_FORMAT_IEEE_FP16));
	rank_ok(spyre_mem_alloc(rank->context, spyre_layout_bytes(&t.layout), &t.address));
	t.host = calloc(t.count, sizeof(float));
	rank_check(t.host, "no memory");
	return t;
}

static void tensor_free(struct rank *rank, struct tensor *t)
{
	rank_ok(spyre_mem_free(rank->context, t->address));
	free(t->host);
}

static spyre_host_tensor host_of(const struct tensor *t)
{
	spyre_host_tensor host;

	rank_ok(spyre_host_tensor_dense(&host, t->host, SPYRE_FORMAT_IEEE_FP32, 2, t->size));
	return host;
}

static void upload(struct rank *rank, const struct tensor *t)
{
	const spyre_host_tensor host = host_of(t);

	rank_ok(spyre_copy_h2d_async(rank->stream, t->address, &t->layout, &host));
	rank_ok(spyre_stream_synchronize(rank->stream));
}

static void download(struct rank *rank, const struct tensor *t)
{
	const spyre_host_tensor host = host_of(t);

	rank_ok(spyre_copy_d2h_async(rank->stream, &host, t->address, &t->layout));
	rank_ok(spyre_stream_synchronize(rank->stream));
}

static void fill(struct rank *rank, struct tensor *t, uint32_t of, uint64_t first)
{
	for (uint64_t i = 0; i < t->count; i++)
		t->host[i] = value(of, first + i);
	upload(rank, t);
}

static const spyre_reduce_op float_ops[] = {
	SPYRE_REDUCE_SUM, SPYRE_REDUCE_AVG, SPYRE_REDUCE_PRODUCT, SPYRE_REDUCE_MIN,
	SPYRE_REDUCE_MAX, SPYRE_REDUCE_PREMUL_SUM,
};

#define FLOAT_OPS (sizeof(float_ops) / sizeof(float_ops[0]))
#define FACTOR 0.3f

/* Returns element @i of the reduction of all ranks' contributions. */
static float reduced(spyre_reduce_op op, uint32_t size, uint64_t i)
{
	float sum = 0;

	for (uint32_t r = 0; r < size; r++) {
		float x = value(r, i);

		if (op == SPYRE_REDUCE_PREMUL_SUM)
			x *= FACTOR;
		if (!r)
			sum = x;
		else if (op == SPYRE_REDUCE_PRODUCT)
			sum *= x;
		else if (op == SPYRE_REDUCE_MIN)
			sum = x < sum ? x : sum;
		else if (op == SPYRE_REDUCE_MAX)
			sum = x > sum ? x : sum;
		else
			sum += x;
	}
	if (op == SPYRE_REDUCE_AVG)
		sum *= 1.0f / size;
	return op == SPYRE_REDUCE_MIN || op == SPYRE_REDUCE_MAX ? sum : dl16(sum);
}

static void expect(const struct rank *rank, const char *what, uint64_t i, float got, float want)
{
	rank_check(!memcmp(&got, &want, sizeof(got)) || (got == 0 && want == 0),
		      "%s, rank %u of %u: element %llu is %.9g instead of %.9g", what, rank->rank,
		      rank->size, (unsigned long long)i, got, want);
}

/* Shapes from one stick to several blocks of every rank. */
static const int64_t shapes[][2] = { { 1, 64 }, { 3, 100 }, { 64, 192 }, { 4096, 640 } };

/*
 * Without the last, large one on the kernel's card, which a virtual machine emulates slowly, and
 * under ThreadSanitizer, which is as slow.
 */
static size_t num_shapes(void)
{
	const char *backend = getenv("SPYRE_BACKEND");

#ifdef __SANITIZE_THREAD__
	return sizeof(shapes) / sizeof(shapes[0]) - 1;
#endif
	return sizeof(shapes) / sizeof(shapes[0]) - (backend && !strcmp(backend, "drm"));
}

static void all_reduce(struct rank *rank)
{
	for (size_t s = 0; s < num_shapes(); s++) {
		struct tensor in = tensor_new(rank, shapes[s][0], shapes[s][1]);
		struct tensor out = tensor_new(rank, shapes[s][0], shapes[s][1]);

		for (size_t k = 0; k < (s == 3 ? 1 : FLOAT_OPS); k++) {
			const spyre_reduction reduction = { float_ops[k], FACTOR };
			const bool in_place = k == 1;

			fill(rank, &in, rank->rank, 0);
			rank_ok(spyre_all_reduce(rank->comm, in.address,
					       in_place ? in.address : out.address, &in.layout,
					       reduction, rank->stream));
			download(rank, in_place ? &in : &out);
			for (uint64_t i = 0; i < in.count; i++)
				expect(rank, "all_reduce", i, (in_place ? &in : &out)->host[i],
				       reduced(float_ops[k], rank->size, i));
		}
		tensor_free(rank, &in);
		tensor_free(rank, &out);
	}
}

static void reduce(struct rank *rank)
{
	for (size_t s = 0; s < num_shapes(); s++) {
		struct tensor t = tensor_new(rank, shapes[s][0], shapes[s][1]);
		const uint32_t root = (uint32_t)s % rank->size;
		const bool is_root = rank->rank == root;

		fill(rank, &t, rank->rank, 0);
		rank_ok(spyre_reduce(rank->comm, t.address, is_root ? t.address : 0, &t.layout,
				   SUM, root, rank->stream));
		download(rank, &t);
		for (uint64_t i = 0; i < t.count; i++)
			expect(rank, "reduce", i, t.host[i], is_root ?
			       reduced(SPYRE_REDUCE_SUM, rank->size, i) :
			       value(rank->rank, i));
		tensor_free(rank, &t);
	}
}

static void broadcast(struct rank *rank)
{
	for (size_t s = 0; s < num_shapes(); s++) {
		struct tensor t = tensor_new(rank, shapes[s][0], shapes[s][1]);
		const uint32_t root = (uint32_t)s % rank->size;
		const bool is_root = rank->rank == root;

		fill(rank, &t, rank->rank, 0);
		rank_ok(spyre_broadcast(rank->comm, is_root ? t.address : 0, t.address, &t.layout,
				      root, rank->stream));
		download(rank, &t);
		for (uint64_t i = 0; i < t.count; i++)
			expect(rank, "broadcast", i, t.host[i], value(root, i));
		tensor_free(rank, &t);
	}
}

/* Rows of the whole matrix are slices with a pitch: a column of sticks has all its rows. */
static void gathers(struct rank *rank)
{
	for (size_t s = 0; s < num_shapes(); s++) {
		const int64_t rows = shapes[s][0], columns = shapes[s][1];
		struct tensor part = tensor_new(rank, rows, columns);
		struct tensor all = tensor_new(rank, rows * rank->size, columns);
		const uint32_t root = rank->size - 1;

		fill(rank, &part, rank->rank, 0);
		for (int to_root = 0; to_root < 2; to_root++) {
			memset(all.host, 0, all.count * sizeof(float));
			upload(rank, &all);
			if (to_root)
				rank_ok(spyre_gather(rank->comm, part.address, &part.layout,
						     all.address, &all.layout, root, rank->stream));
			else
				rank_ok(spyre_all_gather(rank->comm, part.address, &part.layout,
						       all.address, &all.layout, rank->stream));
			download(rank, &all);
			for (uint64_t i = 0; i < all.count; i++)
				expect(rank, to_root ? "gather" : "all_gather", i, all.host[i],
				       to_root && rank->rank != root ? 0 :
				       value((uint32_t)(i / part.count), i % part.count));
		}
		tensor_free(rank, &part);
		tensor_free(rank, &all);
	}
}

static void scatters(struct rank *rank)
{
	for (size_t s = 0; s < num_shapes(); s++) {
		const int64_t rows = shapes[s][0], columns = shapes[s][1];
		struct tensor part = tensor_new(rank, rows, columns);
		struct tensor all = tensor_new(rank, rows * rank->size, columns);
		const uint64_t first = part.count * rank->rank;

		fill(rank, &all, rank->rank, 0);
		rank_ok(spyre_scatter(rank->comm, all.address, &all.layout, part.address,
				      &part.layout, 0, rank->stream));
		download(rank, &part);
		for (uint64_t i = 0; i < part.count; i++)
			expect(rank, "scatter", i, part.host[i], value(0, first + i));
		rank_ok(spyre_reduce_scatter(rank->comm, all.address, &all.layout, part.address,
					   &part.layout, SUM,
					   rank->stream));
		download(rank, &part);
		for (uint64_t i = 0; i < part.count; i++)
			expect(rank, "reduce_scatter", i, part.host[i],
			       reduced(SPYRE_REDUCE_SUM, rank->size, first + i));
		tensor_free(rank, &part);
		tensor_free(rank, &all);
	}
}

static void all_to_all(struct rank *rank)
{
	for (size_t s = 0; s < num_shapes(); s++) {
		const int64_t rows = shapes[s][0] * rank->size, columns = shapes[s][1];
		struct tensor in = tensor_new(rank, rows, columns);
		struct tensor out = tensor_new(rank, rows, columns);
		const uint64_t part = in.count / rank->size;

		fill(rank, &in, rank->rank, 0);
		rank_ok(spyre_all_to_all(rank->comm, in.address, out.address, &in.layout, 1,
				       rank->stream));
		download(rank, &out);
		for (uint64_t i = 0; i < out.count; i++)
			expect(rank, "all_to_all", i, out.host[i],
			       value((uint32_t)(i / part), rank->rank * part + i % part));
		tensor_free(rank, &in);
		tensor_free(rank, &out);
	}
}

/* A ring in one group, with two messages for each neighbour, and a message to the rank itself. */
static void messages(struct rank *rank)
{
	const uint32_t next = (rank->rank + 1) % rank->size;
	const uint32_t last = (rank->rank + rank->size - 1) % rank->size;
	struct tensor in = tensor_new(rank, 4096, 640), out = tensor_new(rank, 4096, 640);
	struct tensor small = tensor_new(rank, 3, 64), back = tensor_new(rank, 3, 64);
	spyre_comm_part parts[4];

	fill(rank, &in, rank->rank, 0);
	fill(rank, &small, rank->rank, 7);
	rank_ok(spyre_comm_part_init(&parts[0], in.address, &in.layout));
	rank_ok(spyre_comm_part_init(&parts[1], out.address, &out.layout));
	rank_ok(spyre_comm_part_init(&parts[2], small.address, &small.layout));
	rank_ok(spyre_comm_part_init(&parts[3], back.address, &back.layout));
	rank_ok(spyre_group_begin());
	rank_ok(spyre_send(rank->comm, &parts[0], next, rank->stream));
	rank_ok(spyre_send(rank->comm, &parts[2], next, rank->stream));
	rank_ok(spyre_recv(rank->comm, &parts[1], last, rank->stream));
	rank_ok(spyre_recv(rank->comm, &parts[3], last, rank->stream));
	rank_ok(spyre_group_end());
	download(rank, &out);
	download(rank, &back);
	for (uint64_t i = 0; i < out.count; i++)
		expect(rank, "large message", i, out.host[i], value(last, i));
	for (uint64_t i = 0; i < back.count; i++)
		expect(rank, "small message", i, back.host[i], value(last, 7 + i));
	tensor_free(rank, &in);
	tensor_free(rank, &out);
	tensor_free(rank, &small);
	tensor_free(rank, &back);
}

static void barriers(struct rank *rank)
{
	for (int i = 0; i < 100; i++)
		rank_ok(spyre_barrier(rank->comm, rank->stream));
	rank_ok(spyre_stream_synchronize(rank->stream));
}

/* A graph with a collective doubles or triples the numbers at each launch. */
static void graphs(struct rank *rank)
{
	struct tensor t = tensor_new(rank, 64, 192);
	const spyre_reduction sum = { .op = SPYRE_REDUCE_SUM };
	spyre_graph *graph;
	float want = 0.5f;

	for (uint64_t i = 0; i < t.count; i++)
		t.host[i] = want;
	upload(rank, &t);
	rank_ok(spyre_stream_begin_capture(rank->stream));
	rank_ok(spyre_all_reduce(rank->comm, t.address, t.address, &t.layout, sum, rank->stream));
	rank_ok(spyre_barrier(rank->comm, rank->stream));
	rank_ok(spyre_stream_end_capture(rank->stream, &graph));
	for (int i = 0; i < 5; i++) {
		rank_ok(spyre_graph_launch(graph, rank->stream));
		/* Between two launches a call outside of the graph keeps its place in the order. */
		rank_ok(spyre_barrier(rank->comm, rank->stream));
		want *= rank->size;
	}
	download(rank, &t);
	for (uint64_t i = 0; i < t.count; i++)
		expect(rank, "graph", i, t.host[i], want);
	rank_ok(spyre_graph_destroy(graph));
	tensor_free(rank, &t);
}

struct function {
	const char *name;
	rank_fn run;
};

static const struct function functions[] = {
	{ "all_reduce", all_reduce }, { "reduce", reduce }, { "broadcast", broadcast },
	{ "gathers", gathers }, { "scatters", scatters }, { "all_to_all", all_to_all },
	{ "messages", messages }, { "barriers", barriers }, { "graphs", graphs },
};

/* In one communicator, since starting processes takes longer than most of them. */
static void all_functions(struct rank *rank)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!rank->rank)
			fprintf(stderr, "# %u ranks: %s\n", rank->size, functions[i].name);
		functions[i].run(rank);
	}
}

/* Numbers of processes: all up to 4, and only 4 where each of them takes long. */
static uint32_t min_processes(void)
{
	const char *backend = getenv("SPYRE_BACKEND");

	/* A race is between threads of one process, whatever their number. */
#ifdef __SANITIZE_THREAD__
	return 4;
#endif
	return backend && !strcmp(backend, "drm") ? 4 : 1;
}

START_TEST(test_processes)
{
	if ((uint32_t)_i >= min_processes())
		ranks_run(RANKS_AS_PROCESSES, (uint32_t)_i, all_functions, NULL);
}
END_TEST

START_TEST(test_threads)
{
	ranks_run(RANKS_AS_THREADS, 3, all_functions, NULL);
}
END_TEST

#ifdef HAVE_LIBFABRIC
START_TEST(test_tcp)
{
	setenv("SPYRE_COMM_TRANSPORT", "tcp", 1);
	ranks_run(RANKS_AS_PROCESSES, (uint32_t)_i, all_functions, NULL);
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("comm_collective");
	TCase *tcase = tcase_create("collectives");

	setenv("SPYRE_EMBEDDED_CARDS", "4", 0);
	tcase_set_timeout(tcase, 600);
	tcase_add_loop_test(tcase, test_processes, 1, 5);
	tcase_add_test(tcase, test_threads);
#ifdef HAVE_LIBFABRIC
	tcase_add_loop_test(tcase, test_tcp, 2, 4);
#endif
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
