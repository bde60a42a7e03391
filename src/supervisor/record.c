/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the record is for whoever lists sandboxes; we never read it back. Its first
 * member is the state, so that an orderly end is known by the first bytes. Written whole each time
 * (docs/design/formats.md has the fields). */
#include "base/clock.h"
#include "base/escape.h"
#include "base/program.h"
#include "supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

enum { MAX_RECORD = 512 * 1024 };
/* So that nobody waits for it, and commands one after another share it. */
#define SOON (20 * USEC_PER_MSEC)

/* The parts share one buffer and remember the first failure. */
struct out {
	struct buf b;
	int error;
};

static void add(struct out *o, const char *literal)
{
	if (o->error == 0)
		o->error = buf_add_str(&o->b, str_from(literal));
}

static void add_string(struct out *o, const char *key, const char *z)
{
	add(o, ",\"");
	add(o, key);
	add(o, "\":");
	if (!z)
		add(o, "null");
	else if (o->error == 0)
		o->error = escape_json(&o->b, str_from(z), false);
}

static void add_number(struct out *o, const char *key, uint64_t n)
{
	if (o->error == 0)
		o->error = buf_printf(&o->b, ",\"%s\":%llu", key, (unsigned long long)n);
}

static void add_bool(struct out *o, const char *key, bool b)
{
	if (o->error == 0)
		o->error = buf_printf(&o->b, ",\"%s\":%s", key, b ? "true" : "false");
}

static void add_labels(struct out *o, char *const *labels)
{
	add(o, ",\"labels\":{");
	for (size_t i = 0; labels && labels[i] && o->error == 0; i++) {
		struct str label = str_from(labels[i]);
		size_t eq = str_chr(label, '=');

		add(o, i ? "," : "");
		if (o->error == 0)
			o->error = escape_json(&o->b, str_prefix(label, eq), false);
		add(o, ":");
		if (o->error == 0)
			o->error = escape_json(&o->b, str_from_index(label, eq + 1), false);
	}
	add(o, "}");
}

static void add_unenforced(struct out *o, const struct room *room)
{
	add(o, ",\"unenforced\":[");
	for (unsigned i = 0; room && room_unenforced(room, i) && o->error == 0; i++) {
		add(o, i ? "," : "");
		if (o->error == 0)
			o->error = escape_json(&o->b, str_from(room_unenforced(room, i)), false);
	}
	add(o, "]");
}

static void add_forwards(struct out *o, const struct supervisor *s)
{
	const struct forward *f;

	add(o, ",\"forwards\":[");
	DL_FOREACH (s->forwards, f) {
		add(o, f == s->forwards ? "{\"protocol\":\"tcp\"" : ",{\"protocol\":\"tcp\"");
		add_number(o, "guest_port", f->guest_port);
		add_string(o, "host_address", f->host_address);
		add_number(o, "host_port", f->host_port);
		add(o, "}");
	}
	add(o, "]");
}

/* What holds in place of what `config` says. */
static void add_policy(struct out *o, const struct supervisor *s)
{
	if (s->policy_real == 0)
		return;
	add(o, ",\"policy\":{\"replaced\":true");
	add_number(o, "replaced_usec", s->policy_real);
	add_number(o, "rules", s->policy_rules);
	add_string(o, "sources", s->policy_sources);
	add(o, "}");
}

static void add_usage(struct out *o, const struct room_usage *u)
{
	add(o, ",\"usage\":{\"final\":true");
	add_number(o, "cpu_usec", u->cpu_usec);
	add_number(o, "memory_peak_bytes", u->memory_peak_bytes);
	add_number(o, "pids_peak", u->pids_peak);
	add_number(o, "oom_kills", u->oom_kills);
	add_number(o, "io_read_bytes", u->io_read_bytes);
	add_number(o, "io_write_bytes", u->io_write_bytes);
	add(o, "}");
}

