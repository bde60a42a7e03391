/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cloche_err err;
static char *top; /* of this test; no links in its name */
static char *home;

static char *below(const char *name)
{
	static char text[4][512];
	static unsigned i;

	snprintf(text[++i % 4], sizeof(text[0]), "%s/%s", top, name);
	return text[i % 4];
}

static void set_up(void)
{
	char made[TAP_DIR_BYTES];

	tap_dir(made);
	top = realpath(made, NULL);
	must(top && asprintf(&home, "%s/home", top) > 0);
	must(mkdir(home, 0755) == 0 && mkdir(below("home/real"), 0755) == 0);
	must(mkdir(below("ws"), 0755) == 0 && mkdir(below("ws/in"), 0755) == 0);
	must(symlink("../home/real", below("ws/keys")) == 0);
	must(symlink("real", below("home/link")) == 0);
	must(symlink(below("ws"), below("home/far")) == 0);
	must(symlink("loop", below("home/loop")) == 0);
	must(chdir(below("ws")) == 0);
}

static void tear_down(void)
{
	must(chdir("/") == 0 && fs_remove_tree(AT_FDCWD, top) == 0);
	free(top);
	free(home);
}

/* Where path leads, below top, or "" with err. */
static const char *found(const char *path)
{
	static char ret[PATH_MAX + 1];
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_(freep) char *real = NULL;

	err_clear(&err);
	if (hostpath_find(path, home, "read", &at, &err) < 0)
		return "";
	real = hostpath_real(&at);
	must(real);
	snprintf(ret, sizeof(ret), "%s",
		str_starts(str_from(real), str_from(top)) ? real + strlen(top) : real);
	return ret;
}

static void names_lead_where_they_say(void)
{
	check_z(found("x"), "/ws/x");
	check_z(found("./in/x"), "/ws/in/x");
	check_z(found("in/../in//./x"), "/ws/in/x");
	check_z(found("in/"), "/ws/in");
	check_z(found("in/."), "/ws/in");
	check_z(found("../ws"), "/ws");
	check_z(found(below("ws/in/x")), "/ws/in/x");
	check_z(found("/"), "/");
	check_z(found("new/"), "/ws/new");
	/* The name at the end is nobody's business. */
	check_z(found("keys"), "/ws/keys");
	check_z(found(""), "");
	check_int(err.sys_errno, ENOENT);
	check_z(found("no/x"), "");
	check_int(err.sys_errno, ENOENT);
}

static void refused(const char *path, const char *target)
{
	check_z(found(path), "");
	check_int(err.code, E_DENIED);
	check(strstr(err.message, "is a symbolic link"));
	check(strstr(err.hint, target));
}

static void planted_links_end_it(void)
{
	refused("keys/x", "/ws/../home/real/x");
	refused("keys/", "../home/real/");
	refused("./in/../keys/x", "../home/real/x");
	refused(below("ws/keys/x"), "../home/real/x");
	refused(below("home/far/keys/x"), "/ws/../home/real/x");
	/* A home directory that others can write to is none to rely on. */
	must(chmod(home, 0775) == 0);
	refused(below("home/link/x"), "home/real/x");
	must(chmod(home, 0755) == 0);
}

static void own_links_are_followed(void)
{
	check_z(found(below("home/link/x")), "/home/real/x");
	check_z(found(below("home/link/")), "/home/real");
	check_z(found(below("home/far/in/x")), "/ws/in/x");
	check_z(found(below("home/loop/x")), "");
	check_int(err.sys_errno, ELOOP);
}

/* Where path leads with all links followed, below top; "!" before it: one of them lay in ws. */
static const char *followed(const char *path)
{
	static char ret[PATH_MAX + 1];
	_cleanup_(freep) char *ws = strdup(below("ws"));
	char *const dirs[] = {ws, NULL};
	char real[PATH_MAX];
	bool within = false;
	int fd = hostpath_follow(path, dirs, real, &within);

	if (fd < 0)
		return strerror(-fd);
	close(fd);
	snprintf(ret, sizeof(ret), "%s%s", within ? "!" : "",
		str_starts(str_from(real), str_from(top)) ? real + strlen(top) : real);
	return ret;
}

