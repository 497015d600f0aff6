// SPDX-License-Identifier: MIT
/* The command line. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/perf.h"
#include "tools/spelling.h"

#define DEFAULT_RANKS 2
#define DEFAULT_ITERATIONS 20
#define DEFAULT_WARMUP 5
#define DEFAULT_MIN 1024
#define DEFAULT_MAX (4u << 20)
#define DEFAULT_FACTOR 4
#define MAX_BYTES (1ull << 34)

enum {
	OPTION_ITERS = 256,
	OPTION_JSON,
	OPTION_ID,
	OPTION_LOCAL,
	OPTION_FIRST,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "minbytes", required_argument, NULL, 'b' },
	{ "maxbytes", required_argument, NULL, 'e' },
	{ "stepfactor", required_argument, NULL, 'f' },
	{ "stepbytes", required_argument, NULL, 'i' },
	{ "ranks", required_argument, NULL, 'n' },
	{ "threads", no_argument, NULL, 't' },
	{ "datatype", required_argument, NULL, 'd' },
	{ "op", required_argument, NULL, 'o' },
	{ "root", required_argument, NULL, 'r' },
	{ "iters", required_argument, NULL, OPTION_ITERS },
	{ "warmup", required_argument, NULL, 'w' },
	{ "check", required_argument, NULL, 'c' },
	{ "blocking", no_argument, NULL, 'z' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "id", required_argument, NULL, OPTION_ID },
	{ "local", required_argument, NULL, OPTION_LOCAL },
	{ "first", required_argument, NULL, OPTION_FIRST },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
"Usage: spyre-perf OPERATION [OPTION]...\n"
"Measures a collective of Spyre cards and checks its results. OPERATION is one of\n"
"all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter,\n"
"all_to_all, sendrecv.\n"
"\n"
"  -b, --minbytes=SIZE     smallest size, such as 8, 64K or 1M (1K)\n"
"  -e, --maxbytes=SIZE     largest size (4M, or that of -b)\n"
"  -f, --stepfactor=COUNT  multiply the size by COUNT (4)\n"
"  -i, --stepbytes=SIZE    add SIZE instead\n"
"  -n, --ranks=COUNT       number of ranks, 1 to 64 (2); rank r uses card r modulo\n"
"                          the number of cards\n"
"  -t, --threads           the ranks are threads of one process, not processes\n"
"  -d, --datatype=FORMAT   fp16, fp32, bf16, int32; without a reduction also int8\n"
"                          (fp16)\n"
"  -o, --op=OPERATOR       sum, avg, prod, min, max, premul; for int32 also band,\n"
"                          bor, bxor (sum)\n"
"  -r, --root=RANK         root of broadcast, reduce, gather and scatter (0)\n"
"      --iters=COUNT       calls that are timed (20)\n"
"  -w, --warmup=COUNT      calls before (5)\n"
"  -c, --check=0|1         compare all elements with the host's results (1)\n"
"  -z, --blocking          wait for each call before the next one\n"
"      --json              one JSON object instead of the table\n"
"      --id=FILE           commands on several machines share the id by FILE, which\n"
"                          that with rank 0 writes; the default is SPYRE_COMM_ID\n"
"      --local=COUNT       with --id: ranks of this command\n"
"      --first=RANK        with --id: its first rank (0)\n"
"      --version           versions of this tool and of libspyre\n"
"  -h, --help              this text\n"
"\n"
"Sizes are rounded up to whole sticks of 128 bytes on each rank, and are those of the\n"
"larger side: of what a rank receives in all_gather, of what it sends in reduce_scatter.\n"
"  time    host time of a call on the slowest rank\n"
"  algbw   size / time\n"
"  busbw   algbw x 2 (n - 1) / n for all_reduce, x (n - 1) / n for all_gather,\n"
"          reduce_scatter, gather, scatter and all_to_all, x 1 for the others\n"
"  model   busbw with the time that a card needs for the copies and kernels of one call,\n"
"          one after the other: their modelled cycles / the card's clock, on the rank\n"
"          with the most; threads of one process share their cycles evenly\n"
"  #wrong  elements of all ranks that differ from the result that the host computes\n"
"\n"
"Exit status: 0 success, 1 wrong elements or a rank that failed, 2 bad argument.\n"
"See spyre-perf(1).\n";

static const struct perf_format formats[] = {
	{ "fp16", SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_SEN169_FP16, false },
	{ "fp32", SPYRE_FORMAT_IEEE_FP32, SPYRE_FORMAT_IEEE_FP32, false },
	{ "bf16", SPYRE_FORMAT_BFLOAT16, SPYRE_FORMAT_BFLOAT16, false },
	{ "int32", SPYRE_FORMAT_IEEE_INT32, SPYRE_FORMAT_IEEE_INT32, true },
	{ "int8", SPYRE_FORMAT_SENINT8, SPYRE_FORMAT_SENINT8, true },
	{ NULL, SPYRE_FORMAT_INVALID, SPYRE_FORMAT_INVALID, false },
};

static const struct perf_operator operators[] = {
	{ "sum", SPYRE_REDUCE_SUM }, { "avg", SPYRE_REDUCE_AVG },
	{ "prod", SPYRE_REDUCE_PRODUCT }, { "min", SPYRE_REDUCE_MIN },
	{ "max", SPYRE_REDUCE_MAX }, { "premul", SPYRE_REDUCE_PREMUL_SUM },
	{ "band", SPYRE_REDUCE_BAND }, { "bor", SPYRE_REDUCE_BOR },
	{ "bxor", SPYRE_REDUCE_BXOR }, { NULL, SPYRE_REDUCE_SUM },
};

static bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool complain(const char *format, ...)
{
	va_list args;

	fputs("spyre-perf: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'spyre-perf --help'.\n", stderr);
	return false;
}

/*
 * Finds @typed in a table whose entries of @stride bytes begin with their name and end with NULL.
 * NULL, with a message, if there is no such entry.
 */
