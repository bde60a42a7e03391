/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the server that the room's ssh speaks with. It believes whoever it is, since
 * the room has no keys and nobody is between the room and us; its host key is made for one
 * connection. It allows one channel and in it one command; everything else of the protocol is
 * refused. The command goes to the gateway, and when the broker has allowed it, bytes go through.
 * A command that is refused is told on standard error of the channel, as git shows that. */
#include "base/account.h"
#include "leg.h"
#include "narrow.h"

#include <libssh/callbacks.h>
#include <libssh/server.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REFUSED_STATUS = 128, CUT_STATUS = 255, LINGER_SEC = 10 };

struct room {
	struct leg leg;
	char user[ACCOUNT_MAX_NAME + 1], path[SSHLEG_MAX_PATH + 1];
	char protocol[SSHLEG_MAX_PROTOCOL + 1];
	enum sshleg_method method;
	bool asked;      /* a command came */
	const char *why; /* it was refused here */
	uint8_t kind;    /* of the piece that is being passed on, */
	uint32_t left;   /* and how much of it is left */
	struct ssh_channel_callbacks_struct on_channel;
};

/* --- what the room's ssh asks for --- */

static int room_take_user(struct room *room, const char *user)
{
	struct str s = str_from(user);

	if (!account_is_name(s))
		return SSH_AUTH_DENIED;
	str_copy(room->user, sizeof(room->user), s);
	return SSH_AUTH_SUCCESS;
}

static int on_none(ssh_session session, const char *user, void *room)
{
	return room_take_user(room, user);
}

static int on_password(ssh_session session, const char *user, const char *password, void *room)
{
	return room_take_user(room, user);
}

static int on_key(
	ssh_session session, const char *user, struct ssh_key_struct *key, char state, void *room)
{
	return room_take_user(room, user);
}

static int on_command(ssh_session session, ssh_channel channel, const char *command, void *data)
{
	struct room *room = data;

	if (room->asked)
		return 1;
	room->asked = true;
	room->why = sshleg_parse_command(str_from(command), &room->method, room->path);
	return 0;
}

/* It is let in, so that it can be told why it goes no further. */
static int on_shell(ssh_session session, ssh_channel channel, void *data)
{
	return on_command(session, channel, "", data);
}

static int on_terminal(ssh_session session, ssh_channel channel, const char *term, int width,
	int height, int pxwidth, int pwheight, void *data)
{
	return -1;
}

static int on_subsystem(ssh_session session, ssh_channel channel, const char *name, void *data)
{
	return 1;
}

static int on_variable(
	ssh_session session, ssh_channel channel, const char *name, const char *value, void *data)
{
	struct room *room = data;

	if (strcmp(name, "GIT_PROTOCOL") != 0 || !sshleg_is_protocol(str_from(value)))
		return 1;
	str_copy(room->protocol, sizeof(room->protocol), str_from(value));
	return 0;
}

static ssh_channel on_channel(ssh_session session, void *data)
{
	struct room *room = data;

	if (room->leg.channel)
		return NULL;
	room->leg.channel = ssh_channel_new(session);
	if (room->leg.channel)
		(void)ssh_set_channel_callbacks(room->leg.channel, &room->on_channel);
	return room->leg.channel;
}

/* Whatever has no function above: forwarding, agents, X11, a second channel. */
static int on_message(ssh_session session, ssh_message message, void *data)
{
	return 1; /* the library refuses it */
}

/* --- the channel --- */

/* End the channel with a line on its standard error. */
static void room_say(struct room *room, int status, const char *text)
{
	ssh_channel c = room->leg.channel;

	(void)ssh_channel_write_stderr(c, "cloche: ", 8);
	(void)ssh_channel_write_stderr(c, text, (uint32_t)strlen(text));
	(void)ssh_channel_write_stderr(c, "\n", 1);
	(void)ssh_channel_request_send_exit_status(c, status);
	(void)ssh_channel_send_eof(c);
	(void)ssh_channel_close(c);
	leg_drain(&room->leg);
}

/* The last piece: how the command has ended. */
static void room_take_exit(struct leg *l, int status)
{
	(void)ssh_channel_request_send_exit_status(l->channel, status);
	(void)ssh_channel_send_eof(l->channel);
	(void)ssh_channel_close(l->channel);
	leg_drain(l);
}

/* Take what there is of one piece of the origin's end. Return false if nothing could be taken. */
static bool room_take_piece(struct room *room)
{
	struct leg *l = &room->leg;
	struct wire_in r = wire_in(buf_str(&l->in));
	uint32_t n;
	int written;

	if (!leg_may_write(l) || buf_len(&l->in) == 0)
		return false;
	if (room->left == 0) {
		room->kind = (uint8_t)wire_get_int(&r, 1);
		room->left = wire_get_u32(&r);
		if (r.bad) {
			room->left = 0;
			return false;
		}
		buf_consume(&l->in, SSHLEG_PIECE_HEAD);
		l->broken = room->kind > SSHLEG_EXIT || room->left == 0 ||
			    room->left > SSHLEG_MAX_PIECE;
		return !l->broken;
	}
	if (room->kind == SSHLEG_EXIT) {
		room_take_exit(l, (uint8_t)r.rest.p[0]);
		return false;
	}
	n = MIN(room->left, ssh_channel_window_size(l->channel));
	n = (uint32_t)MIN((size_t)n, r.rest.n);
	written = room->kind == SSHLEG_STDOUT ? ssh_channel_write(l->channel, r.rest.p, n)
					      : ssh_channel_write_stderr(l->channel, r.rest.p, n);
	if (written <= 0) {
		l->broken = true;
		return false;
	}
	room->left -= (uint32_t)written;
	buf_consume(&l->in, (size_t)written);
	return true;
}

