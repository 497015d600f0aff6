/* SPDX-License-Identifier: MIT */
/* The command line. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/smi/diag.h"
#include "tools/smi/monitor.h"
#include "tools/spelling.h"

const char *const smi_section_names[SMI_NUM_SECTIONS] = {
	"DEVICE", "MEMORY", "UTILIZATION", "TEMPERATURE", "POWER", "CLOCK", "COUNTERS", "PROCESSES",
};

enum {
	OPTION_QUERY_DEVICE = 256,
	OPTION_QUERY_APPS,
	OPTION_HELP_DEVICE,
	OPTION_HELP_APPS,
	OPTION_FORMAT,
	OPTION_LOOP_MS,
	OPTION_VERSION,
	OPTION_FORCE,
	OPTION_AIU,
	OPTION_PROMETHEUS,
	OPTION_LEVEL,
	OPTION_FOLLOW,
};

/* First words, which stand for an option or have options of their own. */
static const struct {
	const char *word;
	enum smi_mode mode;
} words[] = {
	{ "reset", SMI_RESET },
	{ "topo", SMI_TOPOLOGY },
	{ "dmon", SMI_DMON },
	{ "pmon", SMI_PMON },
	{ "diag", SMI_DIAG },
	{ "events", SMI_EVENTS },
	{ "top", SMI_TOP },
};

static const struct option long_options[] = {
	{ "list-devices", no_argument, NULL, 'L' },
	{ "list-gpus", no_argument, NULL, 'L' },
	{ "query", no_argument, NULL, 'q' },
	{ "display", required_argument, NULL, 'd' },
	{ "query-device", required_argument, NULL, OPTION_QUERY_DEVICE },
	{ "query-gpu", required_argument, NULL, OPTION_QUERY_DEVICE },
	{ "query-compute-apps", required_argument, NULL, OPTION_QUERY_APPS },
	{ "help-query-device", no_argument, NULL, OPTION_HELP_DEVICE },
	{ "help-query-gpu", no_argument, NULL, OPTION_HELP_DEVICE },
	{ "help-query-compute-apps", no_argument, NULL, OPTION_HELP_APPS },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "id", required_argument, NULL, 'i' },
	{ "loop", required_argument, NULL, 'l' },
	{ "loop-ms", required_argument, NULL, OPTION_LOOP_MS },
	{ "count", required_argument, NULL, 'c' },
	{ "matrix", no_argument, NULL, 'm' },
	{ "gpu-reset", no_argument, NULL, 'r' },
	{ "device-reset", no_argument, NULL, 'r' },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "yes", no_argument, NULL, 'y' },
	{ "select", required_argument, NULL, 's' },
	{ "options", required_argument, NULL, 'o' },
	{ "prometheus", optional_argument, NULL, OPTION_PROMETHEUS },
	{ "aiu", no_argument, NULL, OPTION_AIU },
	{ "level", required_argument, NULL, OPTION_LEVEL },
	{ "follow", no_argument, NULL, OPTION_FOLLOW },
	{ "filename", required_argument, NULL, 'f' },
	{ "xml-format", no_argument, NULL, 'x' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
"Usage: spyre-smi [OPTION]...\n"
"       spyre-smi dmon [-i ID,...] [-s GROUPS | --aiu] [-d SECONDS] [-c COUNT] [-o DT]\n"
"       spyre-smi pmon [-i ID,...] [-s GROUPS] [-d SECONDS] [-c COUNT] [-o DT]\n"
"       spyre-smi top [-i ID,...] [-d SECONDS] [-c COUNT]\n"
"       spyre-smi topo -m [-i ID,...] [--format=FORMAT]\n"
"       spyre-smi topo -p2p r|w|p|n|a [-i ID,...]\n"
"       spyre-smi reset [-i ID,...] [--yes] [--force]\n"
"       spyre-smi events [-f] [-i ID,...] [--format=FORMAT]\n"
"       spyre-smi diag [-i ID,...] [--level=LEVEL] [--format=json]\n"
"Shows Spyre cards and the processes that use them. Opens no card but to reset or test it.\n"
"\n"
"  (no option)                  a screen of all cards and processes\n"
"  -L, --list-devices           one line per card (or --list-gpus)\n"
"  -q, --query                  all values of each card\n"
"  -d, --display=SECTION,...    with -q: only DEVICE, MEMORY, UTILIZATION,\n"
"                               TEMPERATURE, POWER, CLOCK, COUNTERS, PROCESSES\n"
"      --query-device=FIELD,... chosen fields of each card (or --query-gpu)\n"
"      --query-compute-apps=FIELD,...\n"
"                               chosen fields of each process that uses a card\n"
"      --help-query-device      the fields of --query-device (or --help-query-gpu)\n"
"      --help-query-compute-apps\n"
"                               the fields of --query-compute-apps\n"
"      --format=FORMAT          csv[,noheader][,nounits] or json, for queries, -m;\n"
"                               json also for -L and -q; events: text or json\n"
"  -x, --xml-format             with -q: XML with nvidia-smi's names, and all values\n"
"  -f, --filename=FILE          into a file instead of standard output\n"
"  -m, --matrix                 the links between cards, and the host's processors\n"
"                               near them (or the word topo); topo -p2p WAY: whether cards\n"
"                               read (r) or write (w) each other's memory, over PCIe (p)\n"
"      --prometheus             metrics in Prometheus' text format; with --prometheus=FILE\n"
"                               into a file, which is replaced at once\n"
"  -i, --id=ID,...              only these cards: index, UUID or bus id\n"
"  -l, --loop=SECONDS           repeat every SECONDS, until interrupted\n"
"      --loop-ms=MILLISECONDS   repeat every MILLISECONDS\n"
"  -c, --count=COUNT            with -l, dmon, pmon, top: stop after COUNT times\n"
"                               dmon prints a line of each card every second, or with -d\n"
"                               every SECONDS, from 0.01; pmon the same for processes;\n"
"                               top shows both on the whole screen, until 'q'\n"
"  -s, --select=GROUPS          with dmon, pmon: columns of power (p), utilisation (u),\n"
"                               clock (c), memory (m), PCIe (t), peer copies (r)\n"
"  -o, --options=DT             with dmon, pmon: date (D), time (T) or both\n"
"      --aiu                    with dmon: the columns of aiu-smi\n"
"  -r, --device-reset           reset cards, as root; without -i all of the kernel's\n"
"                               (or --gpu-reset, or the word reset)\n"
"  -y, --yes                    with -r: do not ask\n"
"      --force                  with -r: even if processes use the card\n"
"      --level=LEVEL            with diag (or -r LEVEL): 1 tests copies, memory and\n"
"                               kernels in seconds (the default), 2 more memory and copies\n"
"                               between cards, 3 also repeats the kernels\n"
"  -f, --follow                 with events, where -f takes no FILE: print those from now\n"
"                               on, until interrupted, not those that are kept\n"
"      --version                versions of this tool and of libspyre\n"
"  -h, --help                   this text\n"
"\n"
"Exit status: 0 success, 1 a test of diag failed, 2 bad argument, 3 not supported by this\n"
"card, 4 no permission, 6 no such card, 9 no driver and no card, 19 in use, 255 anything\n"
"else.\n"
"See spyre-smi(1).\n";

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
	va_list args;

	fputs("spyre-smi: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'spyre-smi --help'.\n", stderr);
}

