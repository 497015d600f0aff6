// SPDX-License-Identifier: MIT
/* spyre coredump: prints the coredump of a failed context. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coredump.h"

/* Far larger than any dump of the module. */
#define FILE_MAX (64u << 20)
#define SYSFS_DUMPS "/sys/class/devcoredump/devcd*/data"

struct options {
	bool json, ras, clear;
	const char *program;
	const char *path;
};

/* Reads a whole file; NULL with @why on failure. */
static uint8_t *read_all(int fd, size_t *size, struct text *why)
{
	size_t capacity = 1 << 16, have = 0;
	uint8_t *data = malloc(capacity), *more;
	ssize_t n;

	while (data) {
		n = read(fd, data + have, capacity - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			write_text(why, "%s", strerror(errno));
		if (n == 0) {
			*size = have;
			return data;
		}
		if (n < 0)
			break;
		have += n;
		if (have < capacity)
			continue;
		if (capacity >= FILE_MAX) {
			write_text(why, "it is larger than %u MiB", FILE_MAX >> 20);
			break;
		}
		more = realloc(data, capacity *= 2);
		if (!more) {
			write_text(why, "cannot allocate %zu bytes", capacity);
			break;
		}
		data = more;
	}
	free(data);
	return NULL;
}

static uint8_t *read_path(const char *path, size_t *size, struct text *why)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	uint8_t *data;

	if (fd < 0) {
		write_text(why, "%s", strerror(errno));
		return NULL;
	}
	data = read_all(fd, size, why);
	if (fd != STDIN_FILENO)
		close(fd);
	return data;
}

/*
 * Reads the first dump of a virtual card in sysfs and sets @path; NULL with @why if
 * there is none.
 */
static uint8_t *read_sysfs(char *path, size_t path_size, size_t *size, struct text *why)
{
	uint8_t *data = NULL;
	glob_t found;
	size_t i;

	write_text(why, "cannot find a coredump of a card in " SYSFS_DUMPS);
	if (glob(SYSFS_DUMPS, 0, NULL, &found))
		return NULL;
	for (i = 0; i < found.gl_pathc && !data; i++) {
		data = read_path(found.gl_pathv[i], size, why);
		if (data && (*size < 8 || memcmp(data, DRM_SPYRE_COREDUMP_MAGIC, 8))) {
			free(data);
			data = NULL;
		}
		snprintf(path, path_size, "%s", found.gl_pathv[i]);
	}
	globfree(&found);
	return data;
}

static int save_program(const struct coredump *dump, const char *path)
{
	struct coredump_section section;
	FILE *file;
	bool good;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_PROGRAM, dump->fault.cb, &section))
		return complain(EXIT_USAGE,
				"cannot save the program: the coredump has none, because the "
				"failed control block was not an EXEC");
	file = fopen(path, "wb");
	if (!file)
		return complain(EXIT_DEVICE, "cannot create %s: %s", path, strerror(errno));
	good = fwrite(section.data, 1, section.bytes, file) == section.bytes;
	if (fclose(file) || !good)
		return complain(EXIT_DEVICE, "cannot write %llu bytes to %s",
				(unsigned long long)section.bytes, path);
	return EXIT_OK;
}

static int print_line(char *line, const char *what)
{
	if (!line)
		return complain(EXIT_DEVICE, "cannot print %s: %s", what,
				*spyre_last_error() ? spyre_last_error() :
						      "no memory for the text");
	puts(line);
	free(line);
	return EXIT_OK;
}

/* Writing to the dump makes the kernel free it, so that it can keep the next one. */
static int clear(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, "0", 1) == 1;

	if (!good)
		complain(EXIT_DEVICE, "cannot clear %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return good ? EXIT_OK : EXIT_DEVICE;
}

static int show(const struct options *options, const uint8_t *data, size_t size, const char *path)
{
	struct coredump dump;
	struct text why;
	int code = EXIT_OK;

	if (coredump_parse(&dump, data, size, &why))
		return complain(EXIT_USAGE, "cannot parse %s: %s", path, why.s);
	if (options->json)
		code = print_line(coredump_json(&dump), "the report");
	else if (options->ras)
		code = print_line(coredump_ras(&dump), "the record");
	else
		coredump_print(&dump, stdout);
	if (!code && options->program)
		code = save_program(&dump, options->program);
	return code;
}

static int run_file(const struct options *options)
{
	char found[256] = "";
	const char *path = options->path;
	struct text why;
	uint8_t *data;
	size_t size;
	int code;

	data = path ? read_path(path, &size, &why) :
		      read_sysfs(found, sizeof(found), &size, &why);
	if (!data && path)
		return complain(EXIT_USAGE, "cannot read %s: %s", path, why.s);
	if (!data)
		return complain(EXIT_DEVICE, "%s", why.s);
	code = show(options, data, size, path ? path : found);
	free(data);
	if (!code && options->clear)
		code = clear(path ? path : found);
	return finish_output(code);
}

static int run_coredump(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"json", no_argument, NULL, 'j'},
		{"ras", no_argument, NULL, 'r'},
		{"clear", no_argument, NULL, 'c'},
		{"program", required_argument, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {0};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		switch (option) {
		case 'j':
			options.json = true;
			break;
		case 'r':
			options.ras = true;
			break;
		case 'c':
			options.clear = true;
			break;
		case 'p':
			options.program = optarg;
			break;
		default:
			return complain_option(option, argv, long_options);
		}
	}
	if (options.json && options.ras)
		return complain_usage("cannot combine --json with --ras");
	if (optind + 1 < argc)
		return complain_usage("unexpected argument '%s': only one file is allowed",
				      argv[optind + 1]);
	options.path = argv[optind];
	if (options.clear && options.path && strncmp(options.path, "/sys/", 5))
		return complain_usage("--clear requires a coredump in /sys");
	return run_file(&options);
}

const struct command command_coredump = {
	.name = "coredump",
	.summary = "print what a failed context has left behind",
	.help = "[--json | --ras] [--program FILE] [--clear] [FILE]\n"
		"Prints a device coredump: the fault, the job's control blocks and operands, the\n"
		"program, and what else the card was doing. Without FILE it is the one that the\n"
		"kernel keeps (" SYSFS_DUMPS ", root only);\n"
		"'-' is standard input.\n\n"
		"  --json          one JSON object\n"
		"  --ras           the fault as a RAS record, one line of JSON\n"
		"  --program FILE  also save the program's image\n"
		"  --clear         then have the kernel forget it, so that it keeps the next\n",
	.run = run_coredump,
};