static const char *state_name(const struct supervisor *s)
{
	switch (s->state) {
	case SUP_NEW:
		return "starting";
	case SUP_UP:
		return s->started_real ? "running" : "starting";
	case SUP_ENDING:
	case SUP_KILLED:
		return "stopping";
	case SUP_ENDED:
		break;
	}
	return "stopped";
}

static const char *reason_name(const struct supervisor *s)
{
	static const char *const names[CTL_REASON_END_] = {[CTL_REASON_EXITED] = "exited",
		[CTL_REASON_STOPPED] = "stopped",
		[CTL_REASON_TIMEOUT] = "timeout",
		[CTL_REASON_CLIENT_GONE] = "client-gone",
		[CTL_REASON_FAILED] = "failed",
		[CTL_REASON_INIT_DIED] = "init-died"};

	return s->state >= SUP_ENDING ? names[s->reason] : NULL;
}

static void add_life(struct out *o, const struct supervisor *s)
{
	uint64_t ttl = s->start.timeout_usec;
	char created[CLOCK_ISO_MAX];

	clock_format_utc(s->created_real, created);
	add_string(o, "reason", reason_name(s));
	add_string(o, "error", s->failure);
	add_string(o, "id", s->spec.id);
	add_string(o, "name", s->start.name && s->start.name[0] ? s->start.name : NULL);
	add_labels(o, s->start.labels);
	add_string(o, "provider", s->room ? s->room->provider->name : s->start.provider);
	add_number(o, "pid", (uint64_t)getpid());
	add_number(o, "pid_start", program_start_time(getpid()));
	add_number(o, "init_pid", s->room ? (uint64_t)room_pid(s->room) : 0);
	add_string(o, "created", created);
	add_number(o, "created_usec", s->created_real);
	add_number(o, "started_usec", s->started_real);
	add_number(o, "ended_usec", s->ended_real);
	add_number(o, "ttl_usec", ttl);
	add_number(o, "deadline_usec", ttl && s->started_real ? s->started_real + ttl : 0);
	add_bool(o, "one_shot", s->start.one_shot);
	add_bool(o, "detached", s->start.detached);
	add_bool(o, "kept", s->start.kept);
	add_bool(o, "gateway", s->start.gateway);
}

int record_write(struct supervisor *s, struct cloche_err *err)
{
	struct out o = {.b = BUF_INIT(MAX_RECORD)};
	int r;

	add(&o, "{\"state\":\"");
	add(&o, state_name(s));
	add(&o, "\"");
	add_life(&o, s);
	add_unenforced(&o, s->room);
	add_forwards(&o, s);
	add_policy(&o, s);
	add_number(&o, "execs_running", tasks_running(s));
	add_number(&o, "execs_total", tasks_total(s));
	add_number(&o, "last_exec", s->last_shown);
	if (s->state == SUP_ENDED)
		add_usage(&o, &s->usage);
	add(&o, ",\"config\":");
	add(&o, s->start.config && s->start.config[0] ? s->start.config : "{}");
	add(&o, "}\n");
	r = o.error < 0 ? err_nomem(err) : sandbox_dir_write_record(&s->dir, buf_str(&o.b), err);
	buf_done(&o.b);
	return r;
}

void record_update(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	loop_timer_clear(&s->record_due);
	if (!s->start.kept || s->dir.lock < 0)
		return;
	/* Whoever reads it then sees what was before; the lock still says what lives. */
	if (record_write(s, &err) < 0)
		fprintf(stderr, "cloche-supervisor: %s\n", err.message);
}

static void on_due(struct loop_timer *t)
{
	record_update(container_of(t, struct supervisor, record_due));
}

void record_update_soon(struct supervisor *s)
{
	if (s->start.kept && !s->record_due.loop &&
		loop_timer_set(s->loop, &s->record_due, clock_mono_usec() + SOON, on_due) < 0)
		record_update(s);
}
