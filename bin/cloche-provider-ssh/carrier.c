/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a connection is an ssh in the background that opens sessions for others
 * (ControlMaster). It is made apart from the session that becomes the stream: so whatever keeps it
 * from being made is known before the program says that it is a stream, and can be told in words.
 * It ends by itself a minute after its last session.
 *
 * Whoever makes one holds a lock: of two at once, one would stay behind without a socket. Both are
 * found by a digest of the place, as the person calls it: ssh's own (%C) is the same for two
 * machines with one address behind different jump hosts. The lock is a byte of one file, so
 * different places do not wait for one another. Sockets are named relative to the working
 * directory, as the length of a socket's path is limited.
 *
 * Nothing asks the person anything (BatchMode): an unknown key of a host, a passphrase or a
 * password is an error, whose hint is to say "ssh PLACE" once. */
#include "carrier.h"
#include "asked/asked.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/sha256.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKETS "ssh" /* in the runtime directory */

enum { LOCAL_SEC = 5, ANSWER_SEC = 5, HEAR_MAX = 64 };
enum { WORDS_MAX = 48, SAID_MAX = 4096, COMMAND_MAX = 120 * 1024, SSH_FAILED = 255 };
enum { LOCK_DIGITS = 15 /* an offset in a file */ };

/* For each ssh. What could add a byte to the stream or take one from it is off, whatever a person's
 * configuration says, and so is what could ask, or lead from there to here. A dead link is noticed
 * after 15 seconds. */
static const char *const always[] = {"-T", "-a", "-x", "-k", "-e", "none", "-o", "BatchMode=yes",
	"-o", "LogLevel=ERROR", "-o", "ClearAllForwardings=yes", "-o", "Tunnel=no", "-o",
	"ControlMaster=no", "-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none", "-o",
	"ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=18", NULL};

/* One run of ssh: words before the place, the command there or NULL. */
struct call {
	const char *const *words;
	const char *command;
	int patience_sec;
};

static void carrier_make_argv(
	const struct carrier *c, const struct call *call, const char *ret[WORDS_MAX])
{
	size_t n = 0;

	ret[n++] = c->ssh;
	/* Of two values for one option the first one counts. */
	for (size_t i = 0; call->words && call->words[i]; i++)
		ret[n++] = call->words[i];
	for (size_t i = 0; always[i]; i++)
		ret[n++] = always[i];
	ret[n++] = "-S";
	ret[n++] = c->name;
	ret[n++] = "--";
	ret[n++] = c->place;
	ret[n++] = call->command;
	ret[n] = NULL;
}

static void carrier_make_name(const char *place, char ret[CARRIER_NAME + 1])
{
	char digest[SHA256_HEX_MAX];

	sha256_text(str_from(place), digest);
	str_copy(ret, CARRIER_NAME + 1, str_from(digest));
}

