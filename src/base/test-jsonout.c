/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonout.h"
#include "tap.h"

#include <errno.h>

static void values_and_commas(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	struct jsonout o = {.b = &b};

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "a", "x\"\n");
	jsonout_text(&o, "b", NULL);
	jsonout_open(&o, "c", '[');
	jsonout_close(&o, ']');
	jsonout_open(&o, "d", '[');
	jsonout_number(&o, NULL, UINT64_MAX);
	jsonout_open(&o, NULL, '{');
	jsonout_bool(&o, "e", true);
	jsonout_close(&o, '}');
	jsonout_str(&o, NULL, STR("\xff"));
	jsonout_close(&o, ']');
	jsonout_raw(&o, NULL, STR("\"f\":1,\"g\":2"));
	jsonout_member(&o, STR("h\\"), STR("i"));
	jsonout_bool(&o, "j", false);
	jsonout_close(&o, '}');
	check_int(o.error, 0);
	check_str(buf_str(&b),
		"{\"a\":\"x\\\"\\n\",\"b\":null,\"c\":[],\"d\":[18446744073709551615,{\"e\":true},"
		"\"\\ufffd\"],\"f\":1,\"g\":2,\"h\\\\\":\"i\",\"j\":false}");
}

static void a_failure_stays(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4);
	struct jsonout o = {.b = &b};

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "key", "value");
	check(o.error < 0);
	jsonout_close(&o, '}');
	check(o.error < 0 && buf_len(&b) <= 4);
}

int main(void)
{
	run_test(values_and_commas);
	run_test(a_failure_stays);
	return tap_done();
}
