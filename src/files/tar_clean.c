/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-INSIDE-PATHS): an archive is read and written anew, entry by entry, and
 * only what tree_get() could have written passes. tree_get() walks a tree in the order of names, so
 * each entry sorts after the one before, and lies in the directory that was entered last or in one
 * above it. So nothing can come twice or lie behind a link, as a link is never entered. Paths are
 * names without "..", devices are refused, modes lose their set-id bits, and everything belongs to
 * user 0. A hard link leads to an earlier entry, and through no link in the archive. */
#include "files/tar_clean.h"
#include "base/strset.h"
#include "files/beneath.h"

#include <errno.h>

/* LINK_BYTES: what one takes besides its path, about. */
enum { MAX_LINKS_BYTES = 16 * 1024 * 1024, LINK_BYTES = 64 };

struct tar_clean {
	struct tar_reader *reader;
	tree_sink sink;
	void *user;
	char *root; /* "": contents */
	struct buf out, path, link, last;
	bool began, last_is_directory;
	uint64_t size; /* of the current entry's data */
	struct strset links;
	size_t links_bytes;
};

static int tar_clean_fail(struct files_error *e, struct str entry)
{
	return files_fail(e, EBADMSG, entry, "no archive of a tree has this entry here");
}

static int tar_clean_pass(struct tar_clean *c, struct files_error *e)
{
	int r = 0;

	while (r == 0 && buf_len(&c->out) > 0) {
		size_t n = MIN(buf_len(&c->out), (size_t)FILES_CHUNK);

		r = c->sink(c->user, buf_data(&c->out), n, e);
		buf_consume(&c->out, n);
	}
	return r;
}

static int tar_clean_path(struct str path, struct buf *ret)
{
	return path.n > 0 && path.p[0] == '/' ? -EXDEV : beneath_clean(path, ret);
}

/* Whether path lies below the root of the archive. */
static bool tar_clean_is_below(const struct tar_clean *c, struct str path)
{
	struct str root = str_from(c->root);

	return root.n == 0 || (str_starts(path, root) && path.n > root.n && path.p[root.n] == '/');
}

/* Whether path may come after the last one. */
static bool tar_clean_is_next(const struct tar_clean *c, struct str path)
{
	struct str last = buf_str(&c->last), was, is;

	if (!c->began)
		return str_eq(path, str_from(c->root));
	if (!tar_clean_is_below(c, path))
		return false;
	for (;;) {
		bool had = beneath_next(&last, &was);
		int order;

		if (!beneath_next(&path, &is))
			return false;
		if (!had)
			return c->last_is_directory && path.n == 0;
		order = str_compare(was, is);
		if (order != 0)
			return order < 0 && path.n == 0;
	}
}

static int tar_clean_remember(struct tar_clean *c)
{
	struct str path = buf_str(&c->path);

	c->links_bytes += LINK_BYTES + path.n;
	/* Beyond that, hard links are refused. */
	return c->links_bytes > MAX_LINKS_BYTES ? 0 : strset_add(&c->links, path);
}

/* Whether a hard link's target is allowed: neither it nor a directory on the way is a link that
 * came before. */
static bool tar_clean_is_there(const struct tar_clean *c)
{
	struct str path = buf_str(&c->link);

	if (c->links_bytes > MAX_LINKS_BYTES || path.n == 0 || !tar_clean_is_below(c, path))
		return false;
	for (size_t n = 1; n <= path.n; n++) {
		if (n < path.n && path.p[n] != '/')
			continue;
		if (strset_has(&c->links, str_prefix(path, n)))
			return false;
	}
	return true;
}

/* Write the path as tree_get() does: "a", "./a", ".". */
static int tar_clean_spell(const struct tar_clean *c, struct buf *path)
{
	_cleanup_(buf_donep) struct buf whole = BUF_INIT(TAR_MAX_NAME + 8);
	int r;

	if (c->root[0])
		return 0;
	r = buf_add_str(&whole, buf_len(path) ? STR("./") : STR("."));
	if (r == 0)
		r = buf_add_str(&whole, buf_str(path));
	if (r < 0)
		return r;
	buf_clear(path);
	return buf_add_str(path, buf_str(&whole));
}

