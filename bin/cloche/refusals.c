/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the sandbox's own network log is read, and what is alike is counted. The
 * hosts and the names of programs are the room's words: a command that we propose holds no
 * character of them that a shell could take for more than a name. */
#include "refusals.h"
#include "cli.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 5, KINDS_MAX = 64, PROGRAM_MAX = 32, PLACE_MAX = 300 };

enum what {
	WHAT_SECRET,  /* a secret was not put into a header */
	WHAT_HOST,    /* no entry for the host: --allow opens it */
	WHAT_SSH,     /* the same of SSH to a name, for which git has another way */
	WHAT_ENTRY,   /* the entries for the host do not go so far */
	WHAT_ADDRESS, /* the name leads to an address that may not be dialled */
	WHAT_DENIED,  /* cloche net deny has closed it */
	WHAT_OTHER,   /* no rule can allow it */
	WHAT_FAILED,  /* it was allowed, and the origin could not be asked */
};

struct refusal {
	enum what what;
	char place[PLACE_MAX];     /* the shorthand for --allow; for a secret: what happened */
	char why[PLACE_MAX];       /* for SSH: the host */
	char program[PROGRAM_MAX]; /* the first that asked; "": not known */
	bool several;              /* programs */
	unsigned long long count;
};

struct refusals {
	struct refusal v[KINDS_MAX];
	size_t n;
	unsigned long long more; /* kinds that did not fit, by event, and what the log left out */
};

static const char *refusal_text(const json_t *event, const char *key)
{
	const char *text = json_string_value(json_object_get(event, key));

	return text ? text : "";
}

/* --- what a line says --- */

/* Whether it is SSH to a name, and not to an address. */
static bool refusal_is_ssh(const json_t *event)
{
	const char *host = refusal_text(event, "host");

	return strcmp(refusal_text(event, "reason"), "tcp") == 0 &&
	       strcmp(refusal_text(event, "note"), "not HTTP: SSH") == 0 && !strchr(host, ':') &&
	       strpbrk(host, "abcdefghijklmnopqrstuvwxyz");
}

/* Whether it is a request of git over ssh. */
static bool refusal_is_git(const json_t *event)
{
	return strncmp(refusal_text(event, "url"), "ssh://", 6) == 0;
}

static enum what refusal_what(const json_t *event)
{
	static const struct {
		const char *reason;
		enum what what;
	} reasons[] = {{"host", WHAT_HOST}, {"host_address", WHAT_HOST}, {"scheme", WHAT_HOST},
		{"port", WHAT_HOST}, {"tcp", WHAT_HOST}, {"user", WHAT_ENTRY}, {"path", WHAT_ENTRY},
		{"path_undecidable", WHAT_ENTRY}, {"query", WHAT_ENTRY}, {"method", WHAT_ENTRY},
		{"websocket", WHAT_ENTRY}, {"denied", WHAT_DENIED}};
	const char *reason = refusal_text(event, "reason");
	enum what what = WHAT_OTHER;

	if (strstr(refusal_text(event, "note"), ", which is refused: "))
		return WHAT_ADDRESS;
	if (refusal_is_ssh(event))
		return WHAT_SSH;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			what = reasons[i].what;
	/* --allow is for fetching, whatever is listed already. */
	if (refusal_is_git(event) && (what == WHAT_HOST || what == WHAT_ENTRY))
		what = strcmp(refusal_text(event, "method"), "FETCH") == 0 ? WHAT_HOST : WHAT_ENTRY;
	return what;
}

static bool is_opened_by_allow(enum what what)
{
	return what == WHAT_HOST || what == WHAT_SSH;
}

static bool is_word(const char *text)
{
	return text[0] && text[0] != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    ".-_:[]/@+") == strlen(text);
}

/* HOST for its usual ports, else with the scheme or the port. */
static void refusal_place(const json_t *event, char ret[PLACE_MAX])
{
	const char *host = refusal_text(event, "host");
	json_int_t port = json_integer_value(json_object_get(event, "port"));
	/* By its port alone. */
	static const char machine[] = "host.cloche.internal";
	bool plain = strncmp(refusal_text(event, "url"), "http://", 7) == 0;

	if (refusal_is_git(event))
		snprintf(ret, PLACE_MAX, "%s", refusal_text(event, "url"));
	else if (strcmp(refusal_text(event, "reason"), "tcp") == 0)
		snprintf(ret, PLACE_MAX, "tcp://%s:%lld", host, (long long)port);
	else if (port == 0 || (port == (plain ? 80 : 443) && strcmp(host, machine) != 0))
		snprintf(ret, PLACE_MAX, "%s", host);
	else
		snprintf(ret, PLACE_MAX, "%s:%lld", host, (long long)port);
}

