/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share: the broker's state, and who calls whom.
 *
 *	gateway -> stream.c (frames, credit) -> decide.c (policy, secrets) -> dial.c (addresses)
 *		-> upstream.c (one connection), upstream_h1.c or upstream_h2.c (what is spoken)
 *		-> response.c (frames back) -> stream.c
 *	refuse.c answers in place of an origin; pool.c keeps connections; log.c writes lines.
 *
 * Streams and upstreams die in two steps: they are marked and taken out of everything at once, and
 * freed at the end of the loop's iteration, so a caller further up may still look at them. */

#include "base/clock.h"
#include "base/hash.h"
#include "broker/origin.h"
#include "broker/pool.h"
#include "dns/resolver.h"
#include "filter/filter.h"
#include "http/body.h"
#include "http/coding.h"
#include "http/h1.h"
#include "http/h2.h"
#include "ipc/netchan.h"
#include "loop/loop.h"
#include "netlog/netlog.h"
#include "policy/decide.h"
#include "secrets/scrub.h"
#include "secrets/secret_set.h"
#include "tls/ca.h"
#include "tls/client.h"

enum {
	SCRATCH = 32 * 1024,       /* read from an origin at once */
	DECODE_MAX = 128 << 20,    /* memory of all decoders together */
	OUT_HIGH = 256 * 1024,     /* waiting for the gateway: stop reading from it and origins */
	OUT_LOW = 64 * 1024,       /* ... and go on */
	OUT_MAX = 8 * 1024 * 1024, /* a gateway that sends and never reads is cut off */
	REPLAY_MAX = 64 * 1024,    /* of a request that may have to be sent once more */
	DISCARD_MAX = 256 * 1024,  /* of a body that nobody wants */
	REQUEST_COLLECTED_MAX = 256 * 1024 * 1024, /* of all bodies that are looked into */
	REQUEST_HIGH = 2 * NET_WINDOW,             /* of a request, waiting for the origin */
	REQUEST_LOW = 32 * 1024, /* unsent bytes below which the room may send more */
	NOTE_MAX = 512,
	RESOLVER_FDS = 32,
};

#define CONNECT_USEC (10 * USEC_PER_SEC)
#define FETCH_USEC (30 * USEC_PER_SEC)
#define STALL_USEC (60 * 60 * USEC_PER_SEC)
#define FIRST_SWEEP_USEC (1 * USEC_PER_SEC)
#define SWEEP_USEC (5 * USEC_PER_SEC)

struct upstream;
struct dial;
struct pool_bucket;
struct config;
struct github;
struct github_app;
struct origin;
struct websocket;
struct ws_counts;

/* --connect-to: where to dial for a host and port, whatever its names resolve to. */
struct override {
	struct host host;
	uint16_t port, to_port;
	char *address;
};

struct rate {
	double tokens;
	uint64_t at; /* monotonic, of the last refill */
};

/* A process of the room, for the log; the texts may be any bytes. */
struct log_owner {
	uint32_t pid;
	struct str name, program;
};

struct broker {
	struct loop *loop;
	struct cloche_err *err; /* why it ends, where that is a failure */

	struct chan supervisor, net, conf;
	struct loop_io supervisor_io, net_io, conf_io;
	struct config *config; /* until it is complete */
	bool serving;          /* configured and narrowed */

	struct tls_ca *ca;
	struct tls_trust *trust;
	struct allowlist *policy;
	unsigned policy_number; /* how often it was replaced */
	struct reload *reloads; /* that are under way */
	struct secret_set *secrets;
	struct github *github;                    /* credentials, a list by `next` */
	struct aws_accounts *aws;                 /* NULL where there are none */
	struct scrubber *scrubber, *log_scrubber; /* of secrets, of the log; NULL: none */
	struct override *overrides;
	struct cidr *own; /* addresses of this machine */
	size_t overrides_n, own_n;
	char *dns_servers; /* to ask; NULL: the host's */

	struct netlog *log;
	int log_fds[3];               /* plain, JSON, live */
	struct buf url;               /* for log lines */
	uint64_t bytes_in, bytes_out; /* of bodies: from origins to the room, and back */
	unsigned unlogged;            /* events that could not be written */

	struct dns_resolver *resolver;
	struct loop_timer resolver_timer;
	uint64_t names_asked; /* when the supervisor was asked whether the host's files changed */
	struct resolver_fd {
		struct broker *broker;
		struct loop_io io;
		int fd;
	} resolver_fds[RESOLVER_FDS];

