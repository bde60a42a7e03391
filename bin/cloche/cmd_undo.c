/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche undo`: the files as they were before a run. All names are the run's own. */
#include "cli.h"
#include "json_out.h"
#include "log.h"
#include "names.h"
#include "project.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_KEPT = 1 };

struct undo_options {
	bool yes, json;
};

/* What one pass over the names is for, and what it found. */
struct undo_pass {
	const struct undo_options *o;
	bool is_result; /* it was done */
	bool is_whole;  /* the record has an end */
	const char *directory;
	size_t planned, done, kept;
	size_t of_git; /* files of git's own that were not printed */
	bool failed;
};

static void undo_freep(cloche_undo **undo)
{
	cloche_undo_free(*undo);
}

static bool undo_print_json(const cloche_undo_step *step)
{
	static const char *const states[] = {"planned", "done", "kept"};
	char kind[2] = {(char)step->kind, 0};
	json_t *o = json_pack("{s:s, s:s, s:o}", "state", states[step->state], "kind", kind,
		"directory", json_bytes(step->directory, strlen(step->directory)));

	name_to_json(o, "name", step->name, step->name_length);
	json_object_set_new(
		o, "why", step->why ? json_bytes(step->why, strlen(step->why)) : json_null());
	if (step->mode_only)
		json_object_set_new(o, "mode_only", json_true());
	if (step->unified)
		json_object_set_new(o, "unified", json_bytes(step->unified, strlen(step->unified)));
	return json_print_line(o);
}

/* Nobody reads how git keeps a commit: one line says how much of it there was. */
static void undo_print_git(struct undo_pass *p)
{
	if (p->of_git > 0)
		printf("C .git  (%zu of git's own files)\n", p->of_git);
	p->of_git = 0;
	(void)flush_output();
}

static bool undo_is_of_git(const cloche_undo_step *step)
{
	return !step->why && strncmp(step->name, ".git/", 5) == 0;
}

/* A directory is named once, above what is in it. */
static void undo_print_directory(struct undo_pass *p, const char *directory)
{
	if (p->directory && strcmp(p->directory, directory) == 0)
		return;
	p->directory = directory;
	printf("in ");
	name_print(directory, strlen(directory));
	printf(":\n");
}

static bool undo_print(struct undo_pass *p, const cloche_undo_step *step)
{
	if (p->of_git > 0 && !undo_is_of_git(step))
		undo_print_git(p);
	undo_print_directory(p, step->directory);
	if (undo_is_of_git(step)) {
		p->of_git++;
		return true;
	}
	printf("%c ", step->why ? '-' : (int)step->kind);
	name_print(step->name, step->name_length);
	if (step->why)
		printf("%sis kept: %s", *step->name ? "  " : "all of it ", step->why);
	else if (step->mode_only)
		printf("  (only its mode)");
	putchar('\n');
	return flush_output() && (!step->unified || put_shown(STDOUT_FILENO, step->unified));
}

/* What is kept is listed at the end once more. With --yes, JSON tells only of what was done. */
static bool undo_on_step(const cloche_undo_step *step, void *user)
{
	struct undo_pass *p = user;

	p->planned += step->state == CLOCHE_UNDO_PLANNED;
	p->done += step->state == CLOCHE_UNDO_DONE;
	p->kept += step->state == CLOCHE_UNDO_KEPT;
	if (p->o->json && (p->is_result || !p->o->yes))
		p->failed = !undo_print_json(step);
	else if (!p->o->json && (!p->is_result || step->why))
		p->failed = !undo_print(p, step);
	return !p->failed;
}

/* What changed after the end of a record is not known, so it is not all as it was. */
static int undo_status(const struct undo_pass *p)
{
	return p->kept || !p->is_whole ? EXIT_KEPT : 0;
}

static int undo_run(cloche_undo *undo, const struct undo_pass *shown, cloche_err *err)
{
	const struct undo_options *o = shown->o;
	struct undo_pass p = {.o = o, .is_result = true, .is_whole = shown->is_whole};
	int r = cloche_undo_run(undo, CLOCHE_UNDO_DO, undo_on_step, &p, err);

	if (r < 0 || p.failed)
		return r < 0 ? r : EXIT_CLOCHE;
	if (!o->json)
		say("%zu put back, %zu kept", p.done, p.kept);
	return undo_status(&p);
}

/* There is nothing to do. */
static int undo_end(cloche_undo *undo, struct undo_pass *p, cloche_err *err)
{
	/* JSON with --yes has told of nothing yet. */
	if (p->o->json && p->o->yes && p->kept)
		return undo_run(undo, p, err);
	if (!p->o->json)
		say(p->kept ? "nothing else is to be put back" : "there is nothing to put back");
	return undo_status(p);
}

static int undo_ask(const struct undo_pass *p, cloche_err *err)
{
	char question[64];

	if (p->o->yes)
		return 0;
	if (p->o->json || !project_can_ask())
		return wrong_usage(err, "--yes does it without a question",
			"undo: nothing was changed, because there is nobody to ask");
	snprintf(question, sizeof(question),
		p->planned == 1 ? "put this back?" : "put these %zu back?", p->planned);
	return project_ask(question) ? 0 : EXIT_KEPT;
}

static int main_undo(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct undo_options *o = ctx;
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	_cleanup_(undo_freep) cloche_undo *undo = NULL;
	struct undo_pass p = {.o = o};
	int r;

	if (operands->n != 1)
		return wrong_usage(err, "\"cloche log\" lists what was recorded",
			"undo: name one run by its id");
	r = cloche_oplog_open(operands->v[0], &log, err);
	if (r == 0)
		r = cloche_undo_open(log, &undo, &p.is_whole, err);
	if (r == 0)
		r = cloche_undo_run(undo, CLOCHE_UNDO_SHOW, undo_on_step, &p, err);
	undo_print_git(&p);
	if (r < 0 || p.failed)
		return r < 0 ? r : EXIT_CLOCHE;
	if (!p.is_whole)
		say("warning: the record of this run has no end, so it lacks what changed last; "
		    "\"cloche create --from %s --to start\" shows what was there before",
			operands->v[0]);
	if (p.planned == 0)
		return undo_end(undo, &p, err);
	r = undo_ask(&p, err);
	return r == 0 ? undo_run(undo, &p, err) : r;
}

static const struct option undo_option_rows[] = {
	{"yes", 'y', NULL, "do not ask", .at = offsetof(struct undo_options, yes)},
	{"json", 0, NULL, "print an object for each name, a line each",
		.at = offsetof(struct undo_options, json)},
	{0},
};

const struct command command_undo = {
	.name = "undo",
	.summary = "put files back as they were before a recorded run",
	.synopsis = "[--yes] [--json] ID",
	.text = "Puts the workspace back as it was before the first command of a run with\n"
		"--record full, after it has shown the differences and asked. What somebody has\n"
		"changed since the run stays as it is, and so does what is not on record: both\n"
		"are named, and the exit status is 1 then.\n"
		"\n"
		"  cloche log              lists the runs that were recorded\n"
		"  cloche undo ID",
	.tables = {&(const struct option_table){"Options", undo_option_rows}},
	.ctx = &(struct undo_options){0},
	.run = main_undo,
};
