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

/* Print "cloche: text" on standard error, one line without terminal controls or hidden characters.
 */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print the error and its hint. Return the exit status for it. */
int complain(const cloche_err *err);
/* Fill err with a usage error and, unless it is NULL, a hint. Return the negated code. */
int wrong_usage(cloche_err *err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The monotonic clock in microseconds. */
uint64_t now_usec(void);
/* With --debug: print a step and the time since the first such message. */
void debug_step(const struct sandbox_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The callback for warnings: prints them. */
void warn(const char *text, void *user);
/* Write all bytes to a descriptor. Return false on failure. */
bool put(int fd, const void *p, size_t n);
/* Read a descriptor to its end, or `most` bytes and one more. Return 0 or an errno. The caller
 * frees *ret, also on failure. */
int read_whole(int fd, size_t most, char **ret, size_t *ret_n);
/* Print a line on standard output. Return false on failure. */
bool put_line(const char *text);
/* Do the same for a row of a table, without the blanks at its end, which are removed. */
bool put_row(char *row);
/* Write foreign text to fd. If fd is a terminal, controls and hidden characters are replaced. */
bool put_shown(int fd, const char *text);

/* Whether a program of this name is in our PATH. */
bool program_is_here(const char *program);
/* The columns of the terminal that standard output is; 0: it is none. */
unsigned output_columns(void);
/* On a terminal the beginning of an id, which every command takes, else all of it. */
const char *shown_id(const char *id);

/* Flush stdout in the middle of a command. Return false on failure, the reason of which is kept. */
bool flush_output(void);
/* The exit status of a command that has ended with r and has printed its result (ok), or failed to:
 * r if it is the reader of a pipe who has gone, as in a shell pipeline; else EXIT_CLOCHE. */
int status_of_output(bool ok, int r);
/* At the end of every command: flush stdout, and say if anything could not be written to it. Return
 * r, or EXIT_CLOCHE if r is 0 and output was lost. */
int finish_output(int r);

/* --- options (options.c) --- */

struct option {
	const char *name; /* without "--" */
	char letter;      /* 0: none */
	const char *arg;  /* name of its argument; NULL: takes none */
	const char *help; /* "\n" starts a line of its own */
	/* Apply the option to what is at offset `at` of ctx. If NULL, set the bool there to true,
	 * or, for an option with an argument, set the const char * there to the argument
	 * (borrowed). */
	int (*set)(const struct option *o, void *at, const char *value, cloche_err *err);
	size_t at;
	size_t off;      /* of a flag: set the bool at this offset to false; 0: there is none */
	bool of_sandbox; /* an option of the library: ctx begins with a struct sandbox_options */
	/* The command does not take this option of a later table, and says so with this advice. */
	const char *instead;
	/* Of a command with operations: the names of those that take it; NULL: all of them. */
	const char *of;
};

struct option_table {
	const char *title;            /* heading in the help */
	const struct option *options; /* up to one without a name */
};

enum { OF_OPERATIONS_MAX = 32 };

struct operands {
	char **v; /* borrowed from argv, ends with NULL */
	int n;
	const char *called; /* the name by which the command was called */
	/* The options that were given and that only some operations take, each once. */
	const struct option *of_operations[OF_OPERATIONS_MAX];
	size_t of_operations_n;
};

struct command {
	const char *name;
	const char *summary;  /* one line, for the list of commands */
	const char *synopsis; /* after "cloche NAME " */
	const char *text;     /* paragraphs of the help */
	const struct option_table
		*tables[5]; /* up to the first NULL; the first row of a name counts */
	bool no_operands;
	bool command_line; /* operands begin a command line of its own, */
	int leading;       /* after this many operands */
	void *ctx;         /* what the options set, with its defaults */
	/* Return the exit status, or a negative code with err. */
	int (*run)(void *ctx, const struct operands *operands, cloche_err *err);
	void (*done)(void *ctx); /* NULL: there is nothing to free */
};

/* Read the options and run the command. Operands may be mixed with options unless
 * command->command_line. Return the exit status. */
int command_execute(const struct command *command, int argc, char **argv);
void options_help(const struct command *command);
/* The help of an option, with the names of the operations that take it. ret may be used for it. */
const char *options_text(const struct option *o, char *ret, size_t size);
/* Refuse the options that were given and that this operation of the command does not take. Return 0
 * or a negative code. */
int options_check_operation(const struct command *command, const struct operands *operands,
	const char *operation, cloche_err *err);
/* Whether the command takes this option of its tables. */
bool options_takes(const struct command *command, const struct option *o);

/* --- the options of a sandbox (sandbox_options.c) --- */

/* An option of the library that was given; both strings are borrowed. */
struct given {
	const char *name, *value;
};

struct sandbox_options {
	cloche_sandbox *sb;  /* NULL before sandbox_options_finish() */
	struct given *given; /* in their order */
	size_t given_n;
	const char *config;
	cloche_setting_fn on_setting; /* NULL, or who wants to know what is set */
	const char *setting_from;     /* what is read now, if it is no file */
	char record[8];               /* of --record or its key: what was set last */
	bool has_image;               /* the root is one: of --root, or of a file */
	bool network_off;             /* a file says so */
	bool shows_only;              /* nothing is started, asked or pulled */
	bool keeps_workdir;           /* the working directory is /workspace unless one is given */
	bool no_workspace, no_config, network_log_live, tty, no_tty, interactive, json;
	bool verbose, quiet, events, debug, allow_unsandboxed, detach;
	char detach_keys[3]; /* [0] is 0: none */
	const char *from;    /* create: the log to start from */
	const char *to;      /* create: the last entry to replay */
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
/* ctx begins with a struct sandbox_options. */
void sandbox_options_done(void *ctx);
/* After all options were read: make o->sb, and apply the environment, the configuration file, the
 * given options and the workspace to it. Later ones override earlier ones. If argv is not NULL:
 * mount what the command needs from the host, and set argv[0] to the program's name inside
 * (borrowed from o->sb). Print what was mounted for tools if that was requested. */
int sandbox_options_finish(struct sandbox_options *o, char **argv, cloche_err *err);

/* Execute a run of its own sandbox here, with this terminal if there is one. Return the exit status
 * (cmd_run.c). */
int run_run_attached(struct sandbox_options *o, cloche_run *run);

/* --- existing sandboxes (instances.c) --- */

/* For variables: free the sandbox at the end of the scope. */
#define _cleanup_(f) __attribute__((cleanup(f)))
static inline void instance_freep(cloche_instance **i)
{
	cloche_instance_free(*i);
}

/* Call fn, which returns an exit status, for each sandbox that the operands name; there has to be
 * one. Continue after a failure. Return 0, the last failure's exit status, or a negative code. */
int each_instance(const struct command *command, const struct operands *ids,
	int (*fn)(cloche_instance *i, void *user), void *user, cloche_err *err);
/* Parse decimal digits, at most max. Return false if text is not such a number. */
bool read_number(const char *text, uint64_t max, uint64_t *ret);
/* Read the time that an option was given. */
int read_duration(const char *option, const char *value, uint64_t *ret_ms, cloche_err *err);

/* For option.set: TIME, into a uint64_t of milliseconds. */
int set_duration(const struct option *o, void *at, const char *value, cloche_err *err);
/* The number of a command in a sandbox, into a uint32_t. */
int set_exec(const struct option *o, void *at, const char *value, cloche_err *err);
/* Find a user of a sandbox (NAME|UID[:GROUP]), as cloche_files_find_user() does. Of root, and of
 * two numbers, nothing is looked up. */
int find_user(const cloche_instance *i, const char *text, uint32_t *ret_uid, uint32_t *ret_gid,
	cloche_err *err);
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
	command_status, command_sync, command_completion, command_config, command_init,
	command_planted, command_word, command_home, command_preset, command_undo;
/* All commands, in the order of the help; NULL after the last (main.c). */
const struct command *command_at(size_t i);
