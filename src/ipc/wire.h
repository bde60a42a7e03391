/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Typed, length-prefixed values of a message: little-endian integers and byte strings with a 32-bit
 * length. Reading never trusts a length: a short or malformed message makes every later value zero
 * and wire_ok false, so a decoder reads its whole grammar and checks once at the end. */

#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include <stdint.h>

struct wire_out {
	struct buf *b; /* borrowed */
	int error;     /* first failure, 0 so far */
};

static inline struct wire_out wire_out(struct buf *b)
{
	return (struct wire_out){.b = b};
}

/* Put the low `size` bytes (1 to 8) of v. */
void wire_put_int(struct wire_out *w, uint64_t v, size_t size);

static inline void wire_put_u32(struct wire_out *w, uint32_t v)
{
	wire_put_int(w, v, sizeof(v));
}

void wire_put_str(struct wire_out *w, struct str s);
/* Put a NULL-terminated array of terminated strings; NULL as an empty one. */
void wire_put_strv(struct wire_out *w, char *const *v);

struct wire_in {
	struct str rest;
	bool bad;
};

static inline struct wire_in wire_in(struct str message)
{
	return (struct wire_in){.rest = message};
}

/* Get an integer of 1 to 8 bytes. */
uint64_t wire_get_int(struct wire_in *r, size_t size);

static inline uint32_t wire_get_u32(struct wire_in *r)
{
	return (uint32_t)wire_get_int(r, 4);
}

/* Return a view into the message; more than max bytes are malformed. */
struct str wire_get_str(struct wire_in *r, size_t max);
/* Return a heap copy as a terminated string; a NUL inside is malformed. NULL if malformed or out of
 * memory (which also sets bad). */
char *wire_get_z(struct wire_in *r, size_t max);
/* Return a heap array of heap strings, at most max_n, each at most max bytes; free it with
 * strv_free. */
char **wire_get_strv(struct wire_in *r, size_t max_n, size_t max);

/* Return true if everything was read and nothing was malformed. */
static inline bool wire_ok(const struct wire_in *r)
{
	return !r->bad && r->rest.n == 0;
}
