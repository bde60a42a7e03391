/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "provider/native/test-own-init.h"
#include "room/apart.h"

#include <errno.h>
#include <poll.h>

static void identity_is_narrow(void)
{
	struct room_spec s;

	spec_for(&s, "identity", NULL);
	run(&s);
}

static void host_files_are_out_of_sight(void)
{
	struct room_spec s;

	fresh_dir();
	put_file("secret", "x");
	spec_for(&s, "files", in_dir("secret"), NULL);
	run(&s);
}

static void mounts_keep_owners(void)
{
	struct room_spec s;
	struct stat st = {0};

	fresh_dir();
	must(mkdir(in_dir("ws"), 0755) == 0 && mkdir(in_dir("ws/inner"), 0755) == 0);
	must(mkdir(in_dir("other"), 0700) == 0);
	put_file("other/own", "of the host");
	put_file("file", "x");
	spec_for(&s, "mounts", geteuid() == 0 ? "root" : "user", NULL);
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &room_err), 0);
	check_int(room_spec_add_mount(&s, in_dir("other"), "/workspace/inner", true, &room_err), 0);
	check_int(room_spec_add_mount(&s, in_dir("file"), "/data/file", true, &room_err), 0);
	run(&s);
	/* What root inside made belongs to whoever runs this. */
	check_int(stat(in_dir("ws/dir/moved"), &st), 0);
	check_int(st.st_uid, geteuid());
	check_int(st.st_gid, getegid());
	check_int(st.st_size, 11);
	check_int(access(in_dir("ws/inner/own"), F_OK), -1);
	check_int(access(in_dir("ws/suid"), F_OK), -1);
}

/* INV-NAMED-ONCE: another directory has its name when the room is made. */
static void sources_are_not_looked_up_again(void)
{
	struct room_spec s;

	fresh_dir();
	must(mkdir(in_dir("ws"), 0755) == 0 && mkdir(in_dir("ws/inner"), 0755) == 0);
	must(mkdir(in_dir("other"), 0700) == 0 && mkdir(in_dir("victim"), 0755) == 0);
	must(mkdir(in_dir("victim/inner"), 0755) == 0);
	put_file("other/own", "of the host");
	put_file("file", "x");
	spec_for(&s, "mounts", geteuid() == 0 ? "root" : "user", NULL);
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &room_err), 0);
	check_int(room_spec_add_mount(&s, in_dir("other"), "/workspace/inner", true, &room_err), 0);
	check_int(room_spec_add_mount(&s, in_dir("file"), "/data/file", true, &room_err), 0);
	must(rename(in_dir("ws"), in_dir("moved")) == 0);
	must(symlink(in_dir("victim"), in_dir("ws")) == 0);
	must(rename(in_dir("file"), in_dir("other-name")) == 0);
	run(&s);
	check_int(access(in_dir("moved/dir/moved"), F_OK), 0);
	check_int(access(in_dir("victim/dir"), F_OK), -1);
}

static void system_calls_are_filtered(void)
{
	struct room_spec s;

	spec_for(&s, "seccomp", NULL);
	run(&s);
}

static void usage_is_known(void)
{
	struct room_usage u = {0};
	struct room_spec s;
	struct room *room;

	spec_for(&s, "seccomp", NULL);
	room = finish(start(&s), "done\n");
	if (!room)
		return;
	check_int(native_provider.usage(room, &u, &room_err), 0);
	check(u.cpu_usec > 0);
	check(u.memory_peak_bytes > 0);
	room_free(room);
}

/* INV-LIMITS-OR-REFUSAL: under strict an ordinary user without delegation is refused, with a
 * reason. */
static bool refused_for_lack_of_cgroups(struct room_spec *s)
{
	struct room *room = NULL;
	int r = native_provider.create(&native_provider, s, &room, &room_err);

	room_free(room);
	if (r != -E_LIMITS_UNAVAILABLE)
		return false;
	check(strstr(room_err.message, "memory") != NULL);
	check(strstr(room_err.hint, "best-effort") != NULL);
	return true;
}

static void memory_hog_is_named(void)
{
	_cleanup_(buf_donep) struct buf record = BUF_INIT(4096);
	struct room_exit ending = {0};
	struct room_spec s;
	struct room *room;
	char *path;

	spec_for(&s, "memory", NULL);
	s.limits.memory_bytes = 64 << 20;
	if (refused_for_lack_of_cgroups(&s)) {
		s.limits.best_effort = true;
		room = start(&s);
		check(room && room->unenforced_n == 1);
		room_free(room);
		return;
	}
	room = finish(start(&s), "done\n");
	if (!room)
		return;
	check_int(native_provider.wait(room, &ending, &room_err), 0);
	check(ending.oom_killed);
	check_int(native_provider.record(room, &record, &room_err), 0);
	check(buf_len(&record) > 0);
	path = strndup(buf_data(&record) + 7, str_chr(buf_str(&record), '\n') - 7);
	check_int(access(path, F_OK), 0);
	room_free(room);
	check_int(access(path, F_OK), -1);
	free(path);
}

