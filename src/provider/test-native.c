/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The test program is its own init: each room executes it again as process 1, where it runs one of
 * the checks of test-inside.c. What those write is compared here. Started by root, everything is
 * tested twice: as an ordinary user, then as root. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/fs.h"
#include "provider/provider.h"
#include "provider/test-inside.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDINARY_ID = 12345 };

static char self[PATH_MAX], dir[64];
static struct cloche_err err;

/* A path in the test's own directory; one of a few static buffers. */
static const char *in_dir(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", dir, name);
	return p;
}

static void put_file(const char *name, const char *text)
{
	must(fs_write_atomic(AT_FDCWD, in_dir(name), str_from(text), 0644, false, &err) == 0);
}

static void fresh_dir(void)
{
	if (dir[0])
		fs_remove_tree(AT_FDCWD, dir);
	snprintf(dir, sizeof(dir), "/tmp/cloche-test-XXXXXX");
	must(mkdtemp(dir) != NULL);
	must(chmod(dir, 0755) == 0);
}

static void spec_for(struct room_spec *s, const char *check_name, ...)
{
	va_list ap;
	const char *arg;
	size_t n = 2;

	room_spec_init(s);
	s->id = strdup("room-test");
	s->hostname = strdup("bell");
	s->init_path = strdup(self);
	s->init_argv = calloc(16, sizeof(char *));
	must(s->init_argv != NULL);
	s->init_argv[0] = strdup("room-init");
	s->init_argv[1] = strdup(check_name);
	va_start(ap, check_name);
	while ((arg = va_arg(ap, const char *)) && n < 15)
		s->init_argv[n++] = strdup(arg);
	va_end(ap);
}

/* Makes the room; says why where it cannot be made. */
static struct room *start(struct room_spec *s)
{
	struct room *room = NULL;

	err_clear(&err);
	if (native_provider.create(s, &room, &err) < 0)
		tap_fail("create: %s (%s)", err.message, err.hint);
	room_spec_done(s);
	return room;
}

/* Everything that the room writes until its end. */
static void read_all(struct room *room, struct buf *out)
{
	check_int(fd_read_to_end(room->control_fd, out), 0);
}

/* The room has to write just this, and process 1 to exit with 7. */
static struct room *finish(struct room *room, const char *expected)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct room_exit ending = {0};

	if (!room)
		return NULL;
	read_all(room, &out);
	check_str(buf_str(&out), expected);
	check_int(native_provider.wait(room, &ending, &err), 0);
	check(ending.exited);
	check_int(ending.status, 7);
	return room;
}

static void run(struct room_spec *s)
{
	room_free(finish(start(s), "done\n"));
}

static void identity_is_narrow(void)
{
	struct room_spec s;

	spec_for(&s, "identity", "0", NULL);
	run(&s);
}

static void identity_of_another_user(void)
{
	struct room_spec s;

	spec_for(&s, "identity", "1000", NULL);
	s.uid = s.gid = 1000;
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
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &err), 0);
	check_int(room_spec_add_mount(&s, in_dir("other"), "/workspace/inner", true, &err), 0);
	check_int(room_spec_add_mount(&s, in_dir("file"), "/data/file", true, &err), 0);
	check_int(room_spec_add_mount(&s, in_dir("missing"), "/missing", true, &err), 0);
	s.mounts[3].optional = true;
	run(&s);
	/* What root inside made belongs to whoever runs this. */
	check_int(stat(in_dir("ws/dir/moved"), &st), 0);
	check_int(st.st_uid, geteuid());
	check_int(st.st_gid, getegid());
	check_int(st.st_size, 11);
	check_int(access(in_dir("ws/inner/own"), F_OK), -1);
	check_int(access(in_dir("ws/suid"), F_OK), -1);
}

static void system_calls_are_filtered(void)
{
	struct room_spec s;

	spec_for(&s, "seccomp", NULL);
	run(&s);
}

static void no_network(void)
{
	struct room_spec s;

	spec_for(&s, "no-network", NULL);
	run(&s);
}

/* Accepts one connection and answers with the address that was dialled. */
static void answer_dialled(int listener, int want_port)
{
	struct sockaddr_storage to = {0};
	struct pollfd p = {.fd = listener, .events = POLLIN};
	socklen_t n = sizeof(to);
	char text[INET6_ADDRSTRLEN] = "";
	bool v6;
	int c, port;

	check_int(poll(&p, 1, 5000), 1);
	c = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(c >= 0);
	if (c < 0)
		return;
	check_int(getsockname(c, (void *)&to, &n), 0);
	v6 = to.ss_family == AF_INET6;
	inet_ntop(to.ss_family,
		v6 ? (void *)&((struct sockaddr_in6 *)&to)->sin6_addr :
		     (void *)&((struct sockaddr_in *)&to)->sin_addr,
		text, sizeof(text));
	port = ntohs(v6 ? ((struct sockaddr_in6 *)&to)->sin6_port :
			  ((struct sockaddr_in *)&to)->sin_port);
	check_int(port, want_port);
	check_int(fd_write_all(c, text, strlen(text)), 0);
	close(c);
}

