/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the scrubber's files share: scrub_forms.c says what is looked for, scrub_build.c makes the
 * automaton of it, scrub.c runs it. */

#include "secrets/scrub.h"

#define SCRUB_GRAM_BITS 16
#define SCRUB_NO_MATCH UINT16_MAX

/* A text that is looked for, and what is written over it. Both are memory of the list. */
struct scrub_form {
	struct str text, fake;
};

struct scrub_forms {
	struct scrub_form *v;
	size_t n, cap;
};

/* Adds every form of a value. Returns 0 or -ENOMEM. */
_warn_unused_ int scrub_forms_add(struct scrub_forms *f, struct str value, struct str surrogate);
/* Wipes and frees. */
void scrub_forms_done(struct scrub_forms *f);

/* Ways of writing a byte that are understood wherever they stand. */
enum scrub_escape {
	SCRUB_PERCENT,   /* %2F (RFC 3986 2.1) */
	SCRUB_BACKSLASH, /* \/, \", \\ and \u002f (RFC 8259 7) */
	SCRUB_ESCAPES,
};

/* A state of the automaton: a beginning of a form. 0 is the root. */
struct scrub_node {
	uint32_t child, sibling; /* 0: none */
	uint32_t fail;           /* its longest end that is a beginning, too */
	uint32_t rest;           /* the longest that something can follow: itself, but for a leaf */
	uint32_t plain[SCRUB_ESCAPES]; /* the longest in which this escape's first byte is not */
	uint32_t depth;
	uint16_t match; /* the longest form that ends here */
	uint8_t byte;   /* that led here */
};

struct scrubber {
	unsigned refs;
	struct secret *tables; /* what `root`, `grams` and `nodes` point into: they spell it out */
	const uint32_t *root;  /* by byte */
	const uint8_t *grams, *first_grams; /* of four bytes, sets by hash */
	const struct scrub_node *nodes;
	size_t window; /* `grams` are of so many first bytes of each form, first_grams of four */
	size_t max_held;
	bool in_use[256]; /* bytes that forms have */
	struct str *fakes;
	size_t n;
};

static inline uint32_t scrub_gram(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return (v * 0x9e3779b1U) >> (32 - SCRUB_GRAM_BITS);
}

/* The state behind a byte if the trie has it, or 0. */
static inline uint32_t scrub_child(const struct scrubber *s, uint32_t state, uint8_t byte)
{
	uint32_t to;

	if (state == 0)
		return s->root[byte];
	for (to = s->nodes[state].child; to; to = s->nodes[to].sibling)
		if (s->nodes[to].byte == byte)
			break;
	return to;
}