int carrier_init(struct carrier *ret, const char *place, struct cloche_err *err)
{
	_cleanup_fd_ int base = rundir_open(err), dir = -1;
	int r;

	if (base < 0)
		return base;
	*ret = (struct carrier){.ssh = program_on_path("ssh"), .place = place};
	carrier_make_name(place, ret->name);
	if (!ret->ssh) {
		err_set(err, E_UNSUPPORTED, "ssh is not installed");
		err_hint(err, "apt-get install openssh-client");
		return -E_UNSUPPORTED;
	}
	if (mkdirat(base, SOCKETS, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make a directory for connections");
	dir = openat(base, SOCKETS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_sys(err, errno, "open the directory of connections");
	r = fs_check_private(dir, SOCKETS, err);
	if (r == 0 && fchdir(dir) < 0)
		r = err_sys(err, errno, "go to the directory of connections");
	return r;
}

/* Return a descriptor that holds the lock until it is closed, or a negative error. */
static int carrier_lock(const struct carrier *c, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open("lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	uint64_t number = 0;

	(void)!parse_hex_u64(str_make(c->name, LOCK_DIGITS), &number);
	one.l_start = (off_t)number;
	while (fd >= 0 && fcntl(fd, F_OFD_SETLKW, &one) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "lock the connections");
	return fd >= 0 ? TAKE_FD(fd) : err_sys(err, errno, "lock the connections");
}

/* Add what is there to said, which keeps the last of it: the other machine may say any amount.
 * Return false at the end. */
static bool carrier_hear(int fd, struct buf *said)
{
	char text[SAID_MAX / 4];

	for (int i = 0; i < HEAR_MAX; i++) {
		ssize_t n = read(fd, text, sizeof(text));

		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		if ((size_t)n > buf_room(said))
			buf_consume(said, (size_t)n - buf_room(said));
		if (buf_add(said, text, (size_t)n) < 0)
			return false;
	}
	return true;
}

/* Wait for a child and hear what it says; kill it when its time is over. Return its exit status, or
 * -1 if it has none. */
static int carrier_wait(pid_t pid, int pidfd, int errors, int patience_sec, struct buf *said)
{
	uint64_t until = clock_mono_usec() + (uint64_t)patience_sec * (uint64_t)USEC_PER_SEC;
	struct pollfd p[] = {{.fd = pidfd, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
	int status;

	while (!p[0].revents) {
		uint64_t now = clock_mono_usec();
		int r = now < until
				? poll(p, ARRAY_SIZE(p), (int)((until - now) / USEC_PER_MSEC) + 1)
				: 0;

		if (r == 0 || (r < 0 && errno != EINTR))
			break;
		if (r > 0 && p[1].revents && !carrier_hear(errors, said))
			p[1].fd = -1;
	}
	if (!p[0].revents)
		kill(pid, SIGKILL);
	else if (p[1].fd >= 0)
		(void)carrier_hear(errors, said);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return p[0].revents && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Run ssh without input and output. Return its exit status, -1 if it took too long, or another
 * negative error. said gets the end of what it wrote to standard error. */
static int carrier_call(const struct carrier *c, const struct call *call, struct buf *said)
{
	_cleanup_fd_ int errors = -1, theirs = -1, pidfd = -1;
	const char *argv[WORDS_MAX];
	struct program_spawn spawn = {.path = c->ssh, .argv = argv, .env = environ};
	int pair[2];
	pid_t pid;

	if (fd_pipe(pair) < 0)
		return -E_SYSTEM;
	errors = pair[0];
	theirs = pair[1];
	carrier_make_argv(c, call, argv);
	spawn.stdio[0] = spawn.stdio[1] = -1;
	spawn.stdio[2] = theirs;
	if (fd_set_nonblock(errors, true) < 0 || program_start(&spawn, &pid, &pidfd, NULL) < 0)
		return -E_SYSTEM;
	return carrier_wait(pid, pidfd, errors, call->patience_sec, said);
}

/* Set an error of what ssh has said. */
static int carrier_fail(
	const struct carrier *c, int status, const struct buf *said, struct cloche_err *err)
{
	struct str why = asked_last_line(buf_str(said));

	if (status == -1)
		why = STR("it takes too long");
	else if (!why.n)
		why = STR("it fails without a word");
	if (str_starts(why, STR("ssh: ")))
		why = str_from_index(why, strlen("ssh: "));
	err_set(err, E_UNSUPPORTED, "ssh %s: %.*s", c->place, STR_FMT(why));
	err_hint(err,
		"run \"ssh %s\" once yourself: it says more, and asks what is only a "
		"person's to answer",
		c->place);
	return -E_UNSUPPORTED;
}

/* Return whether somebody listens for sessions. */
static bool carrier_is_there(const struct carrier *c)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	str_copy(addr.sun_path, sizeof(addr.sun_path), str_from(c->name));
	return fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
}

/* Return whether the place answers by it. */
static bool carrier_answers(const struct carrier *c)
{
	_cleanup_(buf_donep) struct buf said = BUF_INIT(SAID_MAX);
	int status = carrier_call(c, &(struct call){NULL, "exec sh -c :", ANSWER_SEC}, &said);

	return status >= 0 && status != SSH_FAILED;
}

/* Others may still use it: it only takes no new sessions. */
static void carrier_give_up(const struct carrier *c)
{
	static const char *const words[] = {"-O", "stop", NULL};
	_cleanup_(buf_donep) struct buf said = BUF_INIT(SAID_MAX);

	(void)carrier_call(c, &(struct call){words, NULL, LOCAL_SEC}, &said);
	(void)unlink(c->name);
}

int carrier_connect(const struct carrier *c, bool doubt, int patience_sec, struct cloche_err *err)
{
	static const char *const words[] = {
		"-f", "-N", "-o", "ControlMaster=auto", "-o", "ControlPersist=60", NULL};
	_cleanup_(buf_donep) struct buf said = BUF_INIT(SAID_MAX);
	_cleanup_fd_ int lock = carrier_lock(c, err);
	int status;

	if (lock < 0)
		return lock;
	if (carrier_is_there(c)) {
		if (!doubt || carrier_answers(c))
			return 0;
		carrier_give_up(c);
	}
	status = carrier_call(c, &(struct call){words, NULL, patience_sec}, &said);
	return status == 0 ? 0 : carrier_fail(c, status, &said, err);
}

/* Write the command that has the script run there; heap, or NULL with err set. */
static char *carrier_command(const char *script, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf command = BUF_INIT(COMMAND_MAX);
	int r = remote_add_command(&command, str_from(script));
	char *copy = r == 0 ? str_dup(buf_str(&command)) : NULL;

	if (r == -E2BIG)
		err_set(err, E_LIMIT, "the script for the other place is too long");
	else if (!copy)
		err_nomem(err);
	return copy;
}

int carrier_run(
	const struct carrier *c, const char *script, int patience_sec, struct cloche_err *err)
{
	_cleanup_(freep) char *command = carrier_command(script, err);
	_cleanup_(buf_donep) struct buf said = BUF_INIT(SAID_MAX);
	int status;

	if (!command)
		return err ? -err->code : -E_LIMIT;
	status = carrier_call(c, &(struct call){NULL, command, patience_sec}, &said);
	if (status > 0 && status != SSH_FAILED)
		return err_set(err, E_UNSUPPORTED, "what was run on %s ended with %d%s%.*s",
			c->place, status, buf_len(&said) ? ": " : "",
			STR_FMT(asked_last_line(buf_str(&said))));
	return status == 0 ? 0 : carrier_fail(c, status, &said, err);
}

int carrier_become(const struct carrier *c, const char *script, struct cloche_err *err)
{
	_cleanup_(freep) char *command = carrier_command(script, err);
	const char *argv[WORDS_MAX];

	if (!command)
		return err ? -err->code : -E_LIMIT;
	carrier_make_argv(c, &(struct call){.command = command}, argv);
	asked_become("ssh", c->ssh, argv);
}
