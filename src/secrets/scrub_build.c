/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the automaton of Aho and Corasick (1975), with failure links instead of a
 * transition table. Most states have only one successor, so this keeps states small, and with them
 * the many forms of a value. */
#include "secrets/scrub_internal.h"

#include "secrets/surrogate.h"
#include <errno.h>

#define STATES_MAX (480 * 1024) /* 15 MiB: the longest that a struct secret may be */
#define WINDOW_MAX 32
#define GRAMS_MAX 4096 /* more make too many false hits */
#define GRAM_BYTES ((1U << SCRUB_GRAM_BITS) / 8)
#define SETS_BYTES (2 * GRAM_BYTES)
#define ROOT_BYTES (256 * sizeof(uint32_t))

/* A scrubber while it is being built. */
struct builder {
	struct scrubber *s;
	uint8_t *tables;
	size_t size;
	uint32_t *root;
	uint8_t *grams;
	struct scrub_node *nodes;
	uint32_t n, *queue;
};

static void builder_done(struct builder *b)
{
	if (b->tables)
		explicit_bzero(b->tables, b->size);
	free(b->tables);
	free(b->queue);
}

static int allocate(struct builder *b, size_t states)
{
	struct scrubber *s = b->s;

	b->size = ROOT_BYTES + SETS_BYTES + states * sizeof(struct scrub_node);
	b->tables = calloc(1, b->size);
	b->queue = calloc(states, sizeof(uint32_t));
	if (!b->tables || !b->queue)
		return -ENOMEM;
	b->root = (uint32_t *)(void *)b->tables;
	b->grams = b->tables + ROOT_BYTES;
	b->nodes = (struct scrub_node *)(void *)(b->grams + SETS_BYTES);
	b->nodes[0].match = SCRUB_NO_MATCH;
	b->n = 1;
	s->root = b->root;
	s->nodes = b->nodes;
	return 0;
}

static uint32_t add_state(struct builder *b, uint32_t parent, uint8_t byte)
{
	uint32_t to = b->n++;

	b->nodes[to] = (struct scrub_node){.byte = byte,
		.sibling = b->nodes[parent].child,
		.depth = b->nodes[parent].depth + 1,
		.match = SCRUB_NO_MATCH};
	b->nodes[parent].child = to;
	if (parent == 0)
		b->root[byte] = to;
	return to;
}

static void add_gram(uint8_t *set, const char *p)
{
	uint32_t gram = scrub_gram(p);

	set[gram / 8] |= (uint8_t)(1U << (gram % 8));
}

static void add_form(struct builder *b, struct str text, uint16_t index)
{
	uint32_t state = 0;

	for (size_t i = 0; i < text.n; i++) {
		uint8_t byte = (uint8_t)text.p[i];
		uint32_t to = scrub_child(b->s, state, byte);

		state = to ? to : add_state(b, state, byte);
		b->s->in_use[byte] = true;
	}
	if (b->nodes[state].match == SCRUB_NO_MATCH) /* of two equal forms the first one counts */
		b->nodes[state].match = index;
	for (size_t i = 0; i + 4 <= b->s->window; i++)
		add_gram(b->grams, text.p + i);
	add_gram(b->grams + GRAM_BYTES, text.p);
}

static uint32_t find_fail(const struct builder *b, uint32_t parent, uint8_t byte)
{
	uint32_t to = 0;

	while (parent && !to) {
		parent = b->nodes[parent].fail;
		to = scrub_child(b->s, parent, byte);
	}
	return to;
}

/* Sets the links of a state. Those of all less deep states are set already. */
static void link_state(struct builder *b, uint32_t parent, uint32_t state)
{
	static const unsigned char first[SCRUB_ESCAPES] = {'%', '\\'};
	struct scrub_node *node = &b->nodes[state], *fail;

	node->fail = find_fail(b, parent, node->byte);
	fail = &b->nodes[node->fail];
	if (node->match == SCRUB_NO_MATCH)
		node->match = fail->match;
	node->rest = node->child ? state : fail->rest;
	for (size_t k = 0; k < SCRUB_ESCAPES; k++) {
		bool plain = b->nodes[parent].plain[k] == parent && node->byte != first[k];

		node->plain[k] = plain ? state : fail->plain[k];
	}
}

/* Breadth first. */
static void link_all(struct builder *b)
{
	size_t tail = 1;

	for (size_t head = 0; head < tail; head++) {
		uint32_t parent = b->queue[head];

		for (uint32_t i = b->nodes[parent].child; i; i = b->nodes[i].sibling) {
			link_state(b, parent, i);
			b->queue[tail++] = i;
		}
	}
}

