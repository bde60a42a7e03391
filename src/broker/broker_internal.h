/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The broker of one network, as the files of this folder see it; who calls whom:
 *
 *	gateway -> stream.c (frames, credit) -> decide.c (policy, secrets) -> dial.c (addresses)
 *		-> upstream.c (one connection), upstream_h1.c or upstream_h2.c (what is spoken)
 *		-> response.c (frames back) -> stream.c
 *	refuse.c answers in place of an origin; pool.c keeps connections; log.c writes lines. */

#include "base/buf.h"
#include "broker/constants.h"
#include "dns/resolver.h"
#include "http/coding.h"
#include "ipc/chan.h"
#include "loop/loop.h"
#include "policy/host.h"
#include "tls/ca.h"

struct allowlist;
struct aws_accounts;
struct cidr;
struct config;
struct github;
struct log_owner;
struct mint;
struct netlog;
struct origin;
struct origin_probe;
struct override;
struct pool_bucket;
struct question;
struct reload;
struct scrubber;
struct secret_set;
struct stream;
struct tls_trust;
struct upstream;

struct rate {
	double tokens;
	uint64_t at; /* monotonic, of the last refill */
};

struct broker {
	struct loop *loop;
	struct cloche_err *err; /* why it ends, if that is a failure */

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
	struct aws_accounts *aws;                 /* NULL if there are none */
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

/* Ends the program with this failure. */
void broker_fail(struct broker *b);
/* The values of secrets are others now. */
_warn_unused_ int broker_renew_scrubber(struct broker *b, struct cloche_err *err);
/* Writes what waits for the supervisor. 0 or -errno. */
_warn_unused_ int broker_flush_supervisor(struct broker *b);
/* Something waits in the channel: it is written at the end of the iteration. */
void broker_flush_later(struct broker *b);
