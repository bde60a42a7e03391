/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: near describes the room as for its own machine. Whatever names a place of
 * that machine is replaced here: a mount is a new directory of ours, which the person's files are
 * copied into before the room is made. Where no namespaces can be made, the room is the container
 * that it stands in (inplace.c). */
#include "base/fd.h"
#include "base/program.h"
#include "farside/fardir.h"
#include "farside/hold.h"
#include "farside/limits.h"
#include "fs/fs.h"
#include "provider/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Have the mount's copies, which are to lie at path, found by its own paths. Change path and the
 * mount's descriptor if they lie at one of these instead. */
static int make_stand(
	struct hold *h, struct room_mount *m, char path[PATH_MAX], struct cloche_err *err)
{
	const char *const wanted[] = {m->target, m->also};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		int dir = -1, r = 0;

		if (wanted[i])
			r = stand_take(h, wanted[i], path, m->file ? NULL : &dir, err);

		if (r < 0)
			return r;
		if (dir < 0)
			continue;
		fd_close(m->fd);
		m->fd = dir;
		if (fd_path(dir, path) < 0)
			return err_sys(err, errno, "find %s", wanted[i]);
	}
	return 0;
}

/* What the program of mount i is called, if it is one that is kept. */
static struct str make_kept(const struct hold *h, size_t i)
{
	struct str rest = str_from(h->kept), name = str_next(&rest, '\n');

	while (i--)
		name = str_next(&rest, '\n');
	/* A room that is its container could write to the file. */
	return h->in_place ? STR("") : name;
}

static void make_place_name(size_t i, char ret[32])
{
	snprintf(ret, 32, "mount-%zu", i);
}