/* Take what the room's git sends. */
static void room_take_input(struct leg *l, bool *ended)
{
	char bytes[SSHLEG_MAX_PIECE];
	int n;

	while (!*ended && !l->broken && buf_len(&l->out) == 0) {
		n = ssh_channel_read_nonblocking(l->channel, bytes, sizeof(bytes), 0);
		if (n > 0) {
			l->broken = buf_add(&l->out, bytes, (size_t)n) < 0;
			leg_write_plain(l);
			continue;
		}
		l->broken = n == SSH_ERROR;
		if (n == SSH_EOF || ssh_channel_is_eof(l->channel)) {
			*ended = true;
			(void)shutdown(l->plain, SHUT_WR);
		}
		return;
	}
}

static void room_pass(struct room *room)
{
	struct leg *l = &room->leg;
	bool ended = false;

	while (leg_is_open(l)) {
		leg_write_plain(l);
		room_take_input(l, &ended);
		leg_read_plain(l);
		while (room_take_piece(room))
			continue;
		if (!leg_is_open(l))
			return;
		if (l->plain_ended && leg_may_write(l)) {
			room_say(room, CUT_STATUS, "the connection to the host was lost");
			return;
		}
		leg_wait(l, !l->plain_ended && buf_room(&l->in) > 0, buf_len(&l->out) > 0);
	}
}

/* Send the request, and wait for its answer. Return whether it was allowed. */
static bool room_ask(struct room *room)
{
	const struct sshleg_request m = {.method = room->method,
		.user = str_from(room->user),
		.path = str_from(room->path),
		.protocol = str_from(room->protocol)};
	struct leg *l = &room->leg;
	struct sshleg_answer answer;
	char text[SSHLEG_MAX_TEXT + 1];
	ssize_t n = 0;

	if (sshleg_put_request(&l->out, &m) < 0)
		return false;
	while (leg_is_open(l) && (n = sshleg_take_answer(buf_str(&l->in), &answer)) == 0) {
		if (l->plain_ended) {
			room_say(room, CUT_STATUS, "the network has ended");
			return false;
		}
		leg_write_plain(l);
		leg_wait(l, true, buf_len(&l->out) > 0);
		leg_read_plain(l);
	}
	if (n <= 0)
		return false;
	if (answer.status == 200) {
		buf_consume(&l->in, (size_t)n);
		return true;
	}
	str_copy(text, sizeof(text), answer.text);
	room_say(room, REFUSED_STATUS, text);
	return false;
}

/* ssh ends the connection when it has read how the command ended. If we did, it would say that the
 * connection was closed, and might not have read that yet. */
static void room_linger(struct leg *l)
{
	alarm(LINGER_SEC);
	while (!l->broken && ssh_is_connected(l->session))
		leg_wait(l, false, false);
}

/* --- the beginning --- */

/* Return the server's side of the connection, or NULL. */
static ssh_session room_accept(struct room *room, struct ssh_server_callbacks_struct *callbacks)
{
	ssh_bind bind = ssh_bind_new();
	ssh_session session = ssh_new();
	bool none = false;
	ssh_key key = NULL;

	if (!bind || !session || ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) != SSH_OK ||
		ssh_bind_options_set(bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &none) < 0 ||
		ssh_bind_options_set(bind, SSH_BIND_OPTIONS_IMPORT_KEY, key) < 0 ||
		ssh_bind_accept_fd(bind, session, SSHLEG_FD_PEER) != SSH_OK) {
		ssh_free(session);
		session = NULL;
	}
	ssh_bind_free(bind);
	if (!session)
		return NULL;
	ssh_callbacks_init(callbacks);
	ssh_callbacks_init(&room->on_channel);
	if (ssh_set_server_callbacks(session, callbacks) != SSH_OK) {
		ssh_free(session);
		return NULL;
	}
	ssh_set_message_callback(session, on_message, room);
	ssh_set_auth_methods(session,
		SSH_AUTH_METHOD_NONE | SSH_AUTH_METHOD_PUBLICKEY | SSH_AUTH_METHOD_PASSWORD);
	return session;
}

int room_main(void)
{
	static struct room room;
	struct ssh_server_callbacks_struct callbacks = {.userdata = &room,
		.auth_none_function = on_none,
		.auth_password_function = on_password,
		.auth_pubkey_function = on_key,
		.channel_open_request_session_function = on_channel};
	ssh_session session;

	room.on_channel = (struct ssh_channel_callbacks_struct){.userdata = &room,
		.channel_pty_request_function = on_terminal,
		.channel_shell_request_function = on_shell,
		.channel_exec_request_function = on_command,
		.channel_env_request_function = on_variable,
		.channel_subsystem_request_function = on_subsystem};
	session = room_accept(&room, &callbacks);
	if (!session)
		return 1;
	leg_init(&room.leg, session, SSHLEG_FD_PLAIN);
	alarm(LEG_HANDSHAKE_SEC);
	if (narrow_room() < 0)
		return 1;
	if (ssh_handle_key_exchange(session) == SSH_OK) {
		ssh_set_blocking(session, 0);
		while (!room.asked && !room.leg.broken && ssh_is_connected(session))
			leg_wait(&room.leg, false, false);
		if (room.why)
			room_say(&room, REFUSED_STATUS, room.why);
		else if (room.asked && room_ask(&room)) {
			alarm(0);
			room_pass(&room);
		}
	}
	room_linger(&room.leg);
	leg_done(&room.leg);
	return 0;
}