static void fork_bomb_hits_the_limit(void)
{
	struct room_usage u = {0};
	struct room_spec s;
	struct room *room;

	spec_for(&s, "pids", "20", NULL);
	s.limits.pids = 20;
	room = finish(start(&s), "done\n");
	if (!room)
		return;
	check_int(native_provider.usage(room, &u, &room_err), 0);
	/* Only a group counts refusals. */
	check(u.pids_refused || geteuid() != 0);
	room_free(room);
}

static void await_ready(struct room *room)
{
	char text[7] = "";
	size_t n = 0;
	ssize_t got;

	while (n < 6 && (got = read(room->control_fd, text + n, 6 - n)) > 0)
		n += (size_t)got;
	check_z(text, "ready\n");
}

static void kill_ends_everything(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
	struct room_exit ending = {0};
	struct room_spec s;
	struct room *room;

	spec_for(&s, "stubborn", NULL);
	room = start(&s);
	if (!room)
		return;
	await_ready(room);
	check_int(native_provider.kill(room, SIGKILL, &room_err), 0);
	/* The processes hold the socket: its end says that they are gone. */
	read_all(room, &out);
	check_int(native_provider.wait(room, &ending, &room_err), 0);
	check(!ending.exited);
	check_int(ending.status, SIGKILL);
	check_int(native_provider.kill(room, SIGKILL, &room_err), 0);
	room_free(room);
}

static void term_reaches_everything(void)
{
	struct room_spec s;
	struct room *room;
	char got[8] = "";
	size_t n = 0;

	spec_for(&s, "obedient", NULL);
	room = start(&s);
	if (!room)
		return;
	await_ready(room);
	check_int(native_provider.kill(room, SIGTERM, &room_err), 0);
	while (n < 5) {
		struct pollfd p = {.fd = room->control_fd, .events = POLLIN};

		if (poll(&p, 1, 3000) != 1 || read(room->control_fd, got + n, 1) != 1)
			break;
		n++;
	}
	check_int(n, 5);
	room_free(room);
}

static bool is_gone(pid_t pid)
{
	char path[64], text[256] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	/* Whoever reaps it may take a while. */
	return strstr(text, ") Z ") != NULL;
}

/* INV-NOTHING-OUTLIVES */
static void room_dies_with_its_owner(void)
{
	uint64_t end;
	int fds[2];
	pid_t owner, init = 0;

	must(fd_pipe(fds) == 0);
	fflush(stdout);
	owner = fork();
	if (owner == 0) {
		struct room_spec s;
		struct room *room;

		spec_for(&s, "stubborn", NULL);
		room = start(&s);
		if (!room)
			_exit(1);
		await_ready(room);
		init = room->pid;
		(void)!write(fds[1], &init, sizeof(init));
		raise(SIGKILL);
	}
	close(fds[1]);
	check_int(read(fds[0], &init, sizeof(init)), sizeof(init));
	close(fds[0]);
	waitpid(owner, NULL, 0);
	end = clock_mono_usec() + 20 * USEC_PER_SEC; /* patience, not speed */
	while (init > 0 && !is_gone(init) && clock_mono_usec() < end)
		usleep(2000);
	check(init > 0 && is_gone(init));
}

/* A directory as root that borrows the host's programs, with traps in it. */
static void directory_as_root(void)
{
	static const char *const links[] = {"bin", "lib", "lib64"};
	char text[16] = "", to[64];
	struct room_spec s;
	size_t i;
	int fd;

	fresh_dir();
	put_file("outside", "x");
	must(mkdir(in_dir("root"), 0755) == 0 && mkdir(in_dir("root/usr"), 0755) == 0);
	must(mkdir(in_dir("root/etc"), 0755) == 0);
	for (i = 0; i < ARRAY_SIZE(links); i++) {
		snprintf(to, sizeof(to), "usr/%s", links[i]);
		snprintf(text, sizeof(text), "root/%s", links[i]);
		must(symlink(to, in_dir(text)) == 0);
	}
	put_file("root/marker", "of the host");
	put_file("root/doomed", "x");
	put_file("root/etc/kept", "x");
	/* Would be written through, or mounted on the host, if resolved carelessly. */
	must(symlink(in_dir("outside"), in_dir("root/etc/resolv.conf")) == 0);
	must(symlink(dir, in_dir("root/escape")) == 0);
	must(symlink(dir, in_dir("root/run")) == 0);
	spec_for(&s, "dir-root", in_dir("root/escape/outside"), NULL);
	s.root = ROOM_ROOT_DIR;
	s.root_dir = strdup(in_dir("root"));
	s.root_fd = open(s.root_dir, O_PATH | O_CLOEXEC);
	check_int(room_spec_add_mount(&s, "/usr", "/usr", true, &room_err), 0);
	run(&s);
	fd = open(in_dir("root/marker"), O_RDONLY);
	memset(text, 0, sizeof(text));
	check_int(read(fd, text, sizeof(text) - 1), 11);
	check_z(text, "of the host");
	close(fd);
	check_int(access(in_dir("root/made"), F_OK), -1);
	check_int(access(in_dir("root/doomed"), F_OK), 0);
	check_int(access(in_dir("root/dev"), F_OK), -1);
	fd = open(in_dir("outside"), O_RDONLY);
	check_int(read(fd, text, sizeof(text)), 1);
	close(fd);
}

