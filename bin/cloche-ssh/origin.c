/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the client that speaks with the real host, over a connection that the broker
 * has made. The host has to be one of the person's known hosts, with that key; nothing is ever
 * added. The person is shown by the agent, whose socket is connected before anything is read from
 * the network: no key is ever in this process. What the agent will sign is only what belongs to
 * this session. The path comes from the room, and is made of characters that no shell looks at
 * (ipc/sshleg.h). */
#include "base/account.h"
#include "base/str.h"
#include "leg.h"
#include "narrow.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECT_SEC = 30, UPSTREAM_STATUS = 502, CUT_STATUS = 255 };

struct origin {
	struct leg leg;
	struct sshleg_request asked; /* views into text */
	char text[SSHLEG_MAX_RECORD];
	char dir[4096 - 16], known[4096]; /* the person's ~/.ssh, and the known hosts in it */
	int agent;                        /* -1: none */
};

static const char global_known[] = "/etc/ssh/ssh_known_hosts";

/* Tell the broker why it cannot be. */
static void _printf_(2, 3) origin_fail(struct origin *o, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_clear(&o->leg.out);
	if (sshleg_put_answer(
		    &o->leg.out, &(struct sshleg_answer){UPSTREAM_STATUS, str_from(text)}) == 0)
		leg_write_plain(&o->leg);
}

/* --- before anything is read from the network --- */

static int origin_find_agent(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const char *path = getenv("SSH_AUTH_SOCK");
	int fd;

	if (!path || strlen(path) >= sizeof(a.sun_path))
		return -1;
	str_copy(a.sun_path, sizeof(a.sun_path), str_from(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The broker sends one record. */
static bool origin_take_request(struct origin *o)
{
	struct str in = str_make(o->text, 0);
	ssize_t n = 0;

	while (n == 0 && in.n < sizeof(o->text)) {
		ssize_t got =
			recv(SSHLEG_FD_PLAIN, o->text + in.n, sizeof(o->text) - in.n, MSG_PEEK);

		if (got <= 0)
			return false;
		/* What follows the record belongs to git. */
		n = sshleg_take_request(str_make(o->text, in.n + (size_t)got), &o->asked);
		if (n > 0)
			got = n - (ssize_t)in.n;
		if (recv(SSHLEG_FD_PLAIN, o->text + in.n, (size_t)got, 0) != got)
			return false;
		in.n += (size_t)got;
	}
	return n > 0 && o->asked.host.n > 0;
}

static bool origin_set_options(struct origin *o, char host[NET_MAX_HOST + 1])
{
	ssh_session s = o->leg.session;
	char user[ACCOUNT_MAX_NAME + 1];
	unsigned port = o->asked.port;
	bool none = false;
	long patience = CONNECT_SEC;
	socket_t fd = SSHLEG_FD_PEER;

	str_copy(host, NET_MAX_HOST + 1, o->asked.host);
	str_copy(user, sizeof(user), o->asked.user);
	return ssh_options_set(s, SSH_OPTIONS_PROCESS_CONFIG, &none) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_SSH_DIR, o->dir) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_HOST, host) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_PORT, &port) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_USER, user) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_KNOWNHOSTS, o->known) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, global_known) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_TIMEOUT, &patience) == 0 &&
	       ssh_options_set(s, SSH_OPTIONS_FD, &fd) == 0;
}

/* --- who they are --- */

/* "[host]:port" if the port is another one, as in known_hosts. */
static void origin_name(const struct origin *o, char ret[NET_MAX_HOST + 16])
{
	if (o->asked.port == 22)
		snprintf(ret, NET_MAX_HOST + 16, "%.*s", STR_FMT(o->asked.host));
	else
		snprintf(
			ret, NET_MAX_HOST + 16, "[%.*s]:%u", STR_FMT(o->asked.host), o->asked.port);
}

