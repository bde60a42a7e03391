/* SPDX-License-Identifier: Apache-2.0 */
/* Which provider makes the room: each way that the usual one and the others can fail. The providers
 * are the test's own; what is done with them is written down, in its order. */
#include "ipc/roomctl.h"
#include "provider/names.h"
#include "supervisor/supervisor.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

/* How a provider fails, if it does. */
enum fault {
	NO_PROGRAM, /* it is not installed */
	WORKS,
	NO_PROBE,  /* it cannot work here */
	NO_ROOM,   /* it could work here, and makes no room all the same */
	NO_OWNERS, /* it may work here, and the system refuses something */
	IN_DOUBT   /* it may work here, and makes no room for another reason */
};

enum { NAMES_N = 5 };
static const char *const names[NAMES_N] = {
	"native", "podman", "docker", PROVIDER_UNSANDBOXED, PROVIDER_LANDLOCK};
static const enum fault *faults; /* of each of them */
static bool leads;               /* its settings lead to another place */
static bool inside;              /* a sandbox, where the programs of one are */
static char done[256];

static void note(const struct provider *p, const char *what)
{
	size_t n = strlen(done);

	snprintf(done + n, sizeof(done) - n, "%s%s%s", n ? " " : "", p->name, what);
}

static enum fault fault_of(const struct provider *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(p->name, names[i]) == 0)
			return faults[i];
	return NO_PROGRAM;
}

static int probe(const struct provider *p, struct provider_about *ret, struct cloche_err *err)
{
	note(p, "?");
	if (fault_of(p) == NO_OWNERS || fault_of(p) == IN_DOUBT)
		snprintf(ret->doubt, sizeof(ret->doubt), "not everywhere");
	if (fault_of(p) != NO_PROBE)
		return 0;
	err_set(err, E_UNSUPPORTED, "no %s here", p->name);
	err_hint(err, "get %s", p->name);
	return -E_UNSUPPORTED;
}

static int create(struct supervisor *s, const struct provider *p, struct cloche_err *err)
{
	note(p, s->spec.place ? "@" : "!");
	if (leads && !s->spec.place) {
		choose_on_elsewhere(s, "there");
		return err_set(err, E_UNSUPPORTED, "%s is elsewhere", p->name);
	}
	if (fault_of(p) == WORKS)
		return 0;
	if (fault_of(p) == NO_ROOM || fault_of(p) == IN_DOUBT)
		return err_set(err, E_DENIED, "no room of %s", p->name);
	return err_set(err, E_SYSTEM, "%s fails", p->name);
}

static int ask_place(const struct provider *p, const char *place, int patience_sec,
	struct provider_asked **ret, struct cloche_err *err)
{
	return 0;
}

static const struct provider providers[] = {{.name = "native", .probe = probe},
	{.name = "podman", .probe = probe},
	{.name = "docker", .probe = probe, .ask_place = ask_place},
	{.name = PROVIDER_UNSANDBOXED, .probe = probe},
	{.name = PROVIDER_LANDLOCK, .probe = probe}};

/* Instead of the real ones (meson.build). */
const struct provider *__wrap_provider_find(struct str name, struct cloche_err *err);
int __wrap_access(const char *path, int mode);

const struct provider *__wrap_provider_find(struct str name, struct cloche_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(providers); i++)
		if (str_eq(name, str_from(providers[i].name)) && faults[i] != NO_PROGRAM)
			return &providers[i];
	err_set(err, E_NOT_FOUND, "not installed");
	return NULL;
}

int __wrap_access(const char *path, int mode)
{
	if (inside && strcmp(path, ROOMCTL_INIT_PATH) == 0)
		return 0;
	errno = ENOENT;
	return -1;
}

/* code 0: said is what the person is told of those that were passed over. */
static void check_choice(
	const char *name, const enum fault *how, const char *want, int code, const char *said)
{
	_cleanup_(freep) char *copy = strdup(name);
	struct supervisor s = {.start.provider = copy};
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(copy != NULL);
	faults = how;
	done[0] = '\0';
	check_int(choose_provider(&s, create, &err), -code);
	check_z(done, want);
	check_z(code ? err.message : s.passed_over, said);
	check(code == 0 || s.passed_over == NULL);
	free(s.passed_over);
}