static void unknown_field(const struct smi_field *table, const char *text, size_t length,
			  const char *where)
{
	char typed[64];
	struct spelling spelling;

	snprintf(typed, sizeof(typed), "%.*s", (int)length, text);
	spelling = spelling_of(typed);
	for (; table->name; table++)
		spelling_try(&spelling, table->name);
	if (spelling.nearest)
		complain("unknown field '%.*s' for --%s; did you mean '%s'? --help-%s lists all",
			 (int)length, text, where, spelling.nearest, where);
	else
		complain("unknown field '%.*s' for --%s; --help-%s lists all", (int)length, text,
			 where, where);
}

static bool parse_fields(struct smi_options *options, const struct smi_field *table,
			 const char *text, const char *where)
{
	const struct smi_field *field;
	size_t length;

	for (;; text += length + 1) {
		length = strcspn(text, ",");
		field = smi_find_field(table, text, length);
		if (!field) {
			unknown_field(table, text, length, where);
			return false;
		}
		if (options->num_fields == SMI_MAX_FIELDS) {
			complain("too many fields for --%s: the limit is %d", where,
				 SMI_MAX_FIELDS);
			return false;
		}
		options->fields[options->num_fields++] = field;
		if (!text[length])
			return true;
	}
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && !strncmp(text, word, length);
}

