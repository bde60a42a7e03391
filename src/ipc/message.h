/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages as tables of fields. A protocol's header lists the fields of each message once:
 *
 *   #define ROOMCTL_SIGNAL_FIELDS(F)
 *           F(U32, exec)
 *           F(U8, signo, .min = 1, .max = 64)
 *   MESSAGE(roomctl, signal, ROOM_SIGNAL, ROOMCTL_SIGNAL_FIELDS);
 *
 * From the list come struct roomctl_signal, its encoder roomctl_send_signal and its decoder
 * roomctl_get_signal; the protocol's .c file adds the table itself:
 *
 *   MESSAGE_TABLE(roomctl_signal, ROOMCTL_SIGNAL_FIELDS, NULL);
 *
 * and ipc/test-messages.h names it for the test and the fuzzer of all tables.
 *
 * A field is one line: its kind, its name, its bounds. The kinds are:
 *
 *   U8 U16 U32 U64 I32 I64   an integer from .min to .max (.max 0: the type's maximum)
 *   BOOL
 *   ENUM, name, TAG, END     enum TAG name, below END
 *   ENUMS, name, TAG, END, N enum TAG name[N], each below END
 *   STR                      struct str of at most .max bytes, a view into the message
 *   Z                        char *, a heap copy of at most .max bytes without NUL
 *   OPTIONAL                 the same; empty in the message stands for NULL
 *   STRV                     char **, a heap array of at most .max_n strings of at most .max bytes
 *   TEXT, name, SIZE         char name[SIZE], terminated
 *   BYTES, name, SIZE        uint8_t name[SIZE], always all of them
 *   ERROR                    struct cloche_err with a code; its table is in message.c
 *   PART, name, TAG          struct TAG name, which has a table of its own
 *   PARTS, name, TAG, N      struct TAG *name and size_t name_n: a heap array of at most N
 *
 * An integer with .flags FIELD_CODE is the code of an error.
 * STR also has .flags FIELD_CUT (the encoder sends the first .max bytes of a longer one),
 * FIELD_NO_NUL, FIELD_NOT_EMPTY.
 *
 * Both directions check all bounds and then run the message's own check, if it has one, for
 * conditions on several fields. */

#include "ipc/chan.h"
#include "ipc/wire.h"
#include <errno.h>
#include <stddef.h>

enum field_kind {
	FIELD_INT, /* and bool, enum */
	FIELD_STR,
	FIELD_Z,
	FIELD_OPTIONAL,
	FIELD_STRV,
	FIELD_TEXT,
	FIELD_BYTES,
	FIELD_PART,
	FIELD_PARTS,
};

enum field_flags {
	FIELD_CUT = 1 << 0,
	FIELD_NO_NUL = 1 << 1,
	FIELD_NOT_EMPTY = 1 << 2,
	FIELD_CODE = 1 << 3,
	FIELD_BOUNDED = 1 << 4, /* FIELD_INT: max is a limit even if it is 0 */
};

struct message;
typedef const struct message *(*message_fn)(void); /* returns the table of one struct */

struct field {
	const char *name;
	uint8_t kind;
	uint8_t wire;  /* FIELD_INT: bytes in the message */
	uint8_t count; /* FIELD_INT: length of the array; 0: no array */
	uint8_t flags;
	uint16_t size; /* of one value in memory */
	uint16_t at;   /* offset in the struct */
	uint16_t n_at; /* FIELD_PARTS: offset of their number */
	uint32_t min, max, max_n;
	message_fn part;
};

struct message {
	const char *name;
	const struct field *fields;
	size_t fields_n, size;
	bool (*check)(const void *m); /* may be NULL */
};

/* Append the fields of m. If a bound is exceeded, w->error becomes -EINVAL. */
void message_put(struct wire_out *w, const struct message *t, const void *m);
/* Read the fields into ret, all of which is overwritten. If they are malformed, set r->bad and
 * return false; then nothing in ret has to be freed. */
bool message_take(struct wire_in *r, const struct message *t, void *ret);
/* Free the heap memory in m and make its pointers NULL. */
void message_done(const struct message *t, void *m);

/* One frame of typed values, for encoders that are written by hand. A frame that does not fit is
 * withdrawn. */
struct frame_out {
	struct chan *c;
	size_t mark;
	struct wire_out w; /* w.b is NULL if the channel is full */
};

static inline struct frame_out frame_begin(struct chan *c, uint16_t type)
{
	struct frame_out f = {.c = c};

	f.w = wire_out(chan_begin(c, type, &f.mark));
	if (!f.w.b)
		f.w.error = -ENOBUFS; /* every put is then a no-op */
	return f;
}

/* Return 0, -ENOBUFS if the channel is full, or another -errno. fds are borrowed. */
_warn_unused_ int frame_end(struct frame_out *f, const int *fds, unsigned fds_n);

/* Send a whole frame. Return 0 or -errno (-EINVAL: a bound is exceeded). fds are borrowed. */
_warn_unused_ int message_send(struct chan *c, uint16_t type, const struct message *t,
	const void *m, const int *fds, unsigned fds_n);
/* Decode a whole payload, as message_take; leftover bytes are malformed too. */
bool message_get(struct str payload, const struct message *t, void *ret);
/* Decode a payload that is an error: fill err and return -err->code, or set E_PROTOCOL with the
 * text `malformed`. */
int message_get_error(struct str payload, const char *malformed, struct cloche_err *err);
const struct message *cloche_err_message(void);

/* --- a struct from a list of fields --- */
#define MESSAGE_MEMBER(kind, ...) MESSAGE_MEMBER_##kind(__VA_ARGS__)
#define MESSAGE_MEMBER_U8(m, ...) uint8_t m;
#define MESSAGE_MEMBER_U16(m, ...) uint16_t m;
#define MESSAGE_MEMBER_U32(m, ...) uint32_t m;
#define MESSAGE_MEMBER_U64(m, ...) uint64_t m;
#define MESSAGE_MEMBER_I32(m, ...) int m;
#define MESSAGE_MEMBER_I64(m, ...) int64_t m;
#define MESSAGE_MEMBER_BOOL(m) bool m;
#define MESSAGE_MEMBER_ENUM(m, tag, end) enum tag m;
#define MESSAGE_MEMBER_ENUMS(m, tag, end, n) enum tag m[n];
#define MESSAGE_MEMBER_STR(m, ...) struct str m;
#define MESSAGE_MEMBER_Z(m, ...) char *m;
#define MESSAGE_MEMBER_OPTIONAL(m, ...) char *m;
#define MESSAGE_MEMBER_STRV(m, ...) char **m;
#define MESSAGE_MEMBER_TEXT(m, n) char m[n];
#define MESSAGE_MEMBER_BYTES(m, n) uint8_t m[n];
#define MESSAGE_MEMBER_ERROR(m) struct cloche_err m;
#define MESSAGE_MEMBER_PART(m, tag) struct tag m;
#define MESSAGE_MEMBER_PARTS(m, tag, n)                                                            \
	struct tag *m;                                                                             \
	size_t m##_n;

/* A struct with a table: a part of messages, or a message whose encoder is written by hand. */
#define MESSAGE_STRUCT(tag, LIST)                                                                  \
	struct tag {                                                                               \
		LIST(MESSAGE_MEMBER)                                                               \
	};                                                                                         \
	const struct message *tag##_message(void)

/* The same, and its decoder. */
#define MESSAGE_WITH_FDS(protocol, object, LIST)                                                   \
	MESSAGE_STRUCT(protocol##_##object, LIST);                                                 \
	static inline bool protocol##_get_##object(                                                \
		struct str payload, struct protocol##_##object *ret)                               \
	{                                                                                          \
		return message_get(payload, protocol##_##object##_message(), ret);                 \
	}                                                                                          \
	struct protocol##_##object

/* The same, and the encoder of a frame without descriptors. */
#define MESSAGE(protocol, object, type, LIST)                                                      \
	MESSAGE_WITH_FDS(protocol, object, LIST);                                                  \
	_warn_unused_ static inline int protocol##_send_##object(                                  \
		struct chan *c, const struct protocol##_##object *m)                               \
	{                                                                                          \
		return message_send(c, type, protocol##_##object##_message(), m, NULL, 0);         \
	}                                                                                          \
	struct protocol##_##object

/* The same, with a descriptor (borrowed; -1: none). */
#define MESSAGE_WITH_FD(protocol, object, type, LIST)                                              \
	MESSAGE_WITH_FDS(protocol, object, LIST);                                                  \
	_warn_unused_ static inline int protocol##_send_##object(                                  \
		struct chan *c, const struct protocol##_##object *m, int fd)                       \
	{                                                                                          \
		return message_send(                                                               \
			c, type, protocol##_##object##_message(), m, &fd, fd >= 0 ? 1 : 0);        \
	}                                                                                          \
	struct protocol##_##object

/* --- frames that need no struct --- */
/* Nothing: the encoder alone. */
#define MESSAGE_EMPTY(protocol, object, type)                                                      \
	_warn_unused_ static inline int protocol##_send_##object(struct chan *c)                   \
	{                                                                                          \
		return chan_send(c, type, STR_NULL, NULL, 0);                                      \
	}                                                                                          \
	struct chan

/* Only n descriptors (borrowed): the encoder alone. */
#define MESSAGE_OF_FDS(protocol, object, type, n)                                                  \
	_warn_unused_ static inline int protocol##_send_##object(struct chan *c, const int fds[n]) \
	{                                                                                          \
		return chan_send(c, type, STR_NULL, fds, n);                                       \
	}                                                                                          \
	struct chan

/* An error: the encoder, and the decoder as message_get_error(). */
#define MESSAGE_ERROR(protocol, object, type, malformed)                                           \
	_warn_unused_ static inline int protocol##_send_##object(                                  \
		struct chan *c, const struct cloche_err *why)                                      \
	{                                                                                          \
		return message_send(c, type, cloche_err_message(), why, NULL, 0);                  \
	}                                                                                          \
	static inline int protocol##_get_##object(struct str payload, struct cloche_err *ret)      \
	{                                                                                          \
		return message_get_error(payload, malformed, ret);                                 \
	}                                                                                          \
	struct chan

/* --- a table from the same list; `self` is the struct --- */
#define MESSAGE_ROW(kind, ...) MESSAGE_ROW_##kind(__VA_ARGS__)
#define MESSAGE_ROW_(m, k, ...)                                                                    \
	{.name = #m,                                                                               \
		.kind = k,                                                                         \
		.size = sizeof(((self *)0)->m),                                                    \
		.at = offsetof(self, m),                                                           \
		__VA_ARGS__},
#define MESSAGE_ROW_U8(m, ...) MESSAGE_ROW_(m, FIELD_INT, .wire = 1, __VA_ARGS__)
#define MESSAGE_ROW_U16(m, ...) MESSAGE_ROW_(m, FIELD_INT, .wire = 2, __VA_ARGS__)
#define MESSAGE_ROW_U32(m, ...) MESSAGE_ROW_(m, FIELD_INT, .wire = 4, __VA_ARGS__)
#define MESSAGE_ROW_U64(m, ...) MESSAGE_ROW_(m, FIELD_INT, .wire = 8, __VA_ARGS__)
#define MESSAGE_ROW_I32(m, ...) MESSAGE_ROW_(m, FIELD_INT, .wire = 4, __VA_ARGS__)
#define MESSAGE_ROW_I64(m, ...) MESSAGE_ROW_(m, FIELD_INT, .wire = 8, __VA_ARGS__)
#define MESSAGE_ROW_BOOL(m) MESSAGE_ROW_(m, FIELD_INT, .wire = 1, .max = 1)
#define MESSAGE_ROW_ENUM(m, tag, end)                                                              \
	MESSAGE_ROW_(m, FIELD_INT, .wire = 1, .flags = FIELD_BOUNDED, .max = (end)-1)
#define MESSAGE_ROW_ENUMS(m, tag, end, n)                                                          \
	{.name = #m,                                                                               \
		.kind = FIELD_INT,                                                                 \
		.wire = 1,                                                                         \
		.count = (n),                                                                      \
		.flags = FIELD_BOUNDED,                                                            \
		.size = sizeof(enum tag),                                                          \
		.at = offsetof(self, m),                                                           \
		.max = (end)-1},
#define MESSAGE_ROW_STR(m, ...) MESSAGE_ROW_(m, FIELD_STR, __VA_ARGS__)
#define MESSAGE_ROW_Z(m, ...) MESSAGE_ROW_(m, FIELD_Z, __VA_ARGS__)
#define MESSAGE_ROW_OPTIONAL(m, ...) MESSAGE_ROW_(m, FIELD_OPTIONAL, __VA_ARGS__)
#define MESSAGE_ROW_STRV(m, ...) MESSAGE_ROW_(m, FIELD_STRV, __VA_ARGS__)
#define MESSAGE_ROW_TEXT(m, n) MESSAGE_ROW_(m, FIELD_TEXT, .max = (n)-1)
#define MESSAGE_ROW_BYTES(m, n) MESSAGE_ROW_(m, FIELD_BYTES)
#define MESSAGE_ROW_ERROR(m) MESSAGE_ROW_PART(m, cloche_err)
#define MESSAGE_ROW_PART(m, tag) MESSAGE_ROW_(m, FIELD_PART, .part = tag##_message)
#define MESSAGE_ROW_PARTS(m, tag, n)                                                               \
	MESSAGE_ROW_(m, FIELD_PARTS, .part = tag##_message, .max_n = (n),                          \
		.n_at = offsetof(self, m##_n))

/* may: the message's own check, bool (*)(const void *), or NULL. */
#define MESSAGE_TABLE(tag, LIST, may)                                                              \
	const struct message *tag##_message(void)                                                  \
	{                                                                                          \
		typedef struct tag self;                                                           \
		static const struct field fields[] = {LIST(MESSAGE_ROW)};                          \
		static const struct message table = {                                              \
			#tag, fields, sizeof(fields) / sizeof(fields[0]), sizeof(self), may};      \
                                                                                                   \
		return &table;                                                                     \
	}                                                                                          \
	_Static_assert(sizeof(struct tag) > 0, "takes the semicolon")
