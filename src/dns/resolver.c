/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/resolver.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "dns/message.h"
#include "dns/names.h"

#include <ares.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/time.h>
#include <utlist.h>

/* Theory of operation: all lookups of one name wait for the same query. c-ares calls back at
 * awkward moments (in the middle of sending another query, or before its own start has returned),
 * so its answer is only noted on the query, and handlers are called from deliver(), at the end of
 * ready() and tick(), where the state is consistent. A query that has timed out is reported at
 * once, but stays, without waiters, until c-ares has released it.
 *
 * c-ares is told to use DNS alone ("b"), no aliases, no search list, no sorting: each of those
 * would open files or sockets later on. */

#define TRY_MSEC 1500 /* until a server is asked again; doubled by c-ares each round */
#define TRIES 2
#define TTL_MIN 1
#define TTL_MAX 300
#define HOSTS_BYTES_MAX (1024 * 1024)
#define HOSTS_NAMES_MAX 65536

struct dns_lookup {
	struct dns_lookup *prev, *next;
	struct query *query;
	struct dns_lookup_handler handler;
};

struct query {
	UT_hash_handle hh;
	struct query *prev, *next; /* in `running` (oldest first) or `answered` */
	struct dns_resolver *resolver;
	struct dns_lookup *lookups;
	uint64_t deadline;
	bool in_ares; /* c-ares will call back */
	bool known;   /* status and result are final */
	bool orphan;  /* in `orphans` */
	int status;   /* of c-ares */
	struct dns_result result;
	size_t name_len;
	char name[DNS_NAME_MAX + 1];
};

struct dns_resolver {
	struct dns_resolver_config config;
	ares_channel channel;
	bool library, closing;
	bool own_servers;                      /* resolv.conf is ignored */
	struct dns_names hosts, cache, absent; /* the last: names that have no address */
	struct query *by_name;                 /* queries under way */
	struct query *running, *answered;      /* lists; answered: handlers to be called */
	struct query *orphans;                 /* reported, still in c-ares */
	unsigned count;
	char *servers; /* to be used as soon as no query is under way */
};

static void on_socket(void *data, ares_socket_t fd, int readable, int writable)
{
	struct dns_resolver *r = data;

	r->config.watch(r->config.arg, fd, readable != 0, writable != 0);
}

static int start_cares(struct dns_resolver *r, struct cloche_err *err)
{
	char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TRY_MSEC,
		.tries = TRIES,
		.lookups = lookups,
		.sock_state_cb = on_socket,
		.sock_state_cb_data = r,
	};
	int status = ares_library_init(ARES_LIB_INIT_ALL);

	if (status != ARES_SUCCESS)
		return err_set(err, E_NETWORK, "c-ares: %s", ares_strerror(status));
	r->library = true;
	status = ares_init_options(&r->channel, &options,
		ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
			ARES_OPT_SOCK_STATE_CB);
	if (status != ARES_SUCCESS) {
		r->channel = NULL;
		return err_set(err, E_NETWORK, "c-ares: %s", ares_strerror(status));
	}
	if (r->config.servers)
		status = ares_set_servers_ports_csv(r->channel, r->config.servers);
	if (status != ARES_SUCCESS)
		return err_set(err, E_CONFIG, "DNS servers \"%s\": %s", r->config.servers,
			ares_strerror(status));
	return 0;
}