int make_open_place(const struct hold *h, size_t i)
{
	const struct room_mount *m = &h->spec.mounts[i];
	char name[32];
	int fd;

	make_place_name(i, name);
	/* In place of a directory of a file's own, the file is what is mounted. */
	fd = m->file ? openat(h->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		     : fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* A program that writes a new file and renames it would take the name of a link to the copy, and
 * the copy would stay as it was. In a room of its own that fails, as what is mounted is busy. */
static int make_check_file(const struct hold *h, const struct room_mount *m, struct cloche_err *err)
{
	if (!h->in_place || !m->file || m->ro)
		return 0;
	err_set(err, E_UNSUPPORTED,
		"a room that is the container cannot show %s, which is a file, to be written",
		m->target);
	err_hint(err, "mount it read-only (\":ro\"), or mount the directory that it is in");
	return -E_UNSUPPORTED;
}

/* Make the place of mount i and open it. */
static int make_place(struct hold *h, size_t i, struct cloche_err *err)
{
	struct room_mount *m = &h->spec.mounts[i];
	char name[32], path[PATH_MAX];
	size_t n;

	if (make_check_file(h, m, err) < 0)
		return -err->code;
	make_place_name(i, name);
	if (mkdirat(h->dir, name, 0700) < 0)
		return err_sys(err, errno, "make a directory for %s", m->target);
	m->fd = openat(h->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m->fd < 0 || fd_path(m->fd, path) < 0)
		return err_sys(err, errno, "open the directory for %s", m->target);
	n = strlen(path);
	if (m->file &&
		snprintf(path + n, sizeof(path) - n, "/" FAR_FILE) >= (int)(sizeof(path) - n))
		return err_sys(err, ENAMETOOLONG, "find a place for %s", m->target);
	if (h->in_place && make_stand(h, m, path, err) < 0)
		return -err->code;
	if (m->file)
		fardir_take_kept(make_kept(h, i), m->fd, FAR_FILE);
	free(m->source);
	m->source = strdup(path);
	return m->source ? 0 : err_nomem(err);
}

/* Drop what protects files of a person's machine: here are copies. */
static void make_drop_guards(struct room_spec *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->mounts_n; i++) {
		struct room_mount *m = &s->mounts[i];

		if (!m->guard) {
			s->mounts[n++] = *m;
			continue;
		}
		free(m->source);
		free(m->target);
		free(m->also);
	}
	s->mounts_n = n;
}

static bool make_lies_in(const char *path, const struct room_mount *m)
{
	return fs_is_within(path, m->target) || (m->also && fs_is_within(path, m->also));
}

/* Refuse one mount in another: the link to its copies would be a file of the outer one's. */
static int make_check_apart(const struct room_spec *s, struct cloche_err *err)
{
	for (size_t i = 0; i < s->mounts_n; i++)
		for (size_t k = 0; k < s->mounts_n; k++) {
			if (i == k || !make_lies_in(s->mounts[i].target, &s->mounts[k]))
				continue;
			err_set(err, E_UNSUPPORTED,
				"a room that is the container cannot show the mount %s in the "
				"mount %s",
				s->mounts[i].target, s->mounts[k].target);
			err_hint(err, "mount it somewhere else, as below /tmp");
			return -E_UNSUPPORTED;
		}
	return 0;
}

static int make_check(const struct room_spec *s, struct cloche_err *err)
{
	if (s->root != ROOM_ROOT_HOST)
		return err_set(err, E_UNSUPPORTED,
			"a room on another machine has that machine's system directories as its "
			"root: leave --root out");
	if (s->net == ROOM_NET_HOST)
		return err_set(err, E_UNSUPPORTED, "--net host needs --provider subprocess");
	return 0;
}

/* What is of near's machine alone. */
static void make_forget(struct room_spec *s)
{
	free(s->keep_dir);
	s->keep_dir = NULL;
	free(s->init_path);
	s->init_path = NULL;
	free(s->host_home);
	s->host_home = NULL;
	s->overlay = false;
	s->ca_fd = -1;
}

int make_prepare(struct hold *h, struct str payload, struct cloche_err *err)
{
	struct far_room_spec m;
	struct wire_in r;
	const char *home = getenv("HOME");
	char self[PATH_MAX] = "";
	int e;

	if (h->has_spec || !message_get(payload, far_room_spec_message(), &m))
		return err_set(err, E_PROTOCOL, "malformed description of a room");
	r = wire_in(m.spec);
	h->has_spec = true;
	if (!room_spec_get(&r, &h->spec) || !wire_ok(&r))
		return err_set(err, E_PROTOCOL, "malformed description of a room");
	h->pem = str_dup(m.pem);
	h->kept = str_dup(m.kept);
	h->patience_usec = m.patience_usec;
	make_forget(&h->spec);
	make_drop_guards(&h->spec);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return err_sys(err, errno, "find our own program");
	h->spec.init_path = strdup(self);
	h->spec.host_home = strdup(home ? home : "/");
	if (!h->pem || !h->kept || !h->spec.init_path || !h->spec.host_home)
		return err_nomem(err);
	e = make_check(&h->spec, err);
	if (e == 0)
		e = inplace_choose(h, err);
	if (e == 0 && h->in_place)
		e = make_check_apart(&h->spec, err);
	for (size_t i = 0; i < h->spec.mounts_n && e == 0; i++)
		e = make_place(h, i, err);
	return e;
}

/* From here on, mount the file that was copied in place of its directory. With --sync none, nothing
 * was copied, and it is empty. */
static int make_open_file(struct hold *h, size_t i, struct cloche_err *err)
{
	struct room_mount *m = &h->spec.mounts[i];
	int fd;

	fardir_put_kept(make_kept(h, i), m->fd, FAR_FILE);
	fd = openat(m->fd, FAR_FILE, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "open the copy for %s", m->target);
	fd_close(m->fd);
	m->fd = fd;
	return 0;
}

/* Put the certificates into a file that the room's maker reads to its end. */
static int make_ca(struct hold *h, struct cloche_err *err)
{
	_cleanup_fd_ int fd = memfd_create("certificates", MFD_CLOEXEC);
	int e = fd < 0 ? -errno : fd_write_all(fd, h->pem, strlen(h->pem));

	if (e == 0 && lseek(fd, 0, SEEK_SET) < 0)
		e = -errno;
	if (e < 0)
		return err_sys(err, -e, "keep the gateway's certificate");
	h->spec.ca_fd = TAKE_FD(fd);
	return 0;
}

/* A container that we stand in may be limited already, and lets nobody make groups inside. */
static void make_use_limits(struct hold *h)
{
	_cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct room_limits place;

	/* A share of the memory is the bound of the room's file systems in memory, if nothing else
	 * is. A room that is its container makes none. */
	if (!h->in_place)
		h->spec.limits.tmpfs_bytes = room_limits_tmpfs(&h->spec.limits);
	limits_of_place(root, &place);
	limits_drop_given(&place, &h->spec.limits);
}

int make_room(struct hold *h, struct cloche_err *err)
{
	int e = h->pem[0] ? make_ca(h, err) : 0;

	for (size_t i = 0; i < h->spec.mounts_n && e == 0; i++)
		if (h->spec.mounts[i].file)
			e = make_open_file(h, i, err);
	make_use_limits(h);
	if (e == 0 && h->in_place)
		e = inplace_room(h, err);
	else if (e == 0)
		e = native_provider.create(&native_provider, &h->spec, &h->room, err);
	h->spec.ca_fd = fd_close(h->spec.ca_fd);
	return e;
}