/* Answers a datagram from the address that it was sent to. */
static void answer_query(int s)
{
	union {
		struct cmsghdr align;
		char mem[256];
	} control;
	char text[64];
	struct sockaddr_storage from;
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text)};
	struct msghdr msg = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.mem,
		.msg_controllen = sizeof(control.mem)};
	struct pollfd p = {.fd = s, .events = POLLIN};
	struct in_pktinfo info = {0};
	struct cmsghdr *c;
	char address[INET_ADDRSTRLEN] = "";

	check_int(poll(&p, 1, 5000), 1);
	check_int(recvmsg(s, &msg, 0), 5);
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&info, CMSG_DATA(c), sizeof(info));
	inet_ntop(AF_INET, &info.ipi_addr, address, sizeof(address));
	check_z(address, "8.8.8.8");
	info.ipi_spec_dst = info.ipi_addr;
	info.ipi_ifindex = 0;
	iov = (struct iovec){.iov_base = text, .iov_len = 6};
	memcpy(text, "answer", 6);
	msg.msg_controllen = CMSG_SPACE(sizeof(info));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	check_int(sendmsg(s, &msg, 0), 6);
}

static void network_is_captured(void)
{
	static const struct {
		const char *address;
		int port;
	} dialled[] = {{"203.0.113.7", 443}, {"169.254.169.254", 80}, {"10.1.2.3", 65535},
		{"198.18.0.9", 15001}, {"2001:db8::7", 22}};
	struct room_spec s;
	struct room *room;
	size_t i, n = ARRAY_SIZE(dialled);
	char port[8];

	spec_for(&s, "gateway", NULL);
	/* Left out where the machine has no IPv6. */
	if (access("/proc/net/if_inet6", F_OK) < 0)
		n--;
	for (i = 0; i < n; i++) {
		snprintf(port, sizeof(port), "%d", dialled[i].port);
		s.init_argv[2 + 2 * i] = strdup(dialled[i].address);
		s.init_argv[3 + 2 * i] = strdup(port);
	}
	s.net = ROOM_NET_GATEWAY;
	room = start(&s);
	if (!room)
		return;
	check(room->net.tcp4 >= 0 && room->net.udp4 >= 0 && room->net.diag >= 0);
	for (i = 0; i < n; i++)
		answer_dialled(strchr(dialled[i].address, ':') ? room->net.tcp6 : room->net.tcp4,
			dialled[i].port);
	answer_query(room->net.udp4);
	room_free(finish(room, "done\n"));
}

static void gateway_is_trusted(void)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
	struct room_spec s;
	int fds[2];

	must(fd_pipe(fds) == 0);
	must(fd_write_all(fds[1], pem, sizeof(pem) - 1) == 0);
	close(fds[1]);
	spec_for(&s, "trust", pem, NULL);
	s.ca_fd = fds[0];
	run(&s);
	close(fds[0]);
}

static void a_gateway_without_certificate_is_an_error(void)
{
	struct room_spec s;
	struct room *room = NULL;
	int fds[2];

	must(fd_pipe(fds) == 0);
	close(fds[1]);
	spec_for(&s, "trust", "", NULL);
	s.ca_fd = fds[0];
	check_int(native_provider.create(&s, &room, &err), -E_NETWORK);
	room_spec_done(&s);
	close(fds[0]);
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
	check_int(native_provider.usage(room, &u, &err), 0);
	check(u.cpu_usec > 0);
	check(u.memory_peak_bytes > 0);
	room_free(room);
}

/* Under strict an ordinary user without delegation is refused, with a reason. */
static bool refused_for_lack_of_cgroups(struct room_spec *s)
{
	struct room *room = NULL;
	int r = native_provider.create(s, &room, &err);

	room_free(room);
	if (r != -E_LIMITS_UNAVAILABLE)
		return false;
	check(strstr(err.message, "memory") != NULL);
	check(strstr(err.hint, "best-effort") != NULL);
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
		check_int(room ? room->unenforced_n : 0, 1);
		room_free(room);
		return;
	}
	room = finish(start(&s), "done\n");
	if (!room)
		return;
	check_int(native_provider.wait(room, &ending, &err), 0);
	check(ending.oom_killed);
	check_int(native_provider.record(room, &record, &err), 0);
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
	check_int(native_provider.usage(room, &u, &err), 0);
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
	uint64_t begin = clock_mono_usec();
	struct room_spec s;
	struct room *room;

	spec_for(&s, "stubborn", NULL);
	room = start(&s);
	if (!room)
		return;
	await_ready(room);
	check_int(native_provider.kill(room, SIGKILL, &err), 0);
	/* The processes hold the socket: its end says that they are gone. */
	read_all(room, &out);
	check_int(native_provider.wait(room, &ending, &err), 0);
	check(!ending.exited);
	check_int(ending.status, SIGKILL);
	check(clock_mono_usec() - begin < 2 * USEC_PER_SEC);
	check_int(native_provider.kill(room, SIGKILL, &err), 0);
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
	check_int(native_provider.kill(room, SIGTERM, &err), 0);
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