static int tar_clean_write(
	struct tar_clean *c, const struct tar_entry *entry, struct files_error *e)
{
	struct tar_entry clean = *entry;
	int r;

	clean.mode &= entry->type == TAR_DIRECTORY ? 01777 : 0777;
	clean.uid = clean.gid = 0;
	buf_clear(&c->last);
	r = buf_add_str(&c->last, buf_str(&c->path));
	if (r == 0 && entry->type == TAR_SYMLINK)
		r = tar_clean_remember(c);
	if (r == 0)
		r = tar_clean_spell(c, &c->path);
	if (r == 0 && entry->type == TAR_HARDLINK)
		r = tar_clean_spell(c, &c->link);
	clean.path = buf_str(&c->path);
	if (entry->type == TAR_HARDLINK)
		clean.link = buf_str(&c->link);
	if (r == 0)
		r = tar_write_entry(&c->out, &clean);
	if (r < 0)
		return files_fail(e, r == -E2BIG ? ENAMETOOLONG : -r, entry->path, NULL);
	c->began = true;
	c->last_is_directory = entry->type == TAR_DIRECTORY;
	c->size = entry->size;
	return tar_clean_pass(c, e);
}

static int tar_clean_on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct tar_clean *c = user;
	int r = tar_clean_path(entry->path, &c->path);

	if (r == 0 && entry->type == TAR_HARDLINK)
		r = tar_clean_path(entry->link, &c->link);
	if (r < 0 && r != -EXDEV)
		return files_fail(e, -r, entry->path, NULL);
	if (r < 0 || !tar_clean_is_next(c, buf_str(&c->path)) ||
		(entry->type != TAR_DIRECTORY && buf_len(&c->path) == 0) ||
		(entry->type == TAR_HARDLINK && !tar_clean_is_there(c)) ||
		entry->type == TAR_CHAR_DEVICE || entry->type == TAR_BLOCK_DEVICE)
		return tar_clean_fail(e, entry->path);
	return tar_clean_write(c, entry, e);
}

static int tar_clean_on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct tar_clean *c = user;
	int r = 0;

	while (r == 0 && n > 0) {
		size_t some = MIN(n, (size_t)FILES_CHUNK);

		r = c->sink(c->user, p, some, e);
		p += some;
		n -= some;
	}
	return r;
}

static int tar_clean_on_end(void *user, struct files_error *e)
{
	struct tar_clean *c = user;

	if (tar_write_padding(&c->out, c->size) < 0)
		return files_fail(e, ENOMEM, STR_NULL, NULL);
	return tar_clean_pass(c, e);
}

struct tar_clean *tar_clean_new(struct str root, tree_sink sink, void *user)
{
	static const struct tar_reader_ops ops = {.entry = tar_clean_on_entry,
		.data = tar_clean_on_data,
		.entry_end = tar_clean_on_end};
	struct tar_clean *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->sink = sink;
	c->user = user;
	c->path = c->link = c->last = BUF_INIT(TAR_MAX_NAME + 8);
	c->out = BUF_INIT(4 * TAR_MAX_EXTENDED);
	c->root = str_dup(str_eq(root, STR(".")) ? STR("") : root);
	c->reader = tar_reader_new(&ops, c);
	return c->root && c->reader ? c : tar_clean_free(c);
}

struct tar_clean *tar_clean_free(struct tar_clean *c)
{
	if (!c)
		return NULL;
	strset_done(&c->links);
	tar_reader_free(c->reader);
	buf_done(&c->out);
	buf_done(&c->path);
	buf_done(&c->link);
	buf_done(&c->last);
	free(c->root);
	free(c);
	return NULL;
}

int tar_clean_feed(struct tar_clean *c, const char *p, size_t n, struct files_error *e)
{
	return tar_reader_feed(c->reader, p, n, e);
}

int tar_clean_finish(struct tar_clean *c, struct files_error *e)
{
	int r = tar_reader_finish(c->reader, e);

	if (r < 0)
		return r;
	if (tar_write_end(&c->out) < 0)
		return files_fail(e, ENOMEM, STR_NULL, NULL);
	return tar_clean_pass(c, e);
}
