/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: findings are shown once. Several of them would fill the screen on which a
 * full-screen program has just ended, so on a terminal they are one line, which every command
 * repeats until "cloche planted" has shown them. */
#include "planted.h"
#include "cli.h"

#include <cloche/planted.h>
#include <unistd.h>

struct shown {
	json_t *list;
	bool others;
	bool quiet; /* only count and list them */
	size_t n;
};

static void planted_list_one(json_t *list, const cloche_planted *p)
{
	json_array_append_new(list,
		json_pack("{s:s?, s:s?, s:s?, s:s?, s:b}", "path", p->path, "what", p->what,
			"set_aside", p->set_aside, "restore", p->restore, "notice", p->notice));
}

static void planted_show(const cloche_planted *p, void *user)
{
	struct shown *s = user;

	s->n++;
	if (s->list)
		planted_list_one(s->list, p);
	if (s->quiet)
		return;
	if (p->set_aside)
		say("%s%sset aside %s, %s; to put it back: %s", s->others ? p->sandbox : "",
			s->others ? ": " : "", p->quoted, p->what, p->restore);
	else if (p->notice)
		say("%s%s%s", s->others ? p->sandbox : "", s->others ? ": " : "", p->what);
	else
		say("%s%slook at this before you use it: %s%s%s", s->others ? p->sandbox : "",
			s->others ? ": " : "", p->quoted, p->quoted[0] ? ", " : "", p->what);
}

/* Show what there is of one sandbox or, with NULL, of those that nobody waits for. */
static void planted_tell(const char *sandbox, struct shown *s)
{
	struct shown many = {.list = s->list, .quiet = true};

	if (isatty(STDERR_FILENO) && cloche_planted_look(sandbox, planted_show, &many, NULL) == 0 &&
		many.n > 1) {
		say("%zu things that %s left were set aside, or are to be looked at before you use "
		    "them: cloche planted%s%s",
			many.n, sandbox ? "the sandbox" : "sandboxes", sandbox ? " " : "",
			sandbox ? sandbox : "");
		return;
	}
	if (s->list)
		json_array_clear(s->list);
	(void)cloche_planted_take(sandbox, planted_show, s, NULL);
}

json_t *planted_say(const char *sandbox)
{
	struct shown s = {.list = json_array()};

	if (sandbox[0])
		planted_tell(sandbox, &s);
	return s.list;
}

void planted_say_others(void)
{
	planted_tell(NULL, &(struct shown){.others = true});
}

/* Findings outlive their sandbox, which can then only be named by its whole id. */
static int planted_take(const char *given, struct shown *s, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r = cloche_instance_open(given, &i, err);

	if (r < 0)
		return cloche_planted_take(given, planted_show, s, NULL) == 0 ? 0 : r;
	return cloche_planted_take(cloche_instance_id(i), planted_show, s, err);
}

static int main_planted(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct shown s = {.others = operands->n == 0};
	int r;

	if (operands->n > 1)
		return wrong_usage(err, "without an id it shows those of all sandboxes",
			"planted: one sandbox at a time");
	r = operands->n ? planted_take(operands->v[0], &s, err)
			: cloche_planted_take(NULL, planted_show, &s, err);
	if (r == 0 && s.n == 0)
		say("nothing that sandboxes left is to be looked at");
	return r;
}

const struct command command_planted = {
	.name = "planted",
	.summary = "show what sandboxes left that this machine would run or obey",
	.synopsis = "[ID]",
	.text = "A command that ends on a terminal says in one line that there is more than one\n"
		"such thing. This shows each, what it is, and how to put back what was set\n"
		"aside; then they are forgotten. Of a sandbox that is gone, ID is the whole id,\n"
		"as that line has it.",
	.run = main_planted,
};
