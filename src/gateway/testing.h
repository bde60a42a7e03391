/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: a gateway in a child process, with the test as its supervisor, its broker and
 * its room. Everything runs in step: the client sends, the test takes the frame, answers it, the
 * client reads. What cannot be set up, or does not come in time, ends the test program. */

#include "gateway/gateway.h"
#include "http/body.h"
#include "http/h1.h"
#include "ipc/capture.h"
#include "ipc/helper.h"
#include "ipc/netchan.h"
#include "tls/ca.h"
#include "tls/client.h"
#include <sys/types.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Move the test program into a network of its own, if it may bind any port. False if that
 * is not permitted here. */
bool rig_own_network(void);

struct rig_frame {
	struct rig_frame *next;
	uint16_t type;
	size_t n;
	char payload[];
};

struct rig {
	pid_t pid;
	struct chan supervisor, broker;
	uint16_t port;     /* that the gateway listens on, 127.0.0.1 */
	uint16_t dns_port; /* UDP */
	bool captured;     /* connections go by the channel `capture`, not to the listener */
	struct chan capture;
	struct capture_connection meant; /* what is said of the next one */
	struct tls_ca *ca;
	struct tls_trust *trust;
	struct buf spki;
	unsigned minted;
	bool refuse_mint;
	bool h2;                         /* clients offer HTTP/2, and get it */
	bool h2_unknown;                 /* ... or not yet */
	bool tunnel;                     /* no client is decrypted */
	struct rig_frame *first, **last; /* taken, not asked for yet */
};

struct rig_config {
	const struct gateway_limits *limits; /* NULL: the whole program with its defaults */
	uint16_t port;                       /* 0: any */
	/* Also if CLOCHE_TEST_CAPTURED is set: so a test of a listener is one of the channel, too.
	 */
	bool captured;
	bool late_ports; /* the test sends NET_PORTS itself */
};

void rig_start(struct rig *r, const struct rig_config *config);
/* End the gateway; false if it did not end well. */
bool rig_stop(struct rig *r);
/* Resident memory of the gateway in bytes. */
size_t rig_memory(const struct rig *r);

/* The next frame but MINT (which is served at once), or NULL after timeout_ms. Free it. */
struct rig_frame *rig_recv(struct rig *r, int timeout_ms);

struct rig_open {
	struct net_open m;       /* its views point into text */
	struct rig_frame *frame; /* owned */
	char fields[4096];       /* "name: value\n" each */
};
/* The next frame has to be an OPEN. */
struct rig_open rig_expect_open(struct rig *r);
void rig_open_done(struct rig_open *o);
/* Collect DATA until END into ret; give credit. ret_trailers: "name: value\n" each, or NULL. */
void rig_expect_body(struct rig *r, uint32_t stream, struct buf *ret, struct buf *ret_trailers);
/* The next frame has to be a RESET of stream. */
enum net_reset rig_expect_reset(struct rig *r, uint32_t stream);
/* The next frame has to be an EVENT of this kind: "a|b|c|status". Static. */
const char *rig_expect_event(struct rig *r, enum net_event_kind kind);

/* Send HEAD (or INTERIM) with fields "name: value\n"... */
void rig_head(struct rig *r, enum net_frame type, const struct net_response *m, const char *fields);
void rig_data(struct rig *r, uint32_t stream, struct str bytes);
void rig_end(struct rig *r, uint32_t stream, const char *trailers);
void rig_reset(struct rig *r, uint32_t stream, enum net_reset why);
/* A whole answer: 200 with this text. */
void rig_answer(struct rig *r, uint32_t stream, const char *text);

/* Make the channel of captured connections; return the gateway's end. */
int rig_make_capture(struct rig *r);
/* Send what is meant with these descriptors (borrowed), as no relay should. */
void rig_capture(struct rig *r, const int *fds, unsigned n);

struct client {
	struct rig *r;
	int fd;
	struct tls_client *tls;
	struct buf in;
	bool ended; /* end-of-file was read */
	bool cut;   /* ... by a reset, or without close_notify */
};

void client_connect(struct client *c, struct rig *r);
/* Connect and make a TLS connection for host; false if the handshake fails. */
bool client_connect_tls(struct client *c, struct rig *r, const char *host);
void client_close(struct client *c);
/* Whether its end looked broken off, as far as that can be seen: a captured one has no reset. */
bool client_was_cut(const struct client *c);
void client_send(struct client *c, const char *text);
void client_send_str(struct client *c, struct str bytes);
/* As much as goes without waiting. */
size_t client_send_some(struct client *c, struct str bytes);
/* Read once, waiting at most timeout_ms; false at the end or when nothing came. */
bool client_read(struct client *c, int timeout_ms);
/* Whether the gateway ends the connection in that time; reads and drops what comes before. */
bool client_expect_end(struct client *c, int timeout_ms);

struct response {
	struct http_head head;
	struct http_fields trailers;
	struct buf body;
	bool complete;
};
/* Read one response (interim ones count); 0 opt, or H1_TO_HEAD. status is 0 if none came. */
unsigned client_response(struct client *c, struct response *ret, unsigned opt);
void response_done(struct response *p);
