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
	/* both ways */
	NET_DATA = 32, /* the u32 number of the stream, then the raw bytes */
	NET_END,       /* struct net_trailers, then fields (usually none) */
	NET_RESET,     /* struct net_end_of_stream */
	NET_CREDIT,    /* struct net_credit */
};

/* What a stream carries. Of a WEBSOCKET the request is an HTTP/1.1 upgrade; after a HEAD with
 * status 101 both directions are DATA of whole WebSocket frames, which each side has judged before
 * it sends them. A TUNNEL has no method, target or fields, and is answered by HEAD with status 200
 * (or another one and an END, if it is refused); then both directions are bytes that nobody
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

#define NET_HELLO_FIELDS(F)                                                                        \
	F(U32, version)                                                                            \
	/* DER SubjectPublicKeyInfo of the key that all leaves of this gateway use */              \
	F(STR, spki, .max = NET_MAX_SPKI)
MESSAGE(net, hello, NET_HELLO, NET_HELLO_FIELDS);

#define NET_MINT_FIELDS(F)                                                                         \
	F(U32, request)                                                                            \
	/* canonical name, or an IP literal for a client that sent no SNI */                       \
	F(STR, host, .max = NET_MAX_HOST)                                                          \
	F(U16, port)   /* that the room connected to */                                            \
	F(BOOL, h2)    /* what its ALPN offers */                                                  \
	F(BOOL, http1) /* also if it sent none */
MESSAGE(net, mint, NET_MINT, NET_MINT_FIELDS);

#define NET_CERT_FIELDS(F)                                                                         \
	F(U32, request)                                                                            \
	F(BOOL, ok) /* false: refused (rate of minting, or not a host name) */                     \
	F(ENUM, mode, net_mode, NET_MODE_END)                                                      \
	F(STR, leaf, .max = NET_MAX_CERT) /* DER; empty for a tunnel */
MESSAGE(net, cert, NET_CERT, NET_CERT_FIELDS);

/* Of OPEN, INTERIM, HEAD and END this is what comes before the fields of HTTP. The last number says
 * how many there are: end-to-end ones only, no Host, framing or hop-by-hop field. */
#define NET_OPEN_FIELDS(F)                                                                         \
	F(U32, stream)                                                                             \
	F(U32, connection) /* the room's: its number for the log */                                \
	F(PART, client, net_client)                                                                \
	F(ENUM, kind, net_kind, NET_KIND_END)                                                      \
	/* what the room's side really was: HTTPS only over TLS to us */                           \
	F(ENUM, scheme, net_scheme, NET_SCHEME_END)                                                \
	F(STR, host, .max = NET_MAX_HOST) /* canonical; equal to the SNI if there was TLS */       \
	F(U16, port)                      /* that the room connected to */                         \
	F(STR, method, .max = NET_MAX_METHOD)                                                      \
	F(STR, target, .max = NET_MAX_TARGET) /* origin form, as received: path and query */       \
	F(ENUM, body, net_body, NET_BODY_END)                                                      \
	F(U64, length)           /* NET_BODY_LENGTH only */                                        \
	F(BOOL, expect_continue) /* the room waits for 100 before it sends the body */             \
	F(BOOL, te_trailers)     /* the room reads trailers (gRPC insists on being told) */        \
	F(U16, fields_n, .max = NET_MAX_FIELDS)
MESSAGE_STRUCT(net_open, NET_OPEN_FIELDS);

#define NET_RESPONSE_FIELDS(F)                                                                     \
	F(U32, stream)                                                                             \
	F(U16, status)                                                                             \
	F(ENUM, body, net_body, NET_BODY_END)                                                      \
	F(U64, length)                                                                             \
	F(BOOL, close)   /* the gateway closes the room's connection after it */                   \
	F(BOOL, refused) /* HEAD: by policy; the broker's own answer */                            \
	F(U16, fields_n, .max = NET_MAX_FIELDS)
MESSAGE_STRUCT(net_response, NET_RESPONSE_FIELDS);

#define NET_TRAILERS_FIELDS(F)                                                                     \
	F(U32, stream)                                                                             \
	F(U16, fields_n, .max = NET_MAX_FIELDS)
MESSAGE_STRUCT(net_trailers, NET_TRAILERS_FIELDS);

