/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): an automaton over all forms (scrub_build.c) reads
 * each byte of the input once, as it stands. Where a form ends, its fake is written over it. If one
 * form is part of another, the longer one is written last.
 *
 * An escape (%2F, \/, \", \\, \u002f) adds another way to read the text. Where the escape ends, the
 * automaton's state from before the escape goes on with the byte that the escape stands for, in a
 * lane of its own. Each lane counts the characters since its match began. When none of them came
 * from an escape any more, the lane is dropped, because the plain reading finds the same match. So
 * any mixture of escaped and plain bytes is found without deciding what kind of text it is, and a
 * text without escapes has no lanes.
 *
 * The longest prefix of a form that is alive after a chunk is held back, and no match can begin
 * before it. After a complete form that no other form continues, the longest prefix that is left is
 * held back.
 *
 * In the root state, most input is skipped without looking at each byte: every form has at least
 * `window` bytes, so four bytes that are in the first `window` bytes of no form rule out all but
 * three of as many starting places. Escapes are searched for ahead, with vector instructions. Each
 * step either skips or advances the automaton, so the time is linear for any input. */
#include "secrets/scrub.h"

#include "base/parse.h"
#include "secrets/scrub_internal.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <errno.h>

#define LANES 4
#define ESCAPE_MAX 6

struct lane {
	uint32_t state, len; /* len: characters of the text since the match began */
	enum scrub_escape kind;
};

/* How far the text has been read. */
struct machine {
	uint32_t raw; /* state of the plain reading */
	unsigned n_lanes, n_from;
	struct lane lanes[LANES], from[LANES + 1]; /* from: those that go on after the escape */
	enum scrub_escape kind;                    /* of the current escape */
	unsigned esc_n; /* its characters so far; 0: there is no escape */
	char esc[ESCAPE_MAX];
	size_t alive; /* result of alive() before the current character */
	uint64_t hits;
};

struct scrub {
	struct scrubber *scrubber;
	char *hold[2]; /* held bytes, and those released last */
	size_t hold_size, current, n;
	struct machine machine;
};

/* The held bytes, followed by the new chunk. Index 0 is the first byte of the chunk. */
struct text {
	char *data, *hold_end;
};

static char *at(const struct text *t, ptrdiff_t i)
{
	return i >= 0 ? t->data + i : t->hold_end + i;
}

enum { ESCAPE_NONE = -1, ESCAPE_MORE = 256 };

/* Return the value of n of `all` hexadecimal digits; those before the last two have to be '0'. */
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

/* Return the byte that p stands for, if it is a whole escape, or ESCAPE_MORE if more is needed. p
 * has at least the first character, and no more than that escape may have. */
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

/* Drops the first n bytes, plain or escaped, from the match of a lane that ends before `end`. */
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

/* Return the length of the escape at i in any reading, or 1 if a '%' or '\' stands for itself, or 0
 * for a plain byte. */
static unsigned escape_len(const struct text *t, bool percent, ptrdiff_t i, size_t left)
{
	char c = *at(t, i);

	if (c == '%')
		return percent && left >= 3 ? 3 : 1;
	if (c != '\\')
		return 0;
	return left >= 6 && *at(t, i + 1) == 'u' ? 6 : (unsigned)MIN(left, (size_t)2);
}

/* Writes a fake over the bytes from i to end; those before `seen` are gone. The characters that
 * give the length of an escape are kept, since lanes over the same bytes rely on them: '%', and '\'
 * with the byte after it. */
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

/* Reads a byte that is written as n characters from `end` on. Returns whether the lane is still
 * needed. */
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
			/* The last character of %34 may also be read as a plain 4; the longer
			 * reading covers it. */
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

/* An escape begins: keep the states that may go on after it. */
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

/* A lane ends at a plain first character of its own kind of escape: no encoder writes it like
 * that. */
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

/* Return how many of the last characters may begin a form. */
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
	/* Lanes come last, so their fakes win: if a match begins in the middle of an escape, the
	 * escape must still be one afterwards. */
	read_raw(s, m, t, i, c);
	if (m->n_lanes > 0)
		read_in_lanes(s, m, t, i, c);
	if (value >= 0 && value != ESCAPE_MORE)
		escape_end(s, m, t, i + 1, (uint8_t)value);
}

/* Whether an escape of a byte that occurs in forms begins, or may begin, at p. */
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

/* Whether any of 64 bytes may begin an escape. */
static bool any_escape(const char *p)
{
	__m128i a = _mm_or_si128(escape_bytes(p), escape_bytes(p + 16));
	__m128i b = _mm_or_si128(escape_bytes(p + 32), escape_bytes(p + 48));

	return _mm_movemask_epi8(_mm_or_si128(a, b)) != 0;
}

/* Return a mask of the bytes among 16 that may begin an escape that matters. The byte after each is
 * checked as well, so 17 are read. In random data one byte in 128 is '%' or '\', and a branch for
 * each would be slow. */
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

/* Return the index of the first escape that matters, or n. */
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

/* Return where reading has to begin for the next escape that matters: at the first of several
 * backslashes, because two of them stand for one. */
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

/* Skips bytes from i on that cannot begin a form; the state has to be the root. *escape keeps the
 * result of find_escape() from call to call. */
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

/* Nothing is skipped inside a run of backslashes: either it has to be read, or it does not
 * matter. */
static bool is_among(const char *data, size_t i)
{
	return data[i] == '\\' && i > 0 && data[i - 1] == '\\';
}

/* whole: nothing follows, so a rest that is shorter than every form is not read. */
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

static struct scrub *scrub_make(struct scrubber *s, size_t held)
{
	_cleanup_(scrub_freep) struct scrub *scrub = calloc(1, sizeof(*scrub));

	if (!scrub)
		return NULL;
	scrub->scrubber = scrubber_ref(s);
	scrub->hold_size = held + 1;
	for (size_t i = 0; i < 2; i++) {
		scrub->hold[i] = malloc(scrub->hold_size);
		if (!scrub->hold[i])
			return NULL;
	}
	return TAKE_PTR(scrub);
}

struct scrub *scrub_new(struct scrubber *s)
{
	return scrub_make(s, s->max_held);
}

struct scrub *scrub_free(struct scrub *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < 2; i++) {
		if (s->hold[i])
			explicit_bzero(s->hold[i], s->hold_size);
		free(s->hold[i]);
	}
	scrubber_free(s->scrubber);
	free(s);
	return NULL;
}

int scrub_follow(struct scrub *s, struct scrubber *to)
{
	struct scrub *fresh = scrub_make(to, MAX(to->max_held, s->n));
	struct scrub was = *s;
	struct text text;

	if (!fresh)
		return -ENOMEM;
	fresh->machine.hits = s->machine.hits;
	fresh->n = s->n;
	memcpy(fresh->hold[0], s->hold[s->current], s->n);
	text = (struct text){fresh->hold[0], fresh->hold[0]};
	if (to->n > 0)
		run(to, &fresh->machine, &text, s->n, false);
	*s = *fresh;
	*fresh = was;
	scrub_free(fresh);
	return 0;
}

void scrub_feed(
	struct scrub *s, char *data, size_t n, struct str *ret_first, struct str *ret_second)
{
	char *old = s->hold[s->current], *fresh = s->hold[!s->current];
	struct text text = {data, old + s->n};
	size_t keep, released;

	if (s->scrubber->n == 0) {
		*ret_first = scrub_end(s);
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
