/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: variables are compared by name, as lists of values, because git has several
 * values of some. What the room removed is not removed on the host; it added whatever it has and
 * had not before. Of that, only the rows below are taken over, with values of a known form. Nothing
 * that leads the person's next fetch or push elsewhere is changed: what a remote or a branch has
 * already stays, and a new remote is told. */
#include "base/macro.h"
#include "workspace/carry.h"
#include "workspace/gitconfig.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_SAID = 8, MAX_NAME = 100, MAX_VALUE = 1000, MAX_ADDED = 200 };

struct judged {
	const struct gitconfig_list *before, *room, *now;
	const char *hooks_dir;
	struct buf *add, *said, *refused;
	const struct gitconfig_entry *last;
	unsigned added, said_n, refused_n;
	int error;
};

/* Where an entry may be taken over. */
enum scope {
	FREE,       /* always */
	NEW,        /* if the host has no value yet */
	NEW_REMOTE, /* if the host has nothing about this remote */
};

static bool is_text(const char *value)
{
	for (; *value; value++)
		if (((unsigned char)*value < ' ' || *value == 0x7f) && *value != '\t' &&
			*value != '\n')
			return false;
	return true;
}

/* A person's name or address, which everybody will see. */
static bool is_line(const char *value)
{
	return value[0] && is_text(value) && !strpbrk(value, "\n\t");
}

static bool is_word(const char *value)
{
	size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n && !value[n];
}

/* Letters of names of branches and remotes, without those that mean something to a shell, to git
 * or to a terminal. */
static bool is_name(const char *value, const char *also)
{
	if (value[0] == '-' || value[0] == '.' || value[0] == '/' || strlen(value) > MAX_NAME)
		return false;
	for (const char *c = value; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(also, *c))
			return false;
	return value[0] && !strstr(value, "..");
}

static bool is_remote(const char *value)
{
	return is_name(value, "._-");
}

static bool is_branch(const char *value)
{
	return is_name(value, "._-/+#@");
}

static bool is_ref(const char *value)
{
	static const char heads[] = "refs/heads/";

	return strncmp(value, heads, sizeof(heads) - 1) == 0 &&
	       is_branch(value + sizeof(heads) - 1);
}

