/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the host's accounts are not shown. A view of the host has those that its
 * programs ask for by name, and that of the room's user, so that the name and the home are found by
 * whoever looks for them. Its home is empty and vanishes with the room. */
#include "base/buf.h"
#include "room/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ACCOUNTS_MAX = 4096 };

struct account {
	const char *name;
	uint32_t id;
	const char *rest; /* passwd(5), after the group; NULL: group(5) */
};

static const struct account users[] = {{"root", 0, "root:/root"},
	{"daemon", 1, "daemon:/usr/sbin:/usr/sbin/nologin"},
	{"nobody", 65534, "nobody:/nonexistent:/usr/sbin/nologin"}};
static const struct account groups[] = {{"root", 0, NULL}, {"daemon", 1, NULL}, {"tty", 5, NULL},
	{"staff", 50, NULL}, {"users", 100, NULL}, {"nogroup", 65534, NULL}};

/* Return the name of the room's user; NULL if that is root, who has an account anyway. */
static const char *accounts_find_user(const struct room_spec *s, char buffer[ROOM_USER_MAX + 1])
{
	if (!s || s->uid == 0)
		return NULL;
	if (s->user)
		snprintf(buffer, ROOM_USER_MAX + 1, "%s", s->user);
	else
		snprintf(buffer, ROOM_USER_MAX + 1, "u%u", s->uid);
	return buffer;
}

/* The room's user comes in place of an account with the same name or number. */
static int accounts_add_users(
	struct buf *out, const struct room_spec *s, const char *user, const char *shell)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(users) && r == 0; i++) {
		const struct account *a = &users[i];

		if (!user || (a->id != s->uid && strcmp(a->name, user) != 0))
			r = buf_printf(out, "%s:x:%u:%u:%s%s%s\n", a->name, a->id, a->id, a->rest,
				a->id == 0 ? ":" : "", a->id == 0 ? shell : "");
	}
	if (r == 0 && user)
		r = buf_printf(out, "%s:x:%u:%u::/home/%s:%s\n", user, s->uid, s->gid, user, shell);
	return r;
}

static int accounts_add_groups(struct buf *out, const struct room_spec *s, const char *user)
{
	bool is_there = !user;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(groups) && r == 0; i++) {
		const struct account *a = &groups[i];

		is_there = is_there || a->id == s->gid;
		if (!user || a->id == s->gid || strcmp(a->name, user) != 0)
			r = buf_printf(out, "%s:x:%u:\n", a->name, a->id);
	}
	return r == 0 && !is_there ? buf_printf(out, "%s:x:%u:\n", user, s->gid) : r;
}

int accounts_make(int root, const struct room_spec *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf passwd = BUF_INIT(ACCOUNTS_MAX);
	_cleanup_(buf_donep) struct buf group = BUF_INIT(ACCOUNTS_MAX);
	bool bash = access("/usr/bin/bash", X_OK) == 0;
	char buffer[ROOM_USER_MAX + 1];
	const char *user = accounts_find_user(s, buffer);
	int r;

	if (accounts_add_users(&passwd, s, user, bash ? "/bin/bash" : "/bin/sh") < 0 ||
		accounts_add_groups(&group, s, user) < 0)
		return err_nomem(err);
	r = parts_file(root, "etc/passwd", buf_str(&passwd), err);
	return r < 0 ? r : parts_file(root, "etc/group", buf_str(&group), err);
}

int accounts_make_home(int root, const struct room_spec *s, struct cloche_err *err)
{
	char buffer[ROOM_USER_MAX + 1], path[sizeof("home/") + ROOM_USER_MAX];
	const char *user = accounts_find_user(s, buffer);
	int r;

	if (!user)
		return 0;
	snprintf(path, sizeof(path), "home/%s", user);
	r = parts_mkdir(root, path, 0700, err);
	if (r == 0 && fchownat(root, path, s->uid, s->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = err_sys(err, errno, "give /%s to its user", path);
	return r;
}
