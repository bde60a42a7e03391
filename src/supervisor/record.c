/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the record is for programs that list sandboxes; the supervisor never reads
 * it. Its first member is the state, so that the first bytes show whether the sandbox ended in
 * order. It is written as a whole each time (docs/design/formats.md has the fields). */
#include "base/clock.h"
#include "base/jsonout.h"
#include "base/program.h"
#include "supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

enum { MAX_RECORD = 512 * 1024 };
/* So that no command waits for it, and commands that follow each other share one write. */
#define SOON (20 * USEC_PER_MSEC)

static void add_labels(struct jsonout *o, char *const *labels)
{
	jsonout_open(o, "labels", '{');
	for (size_t i = 0; labels && labels[i]; i++) {
		struct str label = str_from(labels[i]);
		size_t eq = str_chr(label, '=');

		jsonout_member(o, str_prefix(label, eq), str_from_index(label, eq + 1));
	}
	jsonout_close(o, '}');
}

static void add_unenforced(struct jsonout *o, const struct room *room)
{
	jsonout_open(o, "unenforced", '[');
	for (unsigned i = 0; room && i < room->unenforced_n; i++)
		jsonout_text(o, NULL, room->unenforced[i]);
	jsonout_close(o, ']');
}

static void add_forwards(struct jsonout *o, const struct supervisor *s)
{
	const struct forward *f;

	jsonout_open(o, "forwards", '[');
	DL_FOREACH (s->forwards, f) {
		jsonout_open(o, NULL, '{');
		jsonout_text(o, "protocol", "tcp");
		jsonout_number(o, "guest_port", f->guest_port);
		jsonout_text(o, "host_address", f->host_address);
		jsonout_number(o, "host_port", f->host_port);
		jsonout_close(o, '}');
	}
	jsonout_close(o, ']');
}

/* The policy that replaces the one of `config`. */
static void add_policy(struct jsonout *o, const struct supervisor *s)
{
	if (s->net.policy_real == 0)
		return;
	jsonout_open(o, "policy", '{');
	jsonout_bool(o, "replaced", true);
	jsonout_number(o, "replaced_usec", s->net.policy_real);
	jsonout_number(o, "rules", s->net.policy_rules);
	jsonout_text(o, "sources", s->net.policy_sources);
	jsonout_close(o, '}');
}

static void add_usage(struct jsonout *o, const struct room_usage *u)
{
	jsonout_open(o, "usage", '{');
	jsonout_bool(o, "final", true);
	jsonout_number(o, "cpu_usec", u->cpu_usec);
	jsonout_number(o, "memory_peak_bytes", u->memory_peak_bytes);
	jsonout_number(o, "pids_peak", u->pids_peak);
	jsonout_number(o, "oom_kills", u->oom_kills);
	jsonout_number(o, "io_read_bytes", u->io_read_bytes);
	jsonout_number(o, "io_write_bytes", u->io_write_bytes);
	jsonout_close(o, '}');
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

const char *record_reason_name(const struct supervisor *s)
{
	static const char *const names[CTL_REASON_END_] = {[CTL_REASON_EXITED] = "exited",
		[CTL_REASON_STOPPED] = "stopped",
		[CTL_REASON_TIMEOUT] = "timeout",
		[CTL_REASON_CLIENT_GONE] = "client-gone",
		[CTL_REASON_FAILED] = "failed",
		[CTL_REASON_INIT_DIED] = "init-died"};

	return s->state >= SUP_ENDING ? names[s->end.reason] : NULL;
}

static void add_life(struct jsonout *o, const struct supervisor *s)
{
	uint64_t ttl = s->start.timeout_usec;
	char created[CLOCK_ISO_MAX], boot[PROGRAM_BOOT_ID_MAX];

	clock_format_utc(s->created_real, created);
	program_boot_id(boot);
	jsonout_text(o, "reason", record_reason_name(s));
	jsonout_text(o, "error", s->failure);
	jsonout_text(o, "id", s->spec.id);
	jsonout_text(o, "name", s->start.name && s->start.name[0] ? s->start.name : NULL);
	add_labels(o, s->start.labels);
	jsonout_text(o, "provider", s->room ? s->room->provider->name : s->start.provider);
	jsonout_text(o, "isolation", s->room ? room_isolation(s->room) : "sandbox");
	jsonout_number(o, "pid", (uint64_t)getpid());
	jsonout_number(o, "pid_start", program_start_time(getpid()));
	jsonout_text(o, "boot_id", boot);
	jsonout_number(o, "init_pid", s->room ? (uint64_t)s->room->pid : 0);
	jsonout_text(o, "created", created);
	jsonout_number(o, "created_usec", s->created_real);
	jsonout_number(o, "started_usec", s->started_real);
	jsonout_number(o, "ended_usec", s->ended_real);
	jsonout_number(o, "ttl_usec", ttl);
	jsonout_number(o, "deadline_usec", ttl && s->started_real ? s->started_real + ttl : 0);
	jsonout_bool(o, "one_shot", s->start.one_shot);
	jsonout_bool(o, "detached", s->start.detached);
	jsonout_bool(o, "kept", s->start.kept);
	jsonout_bool(o, "gateway", s->start.gateway);
}

int record_write(struct supervisor *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_RECORD);
	const char *config = s->start.config;
	struct jsonout o = {.b = &text};

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "state", state_name(s));
	add_life(&o, s);
	add_unenforced(&o, s->room);
	add_forwards(&o, s);
	add_policy(&o, s);
	jsonout_number(&o, "execs_running", tasks_running(s));
	jsonout_number(&o, "execs_total", tasks_total(s));
	jsonout_number(&o, "last_exec", s->tasks.last_shown);
	if (s->state == SUP_ENDED)
		add_usage(&o, &s->usage);
	jsonout_raw(&o, "config", config && config[0] ? str_from(config) : STR("{}"));
	jsonout_close(&o, '}');
	if (o.error < 0 || buf_add_char(&text, '\n') < 0)
		return err_nomem(err);
	return sandbox_dir_write_record(&s->dir, buf_str(&text), err);
}

void record_update(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	loop_timer_clear(&s->record_due);
	if (!s->start.kept || s->dir.lock < 0)
		return;
	/* Readers then see the previous record; the lock still shows that the sandbox is alive. */
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
		loop_timer_in(s->loop, &s->record_due, SOON, on_due) < 0)
		record_update(s);
}