	struct pool_bucket *pool;
	unsigned pool_n;
	size_t held;            /* bytes of HTTP/2 answers that the gateway does not take yet */
	bool held_up;           /* a connection is not read until there are less */
	struct origin *origins; /* what they speak, oldest first */
	struct origin_probe *probes;
	struct loop_timer sweep;
	bool rest_due; /* something happened since memory was given back */

	struct question *questions; /* attribute.c */
	unsigned questions_n, questions_asked;
	uint32_t questions_next;
	uint64_t questions_second;
	const struct log_owner *owner; /* of what is being logged; NULL: not known */

	bool hello;
	uint8_t spki[TLS_SPKI_MAX];
	struct rate mint_listed, mint_unlisted;
	struct mint *mints; /* that wait for an origin */
	unsigned mints_n;

	struct stream *streams;      /* by number, in the order of their opening */
	struct stream *dead, *spare; /* lists by `next` */
	struct upstream *dead_upstreams;
	unsigned spare_n;
	uint32_t last_stream;
	size_t collected;                   /* bytes of bodies that are looked into as a whole */
	struct stream *ready, **ready_tail; /* by `next_ready`: go when their intents are written */
	bool full;                          /* more than OUT_HIGH waited for the gateway */
	size_t under_way, waiting;          /* of all streams: see bounds.c */
	bool tight;                         /* a stream waits until others are credited */
	struct loop_job flush, frames;
	struct coding_budget coding;
	char scratch[SCRATCH], plain[SCRATCH]; /* as it came, decoded */
};

/* What the gateway may still send on a stream. */
enum stream_state { STREAM_OPEN, STREAM_HALF, STREAM_STATES };

struct stream {
	UT_hash_handle hh;
	struct stream *next, *next_ready;
	struct broker *broker;
	uint32_t id, connection;
	struct net_client client;
	enum stream_state state;
	bool closed;   /* out of the table; freed soon */
	bool answered; /* END was sent: only the rest of the request is of interest */
	bool discard;  /* the rest of the request's body goes nowhere */

	/* The request. A tunnel has none: its method is CONNECT. */
	enum net_kind kind;
	enum net_scheme scheme;
	struct host host;
	uint16_t port;
	struct http_head head;
	char *shown; /* the target as the room wrote it, where the head has another */
	enum net_body framing;
	uint64_t length; /* NET_BODY_LENGTH: still to come */
	bool is_head, idempotent, expects;
	struct verdict verdict;
	struct allowlist *policy; /* that the verdict's rule is of: a share in it */
	unsigned policy_number;

	/* Towards the origin. */
	struct buf body;  /* what it has not taken, or may have to be sent once more */
	size_t body_done; /* of that, taken */
	struct http_fields trailers;
	bool te_trailers; /* the room reads the answer's */
	bool keep;        /* what was taken stays, for a second try */
	bool retried;
	bool secret; /* memory of the request is wiped */
	struct dial *dial;
	struct upstream *up;
	void *leg;                     /* of what is spoken there */
	bool http1;                    /* it needs HTTP/1.1 */
	struct pool_bucket *leads;     /* others wait for the connection that it makes */
	struct pool_bucket *waits;     /* for such a one */
	struct stream *ahead, *behind; /* in that line */

	/* Where a filter or a signature needs the whole body first: it is collected in `body` up
	 * to whole_max, and the request goes on when it is complete. */
	bool whole;
	size_t whole_max, collected;
	unsigned filters; /* those that judge the body, see filter/filter.h */
	/* What a streamed body passes through on its way into `body`, or NULL. */
	struct rewrite *rewrite;
	struct github *waits_for;         /* for its token */
	const struct masked_secret *live; /* that was put in */
	bool several_live;
	struct origin_probe *probe; /* it asks nothing, and only makes a connection */
	struct fetch *fetch; /* it is the broker's own: the answer goes there, not to the gateway */
	struct websocket *websocket; /* owned by rewrite; NULL for other kinds */

	struct aws_stream *aws; /* signed with surrogates, or NULL */
	unsigned foreign;       /* credentials of AWS that were taken out */

	/* Flow. */
	uint32_t window_in;  /* what the gateway may still send */
	uint32_t uncredited; /* what it has sent and not got back */
	uint32_t window_out; /* what it still takes */
	uint64_t discarded;
	size_t under_way, waiting; /* as counted in the broker's: bounds.c */
	struct scrub *scrub;
	struct http_messages messages;
	struct decoding *decoding; /* NULL: the content comes as it is */

