/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a supervisor that we start is a child of this process and has to be reaped.
 * It lives a little longer than the sandbox, to remove directories, and nothing waits for that. So
 * a supervisor that still runs when its client is freed is reaped when the next client is made or
 * freed. */
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "client/client_internal.h"
#include "ipc/roomctl.h"
#include "ipc/rundir.h"
#include "job/job.h"
#include "provider/names.h"
#include "provider/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUT = 2 * CTL_MAX_PAYLOAD };

static pthread_mutex_t zombies_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t *zombies;
static size_t zombies_n, zombies_cap;

/* Reap the supervisors that have ended, and remember pid (0: none). Without memory for it, wait for
 * pid, which is about to end. */
static void reap_later(pid_t pid)
{
	bool kept = pid <= 0 || waitpid(pid, NULL, WNOHANG) != 0;
	pid_t *more;
	size_t n = 0;

	pthread_mutex_lock(&zombies_lock);
	for (size_t i = 0; i < zombies_n; i++)
		if (waitpid(zombies[i], NULL, WNOHANG) == 0)
			zombies[n++] = zombies[i];
	zombies_n = n;
	more = kept ? NULL : array_room(zombies, zombies_n, &zombies_cap, sizeof(*zombies));
	if (more) {
		zombies = more;
		zombies[zombies_n++] = pid;
		kept = true;
	}
	pthread_mutex_unlock(&zombies_lock);
	if (!kept)
		waitpid(pid, NULL, 0);
}

static int make_socketpair(int *ret_a, int *ret_b)
{
	int fds[2], r = fd_socketpair(SOCK_STREAM, fds);

	if (r < 0)
		return r;
	*ret_a = fds[0];
	*ret_b = fds[1];
	return 0;
}

/* Give the supervisor descriptors of what is granted, from CTL_FIRST_SOURCE on. */
static unsigned add_sources(const struct room_spec *room, struct program_fd *fds)
{
	unsigned n = 0;

	if (room->root_fd >= 0) {
		fds[n] = (struct program_fd){room->root_fd, CTL_FIRST_SOURCE + (int)n};
		n++;
	}
	for (size_t i = 0; i < room->mounts_n; i++) {
		if (room->mounts[i].guard)
			continue;
		fds[n] = (struct program_fd){room->mounts[i].fd, CTL_FIRST_SOURCE + (int)n};
		n++;
	}
	return n;
}

static int start_supervisor(
	struct client *c, const struct client_start *start, int theirs, struct cloche_err *err)
{
	const struct room_spec *room = start->room;
	_cleanup_(freep) struct program_fd *fds = calloc(room->mounts_n + 2, sizeof(*fds));
	char sources[16];
	const char *const argv[] = {"cloche-supervisor", c->detached ? "--detached" : sources,
		c->detached ? sources : NULL, NULL};
	const char *provider = start->m.provider;
	struct program_spawn spawn = {.argv = argv,
		.fds = fds,
		.stdio = {-1, -1, -1},
		.service = room->place || (provider && provider_is_elsewhere(provider))};
	unsigned n;
	int r;

	if (!fds)
		return err_nomem(err);
	fds[0] = (struct program_fd){theirs, CTL_FD};
	n = add_sources(room, fds + 1);
	snprintf(sources, sizeof(sources), "%u", n);
	spawn.fds_n = n + 1;
	/* For its last words only; everything else comes as messages. */
	if (fcntl(2, F_GETFD) >= 0)
		spawn.stdio[2] = 2;
	r = program_start(&spawn, &c->pid, NULL, err);
	/* Where the program is missing, another one would be of no use. */
	if (r == -E_NOT_FOUND && err && access(ROOMCTL_INIT_PATH, F_OK) == 0) {
		err->hint[0] = '\0';
		err_hint(err, ROOMCTL_INSIDE_HINT);
	}
	return r;
}

static int send_start(struct client *c, const struct client_start *start, int config_fd)
{
	int fds[3 + CTL_MAX_LOGINS], n = 0;
	_cleanup_(buf_donep) struct buf room = BUF_INIT(CTL_MAX_ROOM);
	struct wire_out w = wire_out(&room);
	struct ctl_start m = start->m;
	int r;

	m.version = CTL_VERSION;
	m.id = c->id;
	m.gateway = start->room->net == ROOM_NET_GATEWAY;
	m.recorded = start->record_dirs != NULL;
	if (m.gateway)
		fds[n++] = config_fd;
	for (int i = 0; m.recorded && i < 2; i++)
		fds[n++] = start->record_dirs[i];
	for (size_t i = 0; i < CTL_MAX_LOGINS && i < strv_count(m.logins); i++)
		fds[n++] = start->login_dirs[i];
	room_spec_put(&w, start->room);
	if (w.error < 0)
		return w.error;
	m.room = buf_str(&room);
	r = ctl_send_start(&c->chan, &m, fds);
	/* The socket is new, so this is normally sent at once; any rest is sent while the client
	 * waits. */
	return r < 0 ? r : chan_flush(&c->chan);
}

