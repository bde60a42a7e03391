/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are older or newer than the library. */
#include "base/macro.h"
#include "base/sized.h"
#include "tap.h"

#include <string.h>

struct first {
	size_t size;
	int a;
};

struct second {
	size_t size;
	int a, b;
	const char *text;
};

struct third {
	size_t size;
	int a, b;
	const char *text;
	int more;
};

static void test_same(void)
{
	struct second to = {.b = -1}, from = {sizeof(from), 1, 2, "x"};

	check_int(sized_take(&to, sizeof(to), &from, "second", NULL), 0);
	check(memcmp(&to, &from, sizeof(to)) == 0);
}

static void test_older(void)
{
	struct second to = {.b = -1, .text = "default"};
	struct first from = {sizeof(from), 7};

	/* Without the padding, in which b would lie. */
	from.size = offsetof(struct first, a) + sizeof(from.a);
	check_int(sized_take(&to, sizeof(to), &from, "first", NULL), 0);
	check_int(to.a, 7);
	check_int(to.b, -1);
	check_z(to.text, "default");
	check_int(to.size, sizeof(to));
}

static void test_newer(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct second to = {0};
	struct third from;

	memset(&from, 0, sizeof(from));
	from.size = sizeof(from);
	from.b = 3;
	check_int(sized_take(&to, sizeof(to), &from, "third", &err), 0);
	check_int(to.b, 3);
	check_int(to.size, sizeof(to));
	from.more = 1;
	check_int(sized_take(&to, sizeof(to), &from, "third", &err), -E_UNSUPPORTED);
	check(strstr(err.message, "third has a member"));
}

static void test_no_size(void)
{
	const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 1 << 20, (size_t)-1};
	struct second to = {.a = 5}, from = {0};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		from.size = sizes[i];
		check_int(sized_take(&to, sizeof(to), &from, "second", NULL), -E_USAGE);
	}
	check_int(to.a, 5);
}

int main(void)
{
	run_test(test_same);
	run_test(test_older);
	run_test(test_newer);
	run_test(test_no_size);
	return tap_done();
}
