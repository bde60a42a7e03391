/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: too many keys name programs, and each version of git adds more, so the
 * harmless keys are listed instead. A key is written as section.key in lower case, with ".*." in
 * the middle if it has a subsection. The subsection's name does not matter, except that of a
 * remote: git passes it to its own commands, and takes it for the URL if there is none. */
#include "workspace/gitconfig.h"
#include "base/macro.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_KEY = 96, MAX_VALUE = 8192 };

enum value_kind {
	PLAIN,
	URL,     /* of a repository, or a remote's name, for which git takes a URL as well:
		  * "helper::address" runs a program, and so may an option, "-..." */
	UPDATE,  /* of a submodule: "!command" runs one */
	WORKTREE /* where files are written */
};

static const struct {
	const char *key;
	enum value_kind kind;
} harmless[] = {
	{"advice.detachedhead", PLAIN},
	{"branch.*.description", PLAIN},
	{"branch.*.merge", PLAIN},
	{"branch.*.pushremote", URL},
	{"branch.*.rebase", PLAIN},
	{"branch.*.remote", URL},
	{"branch.*.vscode-merge-base", PLAIN},
	{"branch.*.gh-merge-base", PLAIN},
	{"branch.autosetupmerge", PLAIN},
	{"branch.autosetuprebase", PLAIN},
	{"branch.sort", PLAIN},
	{"color.branch", PLAIN},
	{"color.diff", PLAIN},
	{"color.status", PLAIN},
	{"color.ui", PLAIN},
	{"commit.cleanup", PLAIN},
	{"commit.verbose", PLAIN},
	{"core.abbrev", PLAIN},
	{"core.autocrlf", PLAIN},
	{"core.bare", PLAIN},
	{"core.checkstat", PLAIN},
	{"core.compression", PLAIN},
	{"core.eol", PLAIN},
	{"core.filemode", PLAIN},
	{"core.ignorecase", PLAIN},
	{"core.logallrefupdates", PLAIN},
	{"core.longpaths", PLAIN},
	{"core.precomposeunicode", PLAIN},
	{"core.quotepath", PLAIN},
	{"core.repositoryformatversion", PLAIN},
	{"core.safecrlf", PLAIN},
	{"core.sharedrepository", PLAIN},
	{"core.sparsecheckout", PLAIN},
	{"core.sparsecheckoutcone", PLAIN},
	{"core.symlinks", PLAIN},
	{"core.trustctime", PLAIN},
	{"core.untrackedcache", PLAIN},
	{"core.whitespace", PLAIN},
	{"core.worktree", WORKTREE},
	{"diff.algorithm", PLAIN},
	{"diff.colormoved", PLAIN},
	{"diff.renames", PLAIN},
	{"extensions.compatobjectformat", PLAIN},
	{"extensions.noop", PLAIN},
	{"extensions.objectformat", PLAIN},
	{"extensions.partialclone", URL},
	{"extensions.preciousobjects", PLAIN},
	{"extensions.refstorage", PLAIN},
	{"extensions.relativeworktrees", PLAIN},
	/* The other file that git then reads is judged like this one. */
	{"extensions.worktreeconfig", PLAIN},
	{"fetch.prune", PLAIN},
	{"fetch.prunetags", PLAIN},
	{"gc.auto", PLAIN},
	{"gc.autodetach", PLAIN},
	{"index.skiphash", PLAIN},
	{"index.sparse", PLAIN},
	{"index.version", PLAIN},
	{"init.defaultbranch", PLAIN},
	{"lfs.*.access", PLAIN},
	{"lfs.repositoryformatversion", PLAIN},
	{"log.date", PLAIN},
	{"log.decorate", PLAIN},
	{"maintenance.auto", PLAIN},
	{"maintenance.strategy", PLAIN},
	{"merge.conflictstyle", PLAIN},
	{"merge.ff", PLAIN},
	{"pull.ff", PLAIN},
	{"pull.rebase", PLAIN},
	{"push.autosetupremote", PLAIN},
	{"push.default", PLAIN},
	{"push.followtags", PLAIN},
	{"rebase.autosquash", PLAIN},
	{"rebase.autostash", PLAIN},
	/* "git init --shared" writes it. */
	{"receive.denynonfastforwards", PLAIN},
	{"remote.*.fetch", PLAIN},
	{"remote.*.gh-resolved", PLAIN},
	{"remote.*.mirror", PLAIN},
	{"remote.*.partialclonefilter", PLAIN},
	{"remote.*.promisor", PLAIN},
	{"remote.*.prune", PLAIN},
	{"remote.*.push", PLAIN},
	{"remote.*.pushurl", URL},
	{"remote.*.tagopt", PLAIN},
	{"remote.*.url", URL},
	{"remote.pushdefault", URL},
	{"rerere.autoupdate", PLAIN},
	{"rerere.enabled", PLAIN},
	{"status.showuntrackedfiles", PLAIN},
	{"submodule.*.active", PLAIN},
	{"submodule.*.branch", PLAIN},
	{"submodule.*.ignore", PLAIN},
	{"submodule.*.update", UPDATE},
	{"submodule.*.url", URL},
	{"submodule.active", PLAIN},
	{"submodule.recurse", PLAIN},
	{"tag.sort", PLAIN},
	{"user.email", PLAIN},
	{"user.name", PLAIN},
	{"user.useconfigonly", PLAIN},
};

