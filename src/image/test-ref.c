/* SPDX-License-Identifier: Apache-2.0 */
#include "image/ref.h"
#include "tap.h"

#include <stdio.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* want: "name|tag|digest", NULL: refused. */
static void expect_ref(const char *text, const char *want)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct image_ref ref;
	char got[1024];

	if (!want) {
		check_int(image_ref_parse(str_from(text), &ref, &err), -E_USAGE);
		return;
	}
	check_int(image_ref_parse(str_from(text), &ref, &err), 0);
	snprintf(got, sizeof(got), "%.*s|%.*s|%.*s", STR_FMT(ref.name), STR_FMT(ref.tag),
		STR_FMT(ref.digest));
	check_z(got, want);
}

static void test_names(void)
{
	expect_ref("alpine", "alpine|latest|");
	expect_ref("alpine:3.20", "alpine|3.20|");
	expect_ref("docker.io/library/alpine:3", "docker.io/library/alpine|3|");
	expect_ref("localhost:5000/a/b", "localhost:5000/a/b|latest|");
	expect_ref("Host.example:5000/a:T_1.x", "Host.example:5000/a|T_1.x|");
	expect_ref("a-b__c--d.e/f", "a-b__c--d.e/f|latest|");
	expect_ref("a@sha256:" HEX, "a||" HEX);
	expect_ref("a:b@sha256:" HEX, "a|b|" HEX);
	expect_ref("sha256:" HEX, "||" HEX);
	expect_ref(HEX, "||" HEX);
}

static void test_refused(void)
{
	static const char *const bad[] = {"", ":", "a:", "/a", "a/", "a//b", "A", "a/B", "a:b:c",
		"a..b", "-a", "a-", "a b", "a\n", "a:.x", "a:-x", "../a", "a@sha256:12",
		"a@md5:" HEX, "a:\x80", "a@", "@sha256:" HEX, ".a/b", "a:b/c:"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_ref(bad[i], NULL);
}

static bool matches(const char *text, const char *stored, bool want_exact)
{
	struct image_ref ref;
	bool exact = false, found;

	must(image_ref_parse(str_from(text), &ref, NULL) == 0);
	found = image_ref_matches(&ref, str_from(stored), HEX, &exact);
	return found && exact == want_exact;
}

static void test_matches(void)
{
	check(matches("a", "a:latest", true));
	check(matches("a:1", "docker.io/library/a:1", false));
	check(matches("library/a:1", "docker.io/library/a:1", false));
	check(matches("a", "localhost:5000/a:latest", false));
	check(!matches("pine", "alpine:latest", false));
	check(!matches("a", "a:1", true));
	check(!matches("a", "a/b:latest", false));
	check(matches("a@sha256:" HEX, "a:1", true));
	check(matches("a:1@sha256:" HEX, "r.example/a:1", false));
	check(!matches("a:2@sha256:" HEX, "a:1", true));
	check(!matches("a@sha256:" OTHER, "a:1", true));
	check(matches("a@sha256:" OTHER, "a@sha256:" OTHER, true));
	check(matches("a:2@sha256:" OTHER, "r.example/a@sha256:" OTHER, false));
	check(!matches("a@sha256:" HEX, "a@sha256:" OTHER, true));
	check(!matches("a", "a@sha256:" HEX, true));
}

static void expect_name(const char *text, const char *want)
{
	char name[IMAGE_REF_MAX];
	struct image_ref ref;

	must(image_ref_parse(str_from(text), &ref, NULL) == 0);
	image_ref_name(&ref, name);
	check_z(name, want);
}

static void test_full_names(void)
{
	expect_name("a", "a:latest");
	expect_name("a:1", "a:1");
	expect_name("a@sha256:" HEX, "a@sha256:" HEX);
	expect_name("a:1@sha256:" HEX, "a@sha256:" HEX);
}

int main(void)
{
	run_test(test_names);
	run_test(test_refused);
	run_test(test_matches);
	run_test(test_full_names);
	return tap_done();
}
