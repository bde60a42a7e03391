/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker renews a person's login and can open no file; what is in the file
 * is not for the supervisor's memory. So the supervisor hands over the file, to be read, and an
 * empty one in memory. If the broker has filled that one, the kernel copies it into a new file,
 * which takes the old one's name at once, with its owner and mode: whoever reads, and whoever is
 * killed, has the old file or the new one. Everything is named below a descriptor that the client
 * opened before the room was made, and a link is not followed.
 *
 * Two programs that renew the same login at once would make one of the two invalid. So from LOGIN
 * to LOGIN_END the directory is locked against other supervisors. The program whose login it is may
 * have a lock of its own, as npm's proper-lockfile makes it: a directory, which is another's while
 * its time is not older than ten seconds. And the file is replaced only if it is still the one that
 * was handed over. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "base/strv.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { LOGIN_BYTES_MAX = 256 << 10, LOCK_STALE_SEC = 10 };
#define LOCK_ALIVE_USEC (3 * USEC_PER_SEC)

static void login_on_alive(struct loop_timer *t);

static void login_keep_alive(struct login_place *p)
{
	if (p->loop)
		(void)!loop_timer_in(p->loop, &p->alive, LOCK_ALIVE_USEC, login_on_alive);
}

static void login_on_alive(struct loop_timer *t)
{
	struct login_place *p = container_of(t, struct login_place, alive);

	(void)!utimensat(p->dir, p->lock_name, NULL, AT_SYMLINK_NOFOLLOW);
	login_keep_alive(p);
}

/* Remove a lock whose owner has died. Return whether it was one. */
static bool login_lock_is_stale(const struct login_place *p)
{
	struct stat st;

	return fstatat(p->dir, p->lock_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec + LOCK_STALE_SEC < (time_t)(clock_real_usec() / USEC_PER_SEC) &&
	       unlinkat(p->dir, p->lock_name, AT_REMOVEDIR) == 0;
}

/* Make the lock of the program whose login it is. Return 0 or an errno; EAGAIN: it has it. */
static int login_lock(struct login_place *p)
{
	if (!p->lock_name || !*p->lock_name)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (mkdirat(p->dir, p->lock_name, 0700) == 0) {
			p->has_lock_name = true;
			login_keep_alive(p);
			return 0;
		}
		if (errno != EEXIST)
			return errno;
		if (!login_lock_is_stale(p))
			break;
	}
	return EAGAIN;
}

void login_place_close(struct login_place *p)
{
	if (p->has_lock_name)
		(void)!unlinkat(p->dir, p->lock_name, AT_REMOVEDIR);
	p->has_lock_name = false;
	loop_timer_clear(&p->alive);
	p->fresh = fd_close(p->fresh);
	p->lock = fd_close(p->lock);
}

/* Return 0 or an errno. */
static int login_take_files(struct login_place *p, int *ret_file)
{
	_cleanup_fd_ int file =
		openat(p->dir, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (file < 0 || fstat(file, &p->seen) < 0)
		return errno;
	if (!S_ISREG(p->seen.st_mode) || p->seen.st_size > LOGIN_BYTES_MAX)
		return EINVAL;
	p->fresh = memfd_create("login", MFD_CLOEXEC);
	if (p->fresh < 0)
		return errno;
	*ret_file = TAKE_FD(file);
	return 0;
}

int login_place_open(struct login_place *p, int *ret_file)
{
	int r;

	if (p->lock >= 0)
		return EBUSY;
	/* An opening of its own: the lock belongs to it, and the client has a copy of p->dir. */
	p->lock = openat(p->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = p->lock < 0 || flock(p->lock, LOCK_EX | LOCK_NB) < 0 ? errno : login_lock(p);
	if (r == 0)
		r = login_take_files(p, ret_file);
	if (r != 0)
		login_place_close(p);
	return r;
}

/* Return 0 or an errno. */
static int login_copy(int from, int to)
{
	off_t at = 0;
	struct stat st;

	if (fstat(from, &st) < 0)
		return errno;
	if (st.st_size == 0 || st.st_size > LOGIN_BYTES_MAX)
		return EINVAL;
	while (at < st.st_size) {
		ssize_t n = sendfile(to, from, &at, (size_t)(st.st_size - at));

		if (n == 0 || (n < 0 && errno != EINTR))
			return n == 0 ? EIO : errno;
	}
	return 0;
}

/* Make fd what the old file was. Return 0 or an errno. */
static int login_make_like(int fd, const struct stat *old)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
		fchown(fd, old->st_uid, old->st_gid) < 0)
		return errno;
	return fchmod(fd, old->st_mode & 0777) < 0 || fsync(fd) < 0 ? errno : 0;
}