static int read_hosts(struct dns_resolver *r, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(HOSTS_BYTES_MAX);
	const char *path = r->config.hosts_path ? r->config.hosts_path : "/etc/hosts";

	if (!path[0])
		return 0;
	/* A missing hosts file is not an error: then only DNS is used. */
	if (fd_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return 0;
	if (dns_hosts_parse(&r->hosts, buf_str(&text)) < 0)
		return err_nomem(err);
	return 0;
}

int dns_resolver_new(
	const struct dns_resolver_config *config, struct dns_resolver **ret, struct cloche_err *err)
{
	_cleanup_(dns_resolver_freep) struct dns_resolver *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return err_nomem(err);
	r->config = *config;
	r->cache.max = r->absent.max = DNS_CACHE_NAMES;
	r->hosts.max = HOSTS_NAMES_MAX;
	e = read_hosts(r, err);
	if (e >= 0)
		e = start_cares(r, err);
	if (e < 0)
		return e;
	r->config.servers = r->config.hosts_path = NULL; /* they were borrowed */
	*ret = TAKE_PTR(r);
	return 0;
}

/* c-ares does not take new servers while it waits for answers. */
static void set_servers(struct dns_resolver *r)
{
	if (!r->servers || ares_set_servers_csv(r->channel, r->servers) != ARES_SUCCESS)
		return;
	free(r->servers);
	r->servers = NULL;
}

int dns_resolver_set_servers(struct dns_resolver *r, const char *servers, struct cloche_err *err)
{
	int status = ares_set_servers_ports_csv(r->channel, servers);

	if (status != ARES_SUCCESS)
		return err_set(
			err, E_CONFIG, "DNS servers \"%s\": %s", servers, ares_strerror(status));
	r->own_servers = true;
	return 0;
}

int dns_resolver_renew(struct dns_resolver *r, struct str resolv, struct str hosts)
{
	_cleanup_(buf_donep) struct buf servers = BUF_INIT(4096);
	char *text;

	dns_names_done(&r->hosts);
	dns_names_done(&r->cache);
	dns_names_done(&r->absent);
	if (dns_hosts_parse(&r->hosts, hosts) < 0 || dns_servers_parse(&servers, resolv) < 0 ||
		!buf_cstr(&servers))
		return -ENOMEM;
	if (r->own_servers)
		return 0;
	text = strdup(buf_data(&servers));
	if (!text)
		return -ENOMEM;
	free(r->servers);
	r->servers = text;
	set_servers(r);
	return 0;
}

static void free_lookups(struct query *q)
{
	while (q->lookups) {
		struct dns_lookup *l = q->lookups;

		DL_DELETE(q->lookups, l);
		free(l);
	}
}

static void free_list(struct query **list)
{
	while (*list) {
		struct query *q = *list;

		DL_DELETE(*list, q);
		free_lookups(q);
		free(q);
	}
}

void dns_resolver_free(struct dns_resolver *r)
{
	if (!r)
		return;
	r->closing = true;
	free(r->servers);
	if (r->channel)
		ares_destroy(r->channel);
	HASH_CLEAR(hh, r->by_name);
	free_list(&r->running);
	free_list(&r->answered);
	free_list(&r->orphans);
	dns_names_done(&r->hosts);
	dns_names_done(&r->cache);
	dns_names_done(&r->absent);
	if (r->library)
		ares_library_cleanup();
	free(r);
}

static void keep_result(struct query *q, const struct ares_addrinfo *info)
{
	uint64_t ttl = TTL_MAX;

	for (const struct ares_addrinfo_cname *c = info->cnames; c; c = c->next)
		ttl = MIN(ttl, (uint64_t)MAX(c->ttl, TTL_MIN));
	for (const struct ares_addrinfo_node *n = info->nodes; n; n = n->ai_next) {
		ttl = MIN(ttl, (uint64_t)MAX(n->ai_ttl, TTL_MIN));
		dns_result_add(&q->result, n->ai_addr);
	}
	q->result.expires_usec = clock_mono_usec() + ttl * USEC_PER_SEC;
}

static bool is_absent(int status)
{
	return status == ARES_ENODATA || status == ARES_ENOTFOUND || status == ARES_ENONAME;
}

/* Remember also that a name has no address: in a map of its own, so that made-up names do not push
 * out the others, and for a short time only, so that a new name is found soon. If there is no
 * memory for an entry, the answer is not kept. */
static void remember(struct dns_resolver *r, struct query *q, int status)
{
	const struct dns_result none = {.expires_usec = clock_mono_usec() + DNS_ABSENT_USEC};
	struct str name = str_make(q->name, q->name_len);

	if (status == ARES_SUCCESS && dns_names_put(&r->cache, name, &q->result) < 0)
		q->result.expires_usec = clock_mono_usec() + USEC_PER_SEC;
	if (is_absent(status))
		(void)!dns_names_put(&r->absent, name, &none);
}

/* Move q from the running queries to the answered ones; no more lookups can join it. */
static void settle(struct dns_resolver *r, struct query *q, int status)
{
	q->known = true;
	q->status = status;
	HASH_DEL(r->by_name, q);
	DL_DELETE(r->running, q);
	DL_APPEND(r->answered, q);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct query *q = arg;
	struct dns_resolver *r = q->resolver;

	q->in_ares = false;
	if (r->closing || q->known) {
		/* Reported (or about to be) as timed out. */
		if (info)
			ares_freeaddrinfo(info);
		if (q->orphan && !r->closing) {
			DL_DELETE(r->orphans, q);
			r->count--;
			free(q);
		}
		return;
	}
	if (info) {
		keep_result(q, info);
		ares_freeaddrinfo(info);
	}
	if (status == ARES_SUCCESS && q->result.n == 0)
		status = ARES_ENODATA;
	remember(r, q, status);
	settle(r, q, status);
}

static int no_such_host(const char *name, struct cloche_err *err)
{
	return err_set(err, E_NOT_FOUND, "resolve %s: no such host", name);
}

static int status_error(const struct query *q, struct cloche_err *err)
{
	if (is_absent(q->status))
		return no_such_host(q->name, err);
	if (q->status == ARES_ENOMEM)
		return err_nomem(err);
	return err_set(err, E_NETWORK, "resolve %s: %s", q->name, ares_strerror(q->status));
}

/* Call the handlers of one answered query, which is not in any list any more. */
static void report(struct query *q)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	bool ok = q->status == ARES_SUCCESS;
	int e = ok ? 0 : status_error(q, &err);

	while (q->lookups) {
		struct dns_lookup *l = q->lookups;
		struct dns_lookup_handler handler = l->handler;

		DL_DELETE(q->lookups, l);
		free(l);
		handler.done(handler.arg, e, ok ? &q->result : NULL, ok ? NULL : &err);
	}
}