static void a_place_needs_a_provider_that_has_it(void)
{
	static const enum fault none[] = {WORKS, WORKS, WORKS, WORKS};
	static const struct {
		const char *name, *said;
		int code;
	} rows[] = {
		{"auto", "--place there: --provider has to say what makes rooms there", E_USAGE},
		{PROVIDER_AUTO_OR_NONE,
			"--place there: --provider has to say what makes rooms there", E_USAGE},
		{"native", "provider native makes rooms on this machine alone, not at there",
			E_UNSUPPORTED},
	};

	faults = none;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(freep) char *copy = strdup(rows[i].name), *place = strdup("there");
		struct supervisor s = {.start.provider = copy, .spec.place = place};
		struct cloche_err err = CLOCHE_ERR_INIT;

		done[0] = '\0';
		check_int(choose_provider(&s, create, &err), -rows[i].code);
		check_z(err.message, rows[i].said);
		check_z(done, "");
	}
}

static void one_that_leads_elsewhere_is_asked_for_a_room_there(void)
{
	static const enum fault none[] = {WORKS, WORKS, WORKS, WORKS};
	static const struct {
		const char *name;
		enum room_root root;
		bool keeps_home;
		int code;
		const char *said, *done;
	} rows[] = {
		{"docker", ROOM_ROOT_HOST, false, 0, "provider docker makes the sandbox at there",
			"docker! docker@"},
		{"docker", ROOM_ROOT_IMAGE, false, E_UNSUPPORTED,
			"provider docker makes rooms at there, where the images of this machine "
			"are not",
			"docker!"},
		{"docker", ROOM_ROOT_HOST, true, E_UNSUPPORTED,
			"provider docker makes rooms at there, and an agent that runs so keeps "
			"its home on this machine",
			"docker!"},
		{"podman", ROOM_ROOT_HOST, false, E_UNSUPPORTED,
			"provider podman makes rooms on this machine alone, not at there",
			"podman!"},
	};

	faults = none;
	leads = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(freep) char *copy = strdup(rows[i].name);
		struct supervisor s = {.start.provider = copy,
			.spec = {.root = rows[i].root, .keeps_home = rows[i].keeps_home}};
		struct cloche_err err = CLOCHE_ERR_INIT;

		done[0] = '\0';
		check_int(choose_provider(&s, create, &err), -rows[i].code);
		check_z(rows[i].code ? err.message : s.passed_over, rows[i].said);
		check_z(done, rows[i].done);
		free(s.passed_over);
		free(s.elsewhere);
		free(s.spec.place);
	}
	leads = false;
}

static void the_usual_one_is_just_tried(void)
{
	static const enum fault none[NAMES_N] = {WORKS, WORKS, WORKS, WORKS};

	check_choice("", none, "native!", 0, NULL);
	check_choice("auto", none, "native!", 0, NULL);
	check_choice(PROVIDER_AUTO_OR_NONE, none, "native!", 0, NULL);
}

static void others_come_in_their_order(void)
{
	static const enum fault one[NAMES_N] = {NO_PROBE, WORKS, WORKS, WORKS},
				two[NAMES_N] = {NO_PROBE, NO_PROBE, WORKS, WORKS},
				no_room[NAMES_N] = {NO_PROBE, NO_ROOM, WORKS, WORKS},
				missing[NAMES_N] = {NO_PROBE, NO_PROGRAM, WORKS, WORKS};

	check_choice("auto", one, "native! native? podman? podman!", 0,
		"provider podman makes the sandbox, as others do not work: native: native fails");
	check_choice("auto", two, "native! native? podman? docker? docker!", 0,
		"provider docker makes the sandbox, as others do not work: native: native fails; "
		"podman: no podman here");
	check_choice("auto", no_room, "native! native? podman? podman! docker? docker!", 0,
		"provider docker makes the sandbox, as others do not work: native: native fails; "
		"podman: no room of podman");
	check_choice("auto", missing, "native! native? docker? docker!", 0,
		"provider docker makes the sandbox, as others do not work: native: native fails");
}

/* What was asked for is at fault: whoever isolates less is not asked for the same. */
static void a_wish_is_not_passed_on(void)
{
	static const enum fault how[NAMES_N] = {NO_ROOM, WORKS, WORKS, WORKS},
				here[NAMES_N] = {NO_PROBE, WORKS, WORKS, WORKS},
				doubt[NAMES_N] = {IN_DOUBT, WORKS, WORKS, WORKS};

	check_choice("auto", doubt, "native! native?", E_DENIED, "no room of native");
	check_choice("auto", how, "native! native?", E_DENIED, "no room of native");
	check_choice(PROVIDER_AUTO_OR_NONE, how, "native! native?", E_DENIED, "no room of native");
	inside = true;
	check_choice("auto", here, "native! native?", E_SYSTEM, "native fails");
	check_choice(PROVIDER_AUTO_OR_NONE, here, "native! native?", E_SYSTEM, "native fails");
	inside = false;
}

