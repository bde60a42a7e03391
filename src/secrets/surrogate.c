/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: programs look at secrets before they send them: at the prefix, the length,
 * the alphabet, the dots of a JWT. A surrogate keeps exactly that and nothing else of the value.
 * Each byte that is not kept is drawn uniformly, anew or from a keyed hash of the value, so the
 * surrogate says nothing about the value beyond its shape. */
#include "secrets/surrogate.h"

#include "base/macro.h"
#include "base/rand.h"
#include <endian.h>
#include <stdint.h>

/* Fewer drawn bytes than this could be guessed or could occur by chance; then the shape is not
 * kept. */
#define DRAWN_MIN 8

static const char *const prefixes[] = {"github_pat_", "ghp_", "gho_", "ghs_", "ghr_", "ghu_",
	"glpat-", "sk-ant-", "sk-", "xoxb-", "xoxp-", "AKIA", "ASIA"};

/* The specials that are reproduced: they need no quoting in a shell, a URL path or a header. */
static const char specials[] = "-_+/~";

struct alphabet {
	char alnum[64], all[72];
	uint32_t n_alnum, n_all;
};

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static void add_range(struct alphabet *a, char from, char to)
{
	for (char c = from; c <= to; c++)
		a->alnum[a->n_alnum++] = c;
}

static void alphabet_of(struct str s, struct alphabet *ret)
{
	bool upper = false, lower = false, digit = false, beyond_hex = false;

	*ret = (struct alphabet){0};
	for (size_t i = 0; i < s.n; i++) {
		upper |= is_upper(s.p[i]);
		lower |= is_lower(s.p[i]);
		digit |= str_is_digit(s.p[i]);
		beyond_hex |= (s.p[i] > 'f' && s.p[i] <= 'z') || (s.p[i] > 'F' && s.p[i] <= 'Z');
	}
	if (!upper && !lower && !digit)
		lower = digit = beyond_hex = true;
	if (upper)
		add_range(ret, 'A', beyond_hex ? 'Z' : 'F');
	if (lower)
		add_range(ret, 'a', beyond_hex ? 'z' : 'f');
	if (digit)
		add_range(ret, '0', '9');
	memcpy(ret->all, ret->alnum, ret->n_alnum);
	ret->n_all = ret->n_alnum;
	for (const char *c = specials; *c; c++)
		if (str_chr(s, *c) < s.n)
			ret->all[ret->n_all++] = *c;
}

static size_t known_prefix(struct str value)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(value, str_from(prefixes[i])))
			return strlen(prefixes[i]);
	return 0;
}

/* Length without trailing '='. */
static size_t unpadded(struct str s)
{
	while (s.n > 0 && s.p[s.n - 1] == '=')
		s.n--;
	return s.n;
}

static size_t count_drawn(struct str body)
{
	size_t n = 0;

	for (size_t i = 0; i < body.n; i++)
		n += body.p[i] != '.';
	return n;
}

void surrogate_source_init(struct surrogate_source *s, const uint8_t key[SHA256_BYTES],
	struct str context, struct str name, struct str value)
{
	struct sha256_hmac h;

	*s = (struct surrogate_source){.left = 0};
	sha256_hmac_init(&h, key);
	sha256_add_framed(&h.inner, STR("surrogate"));
	sha256_add_framed(&h.inner, context);
	sha256_add_framed(&h.inner, name);
	sha256_add_framed(&h.inner, value);
	sha256_hmac_bytes(&h, s->seed);
}

void surrogate_source_done(struct surrogate_source *s)
{
	explicit_bzero(s, sizeof(*s));
}

static uint32_t source_u32(struct surrogate_source *s)
{
	uint32_t word;

	if (s->left < sizeof(word)) {
		struct sha256_hmac h;
		uint64_t number = htole64(s->block++);

		sha256_hmac_init(&h, s->seed);
		sha256_add(&h.inner, str_make(&number, sizeof(number)));
		sha256_hmac_bytes(&h, s->bytes);
		s->left = sizeof(s->bytes);
	}
	memcpy(&word, s->bytes + sizeof(s->bytes) - s->left, sizeof(word));
	s->left -= sizeof(word);
	return le32toh(word);
}

/* A number uniform in [0, bound). */
static uint32_t source_below(struct surrogate_source *s, uint32_t bound)
{
	uint32_t word, over = UINT32_MAX - UINT32_MAX % bound;

	if (!s)
		return rand_below(bound);
	do
		word = source_u32(s);
	while (word >= over);
	return word % bound;
}

