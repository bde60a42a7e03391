/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the commands share: messages, the table of options, the options that make a sandbox. */

#include <cloche/instance.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- messages (cli.c) --- */

struct sandbox_options;

enum { EXIT_CLOCHE = 125 };

/* "cloche: text" on standard error, nothing a terminal would obey. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The error with its hint; returns the exit status that belongs to it. */
int complain(const cloche_err *err);
/* Fills err with a wrong usage and, if not NULL, what to do instead; returns its negated code.
 */
int wrong_usage(cloche_err *err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* With --debug: what was done, and how long after the program's start. */
void debug_step(const struct sandbox_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The callback of warnings: says them. */
void warn(const char *text, void *user);
/* Writes all to a descriptor; false if that failed. */
bool put(int fd, const void *p, size_t n);
/* A line on standard output; false if that failed. */
bool put_line(const char *text);
/* The same with a text of somebody else's, of which a terminal (and only that) sees no controls. */
bool put_shown(int fd, const char *text);

/* Writes what stdio still holds. Returns r; if that is 0 and the writing failed, EXIT_CLOCHE. */
int flush_output(int r);

/* --- options (options.c) --- */

struct option {
	const char *name; /* without "--" */
	char letter;      /* 0: none */
	const char *arg;  /* name of its argument; NULL: takes none */
	const char *help; /* "\n" starts a line of its own */
	/* Does what it says; NULL: the bool at this offset of ctx becomes true, or with an argument
	 * the const char * there becomes that (borrowed). */
	int (*set)(void *ctx, const char *value, cloche_err *err);
	size_t at;
	bool of_sandbox; /* one of the library's: ctx begins with a struct sandbox_options */
};

struct option_table {
	const struct option *options;
	size_t n;
	const char *title; /* heading in the help */
};

struct command {
	const char *name;
	const char *summary;                  /* one line, for the list of commands */
	const char *synopsis;                 /* after "cloche NAME " */
	const char *text;                     /* paragraphs of the help */
	const struct option_table *tables[5]; /* up to the first NULL */
	bool command_line;                    /* operands begin a command line of its own, */
	int leading;                          /* from the first one after so many */
	int (*run)(int argc, char **argv);
};

struct operands {
	char **v; /* borrowed from argv, ends with NULL */
	int n;
	bool help; /* --help was asked for and printed: there is nothing more to do */
};

/* Reads the options and gathers the operands, which may stand among them unless
 * command->command_line. Returns 0 or a negative code. */
int options_read(const struct command *command, void *ctx, int argc, char **argv,
	struct operands *ret, cloche_err *err);
void options_help(const struct command *command);
/* The nearest of several names to one (of n bytes) that is unknown: best begins empty. */
struct near {
	const char *name; /* NULL: none is near */
	unsigned wrong;
};
void options_near(const char *name, size_t n, const char *candidate, struct near *best);
/* Refuses operands of a command that takes none. */
int options_no_operands(
	const struct command *command, const struct operands *operands, cloche_err *err);

/* --- the options of a sandbox (sandbox_options.c) --- */

/* An option of the library's that was given; both are borrowed. */
struct given {
	const char *name, *value;
};

struct sandbox_options {
	cloche_sandbox *sb;
	struct given *given; /* in their order */
	size_t given_n;
	const char *workspace, *config;
	bool no_workspace, no_config, network_log_live, tty, no_tty, interactive, json;
	bool verbose, debug, allow_unsandboxed, detach;
	const char *from; /* create: the log that it begins with */
	const char *to;   /* create: the entry up to which */
};

/* The library's options: those of every sandbox, and those of some commands alone. */
extern struct option_table sandbox_option_table, lasting_option_table;
/* What such a command has besides them. */
extern const struct option_table sandbox_command_table;

/* Fills the tables of the library's options for a command; before anything else is done with it. */
void sandbox_options_prepare(const char *command);
/* Keeps an option until sandbox_options_finish(). */
int sandbox_options_give(
	struct sandbox_options *o, const char *name, const char *value, cloche_err *err);
/* The last one of this name; NULL: it was not given. */
const struct given *sandbox_options_given(const struct sandbox_options *o, const char *name);
int sandbox_options_init(struct sandbox_options *o, cloche_err *err);
void sandbox_options_done(struct sandbox_options *o);
/* After all options were read: environment, configuration file, the options that were given and the
 * workspace, each over the one before, into o->sb. */
int sandbox_options_finish(struct sandbox_options *o, cloche_err *err);
/* Then, if there is a command: what it needs of the host is mounted, and argv[0] (borrowed from
 * o->sb) becomes what it is inside. argv NULL: only says what was mounted for tools. */
int sandbox_options_command(struct sandbox_options *o, char **argv, cloche_err *err);
/* The workspace that was named, else the current directory if that is none to be kept out of a
 * sandbox (workspace.c). */
int workspace_choose(struct sandbox_options *o, cloche_err *err);

/* --- sandboxes that are there (instances.c) --- */

/* A command whose operands are ids, at least one: reads the options and does fn to each. */
int main_of_instances(const struct command *command, void *ctx, int argc, char **argv,
	int (*fn)(const cloche_instance *i, void *user));
/* Decimal digits alone, at most max. False if it is no such number. */
bool read_number(const char *text, uint64_t max, uint64_t *ret);
/* "3 s", "5 min", "2 h", "4 d" since a time in microseconds. */
void format_age(uint64_t since_usec, char *ret, size_t size);
/* "512 B", "1.5 MiB". */
void format_size(uint64_t bytes, char *ret, size_t size);

extern const struct command command_run, command_agent, command_net, command_doctor,
	command_srt_settings;
extern const struct command command_create, command_exec, command_shell, command_eval, command_ps,
	command_inspect, command_stats, command_stop, command_rm, command_prune, command_logs,
	command_attach, command_port, command_diff, command_fs, command_cp, command_env, command_kv,
	command_log, command_replay, command_image, command_fork, command_snapshot, command_trust,
	command_status, command_completion;
/* All of them, in the order of the help; NULL behind the last (main.c). */
const struct command *command_at(size_t i);
