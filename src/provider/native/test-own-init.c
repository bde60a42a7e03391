/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/native/test-own-init.h"

#include <grp.h>
#include <stdarg.h>

char self[PATH_MAX], dir[TAP_DIR_BYTES];
struct cloche_err room_err;

const char *in_dir(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", dir, name);
	return p;
}

void put_file(const char *name, const char *text)
{
	must(fs_write_atomic(AT_FDCWD, in_dir(name), str_from(text), 0644, false, &room_err) == 0);
}

void fresh_dir(void)
{
	if (dir[0])
		fs_remove_tree(AT_FDCWD, dir);
	tap_dir(dir);
	must(chmod(dir, 0755) == 0);
}

const char *arguments[15];
size_t arguments_n;

void add_argument(const char *arg)
{
	must(arguments_n < ARRAY_SIZE(arguments));
	arguments[arguments_n++] = arg;
}

void spec_for(struct room_spec *s, const char *check_name, ...)
{
	va_list ap;
	const char *arg;

	room_spec_init(s);
	s->id = strdup("room-test");
	s->init_path = strdup(self);
	arguments_n = 0;
	add_argument(check_name);
	va_start(ap, check_name);
	while ((arg = va_arg(ap, const char *)))
		add_argument(arg);
	va_end(ap);
}

struct room *start(struct room_spec *s)
{
	struct room *room = NULL;

	err_clear(&room_err);
	if (native_provider.create(&native_provider, s, &room, &room_err) < 0)
		tap_fail("create: %s (%s)", room_err.message, room_err.hint);
	else
		inside_tell(room->control_fd, arguments, arguments_n);
	room_spec_done(s);
	return room;
}

void read_all(struct room *room, struct buf *out)
{
	check_int(fd_read_to_end(room->control_fd, out), 0);
}

struct room *finish(struct room *room, const char *expected)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct room_exit ending = {0};

	if (!room)
		return NULL;
	read_all(room, &out);
	check_str(buf_str(&out), expected);
	check_int(native_provider.wait(room, &ending, &room_err), 0);
	check(ending.exited);
	check_int(ending.status, 7);
	return room;
}

void run(struct room_spec *s)
{
	room_free(finish(start(s), "done\n"));
}

/* The same as an ordinary user, in a process of its own that counts on where we are. */
static void all_as_ordinary_user(void (*all)(void))
{
	char usual[TAP_DIR_BYTES];
	int counts[2], fds[2];
	pid_t pid;

	must(fd_pipe(fds) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		must(setgroups(0, NULL) == 0);
		must(setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) == 0);
		must(setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) == 0);
		tap_dir(usual);
		must(setenv("XDG_RUNTIME_DIR", usual, 1) == 0);
		if (access(self, X_OK) == 0)
			all();
		else
			printf("# skipped as an ordinary user: %s is out of reach\n", self);
		fs_remove_tree(AT_FDCWD, usual);
		if (dir[0])
			fs_remove_tree(AT_FDCWD, dir);
		counts[0] = tap_count;
		counts[1] = tap_failed;
		(void)!write(fds[1], counts, sizeof(counts));
		fflush(stdout);
		_exit(0);
	}
	close(fds[1]);
	must(read(fds[0], counts, sizeof(counts)) == sizeof(counts));
	close(fds[0]);
	waitpid(pid, NULL, 0);
	tap_count = counts[0];
	tap_failed = counts[1];
}

int test_rooms(int argc, char **argv, void (*all)(void))
{
	ssize_t n;

	if (argc > 0 && strcmp(argv[0], "cloche-init") == 0)
		/* Without the sanitizers' work at exit, for which the room has no processes. */
		_exit(inside_main());
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	must(n > 0);
	self[n] = '\0';
	signal(SIGPIPE, SIG_IGN);
	if (native_provider.probe(&native_provider, &(struct provider_about){0}, &room_err) < 0) {
		printf("1..0 # SKIP %s (%s)\n", room_err.message, room_err.hint);
		return 0;
	}
	if (geteuid() == 0)
		all_as_ordinary_user(all);
	all();
	if (dir[0])
		fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
