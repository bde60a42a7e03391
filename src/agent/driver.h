/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Drivers: how one kind of agent is found on the host, started, and given its credential. A driver
 * is a constant table; it starts nothing itself. The prompt always goes to standard input. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

/* The directory in the room where a program of the host is mounted for the agent. */
#define AGENT_ROOM_DIR "/opt/claude"
#define AGENT_MODEL_DEFAULT "sonnet"

/* Time limit of a task if nothing else sets one. */
enum { AGENT_DEFAULT_TIMEOUT_MS = 300 * 1000 };

/* Options of the user. Everything is borrowed; NULL or 0 leaves the choice to the agent. */
struct agent_request {
	const char *model;  /* NULL: AGENT_MODEL_DEFAULT */
	const char *resume; /* session to continue */
	const char *effort;
	const char *system_prompt; /* instead of the agent's own */
	unsigned max_turns;
};

/* A variable of the agent's environment. If in_home is set the value is the path value below the
 * room's HOME. */
struct agent_env {
	const char *name, *value;
	bool in_home;
};

/* The credential as a masked secret: the variable that holds the surrogate inside (and, by default,
 * the real value in the environment of the caller), the hosts and the headers in which it becomes
 * the real one. Lists end with NULL. */
struct agent_secret {
	const char *env;
	const char *const *hosts;
	const char *const *headers;
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
	bool whole;         /* only what is a directory can be mounted */
	const char *cwd;    /* search node_modules/.bin here and above; NULL: none */
};

struct agent_driver {
	const char *name; /* "claude-code" */
	const struct agent_secret *secret;
	const char *const *allow;    /* hosts that the agent needs; ends with NULL */
	const struct agent_env *env; /* ends with a NULL name */
	const char *const
		*env_withheld;  /* names that must not be set in the room; ends with NULL */
	const char *state_dir;  /* below the execution context: "claude" */
	const char *state_home; /* mount point of that, below the room's HOME: ".claude" */

	/* Append the whole command line (base/strv.h). argv[0] is `program`. Return 0, -E_USAGE for
	 * a value that the agent would take for an option, or -E_NO_MEMORY. */
	int (*build_argv)(const struct agent_request *rq, const char *program, char ***ret,
		struct cloche_err *err);

	/* Find the program on the host. Fill ret, which the caller frees. Return 0;
	 * -E_NOT_FOUND with a hint on how to install it; or -E_DENIED if a link leads to it that a
	 * room may have made. */
	int (*find)(
		const struct agent_search *s, struct agent_program *ret, struct cloche_err *err);
};

/* Get the driver of that name (NULL: the first). Return 0, or -E_USAGE with a list of names. */
_warn_unused_ int agent_driver_get(
	const char *name, const struct agent_driver **ret, struct cloche_err *err);

/* All drivers, NULL-terminated. */
const struct agent_driver *const *agent_drivers(void);

/* Return true if this variable must not reach the room. */
bool agent_driver_withholds(const struct agent_driver *d, const char *name);

/* Claude Code, with an API key or with a subscription's token. For driver.c alone. */
extern const struct agent_driver agent_claude_code, agent_claude_subscription;
/* Find the program on the host; see struct agent_driver. */
int claude_code_find(
	const struct agent_search *s, struct agent_program *ret, struct cloche_err *err);
