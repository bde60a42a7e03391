/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the scrubber's files: scrub_forms.c makes the texts to look for, scrub_build.c builds
 * the automaton, scrub.c runs it. */

#include "secrets/scrub.h"

#define SCRUB_GRAM_BITS 16
#define SCRUB_NO_MATCH UINT16_MAX

/* A text to look for and the text to write over it. The list owns the memory of both. */
struct scrub_form {
	struct str text, fake;
};

struct scrub_forms {
	struct scrub_form *v;
	size_t n, cap;
};

/* Add every form of a value. Return 0 or -ENOMEM. */
_warn_unused_ int scrub_forms_add(struct scrub_forms *f, struct str value, struct str surrogate);
/* Wipe and free. */
void scrub_forms_done(struct scrub_forms *f);

/* Escapes: ways of writing a byte that are recognised anywhere. */
enum scrub_escape {
	SCRUB_PERCENT,   /* %2F (RFC 3986 2.1) */
	SCRUB_BACKSLASH, /* \/, \", \\ and \u002f (RFC 8259 7) */
	SCRUB_ESCAPES,
};

/* A state of the automaton, which stands for a prefix of a form. 0 is the root. */
struct scrub_node {
	uint32_t child, sibling; /* 0: none */
	uint32_t fail;           /* its longest proper suffix that is a prefix of a form */
	uint32_t rest; /* its longest suffix that can go on: itself, unless it is a leaf */
	uint32_t plain[SCRUB_ESCAPES]; /* its longest suffix without this escape's first byte */
	uint32_t depth;
	uint16_t match; /* the longest form that ends here */
	uint8_t byte;   /* the byte that led here */
};

struct scrubber {
	unsigned refs;
	struct secret *tables; /* memory of `root`, `grams` and `nodes`: it spells out secrets */
	const uint32_t *root;  /* by byte */
	const uint8_t *grams, *first_grams; /* sets of four-byte pieces, by hash */
	const struct scrub_node *nodes;
	size_t window;   /* `grams` is of this many first bytes of each form, first_grams of four */
	size_t max_held; /* the most bytes that a stream may hold back */
	bool in_use[256]; /* bytes that occur in forms */
	struct str *fakes;
	size_t n;
};

static inline uint32_t scrub_gram(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return (v * 0x9e3779b1U) >> (32 - SCRUB_GRAM_BITS);
}

/* The state after a byte if the trie has it, or 0. */
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
