/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one connection, one operation at a time, everything blocking. The worker has
 * the rights of a process of the room and holds only its end of the socket, so an attacker gains
 * nothing by taking it over, and a room that kills it harms only itself. It ends with its
 * client. */
#include "fileworker/serve.h"
#include "base/clock.h"
#include "base/fd.h"
#include "fileworker/serve_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static const server_op ops[FILES_OP_END_] = {
	[FILES_OP_READ] = serve_read,
	[FILES_OP_WRITE] = serve_write,
	[FILES_OP_LIST] = serve_list,
	[FILES_OP_STAT] = serve_stat,
	[FILES_OP_READLINK] = serve_readlink,
	[FILES_OP_MKDIR] = serve_mkdir,
	[FILES_OP_REMOVE] = serve_remove,
	[FILES_OP_RENAME] = serve_rename,
	[FILES_OP_CHMOD] = serve_chmod,
	[FILES_OP_SYMLINK] = serve_symlink,
	[FILES_OP_WATCH] = serve_watch,
	[FILES_OP_TAR_GET] = serve_tar_get,
	[FILES_OP_TAR_PUT] = serve_tar_put,
	[FILES_OP_WRITE_SMALL] = serve_write_small,
};

int server_break(struct server *s, int r)
{
	if (!s->broken) {
		s->broken = true;
		s->broken_r = r;
	}
	return r;
}

int server_flush(struct server *s)
{
	int r = chan_flush_wait(&s->c, -1);

	return r < 0 ? server_break(s, r) : 0;
}

/* While requests are waiting here, their answers are kept, and sent together. */
int server_recv(struct server *s, struct chan_frame *ret)
{
	int r = chan_recv(&s->c, ret);

	return r == 0 ? chan_recv_wait(&s->c, ret, -1) : r;
}

int server_check(struct server *s)
{
	struct chan_frame f;
	int r = chan_recv(&s->c, &f);

	if (r == 0)
		return 0;
	if (r < 0)
		return server_break(s, r);
	chan_frame_done(&f);
	if (f.type != FILES_CANCEL || f.payload.n)
		return server_break(s, -EPROTO);
	return -ECANCELED;
}

int server_beat(struct server *s)
{
	uint64_t now = clock_mono_usec();
	int r;

	if (now - s->beat_usec < USEC_PER_SEC)
		return 0;
	s->beat_usec = now;
	r = files_send_empty(&s->c, FILES_ALIVE);
	if (r < 0)
		return server_break(s, r);
	r = server_flush(s);
	return r < 0 ? r : server_check(s);
}

static int answer(struct server *s, int r, struct files_error *e)
{
	if (r < 0 && e->sys_errno == 0)
		files_fail(e, -r, STR_NULL, NULL);
	r = r < 0 ? files_send_error(&s->c, e) : files_send_moved(&s->c, &s->moved);
	return r < 0 ? server_break(s, r) : 0;
}

static int run(struct server *s, const struct files_request *q)
{
	struct files_error e = {0};
	int r;

	s->moved = (struct files_moved){0};
	s->answered = false;
	s->beat_usec = clock_mono_usec();
	r = ops[q->op](s, q, &e);
	if (s->broken)
		return s->broken_r;
	return s->answered ? 0 : answer(s, r, &e);
}

int server_path(const struct server *s, struct str path, char **ret)
{
	int r = places_find(s->places, s->places_n, path, ret);

	if (r == 0) {
		*ret = str_dup(path);
		r = *ret ? 0 : -ENOMEM;
	}
	return r < 0 ? r : 0;
}

/* Copy the strings of the request, as the next frame overwrites them. */
static int on_request(struct server *s, struct str payload)
{
	_cleanup_(freep) char *path = NULL, *other = NULL;
	struct files_request q;
	int r;

	if (!files_get_request(payload, &q))
		return -EPROTO;
	r = server_path(s, q.path, &path);
	if (r < 0)
		return r;
	if (q.op == FILES_OP_RENAME)
		r = server_path(s, q.other, &other);
	else
		other = str_dup(q.other);
	if (r < 0 || !other)
		return r < 0 ? r : -ENOMEM;
	q.path = str_from(path);
	q.other = str_from(other);
	return run(s, &q);
}

static int serve(struct server *s)
{
	int r = files_send_ready(&s->c, &(struct files_ready){.version = FILES_VERSION});

	while (r == 0) {
		struct chan_frame f;

		r = server_recv(s, &f);
		if (r < 0)
			break;
		r = 0;
		if (f.fds_n || s->c.in_fds_n)
			r = -EPROTO;
		else if (f.type == FILES_REQUEST)
			r = on_request(s, f.payload);
		else if (f.type != FILES_CANCEL)
			r = -EPROTO;
		chan_frame_done(&f);
	}
	return r == -EPIPE ? 0 : r;
}

int files_serve(int fd, int root, const char *base, const struct place *places, size_t n)
{
	struct server s = {.root = root, .places = places, .places_n = n};
	_cleanup_(freep) char *here = NULL;
	int r;

	r = chan_init(&s.c, fd, FILES_MAX_PAYLOAD, FILES_MAX_OUT);
	if (r == 0)
		r = server_path(&s, str_from(base), &here);
	s.base = str_from(here);
	if (r == 0)
		r = serve(&s);
	chan_done(&s.c);
	return r;
}

int files_serve_main(int argc, char **argv)
{
	int at = 2;
	const char *base = argc > at && argv[at][0] == '/' ? argv[at++] : "";
	_cleanup_(freep) struct place *places = calloc((size_t)argc, sizeof(*places));
	size_t n = 0;
	_cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	/* Descriptor 0 becomes /dev/null, so that no new file lands on a standard descriptor. */
	_cleanup_fd_ int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Commands of the same user must not take the socket, or act through this process. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return 1;
	if (!places || root < 0 || fd < 0 || null < 0 || dup2(null, 0) < 0)
		return 1;
	for (; at + 2 < argc && strcmp(argv[at], "at") == 0; at += 3)
		places[n++] = (struct place){argv[at + 1], argv[at + 2]};
	/* Exceeding RLIMIT_FSIZE is an error to report, not a reason to die. */
	signal(SIGXFSZ, SIG_IGN);
	return files_serve(TAKE_FD(fd), root, base, places, n) < 0;
}
