/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/names.h"
#include "provider/provider.h"
#include "tap.h"

static struct cloche_err err;

static void every_name_has_its_provider(void)
{
	const char *name;
	size_t i;

	for (i = 0; (name = provider_name_at(i)); i++) {
		const struct provider *p = provider_find(str_from(name));

		check(p != NULL);
		check_z(p ? p->name : "", name);
	}
	check(i > 0);
	check(provider_find(STR("auto")) == NULL);
	check(provider_find(STR("")) == NULL);
	check(provider_find(STR("nativ")) == NULL);
}

static void aliases_are_resolved(void)
{
	static const struct {
		const char *named, *name, *chosen;
	} rows[] = {{"auto", "auto", "native"}, {"native", "native", "native"},
		{"podman", "podman", NULL}, {"none", "subprocess", NULL},
		{"local", "subprocess", NULL}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = "", *chosen = NULL;

		check_int(provider_name_find(rows[i].named, &name, &err), 0);
		check_z(name, rows[i].name);
		check_int(provider_name_choose(rows[i].named, &chosen, &err),
			rows[i].chosen ? 0 : -E_UNSUPPORTED);
		check(rows[i].chosen || strstr(err.message, rows[i].name) != NULL);
		check_z(chosen ? chosen : "", rows[i].chosen ? rows[i].chosen : "");
	}
}

static void unknown_names_get_the_list(void)
{
	static const char *const unknown[] = {"", "Native", "native ", "runc"};
	const char *name = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		check_int(provider_name_find(unknown[i], &name, &err), -E_USAGE);
		check(strstr(err.message, "it is auto or native") != NULL);
		check_int(provider_name_choose(unknown[i], &name, &err), -E_USAGE);
	}
	check(name == NULL);
}

/* What a provider lacks is refused by its name, or is the answer for "unknown". */
static void what_is_lacking_is_said(void)
{
	static const struct provider bare = {.name = "bare"};
	struct room room = {.provider = &bare, .control_fd = -1, .watch_fd = -1};
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fds[ROOM_LISTENERS] = {-1, -1, -1, -1}, upper = -1, lower = -1;
	struct room_owner owner;
	struct room_usage usage;

	check_int(room_pid(&room), 0);
	check(room_unenforced(&room, 0) == NULL);
	check(!room_find_owner(&room, (void *)&at, (void *)&at, &owner));
	room_lend(&room, -1, 0, 0);
	check_int(room_kill_tree(&room, 2, &err), -E_UNSUPPORTED);
	check_int(room_read_usage(&room, &usage, &err), -E_UNSUPPORTED);
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
	run_test(aliases_are_resolved);
	run_test(unknown_names_get_the_list);
	run_test(what_is_lacking_is_said);
	return tap_done();
}
