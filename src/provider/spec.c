/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/spec.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "ipc/message.h"
#include "ipc/roomctl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

void room_spec_init(struct room_spec *s)
{
	*s = (struct room_spec){.ca_fd = -1, .root_fd = -1};
}

void room_spec_close(struct room_spec *s)
{
	for (size_t i = 0; i < s->mounts_n; i++)
		s->mounts[i].fd = fd_close(s->mounts[i].fd);
	s->root_fd = fd_close(s->root_fd);
}

void room_spec_done(struct room_spec *s)
{
	size_t i;

	room_spec_close(s);
	for (i = 0; i < s->mounts_n; i++) {
		free(s->mounts[i].source);
		free(s->mounts[i].target);
		free(s->mounts[i].also);
		free(s->mounts[i].text);
		free(s->mounts[i].own_hooks);
	}
	free(s->mounts);
	free(s->id);
	free(s->user);
	free(s->root_dir);
	free(s->image);
	strv_free(s->layers);
	strv_free(s->places);
	free(s->keep_dir);
	free(s->init_path);
	free(s->place);
	free(s->place_image);
	free(s->sync);
	free(s->host_home);
	strv_free(s->opened);
	room_spec_init(s);
}

/* Return whether path is absolute and has no component "." or "..". */
static bool is_plain_path(const char *path)
{
	struct str rest = str_from(path);

	if (!path || path[0] != '/')
		return false;
	while (rest.n) {
		struct str part = str_next(&rest, '/');

		if (str_eq(part, STR(".")) || str_eq(part, STR("..")))
			return false;
	}
	return true;
}

static int check_mount(const char *source, const char *target, struct cloche_err *err)
{
	if (!source || source[0] != '/')
		return err_set(err, E_USAGE, "mount %s: the source has to be an absolute path",
			source ? source : "");
	if (!is_plain_path(target) || target[strspn(target, "/")] == '\0')
		return err_set(err, E_USAGE,
			"mount %s: the place in the room has to be an absolute path other than / "
			"and without . and ..: %s",
			source, target ? target : "");
	if (fs_is_within(ROOMCTL_DIR, target) || fs_is_within(target, ROOMCTL_DIR))
		return err_set(err, E_USAGE,
			"mount %s: nothing can be mounted at %s, as each room has files of its own "
			"in " ROOMCTL_DIR,
			source, target);
	return 0;
}

/* Takes fd. */
static int add_mount(
	struct room_spec *s, int fd, const char *source, const char *target, struct cloche_err *err)
{
	struct room_mount m = {.fd = fd}, *grown = NULL;
	int r = check_mount(source, target, err);
	struct stat st;

	if (r == 0 && s->mounts_n >= ROOM_MAX_MOUNTS)
		r = err_set(err, E_LIMIT, "more than %d mounts", ROOM_MAX_MOUNTS);
	m.file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	if (r == 0) {
		grown = reallocarray(s->mounts, s->mounts_n + 1, sizeof(*grown));
		m.source = strdup(source);
		m.target = strdup(target);
		r = grown && m.source && m.target ? 0 : err_nomem(err);
	}
	if (grown)
		s->mounts = grown;
	if (r < 0) {
		fd_close(fd);
		free(m.source);
		free(m.target);
		return r;
	}
	s->mounts[s->mounts_n++] = m;
	return 0;
}

int room_spec_add_mount(struct room_spec *s, const char *source, const char *target, bool ro,
	struct cloche_err *err)
{
	int fd = source ? open(source, O_PATH | O_CLOEXEC) : -1;
	int r = add_mount(s, fd < 0 ? -errno : fd, source, target, err);

	if (r == 0)
		s->mounts[s->mounts_n - 1].ro = ro;
	return r;
}

int room_spec_add_opened(struct room_spec *s, int fd, const char *source, const char *target,
	bool ro, struct cloche_err *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (own < 0)
		return err_sys(err, errno, "mount %s", source);
	r = add_mount(s, own, source, target, err);
	if (r == 0)
		s->mounts[s->mounts_n - 1].ro = ro;
	return r;
}

int room_spec_add_guard(struct room_spec *s, size_t mount, const char *path, const struct stat *st,
	bool ro, struct cloche_err *err)
{
	_cleanup_(freep) char *source = fs_join(s->mounts[mount].source, path);
	_cleanup_(freep) char *target = fs_join(s->mounts[mount].target, path);
	struct room_mount *m;
	int r = source && target ? add_mount(s, -1, source, target, err) : err_nomem(err);

	if (r < 0)
		return r;
	m = &s->mounts[s->mounts_n - 1];
	m->guard = (uint32_t)mount + 1;
	m->device = st->st_dev;
	m->inode = st->st_ino;
	m->ro = ro;
	m->found = true;
	return 0;
}

