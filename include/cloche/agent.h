/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_AGENT_H
#define CLOCHE_AGENT_H
/* Agents at a terminal, and their homes. What an agent needs is said by its driver
 * (cloche-driver(5)). Each person, project and agent has a home directory of its own, which is kept
 * below the state directory: what the agent remembers (its theme, a login, its history) is there
 * when it is started again. For work without a person there is cloche/task.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "run.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return whether there is a driver of that name. */
CLOCHE_API bool cloche_agent_exists(const char *name);

/* Called with each driver in the order of their names; both texts are borrowed. */
typedef void (*cloche_agent_fn)(const char *name, const char *title, void *user);
/* List the drivers, except those whose file is wrong. */
CLOCHE_API int cloche_agent_list(cloche_agent_fn fn, void *user, cloche_err *err);

/* Create a run of an agent in a sandbox like sb (copied), whose workspace is its project, with
 * what its driver says: the program, found on this machine; the hosts; the credentials of the
 * environment, masked; the arguments with which it asks nobody, before these (copied, ends with
 * NULL; may be NULL); and its home, which belongs to the run until that is freed. Masked secrets
 * have the same surrogates in each run of a project. fresh: forget its home first. fn (may be NULL)
 * is told what the person should know.
 *
 * CLOCHE_E_USAGE: there is no such driver. CLOCHE_E_COMMAND_NOT_FOUND: its program is not there.
 * CLOCHE_E_BUSY: fresh, and the home is in use. */
CLOCHE_API int cloche_agent_run_new(const cloche_sandbox *sb, const char *agent,
	const char *const *arguments, bool fresh, cloche_warning_fn fn, void *user,
	cloche_run **ret, cloche_err *err);

/* A home. All of it is borrowed. */
typedef struct cloche_home {
	size_t size;         /* of this struct */
	const char *name;    /* for cloche_home_remove() */
	const char *agent;   /* the driver */
	const char *project; /* its workspace; "": none */
	const char *dir;     /* where it is */
	uint64_t used_usec;  /* when it was last given to an agent, since 1970 */
	uint64_t bytes;      /* of the files in it */
	bool partly;         /* they are more: it has too many files to look at them all */
	bool in_use;
	uint64_t cache_bytes; /* of bytes: caches of npm, pip, cargo, go and their kin */
} cloche_home;

typedef void (*cloche_home_fn)(const cloche_home *home, void *user);
/* List the homes of this person's agents. */
CLOCHE_API int cloche_home_list(cloche_home_fn fn, void *user, cloche_err *err);
/* Store the name that the home of an agent has for the workspace of sb, whether it is there or not.
 * The caller frees it. */
CLOCHE_API int cloche_home_name(
	const cloche_sandbox *sb, const char *agent, char **ret, cloche_err *err);
/* Remove a home. CLOCHE_E_NOT_FOUND: there is none of that name. CLOCHE_E_BUSY: it is in use. */
CLOCHE_API int cloche_home_remove(const char *name, cloche_err *err);

#ifdef __cplusplus
}
#endif

#endif
