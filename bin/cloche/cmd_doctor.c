/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "config.h"
#include "json_out.h"

#include <cloche/doctor.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct doctor {
	const char *provider, *place;
	bool json, colour;
	json_t *checks;
	bool lacks;   /* something that native needs */
	bool unknown; /* whether something works */
};

static const struct option options[] = {
	{"provider", 0, "NAME", "with --place: who makes rooms there",
		.at = offsetof(struct doctor, provider)},
	{"place", 0, "WHERE", "examine that place instead of this machine",
		.at = offsetof(struct doctor, place)},
	{"json", 0, NULL, "print one JSON document", .at = offsetof(struct doctor, json)},
	{0},
};

static const char *const words[] = {
	[CLOCHE_CHECK_OK] = "ok",
	[CLOCHE_CHECK_DEGRADED] = "degraded",
	[CLOCHE_CHECK_MISSING] = "missing",
	[CLOCHE_CHECK_UNKNOWN] = "unknown",
};
static const char *const colours[] = {
	[CLOCHE_CHECK_OK] = "\033[32m",
	[CLOCHE_CHECK_DEGRADED] = "\033[33m",
	[CLOCHE_CHECK_MISSING] = "\033[31m",
	[CLOCHE_CHECK_UNKNOWN] = "\033[33m",
};

/* A path may be any bytes. */
static json_t *doctor_text(const char *text)
{
	return json_bytes(text, strlen(text));
}

static void doctor_show(const cloche_check *check, void *user)
{
	struct doctor *d = user;

	d->lacks |= check->state == CLOCHE_CHECK_MISSING;
	d->unknown |= check->state == CLOCHE_CHECK_UNKNOWN;
	if (d->json) {
		json_array_append_new(d->checks,
			json_pack("{s:s, s:s, s:o, s:o}", "name", check->name, "state",
				words[check->state], "detail", doctor_text(check->detail), "advice",
				doctor_text(check->advice)));
		return;
	}
	printf("%s%-9s%s %-24s %s\n", d->colour ? colours[check->state] : "", words[check->state],
		d->colour ? "\033[0m" : "", check->name, check->detail);
	if (check->advice[0])
		printf("%*s%s\n", 35, "", check->advice);
}

static int doctor_check_options(const struct doctor *d, cloche_err *err)
{
	if (d->place && !d->provider)
		return wrong_usage(err, "--provider ssh reaches places by ssh",
			"--place %s: --provider has to say what makes rooms there", d->place);
	if (d->provider && !d->place)
		return wrong_usage(err,
			"without both, doctor is about this machine; \"cloche status\" says "
			"which providers work",
			"--provider %s: --place has to say where", d->provider);
	return 0;
}

/* Most machines on which something is missing are containers and runners: say where it stands what
 * these have to allow. */
static void doctor_sum_here(const struct doctor *d, int r)
{
	static const char page[] = CLOCHE_DOCDIR "/ci.md";

	if (r == 0 && !d->lacks)
		printf("a sandbox can be made here\n");
	else
		printf("%s: see what is missing above, and %s\n",
			r == 0 ? "only provider landlock makes a sandbox here"
			       : "no sandbox can be made here",
			access(page, R_OK) == 0 ? page : "docs/ci.md in the source of cloche");
}

static void doctor_sum_there(const struct doctor *d, int r)
{
	puts(r != 0          ? "no sandbox can be made there: see what is missing above"
		: d->unknown ? "perhaps a sandbox can be made there: see what is unknown above"
			     : "a sandbox can be made there");
}

static int main_doctor(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct doctor *d = ctx;
	int r = doctor_check_options(d, err);

	if (r < 0)
		return r;
	d->colour = isatty(STDOUT_FILENO);
	d->checks = json_array();
	r = cloche_doctor(d->provider, d->place, doctor_show, d, err);
	if (r >= 0 && d->json)
		json_print(json_pack("{s:b, s:O}", "ok", r == 0, "checks", d->checks));
	else if (r >= 0)
		(d->place ? doctor_sum_there : doctor_sum_here)(d, r);
	json_decref(d->checks);
	return r;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "say what works on this machine, what does not, and what to do",
	.synopsis = "[--provider NAME --place WHERE] [--json]",
	.text = "Tries every feature that a sandbox needs. If one does not work, says exactly\n"
		"what is in the way. With --place, does so on the machine where that provider\n"
		"makes rooms. The exit status is 0 if a sandbox can be made, else 1.",
	.tables = {&(const struct option_table){"Options", options}},
	.no_operands = true,
	.ctx = &(struct doctor){0},
	.run = main_doctor,
};