const char *room_spec_guarded(const struct room_spec *s, const struct room_mount *guard)
{
	return fs_below(guard->source, s->mounts[guard->guard - 1].source);
}

char *room_spec_recorded(const struct room_spec *s, const char *path)
{
	for (size_t i = 0; i < s->mounts_n; i++) {
		const char *also = s->mounts[i].also, *rest = also ? fs_below(path, also) : NULL;

		if (rest)
			return rest[0] ? fs_join(s->mounts[i].target, rest)
				       : strdup(s->mounts[i].target);
	}
	return strdup(path);
}

static bool is_id(const char *z)
{
	size_t n = z ? strlen(z) : 0, i;

	if (n == 0 || n > ROOM_ID_MAX || !isalnum((unsigned char)z[0]))
		return false;
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)z[i]) && !strchr("-_", z[i]))
			return false;
	return true;
}

uint64_t room_limits_tmpfs(const struct room_limits *l)
{
	return l->tmpfs_bytes ? l->tmpfs_bytes : l->memory_bytes / 2;
}

static bool is_layer_name(const char *name)
{
	return strlen(name) == ROOM_LAYER_NAME && !name[strspn(name, "0123456789abcdef")];
}

/* Check the names from the image store, which become parts of paths and of options. */
static int check_layers(const struct room_spec *s, struct cloche_err *err)
{
	size_t n = strv_count(s->layers);

	if (n > ROOM_MAX_LAYERS || strv_count(s->places) > ROOM_MAX_PLACES)
		return err_set(err, E_LIMIT, "the image has too many layers or volumes");
	for (size_t i = 0; i < n; i++)
		if (!is_layer_name(s->layers[i]))
			return err_set(err, E_USAGE, "bad name of a layer");
	if (s->image && !is_layer_name(s->image))
		return err_set(err, E_USAGE, "bad id of an image");
	for (char *const *p = s->places; p && *p; p++)
		if (!is_plain_path(*p))
			return err_set(err, E_USAGE, "bad path of a volume: %s", *p);
	return 0;
}

static int check_guard(const struct room_spec *s, size_t i, struct cloche_err *err)
{
	const struct room_mount *m = &s->mounts[i];
	bool ok = m->guard <= i && !s->mounts[m->guard - 1].guard;
	const char *below = ok ? room_spec_guarded(s, m) : NULL;

	return below && below[0] ? 0
				 : err_set(err, E_USAGE, "%s guards no part of a mount", m->source);
}

static int check_whole_mount(const struct room_spec *s, size_t i, struct cloche_err *err)
{
	const struct room_mount *m = &s->mounts[i];
	int r = check_mount(m->source, m->target, err);

	if (r == 0 && m->guard)
		r = check_guard(s, i, err);
	return r == 0 && m->also ? check_mount(m->source, m->also, err) : r;
}

bool room_place_is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	return s.n > 0 && s.n <= ROOM_PLACE_MAX;
}

bool room_user_is_name(struct str s)
{
	return s.n > 0 && s.n <= ROOM_USER_MAX && !strchr("-.", s.p[0]) &&
	       str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "-_.");
}

static int check_user(const struct room_spec *s, struct cloche_err *err)
{
	if (s->uid == UINT32_MAX || s->gid == UINT32_MAX)
		return err_set(err, E_USAGE, "user or group is out of range");
	if (s->user && !room_user_is_name(str_from(s->user)))
		return err_set(err, E_USAGE, "bad name of a user");
	return 0;
}

static int check_place(const struct room_spec *s, struct cloche_err *err)
{
	if (s->place && !room_place_is_name(str_from(s->place)))
		return err_set(err, E_USAGE, "no place can have this name");
	if (s->place_image && !room_place_is_name(str_from(s->place_image)))
		return err_set(err, E_USAGE, "no image at another place can have this name");
	return 0;
}

