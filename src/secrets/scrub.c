/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): an automaton over all forms (scrub_build.c) reads the
 * original bytes, once each, as they stand. If a form ends, its fake is written over it, back
 * from there. Longer forms end later, so if one is part of another the longer one has the last
 * word.
 *
 * An escape (%2F, \/, \", \\, \u002f) makes one more way to read the text: where it ends, the
 * automaton's state before it goes on with the byte that it stands for, in a lane of its own. A
 * lane knows how many characters its beginning has, and drops out when no escape is left in that:
 * then the first reading says the same. So any mixture of escaped and plain bytes is found, nothing
 * has to be decided about what the text is, and if there are no escapes there are no lanes.
 *
 * The longest beginning that is alive after a chunk is what is held back, and a match can reach
 * back no further than that. After a complete value that no other continues, it is the longest
 * beginning that is left.
 *
 * In the root state, most input is skipped without looking at it byte by byte: every form has at
 * least `window` bytes, so four bytes that are in the first `window` of none rule out as many
 * starting places but three. Escapes are looked for ahead, by vectors. A step either skips or
 * advances the automaton, so time stays linear for any input. */
#include "secrets/scrub.h"

#include "base/parse.h"
#include "secrets/scrub_internal.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LANES 4
#define ESCAPE_MAX 6

struct lane {
	uint32_t state, len; /* characters of the text that led there */
	enum scrub_escape kind;
};

/* Where the reading is. */
struct machine {
	uint32_t raw; /* as the text stands */
	unsigned n_lanes, n_from;
	struct lane lanes[LANES], from[LANES + 1]; /* from: to go on behind the escape */
	enum scrub_escape kind;                    /* of an escape that has begun */
	unsigned esc_n;                            /* its characters so far; 0: none has */
	char esc[ESCAPE_MAX];
	size_t alive; /* see alive(), before the character that is read now */
	uint64_t hits;
};

struct scrub {
	struct scrubber *scrubber;
	char *hold[2]; /* what is held, and what was released last */
	size_t current, n;
	struct machine machine;
};

/* What is held, and what came. Index 0 is the first byte that came. */
struct text {
	char *data, *hold_end;
};

static char *at(const struct text *t, ptrdiff_t i)
{
	return i >= 0 ? t->data + i : t->hold_end + i;
}

enum { ESCAPE_NONE = -1, ESCAPE_MORE = 256 };

/* Of hexadecimal digits, two at the end of `all`, and '0' before. */
static int hex_value(const char *p, size_t n, size_t all)
{
	int value = 0;

	for (size_t i = 0; i < n; i++) {
		int digit = parse_hex_digit(p[i]);

		if (digit < 0 || (i + 2 < all && digit))
			return ESCAPE_NONE;
		value = value << 4 | digit;
	}
	return n < all ? ESCAPE_MORE : value;
}

/* The byte that p stands for, if it is a whole escape; ESCAPE_MORE if more is needed. p has
 * at least the first character, and no more than that escape may have. */
static int escape_value(const char *p, size_t n)
{
	int value;

	if (p[0] == '%')
		return hex_value(p + 1, n - 1, 2);
	if (n == 1)
		return ESCAPE_MORE;
	if (p[1] == '/' || p[1] == '"' || p[1] == '\\')
		return p[1];
	value = p[1] == 'u' ? hex_value(p + 2, n - 2, 4) : ESCAPE_NONE;
	return value < 0x80 || value == ESCAPE_MORE ? value : ESCAPE_NONE;
}

/* How many characters the escape or plain byte at i takes. */
static unsigned unit_len(const struct text *t, enum scrub_escape kind, ptrdiff_t i, size_t left)
{
	char c = *at(t, i);

	if (kind == SCRUB_PERCENT)
		return c == '%' && left >= 3 ? 3 : 1;
	if (c != '\\' || left < 2)
		return 1;
	return *at(t, i + 1) == 'u' ? (unsigned)MIN(left, (size_t)6) : 2;
}

/* Shortens a lane that ends before `end` by n bytes of its beginning. */
static void lane_drop(const struct text *t, struct lane *l, ptrdiff_t end, uint32_t n)
{
	for (; n > 0 && l->len > 0; n--)
		l->len -= unit_len(t, l->kind, end - (ptrdiff_t)l->len, l->len);
}

static void lane_to(const struct scrubber *s, const struct text *t, struct lane *l, ptrdiff_t end,
	uint32_t state)
{
	lane_drop(t, l, end, s->nodes[l->state].depth - s->nodes[state].depth);
	l->state = state;
}

/* How many characters at i are one escape, whoever reads it; 0: it is a plain byte. */
static unsigned escape_len(const struct text *t, bool percent, ptrdiff_t i, size_t left)
{
	char c = *at(t, i);

	if (c == '%')
		return percent && left >= 3 ? 3 : 1;
	if (c != '\\')
		return 0;
	return left >= 6 && *at(t, i + 1) == 'u' ? 6 : (unsigned)MIN(left, (size_t)2);
}

/* Writes a fake over the bytes from i to end; those before `seen` are gone. What says how long
 * escapes are stays, since lanes over the same bytes go by it: '%', and '\' with the byte behind
 * it.
 */
static void write_fake(const struct text *t, bool percent, ptrdiff_t seen, ptrdiff_t i,
	ptrdiff_t end, struct str fake)
{
	static const char digits[] = "0123456789abcdef";
	size_t k = 0;

	if (i > seen && *at(t, i - 1) == '\\') {
		i++;
		k++;
	}
	for (; i < end; k++) {
		unsigned n = escape_len(t, percent, i, (size_t)(end - i));
		uint8_t c = (uint8_t)(k < fake.n ? fake.p[k] : 'x');

		if (n == 0)
			*at(t, i) = (char)c;
		if (n == 6)
			*at(t, i + 2) = *at(t, i + 3) = '0';
		if (n >= 3) {
			*at(t, i + n - 2) = digits[c >> 4];
			*at(t, i + n - 1) = digits[c & 15];
		}
		i += MAX(n, 1U);
	}
}

static void lane_match(const struct scrubber *s, struct machine *m, const struct text *t,
	const struct lane *l, ptrdiff_t end)
{
	struct lane form = *l;
	struct str fake;

	if (s->nodes[l->state].match == SCRUB_NO_MATCH)
		return;
	fake = s->fakes[s->nodes[l->state].match];
	lane_drop(t, &form, end, s->nodes[l->state].depth - (uint32_t)fake.n);
	write_fake(t, l->kind == SCRUB_PERCENT, end - 1 - (ptrdiff_t)m->alive,
		end - (ptrdiff_t)form.len, end, fake);
	m->hits++;
}

/* Reads a byte, written as the n characters from `end` on. Returns whether the lane is left. */
static bool lane_read(const struct scrubber *s, struct machine *m, const struct text *t,
	struct lane *l, ptrdiff_t end, uint8_t byte, unsigned n)
{
	uint32_t to = scrub_child(s, l->state, byte);

	while (!to && l->state) {
		lane_to(s, t, l, end, s->nodes[l->state].fail);
		to = scrub_child(s, l->state, byte);
	}
	if (!to)
		return false;
	l->state = to;
	l->len += n;
	lane_match(s, m, t, l, end + n);
	lane_to(s, t, l, end + n, s->nodes[to].rest);
	return l->len > s->nodes[l->state].depth;
}

static void add_lane(const struct scrubber *s, struct machine *m, const struct lane *l)
{
	unsigned least = 0;

	for (unsigned i = 0; i < m->n_lanes; i++) {
		if (m->lanes[i].state == l->state && m->lanes[i].kind == l->kind) {
			/* The end of %34 may be a 4, too: that is within the longer one. */
			m->lanes[i].len = MAX(m->lanes[i].len, l->len);
			return;
		}
		if (s->nodes[m->lanes[i].state].depth < s->nodes[m->lanes[least].state].depth)
			least = i;
	}
	if (m->n_lanes < LANES)
		m->lanes[m->n_lanes++] = *l;
	else if (s->nodes[m->lanes[least].state].depth < s->nodes[l->state].depth)
		m->lanes[least] = *l;
}

/* From here on the text may be read in one more way. */
static void escape_begin(const struct scrubber *s, struct machine *m, char c)
{
	uint32_t plain;

	m->kind = c == '%' ? SCRUB_PERCENT : SCRUB_BACKSLASH;
	m->esc[0] = c;
	m->esc_n = 1;
	plain = s->nodes[m->raw].plain[m->kind];
	m->from[0] = (struct lane){plain, s->nodes[plain].depth, m->kind};
	m->n_from = 1;
	for (unsigned i = 0; i < m->n_lanes; i++)
		if (m->lanes[i].kind == m->kind)
			m->from[m->n_from++] = m->lanes[i];
}

/* The escape that ends with the character before `end` is complete. */
static void escape_end(const struct scrubber *s, struct machine *m, const struct text *t,
	ptrdiff_t end, uint8_t byte)
{
	for (unsigned i = 0; i < m->n_from; i++)
		if (lane_read(s, m, t, &m->from[i], end - m->esc_n, byte, m->esc_n))
			add_lane(s, m, &m->from[i]);
	m->esc_n = 0;
}

/* The first character of an escape as it is ends lanes of that kind: nobody writes it so. */
static void read_in_lanes(
	const struct scrubber *s, struct machine *m, const struct text *t, ptrdiff_t i, char c)
{
	unsigned n = 0;

	for (unsigned k = 0; k < m->n_lanes; k++) {
		struct lane l = m->lanes[k];

		if (c == (l.kind == SCRUB_PERCENT ? '%' : '\\'))
			continue;
		if (lane_read(s, m, t, &l, i, (uint8_t)c, 1))
			m->lanes[n++] = l;
	}
	m->n_lanes = n;
}

static void raw_match(const struct scrubber *s, struct machine *m, const struct text *t,
	ptrdiff_t i, uint16_t match)
{
	struct str fake = s->fakes[match];

	write_fake(t, false, i - (ptrdiff_t)m->alive, i + 1 - (ptrdiff_t)fake.n, i + 1, fake);
	m->hits++;
}

static void read_raw(
	const struct scrubber *s, struct machine *m, const struct text *t, ptrdiff_t i, char c)
{
	uint32_t state = m->raw, to = scrub_child(s, state, (uint8_t)c);

	while (!to && state) {
		state = s->nodes[state].fail;
		to = scrub_child(s, state, (uint8_t)c);
	}
	if (s->nodes[to].match != SCRUB_NO_MATCH)
		raw_match(s, m, t, i, s->nodes[to].match);
	m->raw = s->nodes[to].rest;
}

/* How many of the last characters may be the beginning of a form. */
static size_t alive(const struct scrubber *s, const struct machine *m)
{
	size_t n = s->nodes[m->raw].depth;

	for (unsigned i = 0; i < m->n_lanes; i++)
		n = MAX(n, (size_t)m->lanes[i].len);
	for (unsigned i = 0; m->esc_n > 0 && i < m->n_from; i++)
		n = MAX(n, (size_t)m->from[i].len + m->esc_n);
	return n;
}

static void read_char(
	const struct scrubber *s, struct machine *m, const struct text *t, ptrdiff_t i, char c)
{
	int value = ESCAPE_MORE;

	m->alive = alive(s, m);
	if (m->esc_n > 0) {
		m->esc[m->esc_n++] = c;
		value = escape_value(m->esc, m->esc_n);
		if (value == ESCAPE_NONE)
			m->esc_n = 0;
	}
	if (m->esc_n == 0 && (c == '%' || c == '\\'))
		escape_begin(s, m, c);
	/* Lanes come later, so theirs is the last word: where a match begins in the middle of an
	 * escape, that shall be one afterwards. */
	read_raw(s, m, t, i, c);
	if (m->n_lanes > 0)
		read_in_lanes(s, m, t, i, c);
	if (value >= 0 && value != ESCAPE_MORE)
		escape_end(s, m, t, i + 1, (uint8_t)value);
}

/* Whether an escape begins at p that stands for a byte that forms have. */
static bool matters(const struct scrubber *s, const char *p, size_t n)
{
	int value = ESCAPE_MORE;

	for (size_t i = 1; value == ESCAPE_MORE && i <= MIN(n, (size_t)ESCAPE_MAX); i++)
		value = escape_value(p, i);
	return value == ESCAPE_MORE || (value >= 0 && s->in_use[value]);
}

#if defined(__SSE2__)
static __m128i escape_bytes(const char *p)
{
	const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)p);

	return _mm_or_si128(
		_mm_cmpeq_epi8(c, _mm_set1_epi8('%')), _mm_cmpeq_epi8(c, _mm_set1_epi8('\\')));
}