static void draw(struct surrogate_source *s, struct str body, const struct alphabet *a,
	bool keep_dots, char *ret)
{
	size_t first = 0, last = body.n;

	while (keep_dots && first < body.n && body.p[first] == '.')
		first++;
	while (keep_dots && last > first && body.p[last - 1] == '.')
		last--;
	for (size_t i = 0; i < body.n; i++) {
		if (keep_dots && body.p[i] == '.')
			ret[i] = '.';
		else if (i == first || i + 1 == last)
			ret[i] = a->alnum[source_below(s, a->n_alnum)];
		else
			ret[i] = a->all[source_below(s, a->n_all)];
	}
}

static bool same_at(struct str value, const char *surrogate, size_t i)
{
	return i < value.n && value.p[i] != '.' && surrogate[i] == value.p[i];
}

/* The index of the first byte that scrubbing never leaves where it is, or end. */
static size_t plain_from(struct str value, size_t at, size_t end)
{
	while (at < end && strchr("./%\"\\", value.p[at]))
		at++;
	return at;
}

void surrogate_make_from(struct surrogate_source *s, struct str value, char *ret)
{
	size_t prefix = known_prefix(value), end = unpadded(value), plain;
	struct alphabet alphabet;
	struct str body;
	bool keep_dots;

	if (end < prefix || count_drawn(str_make(value.p + prefix, end - prefix)) < DRAWN_MIN)
		prefix = 0;
	if (count_drawn(str_make(value.p + prefix, end - prefix)) < DRAWN_MIN)
		end = value.n;
	body = str_make(value.p + prefix, end - prefix);
	keep_dots = count_drawn(body) >= DRAWN_MIN;
	alphabet_of(body, &alphabet);
	memcpy(ret, value.p, value.n);
	plain = plain_from(value, prefix, end);
	/* The first byte has to differ, too: occurrences of a value that repeats itself overlap,
	 * and scrubbing may leave only the first bytes of the surrogate of each. So does the first
	 * byte that scrubbing never leaves where it is. */
	do
		draw(s, body, &alphabet, keep_dots, ret + prefix);
	while (memcmp(ret, value.p, value.n) == 0 || same_at(value, ret, prefix) ||
		(plain < end && same_at(value, ret, plain)));
}

void surrogate_make(struct str value, char *ret)
{
	surrogate_make_from(NULL, value, ret);
}

void surrogate_make_token_from(struct surrogate_source *s, struct str value, char *ret)
{
	size_t n = MIN(value.n, (size_t)SURROGATE_TOKEN_LEN), plain = plain_from(value, 0, n);
	struct alphabet alphabet;

	alphabet_of(STR("zZ0"), &alphabet);
	do
		for (size_t i = 0; i < SURROGATE_TOKEN_LEN; i++)
			ret[i] = alphabet.alnum[source_below(s, alphabet.n_alnum)];
	while (same_at(value, ret, 0) || (plain < n && same_at(value, ret, plain)));
}

void surrogate_make_token(struct str value, char *ret)
{
	surrogate_make_token_from(NULL, value, ret);
}

int surrogate_check_value(const char *name, struct str value, struct cloche_err *err)
{
	if (value.n < SURROGATE_MIN) {
		(void)err_set(err, E_CONFIG,
			"secret %s: the value has %zu bytes; fewer than %d cannot be masked safely",
			name, value.n, SURROGATE_MIN);
		err_hint(err,
			"use a longer one; what is no secret can be passed with --env or env:");
		return -E_CONFIG;
	}
	if (value.n > SURROGATE_MAX)
		return err_set(err, E_CONFIG, "secret %s: the value is longer than %d bytes", name,
			SURROGATE_MAX);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c >= 0x20 && c != 0x7f)
			continue;
		(void)err_set(err, E_CONFIG,
			"secret %s: the value holds a %s, which cannot go into a header", name,
			c == '\n' || c == '\r' ? "line break" : "control byte");
		err_hint(err, "only one-line values can be masked");
		return -E_CONFIG;
	}
	if (value.p[0] == ' ' || value.p[value.n - 1] == ' ')
		return err_set(
			err, E_CONFIG, "secret %s: the value begins or ends with a space", name);
	return 0;
}
