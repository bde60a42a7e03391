/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One exchange with the broker: a request and its response, with a window each way. Its owner
 * speaks to the room (HTTP/1, HTTP/2, a tunnel) and gets its frames. */

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
	/* We may send n bytes more. */
	void (*credit)(struct stream *s, uint32_t n);
};

struct stream {
	UT_hash_handle hh;
	struct gateway *g; /* NULL: not open */
	const struct stream_ops *ops;
	uint32_t id;
	uint32_t send_window;     /* bytes of DATA that we may send */
	uint32_t recv_window;     /* bytes of DATA that may still come */
	uint32_t recv_uncredited; /* bytes that came and were not credited */
	bool sent_end, got_head, got_end;
};

/* Give s its number and windows and send OPEN up to its fields: add them, then call
 * stream_open_end(). m->stream is filled in. Return 0, or -errno with nothing begun. */
_warn_unused_ int stream_open(struct gateway *g, struct stream *s, const struct stream_ops *ops,
	struct net_open *m, struct net_fields_out *ret_fields);
_warn_unused_ int stream_open_end(struct stream *s, struct net_fields_out *fields, bool has_body);
/* bytes must fit send_window and NET_MAX_DATA. */
void stream_send_data(struct stream *s, struct str bytes);
/* Like stream_send_data(), but in place: return where at most max bytes may be written, or NULL if
 * the run ends. stream_commit_data() sends n of them (perhaps none), within the window. */
char *stream_begin_data(struct stream *s, size_t max, size_t *ret_mark);
void stream_commit_data(struct stream *s, size_t mark, size_t n);
/* The request is complete. trailers may be NULL. */
struct http_fields;
void stream_send_end(struct stream *s, const struct http_fields *trailers);
/* All bytes that came but the last `held` were passed on: give the broker credit if it is worth a
 * frame. */
void stream_passed_on(struct stream *s, size_t held);
/* Give an open stream another owner: `to` takes the place of `from`, which is closed without
 * telling the broker. Return 0, or -ENOMEM with the stream closed and the broker told. */
_warn_unused_ int stream_move(struct stream *from, struct stream *to, const struct stream_ops *ops);
/* Close the stream. If it is not over, tell the broker why. Does nothing if it is not open. */
void stream_close(struct stream *s, enum net_reset why);
/* Both directions have ended. */
static inline bool stream_is_over(const struct stream *s)
{
	return s->sent_end && s->got_end;
}
