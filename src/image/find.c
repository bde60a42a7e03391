/* SPDX-License-Identifier: Apache-2.0 */
#include "image/find.h"
#include "base/account.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ACCOUNTS = 1 << 20 };

void image_found_done(struct image_found *f)
{
	free(f->name);
	image_config_done(&f->config);
	*f = IMAGE_FOUND_NULL;
}

/* Return the entry of that name, or index->n if there is none. */
static size_t find_stored_name(
	const struct image_index *index, const struct image_ref *ref, bool *ret_many)
{
	size_t found = index->n;

	*ret_many = false;
	for (size_t i = 0; i < index->n; i++) {
		const char *name = index->entries[i].name;
		bool exact;

		if (!name || !image_ref_matches(ref, str_from(name), index->entries[i].hex, &exact))
			continue;
		if (exact) {
			*ret_many = false;
			return i;
		}
		if (found < index->n &&
			strcmp(index->entries[found].hex, index->entries[i].hex) != 0)
			*ret_many = true;
		found = i;
	}
	return found;
}

/* A manifest is as long as an image has layers. An index of an older build does not say the id. */
static int find_config(struct image_store *s, const struct image_entry *e, char ret[IMAGE_HEX + 1],
	struct cloche_err *err)
{
	struct image_manifest m;
	int r = e->config[0] ? 0 : image_store_manifest(s, e->hex, &m, err);

	if (r == 0)
		snprintf(ret, IMAGE_HEX + 1, "%s", e->config[0] ? e->config : m.config.hex);
	return r;
}

/* Find an image by the beginning of the manifest's digest, or of the id, which is the digest of the
 * configuration. Two that have the same one differ in how their layers are compressed. */
static size_t find_id(
	struct image_store *s, const struct image_index *index, struct str digits, bool *ret_many)
{
	char id[IMAGE_HEX + 1] = "", found_id[IMAGE_HEX + 1] = "";
	size_t found = index->n;

	for (size_t i = 0; i < index->n; i++) {
		struct str hex = str_from(index->entries[i].hex);

		if (find_config(s, &index->entries[i], id, NULL) < 0 ||
			!(str_starts(hex, digits) || str_starts(str_from(id), digits)))
			continue;
		if (found < index->n && strcmp(id, found_id) != 0)
			*ret_many = true;
		snprintf(found_id, sizeof(found_id), "%s", id);
		found = i;
	}
	return found;
}

int image_find(struct image_store *s, const struct image_index *index, struct str text,
	struct image_found *ret, struct cloche_err *err)
{
	_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
	struct image_ref ref;
	bool many = false;
	size_t at = index->n;
	int r = image_ref_parse(text, &ref, err);

	if (r < 0)
		return r;
	if (ref.name.n)
		at = find_stored_name(index, &ref, &many);
	if (at < index->n && set_string(&found.name, index->entries[at].name, err) < 0)
		return -err->code;
	if (at == index->n && (!ref.name.n || ref.maybe_id))
		at = find_id(s, index, ref.name.n ? ref.name : ref.digest, &many);
	if (many)
		return err_set(err, E_USAGE, "several images are called %.*s: name it in full",
			STR_FMT(text));
	if (at == index->n) {
		err_set(err, E_NOT_FOUND, "there is no image %.*s", STR_FMT(text));
		err_hint(err,
			"\"cloche image pull %.*s\" gets it, \"cloche image ls\" lists the images "
			"that are here",
			STR_FMT(text));
		return -E_NOT_FOUND;
	}
	snprintf(found.hex, sizeof(found.hex), "%s", index->entries[at].hex);
	r = find_config(s, &index->entries[at], found.id, err);
	if (r == 0)
		r = image_store_config(s, found.id, &found.config, err);
	if (r < 0)
		return err_wrap(err, r, "image %.*s", STR_FMT(text));
	*ret = found;
	found = IMAGE_FOUND_NULL;
	return 0;
}

/* Open a file in the image's /etc, as an overlay of the layers shows it, or return -1. */
static int open_in_etc(struct image_store *s, const struct image_config *c, const char *name)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW;
	char tree[IMAGE_HEX + 8];

	for (size_t i = c->layers_n; i-- > 0;) {
		_cleanup_fd_ int at = -1, etc = -1;
		struct stat st;

		snprintf(tree, sizeof(tree), "%s/" UNPACK_TREE, c->diff_ids[i]);
		at = openat(s->layers, tree, O_PATH | O_DIRECTORY | flags);
		etc = at < 0 ? -1 : openat(at, "etc", O_RDONLY | O_DIRECTORY | flags);
		if (etc < 0 && errno == ENOENT)
			continue;
		/* Anything else hides the directories of that name below. */
		if (etc < 0)
			return -1;
		if (fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return S_ISREG(st.st_mode)
				       ? openat(etc, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags)
				       : -1;
		if (fs_is_opaque(etc))
			return -1;
	}
	return -1;
}

static int read_accounts(struct image_store *s, const struct image_config *c, const char *file,
	struct buf *text, struct str name, struct str ret[ACCOUNT_FIELDS])
{
	_cleanup_fd_ int fd = open_in_etc(s, c, file);

	return fd >= 0 && fd_read_to_end(fd, text) == 0 && account_find(buf_str(text), name, ret)
		       ? 0
		       : -ENOENT;
}

static int not_there(struct str name, const char *file, struct cloche_err *err)
{
	return err_set(err, E_CONFIG, "the image is to run as \"%.*s\", who is not in its /etc/%s",
		STR_FMT(name), file);
}

static int find_user(struct image_store *s, const struct image_config *c, struct str name,
	struct image_user *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_ACCOUNTS);
	struct str fields[ACCOUNT_FIELDS];
	uint64_t id = 0, group = 0;

	/* A line without its numbers is none: the account must not become root's. */
	if (read_accounts(s, c, "passwd", &text, name, fields) < 0 ||
		parse_u64(fields[ACCOUNT_ID], UINT32_MAX - 1, &id) < 0 ||
		parse_u64(fields[ACCOUNT_GROUP], UINT32_MAX - 1, &group) < 0) {
		if (parse_u64(name, UINT32_MAX - 1, &id) < 0)
			return not_there(name, "passwd", err);
		ret->uid = (uint32_t)id;
		return 0;
	}
	ret->uid = (uint32_t)id;
	ret->gid = (uint32_t)group;
	return 0;
}

static int find_group(struct image_store *s, const struct image_config *c, struct str name,
	struct image_user *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_ACCOUNTS);
	struct str fields[ACCOUNT_FIELDS];
	uint64_t id;

	if (parse_u64(name, UINT32_MAX - 1, &id) < 0 &&
		(read_accounts(s, c, "group", &text, name, fields) < 0 ||
			parse_u64(fields[ACCOUNT_ID], UINT32_MAX - 1, &id) < 0))
		return not_there(name, "group", err);
	ret->gid = (uint32_t)id;
	return 0;
}

int image_find_user(struct image_store *s, const struct image_config *c, const char *text,
	struct image_user *ret, struct cloche_err *err)
{
	struct str user = str_from(text), name = str_prefix(user, str_chr(user, ':'));
	struct str group = str_from_index(user, name.n + 1);
	int r;

	*ret = (struct image_user){0};
	if (user.n == 0)
		return 0;
	/* ":group" alone is root with that group. */
	r = name.n ? find_user(s, c, name, ret, err) : 0;
	return r == 0 && group.n ? find_group(s, c, group, ret, err) : r;
}