void refusal_keep_name(char *name)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";

	for (; *name; name++)
		if (!strchr(good, *name))
			*name = '?';
}

static void refusal_program(const json_t *event, char ret[PROGRAM_MAX])
{
	snprintf(ret, PROGRAM_MAX, "%s", refusal_text(event, "process"));
	refusal_keep_name(ret);
}

/* --- counting --- */

static void refusals_add(struct refusals *all, const struct refusal *r)
{
	struct refusal *old;

	for (size_t i = 0; i < all->n; i++) {
		old = &all->v[i];
		if (old->what != r->what || strcmp(old->place, r->place) != 0 ||
			strcmp(old->why, r->why) != 0)
			continue;
		old->count++;
		old->several |= r->program[0] && strcmp(old->program, r->program) != 0;
		if (!old->program[0])
			memcpy(old->program, r->program, sizeof(old->program));
		return;
	}
	if (all->n == KINDS_MAX) {
		all->more++;
		return;
	}
	all->v[all->n] = *r;
	all->v[all->n++].count = 1;
}

static bool is_withheld(const json_t *event)
{
	return strcmp(refusal_text(event, "event"), "warning") == 0 &&
	       strcmp(refusal_text(event, "reason"), "secret") == 0;
}

static bool is_refused(const json_t *event)
{
	return strcmp(refusal_text(event, "event"), "connect") == 0 ||
	       strcmp(refusal_text(event, "decision"), "blocked") == 0;
}

static bool is_failed(const json_t *event)
{
	return strcmp(refusal_text(event, "event"), "error") == 0 &&
	       json_integer_value(json_object_get(event, "status")) == 502;
}

static void refusals_take(struct refusals *all, const json_t *event)
{
	const char *kind = refusal_text(event, "event");
	struct refusal r = {.what = WHAT_SECRET};

	if (is_withheld(event)) {
		snprintf(r.place, sizeof(r.place), "%s", refusal_text(event, "note"));
		refusals_add(all, &r);
	} else if (is_failed(event)) {
		r.what = WHAT_FAILED;
		refusal_place(event, r.place);
		refusal_program(event, r.program);
		snprintf(r.why, sizeof(r.why), "%s", refusal_text(event, "note"));
		refusals_add(all, &r);
	} else if (strcmp(kind, "suppressed") == 0) {
		all->more +=
			(unsigned long long)json_integer_value(json_object_get(event, "count"));
	} else if (is_refused(event)) {
		r.what = refusal_what(event);
		refusal_place(event, r.place);
		refusal_program(event, r.program);
		if (r.what == WHAT_ADDRESS || r.what == WHAT_OTHER)
			snprintf(r.why, sizeof(r.why), "%s", refusal_text(event, "note"));
		if (refusal_is_git(event) && r.what == WHAT_ENTRY) {
			r.what = WHAT_OTHER;
			snprintf(r.why, sizeof(r.why),
				"%s is not allowed there; an allowlist can have it (schemes: "
				"[ssh])",
				refusal_text(event, "method"));
		}
		if (r.what == WHAT_SSH)
			snprintf(r.why, sizeof(r.why), "%s", refusal_text(event, "host"));
		if (is_opened_by_allow(r.what) && !is_word(r.place))
			r.what = WHAT_OTHER;
		refusals_add(all, &r);
	}
}

json_t *refusal_event(const char *json)
{
	json_t *event = json_loads(json, 0, NULL), *line = NULL;
	char place[PLACE_MAX];

	if (is_withheld(event) || is_refused(event))
		line = json_pack("{s:s}", "type", is_refused(event) ? "refused" : "warning");
	if (line && json_object_update(line, event) == 0) {
		(void)json_object_del(line, "event");
		(void)json_object_del(line, "decision");
		refusal_place(event, place);
		if (is_refused(event) && is_opened_by_allow(refusal_what(event)) && is_word(place))
			(void)json_object_set_new(line, "allow", json_string(place));
	}
	json_decref(event);
	return line;
}

/* --- saying --- */

