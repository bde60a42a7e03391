/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/native/test-inside.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "jail/caps.h"
#include "jail/sys.h"
#include "jail/trust.h"
#include "provider/provider.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define say(...) dprintf(ROOM_CONTROL_FD, __VA_ARGS__)
#define want(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			say("%s:%d: %s (errno %d)\n", __func__, __LINE__, #cond, errno);           \
	} while (0)

/* Checks that a call fails with that errno. */
static void want_errno(const char *what, long r, int errnum)
{
	if (r >= 0)
		say("%s succeeded\n", what);
	else if (errno != errnum)
		say("%s: errno %d (%s), not %d\n", what, errno, err_errno_text(errno), errnum);
}
#define refused(errnum, call) want_errno(#call, (long)(call), errnum)

static int number(const char *z)
{
	uint64_t v = 0;

	want(parse_u64(str_from(z), INT32_MAX, &v) == 0);
	return (int)v;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static unsigned count_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* INV-NO-PRIVILEGE, and no descriptor, environment or session of the host (INV-HOST-HIDDEN). */
static void check_identity(char **argv)
{
	char name[64] = "", line[256];
	FILE *status;
	int fd;

	want(getpid() == 1);
	want(getppid() == 0);
	want(getuid() == 0 && geteuid() == 0 && getgid() == 0);
	want(gethostname(name, sizeof(name)) == 0 && strcmp(name, "cloche") == 0);
	want(environ[0] == NULL);
	want(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	want(prctl(PR_GET_SECCOMP) == 2);
	want(prctl(PR_CAPBSET_READ, 21 /* SYS_ADMIN */) == 0);
	want(getsid(0) == 1);
	/* Nothing but 0 to 3. The first free one is 4. */
	fd = dup(0);
	want(fd == 4);
	close(fd);
	for (fd = 4; fd < 1024; fd++)
		want(fcntl(fd, F_GETFD) < 0);
	status = fopen("/proc/self/status", "re");
	want(status != NULL);
	while (status && fgets(line, sizeof(line), status)) {
		want(strncmp(line, "SigBlk:", 7) != 0 || strstr(line, "0000000000000000"));
		want(strncmp(line, "CapEff:", 7) != 0 || strtoull(line + 7, NULL, 16) == CAPS_ROOM);
	}
	if (status)
		fclose(status);
}

/* INV-HOST-HIDDEN */
static void check_files(char **argv)
{
	static const char *const absent[] = {"/etc/shadow", "/etc/machine-id", "/etc/gshadow",
		"/etc/passwd-", "/etc/fstab", "/etc/ssh/ssh_host_rsa_key",
		"/etc/ssh/ssh_host_ed25519_key", "/etc/ssl/private", "/etc/apt/auth.conf",
		"/var/lib/docker", "/run/docker.sock", "/run/systemd", "/work", "/boot",
		"/lost+found", "/dev/vda", "/dev/kvm", "/dev/sda", "/sys/class", "/sys/fs/selinux",
		"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified", "/sys/kernel",
		"/sys/firmware", "/proc/1/root/work", "/proc/self/cwd/work"};
	static const char *const writable[] = {"/tmp/x", "/run/x", "/root/x", "/home/x", "/var/x",
		"/var/tmp/x", "/dev/shm/x", "/etc/x", "/x"};
	char text[64] = "";
	struct stat st;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(absent); i++)
		if (exists(absent[i]))
			say("%s is there\n", absent[i]);
	want(!exists(argv[0]));
	want(count_entries("/root") == 0);
	want(count_entries("/home") == 0);
	want(count_entries("/tmp") == 0);
	for (i = 0; i < ARRAY_SIZE(writable); i++) {
		fd = open(writable[i], O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			say("%s: %s\n", writable[i], err_errno_text(errno));
		else
			close(fd);
	}
	refused(EROFS, open("/usr/x", O_WRONLY | O_CREAT, 0600));
	/* The owner is judged before the mount. */
	want(open("/usr/bin/env", O_WRONLY) < 0 && (errno == EROFS || errno == EACCES));
	refused(EROFS, open("/etc/ssl/certs/x", O_WRONLY | O_CREAT, 0600));
	want(open("/proc/sys/kernel/hostname", O_WRONLY) < 0);
	want(open("/proc/sys/net/ipv4/ip_forward", O_WRONLY) < 0);
	/* The program of process 1 cannot be changed through its link. */
	want(open("/proc/self/exe", O_WRONLY) < 0);
	want(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
	fd = open("/proc/kcore", O_RDONLY);
	want(fd < 0 || read(fd, text, sizeof(text)) <= 0);
	fd = open("/etc/hosts", O_RDONLY);
	want(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "localhost"));
	want(open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0);
	want(access("/bin/sh", X_OK) == 0);
	want(count_entries("/sys/devices/system/cpu") > 0);
}

/* /workspace is writable, /workspace/inner read-only and nested, /data/file one file. */
static void check_mounts(char **argv)
{
	char text[64] = "";
	struct stat st;
	int fd;

	fd = open("/workspace/new", O_WRONLY | O_CREAT | O_EXCL, 0644);
	want(fd >= 0 && write(fd, "from inside", 11) == 11);
	want(fstat(fd, &st) == 0 && st.st_uid == getuid());
	want(mkdir("/workspace/dir", 0755) == 0);
	refused(EROFS, open("/workspace/inner/x", O_WRONLY | O_CREAT, 0644));
	fd = open("/workspace/inner/own", O_RDONLY);
	want(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strcmp(text, "of the host") == 0);
	want(stat("/workspace/inner/own", &st) == 0 && st.st_uid == 0);
	fd = open("/data/file", O_RDONLY);
	want(fd >= 0);
	refused(EROFS, open("/data/file", O_WRONLY));
	want(rename("/workspace/new", "/workspace/dir/moved") == 0);
	/* What stays on the host must not be able to become somebody there. */
	refused(EPERM, chmod("/workspace/dir/moved", 04755));
	/* (The set-gid bit of what is there: init decides, src/init/setgid.c, and this is init.) */
	refused(EPERM, open("/workspace/suid", O_WRONLY | O_CREAT, 02755));
	refused(EPERM, open("/workspace/suid", O_WRONLY | O_CREAT, 04755));
	refused(EPERM, mknod("/workspace/suid", S_IFREG | 04755, 0));
	refused(ENOSYS, sys_openat2(AT_FDCWD, "/workspace", O_RDONLY, 0));
	want(chmod("/workspace/dir/moved", 0755) == 0);
	want(mknod("/workspace/null", S_IFCHR | 0666, 0x103) < 0);
}

static int clone_newuser(void)
{
	return (int)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}

/* INV-SYSCALLS */
static void check_seccomp(char **argv)
{
	static const int families[] = {AF_PACKET, AF_VSOCK, AF_ALG, AF_KEY, AF_X25, AF_TIPC, AF_CAN,
		AF_BLUETOOTH, AF_XDP, AF_RDS, AF_SMC, AF_NFC, AF_QIPCRTR, AF_UNSPEC};
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	size_t i;
	int fd, status;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(families); i++)
		if (socket(families[i], SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
			say("socket family %d: errno %d\n", families[i], errno);
	/* Bits above the 32 that the kernel looks at. */
	refused(EAFNOSUPPORT, syscall(SYS_socket, AF_PACKET | 1L << 32, SOCK_RAW, 0));
	refused(EPROTONOSUPPORT, socket(AF_NETLINK, SOCK_RAW, 12 /* NETFILTER */));
	want((fd = socket(AF_NETLINK, SOCK_RAW, 0)) >= 0);
	want((fd = socket(AF_INET6, SOCK_STREAM, 0)) >= 0 || errno == EAFNOSUPPORT);
	refused(EPERM, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	refused(EPERM, unshare(CLONE_NEWUSER));
	refused(EPERM, unshare(CLONE_NEWNS));
	refused(EPERM, unshare(CLONE_NEWNET | CLONE_FS));
	refused(EPERM, unshare(0x80 /* CLONE_NEWTIME */));
	want(unshare(CLONE_FS) == 0);
	refused(EPERM, clone_newuser());
	refused(ENOSYS, sys_clone3(&args));
	refused(EPERM, setns(3, 0));
	refused(EPERM, mount("none", "/tmp", "tmpfs", 0, NULL));
	refused(EPERM, umount2("/proc", MNT_DETACH));
	refused(EPERM, sys_fsopen("tmpfs"));
	refused(EPERM, sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE));
	refused(EPERM, sys_move_mount(3, AT_FDCWD, "/", 0));
	refused(EPERM, sys_pivot_root("/", "/"));
	refused(EPERM, chroot("/tmp"));
	refused(EPERM, syscall(SYS_bpf, 0, NULL, 0));
	refused(EPERM, syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
	refused(EPERM, syscall(SYS_userfaultfd, 1));
	refused(EPERM, syscall(SYS_io_uring_setup, 8, NULL));
	refused(ENOSYS, syscall(SYS_keyctl, 0, -3, 0, 0, 0));
	refused(ENOSYS, syscall(SYS_add_key, "user", "x", "y", 1, -2));
	refused(EPERM, syscall(SYS_open_by_handle_at, 3, NULL, 0));
	refused(EPERM, syscall(SYS_init_module, NULL, 0, ""));
	refused(EPERM, syscall(SYS_kexec_load, 0, 0, NULL, 0));
	refused(EPERM, syscall(SYS_reboot, 0, 0, 0, NULL));
	refused(EPERM, sethostname("x", 1));
	refused(EPERM, ioctl(0, 0x5412 /* TIOCSTI */, "x"));
	refused(EPERM, syscall(SYS_ioctl, 0, 0x5412UL | 1UL << 32, "x"));
	refused(EPERM, ioctl(0, 0x541C /* TIOCLINUX */, "x"));
	refused(ENOSYS, syscall(SYS_personality, 0x0008 /* PER_LINUX32 */));
	want(syscall(SYS_personality, 0xffffffff) >= 0);
	refused(ENOSYS, syscall(9999));
	refused(ENOSYS, syscall(SYS_quotactl + 100000));
#ifdef __x86_64__
	/* The x32 table kills. */
	pid = fork();
	if (pid == 0) {
		syscall(0x40000000 | SYS_getpid);
		_exit(0);
	}
	want(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
#endif
	/* Ordinary work goes on: a process, a thread's flags, a shell. */
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exec 2>/dev/null; x=$(echo a | cat); [ \"$x\" = a ]",
			NULL);
		_exit(126);
	}
	want(waitpid(pid, &status, 0) == pid && status == 0);
}

static int dial(int family, const char *address, int port, int type)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	const struct timeval patience = {.tv_sec = 5};
	bool v6 = family == AF_INET6;
	int s = socket(family, type, 0);

	if (s < 0)
		return -1;
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	inet_pton(family, address, v6 ? (void *)&a6.sin6_addr : (void *)&a4.sin_addr);
	if (connect(s, v6 ? (void *)&a6 : (void *)&a4, v6 ? sizeof(a6) : sizeof(a4)) < 0) {
		int e = errno;

		close(s);
		errno = e;
		return -1;
	}
	return s;
}

/* INV-NO-ROUTE */
static void check_no_network(char **argv)
{
	refused(ENETUNREACH, dial(AF_INET, "203.0.113.7", 80, SOCK_STREAM));
	refused(ENETUNREACH, dial(AF_INET, "169.254.169.254", 80, SOCK_STREAM));
	refused(ECONNREFUSED, dial(AF_INET, "127.0.0.1", 80, SOCK_STREAM));
	want(dial(AF_INET6, "2001:db8::7", 80, SOCK_STREAM) < 0);
	want(if_nametoindex("lo") == 1);
	want(if_nametoindex("eth0") == 0);
}

/* A listener of the room's own on a low port of 127.0.0.1, reached by the room. */
static void check_own_loopback(const char *address)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80)};
	int s = socket(AF_INET, SOCK_STREAM, 0), c;

	inet_pton(AF_INET, address, &a.sin_addr);
	want(bind(s, (void *)&a, sizeof(a)) == 0 && listen(s, 5) == 0);
	want(dial(AF_INET, address, 80, SOCK_STREAM) >= 0);
	c = accept(s, NULL, NULL);
	want(c >= 0);
	close(c);
	close(s);
}