int room_spec_check(const struct room_spec *s, struct cloche_err *err)
{
	size_t i;
	int r;

	if (!is_id(s->id))
		return err_set(err, E_USAGE, "bad room id");
	if ((unsigned)s->root >= ROOM_ROOT_END_ || (unsigned)s->net >= ROOM_NET_END_)
		return err_set(err, E_USAGE, "unknown kind of root or network");
	if (s->root != ROOM_ROOT_HOST && (!s->root_dir || s->root_dir[0] != '/'))
		return err_set(err, E_USAGE, "the root has to be an absolute path");
	r = check_layers(s, err);
	if (r == 0)
		r = check_user(s, err);
	if (r == 0)
		r = check_place(s, err);
	if (r < 0)
		return r;
	if (s->keep_dir && s->keep_dir[0] != '/')
		return err_set(err, E_USAGE, "the place of changes has to be an absolute path");
	if (!s->init_path || s->init_path[0] != '/')
		return err_set(err, E_USAGE, "the program to start has to be an absolute path");
	if (s->limits.memory_bytes && s->limits.tmpfs_bytes > s->limits.memory_bytes) {
		err_set(err, E_USAGE,
			"the tmpfs is larger than the memory, as part of which it counts");
		err_hint(err, "make --tmpfs-size smaller or --memory larger");
		return -E_USAGE;
	}
	if (s->mounts_n > ROOM_MAX_MOUNTS)
		return err_set(err, E_LIMIT, "more than %d mounts", ROOM_MAX_MOUNTS);
	for (i = 0; i < s->mounts_n; i++) {
		r = check_whole_mount(s, i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- as part of a message --- */

enum { MAX_PATH = 4095 };

#define MOUNT_FIELDS(F)                                                                            \
	F(Z, source, .max = MAX_PATH)                                                              \
	F(Z, target, .max = MAX_PATH)                                                              \
	F(OPTIONAL, also, .max = MAX_PATH)                                                         \
	F(BOOL, ro)                                                                                \
	F(BOOL, file)                                                                              \
	F(BOOL, found)                                                                             \
	F(U32, guard)                                                                              \
	F(U64, device)                                                                             \
	F(U64, inode)                                                                              \
	F(BOOL, closed)                                                                            \
	F(BOOL, unobeyed)                                                                          \
	F(BOOL, hooks)                                                                             \
	F(BOOL, config)                                                                            \
	F(BOOL, hidden)

static MESSAGE_TABLE(room_mount, MOUNT_FIELDS, NULL);

static const struct message *room_limits_message(void)
{
	typedef struct room_limits self;
	static const struct field fields[] = {
#define OPTION(member, type, ...)
#define LIMIT(member, word, ...) MESSAGE_ROW_U64(member)
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
		MESSAGE_ROW_BOOL(best_effort) MESSAGE_ROW_BOOL(memory_optional)
			MESSAGE_ROW_BOOL(cpus_optional)};
	static const struct message table = {
		"room_limits", fields, ARRAY_SIZE(fields), sizeof(self), NULL};

	return &table;
}

#define SPEC_FIELDS(F)                                                                             \
	F(OPTIONAL, id, .max = ROOM_ID_MAX)                                                        \
	F(ENUM, root, room_root, ROOM_ROOT_END_)                                                   \
	F(OPTIONAL, root_dir, .max = MAX_PATH)                                                     \
	F(STRV, layers, .max = ROOM_LAYER_NAME, .max_n = ROOM_MAX_LAYERS)                          \
	F(OPTIONAL, image, .max = ROOM_LAYER_NAME)                                                 \
	F(STRV, places, .max = MAX_PATH, .max_n = ROOM_MAX_PLACES)                                 \
	F(BOOL, overlay)                                                                           \
	F(OPTIONAL, keep_dir, .max = MAX_PATH)                                                     \
	F(PARTS, mounts, room_mount, ROOM_MAX_MOUNTS)                                              \
	F(PART, limits, room_limits)                                                               \
	F(ENUM, net, room_net, ROOM_NET_END_)                                                      \
	F(BOOL, nested)                                                                            \
	F(BOOL, masked)                                                                            \
	F(BOOL, keeps_home)                                                                        \
	F(U32, uid, .max = UINT32_MAX - 1)                                                         \
	F(U32, gid, .max = UINT32_MAX - 1)                                                         \
	F(OPTIONAL, user, .max = ROOM_USER_MAX)                                                    \
	F(BOOL, own_user)                                                                          \
	F(OPTIONAL, init_path, .max = MAX_PATH)                                                    \
	F(OPTIONAL, place, .max = ROOM_PLACE_MAX)                                                  \
	F(OPTIONAL, place_image, .max = ROOM_PLACE_MAX)                                            \
	F(OPTIONAL, sync, .max = ROOM_SYNC_MAX)                                                    \
	F(U64, far_usec)                                                                           \
	F(OPTIONAL, host_home, .max = MAX_PATH)                                                    \
	F(STRV, opened, .max = MAX_PATH, .max_n = ROOM_MAX_OPENED)

static MESSAGE_TABLE(room_spec, SPEC_FIELDS, NULL);

void room_spec_put(struct wire_out *w, const struct room_spec *s)
{
	message_put(w, room_spec_message(), s);
}

bool room_spec_get(struct wire_in *r, struct room_spec *ret)
{
	bool ok = message_take(r, room_spec_message(), ret);

	ret->ca_fd = ret->root_fd = -1;
	for (size_t i = 0; i < ret->mounts_n; i++)
		ret->mounts[i].fd = -1;
	return ok;
}