/* An address on another machine, by a protocol that runs nothing and is private. */
static bool is_url(const char *value)
{
	static const char *const schemes[] = {"https://", "ssh://", "git+ssh://"};
	const char *rest = NULL, *at, *host;

	if (strlen(value) > MAX_VALUE)
		return false;
	for (const char *c = value; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-/:@~+%[]=,", *c))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strncmp(value, schemes[i], strlen(schemes[i])) == 0)
			rest = value + strlen(schemes[i]);
	/* [USER@]HOST:PATH, with no slash before the colon. */
	if (!rest && strchr(value, ':') && !memchr(value, '/', strcspn(value, ":")) &&
		!strstr(value, "://") && strchr(value, ':')[1] != '-')
		rest = value;
	if (!rest || !gitconfig_is_harmless_url(value))
		return false;
	at = memchr(rest, '@', strcspn(rest, "/"));
	host = at ? at + 1 : rest;
	return rest[0] != '-' && (isalnum((unsigned char)host[0]) || host[0] == '[') &&
	       !strstr(rest, "..");
}

/* What a remote's branches become here: nothing but its own names. */
static bool is_refspec(const struct gitconfig_entry *e)
{
	const char *from = e->value + (e->value[0] == '+'), *to = strchr(from, ':');
	char own[32 + MAX_NAME];
	size_t n;

	n = (size_t)snprintf(own, sizeof(own), "refs/remotes/%s/", e->name);
	return to && strncmp(from, "refs/heads/", 11) == 0 && strncmp(to + 1, own, n) == 0 &&
	       ((strncmp(from + 11, "*:", 2) == 0 && strcmp(to + 1 + n, "*") == 0) ||
		       (is_branch(to + 1 + n) &&
			       strncmp(from + 11, to + 1 + n, (size_t)(to - from - 11)) == 0 &&
			       strlen(to + 1 + n) == (size_t)(to - from - 11)));
}

static bool is_flag(const char *value)
{
	return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

/* With 0, git would not know the extensions that the repository has. */
static bool is_version(const char *value)
{
	return strcmp(value, "1") == 0;
}

static bool is_on(const char *value)
{
	return strcmp(value, "true") == 0;
}

static const struct row {
	const char *section, *key;
	bool (*name)(const char *name); /* NULL: there must be none */
	bool (*value)(const char *value);
	enum scope scope;
	bool say;
} rows[] = {
	{"branch", "description", is_branch, is_text, FREE, false},
	{"branch", "gh-merge-base", is_branch, is_branch, FREE, false},
	{"branch", "merge", is_branch, is_ref, NEW, false},
	{"branch", "rebase", is_branch, is_word, FREE, false},
	{"branch", "remote", is_branch, is_text, NEW, false}, /* and see judged_allows() */
	{"branch", "vscode-merge-base", is_branch, is_branch, FREE, false},
	{"core", "repositoryformatversion", NULL, is_version, FREE, false},
	{"core", "sparsecheckout", NULL, is_flag, FREE, false},
	{"core", "sparsecheckoutcone", NULL, is_flag, FREE, false},
	{"extensions", "worktreeconfig", NULL, is_on, FREE, true},
	{"remote", "fetch", is_remote, is_text, FREE, false}, /* likewise */
	{"remote", "pushurl", is_remote, is_url, NEW_REMOTE, true},
	{"remote", "url", is_remote, is_url, NEW_REMOTE, true},
	{"submodule", "active", is_branch, is_flag, NEW, false},
	{"submodule", "url", is_branch, is_url, NEW, true},
	{"user", "email", NULL, is_line, FREE, true},
	{"user", "name", NULL, is_line, FREE, true},
};

static bool list_has_value(const struct gitconfig_list *l, const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct gitconfig_entry *o = &l->entries[i];

		if (gitconfig_is_same(o, e) && !o->value == !e->value &&
			(!e->value || strcmp(o->value, e->value) == 0))
			return true;
	}
	return false;
}

static bool list_has(const struct gitconfig_list *l, const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (gitconfig_is_same(&l->entries[i], e))
			return true;
	return false;
}

static bool list_has_remote(const struct gitconfig_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->entries[i].section, "remote") == 0 && l->entries[i].name &&
			strcmp(l->entries[i].name, name) == 0)
			return true;
	return false;
}

static const struct row *row_find(const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].section, e->section) == 0 && strcmp(rows[i].key, e->key) == 0)
			return &rows[i];
	return NULL;
}

/* Whether a remote is new, and its addresses will be taken over. */
static bool judged_takes_remote(const struct judged *j, const char *name)
{
	bool found = false;

	if (!is_remote(name) || list_has_remote(j->now, name) || list_has_remote(j->before, name))
		return false;
	for (size_t i = 0; i < j->room->n; i++) {
		const struct gitconfig_entry *o = &j->room->entries[i];

		if (strcmp(o->section, "remote") != 0 || !o->name || strcmp(o->name, name) != 0)
			continue;
		if (strcmp(o->key, "url") == 0 && o->value && is_url(o->value))
			found = true;
		/* A remote is taken as it is, or not at all. */
		else if (!row_find(o) || !o->value || !row_find(o)->value(o->value))
			return false;
	}
	return found;
}

static bool judged_allows(
	const struct judged *j, const struct row *row, const struct gitconfig_entry *e)
{
	if (!e->value || strlen(e->value) > MAX_VALUE || !row->value(e->value) ||
		!e->name != !row->name || (e->name && !row->name(e->name)))
		return false;
	if (row->scope == NEW && (list_has(j->now, e) || list_has(j->before, e)))
		return false;
	if (strcmp(e->section, "remote") == 0 && strcmp(e->key, "fetch") == 0)
		return is_refspec(e) &&
		       (list_has_remote(j->now, e->name) || judged_takes_remote(j, e->name));
	if (strcmp(e->section, "branch") == 0 && strcmp(e->key, "remote") == 0)
		return strcmp(e->value, ".") == 0 ||
		       (is_remote(e->value) && (list_has_remote(j->now, e->value) ||
						       judged_takes_remote(j, e->value)));
	return row->scope != NEW_REMOTE || judged_takes_remote(j, e->name);
}