/* argv: pairs of address and port. What the other end writes is told back, so that the test sees
 * which dialling it was. */
static void check_gateway(char **argv)
{
	char text[64];
	ssize_t n;
	int s;

	check_own_loopback("127.0.0.1");
	check_own_loopback("100.64.0.2");
	for (; argv[0] && argv[1]; argv += 2) {
		int family = strchr(argv[0], ':') ? AF_INET6 : AF_INET;

		s = dial(family, argv[0], number(argv[1]), SOCK_STREAM);
		n = s >= 0 ? read(s, text, sizeof(text) - 1) : -1;
		text[n > 0 ? n : 0] = '\0';
		if (strcmp(text, argv[0]) != 0)
			say("%s:%s answered \"%s\" (errno %d)\n", argv[0], argv[1], text, errno);
		close(s);
	}
	s = dial(AF_INET, "8.8.8.8", 53, SOCK_DGRAM);
	want(s >= 0 && send(s, "query", 5, 0) == 5);
	n = recv(s, text, sizeof(text), 0);
	want(n == 6 && memcmp(text, "answer", 6) == 0);
	/* QUIC is refused at once. */
	s = dial(AF_INET, "203.0.113.7", 443, SOCK_DGRAM);
	want(s >= 0 && send(s, "x", 1, 0) == 1);
	refused(ECONNREFUSED, recv(s, text, sizeof(text), 0));
}

