/* SPDX-License-Identifier: Apache-2.0 */
#include "session/events.h"
#include "agent/lines.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Theory of operation
 *
 * One process at a time appends (under the directory's lock), each event with one write that ends
 * in a newline. At any instant the file is whole lines and at most one torn line at its end. The
 * next writer ends a torn line, so it stays alone on its line, and readers ignore lines that are
 * not JSON objects. A reader that follows a file never moves beyond the last newline it saw. */

/* A line is at most as long as an event of AGENT_EVENT size with every byte escaped. */
#define LINE_MAX_BYTES ((size_t)512 << 20)
#define CHUNK 65536U

static int write_separator(struct session_events *w, struct cloche_err *err)
{
	char end[2] = {'\n', '\n'};
	const char *add = "\n\n";
	int r;

	if (w->size == 0)
		return 0;
	if (w->size == 1)
		r = pread(w->fd, end + 1, 1, 0) == 1 ? 0 : -EIO;
	else
		r = pread(w->fd, end, 2, (off_t)w->size - 2) == 2 ? 0 : -EIO;
	if (r < 0)
		return err_sys(err, -r, "read the end of " SESSION_EVENTS);
	if (end[1] == '\n')
		add = end[0] == '\n' ? "" : "\n";
	r = fd_write_all(w->fd, add, strlen(add));
	if (r < 0)
		return err_sys(err, -r, "write " SESSION_EVENTS);
	w->size += strlen(add);
	return 0;
}

int session_events_begin(struct session_events *w, int dirfd, struct cloche_err *err)
{
	struct stat st;
	int r;

	session_events_end(w);
	w->fd = fd_lift(openat(dirfd, SESSION_EVENTS,
		O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
	if (w->fd < 0)
		return err_sys(err, errno, "open " SESSION_EVENTS);
	if (fstat(w->fd, &st) < 0)
		r = err_sys(err, errno, "stat " SESSION_EVENTS);
	else if (!S_ISREG(st.st_mode))
		r = err_set(err, E_CORRUPT, SESSION_EVENTS " is not a regular file");
	else {
		w->size = (uint64_t)st.st_size;
		r = write_separator(w, err);
	}
	if (r < 0)
		session_events_end(w);
	w->offset = w->size;
	return r;
}

int session_events_append(struct session_events *w, const json_t *event, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(LINE_MAX_BYTES);
	int r = json_text_write(&line, event, 0);

	if (r == 0)
		r = buf_add_char(&line, '\n');
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 || w->size - w->offset + buf_len(&line) > SESSION_EVENTS_MAX)
		return 0;
	r = fd_write_all(w->fd, buf_data(&line), buf_len(&line));
	if (r < 0) {
		/* Best effort: the next writer ends a torn line anyway. */
		if (ftruncate(w->fd, (off_t)w->size) < 0)
			(void)errno;
		return err_sys(err, -r, "write " SESSION_EVENTS);
	}
	w->size += buf_len(&line);
	return 0;
}

void session_events_end(struct session_events *w)
{
	w->fd = fd_close(w->fd);
	*w = SESSION_EVENTS_INIT;
}

/* Open for reading at offset. *ret is -1 if there is no file. */
static int open_at(int dirfd, uint64_t offset, int *ret, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(
		dirfd, SESSION_EVENTS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno != ENOENT)
		return err_sys(err, errno, "open " SESSION_EVENTS);
	if (fd >= 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)
		return err_sys(err, errno, "seek in " SESSION_EVENTS);
	*ret = TAKE_FD(fd);
	return 0;
}

static ssize_t read_some(int fd, char *to, size_t n)
{
	ssize_t got;

	do
		got = read(fd, to, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int add_line(struct str line, json_t *events)
{
	_cleanup_json_ json_t *event = NULL;
	int r = line.n ? json_text_read(line, JSON_ALLOW_NUL, &event, NULL) : 0;

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return json_is_object(event) && json_array_append(events, event) < 0 ? -ENOMEM : 0;
}

#define END_OF_REPLY (-ECANCELED)

static int reply_line(struct str line, void *events)
{
	return line.n == 0 ? END_OF_REPLY : add_line(line, events);
}

int session_events_reply_at(int dirfd, uint64_t offset, json_t *events, struct cloche_err *err)
{
	struct lines lines = LINES_INIT(LINE_MAX_BYTES);
	_cleanup_fd_ int fd = -1;
	ssize_t n = 1;
	int r = open_at(dirfd, offset, &fd, err);

	if (r < 0)
		return r;
	while (fd >= 0 && r == 0 && n > 0) {
		char chunk[CHUNK];

		n = read_some(fd, chunk, sizeof(chunk));
		if (n > 0)
			r = lines_feed(&lines, str_make(chunk, (size_t)n), reply_line, events);
		else
			r = n < 0 ? (int)n : lines_end(&lines, reply_line, events);
	}
	lines_done(&lines);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 && r != END_OF_REPLY ? err_sys(err, -r, "read " SESSION_EVENTS) : 0;
}
