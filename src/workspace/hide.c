/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: names decide, and for names that often hold no secret (.npmrc, *.pem) also
 * what is in the file. What a project has committed, such as a .env of defaults, has to be inside
 * what it is, or git inside would take it for changed. But a room may have written the index. So a
 * file counts as committed only if the index has the hash of its contents as they are now: only who
 * knows them can have put that there. */
#include "workspace/hide.h"
#include "base/fd.h"
#include "base/sha1.h"
#include "fs/fs.h"
#include "policy/glob.h"
#include "workspace/gitindex.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const hide_keys[] = {"PRIVATE KEY-----", NULL};
static const char *const hide_npm[] = {"_authToken", "_auth", "_password", NULL};
static const char *const hide_json[] = {"private_key", "_secret", "_token", NULL};

/* The last row that matches holds. */
static const struct hide_row {
	struct str glob; /* for a name */
	bool shows;
	const char *const *holds; /* only if one of these is in it; NULL: in any case */
} hide_rows[] = {
	{STR(".env"), false, NULL},
	{STR(".env.*"), false, NULL},
	{STR(".env.example"), true, NULL},
	{STR(".env.sample"), true, NULL},
	{STR(".env.template"), true, NULL},
	{STR(".env.dist"), true, NULL},
	{STR(".npmrc"), false, hide_npm},
	{STR(".pypirc"), false, NULL},
	{STR(".netrc"), false, NULL},
	{STR("_netrc"), false, NULL},
	{STR(".git-credentials"), false, NULL},
	{STR("id_rsa"), false, NULL},
	{STR("id_dsa"), false, NULL},
	{STR("id_ecdsa"), false, NULL},
	{STR("id_ed25519"), false, NULL},
	{STR("*.pem"), false, hide_keys},
	{STR("*.key"), false, hide_keys},
	{STR("*.p12"), false, NULL},
	{STR("*.pfx"), false, NULL},
	{STR("credentials.json"), false, hide_json},
	{STR("service-account*.json"), false, hide_json},
	{STR("terraform.tfvars"), false, NULL},
	{STR("*.auto.tfvars"), false, NULL},
};

bool hide_rule_shows(struct str rule)
{
	return str_eq(rule, STR("none")) || str_starts(rule, STR("!"));
}

bool hide_rule_is_good(struct str rule)
{
	struct str rest;

	if (str_starts(rule, STR("!")))
		rule = str_from_index(rule, 1);
	if (rule.n == 0 || rule.n > HIDE_MAX_RULE || strchr("!/", rule.p[0]) ||
		rule.p[rule.n - 1] == '/')
		return false;
	/* Of a path that is found, no part is one of these. */
	for (rest = rule; rest.n;) {
		struct str part = str_next(&rest, '/');

		if (part.n == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
			return false;
	}
	return true;
}

/* Whether a byte of a glob (its first or its last) stands for itself and is not that of the text.
 * Nearly all names are told apart by that, without matching them. */
static bool hide_differs(char glob, char text)
{
	return glob != text && !strchr("*?[]", glob);
}

static bool hide_matches_one(struct str glob, struct str text)
{
	return text.n > 0 && !hide_differs(glob.p[0], text.p[0]) &&
	       !hide_differs(glob.p[glob.n - 1], text.p[text.n - 1]) && glob_match(glob, text);
}

/* Whether a file is what the glob is for, or lies in a directory that is. */
static bool hide_matches(struct str glob, struct str path)
{
	bool from_top = str_chr(glob, '/') < glob.n;

	for (struct str rest = path, name; rest.n;) {
		name = str_next(&rest, '/');
		if (hide_matches_one(glob,
			    from_top ? str_make(path.p, (size_t)(name.p + name.n - path.p)) : name))
			return true;
	}
	return false;
}

/* Read a file that a room may have written; false if it is no regular file, or too large. */
static bool hide_read(int dir, const char *name, struct buf *ret)
{
	_cleanup_fd_ int fd = fs_open_beneath(dir, name, O_RDONLY);
	struct stat st;
	char piece[8192];
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_add(ret, piece, (size_t)n) < 0)
			return false;
	return n == 0;
}

