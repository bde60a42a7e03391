/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the engine reads the .dockerignore itself. It is read here as well, so that
 * what the image cannot have is neither read nor counted, and no part of the image's name.
 * Therefore nothing may be left out here that an engine takes. The rules are those of Docker's
 * reference: a pattern holds of a path and of all below it, and the last that holds decides. A
 * pattern is matched as an automaton whose states are its parts, so none takes long. */
#include "image/dockerignore.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { IGNORE_RULES_MAX = 10000, IGNORE_PATTERN_MAX = 1024 };

struct dockerignore_part {
	enum {
		IGNORE_BYTE,   /* this one */
		IGNORE_ONE,    /* "?": a character other than a slash */
		IGNORE_REST,   /* the other bytes of such a character */
		IGNORE_SET,    /* "[a-z]" */
		IGNORE_NAME,   /* "*": any bytes but slashes */
		IGNORE_DIRS,   /* "**" and a slash: nothing, or what IGNORE_ABOVE takes */
		IGNORE_ABOVE,  /* any bytes up to a slash */
		IGNORE_BEYOND, /* "**" at the end: any bytes */
	} kind;
	unsigned char byte;
	uint8_t set[32];
};

void dockerignore_done(struct dockerignore *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->rules[i].parts);
	free(g->rules);
	*g = (struct dockerignore){0};
}

static bool set_has(const uint8_t set[32], unsigned char c)
{
	return set[c / 8] & (1u << c % 8);
}

/* Take a byte of a set, which a backslash may quote. Return false at the end. */
static bool set_take_byte(struct str *s, unsigned char *ret)
{
	if (s->n && s->p[0] == '\\')
		*s = str_from_index(*s, 1);
	if (s->n == 0)
		return false;
	*ret = (unsigned char)s->p[0];
	*s = str_from_index(*s, 1);
	return true;
}

/* Take the members of a set, and its end. *wide becomes true if one is no ASCII. Return false if it
 * is no set. */
static bool dockerignore_take_members(struct str *s, uint8_t set[32], bool *wide)
{
	unsigned char low, high;

	for (bool first = true; s->n && (first || s->p[0] != ']'); first = false) {
		if (s->p[0] == ']' || s->p[0] == '-' || !set_take_byte(s, &low))
			return false;
		high = low;
		if (s->n && s->p[0] == '-') {
			*s = str_from_index(*s, 1);
			if (!s->n || s->p[0] == ']' || !set_take_byte(s, &high) || high < low)
				return false;
		}
		*wide |= high >= 0x80;
		for (unsigned c = low; c <= high; c++)
			set[c / 8] |= (uint8_t)(1u << c % 8);
	}
	if (!s->n)
		return false;
	*s = str_from_index(*s, 1);
	return true;
}

/* Take what follows "[". Return false if it is no set. Its members are bytes: of characters with
 * several, a rule that keeps takes too many, and another one too few. */
static bool dockerignore_take_set(struct str *s, struct dockerignore_rule *rule)
{
	struct dockerignore_part *part = &rule->parts[rule->n++];
	bool other = s->n && s->p[0] == '^', wide = other;

	part->kind = IGNORE_SET;
	if (other)
		*s = str_from_index(*s, 1);
	if (!dockerignore_take_members(s, part->set, &wide))
		return false;
	for (size_t i = 0; other && i < sizeof(part->set); i++)
		part->set[i] = (uint8_t)~part->set[i];
	part->set['/' / 8] &= (uint8_t) ~(1u << '/' % 8);
	if (rule->keep && wide)
		memset(part->set + sizeof(part->set) / 2, 0xff, sizeof(part->set) / 2);
	if (other || (rule->keep && wide))
		rule->parts[rule->n++].kind = IGNORE_REST;
	return true;
}

static void dockerignore_take_stars(struct str *s, struct dockerignore_rule *rule)
{
	if (!str_starts(*s, STR("*"))) {
		rule->parts[rule->n++].kind = IGNORE_NAME;
		return;
	}
	*s = str_from_index(*s, 1);
	if (str_starts(*s, STR("/")))
		*s = str_from_index(*s, 1);
	if (s->n == 0) {
		rule->parts[rule->n++].kind = IGNORE_BEYOND;
		return;
	}
	rule->parts[rule->n++].kind = IGNORE_DIRS;
	rule->parts[rule->n++].kind = IGNORE_ABOVE;
}

/* Take the next part of a pattern apart. Return false if it is none. */
static bool dockerignore_take_part(struct str *s, struct dockerignore_rule *rule)
{
	unsigned char c = (unsigned char)s->p[0];

	*s = str_from_index(*s, 1);
	if (c == '*') {
		dockerignore_take_stars(s, rule);
		return true;
	}
	if (c == '[')
		return dockerignore_take_set(s, rule);
	if (c == '?') {
		rule->parts[rule->n++].kind = IGNORE_ONE;
		rule->parts[rule->n++].kind = IGNORE_REST;
		return true;
	}
	if (c == '\\') {
		if (s->n == 0)
			return false;
		c = (unsigned char)s->p[0];
		*s = str_from_index(*s, 1);
		/* The engines make a regular expression of it, in which this is no letter. */
		if (!rule->keep && isalnum(c))
			rule->parts[rule->n].kind = IGNORE_SET;
	}
	rule->parts[rule->n++].byte = c;
	return true;
}

