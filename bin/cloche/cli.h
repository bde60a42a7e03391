/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the commands: messages, the table of options, the options that make a sandbox. */

#include <cloche/instance.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- messages (cli.c) --- */

struct sandbox_options;

enum { EXIT_CLOCHE = 125 };

/* Print "cloche: text" on standard error, without terminal control characters. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print the error and its hint. Return the exit status for it. */
int complain(const cloche_err *err);
/* Fill err with a usage error and, unless it is NULL, a hint. Return the negated code. */
int wrong_usage(cloche_err *err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* With --debug: print a step and the time since the first such message. */
void debug_step(const struct sandbox_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The callback for warnings: prints them. */
void warn(const char *text, void *user);
/* Write all bytes to a descriptor. Return false on failure. */
bool put(int fd, const void *p, size_t n);
/* Print a line on standard output. Return false on failure. */
bool put_line(const char *text);
/* Write foreign text to fd. If fd is a terminal, control characters are replaced. */
bool put_shown(int fd, const char *text);

/* At the end of every command: flush stdout, and say if anything could not be written to it. Return
 * r, or EXIT_CLOCHE if r is 0 and output was lost. */
int finish_output(int r);

/* --- options (options.c) --- */

struct option {
	const char *name; /* without "--" */
	char letter;      /* 0: none */
	const char *arg;  /* name of its argument; NULL: takes none */
	const char *help; /* "\n" starts a line of its own */
	/* Apply the option. If NULL, set the bool at offset `at` of ctx to true, or, for an option
	 * with an argument, set the const char * there to the argument (borrowed). */
	int (*set)(void *ctx, const char *value, cloche_err *err);
	size_t at;
	bool of_sandbox; /* an option of the library: ctx begins with a struct sandbox_options */
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
	int leading;                          /* after this many operands */
	int (*run)(int argc, char **argv);
};

struct operands {
	char **v; /* borrowed from argv, ends with NULL */
	int n;
	bool help; /* --help was requested and printed: there is nothing more to do */
};

/* Read the options and collect the operands, which may be mixed with options unless
 * command->command_line. Return 0 or a negative code. */
int options_read(const struct command *command, void *ctx, int argc, char **argv,
	struct operands *ret, cloche_err *err);
void options_help(const struct command *command);
/* The candidate that is most similar to an unknown name of n bytes. Start with best empty. */
struct near {
	const char *name; /* NULL: none is similar */
	unsigned wrong;
};
void options_near(const char *name, size_t n, const char *candidate, struct near *best);
/* Fail if a command that takes no operands was given one. */
int options_no_operands(
	const struct command *command, const struct operands *operands, cloche_err *err);

/* --- the options of a sandbox (sandbox_options.c) --- */

/* An option of the library that was given; both strings are borrowed. */
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
	const char *from; /* create: the log to start from */
	const char *to;   /* create: the last entry to replay */
};

/* The library's options: those of every sandbox, and those of some commands only. */
extern struct option_table sandbox_option_table, lasting_option_table;
/* The additional options of commands that make a sandbox. */
extern const struct option_table sandbox_command_table;

/* Fill the tables of the library's options for a command. Call this before anything else is done
 * with the command. */
void sandbox_options_prepare(const char *command);
/* Store an option until sandbox_options_finish(). */
int sandbox_options_give(
	struct sandbox_options *o, const char *name, const char *value, cloche_err *err);
/* Return the last one with this name, or NULL if it was not given. */
const struct given *sandbox_options_given(const struct sandbox_options *o, const char *name);
int sandbox_options_init(struct sandbox_options *o, cloche_err *err);
void sandbox_options_done(struct sandbox_options *o);
/* After all options were read: apply the environment, the configuration file, the given options and
 * the workspace to o->sb. Later ones override earlier ones. */
int sandbox_options_finish(struct sandbox_options *o, cloche_err *err);
/* Call this next. If argv is not NULL: mount what the command needs from the host, and set argv[0]
 * to the program's name inside (borrowed from o->sb). Print what was mounted for tools if that was
 * requested. */
int sandbox_options_command(struct sandbox_options *o, char **argv, cloche_err *err);
/* Use the workspace that was named, or else the current directory, unless that must not be shown to
 * a sandbox (workspace.c). */
int workspace_choose(struct sandbox_options *o, cloche_err *err);

/* --- existing sandboxes (instances.c) --- */

/* The main function of a command that takes one or more ids: read the options and call fn for each
 * sandbox. */
int main_of_instances(const struct command *command, void *ctx, int argc, char **argv,
	int (*fn)(const cloche_instance *i, void *user));
/* Parse decimal digits, at most max. Return false if text is not such a number. */
bool read_number(const char *text, uint64_t max, uint64_t *ret);
/* Read UID[:GID]; the default group is the user's number. Only numbers and "root" are accepted: we
 * must not read the room's list of accounts. */
int read_user(const char *value, uint32_t *ret_uid, uint32_t *ret_gid, cloche_err *err);
/* Read the TIME that an option was given. */
int read_duration(const char *option, const char *value, uint64_t *ret_ms, cloche_err *err);
/* Format the time since since_usec: "3 s", "5 min", "2 h", "4 d". */
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
/* All commands, in the order of the help; NULL after the last (main.c). */
const struct command *command_at(size_t i);
