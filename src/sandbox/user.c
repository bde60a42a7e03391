/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: in a view of the host, a name is looked up among the host's accounts, which
 * the room does not see, and the room gets an account of that name. An image is asked for its own.
 * Of a directory that is the root nothing is read here: it may hold anything. */
#include "base/parse.h"
#include "base/strv.h"
#include "sandbox/options.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A line of passwd(5) or group(5), which lists the members. */
enum { ACCOUNT_MAX = 4096, GROUP_MAX = 16384 };

/* Split "NAME|UID[:GROUP|GID]". Return false if a part is neither a name nor a number. */
static bool user_split(const char *text, struct str *ret_user, struct str *ret_group)
{
	struct str all = str_from(text);

	*ret_user = str_prefix(all, str_chr(all, ':'));
	*ret_group = str_from_index(all, ret_user->n + (ret_user->n < all.n));
	if (ret_user->n < all.n && !room_user_is_name(*ret_group))
		return false;
	return room_user_is_name(*ret_user);
}

int option_user(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	struct str parts[2];
	uint64_t id;

	if (!user_split(value, &parts[0], &parts[1]))
		return err_set(err, E_USAGE,
			"--user is NAME or UID, also with :GROUP or :GID, not \"%s\"", value);
	for (size_t i = 0; i < 2; i++)
		if (parts[i].n && str_is_all(parts[i], STR_DIGITS) &&
			parse_u64(parts[i], UINT32_MAX - 1, &id) < 0)
			return err_set(err, E_USAGE, "--user %s: %.*s is no number of a user",
				value, STR_FMT(parts[i]));
	return set_string(&sb->user, value, err);
}

/* Find an account of the host by its id (NULL: by name), and store its ids and its name. */
static bool user_find_account(const char *name, uid_t uid, struct sandbox_user *ret)
{
	struct passwd entry, *found = NULL;
	char text[ACCOUNT_MAX];
	int r = name ? getpwnam_r(name, &entry, text, sizeof(text), &found)
		     : getpwuid_r(uid, &entry, text, sizeof(text), &found);

	if (r != 0 || !found)
		return false;
	ret->uid = found->pw_uid;
	ret->gid = found->pw_gid;
	if (room_user_is_name(str_from(found->pw_name)))
		snprintf(ret->name, sizeof(ret->name), "%s", found->pw_name);
	return true;
}

static bool user_find_group(const char *name, struct sandbox_user *ret)
{
	struct group entry, *found = NULL;
	char text[GROUP_MAX];

	if (getgrnam_r(name, &entry, text, sizeof(text), &found) != 0 || !found)
		return false;
	ret->gid = found->gr_gid;
	return true;
}

static int user_unknown(const cloche_sandbox *sb, const char *what, struct cloche_err *err)
{
	err_set(err, E_USAGE, "--user %s: this machine has no such %s", sb->user, what);
	err_hint(err, "name a number, which needs no account");
	return -E_USAGE;
}

/* Of a view of the host, or of a directory, whose accounts have only root in common. */
static int user_find_asked(
	const cloche_sandbox *sb, struct sandbox_user *ret, struct cloche_err *err)
{
	bool host = sb->root == ROOM_ROOT_HOST;
	_cleanup_(freep) char *name = NULL, *group_name = NULL;
	struct str user, group;
	uint64_t id;

	if (!user_split(sb->user, &user, &group))
		return err_set(err, E_INTERNAL, "--user %s", sb->user);
	name = str_dup(user);
	group_name = str_dup(group);
	if (!name || !group_name)
		return err_nomem(err);
	if (parse_u64(user, UINT32_MAX - 1, &id) == 0) {
		if (!host || !user_find_account(NULL, (uid_t)id, ret))
			ret->gid = (uint32_t)id;
		ret->uid = (uint32_t)id;
	} else if (strcmp(name, "root") != 0 && !(host && user_find_account(name, 0, ret))) {
		return user_unknown(sb, "user", err);
	}
	if (group.n && parse_u64(group, UINT32_MAX - 1, &id) == 0)
		ret->gid = (uint32_t)id;
	else if (group.n && strcmp(group_name, "root") == 0)
		ret->gid = 0;
	else if (group.n && !(host && user_find_group(group_name, ret)))
		return user_unknown(sb, "group", err);
	return 0;
}

bool sandbox_names_user(const cloche_sandbox *sb)
{
	return sb->user || sb->image_uid || sb->image_gid;
}

int sandbox_find_user(const cloche_sandbox *sb, struct sandbox_user *ret, struct cloche_err *err)
{
	*ret = (struct sandbox_user){.own = !sandbox_names_user(sb)};
	if (sb->user && sb->root == ROOM_ROOT_IMAGE)
		return sandbox_find_image_user(sb, sb->user, &ret->uid, &ret->gid, err);
	if (sb->user)
		return user_find_asked(sb, ret, err);
	if (sb->root == ROOM_ROOT_IMAGE) {
		ret->uid = (uint32_t)sb->image_uid;
		ret->gid = (uint32_t)sb->image_gid;
	} else if (sb->root == ROOM_ROOT_HOST) {
		(void)user_find_account(NULL, geteuid(), ret);
		ret->uid = geteuid();
		ret->gid = getegid();
	}
	return 0;
}
