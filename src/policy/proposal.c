/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each request becomes one item: host, port, method and path, kept once. To
 * merge, items are sorted, so that those of one host, port and method stand together with their
 * paths in the order of a walk through the tree of segments. The walk goes down to the leaves; on
 * the way up, a node with more than BELOW_MAX results of its own becomes one prefix (never the
 * root: that would be the whole host). Results that differ only in their method then become one
 * entry.
 *
 * Hosts are written out, never as patterns: a request to one host says nothing about its
 * neighbours. */
#include "policy/proposal.h"

#include "base/hash.h"
#include "base/strset.h"
#include "policy/glob.h"
#include "policy/rule.h"
#include "policy/yaml-text.h"
#include <errno.h>
#include <stdlib.h>

/* A path may become three times as long when it is written as a pattern. TEXT_MAX leaves room for
 * comments. */
enum {
	BELOW_MAX = 3,
	PATH_LEN_MAX = RULE_TEXT_MAX / 3,
	TEXT_MAX = ALLOWLIST_MAX_TEXT - 64 * 1024,
	FILTERED_KEY_MAX = HOST_MAX + 1 + PATH_MAX_TARGET,
};

struct item {
	UT_hash_handle hh; /* by host, port, kind, encoded_slash, method and path; see make_key */
	enum proposal_kind kind;
	uint16_t port;
	unsigned schemes;
	bool encoded_slash;
	bool alone; /* must not become part of a prefix, which might cover a filtered path */
	struct str host, method, path; /* into key */
	char key[];
};

/* A result of the walk: one path or prefix that is left. */
struct cut {
	const struct item *item; /* host, port, encoded_slash, method */
	enum proposal_kind kind;
	struct str path;
	unsigned schemes;
};

/* Cuts that differ in their methods alone. */
struct entry {
	struct cut cut;
	const char **methods;
	size_t n_methods;
};

struct proposal {
	struct item *items; /* hash */
	/* Paths whose requests a body filter judges (filtered_key), and the hosts that have one. */
	struct strset filtered;
	struct cut *cuts;
	size_t n_cuts;
	struct entry *entries;
	size_t n_entries, shown; /* entries from `shown` on do not fit */
};

struct proposal *proposal_new(void)
{
	return calloc(1, sizeof(struct proposal));
}

struct proposal *proposal_free(struct proposal *p)
{
	struct item *item, *tmp;

	if (!p)
		return NULL;
	strset_done(&p->filtered);
	HASH_ITER (hh, p->items, item, tmp) {
		HASH_DEL(p->items, item);
		free(item);
	}
	for (size_t i = 0; i < p->n_entries; i++)
		free(p->entries[i].methods);
	free(p->entries);
	free(p->cuts);
	free(p);
	return NULL;
}

/* --- gathering --- */

static int add_upper(struct buf *out, struct str s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s.n; i++)
		r = buf_add_char(
			out, s.p[i] >= 'a' && s.p[i] <= 'z' ? (char)(s.p[i] & ~0x20) : s.p[i]);
	return r;
}

/* "host\0flags method\0path": what makes two requests the same, schemes left out. */
static int make_key(struct buf *key, struct str host, const struct item *like, struct str method,
	struct str path)
{
	char flags[4] = {(char)(like->port >> 8), (char)(like->port & 0xff), (char)like->kind,
		(char)like->encoded_slash};
	int r = buf_add_str(key, host);

	if (r == 0)
		r = buf_add_char(key, '\0');
	if (r == 0)
		r = buf_add(key, flags, sizeof(flags));
	if (r == 0)
		r = add_upper(key, method);
	if (r == 0)
		r = buf_add_char(key, '\0');
	return r < 0 ? r : buf_add_str(key, path);
}

static int no(const char **ret_why, const char *why)
{
	*ret_why = why;
	return 0;
}

