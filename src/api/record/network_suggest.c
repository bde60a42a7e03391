/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: every request of a log is added to a proposal (policy/proposal.h) as the
 * gateway would have judged it. Requests that no entry could allow, or that were refused by
 * something other than the rules, are listed in comments. The log may have been written by a room:
 * so all of it is escaped, a refused request is never taken for more than it is, and the number of
 * comments is bounded. */
#include "base/fd.h"
#include "base/json.h"
#include "netlog/reader.h"
#include "policy/proposal.h"
#include "policy/yaml-text.h"
#include "sandbox/allowlist.h"
#include <cloche/network_log.h>

#include <errno.h>
#include <fcntl.h>

enum { REMARKS_MAX = 50, REMARK_URL = 200, REMARK_NOTE = 160, CUT_MIN = 300 };

struct remark {
	char *request, *why;
};

struct suggestion {
	cloche_network_suggestion told; /* must be first */
	struct proposal *proposal;
	struct remark *remarks;
	size_t remarks_n, remarks_more, left_out;
	uint64_t requests;
	struct buf yaml, json;
};

/* --- remarks --- */

static char *printable(struct str s, size_t max)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4 * max + 16);
	int r = yaml_add_comment(&text, str_prefix(s, max));

	if (r == 0 && s.n > max)
		r = buf_add_str(&text, STR("..."));
	return r < 0 ? NULL : str_dup(buf_str(&text));
}

static int remark(struct suggestion *s, const struct netlog_event *ev, struct str why)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(REMARK_URL * 2);
	struct remark m = {0};
	int r;

	if (ev->kind == NETLOG_CONNECT)
		r = buf_printf(
			&text, "%.*s:%u", STR_FMT(str_prefix(ev->host, REMARK_URL)), ev->port);
	else
		r = buf_printf(&text, "%.*s %.*s", STR_FMT(str_prefix(ev->method, 32)),
			STR_FMT(str_prefix(ev->url, REMARK_URL + 1)));
	if (r == 0)
		m.request = printable(buf_str(&text), REMARK_URL);
	m.why = printable(why, REMARK_NOTE);
	for (size_t i = 0; m.request && m.why && i < s->remarks_n; i++)
		if (strcmp(s->remarks[i].request, m.request) == 0 &&
			strcmp(s->remarks[i].why, m.why) == 0) {
			free(m.request);
			free(m.why);
			return 0;
		}
	if (m.request && m.why && s->remarks_n < REMARKS_MAX) {
		s->remarks[s->remarks_n++] = m;
		return 0;
	}
	r = m.request && m.why ? 0 : -ENOMEM;
	free(m.request);
	free(m.why);
	s->remarks_more += r == 0;
	return r;
}

/* --- what the log says --- */

/* Return what refused a request, if it was not the rules or must not be bypassed by another entry;
 * the null view if an entry would help. The plain form of the log does not have the reason. */
static struct str beyond_rules(const struct netlog_event *ev)
{
	static const struct str reasons[] = {STR("bad_host"), STR("bad_target"), STR("override"),
		STR("graphql"), STR("body_filter")};

	if (str_is_one_of(ev->reason, reasons, ARRAY_SIZE(reasons)))
		return ev->note.n ? ev->note : ev->reason;
	if (ev->reason.n > 0 && !str_eq(ev->reason, STR("allowed")))
		return STR_NULL;
	/* Rules refuse without a note, or with this one. */
	return str_starts(ev->note, STR("broken off: ")) ? STR_NULL : ev->note;
}

/* Return what the filter of graphql blocks said about the request; the null view if none did. */
static struct str graphql_tag(const struct netlog_event *ev)
{
	for (size_t i = 0; i < NETLOG_TAGS; i++)
		if (str_eq(ev->tags[i].name, STR("graphql")))
			return ev->tags[i].text;
	return STR_NULL;
}

/* The request was allowed because of its body. An entry without that condition would allow more. */
static int add_filtered(
	struct suggestion *s, const struct netlog_event *ev, const struct policy_request *req)
{
	_cleanup_(buf_donep) struct buf why = BUF_INIT(REMARK_NOTE + 64);

	if (buf_printf(&why, "a graphql block judged it (%.*s): copy that entry",
		    STR_FMT(str_prefix(graphql_tag(ev), REMARK_NOTE / 2))) < 0 ||
		proposal_keep_filtered(s->proposal, req) < 0)
		return -ENOMEM;
	return remark(s, ev, buf_str(&why));
}

