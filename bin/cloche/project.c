/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-CONSENT): the user consents to the bytes that were shown. The library
 * reads the files once, and applies and records what it has read, even if the files have changed
 * meanwhile. */
#include "project.h"
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

/* Users would not read more than this before a command. */
enum { ASK_BYTES_MAX = 16 << 10 };

/* Show lines as long as there is room; say how many there are beyond it. */
static void show_lines(const char *const *lines, size_t *room)
{
	size_t more = 0;

	for (; *lines && strlen(*lines) + 3 <= *room; lines++) {
		*room -= strlen(*lines) + 3;
		(void)put(STDERR_FILENO, "  ", 2);
		(void)put(STDERR_FILENO, *lines, strlen(*lines));
		(void)put(STDERR_FILENO, "\n", 1);
	}
	for (; *lines; lines++)
		more++;
	if (more) {
		*room = 0;
		say("and %zu more: \"cloche trust 2>&1 | less\" shows them all", more);
	}
}

size_t project_count(const cloche_project *p)
{
	size_t n = 0;

	while (p->asks[n])
		n++;
	return n;
}

void project_show(const cloche_project *p)
{
	const char *second = p->files[1], *since = p->since;
	size_t room = isatty(STDERR_FILENO) ? ASK_BYTES_MAX : SIZE_MAX;

	say("%s%s%s of %s:", p->files[0], second ? " and " : "", second ? second : "", p->dir);
	if (!p->asks[0])
		say("they only narrow what a sandbox gets, and need no consent");
	else
		say("whatever is run there in a sandbox would");
	show_lines(p->asks, &room);
	if (!since || p->is_trusted)
		return;
	if (!p->changes[0])
		say("you consented to the same on %s; only the text is different", since);
	else
		say("you consented to something else on %s; since then", since);
	show_lines(p->changes, &room);
}

bool project_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool project_ask(const char *question)
{
	char line[256];
	ssize_t n;

	/* Input that was typed before the question is not an answer. */
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	(void)put(STDERR_FILENO, "cloche: ", 8);
	(void)put(STDERR_FILENO, question, strlen(question));
	(void)put(STDERR_FILENO, " [y/N] ", 7);
	while ((n = read(STDIN_FILENO, line, sizeof(line) - 1)) < 0 && errno == EINTR)
		;
	/* At the end of input the terminal has not shown a newline. */
	if (n <= 0 || line[n - 1] != '\n') {
		(void)put(STDERR_FILENO, "\n", 1);
		return false;
	}
	line[n - 1] = '\0';
	return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

bool project_ask_person(const cloche_project *p)
{
	size_t things = project_count(p);
	char question[64];

	snprintf(question, sizeof(question),
		things == 1 ? "do you consent to this?" : "do you consent to these %zu things?",
		things);
	return project_ask(question);
}

bool project_is_short(const cloche_project *p)
{
	const char *line;
	size_t n = 0;

	for (size_t i = 0; (line = p->asks[i]); i++)
		n += strlen(line) + 3;
	for (size_t i = 0; (line = p->changes[i]); i++)
		n += strlen(line) + 3;
	return n <= ASK_BYTES_MAX;
}

static bool project_is_here(const cloche_project *p)
{
	char here[PATH_MAX];

	return getcwd(here, sizeof(here)) && strcmp(here, p->dir) == 0;
}

static int obey(
	cloche_project *p, cloche_sandbox *sb, cloche_allowlist *allow, bool ask, cloche_err *err)
{
	int r = 0;

	if (ask && !p->is_trusted && project_can_ask() && project_is_short(p)) {
		project_show(p);
		if (project_ask_person(p))
			r = cloche_project_trust(p, err);
	}
	if (r == 0)
		r = cloche_project_apply(p, sb, allow, err);
	if (r == 0 && ask && project_is_here(p))
		say("using %s", p->files[0]);
	else if (r == 0 && ask)
		say("using %s of %s", p->files[0], p->dir);
	return r;
}

/* Make the path of a file in the place of a project's files; return NULL if it does not exist. */
static const char *find(const char *dir, const char *place, const char *file)
{
	static char path[PATH_MAX];
	bool here = strcmp(dir, ".") == 0;

	snprintf(path, sizeof(path), "%s%s%s/%s", here ? "" : dir, here ? "" : "/", place, file);
	return access(path, F_OK) == 0 ? path : NULL;
}

const char *project_allowlist(const char *dir, bool *ret_obeyed)
{
	static const char *const places[] = {".cloche", ".airut"};
	const char *path = NULL;

	*ret_obeyed = true;
	for (size_t i = 0; i < 2; i++)
		if (find(dir, places[i], "sandbox.yaml"))
			return find(dir, places[i], "network-allowlist.yaml");
	*ret_obeyed = false;
	for (size_t i = 0; !path && i < 2; i++)
		path = find(dir, places[i], "network-allowlist.yaml");
	return path;
}

int project_load(cloche_sandbox *sb, cloche_allowlist *allow, bool ask, cloche_err *err)
{
	cloche_project *p = NULL;
	int r = cloche_project_find(".", &p, err);
	bool obeyed;
	const char *lone = r == 0 && !p && allow ? project_allowlist(".", &obeyed) : NULL;

	if (r == 0 && p)
		r = obey(p, sb, allow, ask, err);
	if (lone)
		say("%s is not obeyed: " PROJECT_LONE, lone);
	cloche_project_free(p);
	return r;
}
