/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about options without an effect, above all secrets that may be sent to no host: the room
 * would have a surrogate, and programs in it would retry for minutes what no rule allows; and about
 * options that grant far more than they say. */
#include "job/job.h"
#include "policy/allowlist.h"
#include "policy/host.h"
#include "provider/names.h"
#include "sandbox/sandbox.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Return whether both patterns can match the same host; true if both have wildcards. */
static bool scope_meets(const char *rule, const char *scope)
{
	struct host h;

	if (host_parse(str_from(scope), &h) == 0)
		return host_pattern_matches(str_from(rule), &h);
	if (host_parse(str_from(rule), &h) == 0)
		return host_pattern_matches(str_from(scope), &h);
	return true;
}

static bool scope_is_allowed(const cloche_allowlist *list, const char *scope)
{
	for (size_t i = 0; list && i < allowlist_count(list->rules); i++) {
		const struct allow_rule *rule = allowlist_rule(list->rules, i);

		if (rule->schemes & POLICY_HTTPS && !rule->tunnel && scope_meets(rule->host, scope))
			return true;
	}
	return false;
}

static bool secret_is_of_use(const cloche_sandbox *sb, const struct secret_spec *spec)
{
	for (char **scope = spec->scopes; *scope; scope++)
		if (scope_is_allowed(sb->allowlist, *scope))
			return true;
	return false;
}

/* Return whether secrets are to be sent. Offline, nothing is sent at all. Without a room they are
 * refused, unless the network is the host's. */
static bool secrets_are_for_requests(const cloche_sandbox *sb)
{
	bool refused = sb->provider && strcmp(sb->provider, PROVIDER_UNSANDBOXED) == 0 &&
		       sb->net != SANDBOX_NET_HOST;

	return !sb->offline && !refused;
}

static bool allows_every_host(const cloche_allowlist *list)
{
	for (size_t i = 0; list && i < allowlist_count(list->rules); i++)
		if (strcmp(allowlist_rule(list->rules, i)->host, "*") == 0)
			return true;
	return false;
}

static void tell_wide(const cloche_sandbox *sb, cloche_warning_fn fn, void *user)
{
	char text[PATH_MAX + 128];
	struct stat st;

	if (sandbox_wants_gateway(sb) && !sb->offline && allows_every_host(sb->allowlist))
		job_tell_text(fn,
			"every host is allowed (\"*\"): what is read inside can be sent to anybody",
			user);
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];

		if (m->guard || m->fd < 0 || fstat(m->fd, &st) < 0 || !S_ISSOCK(st.st_mode))
			continue;
		snprintf(text, sizeof(text),
			"%s is a socket: whoever listens there does for the sandbox what it does "
			"for you",
			m->source);
		job_tell_text(fn, text, user);
	}
}

void sandbox_tell_doubtful(const cloche_sandbox *sb, cloche_warning_fn fn, void *user)
{
	size_t n = sb->secrets ? secret_set_count(sb->secrets->set) : 0;
	bool network = sandbox_wants_gateway(sb);
	char text[1024];

	if (fn)
		tell_wide(sb, fn, user);
	if (fn && !network && (sb->network_log || sb->network_log_fd >= 0))
		job_tell_text(
			fn, "there is no network, so there is nothing for the network log", user);
	if (fn && !network && sb->connect_to)
		job_tell_text(fn, "there is no network, so --connect-to has no effect", user);
	for (size_t i = 0; fn && secrets_are_for_requests(sb) && i < n; i++) {
		const struct secret_spec *spec = &secret_set_get(sb->secrets->set, i)->spec;

		/* Report AWS credentials once, not for each of their values. */
		if ((spec->role != SECRET_MASKED && spec->role != SECRET_AWS_KEY_ID) ||
			(network && secret_is_of_use(sb, spec)))
			continue;
		if (sb->net == SANDBOX_NET_HOST)
			snprintf(text, sizeof(text),
				"the secret %s is of no use: with --net host nothing puts it into "
				"requests",
				spec->name);
		else
			snprintf(text, sizeof(text),
				"the secret %s is for %s, %s: \"--allow %s\" allows it", spec->name,
				spec->scopes[0],
				network ? "which is not allowed" : "and there is no network",
				spec->scopes[0]);
		job_tell_text(fn, text, user);
	}
}