/* Expects this code and this text in the message. */
static void expect_failure(struct room_spec *s, int code, const char *text)
{
	struct room *room = NULL;
	int r;

	err_clear(&room_err);
	r = native_provider.create(&native_provider, s, &room, &room_err);
	room_free(room);
	room_spec_done(s);
	check_int(r, -code);
	if (!strstr(room_err.message, text))
		tap_fail("message \"%s\" lacks \"%s\"", room_err.message, text);
}

static void one_mount(struct room_spec *s, const char *source, const char *target)
{
	spec_for(s, "identity", NULL);
	s->host_home = strdup(in_dir("home"));
	check_int(room_spec_add_mount(s, source, target, false, &room_err), 0);
}

static void failures_are_explained(void)
{
	struct room_spec s;

	fresh_dir();
	must(mkdir(in_dir("ws"), 0755) == 0);
	one_mount(&s, in_dir("missing"), "/data");
	expect_failure(&s, E_SYSTEM, "missing: No such file or directory");
	/* Nothing is made on the host for a mount point. */
	one_mount(&s, in_dir("ws"), "/workspace");
	check_int(room_spec_add_mount(&s, "/usr", "/workspace/sub", true, &room_err), 0);
	expect_failure(&s, E_DENIED, "/workspace/sub does not exist");
	check_int(access(in_dir("ws/sub"), F_OK), -1);
	one_mount(&s, "/usr", "/usr/lib/no/such");
	expect_failure(&s, E_DENIED, "does not exist");
	one_mount(&s, in_dir("ws"), "/data");
	free(s.init_path);
	s.init_path = strdup(in_dir("no-init"));
	expect_failure(&s, E_SYSTEM, "no-init");
	one_mount(&s, in_dir("ws"), "/data");
	free(s.init_path);
	s.init_path = strdup("/etc/passwd");
	expect_failure(&s, E_SYSTEM, "execute /etc/passwd in the room: Permission denied");
	one_mount(&s, in_dir("ws"), "/data");
	free(s.id);
	s.id = strdup("../x");
	expect_failure(&s, E_USAGE, "id");
}

/* Make a room with a guard of ws/p/.git, after something was done to that. */
static void guarded(struct room_spec *s)
{
	struct stat st;

	fresh_dir();
	must(mkdir(in_dir("ws"), 0755) == 0 && mkdir(in_dir("ws/p"), 0755) == 0);
	must(mkdir(in_dir("ws/p/.git"), 0755) == 0 && mkdir(in_dir("victim"), 0755) == 0);
	must(mkdir(in_dir("victim/.git"), 0755) == 0 && stat(in_dir("ws/p/.git"), &st) == 0);
	one_mount(s, in_dir("ws"), "/workspace");
	check_int(room_spec_add_guard(s, 0, "p/.git", &st, false, &room_err), 0);
}

/* INV-NAMED-ONCE */
static void guards_are_what_was_found(void)
{
	static const char text[] = "ws/p/.git was replaced or moved while";
	struct room_spec s;

	guarded(&s);
	run(&s);
	guarded(&s);
	must(rename(in_dir("ws/p"), in_dir("ws/q")) == 0);
	expect_failure(&s, E_DENIED, text);
	guarded(&s);
	must(rename(in_dir("ws/p"), in_dir("ws/q")) == 0);
	must(symlink(in_dir("victim"), in_dir("ws/p")) == 0);
	expect_failure(&s, E_DENIED, text);
	/* The same file by another way is not beneath the mount. */
	guarded(&s);
	must(rename(in_dir("ws/p"), in_dir("ws/q")) == 0);
	must(symlink("q", in_dir("ws/p")) == 0);
	expect_failure(&s, E_DENIED, text);
	guarded(&s);
	must(rename(in_dir("ws/p/.git"), in_dir("ws/p/old")) == 0);
	must(mkdir(in_dir("ws/p/.git"), 0755) == 0);
	expect_failure(&s, E_DENIED, text);
	/* What came over a socket. */
	guarded(&s);
	s.mounts[1].guard = 2;
	expect_failure(&s, E_USAGE, "guards no part");
	guarded(&s);
	free(s.mounts[1].source);
	s.mounts[1].source = strdup(in_dir("victim"));
	expect_failure(&s, E_USAGE, "guards no part");
}

