/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "cloche-init plain" takes the place of process 1 if there is no room
 * (provider/subprocess). It is a process of the host like any other, which starts commands and
 * adopts their orphans. It gives up its capabilities, enters a Landlock domain if the kernel has
 * that, takes the system call filter of rooms, and ends all that it has started when its channel is
 * closed.
 *
 * A command finds its files where the host has them. So a working directory that a room would show
 * at another path is replaced by the host's, a file worker is told which paths differ, and there is
 * a home directory for the commands, in which they begin if there is no workspace. */
#include "base/fd.h"
#include "base/strv.h"
#include "fs/place.h"
#include "init/init.h"
#include "init/program.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/narrow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRANTS_MAX = 640, PLACES_MAX = 512, ROUNDS_MAX = 1000 };

static struct plain {
	const char *home; /* NULL: this is a room */
	struct landlock_grant grants[GRANTS_MAX];
	size_t grants_n;
	struct place places[PLACES_MAX];
	size_t places_n;
	bool tcp, at_home;
	struct narrow narrow;
} plain;

static const char *const read_paths[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/etc", "/opt", "/nix/store", "/gnu/store", "/proc", "/sys/devices/system"};
static const char *const write_paths[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
	"/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"};

static bool grant(const char *path, bool write)
{
	if (plain.grants_n == GRANTS_MAX)
		return false;
	plain.grants[plain.grants_n++] = (struct landlock_grant){path, write};
	return true;
}

/* Read one argument with its values; *at is moved behind it. */
static bool plain_read_argument(char *const **at)
{
	const char *word = *(*at)++, *one, *two;

	if (strcmp(word, "tcp") == 0) {
		plain.tcp = true;
		return true;
	}
	if (strcmp(word, "at-home") == 0) {
		plain.at_home = true;
		return true;
	}
	if (narrow_take_word(&plain.narrow, word))
		return true;
	one = **at ? *(*at)++ : NULL;
	if (!one)
		return false;
	if (strcmp(word, "home") == 0) {
		plain.home = one;
		return grant(one, true);
	}
	if (strcmp(word, "ro") == 0 || strcmp(word, "rw") == 0)
		return grant(one, word[1] == 'w');
	two = **at ? *(*at)++ : NULL;
	if (strcmp(word, "at") != 0 || !two || plain.places_n == PLACES_MAX)
		return false;
	plain.places[plain.places_n].target = one;
	plain.places[plain.places_n++].source = two;
	return true;
}

static int narrow(struct cloche_err *err)
{
	int r = narrow_limits(&plain.narrow, err);

	for (size_t i = 0; i < ARRAY_SIZE(read_paths); i++)
		(void)grant(read_paths[i], false);
	for (size_t i = 0; i < ARRAY_SIZE(write_paths); i++)
		(void)grant(write_paths[i], true);
	if (r == 0)
		r = caps_join_keyring(err);
	if (r == 0)
		r = caps_drop(err);
	if (r == 0)
		r = caps_no_new_privs(err);
	if (r == 0)
		r = landlock_grants(plain.grants, plain.grants_n, plain.tcp, err);
	return r < 0 ? r : seccomp_install(SECCOMP_ROOM_STAYING, err);
}

/* End everything: all that we have started, and every orphan, is our child or descends from one. */
static void end_all(void)
{
	for (int i = 0; i < ROUNDS_MAX; i++) {
		pid_t pid;

		tree_kill_children();
		do
			pid = waitpid(-1, NULL, 0);
		while (pid < 0 && errno == EINTR);
		if (pid < 0)
			return;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

int plain_main(char *const *argv)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	while (*argv)
		if (!plain_read_argument(&argv))
			return 2;
	if (!plain.home)
		return 2;
	setsid();
	umask(022);
	if (narrow(&err) < 0 || fd_close_from(CHANNEL_FD + 1, NULL, 0) < 0) {
		fprintf(stderr, "cloche-init: %s\n", err.message);
		return 1;
	}
	/* Errors have been reported; only the socket stays open of the host's descriptors. */
	if (freopen("/dev/null", "r+", stderr) == NULL)
		return 1;
	r = init_program();
	end_all();
	return r;
}

/* Without a workspace, the default of a room is its root, which is the machine's here. */
static int begin_at_home(char **dir)
{
	char *home;

	if (!plain.at_home || (*dir && strcmp(*dir, "/") != 0))
		return 0;
	home = strdup(plain.home);
	if (!home)
		return -ENOMEM;
	free(*dir);
	*dir = home;
	return 0;
}

static int change_cwd(struct exec_spec *s)
{
	char *cwd;
	int r = s->cwd ? places_find(plain.places, plain.places_n, str_from(s->cwd), &cwd) : 0;

	if (r == 0)
		return begin_at_home(&s->cwd);
	if (r < 0)
		return r;
	free(s->cwd);
	s->cwd = cwd;
	return 0;
}

/* Tell a file worker, which gets paths of the room from its client. */
static int add_places(struct exec_spec *s)
{
	int r;

	if (strv_count(s->argv) < 2 || strcmp(s->argv[0], ROOMCTL_INIT_PATH) != 0 ||
		strcmp(s->argv[1], "files") != 0)
		return 0;
	r = s->argv[2] ? begin_at_home(&s->argv[2]) : 0;
	for (size_t i = 0; r == 0 && i < plain.places_n; i++) {
		r = strv_add(&s->argv, STR("at"));
		if (r == 0)
			r = strv_add(&s->argv, str_from(plain.places[i].target));
		if (r == 0)
			r = strv_add(&s->argv, str_from(plain.places[i].source));
	}
	return r;
}

int plain_apply(struct exec_spec *s)
{
	const char *home = strv_env_get(s->env, "HOME");
	int r;

	if (!plain.home)
		return 0;
	r = change_cwd(s);
	if (r == 0)
		r = add_places(s);
	/* Root of a room is our own user. */
	if (s->uid == 0 && s->gid == 0) {
		s->uid = getuid();
		s->gid = getgid();
	}
	if (r == 0 && (!home || strcmp(home, "/root") == 0))
		r = strv_env_set(&s->env, "HOME", plain.home);
	if (r == 0 && !strv_env_get(s->env, "TMPDIR"))
		r = strv_env_set(&s->env, "TMPDIR", plain.home);
	return r;
}