/* Nothing that is read is longer than the text, and most texts are short. So name and value have
 * the room that this text needs: two buffers of 8 KiB in a frame would cost four page faults. */
struct reader {
	struct str rest;
	char section[MAX_KEY];
	char variable[MAX_KEY];
	char key[2 * MAX_KEY + 4]; /* with the section's name, as in the table */
	char *name, *value;        /* of the subsection, and of the variable */
	size_t room;               /* for each of these two, with its NUL */
	bool subsection, has_value;
};

/* Returns the next character as git reads it, without a carriage return before a line feed, or -1
 * at the end. A NUL ends nothing and is not part of any name. */
static int reader_peek(struct reader *r)
{
	if (r->rest.n >= 2 && r->rest.p[0] == '\r' && r->rest.p[1] == '\n')
		r->rest = str_from_index(r->rest, 1);
	return r->rest.n ? (unsigned char)r->rest.p[0] : -1;
}

static int reader_take(struct reader *r)
{
	int c = reader_peek(r);

	if (c >= 0)
		r->rest = str_from_index(r->rest, 1);
	return c;
}

static void reader_skip_line(struct reader *r)
{
	r->rest = str_from_index(r->rest, str_chr(r->rest, '\n'));
}

static void reader_skip_blanks(struct reader *r)
{
	while (reader_peek(r) == ' ' || reader_peek(r) == '\t')
		(void)reader_take(r);
}

/* Reads letters, digits and the characters of `also`, in lower case. False if there are none or too
 * many. */
static bool reader_word(struct reader *r, const char *also, char ret[MAX_KEY])
{
	size_t n = 0;
	int c;

	while ((c = reader_peek(r)) > 0 && (isalnum(c) || strchr(also, c))) {
		if (n == MAX_KEY - 1)
			return false;
		ret[n++] = (char)tolower(reader_take(r));
	}
	ret[n] = '\0';
	return n > 0;
}

/* Reads a section after "[". */
static bool reader_section(struct reader *r)
{
	size_t n = 0;
	char *dot;
	int c;

	if (!reader_word(r, "-.", r->section))
		return false;
	/* The old form [section.subsection]. */
	dot = strchr(r->section, '.');
	r->subsection = dot != NULL;
	snprintf(r->name, r->room, "%s", dot ? dot + 1 : "");
	if (dot)
		*dot = '\0';
	if (reader_peek(r) == ']') {
		(void)reader_take(r);
		return true;
	}
	reader_skip_blanks(r);
	r->subsection = true;
	/* In this form the name goes on after the one of the old form, if both are there. */
	if (dot || reader_take(r) != '"')
		return false;
	while ((c = reader_take(r)) != '"') {
		if (c == '\\')
			c = reader_take(r);
		if (c <= 0 || c == '\n' || n == r->room - 1)
			return false;
		r->name[n++] = (char)c;
	}
	r->name[n] = '\0';
	return reader_take(r) == ']';
}

/* Reads what follows a backslash in a value. Returns the character, 0 if the line is continued, or
 * -1 on an error. */
static int reader_escape(struct reader *r)
{
	int c = reader_take(r);

	switch (c) {
	case '\n':
		return 0;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return -1;
	}
}