/* Whether there is any among 64 bytes. */
static bool any_escape(const char *p)
{
	__m128i a = _mm_or_si128(escape_bytes(p), escape_bytes(p + 16));
	__m128i b = _mm_or_si128(escape_bytes(p + 32), escape_bytes(p + 48));

	return _mm_movemask_epi8(_mm_or_si128(a, b)) != 0;
}

/* Of 16 bytes, those that may begin an escape that matters, judged also by what follows each (so 17
 * are read). In random bytes one of 128 does, which a branch for each would make slow. */
static unsigned escapes_at(const struct scrubber *s, const char *p)
{
	const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)p);
	const __m128i percent = _mm_cmpeq_epi8(c, _mm_set1_epi8('%'));
	const __m128i backslash = _mm_cmpeq_epi8(c, _mm_set1_epi8('\\'));
	__m128i next, digit, letter, other;

	if (!_mm_movemask_epi8(_mm_or_si128(percent, backslash)))
		return 0;
	next = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
	digit = _mm_sub_epi8(next, _mm_set1_epi8('0'));
	letter = _mm_sub_epi8(_mm_or_si128(next, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
	digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
	letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
	other = _mm_or_si128(
		_mm_cmpeq_epi8(next, _mm_set1_epi8('/')), _mm_cmpeq_epi8(next, _mm_set1_epi8('u')));
	if (s->in_use['"'])
		other = _mm_or_si128(other, _mm_cmpeq_epi8(next, _mm_set1_epi8('"')));
	if (s->in_use['\\'])
		other = _mm_or_si128(other, _mm_cmpeq_epi8(next, _mm_set1_epi8('\\')));
	return (unsigned)_mm_movemask_epi8(
		_mm_or_si128(_mm_and_si128(percent, _mm_or_si128(digit, letter)),
			_mm_and_si128(backslash, other)));
}
#endif

/* The first such place, or n. */
static size_t find_mattering(const struct scrubber *s, const char *data, size_t i, size_t n)
{
#if defined(__SSE2__)
	for (; n - i > 16; i += 16) {
		if (n - i > 64 && !any_escape(data + i)) {
			i += 64 - 16;
			continue;
		}
		for (unsigned found = escapes_at(s, data + i); found; found &= found - 1) {
			size_t k = i + (size_t)__builtin_ctz(found);

			if (matters(s, data + k, n - k))
				return k;
		}
	}
#endif
	for (; i < n; i++)
		if ((data[i] == '%' || data[i] == '\\') && matters(s, data + i, n - i))
			return i;
	return n;
}

/* From where on the text has to be read for its sake: of several backslashes, two are one, so all
 * of them are. */
static size_t find_escape(const struct scrubber *s, const char *data, size_t i, size_t n)
{
	size_t k = find_mattering(s, data, i, n);

	while (k < n && data[k] == '\\' && k > i && data[k - 1] == '\\')
		k--;
	return k;
}

static bool has_gram(const uint8_t *set, const char *p)
{
	uint32_t gram = scrub_gram(p);

	return set[gram / 8] & (1U << (gram % 8));
}

/* Skips what cannot begin a form, from the root state at i. *escape: see find_escape(), kept from
 * call to call. */
static size_t skip(const struct scrubber *s, const char *data, size_t i, size_t n, size_t *escape)
{
	size_t window = s->window, step = window - 3;

	if (*escape < i || *escape == SIZE_MAX)
		*escape = find_escape(s, data, i, n);
	for (n = *escape; n - i >= window; i += step) {
		if (!has_gram(s->grams, data + i + step - 1))
			continue;
		for (size_t k = i; k < i + step; k++)
			if (has_gram(s->first_grams, data + k))
				return k;
	}
	return i;
}

/* Within several backslashes nothing is skipped: it is known that they have to be read, or they do
 * not matter. */
static bool is_among(const char *data, size_t i)
{
	return data[i] == '\\' && i > 0 && data[i - 1] == '\\';
}

/* whole: nothing follows, so what is shorter than every form needs no reading. */
static void run(
	const struct scrubber *s, struct machine *m, const struct text *t, size_t n, bool whole)
{
	size_t escape = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		if (m->raw == 0 && m->n_lanes == 0 && m->esc_n == 0 && !is_among(t->data, i)) {
			i = skip(s, t->data, i, n, &escape);
			if (i >= n || (whole && n - i < s->window))
				break;
		}
		read_char(s, m, t, (ptrdiff_t)i, t->data[i]);
	}
}

