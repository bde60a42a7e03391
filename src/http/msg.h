/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One HTTP message, in any version of HTTP. A head owns all its bytes in one buffer; views returned
 * by the functions here are borrowed from it and valid until the next change of the same head (add,
 * set, remove, clear, parse). Arguments are copied, and may be views into the same head.
 *
 * A head is made once per connection and used again for each message: clear keeps the memory, so
 * keep-alive allocates nothing. */

#include "base/buf.h"
#include "base/str.h"
#include "http/limits.h"
#include <stdbool.h>
#include <stdint.h>

/* Field names that this code has to know. HTTP_F_OTHER is every other name. */
enum http_field_id {
	HTTP_F_OTHER,
	HTTP_F_AUTHORIZATION,
	HTTP_F_CONNECTION,
	HTTP_F_CONTENT_LENGTH,
	HTTP_F_CONTENT_OTHER, /* any other Content-* */
	HTTP_F_COOKIE,        /* and Set-Cookie */
	HTTP_F_DATE,
	HTTP_F_EXPECT,
	HTTP_F_HOST,
	HTTP_F_HTTP2_SETTINGS,
	HTTP_F_KEEP_ALIVE,
	HTTP_F_PROXY_AUTH, /* Proxy-Authorization, Proxy-Authenticate */
	HTTP_F_PROXY_CONNECTION,
	HTTP_F_TE,
	HTTP_F_TRAILER,
	HTTP_F_TRANSFER_ENCODING,
	HTTP_F_UPGRADE,
	HTTP_F_X_AMZ, /* any X-Amz-* */
};

/* One field, as places in the storage; use http_fields_name() and http_fields_value(). */
struct http_field {
	uint32_t name, value, value_len;
	uint16_t name_len;
	uint8_t id;  /* enum http_field_id */
	uint8_t hop; /* hop-by-hop (RFC 9110 7.6.1): ends here, never written onward */
};

/* An ordered list of fields and the bytes they are made of: a head's fields, or trailers. */
struct http_fields {
	struct buf text;
	struct http_field *v;
	unsigned n, cap;
};

#define HTTP_FIELDS_INIT ((struct http_fields){.text = {.max = HTTP_STORE_MAX}})

void http_fields_done(struct http_fields *f);  /* frees; usable again after it */
void http_fields_clear(struct http_fields *f); /* empties and keeps (reasonable) memory */

/* i < f->n. */
static inline struct str http_fields_name(const struct http_fields *f, unsigned i)
{
	return str_make(f->text.mem + f->v[i].name, f->v[i].name_len);
}
static inline struct str http_fields_value(const struct http_fields *f, unsigned i)
{
	return str_make(f->text.mem + f->v[i].value, f->v[i].value_len);
}

/* Return whether field i travels end to end. The others are hop-by-hop, or are held by the model
 * outside the list and written from there: Host, Content-Length and Expect: 100-continue. */
static inline bool http_fields_is_end_to_end(const struct http_fields *f, unsigned i)
{
	unsigned id = f->v[i].id;

	return !f->v[i].hop && id != HTTP_F_HOST && id != HTTP_F_CONTENT_LENGTH &&
	       (id != HTTP_F_EXPECT || !str_ieq(http_fields_value(f, i), STR("100-continue")));
}

/* Index of the first field called name (case ignored) at or after `from`, or -1. */
int http_fields_find(const struct http_fields *f, struct str name, unsigned from);
/* Index of the first field with this id at or after `from`, or -1. */
int http_fields_find_id(const struct http_fields *f, enum http_field_id id, unsigned from);
/* Value of the first field called name, STR_NULL if there is none. */
struct str http_fields_get(const struct http_fields *f, struct str name);
/* How many fields are called name. */
unsigned http_fields_count(const struct http_fields *f, struct str name);

/* The next four return 0, -EINVAL for a name or value that could not be sent (http/valid.h),
 * -E2BIG over a limit, -ENOMEM; on failure nothing changed. */

/* Add a field at the end. */
_warn_unused_ int http_fields_add(struct http_fields *f, struct str name, struct str value);
/* Make `value` the only value of name: replace the first one in place and remove the others, or add
 * a field at the end if there was none. */
_warn_unused_ int http_fields_set(struct http_fields *f, struct str name, struct str value);
/* Replace the value of field i. */
_warn_unused_ int http_fields_set_at(struct http_fields *f, unsigned i, struct str value);
/* Copy all of `from` (but hop-by-hop fields) to the end of f. */
_warn_unused_ int http_fields_copy(struct http_fields *f, const struct http_fields *from);

/* Return whether the fields take at most so many bytes on the wire, and each at most HTTP_LINE_MAX.
 * Whoever sends fields on asks this, wherever they came from. */
bool http_fields_fit(const struct http_fields *f, size_t max);

/* Remove all fields called name; return how many. */
unsigned http_fields_remove(struct http_fields *f, struct str name);
/* Remove field i; the fields after it move up. */
void http_fields_remove_at(struct http_fields *f, unsigned i);

/* Return the id of a field name, HTTP_F_OTHER if it is not known. */
enum http_field_id http_field_id(struct str name);
/* What some origins take from a field of this name instead of from the request line. Servers that
 * map field names to variables take '_' for '-'. */
enum http_override { HTTP_OVERRIDES_NOTHING, HTTP_OVERRIDES_METHOD, HTTP_OVERRIDES_PATH };
enum http_override http_field_overrides(struct str name);
/* Whether Connection may nominate a field of this name: never one that routes, frames or
 * authenticates. */