static void none_works(void)
{
	static const enum fault all[NAMES_N] = {NO_PROBE, NO_PROBE, NO_PROBE, WORKS},
				alone[NAMES_N] = {NO_PROBE, NO_PROGRAM, NO_PROGRAM, WORKS};

	check_choice("auto", all, "native! native? podman? docker?", E_UNSUPPORTED,
		"no provider works here: native: native fails; podman: no podman here; docker: no "
		"docker here");
	check_choice("auto", alone, "native! native?", E_SYSTEM, "native fails");
}

/* An engine that works is no reason to go without it. */
static void none_makes_it(void)
{
	static const enum fault how[NAMES_N] = {NO_PROBE, NO_PROBE, NO_ROOM, WORKS};
	static const char said[] = "no provider makes this sandbox: native: native fails; podman: "
				   "no podman here; docker: no room of docker";

	check_choice("auto", how, "native! native? podman? docker? docker!", E_UNSUPPORTED, said);
	check_choice(PROVIDER_AUTO_OR_NONE, how, "native! native? podman? docker? docker!",
		E_UNSUPPORTED, said);
}

/* Only if the person allows it, and only if nothing else works. */
static void without_isolation(void)
{
	static const enum fault all[NAMES_N] = {NO_PROBE, NO_PROBE, NO_PROGRAM, WORKS},
				even_that[NAMES_N] = {NO_PROBE, NO_PROGRAM, NO_PROGRAM, NO_ROOM},
				owners[NAMES_N] = {NO_OWNERS, NO_PROGRAM, NO_PROGRAM, WORKS};

	check_choice(PROVIDER_AUTO_OR_NONE, owners, "native! native? subprocess!", 0,
		"provider subprocess makes the sandbox, as others do not work: native: native "
		"fails");
	check_choice(PROVIDER_AUTO_OR_NONE, all, "native! native? podman? subprocess!", 0,
		"provider subprocess makes the sandbox, as others do not work: native: native "
		"fails; podman: no podman here");
	check_choice(PROVIDER_AUTO_OR_NONE, even_that, "native! native? subprocess!", E_DENIED,
		"no room of subprocess");
}

/* Before nothing at all, and only where no higher wall can be had. */
static void low_walls(void)
{
	static const enum fault last[NAMES_N] = {NO_PROBE, NO_PROBE, NO_PROGRAM, WORKS, WORKS},
				engine[NAMES_N] = {NO_PROBE, NO_PROGRAM, NO_ROOM, WORKS, WORKS},
				lacking[NAMES_N] = {
					NO_PROBE, NO_PROGRAM, NO_PROGRAM, WORKS, NO_PROBE};
	static const char said[] = "provider landlock makes the sandbox, as others do not work: "
				   "native: native fails; podman: no podman here";

	check_choice("auto", last, "native! native? podman? landlock? landlock!", 0, said);
	check_choice(PROVIDER_AUTO_OR_NONE, last, "native! native? podman? landlock? landlock!", 0,
		said);
	check_choice("auto", engine, "native! native? docker? docker!", E_UNSUPPORTED,
		"no provider makes this sandbox: native: native fails; docker: no room of docker");
	check_choice(PROVIDER_AUTO_OR_NONE, lacking, "native! native? landlock? subprocess!", 0,
		"provider subprocess makes the sandbox, as others do not work: native: native "
		"fails; landlock: no landlock here");
}

static void a_named_one_is_the_only_one(void)
{
	static const enum fault none[NAMES_N] = {WORKS, WORKS, WORKS, WORKS},
				how[NAMES_N] = {WORKS, WORKS, NO_ROOM, WORKS},
				missing[NAMES_N] = {WORKS, NO_PROGRAM, WORKS, WORKS};

	check_choice("podman", none, "podman!", 0, NULL);
	check_choice("none", none, "subprocess!", 0, NULL);
	check_choice("docker", how, "docker!", E_DENIED, "no room of docker");
	check_choice("podman", missing, "", E_NOT_FOUND, "not installed");
}

int main(void)
{
	run_test(one_that_leads_elsewhere_is_asked_for_a_room_there);
	run_test(a_place_needs_a_provider_that_has_it);
	run_test(the_usual_one_is_just_tried);
	run_test(others_come_in_their_order);
	run_test(a_wish_is_not_passed_on);
	run_test(none_works);
	run_test(none_makes_it);
	run_test(without_isolation);
	run_test(low_walls);
	run_test(a_named_one_is_the_only_one);
	return tap_done();
}
