/* SPDX-License-Identifier: Apache-2.0 */
/* When a command printed what: few marks, which tell the time of each byte well enough. */
#include "base/json.h"
#include "base/jsonout.h"
#include "supervisor/supervisor.h"
#include "tap.h"

static uint64_t now = 1000000;

uint64_t __wrap_clock_real_usec(void);
uint64_t __wrap_clock_real_usec(void)
{
	return now;
}

/* Print n pieces of 10 bytes, one each step. Return the marks. */
static json_t *print(struct supervisor *s, unsigned n, uint64_t step)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	struct jsonout o = {.b = &b};
	struct task t = {.sup = s};
	json_t *all = NULL;

	now = 1000000;
	for (unsigned i = 0; i < n; i++) {
		clocked_note(&t, 10);
		now += step;
	}
	jsonout_open(&o, NULL, '{');
	clocked_write(&t, &o);
	jsonout_close(&o, '}');
	clocked_done(&t);
	check(!t.clocked);
	must(json_text_read(buf_str(&b), 0, &all, NULL) == 0);
	return all;
}

static void test_marks(void)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	json_t *all, *times;

	must(s);
	all = print(s, 5, 20000);
	check(!json_object_get(all, "stdout_times")); /* there is no record */
	json_decref(all);
	s->recording.conn.open = true;
	all = print(s, 3, 20000);
	times = json_object_get(all, "stdout_times");
	check_int((int)json_array_size(times), 6);
	check_int((int)json_integer_value(json_array_get(times, 2)), 10);
	check_int((int)json_integer_value(json_array_get(times, 5)), 1040000);
	json_decref(all);
	all = print(s, 100, 100);
	check_int((int)json_array_size(json_object_get(all, "stdout_times")), 2);
	json_decref(all);
	free(s);
}

static void test_many(void)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	json_t *all, *times;
	size_t n;

	must(s);
	s->recording.conn.open = true;
	all = print(s, 100000, 15000);
	times = json_object_get(all, "stdout_times");
	n = json_array_size(times);
	check(n > 256 && n <= 1024);
	/* Each byte's mark is at most one gap old. */
	for (size_t i = 0; i + 3 < n; i += 2) {
		json_int_t at = json_integer_value(json_array_get(times, i)),
			   next = json_integer_value(json_array_get(times, i + 2)),
			   usec = json_integer_value(json_array_get(times, i + 1));

		if (!(usec == 1000000 + at / 10 * 15000 && next > at && next - at <= 8000))
			check_int((int)i, -1);
	}
	json_decref(all);
	free(s);
}

int main(void)
{
	run_test(test_marks);
	run_test(test_many);
	return tap_done();
}
