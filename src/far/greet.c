/* SPDX-License-Identifier: Apache-2.0 */
#include "far/greet.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "far/script.h"
#include "job/job.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LINES_MAX = 100, /* what a person's own start-up files may print before */
	LINE_MAX_BYTES = 512,
};

static int greet_fail(int code, const char *hint, const char *text, struct cloche_err *err)
{
	err_set(err, code, "%s", text);
	err_hint(err, "%s", hint);
	return -code;
}

int greet_wait(const struct greet *g, int fd, short events, struct cloche_err *err)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now = clock_mono_usec();
	uint64_t left = (uint64_t)g->patience_sec * 1000;
	int n;

	if (g->until)
		left = MIN(left, now < g->until ? (g->until - now) / USEC_PER_MSEC + 1 : 0);
	n = job_wait(&p, 1, (int)left);
	if (n > 0)
		return 0;
	if (n < 0)
		return err_sys(err, -n, "wait for the other machine");
	if (g->until && clock_mono_usec() >= g->until)
		err_set(err, E_NETWORK, "the other machine takes too long");
	else
		err_set(err, E_NETWORK, "the other machine says nothing for %d s", g->patience_sec);
	err_hint(err, "see whether a command ends there, and whether the login shell waits for "
		      "something");
	return -E_NETWORK;
}

/* Read a line, byte by byte, since what follows belongs to others. Return its length, or negative.
 */
static int greet_read_line(const struct greet *g, char ret[LINE_MAX_BYTES], struct cloche_err *err)
{
	size_t n = 0;

	while (n < LINE_MAX_BYTES - 1) {
		int e = greet_wait(g, g->from, POLLIN, err);
		ssize_t got = e < 0 ? 0 : read(g->from, ret + n, 1);

		if (e < 0)
			return e;
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return greet_fail(E_NETWORK,
				"the place needs sh, uname, mkdir, head, chmod, cut, ln, mv, rm, "
				"sha256sum "
				"and a home directory that programs may run from",
				"the connection ended before cloche-far ran there", err);
		if (ret[n] == '\n')
			break;
		n++;
	}
	ret[n] = '\0';
	return (int)n;
}

/* Send the program for that machine. */
static int greet_send_program(const struct greet *g, const char *machine, struct cloche_err *err)
{
	_cleanup_fd_ int fd = script_open_program(machine, err);
	struct stat st;
	off_t at = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "read the program for the other machine");
	while (at < st.st_size) {
		int e = greet_wait(g, g->to, POLLOUT, err);
		ssize_t n;

		if (e < 0)
			return e;
		n = sendfile(g->to, fd, &at, (size_t)(st.st_size - at));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_sys(err, errno, "copy cloche-far to the other machine");
	}
	return 0;
}

/* Return what follows a word in a line, or NULL. It may stand behind what has no line end. */
static const char *greet_find(const char *line, const char *word)
{
	const char *at = strstr(line, word);

	return at ? at + strlen(word) : NULL;
}

/* What follows is sent only when the program says that it runs: a head that reads more than it was
 * asked for (busybox) would keep it. */
int greet_place(const struct greet *g, bool *ret_copied, struct cloche_err *err)
{
	char line[LINE_MAX_BYTES];
	const char *behind;

	*ret_copied = false;
	for (int i = 0; i < LINES_MAX; i++) {
		int e = greet_read_line(g, line, err);

		if (e < 0)
			return e;
		behind = *ret_copied ? NULL : greet_find(line, SCRIPT_NEED);
		if (behind) {
			e = greet_send_program(g, behind, err);
			if (e < 0)
				return e;
			*ret_copied = true;
			continue;
		}
		behind = greet_find(line, SCRIPT_HAVE);
		if (behind && !behind[0])
			return 0;
		if (greet_find(line, SCRIPT_LACKS))
			return greet_fail(E_UNSUPPORTED,
				"rooms can be made on x86_64 and aarch64, if cloche was installed "
				"with the program for that processor",
				"there is no cloche-far for the other machine's processor", err);
	}
	return greet_fail(E_PROTOCOL,
		"what the login shell there prints for itself has to end: have its start-up files "
		"print nothing if nobody looks",
		"the other machine says other things than the room", err);
}
