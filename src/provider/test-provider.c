/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"
#include "provider/limit.h"
#include "provider/names.h"
#include "tap.h"

#include <stdlib.h>

static struct cloche_err err;

static void every_name_has_its_provider(void)
{
	static const char *const none[] = {"auto", "", "nativ", "srt", "../native", "/etc/passwd"};
	size_t i;

	for (i = 0; provider_name_at(i); i++) {
		const char *name = provider_name_at(i);
		const struct provider *p = provider_find(str_from(name), &err);

		/* Programs may not be there. */
		check(p != NULL || (i > 0 && err.code == E_NOT_FOUND));
		check_z(p ? p->name : name, name);
		check(!p || (p->path != NULL) == (i > 0 && provider_makes_room(name)));
		check(p == provider_find(str_from(name), &err));
	}
	for (i = 0; provider_auto_at(i); i++)
		check(provider_is_auto(provider_auto_at(i)));
	check_z(provider_auto_at(i - 1), "landlock");
	check(!provider_is_auto("subprocess") && !provider_is_auto("nerdctl"));
	for (i = 0; i < ARRAY_SIZE(none); i++) {
		err_clear(&err);
		check(provider_find(str_from(none[i]), &err) == NULL);
		check_int(err.code, E_NOT_FOUND);
	}
}

/* That the tables are long enough, the compiler knows. */
static void each_provider_answers_for_each_limit(void)
{
	static const struct provider *const providers[] = {
		&native_provider, &program_provider, &landlock_provider, &subprocess_provider};

	for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
		unsigned times[LIMITS_N] = {0};

		for (size_t k = 0; k < LIMITS_N; k++) {
			const struct limit_way *way = &providers[i]->limits[k];

			times[way->limit]++;
			check(way->means != LIMIT_REFUSED || way->text);
			check(way->means != LIMIT_BY_MAKER || way->word);
		}
		for (size_t k = 0; k < LIMITS_N; k++)
			check_int(times[k], 1);
	}
}

static void what_is_not_enforced_is_refused_or_said(void)
{
	struct room_limits l = {
		.memory_bytes = 1, .cpus_milli = 2, .pids = 3, .cpus_optional = true};
	struct room room;

	room_init(&room, &native_provider);
	check_int(limit_value(&l, LIMIT_memory_bytes), 1);
	check_int(limit_value(&l, LIMIT_pids), 3);
	err_clear(&err);
	check_int(limit_lacks(&room, &l, LIMIT_memory_bytes, "why", &err), -E_LIMITS_UNAVAILABLE);
	check_z(err.message, "the memory limit cannot be enforced: why");
	check(strstr(err.hint, "leave --memory out") != NULL);
	check_int(room.unenforced_n, 0);
	check_int(limit_lacks(&room, &l, LIMIT_cpus_milli, "why", &err), 0);
	check_z(room.unenforced[0], "the cpus limit: why");
	l.best_effort = true;
	check_int(limit_lacks(&room, &l, LIMIT_memory_bytes, "why", &err), 0);
	check_int(room.unenforced_n, 2);
	room_done(&room);
}

static void aliases_are_resolved(void)
{
	static const struct {
		const char *named, *name;
	} rows[] = {{"auto", "auto"}, {"native", "native"}, {"podman", "podman"},
		{"none", "subprocess"}, {"local", "subprocess"}, {"landlock", "landlock"},
		{"auto+subprocess", "auto+subprocess"}, {"srt", "native"}, {"e2b", "e2b"},
		{"cloudflare", "cloudflare"}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = "", *chosen = "";

		check_int(provider_name_find(rows[i].named, &name, &err), 0);
		check_z(name, rows[i].name);
		check_int(provider_name_choose(rows[i].named, &chosen, &err), 0);
		check_z(chosen, rows[i].name);
	}
}

static void unknown_names_get_the_list(void)
{
	static const char *const unknown[] = {
		"", "Native", "native ", "runc", "./x", "/no/such", "-x"};
	const char *name = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		check_int(provider_name_find(unknown[i], &name, &err), -E_USAGE);
		check(strstr(err.message, "it is auto or native") != NULL);
		check(strstr(err.message, " or srt") != NULL);
		check_int(provider_name_choose(unknown[i], &name, &err), -E_USAGE);
	}
	check(name == NULL);
}

/* Somebody's own program: by its path, in a directory of his, or registered. */
static void programs_are_found(void)
{
	const char *name = NULL;

	check_int(provider_name_choose("/bin/sh", &name, &err), 0);
	check_z(name, "/bin/sh");
	check_int(provider_name_register("mine", "bin/sh", &err), -E_USAGE);
	check_int(provider_name_register("native", "/bin/sh", &err), -E_USAGE);
	check_int(provider_name_register("auto", "/bin/sh", &err), -E_USAGE);
	check_int(provider_name_register("Mine", "/bin/sh", &err), -E_USAGE);
	check_int(provider_name_register("mine", "/bin/sh", &err), 0);
	check_int(provider_name_choose("mine", &name, &err), 0);
	check_z(name, "/bin/sh");
	check_int(provider_name_register("mine", "/no/such", &err), 0);
	check_int(provider_name_find("mine", &name, &err), -E_USAGE);
	/* An alias is a name like any other. */
	check_int(provider_name_register("srt", "/bin/true", &err), 0);
	check_int(provider_name_choose("srt", &name, &err), 0);
	check_z(name, "/bin/true");
}

static void others_are_listed(void)
{
	_cleanup_(strv_freep) char **names = NULL;

	/* Registered above, the second one over an alias. */
	unsetenv("CLOCHE_PROVIDER_PATH");
	check_int(provider_names_add_others(&names), 0);
	check_int((int)strv_count(names), 2);
	check_z(names[0], "mine");
	check_z(names[1], "srt");
	check_int(provider_names_add_others(&names), 0);
	check_int((int)strv_count(names), 2);
}

/* What a provider lacks is refused by its name, or is the answer for "unknown". */
static void what_is_lacking_is_said(void)
{
	static const struct provider bare = {.name = "bare"};
	struct room room = {.provider = &bare, .control_fd = -1, .watch_fd = -1};
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fds[ROOM_LISTENERS] = {-1, -1, -1, -1, -1}, upper = -1, lower = -1;
	struct room_owner owner;

	check(!room_find_owner(&room, (void *)&at, (void *)&at, &owner));
	room_lend(&room, -1, 0, 0);
	check_int(room_listeners(&room, fds, &err), -E_UNSUPPORTED);
	check(strstr(err.message, "provider bare has no network") != NULL);
	check_int(room_layers(&room, &upper, &lower, &err), -E_UNSUPPORTED);
	check_int(provider_diff(&bare, -1, -1, NULL, NULL, &err), -E_UNSUPPORTED);
	check_int(provider_diff_kept(&bare, "/x", NULL, NULL, &err), -E_UNSUPPORTED);
	check(strstr(err.message, "provider bare keeps no changes") != NULL);
	check(upper == -1 && fds[0] == -1);
}

int main(void)
{
	run_test(every_name_has_its_provider);
	run_test(each_provider_answers_for_each_limit);
	run_test(what_is_not_enforced_is_refused_or_said);
	run_test(aliases_are_resolved);
	run_test(unknown_names_get_the_list);
	run_test(programs_are_found);
	run_test(others_are_listed);
	run_test(what_is_lacking_is_said);
	return tap_done();
}