/* Clean a pattern as Go's path.Clean does, and drop its first slash. What leads up holds of
 * nothing, and becomes empty. */
static struct str dockerignore_clean(struct str pattern, char ret[IGNORE_PATTERN_MAX])
{
	bool top = pattern.p[0] == '/';
	size_t n = 0;

	while (pattern.n) {
		struct str part = str_next(&pattern, '/');

		if (str_eq(part, STR(".."))) {
			if (n == 0 && !top)
				return STR_NULL;
			while (n > 0 && ret[--n] != '/')
				;
		} else if (part.n && !str_eq(part, STR("."))) {
			if (n > 0)
				ret[n++] = '/';
			memcpy(ret + n, part.p, part.n);
			n += part.n;
		}
	}
	return str_make(ret, n);
}

static int dockerignore_add(struct dockerignore *g, struct str line)
{
	char clean[IGNORE_PATTERN_MAX];
	struct dockerignore_rule rule = {.keep = line.p[0] == '!'}, *grown;
	struct str pattern = rule.keep ? str_trim(str_from_index(line, 1)) : line;

	if (pattern.n == 0 || pattern.n >= sizeof(clean) || g->n == IGNORE_RULES_MAX)
		return -EINVAL;
	pattern = dockerignore_clean(pattern, clean);
	if (pattern.n == 0)
		return 0;
	grown = array_room(g->rules, g->n, &g->room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	g->rules = grown;
	rule.parts = calloc(2 * pattern.n, sizeof(*rule.parts));
	if (!rule.parts)
		return -ENOMEM;
	g->rules[g->n++] = rule;
	g->keeps |= rule.keep;
	while (pattern.n)
		if (!dockerignore_take_part(&pattern, &g->rules[g->n - 1]))
			return -EINVAL;
	return 0;
}

int dockerignore_read(struct dockerignore *g, struct str text, struct cloche_err *err)
{
	static const struct str mark = {"\xef\xbb\xbf", 3};

	if (str_starts(text, mark))
		text = str_from_index(text, mark.n);
	for (unsigned number = 1; text.n; number++) {
		struct str raw = str_next_line(&text);
		struct str line =
			str_trim(str_ends(raw, STR("\r")) ? str_prefix(raw, raw.n - 1) : raw);
		int r = line.n && raw.p[0] != '#' ? dockerignore_add(g, line) : 0;

		if (r == -ENOMEM)
			return err_nomem(err);
		if (r < 0)
			return err_set(err, E_CONFIG,
				".dockerignore:%u: this is no pattern, or there are too many",
				number);
	}
	return 0;
}

/* Mark state i, and those that need no byte to come to. */
static void dockerignore_enter(const struct dockerignore_rule *rule, size_t i, bool *in)
{
	for (; !in[i]; i++) {
		in[i] = true;
		if (i == rule->n)
			return;
		if (rule->parts[i].kind == IGNORE_DIRS)
			dockerignore_enter(rule, i + 2, in);
		else if (rule->parts[i].kind != IGNORE_REST && rule->parts[i].kind != IGNORE_NAME &&
			 rule->parts[i].kind != IGNORE_BEYOND)
			return;
	}
}

/* Go on from state i with a byte of the path. */
static void dockerignore_step(
	const struct dockerignore_rule *rule, size_t i, unsigned char c, bool *next)
{
	const struct dockerignore_part *part = &rule->parts[i];

	switch (part->kind) {
	case IGNORE_BYTE:
		if (c == part->byte)
			dockerignore_enter(rule, i + 1, next);
		break;
	case IGNORE_ONE:
		if (c != '/')
			dockerignore_enter(rule, i + 1, next);
		break;
	case IGNORE_REST:
		if ((c & 0xc0) == 0x80)
			dockerignore_enter(rule, i, next);
		break;
	case IGNORE_SET:
		if (set_has(part->set, c))
			dockerignore_enter(rule, i + 1, next);
		break;
	case IGNORE_NAME:
		if (c != '/')
			dockerignore_enter(rule, i, next);
		break;
	case IGNORE_ABOVE:
		if (c == '/')
			dockerignore_enter(rule, i + 1, next);
		dockerignore_enter(rule, i, next);
		break;
	case IGNORE_BEYOND:
		dockerignore_enter(rule, i, next);
		break;
	case IGNORE_DIRS:
		break;
	}
}

/* Return whether the pattern holds of the path or of a directory above it. */
static bool dockerignore_holds(const struct dockerignore_rule *rule, const char *path)
{
	bool states[2][2 * IGNORE_PATTERN_MAX + 1];
	bool *in = states[0], *next = states[1];

	memset(in, 0, rule->n + 1);
	dockerignore_enter(rule, 0, in);
	for (; *path; path++) {
		bool *was = in;

		if (*path == '/' && in[rule->n])
			return true;
		memset(next, 0, rule->n + 1);
		for (size_t i = 0; i < rule->n; i++)
			if (in[i])
				dockerignore_step(rule, i, (unsigned char)*path, next);
		in = next;
		next = was;
	}
	return in[rule->n];
}

bool dockerignore_matches(const struct dockerignore *g, const char *path)
{
	for (size_t i = g->n; i-- > 0;)
		if (dockerignore_holds(&g->rules[i], path))
			return !g->rules[i].keep;
	return false;
}
