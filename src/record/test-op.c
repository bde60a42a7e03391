/* SPDX-License-Identifier: Apache-2.0 */
#include "record/op.h"
#include "tap.h"

#include <errno.h>

static struct state_op op_of(enum state_op_kind kind, struct str subject, struct str object)
{
	return (struct state_op){
		.kind = kind, .subject = subject, .object = object, .mode = STATE_NO_MODE};
}

static void check_written(const struct state_op *op, const char *want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);

	must(state_op_write(&out, op) == 0);
	check_str(buf_str(&out), want);
}

/* The entries of the original, to the byte. */
static void test_the_seven(void)
{
	struct state_op op = op_of(STATE_FS_WRITE, STR("a.txt"), STR("x\"\n"));

	check_written(&op, "{\"op\":\"fs.write\",\"args\":{\"path\":\"a.txt\",\"data\":"
			   "\"x\\\"\\n\"}}\n");
	op = op_of(STATE_FS_DELETE, STR("a.txt"), STR_NULL);
	check_written(&op, "{\"op\":\"fs.delete\",\"args\":{\"path\":\"a.txt\"}}\n");
	op = op_of(STATE_ENV_SET, STR("K"), STR(""));
	check_written(&op, "{\"op\":\"env.set\",\"args\":{\"key\":\"K\",\"value\":\"\"}}\n");
	op = op_of(STATE_ENV_DELETE, STR("K"), STR_NULL);
	check_written(&op, "{\"op\":\"env.delete\",\"args\":{\"key\":\"K\"}}\n");
	op = op_of(STATE_STORAGE_SET, STR("k"), STR("v"));
	check_written(&op, "{\"op\":\"storage.set\",\"args\":{\"key\":\"k\",\"value\":\"v\"}}\n");
	op = op_of(STATE_STORAGE_DELETE, STR("k"), STR_NULL);
	check_written(&op, "{\"op\":\"storage.delete\",\"args\":{\"key\":\"k\"}}\n");
	op = op_of(STATE_STORAGE_CLEAR, STR_NULL, STR_NULL);
	check_written(&op, "{\"op\":\"storage.clear\",\"args\":{}}\n");
}

static void check_same(const struct state_op *got, const struct state_op *want)
{
	check_int(got->kind, want->kind);
	check(str_eq(got->subject, want->subject));
	check(str_eq(got->object, want->object));
	check_int(got->is_ref, want->is_ref);
	check_int(got->is_new, want->is_new);
	check_int(got->mode, want->mode);
	check_int(got->number, want->number);
	check_int(got->usec, want->usec);
}

#define DIGEST "sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_there_and_back(void)
{
	char bytes[255];
	struct state_op ops[] = {
		op_of(STATE_FS_WRITE, STR("d/\xff\n$(id)"), STR("a\0b")),
		op_of(STATE_FS_APPEND, STR("a"), STR(DIGEST)),
		op_of(STATE_FS_MKDIR, STR("d"), STR_NULL),
		op_of(STATE_FS_RENAME, STR("a"), STR("b\x80")),
		op_of(STATE_FS_SYMLINK, STR("l"), STR("/etc/passwd")),
		op_of(STATE_FS_CHMOD, STR("a"), STR_NULL),
		op_of(STATE_ASSETS_UPLOAD, STR("a"), STR(DIGEST)),
		op_of(STATE_FS_UNPACK, STR("d"), STR(DIGEST)),
		op_of(STATE_ENV_SET, STR("K"), str_make(bytes, sizeof(bytes))),
		op_of(STATE_STORAGE_SET, STR("k\0\xfe"), STR("\0")),
		op_of(STATE_STORAGE_CLEAR, STR_NULL, STR_NULL),
	};
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i + 1);
	ops[1].is_ref = ops[6].is_ref = ops[7].is_ref = ops[7].is_new = true;
	ops[2].mode = 0700;
	ops[5].mode = 0;
	ops[6].number = 17;
	ops[6].usec = 1763890000000000;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);

		must(state_op_write(&out, &ops[i]) == 0);
		check_int(
			state_line_read(&line, str_prefix(buf_str(&out), buf_len(&out) - 1), NULL),
			0);
		check_same(&line.op, &ops[i]);
	}
}

static void test_refused(void)
{
	static const char *const lines[] = {
		"",
		"x",
		"[]",
		"3",
		"{}",
		"{\"op\":3,\"args\":{}}",
		"{\"op\":\"fs.write\"}",
		"{\"op\":\"fs.write\",\"args\":[]}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":\"a\"}}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":1,\"data\":\"\"}}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":\"\",\"data\":\"\"}}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":\"a\\u0000b\",\"data\":\"\"}}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":\"a\",\"ref\":\"sha256-../../x\"}}",
		"{\"op\":\"fs.write\",\"args\":{\"path64\":\"!\",\"data\":\"\"}}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":\"a\",\"data\":\"\",\"mode\":4096}}",
		"{\"op\":\"fs.write\",\"args\":{\"path\":\"a\",\"data\":\"\",\"mode\":-1}}",
		"{\"op\":\"fs.write\",\"op\":\"fs.delete\",\"args\":{\"path\":\"a\"}}",
		"{\"op\":\"fs.chmod\",\"args\":{\"path\":\"a\"}}",
		"{\"op\":\"env.set\",\"args\":{\"key\":\"A=B\",\"value\":\"\"}}",
		"{\"op\":\"env.set\",\"args\":{\"key\":\"A\",\"value\":\"a\\u0000\"}}",
		"{\"op\":\"env.set\",\"args\":{\"key\":\"\",\"value\":\"a\"}}",
		"{\"op\":\"storage.set\",\"args\":{\"key\":\"\",\"value\":\"a\"}}",
		"{\"op\":\"storage.clear\",\"args\":{}} {}",
	};
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;

		if (state_line_read(&line, str_from(lines[i]), &err) != -E_CORRUPT)
			tap_fail("taken: %s", lines[i]);
		check(err.message[0]);
	}
}

