/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a pattern with a slash is compared with the path name by name, "**" standing
 * for any number of names; one without is compared with the last name. In both, only the last star
 * is ever tried anew: what an earlier one could take as well, the last one can. So a pattern costs
 * at most its length times that of the path, whatever a room has written. */
#include "sync/ignore.h"

struct ignore_rule {
	struct str pattern;
	bool negated, directories, anchored;
};

struct ignore_rules {
	char *text; /* the patterns are views of it */
	struct ignore_rule *rules;
	size_t n, cap;
};

/* Without spaces at the end, unless a backslash is before them. */
static struct str rule_trim(struct str line)
{
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	while (line.n && line.p[line.n - 1] == ' ') {
		size_t slashes = 0;

		while (slashes + 1 < line.n && line.p[line.n - 2 - slashes] == '\\')
			slashes++;
		if (slashes % 2)
			break;
		line.n--;
	}
	return line;
}

/* Return false if the line has no rule. */
static bool rule_parse(struct str line, struct ignore_rule *ret)
{
	*ret = (struct ignore_rule){0};
	line = rule_trim(line);
	if (line.n == 0 || line.p[0] == '#')
		return false;
	if (line.p[0] == '!') {
		ret->negated = true;
		line = str_from_index(line, 1);
	}
	if (line.n && line.p[line.n - 1] == '/') {
		ret->directories = true;
		line.n--;
	}
	ret->anchored = str_chr(line, '/') < line.n;
	if (line.n && line.p[0] == '/')
		line = str_from_index(line, 1);
	ret->pattern = line;
	return line.n > 0;
}

struct ignore_rules *ignore_parse(struct str text)
{
	_cleanup_(ignore_freep) struct ignore_rules *r = calloc(1, sizeof(*r));
	struct str rest = str_prefix(text, IGNORE_MAX_TEXT);

	if (!r)
		return NULL;
	r->text = str_dup(rest);
	if (!r->text)
		return NULL;
	rest.p = r->text;
	if (str_starts(rest, STR("\xef\xbb\xbf")))
		rest = str_from_index(rest, 3);
	while (rest.n && r->n < IGNORE_MAX_RULES) {
		struct ignore_rule rule, *more;

		if (!rule_parse(str_next_line(&rest), &rule))
			continue;
		more = array_room(r->rules, r->n, &r->cap, sizeof(*more));
		if (!more)
			return NULL;
		r->rules = more;
		r->rules[r->n++] = rule;
	}
	return TAKE_PTR(r);
}

struct ignore_rules *ignore_free(struct ignore_rules *r)
{
	if (!r)
		return NULL;
	free(r->text);
	free(r->rules);
	free(r);
	return NULL;
}

size_t ignore_count(const struct ignore_rules *r)
{
	return r->n;
}

/* Take a character of a class, maybe escaped, off p. False at its end. */
static bool class_char(struct str *p, unsigned char *ret)
{
	if (p->n && p->p[0] == '\\')
		*p = str_from_index(*p, 1);
	if (p->n == 0)
		return false;
	*ret = (unsigned char)p->p[0];
	*p = str_from_index(*p, 1);
	return true;
}

/* p begins with '['. Return the length of the class if c is in it; 0 if it is not, or if the class
 * has no end. */
static size_t class_match(struct str p, unsigned char c)
{
	struct str rest = str_from_index(p, 1);
	bool negated = rest.n && (rest.p[0] == '!' || rest.p[0] == '^'), found = false;

	if (negated)
		rest = str_from_index(rest, 1);
	for (bool first = true; first || !(rest.n && rest.p[0] == ']'); first = false) {
		unsigned char low, high;

		if (!class_char(&rest, &low))
			return 0;
		high = low;
		if (rest.n > 1 && rest.p[0] == '-' && rest.p[1] != ']') {
			rest = str_from_index(rest, 1);
			if (!class_char(&rest, &high))
				return 0;
		}
		found |= c >= low && c <= high;
	}
	return found != negated ? p.n - rest.n + 1 : 0;
}

/* Return the length of the first element of p, which is no star, if it matches c; else 0. */
static size_t name_step(struct str p, char c)
{
	if (p.n == 0)
		return 0;
	if (p.p[0] == '?')
		return 1;
	if (p.p[0] == '\\')
		return p.n > 1 && p.p[1] == c ? 2 : 0;
	if (p.p[0] == '[')
		return class_match(p, (unsigned char)c);
	return p.p[0] == c;
}

static bool name_match(struct str p, struct str name)
{
	struct str star = STR_NULL, from = STR_NULL;

	while (name.n) {
		size_t used;

		if (p.n && p.p[0] == '*') {
			star = p = str_from_index(p, 1);
			from = name;
			continue;
		}
		used = name_step(p, name.p[0]);
		if (used) {
			p = str_from_index(p, used);
			name = str_from_index(name, 1);
			continue;
		}
		if (!star.p)
			return false;
		p = star;
		name = from = str_from_index(from, 1);
	}
	while (p.n && p.p[0] == '*')
		p = str_from_index(p, 1);
	return p.n == 0;
}

static bool path_match(struct str p, struct str path)
{
	struct str star = STR_NULL, from = STR_NULL;

	while (path.n) {
		struct str p_rest = p, rest = path, part = str_next(&p_rest, '/');

		if (str_eq(part, STR("**"))) {
			if (p_rest.n == 0)
				return true;
			star = p = p_rest;
			from = path;
			continue;
		}
		if (p.n && name_match(part, str_next(&rest, '/'))) {
			p = p_rest;
			path = rest;
			continue;
		}
		if (!star.p)
			return false;
		(void)str_next(&from, '/');
		p = star;
		path = from;
	}
	return p.n == 0;
}

enum ignore_verdict ignore_match(const struct ignore_rules *r, struct str path, bool is_directory)
{
	struct str name = path;

	while (str_chr(name, '/') < name.n)
		(void)str_next(&name, '/');
	/* The last rule that matches decides. */
	for (size_t i = r->n; i > 0; i--) {
		const struct ignore_rule *rule = &r->rules[i - 1];

		if (rule->directories && !is_directory)
			continue;
		if (rule->anchored ? path_match(rule->pattern, path)
				   : name_match(rule->pattern, name))
			return rule->negated ? IGNORE_NOT : IGNORE_IT;
	}
	return IGNORE_UNSAID;
}