static void refusal_say_ssh(
	const struct refusal *r, const char *who, const char *sandbox, bool lives)
{
	const char *host = r->why;
	char option[PLACE_MAX + 64] = "--allow ", https[2 * PLACE_MAX];
	char ssh[2 * PLACE_MAX] = "git can use";

	if (lives)
		snprintf(option, sizeof(option), "cloche net allow %s ", sandbox);
	else
		snprintf(ssh, sizeof(ssh), "for git: --allow ssh://git@%s/PATH, or", host);
	if (!lives && strcmp(host, "github.com") == 0)
		snprintf(https, sizeof(https), "--preset github");
	else
		snprintf(https, sizeof(https), "%s%s", option, host);
	say("refused: %s (%s), SSH; %s https: %s, and inside git config --global "
	    "url.https://%s/.insteadOf git@%s: (any bytes: %s%s)",
		r->place, who, ssh, https, host, host, option, r->place);
}

static void refusal_say(const struct refusal *r, const char *sandbox, bool lives)
{
	char who[PROGRAM_MAX + 64];

	snprintf(who, sizeof(who), "%llu time%s%s%s%s", r->count, r->count == 1 ? "" : "s",
		r->program[0] ? ", " : "", r->program, r->several ? " and others" : "");
	switch (r->what) {
	case WHAT_SECRET:
		say("secret %s (%llu time%s)%s", r->place, r->count, r->count == 1 ? "" : "s",
			strstr(r->place, "header not listed")
				? "; to send it there: --secret NAME@HOST:HEADER"
				: "");
		break;
	case WHAT_HOST:
		if (lives)
			say("refused: %s (%s); to allow it: cloche net allow %s %s", r->place, who,
				sandbox, r->place);
		else
			say("refused: %s (%s); to allow it: --allow %s", r->place, who, r->place);
		break;
	case WHAT_SSH:
		refusal_say_ssh(r, who, sandbox, lives);
		break;
	case WHAT_ENTRY:
		say("refused: %s (%s), whose allowed paths or methods do not go so far; what would "
		    "allow it: cloche net suggest --blocked-only %s",
			r->place, who, sandbox);
		break;
	case WHAT_DENIED:
		say("refused: %s (%s), which cloche net deny has closed", r->place, who);
		break;
	case WHAT_ADDRESS:
		say("refused: %s (%s): %s", r->place, who, r->why);
		break;
	case WHAT_FAILED:
		say("failed: %s (%s): %s", r->place, who, r->why);
		break;
	case WHAT_OTHER:
		say("refused: %s (%s)%s%s", r->place[0] ? r->place : "a request", who,
			r->why[0] ? ": " : "", r->why);
		break;
	}
}

static int refusal_compare(const void *a, const void *b)
{
	const struct refusal *x = a, *y = b;

	return ((y->what == WHAT_SECRET) - (x->what == WHAT_SECRET)) +
	       ((x->what == WHAT_FAILED) - (y->what == WHAT_FAILED));
}

static void refusals_say_all(struct refusals *all, const char *sandbox, bool lives)
{
	size_t shown = all->n;
	unsigned long long rest = all->more;
	bool failed = false; /* one of the rest */

	/* Few: a stable order is simple. */
	for (size_t i = 1; i < all->n; i++)
		for (size_t k = i; k > 0 && refusal_compare(&all->v[k - 1], &all->v[k]) > 0; k--) {
			struct refusal r = all->v[k];

			all->v[k] = all->v[k - 1];
			all->v[k - 1] = r;
		}
	if (shown > LINES_MAX || rest > 0)
		shown = shown < LINES_MAX - 1 ? shown : LINES_MAX - 1;
	for (size_t i = 0; i < shown; i++)
		refusal_say(&all->v[i], sandbox, lives);
	for (size_t i = shown; i < all->n; i++) {
		rest += all->v[i].count;
		failed |= all->v[i].what == WHAT_FAILED;
	}
	if (rest > 0)
		say("%llu more; all of them: cloche net log %s%s", rest, failed ? "" : "--blocked ",
			sandbox);
}

cloche_network_log *refusals_open(const char *sandbox, bool before)
{
	cloche_network_log *log = NULL;
	char *path = NULL;

	if (!sandbox[0] || cloche_network_log_find(sandbox, &path, NULL) < 0)
		return NULL;
	if (cloche_network_log_open(path, &log, NULL) == 0 && before)
		(void)cloche_network_log_skip(log, NULL);
	free(path);
	return log;
}

void refusals_say(cloche_network_log *log, const char *sandbox, bool lives)
{
	struct refusals *all = log ? calloc(1, sizeof(*all)) : NULL;
	cloche_network_entry e;

	while (all && cloche_network_log_next(log, &e, NULL) > 0) {
		json_t *event = json_loads(e.json, 0, NULL);

		refusals_take(all, event);
		json_decref(event);
	}
	if (all)
		refusals_say_all(all, sandbox, lives);
	cloche_network_log_close(log);
	free(all);
}
