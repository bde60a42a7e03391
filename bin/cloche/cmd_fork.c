/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "files_session.h"
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

static int set_secret(void *ctx, const char *value, cloche_err *err)
{
	return cloche_secrets_add_from_env(((struct fork_options *)ctx)->secrets, value, err);
}

static int set_secret_file(void *ctx, const char *value, cloche_err *err)
{
	return cloche_secrets_add_from_file(((struct fork_options *)ctx)->secrets, value, err);
}

static int set_aws_secret(void *ctx, const char *value, cloche_err *err)
{
	return cloche_secrets_add_aws_from_env(((struct fork_options *)ctx)->secrets, value, err);
}

static const struct option options[] = {
	{"name", 0, "NAME", "the name of the fork; several forks get NAME-1, NAME-2, ...",
		.at = offsetof(struct fork_options, o.name)},
	{"share", 0, NULL,
		"mount the directories of this machine that ID may write to, instead of copying\n"
		"their contents",
		.at = offsetof(struct fork_options, o.share)},
	{"secret", 0, "SPEC", "give a masked secret of ID again, as for \"cloche create\"",
		set_secret},
	{"secret-file", 0, "SPEC", "the same, with the value from a file", set_secret_file},
	{"aws-secret", 0, "SPEC", "the same for AWS credentials", set_aws_secret},
	{"json", 0, NULL, "print a list of objects instead of the ids",
		.at = offsetof(struct fork_options, json)},
};
static const struct option_table option_table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

static bool on_fork(const cloche_instance *i, void *user)
{
	struct fork_options *o = user;
	bool ok;

	progress_end(&o->progress);
	if (o->json)
		ok = json_array_append_new(
			     o->all, json_pack("{s:s, s:s, s:s, s:s, s:s}", "id",
					     cloche_instance_id(i), "name", cloche_instance_name(i),
					     "provider", cloche_instance_provider(i), "isolation",
					     cloche_instance_isolation(i), "state",
					     cloche_instance_state_name(i))) == 0;
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
	cloche_instance *instance = NULL;
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
	cloche_instance_free(instance);
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

static int main_fork(int argc, char **argv)
{
	struct fork_options o = {.secrets = cloche_secrets_new()};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&command_fork, &o, argc, argv, &operands, &err);

	if (r == 0 && !operands.help)
		r = do_fork(&o, &operands, &err);
	cloche_secrets_free(o.secrets);
	return r < 0 ? complain(&err) : r ? r : o.status;
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
	.tables = {&option_table},
	.run = main_fork,
};

/* --- snapshots --- */

struct snapshot_options {
	bool json;
};

static const struct option snapshot_options[] = {
	{"json", 0, NULL, "list: print one JSON document",
		.at = offsetof(struct snapshot_options, json)},
};
static const struct option_table snapshot_table = {
	.options = snapshot_options, .n = 1, .title = "Options"};

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

static int do_snapshot(
	const struct snapshot_options *o, const struct operands *operands, cloche_err *err)
{
	cloche_instance *instance = NULL;
	int r;

	if (operands->n < 1 || operands->n > 2)
		return wrong_usage(err, NULL, "snapshot: usage: cloche snapshot ID [NAME]");
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
	cloche_instance_free(instance);
	return r;
}

static int main_snapshot(int argc, char **argv)
{
	struct snapshot_options o = {0};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&command_snapshot, &o, argc, argv, &operands, &err);

	if (r == 0 && !operands.help)
		r = do_snapshot(&o, &operands, &err);
	return r < 0 ? complain(&err) : r;
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
	.tables = {&snapshot_table},
	.run = main_snapshot,
};