static void every_link_is_read_once(void)
{
	check_z(followed(below("home/real")), "/home/real");
	check_z(followed(below("home/link")), "/home/real");
	check_z(followed(below("home/far/in/..")), "/ws");
	check_z(followed(below("ws/keys")), "!/home/real");
	check_z(followed(below("ws/keys/.")), "!/home/real");
	check_z(followed(below("home/far/keys")), "!/home/real");
	check_z(followed(below("home/loop")), strerror(ELOOP));
	check_z(followed(below("ws/none")), strerror(ENOENT));
	check_z(followed("relative"), strerror(EINVAL));
	check_z(followed("/"), "/");
}

static void links_of_the_system(void)
{
	struct stat st;

	if (lstat("/var/run", &st) < 0 || !S_ISLNK(st.st_mode)) {
		tap_skip("/var/run is no link here");
		return;
	}
	check_z(found("/var/run/x"), "/run/x");
}

/* What belongs to root is out of a room's reach, unless root has started it. */
static void links_of_root(void)
{
	if (geteuid() != 0) {
		tap_skip("root alone can make what belongs to root");
		return;
	}
	must(chmod(top, 0755) == 0 && chown(home, 1, 1) == 0);
	refused(below("ws/keys/x"), "home/real/x");
	refused(below("home/link/x"), "home/real/x");
	must(seteuid(1) == 0);
	check_z(found(below("ws/keys/x")), "/home/real/x");
	check_z(found(below("home/link/x")), "/home/real/x");
	must(seteuid(0) == 0 && chown(home, 0, 0) == 0);
}

/* What is made where a directory is missing, below top, or "" with err. */
static const char *made(const char *path)
{
	static char ret[PATH_MAX + 1];
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_(freep) char *rest = NULL, *real = NULL;
	_cleanup_fd_ int fd = -1;

	err_clear(&err);
	if (hostpath_find_missing(path, home, "make", &at, &rest, &err) < 0)
		return "";
	fd = hostpath_make(&at, rest, 0700);
	if (fd < 0) {
		err_sys(&err, -fd, "make");
		return "";
	}
	real = hostpath_real(&(struct hostpath){.dir = fd});
	must(real && str_starts(str_from(real), str_from(top)));
	snprintf(ret, sizeof(ret), "%s", real + strlen(top));
	return ret;
}

static void missing_directories_are_made(void)
{
	struct stat st;

	check_z(made("a/b//./c/"), "/ws/a/b/c");
	check_int(stat("a/b", &st), 0);
	check_int(st.st_mode & 0777, 0700);
	check_z(made("a/b"), "/ws/a/b");
	check_z(made("one"), "/ws/one");
	check_z(made("."), "/ws");
	check_z(made(below("home/link/new/x")), "/home/real/new/x");
	check_z(made("keys/new/x"), "");
	check_int(err.code, E_DENIED);
	check_int(access(below("home/real/x"), F_OK), -1);
	check_z(made("keys"), "");
	check_int(err.sys_errno, ENOTDIR);
	check_z(made(""), "");
	check_int(err.sys_errno, ENOENT);
}

static void attempt(void)
{
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	int r;

	err_clear(&err);
	r = hostpath_find(below("home/far/in/x"), home, "read", &at, &err);
	check_int(r, torture_failed ? -E_NO_MEMORY : 0);
}

static void attempt_missing(void)
{
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_(freep) char *rest = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	err_clear(&err);
	r = hostpath_find_missing(below("home/far/made/x/y"), home, "make", &at, &rest, &err);
	if (r == 0)
		fd = r = hostpath_make(&at, rest, 0700);
	check(torture_failed ? r == -E_NO_MEMORY || r == -ENOMEM : r >= 0);
}

static void survives_lack_of_memory(void)
{
	torture(attempt);
	torture(attempt_missing);
}

int main(void)
{
	set_up();
	run_test(names_lead_where_they_say);
	run_test(planted_links_end_it);
	run_test(own_links_are_followed);
	run_test(every_link_is_read_once);
	run_test(links_of_the_system);
	run_test(links_of_root);
	run_test(missing_directories_are_made);
	run_test(survives_lack_of_memory);
	tear_down();
	return tap_done();
}