	/* For the log. */
	bool head_sent, logged;
	bool opened;              /* it has become a WebSocket, and that is on record */
	uint64_t started, active; /* monotonic */
	uint64_t bytes_in, bytes_out;
	uint16_t status;
	unsigned masked, dropped, collapsed, scrubbed;
	struct buf tags[FILTERS]; /* what filters say */
	char note[NOTE_MAX];
};

/* Changes a body on its way. Each function appends to `out` (the stream's body) and returns 0, or
 * -1 with err set: the request is broken off then. */
struct rewrite {
	int (*feed)(struct rewrite *r, struct str bytes, struct buf *out, struct cloche_err *err);
	int (*end)(struct rewrite *r, struct http_fields *trailers, struct buf *out,
		struct cloche_err *err);
	void (*free)(struct rewrite *r);
};

/* What is spoken on a connection. A stream is attached (s->up) from begin() until it is detached.
 */
struct upstream_ops {
	/* Begins the request of s. */
	void (*begin)(struct upstream *u, struct stream *s);
	/* The body of s has more bytes, or has ended. */
	void (*send)(struct upstream *u, struct stream *s);
	/* The gateway takes more of s again. */
	void (*resume)(struct upstream *u, struct stream *s);
	/* s goes away before the exchange is over. */
	void (*detach)(struct upstream *u, struct stream *s);
	/* The socket is ready. */
	void (*event)(struct upstream *u, uint32_t events);
	/* u->job runs. */
	void (*work)(struct upstream *u);
	/* How many streams more it can serve now; NULL: one at a time, and it is asked only while
	 * it serves none. */
	unsigned (*room)(const struct upstream *u);
	/* u closes: streams that are left are told by the caller. Frees u->protocol. */
	void (*end)(struct upstream *u);
};

/* A request of the broker's own over verified TLS, and its answer. At first zeroed but for done. */
struct fetch {
	void (*done)(struct fetch *f); /* what came of it; may start the next one */
	struct stream *stream;         /* while it is under way */
	struct loop_timer late;
	struct loop_job job;
	struct buf answer;
	unsigned status;
	bool complete;        /* else error says why not */
	char error[NOTE_MAX]; /* printable */
};

/* Everything is borrowed for the time of the call. */
struct fetch_request {
	struct str method, target, authorization, body;
	const struct host *host;
	uint16_t port;
	const struct str (*headers)[2];
	size_t n_headers;
};

/* One connection to an origin. */
struct upstream {
	struct broker *broker;
	struct stream *first; /* for which it was made; NULL when the handshake is over */
	struct upstream *next, *prev;
	struct pool_bucket *bucket; /* while it is in the pool */
	bool shared;                /* it is there though it serves streams */
	int fd;
	struct tls_client *tls; /* NULL: plain */
	struct loop_io io;
	struct loop_job job;
	const struct upstream_ops *ops; /* NULL until the handshake is over */
	void *protocol;                 /* of the ops */
	bool dead;
	bool used;      /* has served a request, or waited for one */
	bool http1;     /* nothing else was offered: the origin may speak HTTP/2 */
	bool want_out;  /* TLS waits for writability */
	bool drained;   /* the last read took all that was there */
	uint64_t since; /* monotonic: when its handshake began, or it became idle */
	char key[POOL_KEY_MAX];
};

/* broker.c */
/* Ends the program with this failure. */
void broker_fail(struct broker *b);
/* The values of secrets are others now. */
_warn_unused_ int broker_renew_scrubber(struct broker *b, struct cloche_err *err);
/* Writes what waits for the supervisor. 0 or -errno. */
_warn_unused_ int broker_flush_supervisor(struct broker *b);
/* Something waits in the channel: it is written at the end of the iteration. */
void broker_flush_later(struct broker *b);

/* config.c */
/* Reads the configuration; broker_configured() is called when it is complete. */
_warn_unused_ int config_start(struct broker *b, struct cloche_err *err);
void config_free(struct config *c);
/* Adds what an ALLOWLIST or ALLOW says; any other frame is an error. */
_warn_unused_ int config_take_rules(
	struct allowlist *list, const struct chan_frame *f, struct cloche_err *err);
void broker_configured(struct broker *b);
/* Tells the client that its configuration is refused (b->err). */
void config_refuse(struct broker *b);
/* The last word to the client: counts. */
void config_finish(struct broker *b);