static bool parse_format(struct smi_options *options, const char *text)
{
	const char *whole = text;
	size_t length;

	if (options->mode == SMI_EVENTS && !strcmp(text, "text"))
		return true;
	for (;; text += length + 1) {
		length = strcspn(text, ",");
		if (is_word(text, length, "csv") && options->format != SMI_JSON)
			options->format = SMI_CSV;
		else if (is_word(text, length, "json") && options->format != SMI_CSV)
			options->format = SMI_JSON;
		else if (is_word(text, length, "noheader"))
			options->no_header = true;
		else if (is_word(text, length, "nounits"))
			options->no_units = true;
		else
			break;
		if (!text[length]) {
			if (options->format == SMI_CSV ||
			    (options->format == SMI_JSON && !options->no_header &&
			     !options->no_units))
				return true;
			break;
		}
	}
	if (options->mode == SMI_EVENTS) {
		complain("invalid value '%s' for --format; valid: text, json", whole);
		return false;
	}
	complain("invalid value '%s' for --format; valid: csv, csv,noheader, csv,nounits, "
		 "csv,noheader,nounits, json", whole);
	return false;
}

static bool parse_sections(struct smi_options *options, const char *text)
{
	size_t length;
	int i;

	for (;; text += length + 1) {
		length = strcspn(text, ",");
		for (i = 0; i < SMI_NUM_SECTIONS; i++)
			if (is_word(text, length, smi_section_names[i]))
				break;
		if (i == SMI_NUM_SECTIONS) {
			complain("unknown section '%.*s' for -d; valid: DEVICE, MEMORY, "
				 "UTILIZATION, TEMPERATURE, POWER, CLOCK, COUNTERS, PROCESSES",
				 (int)length, text);
			return false;
		}
		options->sections |= 1u << i;
		if (!text[length])
			return true;
	}
}

/* Checks that each letter of @text is one of @valid. */
static bool parse_letters(const char **to, const char *text, const char *valid, const char *what)
{
	const char *wrong = text + strspn(text, valid);

	if (!*text || *wrong) {
		complain("invalid %s '%s': expected one or more of the letters %s", what, text,
			 valid);
		return false;
	}
	*to = text;
	return true;
}

static bool is_monitor(const struct smi_options *options)
{
	return options->mode == SMI_DMON || options->mode == SMI_PMON;
}

static bool has_delay(const struct smi_options *options)
{
	return is_monitor(options) || options->mode == SMI_TOP;
}

/* Parses a number in units of @scale seconds: a millisecond, or ten with -d, to a day. */
static bool parse_interval(struct smi_options *options, const char *text, double scale)
{
	const double least = has_delay(options) ? 0.01 : 0.001;
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end) * scale;
	if (errno || end == text || *end || !isfinite(value) || value < least || value > 86400) {
		complain("invalid interval '%s': expected %g to %.10g %s", text, least / scale,
			 86400 / scale, scale == 1 ? "seconds" : "milliseconds");
		return false;
	}
	options->interval = value;
	return true;
}

static bool parse_count(struct smi_options *options, const char *text)
{
	char *end;

	errno = 0;
	options->count = strtoul(text, &end, 10);
	if (errno || text[0] < '0' || text[0] > '9' || *end || !options->count) {
		complain("invalid count '%s' for -c: expected a positive integer", text);
		return false;
	}
	return true;
}

static bool parse_level(struct smi_options *options, const char *text)
{
	if (text[0] < '1' || text[0] > '0' + SMI_DIAG_LEVELS || text[1]) {
		complain("invalid value '%s' for --level: expected 1 to %d", text, SMI_DIAG_LEVELS);
		return false;
	}
	options->level = text[0] - '0';
	return true;
}

static bool set_mode(struct smi_options *options, enum smi_mode mode)
{
	if (options->mode != SMI_SCREEN && options->mode != mode) {
		complain("cannot combine -L, -q, -m, -r, --query-device, --query-compute-apps, "
			 "--prometheus, dmon, pmon, top, events and diag; give one");
		return false;
	}
	options->mode = mode;
	return true;
}

static bool complain_option(int option, char **argv)
{
	char text[768];

	spelling_option(option, argv, long_options, text, sizeof(text));
	complain("%s", text);
	return false;
}

