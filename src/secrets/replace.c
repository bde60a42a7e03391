/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-SECRET-SCOPE): headers are taken name by name. For each name, the
 * secrets that list it and whose scope has the host are the candidates; the values are tried in
 * order, and the first one in which a candidate's surrogate is found is the one that goes out. Real
 * values are written into buffers that have their full size from the start, so growing never leaves
 * a copy in freed memory, and that are wiped in the end. A surrogate is as long as its value,
 * except for one that is live or renewable: growth() counts the difference for each time that it
 * may occur. */
#include "secrets/replace.h"

#include "base/base64.h"
#include "policy/glob.h"
#include "secrets/spec.h"
#include <ctype.h>
#include <errno.h>

#define HEADERS_MAX 1024
#define NOTES_MAX 64

/* The work on one name. */
struct group {
	const struct replace_request *req;
	struct replace_result *res;
	char name[SPEC_HEADER_MAX]; /* lower case */
	size_t name_n;
	size_t first; /* index of its first header */
	size_t count; /* how many there are */
	const struct masked_secret *candidates[SECRET_SET_MAX];
	size_t n_candidates;
	bool strips; /* headers in which nothing is replaced are removed */
};

static struct str group_name(const struct group *g)
{
	return str_make(g->name, g->name_n);
}

static bool is_token_byte(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* Whether the surrogate is at s[at], as a whole token. */
static bool is_token_at(struct str s, size_t at, struct str surrogate)
{
	if (s.n - at < surrogate.n || memcmp(s.p + at, surrogate.p, surrogate.n) != 0)
		return false;
	if (at > 0 && is_token_byte(s.p[at - 1]))
		return false;
	at += surrogate.n;
	return at == s.n || !is_token_byte(s.p[at]);
}

static void note_live(const struct group *g, const struct masked_secret *m)
{
	if (!m->known) {
		g->res->unknown = m;
	} else if (m->renewable) {
		g->res->renewable = m;
	} else if (m->live) {
		g->res->several_live |= g->res->live && g->res->live != m;
		g->res->live = m;
	}
}

/* How much longer than s the text can get. */
static size_t growth(const struct group *g, struct str s)
{
	size_t sum = 0;

	for (size_t i = 0; i < g->n_candidates; i++) {
		size_t value = secret_reveal(g->candidates[i]->value).n;
		size_t surrogate = g->candidates[i]->surrogate.n;

		if (value > surrogate)
			sum += (value - surrogate) * (s.n / surrogate);
	}
	return sum;
}

/* Copies s into out, which has room for it, with real values for the candidates' surrogates.
 * basic: s is the text of Basic credentials. Returns how many different secrets were put in, or a
 * negative errno. */
static int put_values(const struct group *g, struct str s, bool basic, struct buf *out)
{
	bool used[SECRET_SET_MAX] = {false};
	int count = 0, r = 0;

	for (size_t i = 0; r == 0 && i < s.n;) {
		size_t j = 0;

		while (j < g->n_candidates &&
			(!is_token_at(s, i, g->candidates[j]->surrogate) ||
				(basic && !masked_secret_fits_basic(g->candidates[j]))))
			j++;
		if (j == g->n_candidates) {
			r = buf_add_char(out, s.p[i++]);
			continue;
		}
		r = buf_add_str(out, secret_reveal(g->candidates[j]->value));
		note_live(g, g->candidates[j]);
		i += g->candidates[j]->surrogate.n;
		count += !used[j];
		used[j] = true;
	}
	return r < 0 ? r : count;
}

/* Whether value is Basic credentials (RFC 7617 section 2); *ret_token is the base64 part. */
static bool split_basic(struct str name, struct str value, struct str *ret_token)
{
	struct str s = str_trim(value);

	if (!str_eq(name, STR("authorization")) && !str_eq(name, STR("proxy-authorization")))
		return false;
	if (s.n < 7 || !str_ieq(str_prefix(s, 5), STR("basic")) || s.p[5] != ' ')
		return false;
	*ret_token = str_trim(str_from_index(s, 6));
	return true;
}

static int reserve(struct buf *b, size_t n)
{
	char *unused;

	*b = BUF_INIT(n + 16);
	return buf_reserve(b, n + 1, &unused);
}

/* Puts values into the user and the password of Basic credentials. Returns the same as
 * put_values. */
static int put_basic(const struct group *g, struct str value, struct buf *out)
{
	_cleanup_(buf_done_wiped) struct buf plain = {0}, real = {0};
	struct str token;
	int count, r;

	if (!split_basic(group_name(g), value, &token))
		return 0;
	plain = BUF_INIT(value.n + 16);
	r = base64_decode(&plain, token);
	if (r == -EINVAL || (r == 0 && str_chr(buf_str(&plain), ':') == buf_len(&plain)))
		return 0;
	if (r == 0)
		r = reserve(&real, buf_len(&plain) + growth(g, buf_str(&plain)));
	if (r < 0)
		return r;
	count = put_values(g, buf_str(&plain), true, &real);
	if (count <= 0)
		return count;
	r = reserve(out, 6 + (buf_len(&real) + 2) / 3 * 4);
	if (r == 0)
		r = buf_add_str(out, STR("Basic "));
	if (r == 0)
		r = base64_encode(out, buf_str(&real));
	return r < 0 ? r : count;
}

/* Tries one value; *out is filled if the result is positive. Returns the same as put_values. */
static int try_value(const struct group *g, struct str value, struct buf *out)
{
	struct buf b = {0};
	int count = reserve(&b, value.n + growth(g, value));

	if (count == 0)
		count = put_values(g, value, false, &b);
	if (count <= 0)
		buf_done_wiped(&b);
	if (count == 0)
		count = put_basic(g, value, &b);
	if (count <= 0)
		buf_done_wiped(&b);
	else
		*out = b;
	return count;
}

/* Adds a note. Notes beyond NOTES_MAX are left out; the counts are still right. */
static int add_note(struct replace_result *res, struct replace_note note, struct str header)
{
	struct replace_note *v;
	char *name;

	if (res->n_notes >= NOTES_MAX)
		return 0;
	v = reallocarray(res->notes, res->n_notes + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	res->notes = v;
	name = str_dup(header);
	if (!name)
		return -ENOMEM;
	note.header = str_make(name, header.n);
	v[res->n_notes++] = note;
	return 0;
}

/* Whether the surrogate is anywhere in value, also within Basic credentials. */
static bool value_holds(struct str name, struct str value, struct str surrogate)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(value.n + 16);
	struct str token;

	if (str_find(value, surrogate) < value.n)
		return true;
	return split_basic(name, value, &token) && base64_decode(&plain, token) == 0 &&
	       str_find(buf_str(&plain), surrogate) < buf_len(&plain);
}

static bool lists_header(const struct masked_secret *m, struct str name)
{
	for (char **header = m->spec.headers; header && *header; header++)
		if (glob_match_or_equal(str_from(*header), name))
			return true;
	return false;
}

/* The character as servers read it that map field names to variables. */
static char plain(char c)
{
	return c == '_' ? '-' : str_lower_char(c);
}

static bool reads_as(struct str name, struct str listed)
{
	if (name.n != listed.n)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (plain(name.p[i]) != plain(listed.p[i]))
			return false;
	return true;
}

/* Whether the secret lists a header by its exact name, and some servers read this name as that. */
static bool lists_reading(const struct masked_secret *m, struct str name)
{
	for (char **header = m->spec.headers; header && *header; header++) {
		struct str listed = str_from(*header);

		if (!glob_is_pattern(listed) && reads_as(name, listed))
			return true;
	}
	return false;
}

bool replace_strips(const struct secret_set *set, const struct host *host, struct str name)
{
	for (size_t i = 0; i < secret_set_count(set); i++) {
		const struct masked_secret *m = secret_set_get(set, i);

		if (masked_secret_covers(m, host) && !m->spec.allow_foreign_credentials &&
			lists_reading(m, name))
			return true;
	}
	return false;
}

static const char *why_withheld(
	const struct masked_secret *m, const struct replace_request *req, struct str name)
{
	if (!masked_secret_covers(m, req->host))
		return "host not in scope";
	if (!req->verified_tls)
		return "not over verified TLS";
	if (spec_header_is_framing(name) || !lists_header(m, name))
		return "header not listed";
	return "part of a longer token";
}

/* Notes which surrogates in header i are not replaced, whether it goes out or is dropped. */
static int note_withheld(const struct secret_set *set, const struct replace_request *req, size_t i,
	struct str name, struct replace_result *res)
{
	for (size_t j = 0; j < secret_set_count(set); j++) {
		const struct masked_secret *m = secret_set_get(set, j);
		struct replace_note note = {.kind = REPLACE_NOTE_WITHHELD, .count = 1};

		if (!value_holds(name, req->headers[i].value, m->surrogate))
			continue;
		note.secret_name = m->spec.name;
		note.why = why_withheld(m, req, name);
		if (add_note(res, note, name) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool in_group(const struct group *g, size_t i)
{
	return str_ieq(g->req->headers[i].name, g->req->headers[g->first].name);
}

/* Drops all headers of the group but `keep` (n_headers for none). */
static void drop_others(const struct group *g, size_t keep, struct replace_result *res)
{
	for (size_t i = g->first; i < g->req->n_headers; i++)
		if (i != keep && in_group(g, i))
			res->edits[i].action = REPLACE_DROP;
}

static void find_candidates(const struct secret_set *set, struct group *g)
{
	for (size_t i = 0; i < secret_set_count(set); i++) {
		const struct masked_secret *m = secret_set_get(set, i);

		if (masked_secret_covers(m, g->req->host) && lists_header(m, group_name(g)))
			g->candidates[g->n_candidates++] = m;
	}
}

/* Tries the values in order. Returns 1 when one was replaced, 0, or negative errno. */
static int replace_group(struct group *g, struct replace_result *res)
{
	int count = 0;

	for (size_t i = g->first; count == 0 && i < g->req->n_headers; i++)
		if (in_group(g, i))
			count = try_value(g, g->req->headers[i].value, &res->edits[g->first].value);
	if (count <= 0)
		return count;
	res->masked += (unsigned)count;
	res->edits[g->first].action = REPLACE_SET;
	if (g->count > 1) {
		drop_others(g, g->first, res);
		res->collapsed++;
	}
	return 1;
}

static int work_on_group(const struct secret_set *set, struct group *g, struct replace_result *res)
{
	struct replace_note note = {.count = (unsigned)g->count};
	int r = 0;

	if (g->req->headers[g->first].name.n == g->name_n && !spec_header_is_framing(group_name(g)))
		find_candidates(set, g);
	if (g->req->headers[g->first].name.n == g->name_n)
		g->strips = replace_strips(set, g->req->host, group_name(g));
	if (g->n_candidates && g->req->verified_tls)
		r = replace_group(g, res);
	if (r < 0)
		return r;
	if (r > 0 && g->count == 1)
		return 0;
	if (r > 0) {
		note.kind = REPLACE_NOTE_COLLAPSED;
		return add_note(res, note, group_name(g));
	}
	for (size_t i = g->first; r == 0 && i < g->req->n_headers; i++)
		if (in_group(g, i))
			r = note_withheld(set, g->req, i, group_name(g), res);
	if (r < 0 || !g->strips)
		return r;
	drop_others(g, g->req->n_headers, res);
	res->dropped++;
	note.kind = REPLACE_NOTE_STRIPPED;
	return add_note(res, note, group_name(g));
}

/* Starts the group of header i; false if an earlier header has the same name. */
static bool start_group(
	struct group *g, const struct replace_request *req, struct replace_result *res, size_t i)
{
	struct str name = req->headers[i].name;

	for (size_t j = 0; j < i; j++)
		if (str_ieq(req->headers[j].name, name))
			return false;
	*g = (struct group){.req = req, .res = res, .first = i};
	/* A longer name is cut for the notes and matches nothing. */
	g->name_n = MIN(name.n, sizeof(g->name));
	for (size_t j = 0; j < g->name_n; j++)
		g->name[j] = (char)tolower((unsigned char)name.p[j]);
	for (size_t j = i; j < req->n_headers; j++)
		g->count += in_group(g, j);
	return true;
}

int replace_headers(
	const struct secret_set *set, const struct replace_request *req, struct replace_result *ret)
{
	struct group g;
	int r = 0;

	*ret = (struct replace_result){0};
	if (req->n_headers > HEADERS_MAX)
		return -E2BIG;
	ret->edits = calloc(req->n_headers + 1, sizeof(*ret->edits));
	if (!ret->edits)
		return -ENOMEM;
	ret->n_edits = req->n_headers;
	if (secret_set_count(set) == 0)
		return 0;
	for (size_t i = 0; r == 0 && i < req->n_headers; i++)
		if (start_group(&g, req, ret, i))
			r = work_on_group(set, &g, ret);
	return r;
}

void replace_result_done(struct replace_result *r)
{
	for (size_t i = 0; i < r->n_edits; i++)
		buf_done_wiped(&r->edits[i].value);
	for (size_t i = 0; i < r->n_notes; i++)
		free((void *)(uintptr_t)r->notes[i].header.p);
	free(r->edits);
	free(r->notes);
	*r = (struct replace_result){0};
}