static bool origin_fingerprint(ssh_session s, char ret[128])
{
	unsigned char *hash = NULL;
	char *text = NULL;
	size_t n = 0;
	ssh_key key = NULL;

	if (ssh_get_server_publickey(s, &key) == SSH_OK &&
		ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &n) == SSH_OK)
		text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, n);
	snprintf(ret, 128, "%s", text ? text : "?");
	ssh_string_free_char(text);
	ssh_clean_pubkey_hash(&hash);
	ssh_key_free(key);
	return ret[0] != '?';
}

static bool origin_is_known(struct origin *o)
{
	enum ssh_known_hosts_e state = ssh_session_is_known_server(o->leg.session);
	char name[NET_MAX_HOST + 16], print[128];

	if (state == SSH_KNOWN_HOSTS_OK)
		return true;
	origin_name(o, name);
	(void)origin_fingerprint(o->leg.session, print);
	if (state == SSH_KNOWN_HOSTS_CHANGED || state == SSH_KNOWN_HOSTS_OTHER)
		origin_fail(o,
			"the host key of %s (%s) is not the one in known_hosts: somebody may be in "
			"between; if it was changed, outside: ssh-keygen -R '%s', and connect once",
			name, print, name);
	else
		origin_fail(o,
			"the host key of %s (%s) is not in known_hosts: compare it, and connect "
			"once "
			"outside: ssh -T -p %u %.*s@%.*s",
			name, print, o->asked.port, STR_FMT(o->asked.user), STR_FMT(o->asked.host));
	return false;
}

static bool origin_log_in(struct origin *o)
{
	ssh_session s = o->leg.session;

	if (ssh_userauth_none(s, NULL) == SSH_AUTH_SUCCESS)
		return true;
	if (o->agent < 0) {
		origin_fail(
			o, "there is no agent: ssh-agent has to run outside, with your key in it");
		return false;
	}
	if (ssh_userauth_agent(s, NULL) == SSH_AUTH_SUCCESS)
		return true;
	origin_fail(o, "%.*s takes no key of your agent for the user %.*s (ssh-add -l lists them)",
		STR_FMT(o->asked.host), STR_FMT(o->asked.user));
	return false;
}

static bool origin_start_command(struct origin *o)
{
	static const char *const commands[] = {
		[SSHLEG_FETCH] = "git-upload-pack", [SSHLEG_PUSH] = "git-receive-pack"};
	char command[SSHLEG_MAX_PATH + 64], protocol[SSHLEG_MAX_PROTOCOL + 1];
	ssh_channel c = ssh_channel_new(o->leg.session);

	o->leg.channel = c;
	if (!c || ssh_channel_open_session(c) != SSH_OK) {
		origin_fail(o, "the host opens no channel");
		return false;
	}
	str_copy(protocol, sizeof(protocol), o->asked.protocol);
	if (protocol[0]) /* many hosts do not take it, and git goes on without */
		(void)ssh_channel_request_env(c, "GIT_PROTOCOL", protocol);
	snprintf(command, sizeof(command), "%s '%.*s'", commands[o->asked.method],
		STR_FMT(o->asked.path));
	if (ssh_channel_request_exec(c, command) != SSH_OK) {
		origin_fail(o, "the host refuses %s", commands[o->asked.method]);
		return false;
	}
	return true;
}

static bool origin_begin(struct origin *o)
{
	ssh_session s = o->leg.session;

	if (ssh_connect(s) != SSH_OK) {
		origin_fail(o, "no session of SSH comes about: %.200s", ssh_get_error(s));
		return false;
	}
	return origin_is_known(o) && origin_log_in(o) && origin_start_command(o);
}

/* --- the bytes --- */

static bool origin_add_piece(struct leg *l, enum sshleg_piece kind, const void *bytes, size_t n)
{
	struct wire_out w = wire_out(&l->out);

	wire_put_int(&w, kind, 1);
	wire_put_str(&w, str_make(bytes, n));
	l->broken = l->broken || w.error < 0;
	return w.error == 0;
}

