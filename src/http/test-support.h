/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For the tests of this folder: feeds a parser in every way of cutting its input and shows what
 * came out as text, so that two outcomes can be compared. */

#include "http/body.h"

/* How to cut the input: all at once, byte by byte, or at random with this seed. */
enum { CUT_WHOLE, CUT_BYTES, CUT_RANDOM };
#define RANDOM_CUTS 6

/* By enum h1_error. */
extern const char *const error_names[];

/* Reproducible, unlike base/rand.h. */
unsigned test_random(unsigned bound);
size_t cut(unsigned how, size_t left);
void show(struct buf *out, const char *fmt, ...) _printf_(2, 3);

/* "GET host:0 /target 11 none K" or "200 reason 11 length=5 K"; flags in the order of msg.h. */
void show_line(struct buf *out, const struct http_head *h);

/* "|name:value" each, hop-by-hop ones in brackets. */
void show_fields(struct buf *out, const struct http_fields *f);

struct outcome {
	enum h1_result result;
	enum h1_error error;
	size_t used;
	char line[40000], fields[140000];
};

void parse_cut(struct outcome *o, struct str in, bool request, unsigned opt, unsigned how);

/* Parse in every way; fail if they differ; the outcome of the first is left in o. */
void parse_all(struct outcome *o, struct str in, bool request, unsigned opt);