/* reload.c */
/* A client has sent a socket (taken), over which a new policy comes. */
void reload_begin(struct broker *b, int fd);
/* The first policy is there: others may take its place. */
void reloads_start(struct broker *b);
void reloads_free(struct broker *b);

/* narrow.c */
_warn_unused_ int narrow_first(struct cloche_err *err);
_warn_unused_ int narrow_last(struct cloche_err *err);

/* stream.c */
/* 0, or -EPROTO where the gateway has broken the protocol. */
_warn_unused_ int stream_frame(struct broker *b, const struct chan_frame *f);
/* The answer is complete (or was refused): logs, and closes or discards what still comes. */
void stream_finish(struct stream *s);
/* One that is in no table: a request of our own to an https origin. NULL on lack of memory. */
struct stream *stream_internal(struct broker *b, const struct host *host, uint16_t port);
/* RESET to the gateway, and closed. */
void stream_reset(struct stream *s, enum net_reset why);
/* Takes it out of everything. */
void stream_close(struct stream *s);
void streams_reap(struct broker *b);
void streams_free(struct broker *b);
/* Body bytes went on their way, or nobody wants them: gives credit. */
void stream_drained(struct stream *s);

/* bounds.c */
/* After window_out or closed has changed. */
void bounds_answer(struct stream *s);
/* Bytes of the answer that may go to the gateway now, as far as its windows are concerned. */
size_t bounds_answer_room(const struct stream *s);
/* After `body` or closed has changed; false: more waits than may. */
bool bounds_request(struct stream *s);

/* request_body.c */
/* What comes from the gateway. Refuses, or resets, where it cannot be taken. */
void request_body_add(struct stream *s, struct str bytes);
void request_body_end(struct stream *s);
/* What waits for the origin now; valid until the next call. */
struct str request_body(const struct stream *s);
/* Whether nothing comes behind that. */
bool request_body_complete(const struct stream *s);
/* n bytes of it were taken. */
void request_body_taken(struct stream *s, size_t n);
/* An answer has begun: the request is never sent again, so nothing of it is kept. */
void request_body_commit(struct stream *s);
/* A second try: from the start. */
void request_body_rewind(struct stream *s);
/* The rest of it is nobody's. */
void request_body_drop(struct stream *s);
/* From before the first byte on: collects at most max bytes, see stream.whole. */
void request_body_collect(struct stream *s, size_t max);
/* All of a collected body becomes another one, which is taken. 0; -ENOMEM where there is too much
 * of such bodies, with everything as it was. */
_warn_unused_ int request_body_replace(struct stream *s, struct buf *body);

/* filters.c */
/* Chooses the filters that judge s. Returns how much of its body they have to know in *ret_max, 0:
 * nothing; false where s was refused. */
_warn_unused_ bool filters_choose(struct stream *s, size_t *ret_max);
/* Runs them, once its body is known. False where s was refused. */
_warn_unused_ bool filters_apply(struct stream *s);
/* Refuses s, which has chosen some: its body is longer than they read. */
void filters_refuse_large(struct stream *s);
/* What they said, for the log. */
void filters_tag(const struct stream *s, struct netlog_event *ev);
void filters_forget(struct stream *s);

/* attribute.c */
/* Whether s, which is refused, waits until it is known whose it is; refuse_policy() comes then. */
_warn_unused_ bool attribute_request(struct stream *s);
/* The same for what the gateway has refused; it is logged later then. */
_warn_unused_ bool attribute_event(struct broker *b, const struct net_event *e, struct str payload);
/* The supervisor's answer. False where it is malformed. */
_warn_unused_ bool attribute_answer(struct broker *b, struct str payload);
void attribute_free(struct broker *b);

/* github.c */
/* Takes a credential whose secret is member `member` of the set. */
_warn_unused_ int github_add(struct broker *b, struct github_app *app, size_t member);
void github_free(struct broker *b);
/* Tokens that are about to expire are forgotten. */
void github_expire(struct broker *b);
/* Whether s cannot go on yet with a live secret: its value is not known; or s is for GraphQL, and
 * what it may address is not. */
bool github_must_wait(const struct stream *s, const struct masked_secret *secret);
/* s waits for that, and goes on with request_prepare(). */
void github_wait(struct stream *s, const struct masked_secret *secret);
/* How much of a body has to be known before the request goes on; 0: nothing. */
size_t github_needs_body(const struct stream *s);
/* Whether what s, which has its credentials, addresses is within their reach; refuses it else. */
_warn_unused_ bool github_check(struct stream *s);