/* Take what the host has sent. Return whether that was all. */
static bool origin_take_output(struct leg *l)
{
	char bytes[SSHLEG_MAX_PIECE];
	int n = 0;

	for (int err = 0; err < 2; err++) {
		while (buf_len(&l->out) < LEG_BUFFER &&
			(n = ssh_channel_read_nonblocking(l->channel, bytes, sizeof(bytes), err)) >
				0) {
			if (!origin_add_piece(
				    l, err ? SSHLEG_STDERR : SSHLEG_STDOUT, bytes, (size_t)n))
				return true;
			leg_write_plain(l);
		}
		if (n == SSH_ERROR)
			l->broken = true;
	}
	return buf_len(&l->out) == 0 && ssh_channel_is_eof(l->channel) &&
	       ssh_channel_poll(l->channel, 0) <= 0 && ssh_channel_poll(l->channel, 1) <= 0;
}

static void origin_give_input(struct leg *l, bool *ended)
{
	while (buf_len(&l->in) > 0 && leg_may_write(l)) {
		uint32_t n = MIN((uint32_t)buf_len(&l->in), ssh_channel_window_size(l->channel));
		int written = ssh_channel_write(l->channel, buf_data(&l->in), n);

		if (written <= 0) {
			l->broken = true;
			return;
		}
		buf_consume(&l->in, (size_t)written);
	}
	if (l->plain_ended && buf_len(&l->in) == 0 && !*ended) {
		*ended = true;
		(void)ssh_channel_send_eof(l->channel);
	}
}

/* Wait for the status, which comes around the end of the output, and pass it on. */
static void origin_pass_status(struct leg *l)
{
	uint8_t status;
	int code;

	while (!l->broken && !l->plain_gone &&
		(code = ssh_channel_get_exit_status(l->channel)) < 0 &&
		!ssh_channel_is_closed(l->channel) && ssh_is_connected(l->session))
		leg_wait(l, false, false);
	code = ssh_channel_get_exit_status(l->channel);
	status = code >= 0 && code < CUT_STATUS ? (uint8_t)code : CUT_STATUS;
	if (!l->broken)
		(void)origin_add_piece(l, SSHLEG_EXIT, &status, 1);
	while (!l->broken && !l->plain_gone && buf_len(&l->out) > 0) {
		leg_write_plain(l);
		if (buf_len(&l->out) > 0)
			leg_wait(l, false, true);
	}
}

static void origin_pass(struct leg *l)
{
	bool ended = false, over = false;

	while (!l->broken && !over) {
		leg_write_plain(l);
		over = origin_take_output(l);
		leg_read_plain(l);
		if (leg_is_open(l))
			origin_give_input(l, &ended);
		/* Without SSHLEG_EXIT it is known as cut. */
		if (l->plain_gone || (!over && !ssh_is_connected(l->session)))
			return;
		if (!over)
			leg_wait(l, !l->plain_ended && buf_room(&l->in) > 0, buf_len(&l->out) > 0);
	}
	if (!l->broken)
		origin_pass_status(l);
}

int origin_main(void)
{
	static struct origin o;
	const char *home = getenv("HOME");
	char host[NET_MAX_HOST + 1];
	ssh_session s = ssh_new();

	if (!s)
		return 1;
	leg_init(&o.leg, s, SSHLEG_FD_PLAIN);
	o.leg.watches_end = true;
	snprintf(o.dir, sizeof(o.dir), "%s/.ssh", home ? home : "");
	snprintf(o.known, sizeof(o.known), "%s/known_hosts", o.dir);
	o.agent = origin_find_agent();
	alarm(LEG_HANDSHAKE_SEC);
	/* The options ask the system for the person's name and home. */
	if (!origin_take_request(&o) || !origin_set_options(&o, host) ||
		(o.agent >= 0 && ssh_set_agent_socket(s, o.agent) != SSH_OK) ||
		narrow_origin((const char *const[]){o.known, global_known}) < 0)
		return 1;
	if (origin_begin(&o) &&
		sshleg_put_answer(&o.leg.out, &(struct sshleg_answer){200, STR_NULL}) == 0) {
		alarm(0);
		ssh_set_blocking(s, 0);
		origin_pass(&o.leg);
	}
	leg_done(&o.leg);
	return 0;
}
