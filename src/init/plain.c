/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "cloche-init plain" takes the place of process 1 if there is no room
 * (provider/subprocess). It is a process of the host like any other, which starts commands and
 * adopts their orphans. It gives up its capabilities, enters a Landlock domain if the kernel has
 * that, takes the system call filter of rooms, and ends all that it has started when its channel is
 * closed. Of a room whose walls are Landlock and filters (provider landlock) there is also a guard.
 *
 * A command finds its files where the host has them. So a working directory that a room would show
 * at another path is replaced by the host's, a file worker is told which paths differ, and there is
 * a home directory for the commands, in which they begin if there is no workspace. */
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "fs/place.h"
#include "init/guard.h"
#include "init/init.h"
#include "init/program.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/narrow.h"
#include "jail/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRANTS_MAX = 640, PLACES_MAX = 512 };

static struct plain {
	const char *home;                             /* NULL: this is a room */
	struct landlock_grant grants[GRANTS_MAX + 1]; /* and one that only a guard has */
	size_t grants_n, own_n;                       /* own_n: of those that were named */
	char **own;                                   /* see keep.h */
	struct place places[PLACES_MAX];
	size_t places_n;
	bool tcp, at_home;
	bool guarded, captured; /* see guard.h */
	const char *trust;      /* a directory with the files of jail/trust.h; NULL: none */
	struct narrow narrow;
} plain;

static const char *const read_paths[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/etc", "/opt", "/nix/store", "/gnu/store", "/proc", "/sys/devices/system"};
static const char *const write_paths[] = {
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
/* Where the person's other programs are found too: their terminals and their shared memory. */
static const char *const shared_paths[] = {"/dev/ptmx", "/dev/pts", "/dev/shm"};

static bool grant(const char *path, bool write)
{
	if (plain.grants_n == GRANTS_MAX)
		return false;
	plain.grants[plain.grants_n++] = (struct landlock_grant){path, write};
	return true;
}

static bool plain_take_switch(const char *word)
{
	static const struct {
		const char *word;
		bool *on;
	} switches[] = {{"tcp", &plain.tcp}, {"at-home", &plain.at_home},
		{"guarded", &plain.guarded}, {"captured", &plain.captured}};

	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		if (strcmp(word, switches[i].word) == 0)
			return *switches[i].on = true;
	return false;
}

/* Read one argument with its values; *at is moved behind it. */
static bool plain_read_argument(char *const **at)
{
	const char *word = *(*at)++, *one, *two;

	if (plain_take_switch(word) || narrow_take_word(&plain.narrow, word))
		return true;
	one = **at ? *(*at)++ : NULL;
	if (!one)
		return false;
	if (strcmp(word, "trust") == 0) {
		plain.trust = one;
		return grant(one, false);
	}
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

bool plain_shows(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(read_paths); i++) {
		_cleanup_(freep) char *real = realpath(read_paths[i], NULL);

		if (real && fs_is_within(path, real))
			return true;
	}
	return fs_is_within(path, "/dev");
}

/* Find where what the room may write lies. Its grants are the first ones. */
static int find_own(struct cloche_err *err)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < plain.own_n; i++) {
		_cleanup_fd_ int fd = -1;

		if (!plain.grants[i].write)
			continue;
		fd = open(plain.grants[i].path, O_PATH | O_CLOEXEC);
		if (fd < 0 || fd_path(fd, path) < 0)
			return err_sys(err, errno, "find %s", plain.grants[i].path);
		if (strv_add(&plain.own, str_from(path)) < 0)
			return err_nomem(err);
	}
	return 0;
}

/* The guard writes to the room's memory; init goes on in a domain that may not. */
static int part(struct cloche_err *err)
{
	int r = find_own(err);

	if (r == 0)
		r = guard_part(&plain.narrow, plain.captured, plain.own, err);

	return r == 0 ? landlock_grants(plain.grants, plain.grants_n, plain.tcp, err) : r;
}

static int narrow(struct cloche_err *err)
{
	int r = plain.guarded ? 0 : narrow_limits(&plain.narrow, err);

	plain.own_n = plain.grants_n;
	for (size_t i = 0; i < ARRAY_SIZE(read_paths); i++)
		(void)grant(read_paths[i], false);
	for (size_t i = 0; i < ARRAY_SIZE(write_paths); i++)
		(void)grant(write_paths[i], true);
	for (size_t i = 0; i < ARRAY_SIZE(shared_paths) && !plain.guarded; i++)
		(void)grant(shared_paths[i], true);
	plain.grants[plain.grants_n] = (struct landlock_grant){"/proc", true};
	if (r == 0)
		r = caps_join_keyring(err);
	if (r == 0)
		r = caps_drop(err);
	if (r == 0)
		r = caps_no_new_privs(err);
	if (r == 0)
		r = landlock_grants(plain.grants, plain.grants_n + plain.guarded, plain.tcp, err);
	if (r == 0 && plain.guarded)
		r = part(err);
	return r < 0 ? r : seccomp_install(SECCOMP_ROOM_STAYING, err);
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
	tree_end_all();
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

/* Let the variables of trust.h lead to the directory that has the files here. */
static int point_to_trust(char ***env)
{
	size_t n;
	const struct trust_env *table = trust_env_table(&n);
	int r = 0;

	for (size_t i = 0; plain.trust && r == 0 && i < n; i++) {
		const char *value = strv_env_get(*env, table[i].name);
		const char *at = value ? strstr(value, TRUST_DIR "/") : NULL;
		_cleanup_(freep) char *here = NULL;

		if (!at)
			continue;
		if (asprintf(&here, "%.*s%s%s", (int)(at - value), value, plain.trust,
			    at + strlen(TRUST_DIR)) < 0)
			here = NULL;
		r = here ? strv_env_set(env, table[i].name, here) : -ENOMEM;
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
	if (r == 0)
		r = point_to_trust(&s->env);
	/* There are only connections: a name is asked for over one (resolv.conf(5)). */
	if (r == 0 && plain.captured && !strv_env_get(s->env, "RES_OPTIONS"))
		r = strv_env_set(&s->env, "RES_OPTIONS", "use-vc");
	return r;
}
