/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The broker of one network, as the files of this folder see it. The path of a request:
 *
 *	gateway -> stream.c (frames, credit) -> decide.c (policy, secrets) -> dial.c (addresses)
 *		-> proxy.c (if one leads there) -> upstream.c (one connection), upstream_h1.c or
 *upstream_h2.c (its protocol)
 *		-> response.c (frames back) -> stream.c
 *	refuse.c answers in place of an origin; pool.c keeps connections; log.c writes lines. */

#include "broker/attribute.h"
#include "broker/bounds.h"
#include "broker/constants.h"
#include "broker/dial.h"
#include "broker/log.h"
#include "broker/mint.h"
#include "broker/pool.h"
#include "broker/stream.h"
#include "broker/tape.h"
#include "broker/watch.h"
#include "http/coding.h"
#include "ipc/chan.h"
#include "loop/loop.h"

struct allowlist;
struct aws_accounts;
struct config;
struct github;
struct offline;
struct origin;
struct origin_probe;
struct reload;
struct renewal;
struct scrubber;
struct secret_set;
struct tls_trust;
struct upstream;

struct broker {
	struct loop *loop;
	struct cloche_err *err; /* why the broker ends, if that is a failure */

	struct chan supervisor, net, conf;
	struct loop_io supervisor_io, net_io, conf_io;
	struct loop_job flush, frames;
	struct config *config; /* until it is complete */
	bool serving;          /* configured and narrowed */
	bool hello;            /* the gateway has sent HELLO */
	bool tcp_ports;        /* the gateway knows of ports for plain TCP */
	bool ssh;              /* ... and that there are rules for git over ssh */
	bool leaving;          /* the gateway has gone, and a login is still being renewed */
	bool rest_due;         /* something happened since memory was last given back */
	struct loop_timer sweep;

	struct tls_ca *ca;
	struct tls_trust *trust;
	struct allowlist *policy;
	unsigned policy_number; /* how often it was replaced */
	struct reload *reloads; /* that are under way */
	struct secret_set *secrets;
	struct github *github;     /* credentials, a list by `next` */
	struct renewal *renewals;  /* of logins, a list by `next` */
	struct aws_accounts *aws;  /* NULL if there are none */
	struct scrubber *scrubber; /* of secrets; NULL if there is none */

	struct streams streams;
	struct bounds bounds;
	struct dialer dialer;
	struct pool pool;
	struct origin *origins; /* the protocols that they speak, oldest first */
	struct origin_probe *probes;
	struct upstream *dead_upstreams;
	struct minting minting;
	struct attribution attribution;
	struct watching watching;
	struct log_lines lines;
	struct tape tape;
	struct offline *offline; /* NULL: requests go to real origins */

	uint64_t bytes_in, bytes_out; /* of bodies: from origins to the room, and back */
	struct coding_budget coding;
	char scratch[SCRATCH], plain[SCRATCH]; /* bytes as received; decoded bytes */
};

/* End the program with a failure. */
void broker_fail(struct broker *b);
/* Tell the gateway to which ports the policy may pass plain TCP, unless it knows of none and there
 * is none. Return 0 or -errno. */
_warn_unused_ int broker_tell_ports(struct broker *b, bool first);
/* Give a member that is renewed a value (taken). It is used only if the scrubber looks for it in
 * answers; after a failure the value is unknown. */
_warn_unused_ int broker_renew_secret(
	struct broker *b, size_t member, struct secret *value, struct cloche_err *err);
/* Write what is queued for the supervisor. Return 0 or -errno. */
_warn_unused_ int broker_flush_supervisor(struct broker *b);
/* Write the channel to the gateway at the end of this loop iteration. */
void broker_flush_later(struct broker *b);