bool http_may_nominate(struct str name);

/* For parsers: add a field whose name and value lie in f->text already and were checked. Return
 * 0, -E2BIG, -ENOMEM. */
_warn_unused_ int http_fields_push(struct http_fields *f, struct http_field field);

enum http_version { HTTP_10 = 10, HTTP_11 = 11, HTTP_2 = 20 };

/* How the end of the body is found. */
enum http_framing {
	HTTP_BODY_NONE,    /* no body at all (also Content-Length: 0) */
	HTTP_BODY_LENGTH,  /* content_length bytes, above 0 */
	HTTP_BODY_CHUNKED, /* chunked in HTTP/1.1, DATA frames in HTTP/2; length unknown */
	HTTP_BODY_CLOSE,   /* response only: up to the end of the connection */
};

/* Facts derived while parsing; struct http_head.flags. */
enum {
	HTTP_KEEP_ALIVE = 1 << 0, /* the sender lets this connection be used again */
	HTTP_HAS_LENGTH = 1 << 1, /* content_length was given (0, or a HEAD/304 answer's, too) */
	HTTP_EXPECT_CONTINUE = 1 << 2, /* the sender waits for 100 before its body */
	HTTP_EXPECT_OTHER = 1 << 3,    /* an expectation that we do not know */
	HTTP_UPGRADE = 1 << 4,         /* asks for (or 101: gives) another protocol */
	HTTP_UPGRADE_WS = 1 << 5,      /* ... and that is exactly "websocket" */
	HTTP_H2C = 1 << 6,         /* offers cleartext HTTP/2 (Upgrade: h2c or HTTP2-Settings) */
	HTTP_TE_TRAILERS = 1 << 7, /* understands trailers */
	HTTP_ABSOLUTE = 1 << 8,    /* the target came in absolute form */
	HTTP_CONNECT = 1 << 9,     /* method CONNECT: host and port are the target; never written */
	HTTP_TRACE = 1 << 10,      /* method TRACE; never written */
	HTTP_TO_HEAD = 1 << 11,    /* response to a HEAD request */
};

/* A place in the storage. */
struct http_span {
	uint32_t at, len;
};

struct http_head {
	struct http_fields fields; /* in order, as received; framing fields included */
	bool is_request;
	enum http_version version;
	unsigned flags;

	/* Request. Host as written (case kept), without port, an IPv6 one with its brackets;
	 * port 0: none was given. Scheme is "" unless the target was absolute (or it was set).
	 * Target is "/path?query" or "*", also if it came in absolute form. */
	struct http_span s_method, s_scheme, s_host, s_target;
	uint16_t port;

	/* Response. */
	uint16_t status;
	struct http_span s_reason;

	enum http_framing body;
	uint64_t content_length; /* meaningful with HTTP_HAS_LENGTH */
};

#define HTTP_HEAD_INIT ((struct http_head){.fields = {.text = {.max = HTTP_STORE_MAX}}})

void http_head_done(struct http_head *h);  /* frees; usable again after it */
void http_head_clear(struct http_head *h); /* ready for the next message, memory kept */

static inline struct str http_head_span(const struct http_head *h, struct http_span s)
{
	return str_make(s.len ? h->fields.text.mem + s.at : "", s.len);
}
static inline struct str http_head_method(const struct http_head *h)
{
	return http_head_span(h, h->s_method);
}
static inline struct str http_head_scheme(const struct http_head *h)
{
	return http_head_span(h, h->s_scheme);
}
static inline struct str http_head_host(const struct http_head *h)
{
	return http_head_span(h, h->s_host);
}
static inline struct str http_head_target(const struct http_head *h)
{
	return http_head_span(h, h->s_target);
}
static inline struct str http_head_reason(const struct http_head *h)
{
	return http_head_span(h, h->s_reason);
}

/* Begin a request (clearing h) from typed parts, each checked by http/valid.h: HTTP/1.1,
 * keep-alive, no body. port 0: not to be written; scheme may be "". No part may be a view into h.
 * Return 0, -EINVAL, -E2BIG, -ENOMEM. */
_warn_unused_ int http_head_set_request(struct http_head *h, struct str method, struct str scheme,
	struct str host, uint16_t port, struct str target);
/* Begin a response (clearing h) in the same way. An empty reason gets the standard text. */
_warn_unused_ int http_head_set_response(struct http_head *h, unsigned status, struct str reason);
/* Set the framing; length counts for HTTP_BODY_LENGTH only (0 makes it "no body, length 0"). */
void http_head_set_body(struct http_head *h, enum http_framing body, uint64_t length);
/* Remove every field that does not travel end to end. */
void http_head_strip(struct http_head *h);
/* Replace the target of a request. */
_warn_unused_ int http_head_set_target(struct http_head *h, struct str target);
/* Percent-encode non-ASCII characters in the query of the target, as clients should have done, so
 * that what is judged is what is sent. Return 0, -EINVAL if they are not UTF-8, or as buf_add(). */
_warn_unused_ int http_head_encode_query(struct http_head *h);

/* Standard text of a status ("Not Found"), or "Unknown". */
const char *http_status_text(unsigned status);

static inline void http_head_donep(struct http_head *h)
{
	http_head_done(h);
}
static inline void http_fields_donep(struct http_fields *f)
{
	http_fields_done(f);
}