static int add_request(struct suggestion *s, const struct netlog_event *ev, bool allowed)
{
	struct policy_request req = {.method = ev->method};
	const char *why = NULL;
	struct host host;
	int r;

	if (allowlist_split_url(ev->url, &req, &host, NULL) < 0)
		return remark(s, ev, STR("this is not a valid URL of http or https"));
	if (graphql_tag(ev).n > 0)
		return add_filtered(s, ev, &req);
	/* A long URL was cut, perhaps in its path. */
	if (ev->url.n >= CUT_MIN && str_ends(ev->url, STR("...")) &&
		str_chr(ev->url, '?') == ev->url.n)
		return remark(s, ev, STR("the log does not hold the whole path"));
	if (req.target.n == 0 || req.target.p[0] == '?')
		req.target = STR("/");
	r = proposal_add(s->proposal, &req, allowed, &why);
	return r == 0 ? remark(s, ev, str_from(why)) : MIN(r, 0);
}

/* What a graphql block has refused must not be allowed by another entry either. */
static int keep_filtered(struct suggestion *s, const struct netlog_event *ev)
{
	struct policy_request req = {.method = ev->method};
	struct host host;

	if ((graphql_tag(ev).n == 0 && !str_eq(ev->reason, STR("graphql"))) ||
		allowlist_split_url(ev->url, &req, &host, NULL) < 0)
		return 0;
	return proposal_keep_filtered(s->proposal, &req);
}

static int add_refused(struct suggestion *s, const struct netlog_event *ev)
{
	struct str why = beyond_rules(ev);

	if (why.n == 0)
		return add_request(s, ev, false);
	return keep_filtered(s, ev) < 0 ? -ENOMEM : remark(s, ev, why);
}

/* A connection whose bytes nobody looks at. */
static int add_opaque(struct suggestion *s, const struct netlog_event *ev,
	enum policy_scheme scheme, bool allowed)
{
	struct policy_request req = {.scheme = scheme,
		.host = ev->host,
		.port = ev->port,
		.tunnel = scheme == POLICY_HTTPS};
	const char *why = NULL;
	int r = proposal_add(s->proposal, &req, allowed, &why);

	return r == 0 ? remark(s, ev, str_from(why)) : MIN(r, 0);
}

/* A connection that never became a request. */
static int add_connection(struct suggestion *s, const struct netlog_event *ev)
{
	_cleanup_(buf_donep) struct buf why = BUF_INIT(REMARK_NOTE + 128);

	if (str_eq(ev->reason, STR("tcp")))
		return add_opaque(s, ev, POLICY_TCP, false);
	if (!str_starts(ev->note, STR("TLS: ")))
		return remark(s, ev, ev->note);
	if (buf_add_str(&why, str_prefix(ev->note, REMARK_NOTE / 2)) < 0 ||
		buf_add_str(
			&why, STR(" (a client that pins its certificates needs tunnel: true)")) < 0)
		return -ENOMEM;
	return remark(s, ev, buf_str(&why));
}

static int add_event(struct suggestion *s, const struct netlog_event *ev, bool blocked_only)
{
	bool blocked = netlog_event_is_blocked(ev);

	if (ev->kind != NETLOG_REQUEST && ev->kind != NETLOG_CONNECT && ev->kind != NETLOG_TUNNEL &&
		ev->kind != NETLOG_TCP && ev->kind != NETLOG_ERROR)
		return 0;
	if (blocked_only && !blocked)
		return 0;
	s->requests++;
	if (ev->kind == NETLOG_CONNECT)
		return add_connection(s, ev);
	if (ev->kind == NETLOG_TUNNEL || ev->kind == NETLOG_TCP)
		return add_opaque(s, ev, ev->kind == NETLOG_TCP ? POLICY_TCP : POLICY_HTTPS, true);
	return blocked ? add_refused(s, ev) : add_request(s, ev, true);
}

static int read_log(
	struct suggestion *s, const char *path, bool blocked_only, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_(netlog_reader_freep) struct netlog_reader *reader = NULL;
	struct netlog_event ev;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "network log %s", path);
	reader = netlog_reader_new(fd);
	if (!reader)
		return err_nomem(err);
	while ((r = netlog_reader_next(reader, &ev, err)) > 0) {
		if (add_event(s, &ev, blocked_only) < 0)
			return err_nomem(err);
	}
	if (r == 0)
		r = netlog_reader_check(reader, path, err);
	if (r < 0)
		return r;
	return proposal_merge(s->proposal, &s->left_out) < 0 ? err_nomem(err) : 0;
}

/* --- the answer --- */

