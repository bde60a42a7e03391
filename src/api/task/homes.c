/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a home is a directory of STATE/homes, in which `home` is what an agent gets,
 * and `about` says whose it is. It is made under another name and renamed when it is whole, and it
 * is renamed before it is removed; so at any instant there is a whole home of that name, or none.
 * What a crash leaves under another name is removed later, when nobody makes or removes a home
 * (lock of STATE/homes). Who uses a home has a shared lock on it, and who removes it an exclusive
 * one; the kernel gives these up with the process.
 *
 * Everything in `home` is the room's. It is never read here, only counted and removed. */
#include "api/task/homes.h"
#include "base/buf.h"
#include "base/rand.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "fs/fswalk.h"
#include "ipc/statedir.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOMES_COPY_MAX = 1 << 20, HOMES_ABOUT_MAX = 8192, HOMES_NAMES_MAX = 1 << 20 };
enum { HOMES_RANDOM = 12, HOMES_PROJECT_LETTERS = 24, HOMES_DIGEST_LETTERS = 12 };

#define HOMES_TEMPORARY "." /* begins the name of a home that is made or removed */
#define HOMES_ABOUT "about"
#define HOMES_HOME "home"
#define HOMES_KEY "surrogates.key"

static void homes_temporary(char ret[HOMES_RANDOM + 2])
{
	ret[0] = HOMES_TEMPORARY[0];
	rand_id(ret + 1, HOMES_RANDOM);
}

/* Open STATE/homes; without `make`, -E_NOT_FOUND if it does not exist. *ret_path may be NULL. */
static int homes_dir(bool make, char **ret_path, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	int r = statedir_path("homes", &path, err);

	if (r < 0)
		return r;
	if (!make && access(path, F_OK) < 0)
		return err_set(err, E_NOT_FOUND, "no agent has a home yet");
	return statedir_open("homes", ret_path, err);
}

/* Say where nothing could be kept, and what helps. */
static int homes_failed(const char *path, int r, struct cloche_err *err)
{
	if (r == -E_NO_MEMORY)
		return r;
	(void)err_wrap(err, r, "keep the homes of agents in %s", path);
	err_hint(err, "it has to be writable and needs some room; CLOCHE_STATE_DIR names another "
		      "directory");
	return r;
}

/* While somebody holds this, nothing under a temporary name is removed. */
static int homes_lock(int homes, struct cloche_err *err)
{
	int r = job_lock(homes, LOCK_SH);

	return r < 0 ? err_sys(err, -r, "lock the homes of agents") : 0;
}

int homes_name(const char *agent, const char *project, char **ret, struct cloche_err *err)
{
	const char *slash = strrchr(project, '/');
	char digest[SHA256_HEX_MAX], letters[HOMES_PROJECT_LETTERS + 1] = "none";
	size_t n = 0;

	sha256_text(str_from(project), digest);
	for (const char *c = slash ? slash + 1 : project; *c && n < HOMES_PROJECT_LETTERS; c++)
		letters[n++] = str_is_alnum(*c) ? *c : '_';
	if (n > 0)
		letters[n] = '\0';
	return asprintf(ret, "%s-%s-%.*s", agent, letters, HOMES_DIGEST_LETTERS, digest) < 0
		       ? err_nomem(err)
		       : 0;
}

/* --- making --- */