static bool parse_option(struct smi_options *options, int option, char **argv)
{
	switch (option) {
	case 'L':
		return set_mode(options, SMI_LIST);
	case 'q':
		return set_mode(options, SMI_REPORT);
	case 'd':
		return has_delay(options) ? parse_interval(options, optarg, 1) :
					    parse_sections(options, optarg);
	case 's':
		options->groups = optarg;
		return true;
	case 'o':
		return parse_letters(&options->stamps, optarg, "DT", "time stamps");
	case OPTION_PROMETHEUS:
		options->file = optarg;
		return set_mode(options, SMI_PROMETHEUS);
	case OPTION_AIU:
		options->aiu = true;
		return true;
	case 'x':
		options->xml = true;
		return true;
	case 'f':
		options->output = optarg;
		return true;
	case OPTION_FOLLOW:
		options->follow = true;
		return true;
	case OPTION_LEVEL:
		return parse_level(options, optarg);
	case OPTION_QUERY_DEVICE:
		return set_mode(options, SMI_QUERY_DEVICE) &&
		       parse_fields(options, smi_device_fields, optarg, "query-device");
	case OPTION_QUERY_APPS:
		return set_mode(options, SMI_QUERY_APPS) &&
		       parse_fields(options, smi_app_fields, optarg, "query-compute-apps");
	case 'm':
		return set_mode(options, SMI_TOPOLOGY);
	case 'r':
		return set_mode(options, SMI_RESET);
	case 'y':
		options->yes = true;
		return true;
	case OPTION_FORCE:
		options->force = true;
		return true;
	case OPTION_FORMAT:
		return parse_format(options, optarg);
	case 'i':
		options->ids = optarg;
		return true;
	case 'l':
		return parse_interval(options, optarg, 1);
	case OPTION_LOOP_MS:
		return parse_interval(options, optarg, 0.001);
	case 'c':
		return parse_count(options, optarg);
	}
	return complain_option(option, argv);
}

/* Checks the options that name a form or a file for the output. */
static bool check_output(const struct smi_options *options)
{
	enum smi_mode mode = options->mode;

	if (options->xml && mode != SMI_REPORT)
		complain("-x requires -q");
	else if (options->xml && (options->sections || options->format != SMI_TEXT))
		complain("cannot combine -x with -d or --format");
	else if (options->output && (mode == SMI_RESET || mode == SMI_PROMETHEUS ||
				     mode == SMI_DIAG || mode == SMI_EVENTS || mode == SMI_TOP))
		complain("cannot combine --filename with -r, --prometheus, diag, events or top");
	else if (options->output && !*options->output)
		complain("invalid value '' for --filename: expected a file name");
	else
		return true;
	return false;
}

static bool check(const struct smi_options *options)
{
	bool query = options->mode == SMI_QUERY_DEVICE || options->mode == SMI_QUERY_APPS;
	bool topology = options->mode == SMI_TOPOLOGY;

	if (!is_monitor(options) && (options->groups || options->stamps))
		complain("-s and -o require dmon or pmon");
	else if (options->aiu && (options->mode != SMI_DMON || options->groups))
		complain("--aiu requires dmon without -s");
	else if (options->mode == SMI_PROMETHEUS && options->format != SMI_TEXT)
		complain("cannot combine --format with --prometheus");
	else if (options->file && !*options->file)
		complain("invalid value '' for --prometheus: expected a file name");
	else if (has_delay(options) && options->format != SMI_TEXT)
		complain("cannot combine --format with dmon, pmon or top");
	else if (options->sections && options->mode != SMI_REPORT)
		complain("-d requires -q");
	else if (options->count && !options->interval)
		complain("-c requires -l");
	else if (options->interval && options->mode == SMI_RESET)
		complain("cannot combine -l with -r");
	else if (options->level && options->mode != SMI_DIAG)
		complain("--level requires diag");
	else if (options->interval && options->mode == SMI_DIAG)
		complain("cannot combine -l with diag");
	else if (options->follow && options->mode != SMI_EVENTS)
		complain("--follow requires events");
	else if (options->interval && options->mode == SMI_EVENTS)
		complain("cannot combine -l with events; -f follows them");
	else if (options->format == SMI_CSV && options->mode == SMI_EVENTS)
		complain("cannot combine --format=csv with events; valid: text, json");
	else if (options->interval && topology)
		complain("cannot combine -l with -m: links do not change");
	else if (options->access && options->format != SMI_TEXT)
		complain("cannot combine --format with -p2p; -m has the links as csv and json");
	else if (options->no_units && topology)
		complain("cannot combine --format=csv,nounits with -m: links have no units");
	else if ((options->yes || options->force) && options->mode != SMI_RESET)
		complain("--yes and --force require -r");
	else if (options->format == SMI_JSON && options->mode == SMI_RESET)
		complain("cannot combine --format with -r");
	else if (options->format == SMI_CSV && !query && !topology)
		complain("--format=csv requires --query-device, --query-compute-apps or -m");
	else if (options->format == SMI_JSON && options->mode == SMI_SCREEN)
		complain("--format=json requires -L, -q, -m, --query-device or "
			 "--query-compute-apps");
	else
		return true;
	return false;
}

