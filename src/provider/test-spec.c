/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/provider.h"
#include "provider/spec.h"
#include "tap.h"

#include <errno.h>

static struct cloche_err err;

static void fill(struct room_spec *s)
{
	room_spec_init(s);
	s->id = strdup("sandbox-1");
	s->init_path = strdup("/x/init");
	check_int(room_spec_add_mount(s, "/src", "/some/where", true, &err), 0);
}

static void good_one_passes(void)
{
	struct room_spec s;

	fill(&s);
	check_int(room_spec_check(&s, &err), 0);
	check_int(s.ca_fd, -1);
	check_z(s.mounts[0].source, "/src");
	check(s.mounts[0].ro);
	room_spec_done(&s);
	check(s.id == NULL && s.mounts_n == 0);
	room_spec_done(&s);
}

static void bad_mounts_are_refused(void)
{
	static const char *const targets[] = {
		"", "/", "//", "relative", "/a/../b", "/..", "/a/.", "../x", "/./a"};
	struct room_spec s;
	size_t i;

	fill(&s);
	for (i = 0; i < ARRAY_SIZE(targets); i++)
		check_int(room_spec_add_mount(&s, "/src", targets[i], true, &err), -E_USAGE);
	check_int(room_spec_add_mount(&s, "src", "/a", true, &err), -E_USAGE);
	check_int(room_spec_add_mount(&s, "/src", "/a..b/...", true, &err), 0);
	while (s.mounts_n < ROOM_MAX_MOUNTS)
		check_int(room_spec_add_mount(&s, "/src", "/a", true, &err), 0);
	check_int(room_spec_add_mount(&s, "/src", "/a", true, &err), -E_LIMIT);
	room_spec_done(&s);
}

static void bad_names_are_refused(void)
{
	static const char *const ids[] = {"", "a/b", "..", "-a", "a b", "a\nb", "a.b"};
	struct room_spec s;
	size_t i;

	fill(&s);
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		free(s.id);
		s.id = strdup(ids[i]);
		check_int(room_spec_check(&s, &err), -E_USAGE);
	}
	free(s.id);
	s.id = calloc(1, ROOM_ID_MAX + 2);
	memset(s.id, 'a', ROOM_ID_MAX);
	check_int(room_spec_check(&s, &err), 0);
	s.id[ROOM_ID_MAX] = 'a';
	check_int(room_spec_check(&s, &err), -E_USAGE);
	room_spec_done(&s);
}

/* What came over a socket is judged as well. */
static void bad_values_are_refused(void)
{
	struct room_spec s;

	fill(&s);
	for (int i = 0; i < 3; i++) {
		static const char *const places[] = {"", "a\nb", "\x7f"};

		s.place = strdup(places[i]);
		check_int(room_spec_check(&s, &err), -E_USAGE);
		free(s.place);
	}
	s.place = strdup("ssh://me@there:22");
	check_int(room_spec_check(&s, &err), 0);
	s.root = ROOM_ROOT_DIR;
	check_int(room_spec_check(&s, &err), -E_USAGE);
	s.root_dir = strdup("relative");
	check_int(room_spec_check(&s, &err), -E_USAGE);
	s.root = (enum room_root)7;
	check_int(room_spec_check(&s, &err), -E_USAGE);
	s.root = ROOM_ROOT_HOST;
	s.net = (enum room_net)9;
	check_int(room_spec_check(&s, &err), -E_USAGE);
	s.net = ROOM_NET_NONE;
	free(s.mounts[0].target);
	s.mounts[0].target = strdup("/a/../b");
	check_int(room_spec_check(&s, &err), -E_USAGE);
	free(s.init_path);
	s.init_path = NULL;
	check_int(room_spec_check(&s, &err), -E_USAGE);
	room_spec_done(&s);
}

static void a_tmpfs_fits_into_the_memory(void)
{
	struct room_spec s;

	fill(&s);
	check(room_limits_tmpfs(&s.limits) == 0);
	s.limits.memory_bytes = 64 << 20;
	check(room_limits_tmpfs(&s.limits) == 32 << 20);
	s.limits.tmpfs_bytes = 64 << 20;
	check_int(room_spec_check(&s, &err), 0);
	check(room_limits_tmpfs(&s.limits) == 64 << 20);
	s.limits.tmpfs_bytes++;
	check_int(room_spec_check(&s, &err), -E_USAGE);
	s.limits.memory_bytes = 0;
	check_int(room_spec_check(&s, &err), 0);
	room_spec_done(&s);
}

static void it_survives_the_wire(void)
{
	_cleanup_(buf_donep) struct buf bytes = BUF_INIT(1 << 16);
	struct wire_out out = wire_out(&bytes);
	struct room_spec s, got;
	struct wire_in in;

	fill(&s);
	s.overlay = true;
	s.keep_dir = strdup("/somewhere/kept");
	check_int(room_spec_check(&s, &err), 0);
	room_spec_put(&out, &s);
	check_int(out.error, 0);
	in = wire_in(buf_str(&bytes));
	check(room_spec_get(&in, &got) && wire_ok(&in));
	check(got.overlay && got.keep_dir);
	check_z(got.keep_dir, "/somewhere/kept");
	check_int(got.mounts_n, s.mounts_n);
	check_z(got.mounts[0].target, s.mounts[0].target);
	check_int(room_spec_check(&got, &err), 0);
	room_spec_done(&got);
	/* Cut off anywhere it is refused. */
	for (size_t n = 0; n < buf_len(&bytes); n++) {
		in = wire_in(str_prefix(buf_str(&bytes), n));
		check(!(room_spec_get(&in, &got) && wire_ok(&in)));
		room_spec_done(&got);
	}
	free(s.keep_dir);
	s.keep_dir = strdup("relative");
	check_int(room_spec_check(&s, &err), -E_USAGE);
	room_spec_done(&s);
}

static void more_mounts_than_may_be_do_not_go_out(void)
{
	_cleanup_(buf_donep) struct buf bytes = BUF_INIT(1 << 20);
	struct room_spec s;

	room_spec_init(&s);
	for (int i = 0; i <= ROOM_MAX_MOUNTS; i++) {
		struct wire_out out = wire_out(&bytes);
		struct room_mount *more = realloc(s.mounts, (s.mounts_n + 1) * sizeof(*more));

		must(more);
		s.mounts = more;
		s.mounts[s.mounts_n++] = (struct room_mount){
			.source = strdup("/a"), .target = strdup("/b"), .fd = -1};
		buf_clear(&bytes);
		room_spec_put(&out, &s);
		check_int(out.error, s.mounts_n <= ROOM_MAX_MOUNTS ? 0 : -EINVAL);
	}
	room_spec_done(&s);
}

static void providers_are_found_by_name(void)
{
	check(provider_find(STR("native"), NULL) == &native_provider);
	check(provider_find(STR("nativ"), NULL) == NULL);
	check(provider_find(STR_NULL, NULL) == NULL);
	check(room_free(NULL) == NULL);
}

int main(void)
{
	run_test(good_one_passes);
	run_test(bad_mounts_are_refused);
	run_test(bad_names_are_refused);
	run_test(bad_values_are_refused);
	run_test(a_tmpfs_fits_into_the_memory);
	run_test(it_survives_the_wire);
	run_test(more_mounts_than_may_be_do_not_go_out);
	run_test(providers_are_found_by_name);
	return tap_done();
}