/* fetch.c */
/* Starts it. 0, and f->done() is called later; or -ENOMEM. */
_warn_unused_ int fetch_start(struct fetch *f, struct broker *b, const struct fetch_request *m);
/* Ends it (done() is not called, but for one that is queued already) and frees what it holds. */
void fetch_done(struct fetch *f);
/* For the way of its stream: a piece of the answer; its stream closes. */
_warn_unused_ bool fetch_data(struct fetch *f, struct str bytes);
void fetch_closed(struct fetch *f);

/* aws.c */
/* After the last secret. */
_warn_unused_ int aws_setup(struct broker *b, struct cloche_err *err);
void aws_teardown(struct broker *b);
/* Verifies what the room signed, and takes foreign credentials out. 0, or -1: it was refused.
 * *ret_whole: how much of the body has to be known first; 0: nothing. */
_warn_unused_ int aws_open(struct stream *s, size_t *ret_whole);
/* The body is known as a whole; before anything changes it. 0, or -1: refused. */
_warn_unused_ int aws_whole(struct stream *s);
/* Signs; nothing of the head, or of a body that was collected, changes later. 0, or -1: refused. */
_warn_unused_ int aws_finish(struct stream *s);
void aws_stream_free(struct stream *s);
/* For the log; STR_NULL where it was not signed. */
struct str aws_region(const struct stream *s);
/* The target as the room wrote it: what goes out may hold credentials. */
struct str stream_target(const struct stream *s);

/* decide.c */
/* The question to policy that the request is; borrows from the stream. */
struct policy_request decide_what(const struct stream *s);
/* Refuses the request, or makes it ready to go. */
void decide_request(struct stream *s);
/* The request is allowed, and its body known where it has to be: gives it its credentials and makes
 * it ready, or lets it wait, or refuses it. */
void request_prepare(struct stream *s);
/* Goes with the next requests_go(): s is complete, and what it does is to be put on record. */
void request_ready(struct stream *s);
/* Records the intents of all that are ready and lets them go (before streams_reap), or not. */
void requests_go(struct broker *b);
void requests_drop(struct broker *b);
/* The body that was waited for is complete. */
void request_whole(struct stream *s);
/* The request stands in s->head: goes for a connection (fresh: one that is not made yet). */
void request_go(struct stream *s, bool fresh);

/* refuse.c */
void refuse_policy(struct stream *s, const struct policy_request *req);
/* 403: what the body holds is not allowed. detail may be any bytes. */
void refuse_body(struct stream *s, const char *error, const char *message, struct str detail);
/* 502 and the like (or 403, with an address to advise, or NULL), or RESET. Texts are printable. */
void refuse_upstream(struct stream *s, unsigned status, const char *error, const char *message);
void refuse_address(struct stream *s, const char *message, const char *address);

/* dial.c */
/* Resolves, judges addresses, connects; then upstream_new, or refuse_upstream. */
void dial_start(struct stream *s);
void dial_cancel(struct stream *s);
/* Whether the connection of s, where it has one, leads to an address that the rule allows. */
bool dial_may_stay(const struct stream *s, const struct allow_rule *rule);
_warn_unused_ int dial_setup(struct broker *b, struct cloche_err *err);
void dial_teardown(struct broker *b);

/* upstream.c */
/* A connection for s. Takes fd. */
void upstream_new(struct stream *s, int fd);
/* Sends the request of s on u, which comes from the pool. */
void upstream_attach(struct upstream *u, struct stream *s);
/* The three below do nothing where s has no connection. */
void upstream_send(struct stream *s);
void upstream_resume(struct stream *s);
void upstream_detach(struct stream *s);
/* Closes it. */
void upstream_close(struct upstream *u);
/* Frees closed ones that nobody holds any more (all: the loop is not run again). */
void upstreams_reap(struct broker *b, bool all);
/* For upstream_*.c: bytes on the socket, and what to wait for. Reading sets u->drained where all
 * that was there has been read: the next read would most probably find nothing, and epoll says when
 * there is more. */
enum tls_io upstream_read(struct upstream *u, char *p, size_t n, size_t *ret);
enum tls_io upstream_write(struct upstream *u, struct str s, size_t *ret);
/* Returns false where it could not be watched. Nothing at all: it is not watched. */
bool upstream_watch(struct upstream *u, bool in, bool out);
/* Has ops->work called in the next iteration. */
void upstream_work_later(struct upstream *u);
/* Why the connection ended, for messages. */
const char *upstream_error(const struct upstream *u);