static int gather(struct proposal *p, struct item like, struct str host, struct str method,
	struct str path, const char **ret_why)
{
	_cleanup_(buf_donep) struct buf key =
		BUF_INIT(HOST_MAX + RULE_METHOD_MAX + PATH_LEN_MAX + 16);
	struct item *item;
	int r = make_key(&key, host, &like, method, path);

	if (r < 0)
		return -ENOMEM;
	HASH_FIND(hh, p->items, buf_data(&key), buf_len(&key), item);
	if (item) {
		item->schemes |= like.schemes;
		return 1;
	}
	if (HASH_COUNT(p->items) >= PROPOSAL_MAX_REQUESTS)
		return no(ret_why, "there are too many different requests");
	item = malloc(sizeof(*item) + buf_len(&key));
	if (!item)
		return -ENOMEM;
	*item = like;
	memcpy(item->key, buf_data(&key), buf_len(&key));
	item->host = str_make(item->key, host.n);
	item->method = str_make(item->key + host.n + 5, method.n);
	item->path = str_make(item->key + host.n + 5 + method.n + 1, path.n);
	HASH_ADD_KEYPTR(hh, p->items, item->key, buf_len(&key), item);
	if (!item->hh.tbl) {
		free(item);
		return -ENOMEM;
	}
	return 1;
}

static int add_request(struct proposal *p, const struct policy_request *req,
	const struct host *host, bool allowed, struct item like, const char **ret_why)
{
	_cleanup_(path_done) struct path path = {0};
	int r;

	if (!rule_is_method(req->method))
		return no(ret_why, "no entry can name this method");
	r = path_parse(req->target, &path);
	if (r < 0)
		return r;
	if (path.problem != PATH_OK)
		return no(ret_why, path_problem_text(path.problem));
	like.kind = PROPOSAL_PATH;
	like.encoded_slash = path.encoded_slash;
	if (path.unsure != PATH_OK || path.decoded.n > PATH_LEN_MAX) {
		if (!allowed)
			return no(ret_why, path.unsure != PATH_OK ? path_problem_text(path.unsure)
								  : "the path is too long");
		like.kind = PROPOSAL_ANY;
		like.encoded_slash = false;
		path.decoded = STR_NULL;
	}
	return gather(p, like, host_str(host), req->method, path.decoded, ret_why);
}

int proposal_add(
	struct proposal *p, const struct policy_request *req, bool allowed, const char **ret_why)
{
	struct item like = {.kind = req->tunnel ? PROPOSAL_TUNNEL : PROPOSAL_TCP,
		.schemes = (unsigned)req->scheme};
	struct host host;

	if (host_parse(req->host, &host) < 0 || req->port == 0)
		return no(ret_why, "this is not a host");
	like.port = proposal_port(req, &host);
	if (host.kind != HOST_NAME && !allowed)
		return no(ret_why, "an address: write it out in a rule if you mean it");
	if (req->scheme == POLICY_SSH)
		return no(ret_why, "git over ssh: cloche net check shows the entry");
	if (req->tunnel && host.kind != HOST_NAME)
		return no(ret_why, "an address is never a tunnel");
	if (!policy_request_is_opaque(req))
		return add_request(p, req, &host, allowed, like, ret_why);
	return gather(p, like, host_str(&host), STR_NULL, STR_NULL, ret_why);
}

/* Make the key "host\0path". Spellings that some server may read as the same path count as one. */
static int filtered_key(struct buf *key, struct str host, struct str path)
{
	int r = buf_add_str(key, host);

	if (r == 0)
		r = buf_add_char(key, '\0');
	if (r == 0)
		r = path_fold(path, key);
	return r < 0 ? -ENOMEM : 0;
}