static void credentials_stay_out(void)
{
	struct room_spec s;

	fresh_dir();
	must(mkdir(in_dir("home"), 0755) == 0 && mkdir(in_dir("home/.ssh"), 0755) == 0);
	must(mkdir(in_dir("home/project"), 0755) == 0);
	must(symlink(in_dir("home/.ssh"), in_dir("home/project/keys")) == 0);
	must(mkfifo(in_dir("fifo"), 0644) == 0);
	one_mount(&s, in_dir("home"), "/data");
	expect_failure(&s, E_DENIED, ".ssh, which holds credentials");
	one_mount(&s, in_dir("home/project/keys"), "/data");
	expect_failure(&s, E_DENIED, "leads into");
	one_mount(&s, in_dir("home/.ssh/.."), "/data");
	expect_failure(&s, E_DENIED, "credentials");
	one_mount(&s, "/", "/data");
	expect_failure(&s, E_DENIED, "credentials");
	one_mount(&s, "/dev/null", "/data");
	expect_failure(&s, E_DENIED, "device");
	one_mount(&s, in_dir("fifo"), "/data");
	expect_failure(&s, E_DENIED, "fifo");
	/* By its own name it is somebody's decision; and a project beside it is fine. */
	one_mount(&s, in_dir("home/.ssh"), "/data");
	s.mounts[0].ro = true;
	check_int(room_spec_add_mount(&s, in_dir("home/project"), "/project", false, &room_err), 0);
	run(&s);
}

static void reaping_touches_only_our_groups(void)
{
	check_int(native_provider.reap(&native_provider, STR(""), &room_err), 0);
	check_int(
		native_provider.reap(&native_provider, STR("cgroup /etc"), &room_err), -E_CORRUPT);
	check_int(native_provider.reap(
			  &native_provider, STR("cgroup /tmp/cloche-x/../y\n"), &room_err),
		-E_CORRUPT);
	check_int(native_provider.reap(
			  &native_provider, STR("cgroup /tmp/cloche-no-such\n"), &room_err),
		0);
	check_int(native_provider.reap(&native_provider, STR("rm -rf /\n"), &room_err), -E_CORRUPT);
	fresh_dir();
	must(mkdir(in_dir("cloche-x"), 0755) == 0);
	{
		char line[PATH_MAX];

		snprintf(line, sizeof(line), "cgroup %s\n", in_dir("cloche-x"));
		check_int(native_provider.reap(&native_provider, str_from(line), &room_err),
			-E_CORRUPT);
	}
	check_int(access(in_dir("cloche-x"), F_OK), 0);
}

/* A directory that cannot be searched is compared with nothing, and is not said to show anything.
 */
static void a_directory_that_cannot_be_searched(void)
{
	char one[TAP_DIR_BYTES], two[TAP_DIR_BYTES];
	_cleanup_fd_ int control = -1, source = -1;
	struct apart a;
	bool root = geteuid() == 0;

	tap_dir(one);
	tap_dir(two);
	must(chmod(one, root ? 0755 : 0700) == 0);
	control = open(one, O_PATH | O_CLOEXEC);
	source = open(two, O_PATH | O_CLOEXEC);
	must(control >= 0 && source >= 0);
	check_int(apart_init(&a, control), 0);
	check_int(apart_is(&a, source), 1);
	must(chmod(two, 0) == 0 && (!root || seteuid(65534) == 0));
	check_int(apart_is(&a, source), -EACCES);
	must(!root || seteuid(0) == 0);
	(void)rmdir(one);
	(void)rmdir(two);
}

static void all(void)
{
	run_test(identity_is_narrow);
	run_test(host_files_are_out_of_sight);
	run_test(mounts_keep_owners);
	run_test(sources_are_not_looked_up_again);
	run_test(a_directory_that_cannot_be_searched);
	run_test(system_calls_are_filtered);
	run_test(usage_is_known);
	run_test(memory_hog_is_named);
	run_test(fork_bomb_hits_the_limit);
	run_test(kill_ends_everything);
	run_test(term_reaches_everything);
	run_test(room_dies_with_its_owner);
	run_test(directory_as_root);
	run_test(failures_are_explained);
	run_test(guards_are_what_was_found);
	run_test(credentials_stay_out);
	run_test(reaping_touches_only_our_groups);
}

int main(int argc, char **argv)
{
	return test_rooms(argc, argv, all);
}
