/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): an Aho-Corasick automaton (Aho, Corasick 1975) over
 * all real values, as a dense table with the bytes grouped into classes. It reads the original
 * bytes, once each; where a value ends, its surrogate is written over it, back from there. Longer
 * values end later, so where one value is part of another the longer one has the last word.
 *
 * The depth of the state after a chunk is how many of the last bytes may be the beginning of a
 * value: just these are held back, and a match can reach back no further than them. After a
 * complete value that no other continues, the depth is that of the longest beginning that is left.
 *
 * In the root state, most input is skipped without looking at each byte: every value has at least
 * eight bytes, so a pair of bytes that is in the first eight of none rules out seven starting
 * places. A step either skips or advances the automaton, so time stays linear for any input.
 *
 * A value within Basic credentials (RFC 7617) comes back as a part of base64, in one of three ways
 * as its first byte is the first, second or third of a group. What of that the value alone
 * determines is looked for, too, and becomes the same part of the surrogate's base64; up to four
 * bits at either end stay, in characters that hold bits of what stands beside the value.
 *
 * The tables spell out the values, so they live in the same locked memory. */
#include "secrets/scrub.h"

#include "secrets/base64.h"
#include "secrets/surrogate.h"
#include <errno.h>

#define WINDOW SURROGATE_MIN
#define PAIR_BYTES (65536 / 8)
#define TABLE_MAX (16U << 20)
#define NO_MATCH UINT16_MAX
#define STATES_MAX 65535

struct scrubber {
	struct secret *tables; /* pair set, then the transitions */
	const uint8_t *pairs;
	const uint16_t *go; /* [state * classes + class] */
	uint8_t class_of[256];
	size_t classes, states, max_held;
	uint16_t *held;  /* by state: bytes to hold back */
	uint16_t *match; /* by state: index of the longest value that ends here */
	struct str *surrogates;
	size_t n;
};

/* What is looked for, and what it becomes, in the order in which they count. */
struct pattern {
	struct str value, fake;
	bool own; /* value is memory of the list */
};

struct patterns {
	struct pattern v[4 * SECRET_SET_MAX]; /* a value, and three forms of it */
	size_t n;
};

struct scrub {
	const struct scrubber *scrubber;
	char *hold[2]; /* what is held, and what was released last */
	size_t current, n;
	uint32_t state;
	uint64_t hits;
};

/* While it is being built. */
struct builder {
	uint8_t *tables;
	size_t size;
	uint8_t *pairs;
	uint16_t *go;
	uint16_t *fail, *depth;
	struct scrubber *s;
};

static void builder_done(struct builder *b)
{
	if (b->tables)
		explicit_bzero(b->tables, b->size);
	free(b->tables);
	free(b->fail);
	free(b->depth);
}

struct scrubber *scrubber_free(struct scrubber *s)
{
	if (!s)
		return NULL;
	secret_free(s->tables);
	free(s->held);
	free(s->match);
	for (size_t i = 0; i < s->n; i++)
		free((void *)(uintptr_t)s->surrogates[i].p);
	free(s->surrogates);
	free(s);
	return NULL;
}

static void patterns_done(struct patterns *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (!p->v[i].own)
			continue;
		explicit_bzero((void *)(uintptr_t)p->v[i].value.p, p->v[i].value.n);
		free((void *)(uintptr_t)p->v[i].value.p);
		free((void *)(uintptr_t)p->v[i].fake.p);
	}
}

static int add_base64(struct patterns *p, struct str value, struct str fake, unsigned at)
{
	size_t n = base64_inner_len(value.n, at);
	char *from = malloc(n), *to = malloc(n);

	if (!from || !to) {
		free(from);
		free(to);
		return -ENOMEM;
	}
	base64_inner(value, at, from);
	base64_inner(fake, at, to);
	p->v[p->n++] = (struct pattern){str_make(from, n), str_make(to, n), true};
	return 0;
}

/* Values as they are come first. */
static int collect(const struct secret_set *set, struct patterns *p)
{
	size_t n = secret_set_count(set);

	for (size_t i = 0; i < n; i++) {
		const struct masked_secret *m = secret_set_get(set, i);

		p->v[p->n++] = (struct pattern){secret_reveal(m->value), m->surrogate, false};
	}
	for (size_t i = 0; i < n; i++)
		for (unsigned at = 0; at < 3 && masked_secret_fits_basic(secret_set_get(set, i));
			at++)
			if (add_base64(p, p->v[i].value, p->v[i].fake, at) < 0)
				return -ENOMEM;
	return 0;
}

