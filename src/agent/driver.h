/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Drivers: how one kind of agent is found on the host, started, and given its credential. A driver
 * is a text (drivers/NAME.yaml; cloche-driver(5)): those that come with cloche are part of the
 * program, and a person adds or replaces some in ~/.config/cloche/drivers. It starts nothing
 * itself. Only how the output of a headless agent is read, and where its program may be, is code
 * (struct agent_output). */

#include "base/err.h"
#include "base/str.h"
#include "login/login.h"
#include <stdbool.h>
#include <stdint.h>

/* The directory in the room where a program of the host is mounted for the agent. */
#define AGENT_ROOM_DIR "/opt/claude"
#define AGENT_MODEL_DEFAULT "sonnet"
#define AGENT_DRIVER_DEFAULT "claude-code"

/* Time limit of a task if nothing else sets one. */
enum { AGENT_DEFAULT_TIMEOUT_MS = 300 * 1000 };

/* Options of the user. Everything is borrowed; NULL or 0 leaves the choice to the agent. */
struct agent_request {
	const char *model;  /* NULL: AGENT_MODEL_DEFAULT */
	const char *resume; /* session to continue */
	const char *effort;
	const char *system_prompt; /* instead of the agent's own */
	unsigned max_turns;
	bool is_command; /* the prompt is a command of the agent's own, such as /compact */
};

/* A variable of the agent's environment. If in_home is set the value is the path value below the
 * room's HOME. */
struct agent_env {
	char *name, *value;
	bool in_home;
};
struct agent_environment {
	struct agent_env *v;
	size_t n;
};

/* A credential as a masked secret: the variable that holds the surrogate inside, the variables of
 * the caller that may hold the real value, and the hosts and headers in which the one becomes the
 * other. Lists end with NULL, and NULL is an empty one. */
struct agent_key {
	char *env;
	char **from; /* after env itself */
	char **hosts, **headers;
	char *base_url;   /* the caller's variable with another URL of the API; or NULL */
	char **withhold;  /* variables that must not be set in the room beside it */
	char **arguments; /* the agent's arguments if this is its credential */
	struct agent_environment environment; /* ... and its variables */
	/* The file in the person's home that has it after a login; .file is NULL if there is none.
	 */
	struct login_spec login;
	/* Instead of login.client_secret: agent_client_secret() finds it by this. */
	char *client_secret_begins;
	/* A variable that gets what the file has of whose login it is, which is no secret. */
	char *account_env, **account;
};

/* A file with which a new home begins; its path is below the home. */
struct agent_file {
	char *path, *text;
};

/* What is code: how a headless agent is found, and how its output is read. */
struct agent_search;
struct agent_program;
struct agent_output {
	const char *name;
	/* Find the program on the host. Fill ret, which the caller frees. Return 0;
	 * -E_NOT_FOUND with a hint on how to install it; or -E_DENIED if a link leads to it that a
	 * room may have made. */
	int (*find)(
		const struct agent_search *s, struct agent_program *ret, struct cloche_err *err);
};

struct agent_driver {
	char *name;    /* "claude-code" */
	char *title;   /* "Claude Code" */
	char *program; /* its name on the PATH */
	char *install; /* the command that installs it, for a hint */
	char **hosts;  /* that it needs */
	struct agent_key *keys;
	size_t keys_n;
	bool every_key;     /* each credential that is there is given to it, else the first one */
	char **pass;        /* variables of the caller that it gets as they are */
	char **no_prompts;  /* arguments that let it work without asking, in its own sandbox or
			     * none */
	char **subcommands; /* its first words that allow no arguments before them */
	char **outside;     /* its first words that are of use only outside */
	struct agent_environment env;
	char *state; /* where it keeps its state, below the room's HOME: ".claude" */

	/* At a terminal. */
	char **terminal_hosts; /* besides: for its first start, a login */
	struct agent_environment terminal_env;
	struct agent_file *files;
	size_t files_n;
	char **copy; /* paths below the person's HOME that a new home gets a copy of */

	/* Headless, for `cloche agent`. */
	const struct agent_output *output; /* NULL: it cannot be used so */
	char *context; /* the directory of an execution context that keeps the state: "claude" */
	char **arguments;
	struct agent_environment headless_env;
	char *resume, *model, *effort, *max_turns, *system_prompt; /* its options; or NULL */
};

/* The agent's program as found on the host. */
struct agent_program {
	char *path;   /* in the room: argv[0] */
	char *host;   /* on the host: what was found, symbolic links resolved */
	char *source; /* what the room needs of the host, read-only: that file, or its package */
	char *destination; /* of source, in the room */
};
void agent_program_done(struct agent_program *p);
static inline void agent_program_donep(struct agent_program *p)
{
	agent_program_done(p);
}

/* Where to look. Everything is borrowed. */
struct agent_search {
	const char *binary; /* this file and nothing else; NULL: search */
	const char *path;   /* $PATH; NULL: none */
	const char *home;   /* the user's home; NULL: none */
	const char *cwd;    /* search node_modules/.bin here and above; NULL: none */
};

/* Get the driver of that name (NULL: AGENT_DRIVER_DEFAULT): of the person, else of those that come
 * with cloche. Return 0, -E_USAGE with a list of names, or -E_CONFIG if its file is wrong. */
_warn_unused_ int agent_driver_get(
	const char *name, struct agent_driver **ret, struct cloche_err *err);
/* Free a driver; NULL is fine. Return NULL. */
struct agent_driver *agent_driver_free(struct agent_driver *d);
DEFINE_CLEANUP(struct agent_driver, agent_driver_free)

/* Return whether there is a driver of that name; its file may be wrong. */
bool agent_driver_is(const char *name);
/* Store the names of all drivers, sorted (base/strv.h). Return 0 or -E_NO_MEMORY. */
_warn_unused_ int agent_driver_names(char ***ret, struct cloche_err *err);

/* Return whether this is the variable of a credential of any driver. */
bool agent_is_credential(struct str name);

/* Append the whole command line of a headless agent (base/strv.h). argv[0] is `program`. The prompt
 * always goes to standard input; before a command, the argument "-" is left out, which a client
 * puts before its input as a line. Return 0, -E_USAGE for an option that the agent lacks or a value
 * that it would take for an option, or -E_NO_MEMORY. */
_warn_unused_ int agent_driver_argv(const struct agent_driver *d, const struct agent_request *rq,
	const char *program, char ***ret, struct cloche_err *err);

/* Return whether this variable must not reach the room beside that credential. */
bool agent_key_withholds(const struct agent_key *key, const char *name);

/* driver_yaml.c. Read the text of a driver. file: for messages. What the text does not say stays as
 * it is in ret; a failure may leave a part of it there. *ret_base: the driver that it builds on
 * (heap); NULL: none. */
_warn_unused_ int agent_driver_read(struct str text, const char *file, struct agent_driver *ret,
	char **ret_base, struct cloche_err *err);

/* Find the secret of an agent's client, which is public (RFC 8252 section 8.5): a string that
 * begins with this text, between quotation marks in the program (a path) or in a JavaScript file
 * beside it. *ret is on the heap; NULL if there is none. Return 0 or -ENOMEM. */
_warn_unused_ int agent_client_secret(const char *program, const char *begins, char **ret);

/* claude_find.c: see struct agent_output. */
int claude_code_find(
	const struct agent_search *s, struct agent_program *ret, struct cloche_err *err);
