/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "base/strv.h"
#include "farserve/ask.h"
#include "tap.h"

static void commands(void)
{
	static const struct {
		const char *body, *program, *flag, *code;
	} table[] = {
		{"{\"code\":\"a\",\"mode\":\"shell\",\"runtime\":\"node\"}", "sh", "-c", "a"},
		{"{\"code\":\"a\",\"mode\":\"shell\"}", "sh", "-c", "a"},
		{"{\"code\":\"a\",\"mode\":\"execute\",\"runtime\":\"node\"}", "node", "-e", "a"},
		{"{\"code\":\"a\",\"runtime\":\"node\"}", "node", "-e", "a"},
		{"{\"code\":\"a\",\"mode\":\"evaluate\",\"runtime\":\"node\"}", "node", "-p", "a"},
		{"{\"code\":\"a\",\"mode\":\"execute\",\"runtime\":\"python\"}", "python3", "-c",
			"a"},
		{"{\"code\":\"a #\",\"mode\":\"evaluate\",\"runtime\":\"python\"}", "python3", "-c",
			"print(a #\n)"},
		{"{\"code\":\"a\",\"mode\":\"execute\",\"runtime\":\"bash\"}", "bash", "-c", "a"},
		{"{\"code\":\"-a\",\"mode\":\"shell\"}", "sh", "-c", " -a"},
		{"{\"code\":\"-a\",\"runtime\":\"bash\"}", "bash", "-c", " -a"},
		{"{\"code\":\"-a\",\"runtime\":\"node\"}", "node", "-e", " -a"},
		{"{\"code\":\"-a\",\"mode\":\"evaluate\",\"runtime\":\"node\"}", "node", "-p",
			" -a"},
		{"{\"code\":\"-a\",\"runtime\":\"python\"}", "python3", "-c", "-a"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct ask a;

		check_int(ask_read(str_from(table[i].body), &a, NULL), 0);
		check_int((long long)strv_count(a.argv), 3);
		if (strv_count(a.argv) == 3) {
			check_z(a.argv[0], table[i].program);
			check_z(a.argv[1], table[i].flag);
			check_z(a.argv[2], table[i].code);
		}
		check_int((long long)a.timeout_ms, ASK_TIMEOUT_MS);
		ask_done(&a);
	}
}

static void malformed(void)
{
	static const char *const table[] = {"", "{", "[]", "{}", "{\"code\":1}", "{\"code\":\"a\"}",
		"{\"code\":\"a\",\"runtime\":\"ruby\"}",
		"{\"code\":\"a\",\"mode\":\"run\",\"runtime\":\"node\"}",
		"{\"code\":\"a\",\"mode\":1,\"runtime\":\"node\"}",
		"{\"code\":\"a\",\"mode\":\"evaluate\",\"runtime\":\"bash\"}",
		"{\"code\":\"a\\u0000b\",\"mode\":\"shell\"}",
		"{\"code\":\"a\",\"code\":\"b\",\"mode\":\"shell\"}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"env\":[]}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"env\":{\"A\":1}}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"env\":{\"\":\"1\"}}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"env\":{\"A=\":\"1\"}}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"timeout\":0}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"timeout\":-1}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"timeout\":1e300}",
		"{\"code\":\"a\",\"mode\":\"shell\",\"timeout\":\"1\"}"};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		struct ask a;

		check_int(ask_read(str_from(table[i]), &a, &err), -E_USAGE);
		check(err.message[0] != '\0');
		ask_done(&a);
	}
}

static void values(void)
{
	struct buf body = BUF_INIT(1 << 20);
	struct ask a;

	check_int(ask_read(STR("{\"code\":\"a\",\"mode\":\"shell\",\"timeout\":250,"
			       "\"env\":{\"A\":\"b=c\",\"PATH\":\"/x\"}}"),
			  &a, NULL),
		0);
	check_int((long long)a.timeout_ms, 250);
	check_z(strv_env_get(a.env, "A"), "b=c");
	check_z(strv_env_get(a.env, "PATH"), "/x");
	ask_done(&a);

	check_int(buf_printf(&body, "{\"mode\":\"shell\",\"code\":\"%0*d\"}", 131072, 0), 0);
	check_int(ask_read(buf_str(&body), &a, NULL), -E_USAGE);
	ask_done(&a);
	buf_done(&body);
}

static void sessions(void)
{
	static const struct {
		const char *target;
		bool ok;
		const char *name;
	} table[] = {
		{"/execute", true, ""},
		{"/execute?", true, ""},
		{"/execute?session=a", true, "a"},
		{"/execute?x=1&session=a.b-c_d~e&y", true, "a.b-c_d~e"},
		{"/execute?sessions=a", true, ""},
		{"/execute?session=", false, NULL},
		{"/execute?session=a&session=b", false, NULL},
		{"/execute?session=..%2f", false, NULL},
		{"/execute?session=a/b", false, NULL},
		{"/execute?session="
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			false, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char name[ASK_NAME_MAX + 1];

		check_int(ask_session(str_from(table[i].target), name), table[i].ok);
		if (table[i].ok)
			check_z(name, table[i].name);
	}
	check_str(ask_path(STR("/execute?session=a")), "/execute");
	check_str(ask_path(STR("/health")), "/health");
}

static void answers(void)
{
	struct buf out = BUF_INIT(4096);
	struct answer a = {.out = STR(" \n4\r\n"),
		.err = STR("\t"),
		.took_usec = 12345,
		.at_usec = 1764397576123000,
		.isolation = "sandbox"};

	check_int(answer_write(&out, &a), 0);
	check_str(buf_str(&out),
		"{\"success\":true,\"stdout\":\"4\",\"stderr\":\"\",\"exitCode\":0,\"metadata\":{"
		"\"executionTime\":12,\"timestamp\":\"2025-11-29T06:26:16.123Z\","
		"\"isolation\":\"sandbox\"}}");
	buf_clear(&out);
	a.timeout_ms = 500;
	check_int(answer_write(&out, &a), 0);
	check_str(buf_str(&out),
		"{\"success\":false,\"error\":\"Execution timed out after 500ms\",\"stdout\":\"4\","
		"\"stderr\":\"\",\"exitCode\":-1,"
		"\"metadata\":{\"executionTime\":12,\"timestamp\":\"2025-11-29T06:26:16.123Z\","
		"\"isolation\":\"sandbox\"}}");
	buf_clear(&out);
	a.timeout_ms = 0;
	a.code = 3;
	a.truncated = true;
	check_int(answer_write(&out, &a), 0);
	check(memmem(buf_data(&out), buf_len(&out), "\"success\":false", 15) != NULL);
	check(memmem(buf_data(&out), buf_len(&out), "\"truncated\":true", 16) != NULL);
	buf_clear(&out);
	check_int(answer_write_error(&out, "a \"b\""), 0);
	check_str(buf_str(&out), "{\"success\":false,\"error\":\"a \\\"b\\\"\"}");
	buf_done(&out);
}

int main(void)
{
	run_test(commands);
	run_test(malformed);
	run_test(values);
	run_test(sessions);
	run_test(answers);
	return tap_done();
}