static void room_dies_with_its_owner(void)
{
	uint64_t end;
	int fds[2];
	pid_t owner, room_pid = 0;

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
		(void)!write(fds[1], &room->pid, sizeof(room->pid));
		raise(SIGKILL);
	}
	close(fds[1]);
	check_int(read(fds[0], &room_pid, sizeof(room_pid)), sizeof(room_pid));
	close(fds[0]);
	waitpid(owner, NULL, 0);
	end = clock_mono_usec() + 3 * USEC_PER_SEC;
	while (room_pid > 0 && !is_gone(room_pid) && clock_mono_usec() < end)
		usleep(2000);
	check(room_pid > 0 && is_gone(room_pid));
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
	check_int(room_spec_add_mount(&s, "/usr", "/usr", true, &err), 0);
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

	err_clear(&err);
	r = native_provider.create(s, &room, &err);
	room_free(room);
	room_spec_done(s);
	check_int(r, -code);
	if (!strstr(err.message, text))
		tap_fail("message \"%s\" lacks \"%s\"", err.message, text);
}

static void one_mount(struct room_spec *s, const char *source, const char *target)
{
	spec_for(s, "identity", "0", NULL);
	s->host_home = strdup(in_dir("home"));
	check_int(room_spec_add_mount(s, source, target, false, &err), 0);
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
	check_int(room_spec_add_mount(&s, "/usr", "/workspace/sub", true, &err), 0);
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
	check_int(room_spec_add_mount(&s, in_dir("home/project"), "/project", false, &err), 0);
	free(s.hostname);
	s.hostname = strdup("bell");
	run(&s);
}

static void reaping_touches_only_our_groups(void)
{
	check_int(native_provider.reap(STR(""), &err), 0);
	check_int(native_provider.reap(STR("cgroup /etc"), &err), -E_CORRUPT);
	check_int(native_provider.reap(STR("cgroup /tmp/cloche-x/../y\n"), &err), -E_CORRUPT);
	check_int(native_provider.reap(STR("cgroup /tmp/cloche-no-such\n"), &err), 0);
	check_int(native_provider.reap(STR("rm -rf /\n"), &err), -E_CORRUPT);
	fresh_dir();
	must(mkdir(in_dir("cloche-x"), 0755) == 0);
	{
		char line[PATH_MAX];

		snprintf(line, sizeof(line), "cgroup %s\n", in_dir("cloche-x"));
		check_int(native_provider.reap(str_from(line), &err), -E_CORRUPT);
	}
	check_int(access(in_dir("cloche-x"), F_OK), 0);
}

static void all(void)
{
	run_test(identity_is_narrow);
	run_test(identity_of_another_user);
	run_test(host_files_are_out_of_sight);
	run_test(mounts_keep_owners);
	run_test(system_calls_are_filtered);
	run_test(no_network);
	run_test(network_is_captured);
	run_test(gateway_is_trusted);
	run_test(a_gateway_without_certificate_is_an_error);
	run_test(usage_is_known);
	run_test(memory_hog_is_named);
	run_test(fork_bomb_hits_the_limit);
	run_test(kill_ends_everything);
	run_test(term_reaches_everything);
	run_test(room_dies_with_its_owner);
	run_test(directory_as_root);
	run_test(failures_are_explained);
	run_test(credentials_stay_out);
	run_test(reaping_touches_only_our_groups);
	if (dir[0])
		fs_remove_tree(AT_FDCWD, dir);
}

/* The same as an ordinary user, in a process of its own that counts on where we are. */
static void all_as_ordinary_user(void)
{
	int counts[2], fds[2];
	pid_t pid;

	must(fd_pipe(fds) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		must(setgroups(0, NULL) == 0);
		must(setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) == 0);
		must(setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) == 0);
		if (access(self, X_OK) == 0)
			all();
		else
			printf("# skipped as an ordinary user: %s is out of reach\n", self);
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

int main(int argc, char **argv)
{
	ssize_t n;

	if (argc > 0 && strcmp(argv[0], "room-init") == 0)
		return inside_main(argc, argv);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	must(n > 0);
	self[n] = '\0';
	signal(SIGPIPE, SIG_IGN);
	if (native_provider.probe(&err) < 0) {
		printf("1..0 # SKIP %s (%s)\n", err.message, err.hint);
		return 0;
	}
	if (geteuid() == 0)
		all_as_ordinary_user();
	all();
	return tap_done();
}
