/* SPDX-License-Identifier: Apache-2.0 */
#include "files_session.h"
#include "cli.h"
#include "interrupt.h"
#include "terminal_filter.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Readable after a signal, for functions that wait for a stream. */
static int interrupted = -1;

static void files_session_on_interrupt(void *user, int signal_number, unsigned count)
{
	const uint64_t one = 1;

	(void)!write(interrupted, &one, sizeof(one));
	cloche_files_cancel(user);
}

int files_open(const char *id, const char *user, cloche_files **ret, cloche_err *err)
{
	cloche_instance *instance = NULL;
	uint32_t uid = 0, gid = 0;
	int r = cloche_instance_open(id, &instance, err);

	if (r == 0 && user)
		r = find_user(instance, user, &uid, &gid, err);
	if (r == 0)
		r = cloche_files_open(instance, uid, gid, ret, err);
	cloche_instance_free(instance);
	if (r == 0) {
		interrupted = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		interrupt_catch(files_session_on_interrupt, *ret);
	}
	return r;
}

int files_failed(const cloche_err *err)
{
	int signal_number = interrupt_signal();

	return signal_number ? 128 + signal_number : complain(err);
}

/* Return false if a signal has arrived. */
static bool wait_for(int fd, short events)
{
	struct pollfd p[2] = {{.fd = fd, .events = events}, {.fd = interrupted, .events = POLLIN}};

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return !p[1].revents;
}

long stream_source(void *user, void *data, size_t size)
{
	struct stream *s = user;
	ssize_t n;

	do {
		if (!wait_for(s->fd, POLLIN))
			return -1;
		n = read(s->fd, data, size);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n < 0)
		s->error = errno;
	return n;
}

int stream_sink(void *user, const void *data, size_t length)
{
	struct stream *s = user;
	const char *p = data;

	while (length > 0) {
		ssize_t n;

		if (!wait_for(s->fd, POLLOUT))
			return -1;
		n = write(s->fd, p, length);
		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			s->error = errno;
			return -1;
		}
		if (n > 0) {
			p += n;
			length -= (size_t)n;
		}
	}
	return 0;
}

static struct terminal_filter shown;
static bool showing;

int stream_show(void *user, const void *data, size_t length)
{
	struct stream *s = user;

	if (!showing)
		terminal_filter_open(&shown, STDOUT_FILENO, false);
	showing = true;
	if (shown.kind == TERMINAL_UNTOUCHED)
		return stream_sink(user, data, length);
	if (terminal_filter_write(&shown, STDOUT_FILENO, data, length))
		return 0;
	s->error = errno;
	return -1;
}

void stream_show_end(void)
{
	if (showing)
		(void)terminal_filter_close(&shown, STDOUT_FILENO);
	showing = false;
}

int stream_error(const struct stream *s, int r, const char *what, cloche_err *err)
{
	if (r == 0 || s->error == 0)
		return r;
	memset(err, 0, sizeof(*err));
	err->code = s->error == ENOSPC || s->error == EDQUOT ? CLOCHE_E_NO_SPACE : CLOCHE_E_SYSTEM;
	err->sys_errno = s->error;
	snprintf(err->message, sizeof(err->message), "%s: %s", what, strerror(s->error));
	return -err->code;
}
