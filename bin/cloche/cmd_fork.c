/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"
#include "progress.h"

#include <cloche/fork.h>
#include <cloche/state.h>
#include <stdio.h>
#include <string.h>

struct fork_options {
	cloche_fork_options o;
	cloche_secrets *secrets;
	struct progress progress;
	bool json;
	json_t *all;
	int status;
};

static cloche_secrets *fork_secrets(void *ctx)
{
	struct fork_options *o = ctx;

	if (!o->secrets)
		o->secrets = cloche_secrets_new();
	return o->secrets;
}

static void fork_done(void *ctx)
{
	cloche_secrets_free(((struct fork_options *)ctx)->secrets);
}

static int fork_set_secret(
	const struct option *option, void *at, const char *value, cloche_err *err)
{
	return cloche_secrets_set(fork_secrets(at), option->name, value, err);
}

static const struct option options[] = {
	{"name", 0, "NAME", "the name of the fork; several forks get NAME-1, NAME-2, ...",
		.at = offsetof(struct fork_options, o.name)},
	{"share", 0, NULL,
		"mount the directories of this machine that ID may write to, instead of copying\n"
		"their contents",
		.at = offsetof(struct fork_options, o.share)},
	{"secret", 0, "SPEC", "give a masked secret of ID again, as for \"cloche create\"",
		fork_set_secret},
	{"secret-file", 0, "SPEC", "the same, with the value from a file", fork_set_secret},
	{"aws-secret", 0, "SPEC", "the same for AWS credentials", fork_set_secret},
	{"json", 0, NULL, "print a list of objects instead of the ids",
		.at = offsetof(struct fork_options, json)},
	{0},
};

static bool on_fork(const cloche_instance *i, void *user)
{
	struct fork_options *o = user;
	bool ok;

	progress_end(&o->progress);
	if (o->json)
		ok = json_array_append_new(o->all, json_instance(i)) == 0;
	else
		ok = put_line(cloche_instance_id(i));
	if (!ok) {
		say("made sandbox %s", cloche_instance_id(i));
		o->status = EXIT_CLOCHE;
	}
	return ok;
}

static void say_made(const json_t *all)
{
	size_t i;
	json_t *one;

	json_array_foreach (all, i, one)
		say("made sandbox %s", json_string_value(json_object_get(one, "id")));
}

static int do_fork(struct fork_options *o, const struct operands *operands, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *instance = NULL;
	uint64_t n = 1;
	int r;

	if (operands->n < 1 || operands->n > 2)
		return wrong_usage(err, NULL, "fork: usage: cloche fork ID [N]");
	if (operands->n == 2 && (!read_number(operands->v[1], CLOCHE_FORKS_MAX, &n) || n == 0))
		return wrong_usage(err, NULL, "fork: N is a number from 1 to %d, not \"%s\"",
			CLOCHE_FORKS_MAX, operands->v[1]);
	o->o.count = (unsigned)n;
	o->o.secrets = o->secrets;
	o->o.progress = progress_show;
	o->o.progress_user = &o->progress;
	o->all = json_array();
	progress_begin(&o->progress);
	r = cloche_instance_open(operands->v[0], &instance, err);
	if (r == 0)
		r = cloche_instance_fork(instance, &o->o, on_fork, warn, o, err);
	progress_end(&o->progress);
	/* Forks that are complete stay even if a later one failed. */
	if (o->json && (r == 0 || json_array_size(o->all) > 0)) {
		if (!json_print(json_incref(o->all))) {
			o->status = EXIT_CLOCHE;
			say_made(o->all);
		}
	}
	json_decref(o->all);
	return r;
}

static int main_fork(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct fork_options *o = ctx;
	int r = do_fork(o, operands, err);

	return r < 0 ? r : o->status;
}

const struct command command_fork = {
	.name = "fork",
	.summary = "make copies of a sandbox: files, variables, storage",
	.synopsis = "[OPTIONS] ID [N]",
	.text = "Makes N (default 1) sandboxes like ID, with its files, variables and storage\n"
		"as they are now, and prints their ids. Processes in ID are paused meanwhile, and\n"
		"not copied. Directories of this machine that ID may write to are copied into\n"
		"the fork.\n"
		"\n"
		"  cloche fork dev 3 --name try\n"
		"  cloche exec try-1 -- make test",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct fork_options){.o = CLOCHE_FORK_INIT},
	.run = main_fork,
	.done = fork_done,
};

/* --- snapshots --- */

struct snapshot_options {
	bool json;
};

static const struct option snapshot_options[] = {
	{"json", 0, NULL, "list: print one JSON document",
		.at = offsetof(struct snapshot_options, json)},
	{0},
};

struct listing {
	const char *id;
	json_t *all; /* NULL: print them */
};

static bool list_snapshot(const char *log, uint64_t bytes, uint64_t modified_us, void *user)
{
	const struct listing *l = user;
	size_t n = strlen(l->id);
	char size[32];

	if (strncmp(log, l->id, n) != 0 || log[n] != '@')
		return true;
	if (l->all)
		return json_array_append_new(
			       l->all, json_pack("{s:s, s:s, s:I, s:I}", "name", log + n + 1, "log",
					       log, "bytes", (json_int_t)bytes, "modified_usec",
					       (json_int_t)modified_us)) == 0;
	format_size(bytes, size, sizeof(size));
	printf("%-30s  %9s  %s\n", log + n + 1, size, log);
	return true;
}

static int main_snapshot(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct snapshot_options *o = ctx;
	_cleanup_(instance_freep) cloche_instance *instance = NULL;
	int r;

	if (operands->n < 1 || operands->n > 2)
		return wrong_usage(err, NULL, "snapshot: usage: cloche snapshot ID [NAME]");
	if (operands->n == 2 && o->json)
		return wrong_usage(err, NULL, "snapshot: --json is for the list, without NAME");
	r = cloche_instance_open(operands->v[0], &instance, err);
	if (r == 0 && operands->n == 2) {
		r = cloche_instance_snapshot(instance, operands->v[1], warn, NULL, err);
	} else if (r == 0) {
		struct listing l = {cloche_instance_id(instance), o->json ? json_array() : NULL};

		r = cloche_oplog_list(list_snapshot, &l, err);
		if (r == 0 && o->json)
			r = json_print(l.all) ? 0 : EXIT_CLOCHE;
		else
			json_decref(l.all);
	}
	return r;
}

const struct command command_snapshot = {
	.name = "snapshot",
	.summary = "keep the present contents of a sandbox under a name",
	.synopsis = "[OPTIONS] ID [NAME]",
	.text = "Keeps the files, variables and storage of ID as they are now, as the operation\n"
		"log ID@NAME. Processes in ID are paused meanwhile. Without NAME, lists the\n"
		"snapshots of ID.\n"
		"\n"
		"  cloche snapshot dev before\n"
		"  cloche create --from dev@before\n"
		"  cloche log dev@before rm",
	.tables = {&(const struct option_table){"Options", snapshot_options}},
	.ctx = &(struct snapshot_options){0},
	.run = main_snapshot,
};