static int client_alloc(struct client **ret, struct cloche_err *err)
{
	_cleanup_(client_freep) struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_nomem(err);
	c->chan.fd = c->wake_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	c->chunk = malloc(CLIENT_CHUNK);
	if (!c->chunk)
		return err_nomem(err);
	c->wake_fd = fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (c->wake_fd < 0)
		return err_sys(err, -c->wake_fd, "make an event descriptor");
	c->loop = loop_new();
	if (!c->loop)
		return err_sys(err, errno, "make an event loop");
	r = loop_io_add(c->loop, &c->wake_io, c->wake_fd, EPOLLIN, client_on_woken);
	if (r < 0)
		return err_sys(err, -r, "watch an event descriptor");
	*ret = TAKE_PTR(c);
	return 0;
}

/* Takes fd. */
static int open_chan(struct client *c, int fd)
{
	int r = chan_init(&c->chan, fd, CTL_MAX_PAYLOAD, MAX_OUT);

	return r < 0 ? r : loop_io_add(c->loop, &c->chan_io, fd, EPOLLIN, client_on_chan);
}

int client_new(const struct client_start *start, struct client **ret, int *ret_config_fd,
	struct cloche_err *err)
{
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_fd_ int ours = -1, theirs = -1, config = -1, config_theirs = -1;
	int r;

	reap_later(0);
	r = client_alloc(&c, err);
	if (r < 0)
		return r;
	if (start->room->id && !rundir_is_id(str_from(start->room->id)))
		return err_set(err, E_USAGE, "\"%s\" is no sandbox id", start->room->id);
	for (size_t i = 0; i < start->room->mounts_n; i++) {
		const struct room_mount *m = &start->room->mounts[i];

		if (!m->guard && m->fd < 0)
			return err_sys(err, -m->fd, "mount %s", m->source);
	}
	if (start->room->id)
		memcpy(c->id, start->room->id, RUNDIR_ID_BYTES + 1);
	else
		rundir_make_id(c->id);
	c->detached = start->m.detached;
	r = make_socketpair(&ours, &theirs);
	if (r == 0 && start->room->net == ROOM_NET_GATEWAY)
		r = make_socketpair(&config, &config_theirs);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	r = open_chan(c, TAKE_FD(ours));
	if (r == 0)
		r = send_start(c, start, config_theirs);
	if (r < 0)
		return err_sys(err, -r, "send the room to its supervisor");
	/* It finds the message, and need not wait for this process. */
	r = start_supervisor(c, start, theirs, err);
	if (r < 0)
		return r;
	*ret_config_fd = TAKE_FD(config);
	*ret = TAKE_PTR(c);
	return 0;
}

/* Use a path through the descriptor, so that the length of the directory's path does not matter. */
static int connect_to(int base, const char *id)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s/" RUNDIR_SOCKET, base,
		id);
	r = job_connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	return r < 0 ? r : fd_lift(TAKE_FD(fd));
}

static int send_attach(struct client *c, int base)
{
	_cleanup_fd_ int dir = openat(base, c->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char word[RUNDIR_WORD_BYTES + 1];
	int r = dir < 0 ? -errno : rundir_word_read(dir, word);

	/* A sandbox that ended meanwhile has neither; its socket says so. */
	if (r == -ENOENT)
		word[0] = '\0';
	else if (r < 0)
		return r;
	return ctl_send_attach(
		&c->chan, &(struct ctl_attach){.version = CTL_VERSION, .word = str_from(word)});
}

int client_attach(int base, const char *id, struct client **ret, struct cloche_err *err)
{
	_cleanup_(client_freep) struct client *c = NULL;
	int fd, r = client_alloc(&c, err);

	if (r < 0)
		return r;
	snprintf(c->id, sizeof(c->id), "%s", id);
	c->guest = true;
	fd = connect_to(base, id);
	if (fd == -ENOENT || fd == -ECONNREFUSED) {
		err_set(err, E_NOT_FOUND, "sandbox %s does not run", id);
		err_hint(err, "\"cloche ps -a\" lists those that there are");
		return -E_NOT_FOUND;
	}
	if (fd < 0)
		return err_sys(err, -fd, "connect to sandbox %s", id);
	r = open_chan(c, fd);
	if (r == 0)
		r = send_attach(c, base);
	if (r < 0)
		return err_sys(err, -r, "speak to sandbox %s", id);
	*ret = TAKE_PTR(c);
	return 0;
}

struct client *client_free(struct client *c)
{
	if (!c)
		return NULL;
	if (c->chan.fd >= 0)
		chan_done(&c->chan);
	if (c->pid > 0)
		reap_later(c->pid);
	fd_close(c->wake_fd);
	pthread_mutex_destroy(&c->lock);
	free(c->chunk);
	free(c->once.text);
	free(c->once.mark);
	loop_free(c->loop);
	free(c);
	return NULL;
}

const char *client_isolation(const struct client *c)
{
	return c->isolation;
}