static void check_trust(char **argv)
{
	static char one[4096], all[4 << 20], usual[4 << 20];
	int a = open(TRUST_CA_PATH, O_RDONLY), b = open(TRUST_BUNDLE_PATH, O_RDONLY);
	int c = open("/etc/ssl/certs/ca-certificates.crt", O_RDONLY);
	ssize_t n = read(a, one, sizeof(one)), m = read(b, all, sizeof(all));

	want(n == (ssize_t)strlen(argv[0]) && memcmp(one, argv[0], (size_t)n) == 0);
	want(m > n && memcmp(all + m - n, one, (size_t)n) == 0);
	if (c < 0)
		return;
	want(m > 1000);
	want(read(c, usual, sizeof(usual)) == m && memcmp(usual, all, (size_t)m) == 0);
	refused(EROFS, open("/etc/ssl/certs/ca-certificates.crt", O_WRONLY));
}

static void check_memory(char **argv)
{
	size_t i, n = (size_t)256 << 20;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (i = 0; i < n; i += 4096)
			p[i] = 1;
		_exit(0);
	}
	want(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static void check_pids(char **argv)
{
	int n, limit = number(argv[0]);
	pid_t pid = 0;

	for (n = 1; n < limit * 4; n++) {
		pid = fork();
		if (pid == 0) {
			pause();
			_exit(0);
		}
		if (pid < 0)
			break;
	}
	want(pid < 0 && errno == EAGAIN);
	/* Process 1 counts; some room for how exactly it is counted. */
	if (n > limit || n < limit - 1)
		say("%d processes under a limit of %d\n", n, limit);
}

/* Processes that ignore TERM and hold the socket open. */
static void check_stubborn(char **argv)
{
	int i;

	for (i = 0; i < 5; i++)
		if (fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			setsid();
			for (;;)
				pause();
		}
	say("ready\n");
	for (;;)
		pause();
}

static void on_term(int sig)
{
	(void)!write(ROOM_CONTROL_FD, "t", 1);
	_exit(0);
}

/* Five processes, one of them a grandchild, each writing a "t" when it is told to end. */
static void check_obedient(char **argv)
{
	int i, ready[2];
	char byte;

	want(fd_pipe(ready) == 0);
	for (i = 0; i < 4; i++)
		if (fork() == 0) {
			signal(SIGTERM, on_term);
			if (i == 3)
				(void)!fork();
			(void)!write(ready[1], "r", 1);
			for (;;)
				pause();
		}
	for (i = 0; i < 5; i++)
		want(read(ready[0], &byte, 1) == 1);
	/* Process 1 has no handler and stays: it is not its death that ends the others. */
	say("ready\n");
	for (;;)
		pause();
}

/* The root is a directory of the host: written to, and the host's copy untouched
 * (INV-HOST-UNCHANGED). Links in it lead nowhere outside (INV-INSIDE-PATHS). */
static void check_dir_root(char **argv)
{
	char text[64] = "";
	int fd;

	fd = open("/marker", O_RDWR);
	want(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strcmp(text, "of the host") == 0);
	want(fd >= 0 && pwrite(fd, "changed", 7, 0) == 7);
	want(mkdir("/made", 0755) == 0);
	want(unlink("/doomed") == 0);
	fd = open("/etc/resolv.conf", O_RDONLY);
	want(fd >= 0);
	want(exists("/etc/kept"));
	want(exists("/dev/null") && exists("/proc/self/exe") && exists("/sys/devices"));
	want(exists("/escape"));
	/* A link out of the root leads nowhere. */
	refused(ENOENT, open(argv[0], O_RDONLY));
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		say("%s: %s\n", path, err_errno_text(errno));
	close(fd);
}

/* The host's view under a layer: everything can be changed. argv: "first", or "again" in a room
 * that continues. */
static void check_layers(char **argv)
{
	bool again = strcmp(argv[0], "again") == 0;

	if (again) {
		want(exists("/made/file") && exists("/usr/local/bin/made") && exists("/usr/made"));

		want(!exists("/etc/profile") && exists("/root/dir/below"));
		want(exists("/workspace"));
	}
	want(exists("/usr/bin/env") && access("/bin/sh", X_OK) == 0);
	want(exists("/etc/passwd") && exists("/etc/ssl/certs") && exists("/dev/null"));
	mkdir("/made", 0755);
	put("/made/file", "x");
	put("/usr/local/bin/made", "x");
	put("/usr/made", "x");
	put("/etc/hosts", "x");
	put("/etc/nsswitch.conf", "x");
	put("/tmp/gone", "x");
	mkdir("/root/dir", 0700);
	put("/root/dir/below", "x");
	want(again || unlink("/etc/profile") == 0);
	unlink("/usr/share/zoneinfo/Zulu");
	/* The layers themselves are out of reach. */
	want(!exists("/kept") && !exists("/upper") && !exists("/lower") && !exists("/work"));
}

static const struct {
	const char *name;
	void (*run)(char **argv);
} checks[] = {{"identity", check_identity}, {"files", check_files}, {"mounts", check_mounts},
	{"seccomp", check_seccomp}, {"no-network", check_no_network}, {"gateway", check_gateway},
	{"trust", check_trust}, {"memory", check_memory}, {"pids", check_pids},
	{"stubborn", check_stubborn}, {"obedient", check_obedient}, {"dir-root", check_dir_root},
	{"layers", check_layers}};

enum { ARGUMENTS_MAX = 15 };

void inside_tell(int control_fd, const char *const *args, size_t n)
{
	unsigned char count = (unsigned char)n;

	(void)!fd_write_all(control_fd, &count, 1);
	for (size_t i = 0; i < n; i++)
		(void)!fd_write_all(control_fd, args[i], strlen(args[i]) + 1);
}

/* Up to NULL, pointers into text. False if they did not come. */
static bool hear(char *text, size_t max, char *ret[ARGUMENTS_MAX + 1])
{
	unsigned char count = 0;

	if (read(ROOM_CONTROL_FD, &count, 1) != 1 || count > ARGUMENTS_MAX)
		return false;
	for (unsigned i = 0; i < count; i++) {
		ret[i] = text;
		do {
			if (max-- == 0 || read(ROOM_CONTROL_FD, text, 1) != 1)
				return false;
		} while (*text++);
	}
	ret[count] = NULL;
	return count > 0;
}

int inside_main(void)
{
	char text[4096], *argv[ARGUMENTS_MAX + 1];
	bool heard = hear(text, sizeof(text), argv);

	for (size_t i = 0; heard && i < ARRAY_SIZE(checks); i++)
		if (strcmp(argv[0], checks[i].name) == 0) {
			checks[i].run(argv + 1);
			say("done\n");
			return 7;
		}
	say("no such check\n");
	return 1;
}
