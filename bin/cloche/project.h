/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a project's own files ask for, and the user's consent to it. */

#include <cloche/project.h>

/* Apply the files of the project, found in the working directory or above it. If they need consent,
 * ask once on a terminal, unless ask is false; refuse without one, or without an answer. allow is
 * as for cloche_project_apply(). */
int project_load(cloche_sandbox *sb, cloche_allowlist *allow, bool ask, cloche_err *err);

/* Return the allowlist of the project in dir, or NULL. *ret_obeyed: whether it counts, which it
 * does beside a sandbox.yaml alone. The path is kept until the next call. */
const char *project_allowlist(const char *dir, bool *ret_obeyed);
#define PROJECT_LONE "it counts beside a sandbox.yaml, which may be empty, and there is none"

/* Print on standard error what the files ask for and, if there was an earlier consent for this
 * directory, what is different. A terminal gets no more than somebody would read. */
void project_show(const cloche_project *p);
/* Return how many things they ask for. */
size_t project_count(const cloche_project *p);
/* Return whether somebody would read all of it in front of a question. */
bool project_is_short(const cloche_project *p);

/* Return whether standard input and standard error are terminals, so that the user can be asked. */
bool project_can_ask(void);
/* Ask the user. Every answer but yes means no. */
bool project_ask(const char *question);
/* Do so for consent, with the number of things. */
bool project_ask_person(const cloche_project *p);
