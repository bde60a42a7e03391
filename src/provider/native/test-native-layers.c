/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/native/test-own-init.h"
#include "room/keep.h"

static void layers_spec(struct room_spec *s, const char *what, const char *keep)
{
	spec_for(s, "layers", what, NULL);
	s->overlay = true;
	s->keep_dir = keep ? strdup(keep) : NULL;
}

static bool has(int top, const char *path)
{
	struct stat st;

	return fstatat(top, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whatever the inside does, the host's system stays as it is; what was done can be looked at. */
static void changes_are_thrown_away(void)
{
	struct room_spec s;
	struct room *room;
	int upper = -1, lower = -1;

	for (int i = 0; i < 2; i++) {
		layers_spec(&s, "first", NULL);
		room = finish(start(&s), "done\n");
		if (!room)
			return;
		check_int(room_layers(room, &upper, &lower, &room_err), 0);
		check(has(upper, "made/file") && has(upper, "usr/local/bin/made"));
		check(has(lower, "etc/profile") && !has(lower, "made"));
		/* Whiteout. */
		check(has(upper, "etc/profile"));
		/* Names are this room's, not changes. */
		check(!has(upper, "etc/hosts") && !has(upper, "tmp"));
		check(!has(upper, "dev") && !has(upper, "proc"));
		room_free(room);
	}
	check_int(access("/usr/local/bin/made", F_OK), -1);
	check_int(access("/usr/made", F_OK), -1);
}

static void no_layers_unless_asked(void)
{
	struct room_spec s;
	struct room *room;
	int upper, lower;

	fresh_dir();
	put_file("secret", "x");
	spec_for(&s, "files", in_dir("secret"), NULL);
	room = finish(start(&s), "done\n");
	check(room && room_layers(room, &upper, &lower, &room_err) == -E_UNSUPPORTED);
	room_free(room);
}

static void changes_are_kept_and_continued(void)
{
	struct room_spec s;
	struct keep_view v;
	struct stat st;

	fresh_dir();
	must(mkdir(in_dir("ws"), 0755) == 0);
	layers_spec(&s, "first", in_dir("keep"));
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &room_err), 0);
	run(&s);
	layers_spec(&s, "again", in_dir("keep"));
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &room_err), 0);
	run(&s);
	check_int(stat(in_dir("keep/upper/made/file"), &st), 0);
	check_int(st.st_uid, geteuid());
	check_int(access(in_dir("keep/upper/tmp"), F_OK), -1);
	check_int(access(in_dir("keep/upper/workspace"), F_OK), -1);
	check_int(access(in_dir("keep/work"), F_OK), -1);
	check_int(stat(in_dir("keep"), &st), 0);
	check_int(st.st_mode & 0777, 0700);
	check_int(keep_view_open(in_dir("keep"), &v, &room_err), 0);
	check(has(v.upper, "made/file") && has(v.lower, "etc/profile"));
	keep_view_close(&v);
	check_int(keep_view_open(in_dir("ws"), &v, &room_err), -E_NOT_FOUND);
	/* It can be removed by whoever made it. */
	check_int(fs_remove_tree(AT_FDCWD, in_dir("keep")), 0);
}

static void refused(struct room_spec *s, int code)
{
	struct room *room = NULL;

	err_clear(&room_err);
	check_int(native_provider.create(&native_provider, s, &room, &room_err), -code);
	printf("# %s (%s)\n", room_err.message, room_err.hint);
	room_free(room);
	room_spec_done(s);
}

static void bad_places_are_refused(void)
{
	struct room_spec s;
	struct keep k;

	fresh_dir();
	must(mkdir(in_dir("ws"), 0755) == 0 && mkdir(in_dir("ws/in"), 0755) == 0);
	must(mkdir(in_dir("full"), 0755) == 0 && mkdir(in_dir("outer"), 0755) == 0);
	must(mkdir(in_dir("outer/ws"), 0755) == 0);
	put_file("full/x", "x");
	must(symlink(in_dir("ws"), in_dir("link")) == 0);
	layers_spec(&s, "first", in_dir("full"));
	refused(&s, E_EXISTS);
	layers_spec(&s, "first", in_dir("link/"));
	refused(&s, E_DENIED);
	layers_spec(&s, "first", in_dir("ws/in"));
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &room_err), 0);
	refused(&s, E_DENIED);
	/* The same place by another name. */
	layers_spec(&s, "first", in_dir("link/in"));
	check_int(room_spec_add_mount(&s, in_dir("ws"), "/workspace", false, &room_err), 0);
	refused(&s, E_DENIED);
	check_int(access(in_dir("ws/in/" KEEP_MARKER), F_OK), -1);
	layers_spec(&s, "first", in_dir("outer"));
	check_int(room_spec_add_mount(&s, in_dir("outer/ws"), "/workspace", false, &room_err), 0);
	refused(&s, E_EXISTS);
	layers_spec(&s, "first", in_dir("missing/keep"));
	refused(&s, E_SYSTEM);
	/* Another root. */
	layers_spec(&s, "first", in_dir("keep"));
	run(&s);
	layers_spec(&s, "first", in_dir("keep"));
	s.root = ROOM_ROOT_DIR;
	s.root_dir = strdup(in_dir("ws"));
	s.root_fd = open(s.root_dir, O_PATH | O_CLOEXEC);
	refused(&s, E_CONFIG);
	/* In use. */
	check_int(keep_open(in_dir("keep"), NULL, NULL, &k, &room_err), 0);
	layers_spec(&s, "again", in_dir("keep"));
	refused(&s, E_BUSY);
	keep_close(&k);
	if (geteuid() == 0) {
		must(chown(in_dir("keep"), ORDINARY_ID, ORDINARY_ID) == 0);
		layers_spec(&s, "again", in_dir("keep"));
		refused(&s, E_DENIED);
	}
}

static void all(void)
{
	run_test(changes_are_thrown_away);
	run_test(no_layers_unless_asked);
	run_test(changes_are_kept_and_continued);
	run_test(bad_places_are_refused);
}

int main(int argc, char **argv)
{
	return test_rooms(argc, argv, all);
}