/* Reads a value after "=". As in git, leading blanks are skipped even if the line is continued, and
 * a quoted part has to end on its line. */
static bool reader_value(struct reader *r)
{
	bool quoted = false;
	size_t n = 0;
	int c;

	reader_skip_blanks(r);
	while ((c = reader_take(r)) >= 0 && (quoted || c != '\n')) {
		if (!quoted && (c == '#' || c == ';')) {
			reader_skip_line(r);
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (!quoted && n == 0 && (c == ' ' || c == '\t'))
			continue;
		/* Git skips a carriage return as it does blanks. */
		if (strchr("\n\r", c))
			return false;
		if (c == '\\') {
			c = reader_escape(r);
			if (c == 0)
				continue;
		}
		if (c <= 0 || n == r->room - 1)
			return false;
		r->value[n++] = (char)c;
	}
	while (n && (r->value[n - 1] == ' ' || r->value[n - 1] == '\t'))
		n--;
	r->value[n] = '\0';
	return !quoted;
}

/* Reads a key and its value, from the first letter of the key. */
static bool reader_variable(struct reader *r)
{
	int c = reader_peek(r);

	if (!r->section[0] || !isalpha(c) || !reader_word(r, "-", r->variable))
		return false;
	snprintf(r->key, sizeof(r->key), "%s%s%s", r->section, r->subsection ? ".*." : ".",
		r->variable);
	r->value[0] = '\0';
	r->has_value = false;
	reader_skip_blanks(r);
	c = reader_peek(r);
	if (c < 0 || c == '\n' || c == '#' || c == ';')
		return true;
	r->has_value = true;
	return reader_take(r) == '=' && reader_value(r);
}

bool gitconfig_is_harmless_url(const char *url)
{
	size_t n = 0;

	if (url[0] == '-')
		return false;
	while (isalnum((unsigned char)url[n]) || (url[n] && strchr("+-.", url[n])))
		n++;
	return strncmp(url + n, "::", 2) != 0;
}

struct worktree_judge {
	bool (*is_inside)(void *user, const char *value);
	void *user;
};

static bool variable_is_harmless(const struct reader *r, const struct worktree_judge *w)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(harmless) && strcmp(harmless[i].key, r->key) != 0)
		i++;
	if (i == ARRAY_SIZE(harmless) ||
		(strcmp(r->section, "remote") == 0 && !gitconfig_is_harmless_url(r->name)))
		return false;
	switch (harmless[i].kind) {
	case PLAIN:
		return true;
	case URL:
		return gitconfig_is_harmless_url(r->value);
	case UPDATE:
		return r->value[0] != '!';
	case WORKTREE:
		return w->is_inside && w->is_inside(w->user, r->value);
	}
	return false;
}

/* Returns 1 if a variable was read, 0 at the end, or -1 on an error. */
static int reader_next(struct reader *r)
{
	int c;

	if (!r->name)
		return -1;
	while ((c = reader_peek(r)) >= 0) {
		if (c == '#' || c == ';') {
			reader_skip_line(r);
		} else if (c == ' ' || c == '\t' || c == '\n') {
			(void)reader_take(r);
		} else if (c == '[') {
			(void)reader_take(r);
			if (!reader_section(r))
				return -1;
		} else {
			return reader_variable(r) ? 1 : -1;
		}
	}
	return 0;
}

/* Begins to read. If there is no memory, reading fails. */
static struct reader reader_open(struct str text)
{
	struct reader r = {.room = MIN(text.n + 1, (size_t)MAX_VALUE)};

	r.rest = str_starts(text, STR("\xef\xbb\xbf")) ? str_from_index(text, 3) : text;
	r.name = malloc(2 * r.room);
	if (r.name) {
		r.value = r.name + r.room;
		r.name[0] = r.value[0] = '\0';
	}
	return r;
}

static void reader_donep(struct reader *r)
{
	free(r->name);
}

bool gitconfig_is_harmless(
	struct str text, bool (*worktree_is_inside)(void *user, const char *value), void *user)
{
	const struct worktree_judge w = {worktree_is_inside, user};
	_cleanup_(reader_donep) struct reader r = reader_open(text);
	int more;

	while ((more = reader_next(&r)) > 0)
		if (!variable_is_harmless(&r, &w))
			return false;
	return more == 0;
}

