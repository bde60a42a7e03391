/* SPDX-License-Identifier: Apache-2.0 */
#include "planted.h"
#include "cli.h"

#include <cloche/planted.h>

struct shown {
	json_t *list;
	bool others;
};

static void planted_show(const cloche_planted *p, void *user)
{
	const struct shown *s = user;

	if (s->list)
		json_array_append_new(
			s->list, json_pack("{s:s?, s:s?, s:s?, s:s?, s:b}", "path", p->path, "what",
					 p->what, "set_aside", p->set_aside, "restore", p->restore,
					 "notice", p->notice));
	if (p->set_aside)
		say("%s%sset aside %s, %s; to put it back: %s", s->others ? p->sandbox : "",
			s->others ? ": " : "", p->quoted, p->what, p->restore);
	else if (p->notice)
		say("%s%s%s", s->others ? p->sandbox : "", s->others ? ": " : "", p->what);
	else
		say("%s%slook at this before you use it: %s%s%s", s->others ? p->sandbox : "",
			s->others ? ": " : "", p->quoted, p->quoted[0] ? ", " : "", p->what);
}

json_t *planted_say(const char *sandbox)
{
	struct shown s = {.list = json_array()};

	if (sandbox[0])
		(void)cloche_planted_take(sandbox, planted_show, &s, NULL);
	return s.list;
}

void planted_say_others(void)
{
	struct shown s = {.others = true};

	(void)cloche_planted_take(NULL, planted_show, &s, NULL);
}