/* Another version's operations are passed over, whatever they say, and written as they were. */
static void test_unknown(void)
{
	static const char ref[] =
		"sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	static const char *const lines[] = {
		"{\"op\":\"fs.fly\",\"n\":7}\n",
		"{\"op\":\"?\",\"args\":[1,\"\u20ac\"],\"n\":7,\"t\":8}\n",
		"{\"op\":\"a \\\"b\\\"\",\"args\":{\"ref\":\"x\",\"in\":{\"a\":0.5}},\"n\":7}\n",
		"{\"op\":\"\",\"args\":null,\"n\":7}\n",
	};
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	char text[256];
	struct str found;

	check_int(state_line_read(&line, STR("{\"op\":\"fs.fly\",\"n\":7}"), NULL), 0);
	check_int(line.op.kind, STATE_UNKNOWN);
	check_int(line.op.number, 7);
	check_z(state_op_name(line.op.kind), "?");
	check_int(state_op_about(line.op.kind), STATE_NOTHING);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_(buf_donep) struct buf out = BUF_INIT(1024);

		must(state_line_read(&line, str_from(lines[i]), NULL) == 0);
		check_int(line.op.kind, STATE_UNKNOWN);
		check(!state_op_ref(&line.op, 0, &found));
		check_int(state_op_write(&out, &line.op), 0);
		check_str(buf_str(&out), lines[i]);
	}
	/* A newer version may name contents in the way that this one does. */
	snprintf(text, sizeof(text), "{\"op\":\"fs.fly\",\"args\":{\"ref\":\"%s\"}}", ref);
	must(state_line_read(&line, str_from(text), NULL) == 0);
	check(state_op_ref(&line.op, 0, &found));
	check_str(found, ref);
	check(!state_op_ref(&line.op, 1, &found));
}

/* What happened: arguments that nobody takes apart, whose contents are found all the same. */
static void test_events(void)
{
	static const char digits[] =
		"sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	_cleanup_(buf_donep) struct buf args = BUF_INIT(1024), out = BUF_INIT(1024),
					again = BUF_INIT(1024);
	struct state_op op = op_of(STATE_EXEC_END, STR_NULL, STR_NULL);
	struct str ref;

	check_int(
		buf_printf(&args, "{\"exec\":3,\"stdout\":\"a\",\"stderrRef\":\"%s\"}", digits), 0);
	op.object = buf_str(&args);
	check_int(state_op_write(&out, &op), 0);
	check_int(state_line_read(&line, buf_str(&out), NULL), 0);
	check_int(line.op.kind, STATE_EXEC_END);
	check_int(json_count_at(line.op.args, "exec"), 3);
	check(state_op_ref(&line.op, 0, &ref));
	check(str_eq(ref, str_from(digits)));
	check(!state_op_ref(&line.op, 1, &ref));
	check_int(state_op_write(&again, &line.op), 0);
	check(str_eq(buf_str(&again), buf_str(&out)));
	check_int(state_line_read(&line,
			  STR("{\"op\":\"exec.end\",\"args\":{\"stdoutRef\":\"../x\"}}"), NULL),
		-E_CORRUPT);
}

static void test_bounds(void)
{
	static char much[STATE_VALUE_MAX + 1];
	struct state_op op = op_of(STATE_STORAGE_SET, STR("k"), str_make(much, STATE_VALUE_MAX));

	memset(much, 'x', sizeof(much));
	check_int(state_op_check(&op, NULL), 0);
	op.object.n++;
	check_int(state_op_check(&op, NULL), -E_LIMIT);
	op = op_of(STATE_ENV_SET, STR("K"), str_make(much, STATE_ENV_MAX - 2));
	check_int(state_op_check(&op, NULL), 0);
	op.object.n++;
	check_int(state_op_check(&op, NULL), -E_LIMIT);
	op = op_of(STATE_FS_DELETE, str_make(much, STATE_PATH_MAX), STR_NULL);
	check_int(state_op_check(&op, NULL), 0);
	op.subject.n++;
	check_int(state_op_check(&op, NULL), -E_USAGE);
}

int main(void)
{
	run_test(test_the_seven);
	run_test(test_there_and_back);
	run_test(test_refused);
	run_test(test_unknown);
	run_test(test_events);
	run_test(test_bounds);
	return tap_done();
}