static void deliver(struct dns_resolver *r)
{
	while (r->answered) {
		struct query *q = r->answered;

		DL_DELETE(r->answered, q);
		report(q);
		/* A handler may have called c-ares again, which may have released q. */
		q->orphan = q->in_ares;
		if (q->orphan) {
			DL_APPEND(r->orphans, q);
		} else {
			r->count--;
			free(q);
		}
	}
}

static struct query *query_new(struct dns_resolver *r, struct str name)
{
	struct query *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	memcpy(q->name, name.p, name.n);
	q->name_len = name.n;
	q->resolver = r;
	q->deadline = clock_mono_usec() + DNS_TIMEOUT_USEC;
	HASH_ADD_KEYPTR(hh, r->by_name, q->name, q->name_len, q);
	if (!q->hh.tbl) {
		free(q);
		return NULL;
	}
	DL_APPEND(r->running, q);
	r->count++;
	return q;
}

/* Starts a query; it may be answered at once. */
static void query_start(struct dns_resolver *r, struct query *q)
{
	struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NOSORT,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};

	set_servers(r);
	q->in_ares = true;
	ares_getaddrinfo(r->channel, q->name, NULL, &hints, on_answer, q);
}

/* Look up what is known without a query. Return 1 with *ret filled, 0 if nothing is known, or
 * negative if there is no such host. name is terminated. */
static int known(
	struct dns_resolver *r, struct str name, struct dns_result *ret, struct cloche_err *err)
{
	uint64_t now = clock_mono_usec();
	const struct dns_result *found = dns_names_get(&r->hosts, name, now);

	if (!found)
		found = dns_names_get(&r->cache, name, now);
	if (!found)
		return dns_names_get(&r->absent, name, now) ? no_such_host(name.p, err) : 0;
	*ret = *found;
	return 1;
}

int dns_resolver_lookup(struct dns_resolver *r, struct str name, struct dns_lookup_handler handler,
	struct dns_result *ret_now, struct dns_lookup **ret_lookup, struct cloche_err *err)
{
	_cleanup_(freep) struct dns_lookup *l = NULL;
	char canonical[DNS_NAME_MAX + 1];
	struct query *q;
	int e;

	if (dns_result_from_text(ret_now, name))
		return 1;
	if (dns_name_canonical(name, canonical, &name) < 0)
		return err_set(err, E_NOT_FOUND, "not a host name");
	e = known(r, name, ret_now, err);
	if (e)
		return e;
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_nomem(err);
	HASH_FIND(hh, r->by_name, name.p, name.n, q);
	if (!q) {
		if (r->count >= DNS_LOOKUPS_MAX)
			return err_set(err, E_LIMIT, "too many names being resolved");
		q = query_new(r, name);
		if (!q)
			return err_nomem(err);
		query_start(r, q);
	}
	/* Even if the query was answered at once, the handler is called later, by tick(), which is
	 * then due at once. */
	l->query = q;
	l->handler = handler;
	DL_APPEND(q->lookups, l);
	*ret_lookup = TAKE_PTR(l);
	return 0;
}

bool dns_resolver_known(struct dns_resolver *r, struct str name, struct dns_result *ret)
{
	char canonical[DNS_NAME_MAX + 1];

	if (dns_result_from_text(ret, name))
		return true;
	return dns_name_canonical(name, canonical, &name) == 0 && known(r, name, ret, NULL) > 0;
}

void dns_lookup_cancel(struct dns_lookup *l)
{
	if (!l)
		return;
	DL_DELETE(l->query->lookups, l);
	free(l);
}

static void expire(struct dns_resolver *r)
{
	uint64_t now = clock_mono_usec();

	while (r->running && r->running->deadline <= now)
		settle(r, r->running, ARES_ETIMEOUT);
}

void dns_resolver_ready(struct dns_resolver *r, int fd, bool readable, bool writable)
{
	ares_process_fd(
		r->channel, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
	expire(r);
	deliver(r);
}

uint64_t dns_resolver_next_usec(const struct dns_resolver *r)
{
	uint64_t next = r->running ? r->running->deadline : USEC_INFINITY;
	struct timeval tv, *left = ares_timeout(r->channel, NULL, &tv);

	if (r->answered)
		return 0;
	if (left)
		next = MIN(next, clock_mono_usec() + (uint64_t)left->tv_sec * USEC_PER_SEC +
					 (uint64_t)left->tv_usec);
	return next;
}

void dns_resolver_tick(struct dns_resolver *r)
{
	dns_resolver_ready(r, ARES_SOCKET_BAD, false, false);
}