int proposal_keep_filtered(struct proposal *p, const struct policy_request *req)
{
	_cleanup_(buf_donep) struct buf key = BUF_INIT(FILTERED_KEY_MAX);
	_cleanup_(path_done) struct path path = {0};
	struct host host;
	int r;

	if (host_parse(req->host, &host) < 0)
		return 0;
	r = path_parse(req->target, &path);
	if (r < 0 || path.problem != PATH_OK)
		return r;
	r = strset_add(&p->filtered, host_str(&host));
	if (r == 0)
		r = filtered_key(&key, host_str(&host), path.decoded);
	return r < 0 ? r : strset_add(&p->filtered, buf_str(&key));
}

/* --- merging --- */

/* Compare as strings, but with '/' before any other byte, which keeps the descendants of a node
 * together. */
static int compare_path(struct str a, struct str b)
{
	size_t n = MIN(a.n, b.n);

	for (size_t i = 0; i < n; i++) {
		if (a.p[i] == b.p[i])
			continue;
		if (a.p[i] == '/' || b.p[i] == '/')
			return a.p[i] == '/' ? -1 : 1;
		return (unsigned char)a.p[i] < (unsigned char)b.p[i] ? -1 : 1;
	}
	return a.n < b.n ? -1 : a.n > b.n;
}

/* Compare host, port and encoded_slash. */
static int compare_place(const struct item *a, const struct item *b)
{
	int r = str_compare(a->host, b->host);

	if (r == 0)
		r = a->port - b->port;
	return r != 0 ? r : a->encoded_slash - b->encoded_slash;
}

static int compare_items(const void *x, const void *y)
{
	const struct item *a = *(const struct item *const *)x, *b = *(const struct item *const *)y;
	int r = compare_place(a, b);

	if (r == 0)
		r = (int)a->kind - (int)b->kind;
	if (r == 0)
		r = str_compare(a->method, b->method);
	return r != 0 ? r : compare_path(a->path, b->path);
}

static int compare_cuts(const void *x, const void *y)
{
	const struct cut *a = x, *b = y;
	int r = compare_place(a->item, b->item);

	if (r == 0)
		r = (int)(a->kind >= PROPOSAL_TUNNEL) - (int)(b->kind >= PROPOSAL_TUNNEL);
	if (r == 0)
		r = compare_path(a->path, b->path);
	if (r == 0)
		r = (int)a->kind - (int)b->kind;
	return r != 0 ? r : str_compare(a->item->method, b->item->method);
}

/* The end of the segment that begins at `at`, which is a '/'. */
static size_t segment_end(struct str path, size_t at)
{
	return at + 1 + str_chr(str_from_index(path, at + 1), '/');
}

static bool may_be_prefix(struct str s)
{
	return s.n > 1 && s.n <= RULE_TEXT_MAX && s.p[s.n - 1] != '/' && !glob_is_pattern(s);
}

/* Merge the results from `first` on into one prefix. */
static void join(struct proposal *p, size_t first, struct str prefix)
{
	struct cut *to = &p->cuts[first];

	for (size_t i = first + 1; i < p->n_cuts; i++)
		to->schemes |= p->cuts[i].schemes;
	to->kind = PROPOSAL_PREFIX;
	to->path = prefix;
	p->n_cuts = first + 1;
}

/* Walk the node whose path is the first `at` bytes of all n items. */
static void walk(struct proposal *p, struct item *const *items, size_t n, size_t at)
{
	size_t first = p->n_cuts;
	struct str node = str_prefix(items[0]->path, at);
	bool alone = items[0]->alone;

	while (n > 0) {
		const struct item *item = items[0];
		size_t end, same = 1;

		if (item->path.n == at) {
			p->cuts[p->n_cuts++] =
				(struct cut){item, PROPOSAL_PATH, item->path, item->schemes};
			items++;
			n--;
			continue;
		}
		end = segment_end(item->path, at);
		while (same < n && segment_end(items[same]->path, at) == end &&
			str_eq(str_prefix(items[same]->path, end), str_prefix(item->path, end)))
			same++;
		walk(p, items, same, end);
		items += same;
		n -= same;
	}
	if (p->n_cuts - first > BELOW_MAX && !alone && may_be_prefix(node))
		join(p, first, node);
}

