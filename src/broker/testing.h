/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: a broker in a child process, with the test as its gateway, client and
 * supervisor. What cannot be set up ends the test program. */

#include "ipc/netchan.h"
#include "ipc/netconf.h"
#include <sys/types.h>

struct rig {
	pid_t pid;
	struct chan net, conf, supervisor;
	uint32_t next; /* stream number */
	bool stalled;  /* give no credit */
	struct buf pem;
	char log[64], json[64]; /* paths */
	const char *json_to;    /* written there instead, if set */
};

/* Start a broker; call it before there are threads. Read the authority's certificate. */
void rig_start(struct rig *g);
/* Configuration, in any number, then rig_serve(). */
void rig_allow(struct rig *g, const char *yaml);
void rig_connect_to(struct rig *g, const char *host, uint16_t port, uint16_t to);
void rig_secret(struct rig *g, const char *name, const char *value, const char *surrogate,
	const char *host, const char *header);
/* Log to files of its own, wait for OK and READY, say hello. */
void rig_serve(struct rig *g);
/* While it serves: the text of the hosts file. */
void rig_hosts(struct rig *g, const char *hosts);
/* Wait for the refusal of the configuration instead. */
void rig_refused(struct rig *g, struct cloche_err *ret);
/* Whether the broker has ended the channel by itself within a second. */
bool rig_ended(struct rig *g);
/* End it as a supervisor does, and wait; return its wait status. */
int rig_stop(struct rig *g);
/* Content of the log so far; the caller frees. */
char *rig_log(const struct rig *g, bool json);
long rig_rss_kib(const struct rig *g);

struct ask {
	enum net_kind kind;     /* default http */
	enum net_scheme scheme; /* default http */
	const char *host;
	uint16_t port; /* 0: the scheme's */
	const char *method, *target;
	const char *fields[16]; /* name, value, ..., NULL */
	enum net_body body;
	uint64_t length;
	struct net_client client;
	struct net_owner owner;
	bool expects, te;       /* te: trailers are read */
	bool http1, keep_alive; /* what the client speaks, and says */
	bool more;              /* not flushed: goes together with what follows */
};

/* Send OPEN (and flush); return the number. */
uint32_t rig_open(struct rig *g, const struct ask *a);
void rig_data(struct rig *g, uint32_t stream, const char *p, size_t n);
void rig_end(struct rig *g, uint32_t stream);
void rig_flush(struct rig *g);

struct got {
	unsigned status, interims;
	bool ended, reset, gone; /* END; RESET; the channel */
	bool close;
	enum net_body body;
	uint64_t length, bytes;  /* body: announced, received */
	uint64_t credit;         /* given for the request's body */
	struct buf fields, text; /* "name: value\n"..., first MiB of the body */
};

void got_done(struct got *r);
/* Take frames until the stream has ended, or nothing has come for ms. */
void rig_collect(struct rig *g, uint32_t stream, struct got *ret, int ms);
/* Both. got must be given to got_done. */
void rig_ask(struct rig *g, const struct ask *a, struct got *ret);
bool got_has(const struct got *r, const char *text); /* in the body */
bool got_field(const struct got *r, const char *line);
