/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: certificates of every kind, and origins on 127.0.0.1, each in a thread of its
 * own, that speak TLS or plain TCP as a test tells them. Whatever cannot be set up ends the test
 * program. */

#include "base/buf.h"
#include <stdint.h>
#include <stdio.h>

/* As must() of tap.h, for files beside the one that has the tests. */
#define test_need(cond)                                                                            \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("Bail out! %s:%d: %s\n", __FILE__, __LINE__, #cond);                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct test_ca;

struct test_ca *test_ca_new(const char *common_name);
struct test_ca *test_ca_free(struct test_ca *ca);
void test_ca_add_pem(const struct test_ca *ca, struct buf *out);
/* Add the PEM of a new RSA key. */
void test_rsa_add_pem(struct buf *out);

struct test_cert {
	const struct test_ca *ca; /* NULL: self-signed */
	const char *dns;          /* subjectAltName, or NULL */
	const char *ip;           /* the same for an address, or NULL */
	const char *cn;           /* subject, or NULL */
	long from, to;            /* seconds from now; both 0: an hour ago until in an hour */
};

struct test_origin;
struct test_conn;

struct test_origin_config {
	const struct test_cert *cert; /* NULL: plain TCP */
	/* Serve one connection; it is closed (TLS: with close_notify) on return. */
	void (*serve)(struct test_conn *c, void *arg);
	void *arg;
	int max_tls; /* protocol version, 0: any */
	bool v6;     /* on ::1 */
	bool h2;     /* agrees on HTTP/2 if it is offered */
};

struct test_origin *test_origin_start(const struct test_origin_config *config);
/* Close the listener and wait for all threads. */
struct test_origin *test_origin_stop(struct test_origin *o);
uint16_t test_origin_port(const struct test_origin *o);
unsigned test_origin_accepted(const struct test_origin *o); /* connections */
unsigned test_origin_resumed(const struct test_origin *o);

/* Whether HTTP/2 was agreed on. */
bool test_conn_is_h2(const struct test_conn *c);
/* Number of bytes, 0 at the end, -1 if it failed. */
long test_conn_read(struct test_conn *c, void *p, size_t n);
/* Whether all was written. */
bool test_conn_write(struct test_conn *c, const void *p, size_t n);
bool test_conn_write_z(struct test_conn *c, const char *z);
/* Close the socket on return without close_notify. */
void test_conn_cut(struct test_conn *c);
/* Read up to and including the empty line after a head into ret; false at the end. What followed
 * it stays for test_conn_read. */
bool test_conn_read_head(struct test_conn *c, struct buf *ret);