/* Adds a variable to the words of *to. What it is called may be the room's. */
static void judged_say(struct judged *j, struct buf *to, unsigned *n,
	const struct gitconfig_entry *e, bool with_value)
{
	const char *name = e->name && is_branch(e->name) ? e->name : e->name ? "*" : NULL;
	int r = 0;

	if (++*n > MAX_SAID)
		return;
	r = buf_printf(to, "%s%s%s%s.%s", *n > 1 ? ", " : "", e->section, name ? "." : "",
		name ? name : "", e->key);
	if (r == 0 && with_value)
		r = buf_printf(to, " (%s)", e->value);
	j->error = MIN(j->error, r);
}

static void judged_more(struct judged *j, struct buf *to, unsigned n)
{
	if (n > MAX_SAID)
		j->error = MIN(j->error, buf_printf(to, " and %u more", n - MAX_SAID));
}

/* Whether this is what the room's git was given in place of the host's (struct carry_ours). */
static bool judged_is_ours(const struct judged *j, const struct gitconfig_entry *e)
{
	if (strcmp(e->section, "gc") == 0 && !e->name && e->value &&
		(strncmp(e->key, "reflogexpire", strlen("reflogexpire")) == 0 ||
			strcmp(e->key, "worktreepruneexpire") == 0))
		return strcmp(e->value, "never") == 0;
	return strcmp(e->section, "core") == 0 && !e->name && strcmp(e->key, "hookspath") == 0 &&
	       e->value && strncmp(e->value, j->hooks_dir, strlen(j->hooks_dir)) == 0;
}

static void judged_entry(struct judged *j, const struct gitconfig_entry *e)
{
	const struct row *row = row_find(e);
	bool url = row && row->value == is_url;

	if (judged_is_ours(j, e) || list_has_value(j->before, e) || list_has_value(j->now, e))
		return;
	if (!row || j->added == MAX_ADDED || !judged_allows(j, row, e)) {
		judged_say(j, j->refused, &j->refused_n, e, false);
		return;
	}
	j->added++;
	j->error = MIN(j->error, gitconfig_add(j->add, e, j->last));
	j->last = e;
	if (row->say)
		judged_say(j, j->said, &j->said_n, e, url);
}

/* What of a remote was removed, or moved to another name. */
static void judged_removed(struct judged *j)
{
	for (size_t i = 0; i < j->before->n; i++) {
		const struct gitconfig_entry *e = &j->before->entries[i];

		if (strcmp(e->section, "branch") != 0 && !list_has(j->room, e))
			judged_say(j, j->refused, &j->refused_n, e, false);
	}
}

int carry_judge(struct str before, struct str room, struct str now, const char *hooks_dir,
	struct buf *add, struct buf *said, struct buf *refused)
{
	struct gitconfig_list b, r, n;
	struct judged j = {&b, &r, &n, hooks_dir, add, said, refused, .error = 0};
	int e = gitconfig_read(before, &b), f = gitconfig_read(room, &r),
	    g = gitconfig_read(now, &n);

	if (e == -ENOMEM || f == -ENOMEM || g == -ENOMEM)
		j.error = -ENOMEM;
	else if (g < 0)
		j.error = -ESTALE;
	else if (e < 0 || f < 0)
		j.error = -EINVAL;
	for (size_t i = 0; j.error == 0 && i < r.n; i++)
		judged_entry(&j, &r.entries[i]);
	if (j.error == 0)
		judged_removed(&j);
	if (j.error == 0) {
		judged_more(&j, said, j.said_n);
		judged_more(&j, refused, j.refused_n);
	}
	gitconfig_list_done(&b);
	gitconfig_list_done(&r);
	gitconfig_list_done(&n);
	return j.error == 0 || j.error == -EINVAL || j.error == -ESTALE ? j.error : -ENOMEM;
}
