/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One exchange with the broker: a request and its response, with a window each way. What speaks to
 * the room (HTTP/1 now) owns it and gets its frames. */

#include "base/hash.h"
#include "ipc/netchan.h"

struct gateway;
struct stream;

/* The stream may be closed, and its owner freed, from within any of them. */
struct stream_ops {
	void (*interim)(struct stream *s, const struct net_response *m, struct wire_in *fields);
	void (*head)(struct stream *s, const struct net_response *m, struct wire_in *fields);
	void (*data)(struct stream *s, struct str bytes);
	void (*end)(struct stream *s, uint16_t fields_n, struct wire_in *fields);
	/* The stream is closed already. */
	void (*reset)(struct stream *s, enum net_reset why);
	/* The window for what we send has opened. */
	void (*credit)(struct stream *s);
};

struct stream {
	UT_hash_handle hh;
	struct gateway *g; /* NULL: not open */
	const struct stream_ops *ops;
	uint32_t id;
	uint32_t send_window;     /* bytes of DATA that we may send */
	uint32_t recv_window;     /* bytes of DATA that may still come */
	uint32_t recv_uncredited; /* came and have not been given back */
	bool sent_end, got_head, got_end;
};

/* Gives s its number and windows and sends OPEN up to its fields: add them, then call
 * stream_open_end(). m->stream is filled in. Returns 0 or -errno; nothing was begun then. */
_warn_unused_ int stream_open(struct gateway *g, struct stream *s, const struct stream_ops *ops,
	struct net_open *m, struct net_fields_out *ret_fields);
_warn_unused_ int stream_open_end(struct stream *s, struct net_fields_out *fields, bool has_body);
/* bytes fits send_window and NET_MAX_DATA. */
void stream_send_data(struct stream *s, struct str bytes);
/* The same in place: where at most max bytes may be written, or NULL if the run ends. n of them
 * (perhaps none) are sent, within the window. */
char *stream_begin_data(struct stream *s, size_t max, size_t *ret_mark);
void stream_commit_data(struct stream *s, size_t mark, size_t n);
/* The request is complete. trailers may be NULL. */
struct http_fields;
void stream_send_end(struct stream *s, const struct http_fields *trailers);
/* Of what came, all but `held` bytes have been passed on: gives the broker credit if it is
 * worth a frame. */
void stream_passed_on(struct stream *s, size_t held);
/* An open stream gets another owner: `to` takes its place, and `from` is closed without a word.
 * Returns 0, or -ENOMEM: it is closed, and the broker was told. */
_warn_unused_ int stream_move(struct stream *from, struct stream *to, const struct stream_ops *ops);
/* Closes; if it is not over, the broker is told why. Fine if it is not open. */
void stream_close(struct stream *s, enum net_reset why);
/* Both directions have ended. */
static inline bool stream_is_over(const struct stream *s)
{
	return s->sent_end && s->got_end;
}
