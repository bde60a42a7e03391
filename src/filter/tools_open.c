/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/tools.h"

static bool is_open(const struct allow_rule *rule, const struct host *host)
{
	bool https = rule->schemes & POLICY_HTTPS, port = rule->n_ports == 0;
	bool get = !rule->methods;

	for (size_t i = 0; i < rule->n_ports; i++)
		port |= rule->ports[i] == 443;
	for (char **m = rule->methods; m && *m; m++)
		get |= str_eq(str_from(*m), STR("GET"));
	return https && port && get && !rule->tunnel && !rule->has_graphql && !rule->no_query &&
	       !rule->path && !rule->path_prefix &&
	       host_pattern_matches(str_from(rule->host), host);
}

int tools_host_is_open(const struct allowlist *policy, struct str text)
{
	struct host host;

	if (host_parse(str_prefix(text, str_chr(text, '/')), &host) < 0)
		return 0;
	for (size_t i = 0; i < allowlist_count(policy); i++)
		if (is_open(allowlist_rule(policy, i), &host) &&
			!allowlist_denies_host(policy, allowlist_rule(policy, i), &host))
			return 1;
	return 0;
}

static bool take_prefix(struct str *s, struct str prefix)
{
	if (!str_ieq(str_prefix(*s, prefix.n), prefix))
		return false;
	*s = str_from_index(*s, prefix.n);
	return true;
}

/* RFC 3986 3.2: the authority ends at the first of these. */
static size_t authority_length(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] != '/' && s.p[n] != '?' && s.p[n] != '#')
		n++;
	return n;
}

static int decide(const struct allowlist *policy, struct policy_request *req)
{
	struct verdict v;
	int r = policy_decide(policy, req, &v);

	return r < 0 ? r : v.allow;
}

int tools_url_is_open(const struct allowlist *policy, struct str method, struct str url)
{
	_cleanup_(buf_donep) struct buf target = BUF_INIT(PATH_MAX_TARGET + 2);
	struct policy_request req = {.method = method};
	struct host host;
	size_t n;
	int r = 0;

	if (take_prefix(&url, STR("https://")))
		req.scheme = POLICY_HTTPS;
	else if (take_prefix(&url, STR("http://")))
		req.scheme = POLICY_HTTP;
	else
		return 0;
	n = authority_length(url);
	if (host_parse_authority(str_prefix(url, n), &host, &req.port) < 0)
		return 0;
	if (req.port == 0)
		req.port = req.scheme == POLICY_HTTPS ? 443 : 80;
	req.host = host_str(&host);
	url = str_from_index(url, n);
	url = str_prefix(url, str_chr(url, '#'));
	if (url.n > PATH_MAX_TARGET)
		return 0;
	if (url.n == 0 || url.p[0] != '/')
		r = buf_add_char(&target, '/');
	if (r == 0)
		r = buf_add_str(&target, url);
	req.target = buf_str(&target);
	return r < 0 ? r : decide(policy, &req);
}

int tools_is_open(const struct allowlist *policy, enum tools_what what, struct str text)
{
	int r = 1;

	if (what == TOOLS_HOST)
		return tools_host_is_open(policy, text);
	if (what == TOOLS_GET_AND_POST)
		r = tools_url_is_open(policy, STR("POST"), text);
	return r > 0 ? tools_url_is_open(policy, STR("GET"), text) : r;
}

void tools_rely(struct filter_relies *relies, enum tools_what what, struct str text)
{
	unsigned char head[3] = {
		(unsigned char)what, (unsigned char)(text.n >> 8), (unsigned char)text.n};

	if (relies->n < TOOLS_RELIES_N && text.n <= UINT16_MAX &&
		sizeof(head) + text.n <= buf_room(&relies->list) &&
		buf_add(&relies->list, head, sizeof(head)) == 0 &&
		buf_add_str(&relies->list, text) == 0)
		relies->n++;
	else
		relies->more = true;
}

int tools_are_open(const struct allowlist *policy, struct str list)
{
	int r = 1;

	while (r > 0 && list.n >= 3) {
		const unsigned char *head = (const unsigned char *)list.p;
		enum tools_what what = head[0];
		size_t n = (size_t)head[1] << 8 | head[2];

		r = tools_is_open(policy, what, str_prefix(str_from_index(list, 3), n));
		list = str_from_index(list, 3 + n);
	}
	return r;
}