/* upstream_h2.c */
extern const struct upstream_ops upstream_h2;
_warn_unused_ int upstream_h2_start(struct upstream *u);

/* upstream_h1.c */
extern const struct upstream_ops upstream_h1;
/* Makes u->protocol. */
_warn_unused_ int upstream_h1_start(struct upstream *u);

/* websocket.c */
/* Makes the request in s->head our own handshake, and has the body judged as frames. 0, or negative
 * where it cannot be. */
_warn_unused_ int websocket_prepare(struct stream *s);
/* Why this 101 does not answer our handshake; NULL where it does. */
const char *websocket_judge_answer(const struct stream *s, const struct http_head *h);
/* Frames of the origin, to the gateway; bytes are changed in place. False where that has ended the
 * stream. */
_warn_unused_ bool websocket_down(struct stream *s, struct str bytes);
/* Whether a close frame has come from the room (up) or the origin. */
bool websocket_has_closed(const struct stream *s, bool up);
/* What came so far; returns the code of the close frame that came first, 0: none. */
uint16_t websocket_counts(
	const struct stream *s, struct ws_counts *ret_up, struct ws_counts *ret_down);

/* tunnel.c */
/* Makes u->protocol: bytes both ways. */
_warn_unused_ int upstream_tunnel_start(struct upstream *u);
/* The origin has answered 101, rest stands behind its head: from now on frames go both ways, or the
 * stream is refused. What was spoken before is ended, h with it. */
void upstream_to_websocket(
	struct upstream *u, struct stream *s, struct http_head *h, struct str rest);

/* response.c: from whatever protocol to the gateway. h, fields and bytes are changed in place. */
/* How many body bytes may be given now; 0: resume() tells when there are more. */
size_t response_room(const struct stream *s);
/* False where the exchange is over (it was refused instead). */
_warn_unused_ bool response_interim(struct stream *s, struct http_head *h);
_warn_unused_ bool response_head(struct stream *s, struct http_head *h);
_warn_unused_ bool response_data(struct stream *s, struct str bytes);
/* Before the stream is finished: its connection may be let go in between. */
_warn_unused_ bool response_end(struct stream *s, struct http_fields *trailers);
/* For decode.c: what the gateway takes now; plain content to it; the end. */
size_t response_takes(const struct stream *s);
_warn_unused_ bool response_pass(struct stream *s, struct str bytes);
_warn_unused_ bool response_close(struct stream *s, struct http_fields *trailers);
/* What came is not HTTP. */
void response_malformed(struct stream *s, const char *why);
/* The connection ended before the response did. */
void response_lost(struct stream *s, const char *why);

/* decode.c: content codings. */
/* Sets s->decoding where h has any that can be taken off, and changes h. False: it was refused. */
_warn_unused_ bool decoding_begin(struct stream *s, struct http_head *h);
_warn_unused_ bool decoding_data(struct stream *s, struct str in);
/* Like response_end(); the rest, and the end, may come later (decoding_waits). */
_warn_unused_ bool decoding_end(struct stream *s, struct http_fields *trailers);
bool decoding_waits(const struct stream *s);
void decoding_free(struct decoding *d);
/* The gateway takes more of s again. */
void response_resume(struct stream *s);

/* mint.c */
_warn_unused_ int mint_request(struct broker *b, const struct net_mint *m);
/* Another policy holds: what is being found out is answered as far as it is known. Then NET_FORGET.
 */
void mints_settle(struct broker *b);
/* Those that wait are not answered any more. */
void mints_free(struct broker *b);

/* log.c */
/* The ints: 0, or negative where it is not on record. What is lost elsewhere is counted, and said
 * before the next request. */
/* It is on record only after netlog_flush. */
_warn_unused_ int log_intent(struct stream *s);
void log_gateway_event(struct broker *b, const struct net_event *e);
/* The line for a request that has become a WebSocket; log_result() then tells of its end. */
void log_websocket(struct stream *s);
void log_result(struct stream *s, enum netlog_kind kind, bool allowed);
_warn_unused_ int log_stripped(struct stream *s, struct str header);
_warn_unused_ int log_collapsed(struct stream *s, struct str header, unsigned count);
_warn_unused_ int log_warning(struct broker *b, struct str text);
/* scheme://host[:port]target, valid until the next call. */
struct str log_url(struct broker *b, enum net_scheme scheme, struct str host, uint16_t port,
	struct str target);
/* Fills s->note, printable; a later note does not replace an earlier one. */
void stream_note(struct stream *s, const char *fmt, ...) _printf_(2, 3);
