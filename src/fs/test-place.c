/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/place.h"
#include "tap.h"

static void test_the_longest_target_counts(void)
{
	static const struct place places[] = {{"/workspace", "/home/me/site"},
		{"/workspace/data", "/srv/data"}, {"/workspace/data/in", "/in"}};
	static const struct {
		const char *path, *becomes; /* NULL: it stays */
	} rows[] = {{"/workspace", "/home/me/site"}, {"/workspace/", "/home/me/site/"},
		{"/workspace/a/b", "/home/me/site/a/b"}, {"/workspace/data/x", "/srv/data/x"},
		{"/workspace/data/in", "/in"}, {"/workspace/datax", "/home/me/site/datax"},
		{"/workspaces/a", NULL}, {"/tmp/workspace", NULL}, {"workspace", NULL}, {"/", NULL},
		{"", NULL}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(freep) char *got = NULL;

		check_int(places_find(places, ARRAY_SIZE(places), str_from(rows[i].path), &got),
			rows[i].becomes != NULL);
		check_z(got, rows[i].becomes);
	}
}

int main(void)
{
	run_test(test_the_longest_target_counts);
	return tap_done();
}