bool gitconfig_is_of_repository(struct str text)
{
	_cleanup_(reader_donep) struct reader r = reader_open(text);
	int more;

	while ((more = reader_next(&r)) > 0)
		if (strcmp(r.section, "core") != 0 && strcmp(r.section, "index") != 0)
			return true;
	return more < 0;
}

char *gitconfig_value(struct str text, const char *key)
{
	_cleanup_(reader_donep) struct reader r = reader_open(text);
	char *found = NULL;

	while (reader_next(&r) > 0)
		if (strcmp(r.key, key) == 0) {
			free(found);
			found = strdup(r.value);
		}
	return found;
}

static int list_add(struct gitconfig_list *l, const struct reader *r)
{
	struct gitconfig_entry *more, *e;

	if (l->n == GITCONFIG_MAX_ENTRIES)
		return -E2BIG;
	more = array_room(l->entries, l->n, &l->cap, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->entries = more;
	e = &l->entries[l->n++];
	*e = (struct gitconfig_entry){.section = strdup(r->section),
		.name = r->subsection ? strdup(r->name) : NULL,
		.key = strdup(r->variable),
		.value = r->has_value ? strdup(r->value) : NULL};
	return e->section && e->key && (e->name || !r->subsection) && (e->value || !r->has_value)
		       ? 0
		       : -ENOMEM;
}

int gitconfig_read(struct str text, struct gitconfig_list *ret)
{
	_cleanup_(reader_donep) struct reader r = reader_open(text);
	int more, e = 0;

	*ret = (struct gitconfig_list){0};
	if (!r.name)
		return -ENOMEM;
	while (e == 0 && (more = reader_next(&r)) > 0)
		e = list_add(ret, &r);
	return e == 0 && more < 0 ? -EINVAL : e;
}

void gitconfig_list_done(struct gitconfig_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->entries[i].section);
		free(l->entries[i].name);
		free(l->entries[i].key);
		free(l->entries[i].value);
	}
	free(l->entries);
	*l = (struct gitconfig_list){0};
}

static bool gitconfig_is_same_section(
	const struct gitconfig_entry *a, const struct gitconfig_entry *b)
{
	return strcmp(a->section, b->section) == 0 && !a->name == !b->name &&
	       (!a->name || strcmp(a->name, b->name) == 0);
}

bool gitconfig_is_same(const struct gitconfig_entry *a, const struct gitconfig_entry *b)
{
	return strcmp(a->key, b->key) == 0 && gitconfig_is_same_section(a, b);
}

/* Adds a text in quotes. */
static int gitconfig_quote(struct buf *out, const char *text)
{
	int r = buf_add_char(out, '"');

	for (; r == 0 && *text; text++)
		r = *text == '\n'                   ? buf_add_str(out, STR("\\n"))
		    : *text == '\t'                 ? buf_add_str(out, STR("\\t"))
		    : *text == '\b'                 ? buf_add_str(out, STR("\\b"))
		    : *text == '"' || *text == '\\' ? buf_printf(out, "\\%c", *text)
						    : buf_add_char(out, *text);
	return r < 0 ? r : buf_add_char(out, '"');
}

/* A name has no other escapes than those of its quotes. */
static int gitconfig_add_section(struct buf *out, const struct gitconfig_entry *e)
{
	int r = buf_printf(out, "[%s", e->section);

	if (r == 0 && e->name)
		r = buf_add_str(out, STR(" \""));
	for (const char *c = e->name; r == 0 && c && *c; c++)
		r = *c == '"' || *c == '\\' ? buf_printf(out, "\\%c", *c) : buf_add_char(out, *c);
	return r < 0 ? r : buf_add_str(out, e->name ? STR("\"]\n") : STR("]\n"));
}

int gitconfig_add(
	struct buf *out, const struct gitconfig_entry *e, const struct gitconfig_entry *before)
{
	int r = before && gitconfig_is_same_section(before, e) ? 0 : gitconfig_add_section(out, e);

	if (r == 0)
		r = buf_printf(out, "\t%s", e->key);
	if (r == 0 && e->value)
		r = buf_add_str(out, STR(" = "));
	if (r == 0 && e->value)
		r = gitconfig_quote(out, e->value);
	return r < 0 ? r : buf_add_char(out, '\n');
}