/* What cannot be read is taken for a secret. */
static bool hide_holds(const char *const *words, int dir, const char *name)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(HIDE_MAX_FILE);

	if (!words || !hide_read(dir, name, &text))
		return true;
	for (; buf_len(&text) && *words; words++)
		if (memmem(buf_data(&text), buf_len(&text), *words, strlen(*words)))
			return true;
	return false;
}

/* Return the row for a name, or NULL. */
static const struct hide_row *hide_find(struct str base)
{
	const struct hide_row *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(hide_rows); i++)
		if (hide_matches_one(hide_rows[i].glob, base))
			found = &hide_rows[i];
	return found;
}

bool hide_may_concern(const struct hide *h, const char *name)
{
	return (h->rules && *h->rules) || hide_find(str_from(name));
}

static bool hide_by_default(struct str base, int dir, const char *name)
{
	const struct hide_row *row = hide_find(base);

	return row && !row->shows && hide_holds(row->holds, dir, name);
}

/* The index of a worktree or a submodule lies where its file .git says. Whoever wrote that can at
 * most name another index. */
static bool hide_read_index_elsewhere(int top, struct buf *ret)
{
	_cleanup_(buf_donep) struct buf file = BUF_INIT(PATH_MAX);
	_cleanup_(freep) char *to = NULL, *joined = NULL, *index = NULL, *path = NULL;
	struct str text;
	char dir[PATH_MAX];

	if (!hide_read(top, ".git", &file) || !str_starts(buf_str(&file), STR("gitdir: ")) ||
		fd_path(top, dir) < 0)
		return false;
	text = str_from_index(buf_str(&file), strlen("gitdir: "));
	to = str_dup(str_prefix(text, str_chr(text, '\n')));
	joined = to ? fs_join(dir, to) : NULL;
	index = joined ? fs_join(joined, "index") : NULL;
	path = index ? fs_lexical(index) : NULL;
	return path && hide_read(AT_FDCWD, path, ret);
}

/* Whether git has the contents that the file has now. */
static bool hide_is_in_git(struct hide *h, struct str path, int dir, const char *name)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(HIDE_MAX_FILE),
					whole = BUF_INIT(HIDE_MAX_FILE + 32);
	struct gitindex_entry e;
	struct gitindex x;
	uint8_t id[SHA1_BYTES];

	if (!h->read_index)
		h->has_index = hide_read(h->top, ".git/index", &h->index) ||
			       hide_read_index_elsewhere(h->top, &h->index);
	h->read_index = true;
	if (!h->has_index || !gitindex_begin(&x, buf_str(&h->index)) ||
		!hide_read(dir, name, &text) ||
		buf_printf(&whole, "blob %zu", buf_len(&text)) < 0 || buf_add_char(&whole, 0) < 0 ||
		buf_add_str(&whole, buf_str(&text)) < 0)
		return false;
	sha1_text(buf_str(&whole), id);
	for (uint32_t n = 0; n < x.entries && gitindex_next(&x, &e); n++)
		if (str_eq(e.name, path))
			return str_eq(e.id, str_make((const char *)id, sizeof(id)));
	return false;
}

enum hidden hide_judge(struct hide *h, const char *path, int dir, const char *name)
{
	struct str whole = str_from(path), base = str_from(name);
	bool by_default = hide_by_default(base, dir, name), by_rule = false;

	for (char *const *rule = h->rules; rule && *rule; rule++) {
		struct str r = str_from(*rule);
		bool shows = hide_rule_shows(r), all = shows && r.p[0] != '!';

		if (!all && !hide_matches(shows ? str_from_index(r, 1) : r, whole))
			continue;
		by_rule = !shows;
		by_default = by_default && !shows;
	}
	if (by_rule)
		return HIDDEN_BY_RULE;
	return by_default && !hide_is_in_git(h, whole, dir, name) ? HIDDEN_BY_DEFAULT : HIDDEN_NOT;
}

void hide_done(struct hide *h)
{
	buf_done(&h->index);
}