/* Groups the bytes: class 0 is all that no value holds. */
static void make_classes(const struct patterns *p, struct scrubber *s)
{
	bool in_use[256] = {false};
	uint8_t next = 1;

	for (size_t i = 0; i < p->n; i++)
		for (size_t j = 0; j < p->v[i].value.n; j++)
			in_use[(unsigned char)p->v[i].value.p[j]] = true;
	for (size_t c = 0; c < 256; c++)
		if (in_use[c])
			s->class_of[c] = next++;
	s->classes = next;
}

static size_t count_states(const struct patterns *p)
{
	size_t n = 1;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].value.n;
	return n;
}

static int copy_surrogates(const struct patterns *p, struct scrubber *s)
{
	s->surrogates = calloc(p->n + 1, sizeof(*s->surrogates));
	if (!s->surrogates)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		char *copy = str_dup(p->v[i].fake);

		if (!copy)
			return -ENOMEM;
		s->surrogates[s->n++] = str_make(copy, p->v[i].fake.n);
	}
	return 0;
}

static int allocate(struct builder *b, size_t states)
{
	struct scrubber *s = b->s;

	b->size = PAIR_BYTES + states * s->classes * sizeof(uint16_t);
	b->tables = calloc(1, b->size);
	b->fail = calloc(states, sizeof(uint16_t));
	b->depth = calloc(states, sizeof(uint16_t));
	s->held = calloc(states, sizeof(uint16_t));
	s->match = malloc(states * sizeof(uint16_t));
	if (!b->tables || !b->fail || !b->depth || !s->held || !s->match)
		return -ENOMEM;
	memset(s->match, 0xff, states * sizeof(uint16_t));
	b->pairs = b->tables;
	b->go = (uint16_t *)(void *)(b->tables + PAIR_BYTES);
	return 0;
}