static const void *find(const char *kind, const char *typed, const void *table, size_t stride)
{
	struct spelling spelling = spelling_of(typed);
	const char *entry = table, *name;
	char valid[256] = "";

	for (; (name = *(const char *const *)entry); entry += stride) {
		const size_t used = strlen(valid);

		if (!strcmp(name, typed))
			return entry;
		spelling_try(&spelling, name);
		snprintf(valid + used, sizeof(valid) - used, "%s%s", used ? ", " : "", name);
	}
	if (spelling.nearest)
		complain("unknown %s '%s'; did you mean '%s'?", kind, typed, spelling.nearest);
	else
		complain("unknown %s '%s'; valid: %s", kind, typed, valid);
	return NULL;
}

static bool parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
			 uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (!errno && *text >= '0' && *text <= '9' && !*end && *number >= least && *number <= most)
		return true;
	return complain("invalid value '%s' for %s: expected a number from %llu to %llu", text,
			option, (unsigned long long)least, (unsigned long long)most);
}

static bool parse_count(const char *option, const char *text, uint32_t least, uint32_t most,
			uint32_t *count)
{
	uint64_t number;

	if (!parse_number(option, text, least, most, &number))
		return false;
	*count = (uint32_t)number;
	return true;
}

/* Parses bytes with an optional unit, powers of 1024. */
static bool parse_size(const char *option, const char *text, uint64_t *bytes)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
	if (unit && *bytes <= MAX_BYTES) {
		*bytes <<= 10 * (unit - units + 1);
		end++;
	}
	if (!errno && *text >= '0' && *text <= '9' && !*end && *bytes && *bytes <= MAX_BYTES)
		return true;
	return complain("invalid size '%s' for %s: expected 1 to 16G bytes, such as 8, 64K or 1M",
			text, option);
}

static bool parse_step(struct perf_options *options, int option)
{
	options->step_factor = options->step_bytes = 0;
	if (option == 'i')
		return parse_size("-i", optarg, &options->step_bytes);
	return parse_number("-f", optarg, 2, 1u << 20, &options->step_factor);
}

static bool parse_shared(struct perf_options *options, int option)
{
	switch (option) {
	case OPTION_ID:
		options->id_file = optarg;
		return true;
	case OPTION_LOCAL:
		return parse_count("--local", optarg, 1, SPYRE_COMM_MAX_RANKS, &options->local);
	default:
		return parse_count("--first", optarg, 0, SPYRE_COMM_MAX_RANKS - 1,
				   &options->first);
	}
}

static bool parse_flag(struct perf_options *options, int option, char **argv)
{
	char text[768];

	switch (option) {
	case 't':
		options->threads = true;
		return true;
	case 'z':
		options->blocking = true;
		return true;
	case OPTION_JSON:
		options->json = true;
		return true;
	}
	spelling_option(option, argv, long_options, text, sizeof(text));
	return complain("%s", text);
}

