/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "sync/internal.h"

#include <unistd.h>

enum { RECENT_SEC = 2 };

static const char *const what_words[SYNC_WHAT_END_] = {
	[SYNC_ALL] = "all", [SYNC_TRACKED] = "tracked", [SYNC_NONE] = "none"};

static const char *const event_names[SYNC_EVENT_END_] = {[SYNC_KEPT_BOTH] = "kept-both",
	[SYNC_KEPT] = "kept",
	[SYNC_RESTORED] = "restored",
	[SYNC_LEFT] = "left",
	[SYNC_UNREADABLE] = "unreadable",
	[SYNC_UNSTEADY] = "unsteady",
	[SYNC_SPECIAL] = "special",
	[SYNC_TOO_DEEP] = "too-deep",
	[SYNC_OWN] = "own"};

bool sync_what_from(struct str word, enum sync_what *ret)
{
	for (unsigned i = 0; i < SYNC_WHAT_END_; i++) {
		if (str_eq(word, str_from(what_words[i]))) {
			*ret = (enum sync_what)i;
			return true;
		}
	}
	return false;
}

const char *sync_event_name(enum sync_event event)
{
	return event_names[event];
}

void sync_begin(struct sync *s, cloche_files *f, int dir, const struct sync_options *o,
	struct sync_state *state, struct sync_report *report)
{
	*s = (struct sync){.f = f,
		.top = dir,
		.o = o,
		.state = state,
		.report = report,
		.max_entries = o->max_entries ? o->max_entries : SYNC_MAX_ENTRIES,
		.dir = -1};
}

void sync_end(struct sync *s)
{
	here_forget_parent(s);
	ignore_free(s->rules);
	ignore_free(s->excluded);
	free(s->nodes);
	sync_state_settle(s->state);
}

int sync_sort(struct sync *s, struct cloche_err *err)
{
	const struct sync_node *blind = NULL;

	s->n = HASH_COUNT(s->state->nodes);
	s->nodes = sync_state_sorted(s->state);
	if (!s->nodes)
		return err_nomem(err);
	for (size_t i = 0; i < s->n; i++) {
		struct sync_node *n = s->nodes[i];

		if (blind && sync_is_below(n->path, blind->path))
			n->blind = true;
		else if (n->blind)
			blind = n;
	}
	return 0;
}

void sync_pulse(struct sync *s)
{
	if (s->report->progress)
		s->report->progress(s->report->user);
}

void sync_tell(struct sync *s, enum sync_event event, const char *path, const char *other)
{
	s->report->told[event]++;
	if (s->report->tell)
		s->report->tell(s->report->user, event, path, other);
}

bool sync_is_below(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	return strncmp(path, directory, n) == 0 && path[n] == '/';
}

size_t sync_end_of(const struct sync *s, size_t i)
{
	size_t end = i + 1;

	while (end < s->n && sync_is_below(s->nodes[end]->path, s->nodes[i]->path))
		end++;
	return end;
}

const char *sync_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct str sync_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	return str_make(path, slash ? (size_t)(slash - path) : 0);
}

/* Ask the rules of a directory, of which `at` bytes at the front of the path are the name. */
static enum ignore_verdict rules_ask(
	const struct sync *s, struct str path, size_t at, bool is_directory)
{
	const struct ignore_rules *rules = s->rules;

	if (at) {
		const struct sync_node *n = sync_state_find(s->state, str_prefix(path, at));

		rules = n ? n->rules : NULL;
	}
	if (!rules)
		return IGNORE_UNSAID;
	return ignore_match(rules, str_from_index(path, at ? at + 1 : 0), is_directory);
}

static bool has_part(struct str path, struct str name)
{
	while (path.n)
		if (str_eq(str_next(&path, '/'), name))
			return true;
	return false;
}

bool sync_is_ignored(const struct sync *s, const char *path, bool is_directory)
{
	struct str whole = str_from(path);
	size_t at = whole.n;
	enum ignore_verdict v = IGNORE_UNSAID;

	/* What git itself has there is in no working tree. */
	if (s->o->what != SYNC_TRACKED || has_part(whole, STR(".git")))
		return false;
	/* The rules that are nearest decide. */
	while (v == IGNORE_UNSAID && at > 0) {
		while (at > 0 && path[at - 1] != '/')
			at--;
		at = at ? at - 1 : 0;
		v = rules_ask(s, whole, at, is_directory);
	}
	if (v == IGNORE_UNSAID && s->excluded)
		v = ignore_match(s->excluded, whole, is_directory);
	return v == IGNORE_IT;
}

bool sync_is_temporary(const char *name)
{
	struct str s = str_from(name);

	return str_starts(s, STR(".cloche-")) && str_ends(s, STR(".tmp"));
}

bool sync_is_recent(struct sync_time t)
{
	return t.sec >= (int64_t)(clock_real_usec() / USEC_PER_SEC) - RECENT_SEC;
}

void sync_alike(struct sync_node *n)
{
	n->before = (struct sync_before){.type = n->here.type,
		.unsure_here = n->here.type != SYNC_DIRECTORY && sync_is_recent(n->here.mtime),
		.mode = n->there.mode,
		.size = n->here.size,
		.here = n->here.mtime,
		.there = n->there.mtime};
	memcpy(n->before.digest, n->digest, SHA256_BYTES);
}

void sync_there_path(const struct sync *s, const char *path, char ret[PATH_MAX + 1])
{
	ret[0] = '/';
	str_copy(ret + 1, PATH_MAX, str_from(s->o->one ? s->o->one_there : path));
}

bool sync_can_go_on(const struct sync *s, int r)
{
	return !s->f->broken && r != -E_CANCELLED && r != -E_NO_MEMORY;
}
