// SPDX-License-Identifier: MIT
/* The spyre command: dispatches to the subcommands and prints help. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "spyre.h"
#include "tools/spelling.h"

static const struct command *const commands[] = {
	&command_launch,
	&command_build,
	&command_compile,
	&command_estimate,
	&command_explain,
	&command_info,
	&command_doctor,
	&command_coredump,
	&command_trace,
	&command_analyze,
};

#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NUM_COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int unknown_command(const char *typed)
{
	struct spelling spelling = spelling_of(typed);
	char valid[128] = "";

	for (size_t i = 0; i < NUM_COMMANDS; i++) {
		spelling_try(&spelling, commands[i]->name);
		snprintf(valid + strlen(valid), sizeof(valid) - strlen(valid), "%s, ",
			 commands[i]->name);
	}
	spelling_try(&spelling, "version");
	spelling_try(&spelling, "help");
	if (spelling.nearest)
		return complain_usage("unknown command '%s'; did you mean '%s'?", typed,
				      spelling.nearest);
	return complain_usage("unknown command '%s'; valid: %sversion, help", typed, valid);
}

static int print_help(void)
{
	puts("Usage: spyre COMMAND [OPTION]…\n"
	     "Runs and inspects the virtual Spyre accelerator.\n");
	for (size_t i = 0; i < NUM_COMMANDS; i++)
		printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
	puts("  version   versions of this command and of the library\n"
	     "  help      this text, or the text of one command\n\n"
	     "'spyre help COMMAND' and man spyre(1) say more. Exit status: 0 success, 1 an error\n"
	     "of the card, the machine or an output file, 2 bad usage or an unusable input: a\n"
	     "file, a bundle, shapes, the environment.");
	return finish_output(EXIT_OK);
}

static int print_version(void)
{
	uint32_t version = spyre_version();

	printf("spyre %s (libspyre %u.%u.%u)\n", PACKAGE_VERSION, version >> 16,
	       version >> 8 & 0xff, version & 0xff);
	return finish_output(EXIT_OK);
}

static int print_command_help(const struct command *command)
{
	printf("Usage: spyre %s %s", command->name, command->help);
	if (command->help_more)
		command->help_more();
	return finish_output(EXIT_OK);
}

static int run_help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2)
		return print_help();
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return print_command_help(command);
}

/* The public name of the compiler, a link to this command: "dxp_standalone --bundle -d DIR". */
static bool called_as_compiler(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && !strcmp(slash ? slash + 1 : name, "dxp_standalone");
}

static int run_command(const struct command *command, int argc, char **argv)
{
	set_command_name(command->name);
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return print_command_help(command);
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (called_as_compiler(argv[0])) {
		set_program_name("dxp_standalone");
		return run_command(&command_compile, argc, argv);
	}
	if (argc < 2) {
		complain(EXIT_USAGE, "no command given");
		fputs("Try 'spyre help'.\n", stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help();
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version"))
		return print_version();
	if (!strcmp(argv[1], "help"))
		return run_help(argc - 1, argv + 1);
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return run_command(command, argc - 1, argv + 1);
}