static bool parse_option(struct perf_options *options, int option, char **argv)
{
	uint32_t check;

	switch (option) {
	case 'b':
		return parse_size("-b", optarg, &options->min_bytes);
	case 'e':
		return parse_size("-e", optarg, &options->max_bytes);
	case 'f':
	case 'i':
		return parse_step(options, option);
	case 'n':
		return parse_count("-n", optarg, 1, SPYRE_COMM_MAX_RANKS, &options->ranks);
	case 'd':
		options->format = find("format", optarg, formats, sizeof(formats[0]));
		return options->format;
	case 'o':
		options->op = find("operator", optarg, operators, sizeof(operators[0]));
		return options->op;
	case 'r':
		return parse_count("-r", optarg, 0, SPYRE_COMM_MAX_RANKS - 1, &options->root);
	case OPTION_ITERS:
		return parse_count("--iters", optarg, 1, 1000000, &options->iterations);
	case 'w':
		return parse_count("-w", optarg, 0, 1000000, &options->warmup);
	case 'c':
		if (!parse_count("-c", optarg, 0, 1, &check))
			return false;
		options->check = check;
		return true;
	case OPTION_ID:
	case OPTION_LOCAL:
	case OPTION_FIRST:
		return parse_shared(options, option);
	}
	return parse_flag(options, option, argv);
}

static bool is_bitwise(const struct perf_operator *op)
{
	return op->op == SPYRE_REDUCE_BAND || op->op == SPYRE_REDUCE_BOR ||
	       op->op == SPYRE_REDUCE_BXOR;
}

static bool check_reduction(const struct perf_options *options)
{
	const struct perf_operator *op = options->op;
	const struct perf_format *format = options->format;

	if (!options->operation->reduces)
		return true;
	if (format->host == SPYRE_FORMAT_SENINT8)
		return complain("cannot reduce int8; valid: fp16, fp32, bf16, int32");
	if (format->integer ? op->op == SPYRE_REDUCE_AVG || op->op == SPYRE_REDUCE_PREMUL_SUM :
			      is_bitwise(op))
		return complain("operator '%s' does not exist for %s", op->name, format->name);
	return true;
}

static bool check(struct perf_options *options)
{
	if (options->max_bytes < options->min_bytes)
		return complain("-e %llu is below -b %llu", (unsigned long long)options->max_bytes,
				(unsigned long long)options->min_bytes);
	if (options->root >= options->ranks)
		return complain("-r %u is not a rank of %u", options->root, options->ranks);
	if (!options->id_file && (options->local || options->first))
		return complain("--local and --first require --id or SPYRE_COMM_ID");
	if (!options->local)
		options->local = options->ranks;
	if (options->local > options->ranks || options->first > options->ranks - options->local)
		return complain("ranks %u to %u are not among %u; see --first and --local",
				options->first, options->first + options->local - 1,
				options->ranks);
	return check_reduction(options);
}

static void print_version(void)
{
	const uint32_t version = spyre_version();

	printf("spyre-perf %s (libspyre %u.%u.%u)\n", VERSION, version >> 16, version >> 8 & 0xff,
	       version & 0xff);
}

/* Prints what --help and --version ask for. */
static bool prints(int option, int *status)
{
	if (option != 'h' && option != OPTION_VERSION)
		return false;
	if (option == 'h')
		fputs(help, stdout);
	else
		print_version();
	*status = fflush(stdout) || ferror(stdout) ? PERF_FAILED : PERF_OK;
	return true;
}

static bool take_operation(struct perf_options *options, int argc, char **argv)
{
	if (optind == argc)
		return complain("no operation given; the first argument is one, such as all_reduce");
	options->operation = find("operation", argv[optind], perf_operations,
				  sizeof(perf_operations[0]));
	if (!options->operation)
		return false;
	if (optind + 1 < argc)
		return complain("unexpected argument '%s': only one operation is measured",
				argv[optind + 1]);
	return true;
}

static void set_defaults(struct perf_options *options)
{
	const char *id = getenv("SPYRE_COMM_ID");

	*options = (struct perf_options){
		.format = &formats[0], .op = &operators[0], .step_factor = DEFAULT_FACTOR,
		.ranks = DEFAULT_RANKS, .iterations = DEFAULT_ITERATIONS, .warmup = DEFAULT_WARMUP,
		.check = true, .id_file = id && *id ? id : NULL,
	};
}

bool perf_parse_options(int argc, char **argv, struct perf_options *options, int *status)
{
	int option;

	set_defaults(options);
	*status = PERF_USAGE;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":b:e:f:i:n:td:o:r:w:c:zh", long_options,
				     NULL)) >= 0) {
		if (prints(option, status) || !parse_option(options, option, argv))
			return false;
	}
	if (!options->min_bytes)
		options->min_bytes = DEFAULT_MIN;
	if (!options->max_bytes)
		options->max_bytes = options->min_bytes > DEFAULT_MAX ? options->min_bytes :
				     DEFAULT_MAX;
	return take_operation(options, argc, argv) && check(options);
}