static bool same_walk(const struct item *a, const struct item *b)
{
	return compare_place(a, b) == 0 && a->kind == b->kind && str_eq(a->method, b->method);
}

/* Fill p->cuts. There are at most as many cuts as items. */
static void cut_all(struct proposal *p, struct item *const *items, size_t n)
{
	while (n > 0) {
		const struct item *item = items[0];
		size_t same = 1;

		while (same < n && same_walk(item, items[same]))
			same++;
		if (item->kind == PROPOSAL_PATH)
			walk(p, items, same, 0);
		else
			p->cuts[p->n_cuts++] =
				(struct cut){item, item->kind, STR_NULL, item->schemes};
		items += same;
		n -= same;
	}
}

static bool same_entry(const struct cut *a, const struct cut *b)
{
	return compare_place(a->item, b->item) == 0 && a->kind == b->kind &&
	       str_eq(a->path, b->path);
}

static int add_method(struct entry *e, const char *method)
{
	const char **v;

	if (e->n_methods > 0 && strcmp(e->methods[e->n_methods - 1], method) == 0)
		return 0;
	v = reallocarray(e->methods, e->n_methods + 2, sizeof(*v));
	if (!v)
		return -ENOMEM;
	e->methods = v;
	v[e->n_methods++] = method;
	v[e->n_methods] = NULL;
	return 0;
}

static int make_entries(struct proposal *p)
{
	struct entry *e = NULL;
	int r = 0;

	p->entries = calloc(p->n_cuts + 1, sizeof(*p->entries));
	if (!p->entries)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->n_cuts; i++) {
		const struct cut *c = &p->cuts[i];

		if (e && same_entry(&e->cut, c) && e->n_methods < RULE_LIST_MAX) {
			e->cut.schemes |= c->schemes;
		} else {
			e = &p->entries[p->n_entries++];
			e->cut = *c;
		}
		r = add_method(e, c->item->method.p);
	}
	return r;
}

/* Keep the entries that fit into one allowlist. */
static int limit(struct proposal *p, size_t *ret_left_out)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(TEXT_MAX);
	size_t used = 0, n = 0;

	for (; n < p->n_entries && n < ALLOWLIST_MAX_RULES; n++) {
		const struct proposal_entry e = proposal_entry(p, n);

		buf_clear(&text);
		if (proposal_write_entry(&e, &text) < 0)
			return -ENOMEM;
		used += buf_len(&text);
		if (used > TEXT_MAX)
			break;
	}
	*ret_left_out = p->n_entries - n;
	p->shown = n;
	return 0;
}

/* Return 1 if an entry may be made of the item, 0 if it might bypass a body filter, or -ENOMEM. */
static int may_stand(const struct proposal *p, struct item *item)
{
	_cleanup_(buf_donep) struct buf key = BUF_INIT(FILTERED_KEY_MAX);
	int r;

	if (!strset_has(&p->filtered, item->host) || item->kind >= PROPOSAL_TUNNEL)
		return 1;
	item->alone = true;
	if (item->kind != PROPOSAL_PATH)
		return 0;
	r = filtered_key(&key, item->host, item->path);
	return r < 0 ? r : !strset_has(&p->filtered, buf_str(&key));
}

int proposal_merge(struct proposal *p, size_t *ret_left_out)
{
	size_t n = 0, count = HASH_COUNT(p->items);
	_cleanup_(freep) struct item **items = calloc(count + 1, sizeof(struct item *));
	struct item *item, *tmp;
	int r = 0;

	p->cuts = calloc(count + 1, sizeof(*p->cuts));
	if (!items || !p->cuts)
		return -ENOMEM;
	HASH_ITER (hh, p->items, item, tmp) {
		r = may_stand(p, item);
		if (r < 0)
			return r;
		if (r > 0)
			items[n++] = item;
	}
	qsort(items, n, sizeof(struct item *), compare_items);
	cut_all(p, items, n);
	qsort(p->cuts, p->n_cuts, sizeof(*p->cuts), compare_cuts);
	r = make_entries(p);
	return r < 0 ? r : limit(p, ret_left_out);
}

