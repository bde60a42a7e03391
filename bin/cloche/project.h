/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a project's own files ask for, and the person's consent to it. */

#include <cloche/project.h>

/* Obeys what is found in the working directory. On a terminal the person is asked once if that
 * needs consent; elsewhere it is refused. allow as for cloche_project_apply(). */
int project_load(cloche_sandbox *sb, cloche_allowlist *allow, cloche_err *err);

/* Says on standard error what the files ask for and, if the person consented to something there
 * before, what is different. */
void project_show(const cloche_project *p);

/* Whether there is a person to ask, on standard input and standard error. */
bool project_can_ask(void);
/* Asks; whatever is not yes is no. */
bool project_ask_person(void);