static int write_yaml(struct suggestion *s)
{
	struct buf *out = &s->yaml;
	int r = buf_printf(out,
		"# Proposed for %llu request%s of a network log: read it before you use it.\n",
		(unsigned long long)s->requests, s->requests == 1 ? "" : "s");

	if (r == 0)
		r = proposal_write(s->proposal, out);
	if (r == 0 && s->left_out > 0)
		r = buf_printf(
			out, "# %zu more entries are too many for one allowlist.\n", s->left_out);
	if (r == 0 && s->remarks_n > 0)
		r = buf_add_str(out, STR("# Not a matter of rules, or never proposed:\n"));
	for (size_t i = 0; r == 0 && i < s->remarks_n; i++)
		r = buf_printf(out, "#   %s: %s\n", s->remarks[i].request, s->remarks[i].why);
	if (r == 0 && s->remarks_more > 0)
		r = buf_printf(out, "#   and %zu more\n", s->remarks_more);
	return r < 0 || !buf_cstr(out) ? -ENOMEM : 0;
}

static json_t *strings(const char *const *v)
{
	json_t *list = json_array();

	for (size_t i = 0; list && v[i]; i++)
		if (json_array_append_new(list, json_string(v[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* Return an entry with the members of an allowlist rule. */
static json_t *entry_json(const struct proposal_entry *e)
{
	json_t *o = json_pack("{s:s}", "host", e->host);
	const char *scheme = proposal_scheme(e);
	bool ok = o != NULL;

	if (ok && e->kind == PROPOSAL_TUNNEL)
		ok = json_object_set_new(o, "tunnel", json_true()) == 0;
	if (ok && (e->kind == PROPOSAL_PATH || e->kind == PROPOSAL_PREFIX))
		ok = json_object_set_new(o, e->kind == PROPOSAL_PATH ? "path" : "path_prefix",
			     json_utf8(e->path)) == 0;
	if (ok && e->methods[0])
		ok = json_object_set_new(o, "methods", strings(e->methods)) == 0;
	if (ok && e->encoded_slash)
		ok = json_object_set_new(o, "encoded_slash", json_true()) == 0;
	if (ok && scheme)
		ok = json_object_set_new(o, "schemes", json_pack("[s]", scheme)) == 0;
	if (ok && e->port)
		ok = json_object_set_new(o, "ports", json_pack("[i]", (int)e->port)) == 0;
	if (!ok)
		json_decref(o);
	return ok ? o : NULL;
}

static int write_json(struct suggestion *s)
{
	_cleanup_json_ json_t *entries = json_array();
	_cleanup_json_ json_t *remarks = json_array();
	_cleanup_json_ json_t *o = NULL;

	for (size_t i = 0; entries && i < proposal_count(s->proposal); i++) {
		const struct proposal_entry e = proposal_entry(s->proposal, i);

		if (json_array_append_new(entries, entry_json(&e)) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; remarks && i < s->remarks_n; i++)
		if (json_array_append_new(
			    remarks, json_pack("{s:s, s:s}", "request", s->remarks[i].request,
					     "why", s->remarks[i].why)) < 0)
			return -ENOMEM;
	o = json_pack("{s:I, s:O, s:I, s:O, s:I, s:s}", "requests", (json_int_t)s->requests,
		"url_prefixes", entries, "left_out", (json_int_t)s->left_out, "not_proposed",
		remarks, "not_proposed_more", (json_int_t)s->remarks_more, "yaml",
		buf_data(&s->yaml));
	if (!o || json_text_write(&s->json, o, 2) < 0 || !buf_cstr(&s->json))
		return -ENOMEM;
	return 0;
}

static void suggestion_free(struct suggestion *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->remarks_n; i++) {
		free(s->remarks[i].request);
		free(s->remarks[i].why);
	}
	free(s->remarks);
	proposal_free(s->proposal);
	buf_done(&s->yaml);
	buf_done(&s->json);
	free(s);
}

static struct suggestion *suggestion_new(void)
{
	struct suggestion *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->yaml = BUF_INIT(ALLOWLIST_MAX_TEXT);
	s->json = BUF_INIT(16 * ALLOWLIST_MAX_TEXT);
	s->proposal = proposal_new();
	s->remarks = calloc(REMARKS_MAX, sizeof(*s->remarks));
	if (s->proposal && s->remarks)
		return s;
	suggestion_free(s);
	return NULL;
}

void cloche_network_suggestion_free(cloche_network_suggestion *s)
{
	suggestion_free(s ? container_of(s, struct suggestion, told) : NULL);
}

int cloche_network_log_suggest(
	const char *path, bool blocked_only, cloche_network_suggestion **ret, cloche_err *err)
{
	struct suggestion *s = suggestion_new();
	int r = s ? read_log(s, path, blocked_only, err) : err_nomem(err);

	if (r == 0 && (write_yaml(s) < 0 || write_json(s) < 0))
		r = err_nomem(err);
	if (r < 0) {
		suggestion_free(s);
		return r;
	}
	s->told = (cloche_network_suggestion){
		.size = sizeof(s->told), .yaml = buf_data(&s->yaml), .json = buf_data(&s->json)};
	*ret = &s->told;
	return 0;
}
