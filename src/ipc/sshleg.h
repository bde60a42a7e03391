/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The protocol between cloche-ssh, which ends one connection of SSH, and the gateway or broker that
 * it was started for. It has the connection as SSHLEG_FD_PEER and a stream socket to them as
 * SSHLEG_FD_PLAIN, over which go, in this order:
 *
 *   from whoever has the request   a length (u32) and as many bytes: struct sshleg_request. The
 *                                  room's end sends it to the gateway, the broker to the origin's
 *                                  end.
 *   towards the room               struct sshleg_answer in the same form. If its status is not 200
 *                                  its text is shown, and nothing follows.
 *   from the room                  what the room's git sends, as it is, then end-of-file
 *   towards the room               pieces: a kind (u8), a length (u32), as many bytes. They come
 *                                  from the origin's end and pass through broker and gateway
 *                                  unread. The last is SSHLEG_EXIT: without it, the connection
 *                                  was cut.
 *
 * Integers are little-endian. Each receiver checks everything again. */

#include "base/account.h"
#include "ipc/message.h"
#include "ipc/netchan.h"

enum {
	SSHLEG_FD_PEER = 3,
	SSHLEG_FD_PLAIN = 4,
	SSHLEG_MAX_PATH = 1024,
	SSHLEG_MAX_PROTOCOL = 64,
	SSHLEG_MAX_TEXT = 8192,
	SSHLEG_MAX_PIECE = 16 * 1024,
	SSHLEG_MAX_RECORD = 16 * 1024, /* of a request or an answer */
	SSHLEG_PIECE_HEAD = 5,
};

enum sshleg_method { SSHLEG_FETCH, SSHLEG_PUSH, SSHLEG_METHOD_END };
enum sshleg_piece { SSHLEG_STDOUT, SSHLEG_STDERR, SSHLEG_EXIT /* 1 byte: the status */ };

/* The names by which policy and log know the methods. */
#define SSHLEG_WORD_FETCH "FETCH"
#define SSHLEG_WORD_PUSH "PUSH"
/* The fields of an OPEN (ipc/netchan.h). */
#define SSHLEG_FIELD_USER "Ssh-User"
#define SSHLEG_FIELD_PROTOCOL "Git-Protocol"

#define SSHLEG_REQUEST_FIELDS(F)                                                                   \
	F(ENUM, method, sshleg_method, SSHLEG_METHOD_END)                                          \
	F(STR, user, .max = ACCOUNT_MAX_NAME)                                                      \
	F(STR, path, .max = SSHLEG_MAX_PATH)         /* absolute, see sshleg_is_path() */          \
	F(STR, protocol, .max = SSHLEG_MAX_PROTOCOL) /* GIT_PROTOCOL; may be empty */              \
	F(STR, host, .max = NET_MAX_HOST)            /* empty from the room's end */               \
	F(U16, port)
MESSAGE_STRUCT(sshleg_request, SSHLEG_REQUEST_FIELDS);

#define SSHLEG_ANSWER_FIELDS(F)                                                                    \
	F(U16, status)                                                                             \
	F(STR, text, .max = SSHLEG_MAX_TEXT, .flags = FIELD_CUT)
MESSAGE_STRUCT(sshleg_answer, SSHLEG_ANSWER_FIELDS);

/* Append a record. Return 0 or -errno. */
_warn_unused_ int sshleg_put_request(struct buf *out, const struct sshleg_request *m);
_warn_unused_ int sshleg_put_answer(struct buf *out, const struct sshleg_answer *m);
/* Read the record at the front of in. Return its bytes; 0 if more are needed; -EPROTO if it is
 * malformed. Texts are views into in. */
ssize_t sshleg_take_request(struct str in, struct sshleg_request *ret);
ssize_t sshleg_take_answer(struct str in, struct sshleg_answer *ret);

/* A value of GIT_PROTOCOL: lower-case letters, digits and "=.:-". Empty is fine. */
bool sshleg_is_protocol(struct str s);
/* A path that means one thing: "/" and segments of letters, digits and "._+@-", none of which is
 * empty, "." or "..", or begins with '-'. */
bool sshleg_is_path(struct str s);
/* Read the command of an exec request: git-upload-pack or git-receive-pack, a space and one path
 * that may be in single quotes. A path that does not begin with '/' gets one; '/' at its end go.
 * Return NULL, or what is wrong, for a person. */
const char *sshleg_parse_command(
	struct str command, enum sshleg_method *ret_method, char ret_path[SSHLEG_MAX_PATH + 1]);
/* The method of a word, or SSHLEG_METHOD_END. */
enum sshleg_method sshleg_method_of(struct str word);
struct str sshleg_method_word(enum sshleg_method method);
