/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"
#include "log.h"

#define OF_A_COMMAND "this belongs to a command: cloche exec ID -t -- COMMAND"
static const struct option from_options[] = {
	{"from", 0, "LOG|ID",
		"begin with what a log says: a file, or the log of a sandbox that was recorded",
		.at = offsetof(struct sandbox_options, from)},
	{"to", 0, "N|start", "with --from: end with entry N; start: before the first command",
		.at = offsetof(struct sandbox_options, to)},
	{"tty", 't', .instead = OF_A_COMMAND},
	{"no-tty", 'T', .instead = OF_A_COMMAND},
	{"interactive", 'i', .instead = OF_A_COMMAND},
	{"network-log-live", .instead = "nobody would see it: use --network-log FILE"},
	{0},
};

static int make_from(
	const struct sandbox_options *o, cloche_oplog *log, cloche_instance **ret, cloche_err *err)
{
	cloche_replayed done;
	uint64_t last = 0;
	int r = read_last(log, o->to, &last, err);

	if (r == 0)
		r = cloche_instance_create_from(o->sb, log, last, warn, NULL, &done, ret, err);
	if (r == 0)
		tell_unknown(&done);
	return r;
}

static int create_make(struct sandbox_options *o, cloche_instance **ret, cloche_err *err)
{
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	int r = o->from ? open_log(o->from, &log, err) : 0;

	if (r == 0 && o->to && !log)
		r = wrong_usage(err, NULL, "--to needs --from");
	if (r < 0)
		return r;
	return log ? make_from(o, log, ret, err)
		   : cloche_instance_create(o->sb, warn, NULL, ret, err);
}

static int create_and_print(struct sandbox_options *o, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r = create_make(o, &i, err);
	bool ok;

	if (r == 0 && o->json)
		r = cloche_instance_refresh(i, err);
	if (r < 0)
		return r;
	if (o->json)
		ok = json_print(json_instance(i));
	else
		ok = put_line(cloche_instance_id(i));
	if (!ok)
		say("made sandbox %s", cloche_instance_id(i));
	return ok ? 0 : EXIT_CLOCHE;
}

static int main_create(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct sandbox_options *o = ctx;
	int r;

	if (operands->n > 0)
		return wrong_usage(err, "make it first, then: cloche exec ID -- COMMAND",
			"create: takes no command (\"%s\")", operands->v[0]);
	r = sandbox_options_finish(o, NULL, err);
	return r < 0 ? r : create_and_print(o, err);
}

const struct command command_create = {
	.name = "create",
	.summary = "make a sandbox that stays, for exec and others",
	.synopsis = "[OPTIONS]",
	.text = "Makes a sandbox that lives until \"cloche stop\" or its --ttl, and prints its "
		"id.\n"
		"All commands take the id, an unambiguous beginning of the id, or the name.\n"
		"\n"
		"  ID=$(cloche create --name dev --memory 2g)\n"
		"  cloche exec dev -- make test\n"
		"  cloche exec dev -t -- bash\n"
		"  cloche stop dev && cloche rm dev\n"
		"\n"
		"--timeout is for each command in it, --output-limit for the log of each command.",
	.tables = {&sandbox_option_table, &lasting_option_table,
		&(const struct option_table){"To begin with a log", from_options},
		&sandbox_command_table},
	.ctx = &(struct sandbox_options){0},
	.run = main_create,
	.done = sandbox_options_done,
};
