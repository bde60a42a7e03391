/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"

#include <cloche/doctor.h>
#include <stdio.h>
#include <unistd.h>

struct doctor {
	bool json, colour;
	json_t *checks;
	bool lacks; /* something that native needs */
};

static const struct option options[] = {
	{"json", 0, NULL, "print one JSON document", .at = offsetof(struct doctor, json)},
	{0},
};

static const char *const words[] = {
	[CLOCHE_CHECK_OK] = "ok",
	[CLOCHE_CHECK_DEGRADED] = "degraded",
	[CLOCHE_CHECK_MISSING] = "missing",
};
static const char *const colours[] = {
	[CLOCHE_CHECK_OK] = "\033[32m",
	[CLOCHE_CHECK_DEGRADED] = "\033[33m",
	[CLOCHE_CHECK_MISSING] = "\033[31m",
};

static void doctor_show(const cloche_check *check, void *user)
{
	struct doctor *d = user;

	d->lacks |= check->state == CLOCHE_CHECK_MISSING;
	if (d->json) {
		json_array_append_new(
			d->checks, json_pack("{s:s, s:s, s:s, s:s}", "name", check->name, "state",
					   words[check->state], "detail", check->detail, "advice",
					   check->advice));
		return;
	}
	printf("%s%-9s%s %-24s %s\n", d->colour ? colours[check->state] : "", words[check->state],
		d->colour ? "\033[0m" : "", check->name, check->detail);
	if (check->advice[0])
		printf("%*s%s\n", 35, "", check->advice);
}

static int main_doctor(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct doctor *d = ctx;
	int r;

	d->colour = isatty(STDOUT_FILENO);
	d->checks = json_array();
	r = cloche_doctor(doctor_show, d, err);
	if (r >= 0 && d->json)
		json_print(json_pack("{s:b, s:O}", "ok", r == 0, "checks", d->checks));
	else if (r >= 0)
		printf("%s\n", r != 0 ? "no sandbox can be made here: see what is missing above"
			       : d->lacks
				       ? "only provider landlock makes a sandbox here: see what is "
					 "missing above"
				       : "a sandbox can be made here");
	json_decref(d->checks);
	return r;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "say what works on this machine, what does not, and what to do",
	.synopsis = "[--json]",
	.text = "Tries every feature that a sandbox needs. If one does not work, says exactly\n"
		"what is in the way. The exit status is 0 if a sandbox can be made, else 1.",
	.tables = {&(const struct option_table){"Options", options}},
	.no_operands = true,
	.ctx = &(struct doctor){0},
	.run = main_doctor,
};
