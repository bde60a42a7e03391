/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a gateway (which speaks the room's syntax and is not trusted) and its
 * broker (which holds policy, secrets and the CA key and writes upstream). One channel a sandbox,
 * many streams on it; a stream is one HTTP request and its response.
 *
 * A stream's life, seen by the broker (any frame not permitted in a state ends the channel):
 *
 *   idle   --OPEN-->                 open   (request body none: half-closed at once)
 *   open   --DATA, CREDIT-->         open
 *   open   --END-->                  half   (the request is complete)
 *   half   --CREDIT-->               half
 *   open, half --RESET-->            closed
 *
 * and towards the gateway: any number of INTERIM, then HEAD, DATA..., END; or RESET at any time.
 * A stream is closed when both directions have ended or either side sent RESET. Frames for a stream
 * that the sender could not know to be closed (DATA, END, CREDIT after the peer's RESET) are
 * ignored. Stream numbers rise by use and are never used again.
 *
 * Flow control: each direction of a stream starts with NET_WINDOW bytes of DATA; the receiver of
 * the data gives more with CREDIT when it has passed bytes on. A sender that exceeds its window
 * ends the channel (towards the broker) or the stream (towards the gateway).
 *
 * Text fields are views of raw bytes; the broker validates each again. */

#include "ipc/message.h"

enum {
	NET_VERSION = 2,
	NET_MAX_PAYLOAD = 160 * 1024, /* a head of 64 KiB and 128 fields with room to spare */
	NET_MAX_DATA = 32 * 1024,     /* of one DATA frame */
	NET_WINDOW = 128 * 1024,      /* bytes of one direction of one stream under way */
	NET_MAX_STREAMS = 1024,
	NET_MAX_FIELDS = 128,
	NET_MAX_HOST = 255,
	NET_MAX_METHOD = 16,
	NET_MAX_TARGET = 16 * 1024,
	NET_MAX_NAME = 256,
	NET_MAX_VALUE = 32 * 1024,
	NET_MAX_SPKI = 256,
	NET_MAX_CERT = 4096,
};

enum net_frame {
	/* gateway -> broker */
	NET_HELLO = 1, /* struct net_hello: once, first */
	NET_MINT,      /* struct net_mint: ask for a leaf certificate */
	NET_OPEN,      /* struct net_open, then fields */
	NET_EVENT,     /* struct net_event: something to log that is no request */
	/* broker -> gateway */
	NET_CERT = 16, /* struct net_cert */
	NET_INTERIM,   /* struct net_response, then fields: a 1xx */
	NET_HEAD,      /* struct net_response, then fields */
	NET_FORGET,    /* nothing: the policy is another one, so what CERT said before holds no more
			*/
	/* both ways; payload starts with the u32 stream number */
	NET_DATA = 32, /* then the raw bytes */
	NET_END,       /* then fields: trailers (usually none) */
	NET_RESET,     /* then u8 enum net_reset */
	NET_CREDIT,    /* then u32 bytes */
};

/* What a stream carries. Of a WEBSOCKET the request is an HTTP/1.1 upgrade; after a HEAD with
 * status 101 both directions are DATA of whole WebSocket frames, which each side has judged before
 * it sends them. A TUNNEL has no method, target or fields, and is answered by HEAD with status 200
 * (or another one and an END, where it is refused); then both directions are bytes that nobody
 * looks into. END ends one direction. Both kinds have NET_BODY_STREAM in both directions. */
enum net_kind { NET_KIND_HTTP, NET_KIND_WEBSOCKET, NET_KIND_TUNNEL, NET_KIND_END };
/* How to go on with a TLS connection whose ClientHello was seen. */
enum net_mode {
	NET_MODE_HTTP1,  /* with this leaf, ALPN http/1.1 */
	NET_MODE_H2,     /* with this leaf, ALPN h2 */
	NET_MODE_TUNNEL, /* no leaf: as a stream of NET_KIND_TUNNEL, undecrypted */
	NET_MODE_END
};
enum net_scheme { NET_HTTP, NET_HTTPS, NET_SCHEME_END };
enum net_body { NET_BODY_NONE, NET_BODY_LENGTH, NET_BODY_STREAM, NET_BODY_END };
enum net_reset {
	NET_RESET_CANCELLED, /* the other side of the sender went away */
	NET_RESET_MALFORMED, /* framing broke in the middle of a body */
	NET_RESET_UPSTREAM,  /* the origin failed in the middle of a body */
	NET_RESET_LIMIT,
	NET_RESET_END
};

/* The two ends of a connection of the room, as its own sockets have them. Bytes of the addresses
 * that the family does not use are 0. */
#define NET_CLIENT_FIELDS(F)                                                                       \
	F(U8, family, .max = 6) /* 4 or 6; 0: not known, and all is 0 */                           \
	F(U16, port)                                                                               \
	F(U16, server_port)                                                                        \
	F(BYTES, address, 16)                                                                      \
	F(BYTES, server, 16)
MESSAGE_STRUCT(net_client, NET_CLIENT_FIELDS);

struct net_hello {
	uint32_t version;
	struct str
		spki; /* DER SubjectPublicKeyInfo of the key that all leaves of this gateway use */
};

struct net_mint {
	uint32_t request;
	struct str host; /* canonical name, or an IP literal for a client that sent no SNI */
	uint16_t port;   /* that the room connected to */
	bool h2, http1;  /* what its ALPN offers; http1 also where it sent none */
};

struct net_cert {
	uint32_t request;
	bool ok; /* false: refused (rate of minting, or not a host name) */
	enum net_mode mode;
	struct str leaf; /* DER; empty for a tunnel */
};

struct net_open {
	uint32_t stream;
	uint32_t connection; /* the room's connection: number for the log */
	struct net_client client;
	enum net_kind kind;
	enum net_scheme scheme; /* what the room's side really was: HTTPS only over TLS to us */
	struct str host;        /* canonical; equal to the SNI where there was TLS */
	uint16_t port;          /* the port that the room connected to */
	struct str method;
	struct str target; /* origin form, as received: path and query */
	enum net_body body;
	uint64_t length;      /* NET_BODY_LENGTH only */
	bool expect_continue; /* the room waits for 100 before it sends the body */
	bool te_trailers;     /* the room reads trailers (gRPC insists on being told) */
	uint16_t fields_n;    /* end-to-end fields only: no Host, framing or hop-by-hop field */
};

struct net_response {
	uint32_t stream;
	uint16_t status;
	enum net_body body;
	uint64_t length;
	bool close;        /* the gateway closes the room's connection after it */
	bool refused;      /* HEAD: by policy; the broker's own answer */
	uint16_t fields_n; /* end-to-end fields only */
};

/* What the gateway saw that never became a request, or that it answered itself. */
enum net_event_kind {
	NET_EVENT_DNS,       /* a: name, b: type as text, c: answer as text */
	NET_EVENT_MALFORMED, /* a: host or "", b: reason, status: what was answered */
	NET_EVENT_MISMATCH,  /* a: SNI, b: Host or authority */
	NET_EVENT_CONNECT,   /* a: method or protocol ("CONNECT", "SOCKS5"), b: its target */
	NET_EVENT_UPGRADE,   /* a: host, b: protocol asked for */
	NET_EVENT_NOT_HTTP,  /* a: destination "ip:port" or name, b: what the bytes looked like */
	NET_EVENT_TLS,       /* a: the SNI if it is a name, else the destination; b: why */
	NET_EVENT_DIRECT_IP, /* a: destination, b: detail */
	NET_EVENT_LIMIT,     /* a: which limit, b: detail */
	NET_EVENT_KIND_END
};

struct net_event {
	enum net_event_kind kind;
	uint32_t connection;
	struct net_client client;
	uint16_t status;           /* what the room was answered, 0 where nothing */
	uint16_t port;             /* destination */
	struct str a, b, c;        /* raw bytes, at most NET_MAX_VALUE each */
	struct str method, target; /* where a request was read so far, else empty */
};

/* --- encoding: each appends one whole frame to c->out; 0 or -errno --- */
_warn_unused_ int net_send_hello(struct chan *c, const struct net_hello *m);
_warn_unused_ int net_send_mint(struct chan *c, const struct net_mint *m);
_warn_unused_ int net_send_cert(struct chan *c, const struct net_cert *m);
_warn_unused_ int net_send_event(struct chan *c, const struct net_event *m);
_warn_unused_ int net_send_data(struct chan *c, uint32_t stream, struct str bytes);
_warn_unused_ int net_send_reset(struct chan *c, uint32_t stream, enum net_reset why);
_warn_unused_ int net_send_credit(struct chan *c, uint32_t stream, uint32_t bytes);
_warn_unused_ int net_send_forget(struct chan *c);
/* END without trailers. */
_warn_unused_ int net_send_end(struct chan *c, uint32_t stream);

/* Frames with fields: begin, add each field, end. fields_n of the struct is filled by
 * net_end_fields; the count is limited to NET_MAX_FIELDS (-E2BIG). */
struct net_fields_out {
	struct chan *c;
	size_t mark, count_at; /* count_at: offset of the u16 count from the mark */
	uint16_t n;
	int error;
};
struct net_fields_out net_begin_open(struct chan *c, const struct net_open *m);
/* type is NET_HEAD or NET_INTERIM. */
struct net_fields_out net_begin_response(
	struct chan *c, enum net_frame type, const struct net_response *m);
struct net_fields_out net_begin_trailers(struct chan *c, uint32_t stream);
void net_add_field(struct net_fields_out *f, struct str name, struct str value);
_warn_unused_ int net_end_fields(struct net_fields_out *f);

/* A DATA frame that is filled in place: returns where at most max bytes may be written, or NULL
 * where the channel's buffer is full. Commit with the number written (0 withdraws the frame). */
char *net_begin_data(struct chan *c, uint32_t stream, size_t max, size_t *ret_mark);
_warn_unused_ int net_commit_data(struct chan *c, size_t mark, size_t n);

/* --- decoding: false where malformed; views point into the payload --- */
bool net_get_hello(struct str payload, struct net_hello *ret);
bool net_get_mint(struct str payload, struct net_mint *ret);
bool net_get_cert(struct str payload, struct net_cert *ret);
bool net_get_event(struct str payload, struct net_event *ret);
/* ret_fields then yields exactly fields_n fields with net_next_field. */
bool net_get_open(struct str payload, struct net_open *ret, struct wire_in *ret_fields);
bool net_get_response(struct str payload, struct net_response *ret, struct wire_in *ret_fields);
bool net_get_data(struct str payload, uint32_t *ret_stream, struct str *ret_bytes);
bool net_get_end(struct str payload, uint32_t *ret_stream, uint16_t *ret_fields_n,
	struct wire_in *ret_fields);
bool net_get_reset(struct str payload, uint32_t *ret_stream, enum net_reset *ret_why);
bool net_get_credit(struct str payload, uint32_t *ret_stream, uint32_t *ret_bytes);
/* False where malformed. After the last field check wire_ok(fields). */
bool net_next_field(struct wire_in *fields, struct str *ret_name, struct str *ret_value);