static bool login_has_changed(const struct login_place *p)
{
	const struct stat *seen = &p->seen;
	struct stat st;

	return fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	       st.st_dev != seen->st_dev || st.st_ino != seen->st_ino ||
	       st.st_size != seen->st_size || st.st_ctim.tv_sec != seen->st_ctim.tv_sec ||
	       st.st_ctim.tv_nsec != seen->st_ctim.tv_nsec;
}

int login_place_replace(struct login_place *p)
{
	char name[NAME_MAX + 1];
	_cleanup_fd_ int fd = -1;
	int r;

	if (p->fresh < 0)
		return EINVAL;
	if (snprintf(name, sizeof(name), "%s.%08x.tmp", p->name, (unsigned)rand_u64()) >=
		(int)sizeof(name))
		return ENAMETOOLONG;
	fd = openat(p->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	r = login_copy(p->fresh, fd);
	if (r == 0)
		r = login_make_like(fd, &p->seen);
	if (r == 0 && login_has_changed(p))
		r = ESTALE;
	if (r == 0 && renameat(p->dir, name, p->dir, p->name) < 0)
		r = errno;
	if (r != 0)
		(void)!unlinkat(p->dir, name, 0);
	else
		(void)!fsync(p->lock); /* the directory */
	return r;
}

/* --- the broker's requests --- */

int logins_take(struct supervisor *s, const int *fds, struct cloche_err *err)
{
	char *const *names = s->start.logins, *const *locks = s->start.login_locks;

	if (strv_count(names) != strv_count(locks))
		return err_set(err, E_PROTOCOL, "logins without locks, or the reverse");
	for (size_t i = 0; names && names[i]; i++) {
		struct login_place *p = &s->net.logins[s->net.logins_n];

		if (!names[i][0] || strchr(names[i], '/') || strchr(locks[i], '/'))
			return err_set(err, E_PROTOCOL, "the file of a login has no name");
		*p = (struct login_place){.name = names[i],
			.lock_name = locks[i],
			.lock = -1,
			.fresh = -1,
			.loop = s->loop};
		p->dir = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (p->dir < 0)
			return err_sys(err, errno, "keep the directory of a login");
		s->net.logins_n++;
	}
	return 0;
}

void logins_close(struct supervisor *s)
{
	for (size_t i = 0; i < s->net.logins_n; i++)
		login_place_close(&s->net.logins[i]);
}

bool logins_are_open(const struct supervisor *s)
{
	for (size_t i = 0; i < s->net.logins_n; i++)
		if (s->net.logins[i].lock >= 0)
			return true;
	return false;
}

int logins_open(struct supervisor *s, struct chan *c, struct str payload)
{
	struct helper_login answer = {0};
	struct helper_login_open m;
	_cleanup_fd_ int file = -1;
	struct login_place *p;

	if (!helper_get_login_open(payload, &m) || m.number >= s->net.logins_n)
		return -EPROTO;
	p = &s->net.logins[m.number];
	answer.number = m.number;
	answer.problem = (uint32_t)login_place_open(p, &file);
	return message_send(c, HELPER_LOGIN, helper_login_message(), &answer,
		(int[]){file, p->fresh}, answer.problem ? 0 : 2);
}

int logins_end(struct supervisor *s, struct chan *c, struct str payload)
{
	struct helper_login answer = {0};
	struct helper_login_end m;
	struct login_place *p;

	if (!helper_get_login_end(payload, &m) || m.number >= s->net.logins_n)
		return -EPROTO;
	p = &s->net.logins[m.number];
	answer.number = m.number;
	if (m.write)
		answer.problem = (uint32_t)login_place_replace(p);
	login_place_close(p);
	return m.write ? message_send(
				 c, HELPER_LOGIN_WRITTEN, helper_login_message(), &answer, NULL, 0)
		       : 0;
}