static void print_version(void)
{
	uint32_t version = spyre_version();

	printf("spyre-smi %s (libspyre %u.%u.%u)\n", VERSION, version >> 16, version >> 8 & 0xff,
	       version & 0xff);
}

/* With --format=json, -L and -q print objects like those of --query-device. */
static void default_fields(struct smi_options *options)
{
	const struct smi_field *field;

	if (options->mode == SMI_LIST)
		(void)parse_fields(options, smi_device_fields,
				   "index,name,uuid,backend,bus_id,node,host_pid", "list-devices");
	for (field = smi_device_fields; options->mode == SMI_REPORT && field->name; field++)
		if (!options->sections || (field->section >= 0 &&
					   (options->sections & 1u << field->section)))
			options->fields[options->num_fields++] = field;
}

/* "topo -p2p WAY", whose option has one dash as nvidia-smi's. */
static bool parse_access(int argc, char **argv, struct smi_options *options)
{
	if (options->mode != SMI_TOPOLOGY || argc < 3 || strcmp(argv[2], "-p2p"))
		return true;
	if (argc < 4 || !argv[3][0] || argv[3][1] || !strchr("rwpna", argv[3][0])) {
		complain("invalid value '%s' for -p2p; valid: r (reads), w (writes), p (over PCIe), "
			 "n (NVLink), a (atomics)", argc < 4 ? "" : argv[3]);
		return false;
	}
	options->access = argv[3][0];
	optind = 4;
	return true;
}

/* The rest of the command line is options. */
static void parse_word(int argc, char **argv, struct smi_options *options)
{
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(argv[1], words[i].word))
			continue;
		options->mode = words[i].mode;
		options->interval = has_delay(options) ? 1 : 0;
		optind = 2;
	}
}

bool smi_parse_options(int argc, char **argv, struct smi_options *options, int *exit_status)
{
	const char *letters;
	int option;

	*options = (struct smi_options){ .mode = SMI_SCREEN };
	*exit_status = SMI_BAD_ARGUMENT;
	parse_word(argc, argv, options);
	opterr = 0;
	if (!parse_access(argc, argv, options))
		return false;
	letters = options->mode == SMI_EVENTS ? ":Lqxd:i:l:c:mryhs:o:f" :
		  options->mode == SMI_DIAG ? ":Lqxd:i:l:c:mr:yhs:o:f:" : ":Lqxd:i:l:c:mryhs:o:f:";
	while ((option = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		if (option == 'f' && !optarg)
			option = OPTION_FOLLOW;
		if (option == 'r' && optarg)
			option = OPTION_LEVEL;
		switch (option) {
		case 'h':
			fputs(help, stdout);
			break;
		case OPTION_VERSION:
			print_version();
			break;
		case OPTION_HELP_DEVICE:
			smi_print_fields(smi_device_fields);
			break;
		case OPTION_HELP_APPS:
			smi_print_fields(smi_app_fields);
			break;
		default:
			if (!parse_option(options, option, argv))
				return false;
			continue;
		}
		*exit_status = SMI_OK;
		return false;
	}
	if (optind < argc) {
		complain("unexpected argument '%s': only options follow, or 'reset', 'topo', "
			 "'dmon', 'pmon', 'top', 'events' or 'diag' as the first word",
			 argv[optind]);
		return false;
	}
	if (options->groups && !parse_letters(&options->groups, options->groups,
					      smi_monitor_groups(options), "groups"))
		return false;
	if (!check_output(options) || !check(options))
		return false;
	if (options->mode == SMI_DIAG && !options->level)
		options->level = 1;
	if (options->format == SMI_TEXT &&
	    (options->mode == SMI_QUERY_DEVICE || options->mode == SMI_QUERY_APPS))
		options->format = SMI_CSV;
	if (options->format == SMI_JSON)
		default_fields(options);
	return true;
}