static int keep_tables(struct builder *b)
{
	struct scrubber *s = b->s;
	const char *p;

	s->tables =
		secret_new(b->tables, ROOT_BYTES + SETS_BYTES + b->n * sizeof(struct scrub_node));
	if (!s->tables)
		return -ENOMEM;
	p = secret_reveal(s->tables).p;
	s->root = (const uint32_t *)(const void *)p;
	s->grams = (const uint8_t *)p + ROOT_BYTES;
	s->first_grams = s->grams + GRAM_BYTES;
	s->nodes = (const struct scrub_node *)(const void *)(p + ROOT_BYTES + SETS_BYTES);
	return 0;
}

static int take_fakes(struct scrub_forms *f, struct scrubber *s)
{
	s->fakes = calloc(f->n + 1, sizeof(*s->fakes));
	if (!s->fakes)
		return -ENOMEM;
	for (; s->n < f->n; s->n++) {
		s->fakes[s->n] = f->v[s->n].fake;
		f->v[s->n].fake = STR_NULL;
	}
	return 0;
}

/* Chooses the longest window, to skip as much as possible at once, that does not fill the set of
 * grams. */
static void choose_window(const struct scrub_forms *f, struct scrubber *s)
{
	s->window = WINDOW_MAX;
	for (size_t i = 0; i < f->n; i++) {
		s->window = MIN(s->window, f->v[i].text.n);
		/* \u00XX for each byte */
		s->max_held = MAX(s->max_held, 6 * f->v[i].text.n + 6);
	}
	while (s->window > SURROGATE_MIN && f->n * (s->window - 3) > GRAMS_MAX)
		s->window--;
}

static int build(struct scrub_forms *f, struct scrubber *s, size_t states)
{
	_cleanup_(builder_done) struct builder b = {.s = s};

	choose_window(f, s);
	if (allocate(&b, states) < 0 || take_fakes(f, s) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++)
		add_form(&b, f->v[i].text, (uint16_t)i);
	link_all(&b);
	return keep_tables(&b);
}

static int build_add_value(struct scrub_forms *f, const struct secret *value, struct str surrogate)
{
	struct str text = secret_reveal(value);

	return text.n < SURROGATE_MIN ? 0 : scrub_forms_add(f, text, surrogate);
}

static int collect(const struct secret_set *set, struct scrub_forms *f)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < secret_set_count(set); i++) {
		const struct masked_secret *m = secret_set_get(set, i);

		if (m->known)
			r = build_add_value(f, m->value, m->surrogate);
		if (r == 0 && m->last)
			r = build_add_value(f, m->last, m->surrogate);
	}
	return r;
}

/* Takes the fakes of the forms. */
static int scrubber_build(struct scrub_forms *f, struct scrubber **ret, struct cloche_err *err)
{
	_cleanup_(scrubber_freep) struct scrubber *s = calloc(1, sizeof(*s));
	size_t states = 1;

	if (!s)
		return err_nomem(err);
	s->refs = 1;
	for (size_t i = 0; i < f->n; i++)
		states += f->v[i].text.n;
	if (states > STATES_MAX || f->n >= SCRUB_NO_MATCH)
		return err_set(err, E_LIMIT,
			"the secrets are too long to be looked for: %zu bytes in all their forms",
			states - 1);
	if (build(f, s, states) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(s);
	return 0;
}

int scrubber_new(const struct secret_set *set, struct scrubber **ret, struct cloche_err *err)
{
	_cleanup_(scrub_forms_done) struct scrub_forms f = {0};

	return collect(set, &f) < 0 ? err_nomem(err) : scrubber_build(&f, ret, err);
}

int scrubber_new_of_values(char *const *values, struct scrubber **ret, struct cloche_err *err)
{
	_cleanup_(scrub_forms_done) struct scrub_forms f = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && values && values[i]; i++) {
		struct str value = str_from(values[i]);
		_cleanup_(freep) char *stars = malloc(value.n + 1);

		if (!stars)
			return err_nomem(err);
		memset(stars, '*', value.n);
		if (value.n >= SURROGATE_MIN)
			r = scrub_forms_add(&f, value, str_make(stars, value.n));
	}
	return r < 0 ? err_nomem(err) : scrubber_build(&f, ret, err);
}

struct scrubber *scrubber_ref(struct scrubber *s)
{
	s->refs++;
	return s;
}

struct scrubber *scrubber_free(struct scrubber *s)
{
	if (!s || --s->refs > 0)
		return NULL;
	secret_free(s->tables);
	for (size_t i = 0; i < s->n; i++)
		free((void *)(uintptr_t)s->fakes[i].p);
	free(s->fakes);
	free(s);
	return NULL;
}