/* Make the directories around a file in a new home. */
static int homes_make_around(int home, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_(freep) char *dir = strndup(path, (size_t)(slash - path));

		if (!dir)
			return -ENOMEM;
		if (mkdirat(home, dir, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int homes_put(int home, const char *path, struct str text, struct cloche_err *err)
{
	int r = homes_make_around(home, path);

	return r < 0 ? err_sys(err, -r, "make %s in a new home", path)
		     : fs_write_atomic(home, path, text, 0600, false, err);
}

/* Read a file of the person that an agent gets a copy of. Links are not followed: a room may have
 * made what one leads to. Return 1 if there is nothing to copy. */
static int homes_read_own(int own, const char *path, struct buf *out, const char **ret_why)
{
	_cleanup_fd_ int fd = fs_open_beneath(own, path, O_RDONLY);
	struct stat st;
	int r;

	*ret_why = NULL;
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		*ret_why = fd == -ELOOP ? "it lies behind a link"
					: "it is not a file that can be read";
		return 1;
	}
	r = fd_read_to_end(fd, out);
	if (r == -ENOMEM)
		return r;
	*ret_why = r < 0 ? "it cannot be read, or is too large" : NULL;
	return r < 0;
}

static int homes_copy_one(int own, int home, const char *path, cloche_warning_fn fn, void *user,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(HOMES_COPY_MAX);
	const char *why;
	char line[512];
	int r = homes_read_own(own, path, &text, &why);

	if (why && fn) {
		snprintf(line, sizeof(line), "~/%s was not copied: %s", path, why);
		fn(line, user);
	}
	if (r < 0)
		return err_nomem(err);
	return r > 0 ? 0 : homes_put(home, path, buf_str(&text), err);
}

static int homes_fill(const struct agent_driver *d, int home, cloche_warning_fn fn, void *user,
	struct cloche_err *err)
{
	_cleanup_(freep) char *path = fs_home();
	_cleanup_fd_ int own = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->files_n; i++)
		r = homes_put(home, d->files[i].path, str_from(d->files[i].text), err);
	for (char *const *c = d->copy; r == 0 && own >= 0 && c && *c; c++)
		r = homes_copy_one(own, home, *c, fn, user, err);
	return r;
}

static int homes_make_in(int dir, const struct agent_driver *d, const char *project,
	cloche_warning_fn fn, void *user, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf about = BUF_INIT(HOMES_ABOUT_MAX);
	_cleanup_fd_ int home = -1;
	int r;

	if (buf_printf(&about, "%s\n%s\n", d->name, project) < 0)
		return err_set(err, E_LIMIT, "the project's path is too long");
	r = fs_write_atomic(dir, HOMES_ABOUT, buf_str(&about), 0600, false, err);
	if (r == 0 && mkdirat(dir, HOMES_HOME, 0700) < 0)
		r = err_sys(err, errno, "make a home");
	if (r == 0)
		home = fs_open_beneath(dir, HOMES_HOME, O_RDONLY | O_DIRECTORY);
	if (r == 0 && home < 0)
		r = err_sys(err, -home, "open a new home");
	return r < 0 ? r : homes_fill(d, home, fn, user, err);
}

/* Make a home. It is fine if somebody else has made it meanwhile. */
static int homes_make(int homes, const char *name, const struct agent_driver *d,
	const char *project, cloche_warning_fn fn, void *user, struct cloche_err *err)
{
	char temporary[HOMES_RANDOM + 2];
	_cleanup_fd_ int dir = -1;
	int r;

	homes_temporary(temporary);
	if (mkdirat(homes, temporary, 0700) < 0)
		return err_sys(err, errno, "make a home");
	dir = openat(homes, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = dir < 0 ? err_sys(err, errno, "open a new home")
		    : homes_make_in(dir, d, project, fn, user, err);
	if (r == 0) {
		int e = fs_rename_new(homes, temporary, name);

		if (e == 0)
			return 0;
		r = e == -EEXIST ? 0 : err_sys(err, -e, "name a new home");
	}
	(void)fs_remove_tree(homes, temporary);
	return r;
}

/* Remove what was made or removed when a process was killed. The homes' lock is exclusive only if
 * nobody does either now. */
static void homes_sweep(int homes)
{
	_cleanup_(fs_list_closep) DIR *list = NULL;
	struct dirent *e;

	if (flock(homes, LOCK_EX | LOCK_NB) < 0)
		return;
	list = fs_list(homes, ".");
	while (list && (e = fs_list_next(list)))
		if (e->d_name[0] == HOMES_TEMPORARY[0])
			(void)fs_remove_tree(homes, e->d_name);
	(void)flock(homes, LOCK_UN);
}

/* --- using --- */

static bool homes_is_named(int homes, const char *name, int dir)
{
	struct stat a, b;

	return fstat(dir, &a) == 0 && fstatat(homes, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Open a home and hold it. Return 1 if there is none. */
static int homes_hold(int homes, const char *name, struct agent_home *h, struct cloche_err *err)
{
	for (;;) {
		int r;

		h->held = fd_close(h->held);
		h->held = openat(homes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (h->held < 0)
			return errno == ENOENT ? 1 : err_sys(err, errno, "open the home %s", name);
		h->is_shared = flock(h->held, LOCK_EX | LOCK_NB) < 0;
		r = job_lock(h->held, LOCK_SH);
		if (r < 0)
			return err_sys(err, -r, "lock the home %s", name);
		if (homes_is_named(homes, name, h->held))
			return 0;
	}
}

static int homes_take(
	int homes, const char *dir, const char *name, struct agent_home *h, struct cloche_err *err)
{
	h->dir = fs_open_beneath(h->held, HOMES_HOME, O_PATH | O_DIRECTORY);
	if (h->dir < 0)
		return err_sys(err, -h->dir, "open the home %s", name);
	if (asprintf(&h->path, "%s/%s/" HOMES_HOME, dir, name) < 0) {
		h->path = NULL;
		return err_nomem(err);
	}
	(void)utimensat(h->held, HOMES_ABOUT, NULL, AT_SYMLINK_NOFOLLOW);
	return 0;
}

int homes_open(const struct agent_driver *d, const char *project, cloche_warning_fn fn, void *user,
	struct agent_home *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL, *name = NULL;
	_cleanup_(agent_home_done) struct agent_home h = AGENT_HOME_INIT;
	_cleanup_fd_ int homes = homes_dir(true, &path, err);
	int r = homes < 0 ? homes : homes_name(d->name, project, &name, err);

	if (r < 0)
		return r;
	homes_sweep(homes);
	while ((r = homes_hold(homes, name, &h, err)) == 1) {
		r = homes_lock(homes, err);
		if (r < 0)
			return r;
		r = homes_make(homes, name, d, project, fn, user, err);
		(void)flock(homes, LOCK_UN);
		if (r < 0)
			return homes_failed(path, r, err);
		h.is_new = true;
	}
	if (r == 0)
		r = homes_take(homes, path, name, &h, err);
	if (r < 0)
		return r;
	*ret = h;
	h = AGENT_HOME_INIT;
	return 0;
}

/* --- listing and removing --- */

struct homes_count {
	uint64_t bytes, caches;
	bool partly;
};

/* Whether a path in a home is a cache's: what programs keep so that they need not fetch it again.
 */
static bool homes_is_cache(const char *path)
{
	static const char *const caches[] = {".cache", ".npm", ".yarn", ".local/share/pnpm",
		".cargo/registry", ".cargo/git", "go/pkg/mod", ".m2/repository", ".gradle/caches"};

	for (size_t i = 0; i < ARRAY_SIZE(caches); i++)
		if (fs_below(path, caches[i]))
			return true;
	return false;
}

static int homes_count_entry(void *user, const struct fswalk_entry *e)
{
	struct homes_count *c = user;
	struct stat st;

	if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		c->bytes += (uint64_t)st.st_blocks * 512;
		if (homes_is_cache(e->path))
			c->caches += (uint64_t)st.st_blocks * 512;
	}
	return e->type == DT_DIR ? FSWALK_INTO : 0;
}

static int homes_count_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	struct homes_count *c = user;

	c->partly = true;
	return 0;
}

/* Read whose home it is: its agent and, behind the line, its project. */
static int homes_about(int dir, char **ret_agent, char **ret_project, uint64_t *ret_usec)
{
	_cleanup_(buf_donep) struct buf about = BUF_INIT(HOMES_ABOUT_MAX);
	_cleanup_fd_ int fd = fs_open_beneath(dir, HOMES_ABOUT, O_RDONLY);
	struct stat st;
	struct str rest;

	if (fd < 0 || fstat(fd, &st) < 0 || fd_read_to_end(fd, &about) < 0)
		return -EINVAL;
	rest = buf_str(&about);
	*ret_agent = str_dup(str_next(&rest, '\n'));
	*ret_project = str_dup(str_prefix(rest, rest.n ? rest.n - 1 : 0));
	*ret_usec = (uint64_t)st.st_mtim.tv_sec * 1000000 + (uint64_t)st.st_mtim.tv_nsec / 1000;
	return *ret_agent && *ret_project ? 0 : -ENOMEM;
}

static int homes_tell(int homes, const char *path, const char *name, cloche_home_fn fn, void *user)
{
	_cleanup_(freep) char *agent = NULL, *project = NULL, *dir = fs_join(path, name);
	_cleanup_fd_ int fd = openat(homes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct homes_count count = {0};
	const struct fswalk_how how = {.stay = FSWALK_ON_DEVICE,
		.names = HOMES_NAMES_MAX,
		.user = &count,
		.entry = homes_count_entry,
		.missed = homes_count_missed};
	cloche_home home = {.size = sizeof(home), .name = name, .dir = dir};
	int r = fd < 0 ? -EINVAL : homes_about(fd, &agent, &project, &home.used_usec);

	if (!dir || r == -ENOMEM)
		return -ENOMEM;
	if (r < 0)
		return 0;
	home.in_use = flock(fd, LOCK_EX | LOCK_NB) < 0;
	(void)flock(fd, LOCK_UN);
	count.partly |= fswalk(fd, HOMES_HOME, &how) < 0;
	home.agent = agent;
	home.project = project;
	home.bytes = count.bytes;
	home.partly = count.partly;
	home.cache_bytes = count.caches;
	fn(&home, user);
	return 0;
}

static int homes_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int cloche_home_list(cloche_home_fn fn, void *user, cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_(fs_list_closep) DIR *list = NULL;
	struct cloche_err none = CLOCHE_ERR_INIT;
	_cleanup_fd_ int homes = homes_dir(false, &path, &none);
	struct dirent *e;
	int r = 0;

	if (homes == -E_NOT_FOUND)
		return 0;
	if (homes < 0)
		return err_set(err, E_SYSTEM, "list the homes: %s", none.message);
	homes_sweep(homes);
	list = fs_list(homes, ".");
	while (r == 0 && list && (e = fs_list_next(list)))
		if (e->d_name[0] != HOMES_TEMPORARY[0])
			r = strv_add(&names, str_from(e->d_name));
	if (names)
		qsort(names, strv_count(names), sizeof(*names), homes_compare);
	for (char *const *n = names; r == 0 && n && *n; n++)
		r = homes_tell(homes, path, *n, fn, user);
	return r < 0 ? err_nomem(err) : 0;
}

static int homes_busy(const char *name, struct cloche_err *err)
{
	err_set(err, E_BUSY, "the home %s is in use", name);
	err_hint(err, "end the agent that has it first");
	return -E_BUSY;
}

/* Give the home another name, which nobody looks for. */
static int homes_take_away(
	int homes, const char *name, char temporary[HOMES_RANDOM + 2], struct cloche_err *err)
{
	_cleanup_fd_ int dir = openat(homes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dir < 0 && errno == ENOENT)
		return err_set(err, E_NOT_FOUND, "there is no home %s", name);
	if (dir < 0)
		return err_sys(err, errno, "open the home %s", name);
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return homes_busy(name, err);
	if (!homes_is_named(homes, name, dir))
		return err_set(err, E_NOT_FOUND, "there is no home %s", name);
	homes_temporary(temporary);
	r = fs_rename_new(homes, name, temporary);
	return r < 0 ? err_sys(err, -r, "remove the home %s", name) : 0;
}

int cloche_home_remove(const char *name, cloche_err *err)
{
	char temporary[HOMES_RANDOM + 2];
	_cleanup_fd_ int homes = homes_dir(false, NULL, err);
	int r = homes;

	if (homes == -E_NOT_FOUND || name[0] == HOMES_TEMPORARY[0] || !name[0] || strchr(name, '/'))
		return err_set(err, E_NOT_FOUND, "there is no home %s", name);
	if (homes < 0)
		return r;
	r = homes_lock(homes, err);
	if (r == 0)
		r = homes_take_away(homes, name, temporary, err);
	if (r < 0)
		return r;
	r = fs_remove_tree(homes, temporary);
	return r < 0 ? err_sys(err, -r, "remove the home %s", name) : 0;
}

/* --- the key --- */

static int homes_key_read(int homes, uint8_t ret[SHA256_BYTES], struct cloche_err *err)
{
	_cleanup_fd_ int fd =
		openat(homes, HOMES_KEY, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open homes/" HOMES_KEY " of the state directory");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) ||
		st.st_size != SHA256_BYTES || read(fd, ret, SHA256_BYTES) != SHA256_BYTES) {
		err_set(err, E_CORRUPT,
			"homes/" HOMES_KEY " of the state directory is no key of yours alone");
		err_hint(err, "remove it: agents then ask about their keys once more");
		return -E_CORRUPT;
	}
	return 0;
}

/* If somebody else makes one at the same time, the first one counts. */
static int homes_key_make(int homes, struct cloche_err *err)
{
	uint8_t key[SHA256_BYTES];
	char temporary[HOMES_RANDOM + 2];
	int r;

	rand_bytes(key, sizeof(key));
	homes_temporary(temporary);
	r = fs_write_atomic(homes, temporary, str_make(key, sizeof(key)), 0600, true, err);
	explicit_bzero(key, sizeof(key));
	if (r < 0)
		return err_wrap(err, r, "make " HOMES_KEY);
	r = fs_rename_new(homes, temporary, HOMES_KEY);
	if (r < 0)
		(void)unlinkat(homes, temporary, 0);
	return r < 0 && r != -EEXIST ? err_sys(err, -r, "make " HOMES_KEY) : 0;
}

int homes_key(uint8_t ret[SHA256_BYTES], struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int homes = homes_dir(true, &path, err);
	int r = homes < 0 ? homes : homes_key_read(homes, ret, err);

	if (r <= 0)
		return r;
	r = homes_lock(homes, err);
	if (r == 0)
		r = homes_key_make(homes, err);
	if (r < 0)
		return homes_failed(path, r, err);
	r = homes_key_read(homes, ret, err);
	return r > 0 ? err_set(err, E_SYSTEM, HOMES_KEY " is gone again") : r;
}
