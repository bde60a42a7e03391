/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a gateway (which speaks the room's syntax and is not trusted) and its
 * broker (which holds policy, secrets and the CA key and writes upstream). There is one channel per
 * sandbox, with many streams; a stream is one HTTP request and its response.
 *
 * The states of a stream in the broker (a frame that is not permitted ends the channel):
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
 * ignored. Stream numbers rise and are never used again.
 *
 * Flow control: a request starts with NET_REQUEST_WINDOW bytes of DATA, an answer with NET_WINDOW;
 * the receiver of the data grants more with CREDIT when it has passed bytes on. For a request the
 * broker may grant more than it has passed on: the window grows, to NET_REQUEST_WINDOW_MAX at most.
 * A sender that exceeds its window ends the channel (towards the broker) or the stream (towards the
 * gateway).
 *
 * Text fields are views of raw bytes; the broker validates each again. */

#include "ipc/message.h"

enum {
	NET_VERSION = 5,
	NET_MAX_PAYLOAD = 160 * 1024,    /* more than enough for a head of 64 KiB and 128 fields */
	NET_MAX_DATA = 32 * 1024,        /* of one DATA frame */
	NET_WINDOW = 128 * 1024,         /* bytes in flight of one answer */
	NET_REQUEST_WINDOW = 256 * 1024, /* ... of one request, at first */
	/* ... if the origin takes what comes. Over HTTP/2 the client waits for each process on its
	 * way, and may not send ahead into a socket meanwhile. */
	NET_REQUEST_WINDOW_MAX = 512 * 1024,
	NET_REQUESTS_GROWN_MAX = 2 * 1024 * 1024, /* by what the windows of all requests grow */
	NET_MAX_STREAMS = 1024,
	NET_MAX_FIELDS = 128,
	NET_MAX_HOST = 255,
	NET_MAX_METHOD = 16,
	NET_MAX_TARGET = 16 * 1024,
	NET_MAX_NAME = 256,
	NET_MAX_VALUE = 32 * 1024,
	NET_MAX_SPKI = 256,
	NET_MAX_CERT = 4096,
	NET_PORT_BYTES = 65536 / 8, /* a bit for each port */
};

enum net_frame {
	/* gateway -> broker */
	NET_HELLO = 1, /* struct net_hello: once, first */
	NET_MINT,      /* struct net_mint: ask for a leaf certificate */
	NET_OPEN,      /* struct net_open, then fields */
	NET_EVENT,     /* struct net_event: something to log that is not a request */
	/* broker -> gateway */
	NET_CERT = 16, /* struct net_cert */
	NET_INTERIM,   /* struct net_response, then fields: a 1xx */
	NET_HEAD,      /* struct net_response, then fields */
	NET_FORGET,    /* nothing: the policy has changed, so earlier CERTs are void */
	NET_PORTS,     /* struct net_ports: after HELLO, and when it changes */
	/* both ways */
	NET_DATA = 32, /* the u32 number of the stream, then the raw bytes */
	NET_END,       /* struct net_trailers, then fields (usually none) */
	NET_RESET,     /* struct net_end_of_stream */
	NET_CREDIT,    /* struct net_credit */
};

/* What a stream carries. The request of a WEBSOCKET is an HTTP/1.1 upgrade; after a HEAD with
 * status 101 both directions are DATA of whole WebSocket frames, which each side has checked before
 * it sends them. A TUNNEL has no method, target or fields, and is answered by HEAD with status 200
 * (or another status and an END, if it is refused); then both directions are opaque bytes. END ends
 * one direction. It is the client's own TLS (scheme HTTPS) or, to a port of PORTS, anything (TCP);
 * RESET UNLISTED says that no rule for TCP names the host. A TUNNEL of the scheme SSH is one
 * command of git: it has a method (FETCH or PUSH), the path of the repository as target, and the
 * fields Ssh-User and, perhaps, Git-Protocol; a refusal has a text for people as body, and what
 * comes of an allowed one are the pieces of ipc/sshleg.h. Both kinds have NET_BODY_STREAM in both
 * directions. */
enum net_kind { NET_KIND_HTTP, NET_KIND_WEBSOCKET, NET_KIND_TUNNEL, NET_KIND_END };
/* How to continue a TLS connection after its ClientHello. */
enum net_mode {
	NET_MODE_HTTP1,  /* with this leaf, ALPN http/1.1 */
	NET_MODE_H2,     /* with this leaf, ALPN h2 */
	NET_MODE_TUNNEL, /* no leaf: a stream of NET_KIND_TUNNEL, not decrypted */
	NET_MODE_END
};
enum net_scheme {
	NET_HTTP,
	NET_HTTPS,
	NET_TCP, /* a tunnel alone */
	NET_SSH, /* a tunnel alone, for git */
	NET_SCHEME_END
};
enum net_body { NET_BODY_NONE, NET_BODY_LENGTH, NET_BODY_STREAM, NET_BODY_END };
enum net_reset {
	NET_RESET_CANCELLED, /* the sender's other connection was closed */
	NET_RESET_MALFORMED, /* framing broke in the middle of a body */
	NET_RESET_UPSTREAM,  /* the origin failed in the middle of a body */
	NET_RESET_LIMIT,
	NET_RESET_UNLISTED, /* to the gateway: it is no TCP tunnel, but may be something else */
	NET_RESET_END
};

/* The two ends of a connection of the room, as seen by its own sockets. Address bytes that the
 * family does not use are 0. */
#define NET_CLIENT_FIELDS(F)                                                                       \
	F(U8, family, .max = 6) /* 4 or 6; 0: not known, and everything is 0 */                    \
	F(U16, port)                                                                               \
	F(U16, server_port)                                                                        \
	F(BYTES, address, 16)                                                                      \
	F(BYTES, server, 16)
MESSAGE_STRUCT(net_client, NET_CLIENT_FIELDS);

/* The process of the room that holds a connection. The texts may be any bytes. */
#define NET_OWNER_FIELDS(F)                                                                        \
	F(U32, pid) /* as the room sees it; 0: not known */                                        \
	F(STR, name, .max = 64)                                                                    \
	F(STR, program, .max = 1024)
MESSAGE_STRUCT(net_owner, NET_OWNER_FIELDS);

#define NET_HELLO_FIELDS(F)                                                                        \
	F(U32, version)                                                                            \
	/* DER SubjectPublicKeyInfo of the key for all leaves of this gateway */                   \
	F(STR, spki, .max = NET_MAX_SPKI)
MESSAGE(net, hello, NET_HELLO, NET_HELLO_FIELDS);

#define NET_MINT_FIELDS(F)                                                                         \
	F(U32, request)                                                                            \
	/* canonical name, or an IP literal for a client that sent no SNI */                       \
	F(STR, host, .max = NET_MAX_HOST)                                                          \
	F(U16, port)   /* destination of the room's connection */                                  \
	F(BOOL, h2)    /* offered by the client's ALPN */                                          \
	F(BOOL, http1) /* also true without ALPN */
MESSAGE(net, mint, NET_MINT, NET_MINT_FIELDS);

#define NET_CERT_FIELDS(F)                                                                         \
	F(U32, request)                                                                            \
	F(BOOL, ok) /* false: refused (rate of minting, or not a host name) */                     \
	F(ENUM, mode, net_mode, NET_MODE_END)                                                      \
	F(STR, leaf, .max = NET_MAX_CERT) /* DER; empty for a tunnel */
MESSAGE(net, cert, NET_CERT, NET_CERT_FIELDS);

/* OPEN, INTERIM, HEAD and END begin with these structs, and HTTP fields follow. fields_n is their
 * number: end-to-end fields only, no Host, framing or hop-by-hop field. */
#define NET_OPEN_FIELDS(F)                                                                         \
	F(U32, stream)                                                                             \
	F(U32, connection) /* number of the room's connection, for the log */                      \
	F(PART, client, net_client)                                                                \
	F(PART, owner, net_owner) /* if whoever captured it has said so */                         \
	F(ENUM, kind, net_kind, NET_KIND_END)                                                      \
	/* the real scheme of the room's side: HTTPS only over TLS to us */                        \
	F(ENUM, scheme, net_scheme, NET_SCHEME_END)                                                \
	F(STR, host, .max = NET_MAX_HOST) /* canonical; equal to the SNI if there was TLS */       \
	F(U16, port)                      /* destination of the room's connection */               \
	F(STR, method, .max = NET_MAX_METHOD)                                                      \
	F(STR, target, .max = NET_MAX_TARGET) /* origin form, as received: path and query */       \
	F(ENUM, body, net_body, NET_BODY_END)                                                      \
	F(U64, length)           /* NET_BODY_LENGTH only */                                        \
	F(BOOL, expect_continue) /* the room waits for 100 before it sends the body */             \
	F(BOOL, te_trailers)     /* the room accepts trailers (gRPC requires this) */              \
	F(BOOL, http1)           /* the room speaks HTTP/1.x, so the broker does, too */           \
	F(BOOL, keep_alive)      /* the room says so: "Connection: keep-alive" */                  \
	F(U16, fields_n, .max = NET_MAX_FIELDS)
MESSAGE_STRUCT(net_open, NET_OPEN_FIELDS);

#define NET_RESPONSE_FIELDS(F)                                                                     \
	F(U32, stream)                                                                             \
	F(U16, status)                                                                             \
	F(ENUM, body, net_body, NET_BODY_END)                                                      \
	F(U64, length)                                                                             \
	F(BOOL, close) /* the gateway closes the room's connection after it */                     \
	F(U16, fields_n, .max = NET_MAX_FIELDS)
MESSAGE_STRUCT(net_response, NET_RESPONSE_FIELDS);

#define NET_TRAILERS_FIELDS(F)                                                                     \
	F(U32, stream)                                                                             \
	F(U16, fields_n, .max = NET_MAX_FIELDS)
MESSAGE_STRUCT(net_trailers, NET_TRAILERS_FIELDS);

#define NET_END_OF_STREAM_FIELDS(F)                                                                \
	F(U32, stream)                                                                             \
	F(ENUM, why, net_reset, NET_RESET_END)
MESSAGE_WITH_FDS(net, end_of_stream, NET_END_OF_STREAM_FIELDS);

#define NET_CREDIT_FIELDS(F)                                                                       \
	F(U32, stream)                                                                             \
	F(U32, bytes, .min = 1, .max = NET_REQUEST_WINDOW_MAX)
MESSAGE_WITH_FDS(net, credit, NET_CREDIT_FIELDS);

/* Events at the gateway that never became a request, or that it answered itself. */
enum net_event_kind {
	NET_EVENT_DNS,       /* a: name, b: type as text, c: answer as text */
	NET_EVENT_MALFORMED, /* a: host or "", b: reason, status: the answer */
	/* a: the host that was connected to (the SNI, if there is one), c: "host", "port" or
	 * "scheme"; b: what the request says instead: its host, host:port or scheme */
	NET_EVENT_MISMATCH,
	NET_EVENT_CONNECT,  /* a: method or protocol ("CONNECT", "SOCKS5"), b: its target */
	NET_EVENT_METHOD,   /* a: host, b: a method that is refused everywhere ("TRACE") */
	NET_EVENT_UPGRADE,  /* a: host, b: protocol asked for */
	NET_EVENT_NOT_HTTP, /* a: destination "ip:port" or name, b: what the bytes looked like */
	NET_EVENT_TLS,      /* a: the SNI if it is a name, else the destination; b: why */
	NET_EVENT_LIMIT,    /* a: which limit, b: detail */
	NET_EVENT_TCP,      /* as NOT_HTTP, but a rule for TCP could allow it */
	NET_EVENT_KIND_END
};

/* Texts are raw bytes, cut to their maximum. */
#define NET_EVENT_FIELDS(F)                                                                        \
	F(ENUM, kind, net_event_kind, NET_EVENT_KIND_END)                                          \
	F(ENUM, scheme, net_scheme, NET_SCHEME_END) /* of the room's connection */                 \
	F(U32, connection)                                                                         \
	F(PART, client, net_client)                                                                \
	F(PART, owner, net_owner)                                                                  \
	F(U16, status) /* status of the answer to the room, 0 if none */                           \
	F(U16, port)   /* destination; of a CONNECT, the port in its target */                     \
	F(STR, a, .max = NET_MAX_VALUE, .flags = FIELD_CUT)                                        \
	F(STR, b, .max = NET_MAX_VALUE, .flags = FIELD_CUT)                                        \
	F(STR, c, .max = NET_MAX_VALUE, .flags = FIELD_CUT)                                        \
	/* if a request was read so far, else empty */                                             \
	F(STR, method, .max = NET_MAX_METHOD, .flags = FIELD_CUT)                                  \
	F(STR, target, .max = NET_MAX_TARGET, .flags = FIELD_CUT)
MESSAGE(net, event, NET_EVENT, NET_EVENT_FIELDS);

MESSAGE_EMPTY(net, forget, NET_FORGET);

/* The ports to which a connection may be a tunnel of TCP: bit port % 8 of byte port / 8. Empty:
 * none. */
#define NET_PORTS_FIELDS(F)                                                                        \
	F(STR, tcp, .max = NET_PORT_BYTES)                                                         \
	F(BOOL, ssh) /* there are rules for git over ssh, on any port */
MESSAGE(net, ports, NET_PORTS, NET_PORTS_FIELDS);

/* --- other encoders: each appends one whole frame to c->out; 0 or -errno --- */
_warn_unused_ int net_send_data(struct chan *c, uint32_t stream, struct str bytes);
_warn_unused_ int net_send_reset(struct chan *c, uint32_t stream, enum net_reset why);
_warn_unused_ int net_send_credit(struct chan *c, uint32_t stream, uint32_t bytes);
/* Send END without trailers. */
_warn_unused_ int net_send_end(struct chan *c, uint32_t stream);

/* Frames with fields: begin, add each field, end. net_end_fields fills in fields_n; more than
 * NET_MAX_FIELDS give -E2BIG. */
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

/* A DATA frame that is filled in place. net_begin_data returns where at most max bytes may be
 * written, or NULL if the channel's buffer is full. Commit the number of bytes written (0 withdraws
 * the frame). */
char *net_begin_data(struct chan *c, uint32_t stream, size_t max, size_t *ret_mark);
_warn_unused_ int net_commit_data(struct chan *c, size_t mark, size_t n);

/* --- other decoders: false if malformed; views point into the payload --- */
/* ret_fields then yields exactly fields_n fields with net_next_field. */
bool net_get_open(struct str payload, struct net_open *ret, struct wire_in *ret_fields);
bool net_get_response(struct str payload, struct net_response *ret, struct wire_in *ret_fields);
bool net_get_trailers(struct str payload, struct net_trailers *ret, struct wire_in *ret_fields);
bool net_get_data(struct str payload, uint32_t *ret_stream, struct str *ret_bytes);
/* Return false if malformed. After the last field check wire_ok(fields). */
bool net_next_field(struct wire_in *fields, struct str *ret_name, struct str *ret_value);