/* --- reading --- */

size_t proposal_count(const struct proposal *p)
{
	return p->shown;
}

struct proposal_entry proposal_entry(const struct proposal *p, size_t i)
{
	static const char *const none[] = {NULL};
	const struct cut *c = &p->entries[i].cut;

	return (struct proposal_entry){.host = c->item->host.p,
		.kind = c->kind,
		.path = c->path,
		.methods = c->kind >= PROPOSAL_TUNNEL ? none : p->entries[i].methods,
		.schemes = c->schemes,
		.port = c->item->port,
		.encoded_slash = c->item->encoded_slash};
}

static int write_methods(const struct proposal_entry *e, struct buf *out)
{
	int r = buf_add_str(out, STR("    methods: ["));

	for (size_t i = 0; r == 0 && e->methods[i]; i++)
		r = buf_printf(out, "%s\"%s\"", i ? ", " : "", e->methods[i]);
	return r < 0 ? r : buf_add_str(out, STR("]\n"));
}

static int write_path(const struct proposal_entry *e, struct buf *out)
{
	int r;

	if (e->kind == PROPOSAL_TUNNEL)
		return buf_add_str(out, STR("    tunnel: true\n"));
	if (e->kind == PROPOSAL_ANY || e->kind == PROPOSAL_TCP)
		return 0;
	r = buf_add_str(
		out, e->kind == PROPOSAL_PATH ? STR("    path: ") : STR("    path_prefix: "));
	if (r == 0 && e->query.p)
		r = yaml_add_path_query(out, e->path, e->query);
	else if (r == 0)
		r = e->kind == PROPOSAL_PATH ? yaml_add_path(out, e->path)
					     : yaml_add_quoted(out, e->path);
	if (r == 0)
		r = buf_add_char(out, '\n');
	return r == 0 && e->no_query ? buf_add_str(out, STR("    query: none\n")) : r;
}

uint16_t proposal_port(const struct policy_request *req, const struct host *host)
{
	bool usual = policy_request_has_usual_port(req) && !policy_host_is_machine(host);

	return usual ? 0 : req->port;
}

const char *proposal_scheme(const struct proposal_entry *e)
{
	if (e->kind == PROPOSAL_TUNNEL || e->schemes == (POLICY_HTTPS | POLICY_HTTP))
		return NULL;
	return policy_scheme_word(e->schemes);
}

int proposal_write_entry(const struct proposal_entry *e, struct buf *out)
{
	const char *scheme = proposal_scheme(e);
	int r = buf_printf(out, "  - host: \"%s\"\n", e->host);

	if (r == 0)
		r = write_path(e, out);
	if (r == 0 && e->methods[0])
		r = write_methods(e, out);
	if (r == 0 && e->encoded_slash)
		r = buf_add_str(out, STR("    encoded_slash: true\n"));
	if (r == 0 && scheme)
		r = buf_printf(out, "    schemes: [%s]\n", scheme);
	if (r == 0 && e->user.n > 0 && !str_eq(e->user, STR("git"))) {
		r = buf_add_str(out, STR("    user: "));
		r = r == 0 ? yaml_add_quoted(out, e->user) : r;
		r = r == 0 ? buf_add_char(out, '\n') : r;
	}
	if (r == 0 && e->port)
		r = buf_printf(out, "    ports: [%u]\n", e->port);
	return r;
}

int proposal_write(const struct proposal *p, struct buf *out)
{
	int r = buf_add_str(out, p->shown ? STR("url_prefixes:\n") : STR("url_prefixes: []\n"));

	for (size_t i = 0; r == 0 && i < p->shown; i++) {
		const struct proposal_entry e = proposal_entry(p, i);

		r = proposal_write_entry(&e, out);
	}
	return r;
}