static uint32_t pair_at(const char *p)
{
	return (uint32_t)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

/* The trie; 0 means no child until the links are made. */
static void add_value(struct builder *b, struct str value, uint16_t index)
{
	struct scrubber *s = b->s;
	uint16_t state = 0;

	for (size_t j = 0; j < value.n; j++) {
		uint16_t *to = &b->go[state * s->classes + s->class_of[(unsigned char)value.p[j]]];

		if (!*to) {
			*to = (uint16_t)s->states++;
			b->depth[*to] = (uint16_t)(j + 1);
		}
		state = *to;
	}
	if (s->match[state] == NO_MATCH) /* of two equal values the first one counts */
		s->match[state] = index;
	for (size_t j = 0; j + 1 < WINDOW; j++) {
		uint32_t pair = pair_at(value.p + j);

		b->pairs[pair / 8] |= (uint8_t)(1U << (pair % 8));
	}
}

/* Makes the transitions of one state whole. Its children come later in the queue. */
static size_t link_state(struct builder *b, uint16_t state, uint16_t *queue, size_t tail)
{
	struct scrubber *s = b->s;
	uint16_t fail = b->fail[state];
	bool leaf = true;

	for (size_t c = 0; c < s->classes; c++) {
		uint16_t *to = &b->go[state * s->classes + c];
		uint16_t other = state ? b->go[fail * s->classes + c] : 0;

		if (!*to) {
			*to = other;
			continue;
		}
		leaf = false;
		b->fail[*to] = other;
		queue[tail++] = *to;
	}
	if (s->match[state] == NO_MATCH && state)
		s->match[state] = s->match[fail];
	s->held[state] = leaf && state ? s->held[fail] : b->depth[state];
	s->max_held = MAX(s->max_held, (size_t)s->held[state]);
	return tail;
}

/* Breadth first, so that a state's failure link is whole before the state is. */
static int link_all(struct builder *b)
{
	_cleanup_(freep) uint16_t *queue = malloc((b->s->states + 1) * sizeof(uint16_t));
	size_t tail = 1;

	if (!queue)
		return -ENOMEM;
	queue[0] = 0;
	for (size_t head = 0; head < tail; head++)
		tail = link_state(b, queue[head], queue, tail);
	return 0;
}

static int build(const struct patterns *p, struct scrubber *s)
{
	_cleanup_(builder_done) struct builder b = {.s = s};

	s->states = 1;
	if (allocate(&b, count_states(p)) < 0 || copy_surrogates(p, s) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		add_value(&b, p->v[i].value, (uint16_t)i);
	if (link_all(&b) < 0)
		return -ENOMEM;
	s->tables = secret_new(b.tables, b.size);
	if (!s->tables)
		return -ENOMEM;
	s->pairs = (const uint8_t *)secret_reveal(s->tables).p;
	s->go = (const uint16_t *)(const void *)(s->pairs + PAIR_BYTES);
	return 0;
}

int scrubber_new(const struct secret_set *set, struct scrubber **ret, struct cloche_err *err)
{
	_cleanup_(patterns_done) struct patterns p = {0};
	_cleanup_(scrubber_freep) struct scrubber *s = calloc(1, sizeof(*s));
	size_t states;

	if (!s || collect(set, &p) < 0)
		return err_nomem(err);
	states = count_states(&p);
	make_classes(&p, s);
	if (states > STATES_MAX || states * s->classes * sizeof(uint16_t) > TABLE_MAX - PAIR_BYTES)
		return err_set(err, E_LIMIT, "the secrets are too long to be looked for: %zu bytes",
			states - 1);
	if (build(&p, s) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(s);
	return 0;
}

size_t scrubber_max_held(const struct scrubber *s)
{
	return s->max_held;
}

struct scrub *scrub_new(const struct scrubber *s)
{
	_cleanup_(scrub_freep) struct scrub *scrub = calloc(1, sizeof(*scrub));

	if (!scrub)
		return NULL;
	scrub->scrubber = s;
	for (size_t i = 0; i < 2; i++) {
		scrub->hold[i] = malloc(s->max_held + 1);
		if (!scrub->hold[i])
			return NULL;
	}
	return TAKE_PTR(scrub);
}

struct scrub *scrub_free(struct scrub *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < 2; i++) {
		if (s->hold[i])
			explicit_bzero(s->hold[i], s->scrubber->max_held + 1);
		free(s->hold[i]);
	}
	free(s);
	return NULL;
}

/* Skips what cannot begin a value, from the root state at i. */
static size_t skip(const struct scrubber *s, const char *data, size_t i, size_t n)
{
	while (n - i >= WINDOW) {
		uint32_t pair = pair_at(data + i + WINDOW - 2);

		if (s->pairs[pair / 8] & (1U << (pair % 8)))
			break;
		i += WINDOW - 1;
	}
	return i;
}

/* Writes a surrogate so that it ends at data[end]; what is before data is the end of hold. */
static void overwrite(struct str surrogate, char *data, size_t end, char *hold, size_t hold_n)
{
	size_t in_data = MIN(end, surrogate.n), in_hold = surrogate.n - in_data;

	if (in_hold)
		memcpy(hold + hold_n - in_hold, surrogate.p, in_hold);
	memcpy(data + end - in_data, surrogate.p + in_hold, in_data);
}

/* Runs the automaton over data; returns the new state. */
static uint32_t run(const struct scrubber *s, uint32_t state, char *data, size_t n, char *hold,
	size_t hold_n, uint64_t *hits)
{
	for (size_t i = 0; i < n;) {
		if (state == 0) {
			i = skip(s, data, i, n);
			if (i >= n)
				break;
		}
		state = s->go[state * s->classes + s->class_of[(unsigned char)data[i++]]];
		if (s->match[state] != NO_MATCH) {
			overwrite(s->surrogates[s->match[state]], data, i, hold, hold_n);
			++*hits;
		}
	}
	return state;
}

void scrub_feed(
	struct scrub *s, char *data, size_t n, struct str *ret_first, struct str *ret_second)
{
	char *old = s->hold[s->current], *fresh = s->hold[!s->current];
	size_t keep, released;

	if (s->scrubber->n == 0) {
		*ret_first = STR_NULL;
		*ret_second = str_make(data, n);
		return;
	}
	s->state = run(s->scrubber, s->state, data, n, old, s->n, &s->hits);
	keep = s->scrubber->held[s->state];
	if (keep <= n) {
		*ret_first = str_make(old, s->n);
		*ret_second = str_make(data, n - keep);
		memcpy(fresh, data + (n - keep), keep);
	} else {
		released = s->n + n - keep;
		*ret_first = str_make(old, released);
		*ret_second = str_make(data, 0);
		memcpy(fresh, old + released, s->n - released);
		memcpy(fresh + (s->n - released), data, n);
	}
	s->current = !s->current;
	s->n = keep;
}

struct str scrub_end(struct scrub *s)
{
	struct str rest = str_make(s->hold[s->current], s->n);

	s->n = 0;
	s->state = 0;
	return rest;
}

uint64_t scrub_hits(const struct scrub *s)
{
	return s->hits;
}

size_t scrub_whole(const struct scrubber *s, char *data, size_t n)
{
	uint64_t hits = 0;

	if (s->n > 0)
		(void)run(s, 0, data, n, NULL, 0, &hits);
	return (size_t)hits;
}