#define NET_END_OF_STREAM_FIELDS(F)                                                                \
	F(U32, stream)                                                                             \
	F(ENUM, why, net_reset, NET_RESET_END)
MESSAGE_STRUCT(net_end_of_stream, NET_END_OF_STREAM_FIELDS);

#define NET_CREDIT_FIELDS(F)                                                                       \
	F(U32, stream)                                                                             \
	F(U32, bytes, .min = 1, .max = NET_WINDOW)
MESSAGE_STRUCT(net_credit, NET_CREDIT_FIELDS);

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

/* Texts are raw bytes, cut to what is allowed. */
#define NET_EVENT_FIELDS(F)                                                                        \
	F(ENUM, kind, net_event_kind, NET_EVENT_KIND_END)                                          \
	F(U32, connection)                                                                         \
	F(PART, client, net_client)                                                                \
	F(U16, status) /* what the room was answered, 0 if nothing */                              \
	F(U16, port)   /* destination */                                                           \
	F(STR, a, .max = NET_MAX_VALUE, .flags = FIELD_CUT)                                        \
	F(STR, b, .max = NET_MAX_VALUE, .flags = FIELD_CUT)                                        \
	F(STR, c, .max = NET_MAX_VALUE, .flags = FIELD_CUT)                                        \
	/* if a request was read so far, else empty */                                             \
	F(STR, method, .max = NET_MAX_METHOD, .flags = FIELD_CUT)                                  \
	F(STR, target, .max = NET_MAX_TARGET, .flags = FIELD_CUT)
MESSAGE(net, event, NET_EVENT, NET_EVENT_FIELDS);

/* --- encoding of the others: each appends one whole frame to c->out; 0 or -errno --- */
_warn_unused_ int net_send_data(struct chan *c, uint32_t stream, struct str bytes);
_warn_unused_ int net_send_reset(struct chan *c, uint32_t stream, enum net_reset why);
_warn_unused_ int net_send_credit(struct chan *c, uint32_t stream, uint32_t bytes);
_warn_unused_ int net_send_forget(struct chan *c);
/* END without trailers. */
_warn_unused_ int net_send_end(struct chan *c, uint32_t stream);

/* Frames with fields: begin, add each field, end. fields_n of the struct is filled by
 * net_end_fields; the count is limited to NET_MAX_FIELDS (-E2BIG). */
struct net_fields_out {
	struct frame_out frame;
	size_t count_at; /* offset of the count from the frame's mark */
	uint16_t n;
};
struct net_fields_out net_begin_open(struct chan *c, const struct net_open *m);
/* type is NET_HEAD or NET_INTERIM. */
struct net_fields_out net_begin_response(
	struct chan *c, enum net_frame type, const struct net_response *m);
struct net_fields_out net_begin_trailers(struct chan *c, uint32_t stream);
void net_add_field(struct net_fields_out *f, struct str name, struct str value);
_warn_unused_ int net_end_fields(struct net_fields_out *f);

/* A DATA frame that is filled in place: returns where at most max bytes may be written, or NULL
 * if the channel's buffer is full. Commit with the number written (0 withdraws the frame). */
char *net_begin_data(struct chan *c, uint32_t stream, size_t max, size_t *ret_mark);
_warn_unused_ int net_commit_data(struct chan *c, size_t mark, size_t n);

/* --- decoding of the others: false if malformed; views point into the payload --- */
/* ret_fields then yields exactly fields_n fields with net_next_field. */
bool net_get_open(struct str payload, struct net_open *ret, struct wire_in *ret_fields);
bool net_get_response(struct str payload, struct net_response *ret, struct wire_in *ret_fields);
bool net_get_data(struct str payload, uint32_t *ret_stream, struct str *ret_bytes);
bool net_get_end(struct str payload, uint32_t *ret_stream, uint16_t *ret_fields_n,
	struct wire_in *ret_fields);
bool net_get_reset(struct str payload, uint32_t *ret_stream, enum net_reset *ret_why);
bool net_get_credit(struct str payload, uint32_t *ret_stream, uint32_t *ret_bytes);
/* False if malformed. After the last field check wire_ok(fields). */
bool net_next_field(struct wire_in *fields, struct str *ret_name, struct str *ret_value);

/* Every table, up to NULL. */
extern const message_fn net_messages[];
