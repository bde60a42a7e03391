/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"
#include "planted.h"

#include <stdio.h>

struct sync_options {
	bool json;
};

static const struct option sync_options[] = {
	{"json", 0, NULL, "print one object for each sandbox, a line each",
		.at = offsetof(struct sync_options, json)},
	{0},
};

/* Bytes are those that were read or sent: some are looked at, and are as they were. */
static bool sync_print_side(const char *name, uint64_t n, uint64_t bytes, uint64_t removed)
{
	char size[32], line[200];

	format_size(bytes, size, sizeof(size));
	snprintf(line, sizeof(line), "%s: %llu new or changed (%s), %llu removed", name,
		(unsigned long long)n, size, (unsigned long long)removed);
	return put_line(line);
}

static bool sync_print(const cloche_synced *s)
{
	return sync_print_side("here", s->came, s->came_bytes, s->removed_here) &&
	       sync_print_side("there", s->sent, s->sent_bytes, s->removed_there);
}

static json_t *sync_document(const char *id, const cloche_synced *s, json_t *planted)
{
	return json_pack("{s:s, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}, s:I, s:O?}", "id", id, "here",
		"entries", (json_int_t)s->came, "bytes", (json_int_t)s->came_bytes, "removed",
		(json_int_t)s->removed_here, "there", "entries", (json_int_t)s->sent, "bytes",
		(json_int_t)s->sent_bytes, "removed", (json_int_t)s->removed_there, "kept_twice",
		(json_int_t)s->kept_twice, "planted", planted);
}

static void sync_say(const char *text, void *user)
{
	say("%s", text);
}

static int sync_one(cloche_instance *i, void *user)
{
	const struct sync_options *o = user;
	const char *id = cloche_instance_id(i);
	cloche_synced done = {.size = sizeof(done)};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = cloche_instance_sync(i, sync_say, NULL, &done, &err);
	json_t *planted = planted_say(id);
	bool ok = true;

	if (r == 0)
		ok = o->json ? json_print_dense(sync_document(id, &done, planted))
			     : sync_print(&done);
	json_decref(planted);
	if (r < 0)
		return complain(&err);
	return ok ? 0 : EXIT_CLOCHE;
}

static int main_sync(void *ctx, const struct operands *ids, cloche_err *err)
{
	return each_instance(&command_sync, ids, sync_one, ctx, err);
}

const struct command command_sync = {
	.name = "sync",
	.summary = "copy files between here and sandboxes on other machines",
	.synopsis = "[OPTIONS] ID...",
	.text = "Copies both ways what changed in the mounts of a sandbox on another machine,\n"
		"which goes on: first what changed there comes here, then what changed here goes\n"
		"there. Without it, files come back when the sandbox ends.",
	.tables = {&(const struct option_table){"Options", sync_options}},
	.ctx = &(struct sync_options){0},
	.run = main_sync,
};
