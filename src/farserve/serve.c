/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one process, one loop. It makes the rooms itself, so they end with it,
 * however it ends. It trusts neither its clients nor what runs in the rooms: the first have to show
 * a token, or to be on this machine; the others are reached by init's protocol alone. */
#include "farserve/serve.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "base/sha256.h"
#include "farserve/program.h"
#include "farside/fardir.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_VARIABLE "CLOCHE_FAR_TOKEN"

enum { SERVE_BACKLOG = 128 };

/* --- the token --- */

static int serve_set_token(struct serve *s, struct str token, struct cloche_err *err)
{
	struct sha256 h;

	if (token.n < OPTIONS_TOKEN_MIN || !str_is_visible(token)) {
		err_set(err, E_USAGE,
			"the token needs at least %d visible ASCII characters and no spaces",
			OPTIONS_TOKEN_MIN);
		err_hint(err, "make one by: head -c 24 /dev/urandom | base64");
		return -E_USAGE;
	}
	sha256_init(&h);
	sha256_add(&h, token);
	sha256_bytes(&h, s->token);
	s->has_token = true;
	return 0;
}

static int serve_read_token_file(struct serve *s, const char *path, struct cloche_err *err)
{
	struct buf text = BUF_INIT(OPTIONS_TOKEN_MAX);
	int r = fd_read_file(AT_FDCWD, path, &text, err);
	struct str token = buf_str(&text);

	if (r == 0)
		r = serve_set_token(s, str_next_line(&token), err);
	buf_done_wiped(&text);
	return r;
}

/* Only a digest of it stays in this process, and nothing in its environment. */
static int serve_find_token(struct serve *s, struct cloche_err *err)
{
	char *value = getenv(TOKEN_VARIABLE);
	int r = 0;

	if (s->options.token_file)
		r = serve_read_token_file(s, s->options.token_file, err);
	else if (value)
		r = serve_set_token(s, str_from(value), err);
	if (value)
		explicit_bzero(value, strlen(value));
	unsetenv(TOKEN_VARIABLE);
	if (r < 0 || s->has_token || s->options.is_loopback)
		return r;
	err_set(err, E_USAGE, "without a token only this machine may be served");
	err_hint(err, "set %s or --token-file FILE, or listen on 127.0.0.1", TOKEN_VARIABLE);
	return -E_USAGE;
}

/* --- start --- */

static int serve_open_listener(struct serve *s, struct cloche_err *err)
{
	int on = 1;

	s->listener =
		socket(s->options.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0 ||
		setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(s->listener, (struct sockaddr *)&s->options.addr, s->options.addr_n) < 0 ||
		listen(s->listener, SERVE_BACKLOG) < 0 ||
		getsockname(s->listener, (struct sockaddr *)&s->options.addr, &s->options.addr_n) <
			0)
		return err_sys(err, errno, "listen on that address");
	return 0;
}

/* Choose the first provider that can make a room here. */
static int serve_choose(struct serve *s, struct buf *words, struct cloche_err *err)
{
	const struct provider *all[] = {&native_provider, &landlock_provider, &subprocess_provider};
	size_t first = s->options.no_room ? 2 : 0, end = first || s->options.try_room ? 3 : 2;
	struct cloche_err why = CLOCHE_ERR_INIT;

	for (size_t i = first; i < end; i++) {
		int r;

		buf_clear(words);
		s->provider = all[i];
		r = session_try(s, words, &why);
		/* What runs as this user must not look into this process. */
		if (r == 0 && !serve_has_rooms(s))
			secret_harden_process();
		if (r == 0)
			return 0;
		/* What hinders the best of them is what can be changed. */
		if (i == first)
			err_set(err, why.code, "no room can be made here: %.300s", why.message);
	}
	err_hint(err,
		"--try-room runs code as this user, without isolation, if there is no other way");
	return -err->code;
}

static void serve_tell(const struct serve *s, struct str words)
{
	char host[INET6_ADDRSTRLEN] = "";
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&s->options.addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&s->options.addr;
	bool is6 = s->options.addr.ss_family == AF_INET6;

	(void)inet_ntop(s->options.addr.ss_family,
		is6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host,
		sizeof(host));
	if (words.n)
		fprintf(stderr, "cloche-far: not enforced: %.*s\n", STR_FMT(words));
	if (!serve_has_rooms(s))
		fprintf(stderr,
			"cloche-far: not enforced: limits of memory, processes and files\n");
	if (!s->has_token)
		fprintf(stderr,
			"cloche-far: there is no token, so it listens on loopback alone, where "
			"every user of this machine may run code\n");
	fprintf(stderr, "cloche-far: serves http://%s%s%s:%u\n", is6 ? "[" : "", host,
		is6 ? "]" : "", ntohs(is6 ? v6->sin6_port : v4->sin_port));
}

static void serve_on_signal(struct loop_io *io, uint32_t events)
{
	loop_stop(io->loop, 0);
}

static int serve_watch_signals(struct serve *s)
{
	sigset_t ends;
	int fd;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	fd = loop_signalfd(&ends);
	return fd < 0 ? fd : loop_io_add(s->loop, &s->signals, fd, EPOLLIN, serve_on_signal);
}

static int serve_start(struct serve *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf words = BUF_INIT(16 * 1024);
	int r = serve_find_token(s, err);

	if (r < 0)
		return r;
	if (readlink("/proc/self/exe", s->self, sizeof(s->self) - 1) < 0)
		return err_sys(err, errno, "find our own program");
	s->loop = loop_new();
	r = s->loop ? serve_watch_signals(s) : -errno;
	if (r < 0)
		return err_sys(err, -r, "begin to serve");
	r = serve_open_listener(s, err);
	session_sweep();
	fardir_sweep();
	if (r == 0)
		r = serve_choose(s, &words, err);
	if (r == 0) {
		conn_listen(s);
		serve_tell(s, buf_str(&words));
	}
	return r;
}

int farserve_program(int argc, char **argv)
{
	static struct serve s;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&s.options, argc, argv, &err);

	if (r > 0)
		return fputs(options_help, stdout) < 0;
	if (r == 0 && (signal(SIGPIPE, SIG_IGN) == SIG_ERR || fd_sanitize_stdio() < 0))
		return 125;
	if (r == 0)
		fd_raise_limit();
	if (r == 0)
		r = serve_start(&s, &err);
	if (r < 0) {
		fprintf(stderr, "cloche-far: %s\n", err.message);
		if (err.hint[0])
			fprintf(stderr, "hint: %s\n", err.hint);
		return err.code == E_USAGE ? 2 : 125;
	}
	r = loop_run(s.loop);
	conn_end_all(&s);
	far_end_all(&s);
	session_end_all(&s);
	return r < 0;
}