struct scrub *scrub_new(struct scrubber *s)
{
	_cleanup_(scrub_freep) struct scrub *scrub = calloc(1, sizeof(*scrub));

	if (!scrub)
		return NULL;
	scrub->scrubber = scrubber_ref(s);
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
	scrubber_free(s->scrubber);
	free(s);
	return NULL;
}

void scrub_feed(
	struct scrub *s, char *data, size_t n, struct str *ret_first, struct str *ret_second)
{
	char *old = s->hold[s->current], *fresh = s->hold[!s->current];
	struct text text = {data, old + s->n};
	size_t keep, released;

	if (s->scrubber->n == 0) {
		*ret_first = STR_NULL;
		*ret_second = str_make(data, n);
		return;
	}
	run(s->scrubber, &s->machine, &text, n, false);
	keep = MIN(alive(s->scrubber, &s->machine), s->n + n);
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
	s->machine = (struct machine){.hits = s->machine.hits};
	return rest;
}

uint64_t scrub_hits(const struct scrub *s)
{
	return s->machine.hits;
}

size_t scrub_whole(const struct scrubber *s, char *data, size_t n)
{
	struct machine m = {0};
	const struct text text = {data, data};

	if (s->n > 0)
		run(s, &m, &text, n, true);
	return (size_t)m.hits;
}
