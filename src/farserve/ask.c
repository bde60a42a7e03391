/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the requests and answers are those of SandboX's isolator service, member by
 * member. What is more in an answer's metadata (isolation, truncated) its clients do not look at.
 */
#include "farserve/ask.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonout.h"
#include "base/program.h"
#include "base/strv.h"
#include "ipc/exec.h"

#include <stdio.h>
#include <string.h>

enum ask_mode { ASK_SHELL, ASK_EXECUTE, ASK_EVALUATE };

static int ask_find_mode(const json_t *root, enum ask_mode *ret, struct cloche_err *err)
{
	static const struct str names[] = {{"shell", 5}, {"execute", 7}, {"evaluate", 8}};
	const json_t *mode = json_object_get(root, "mode");

	/* The first version of the service had no modes. */
	*ret = ASK_EXECUTE;
	if (!mode || json_is_null(mode))
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		if (!str_eq(json_str(mode), names[i]))
			continue;
		*ret = (enum ask_mode)i;
		return 0;
	}
	return err_set(err, E_USAGE, "mode has to be shell, execute or evaluate");
}

static int ask_add_words(struct ask *a, const char *program, const char *flag, struct str code)
{
	int r = strv_add(&a->argv, str_from(program));

	if (r == 0)
		r = strv_add(&a->argv, str_from(flag));
	return r == 0 ? strv_add(&a->argv, code) : r;
}

/* For those who would take code such as "-1" for an option. */
static int ask_add_after_blank(
	struct ask *a, const char *program, const char *flag, struct str code)
{
	struct buf text = BUF_INIT(ASK_BODY_MAX + 16);
	int r = str_starts(code, STR("-")) ? buf_add_str(&text, STR(" ")) : 0;

	if (r == 0)
		r = buf_add_str(&text, code);
	if (r == 0)
		r = ask_add_words(a, program, flag, buf_str(&text));
	buf_done(&text);
	return r;
}

/* The value of an expression. The line end keeps a comment at its end from hiding the bracket. */
static int ask_add_print(struct ask *a, struct str code)
{
	struct buf text = BUF_INIT(ASK_BODY_MAX + 16);
	int r = buf_add_str(&text, STR("print("));

	if (r == 0)
		r = buf_add_str(&text, code);
	if (r == 0)
		r = buf_add_str(&text, STR("\n)"));
	if (r == 0)
		r = ask_add_words(a, "python3", "-c", buf_str(&text));
	buf_done(&text);
	return r;
}

static int ask_add_command(struct ask *a, const json_t *root, enum ask_mode mode, struct str code,
	struct cloche_err *err)
{
	struct str runtime = json_str_at(root, "runtime");
	int r;

	if (mode == ASK_SHELL)
		r = ask_add_after_blank(a, "sh", "-c", code);
	else if (str_eq(runtime, STR("node")))
		r = ask_add_after_blank(a, "node", mode == ASK_EVALUATE ? "-p" : "-e", code);
	else if (str_eq(runtime, STR("python")))
		r = mode == ASK_EVALUATE ? ask_add_print(a, code)
					 : ask_add_words(a, "python3", "-c", code);
	else if (!str_eq(runtime, STR("bash")))
		return err_set(err, E_USAGE, "runtime has to be node, python or bash");
	else if (mode == ASK_EVALUATE)
		return err_set(
			err, E_USAGE, "bash has no expressions to evaluate: use mode execute");
	else
		r = ask_add_after_blank(a, "bash", "-c", code);
	return r < 0 ? err_nomem(err) : 0;
}

static bool ask_is_variable(const char *name)
{
	return name[0] && !strchr(name, '=');
}

static int ask_read_env(struct ask *a, const json_t *root, struct cloche_err *err)
{
	json_t *env = json_object_get(root, "env"), *value;
	const char *name;

	if (strv_env_set(&a->env, "PATH", SYSTEM_PATH) < 0 ||
		strv_env_set(&a->env, "LANG", "C.UTF-8") < 0)
		return err_nomem(err);
	if (!env || json_is_null(env))
		return 0;
	if (!json_is_object(env) || json_object_size(env) > 1000)
		return err_set(err, E_USAGE, "env has to be an object of at most 1000 texts");
	json_object_foreach (env, name, value) {
		if (!json_is_string(value) || !ask_is_variable(name))
			return err_set(err, E_USAGE,
				"env has to be an object of texts, whose names have no \"=\"");
		if (strv_env_set(&a->env, name, json_string_value(value)) < 0)
			return err_nomem(err);
	}
	return 0;
}

static int ask_read_timeout(struct ask *a, const json_t *root, struct cloche_err *err)
{
	const json_t *timeout = json_object_get(root, "timeout");
	double ms;

	a->timeout_ms = ASK_TIMEOUT_MS;
	if (!timeout || json_is_null(timeout))
		return 0;
	ms = json_number_value(timeout);
	if (!json_is_number(timeout) || !(ms >= 1 && ms <= ASK_TIMEOUT_MAX_MS))
		return err_set(err, E_USAGE,
			"timeout has to be a number of milliseconds, from 1 to %d",
			ASK_TIMEOUT_MAX_MS);
	a->timeout_ms = (uint64_t)ms;
	return 0;
}

static int ask_check_sizes(const struct ask *a, struct cloche_err *err)
{
	char *const *lists[] = {a->argv, a->env};

	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		for (char *const *s = lists[i]; s && *s; s++)
			if (strlen(*s) >= EXEC_MAX_ARG)
				return err_set(err, E_USAGE,
					"code, or a variable of env, has more than %d bytes",
					EXEC_MAX_ARG - 1);
	return 0;
}

int ask_read(struct str body, struct ask *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *root = NULL;
	json_error_t why;
	enum ask_mode mode;
	struct str code;
	int r = json_text_read(body, JSON_REJECT_DUPLICATES, &root, &why);

	*ret = (struct ask){0};
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0)
		return err_set(err, E_USAGE, "the body is no JSON: %s", why.text);
	if (!json_is_object(root) || !json_is_string(json_object_get(root, "code")))
		return err_set(err, E_USAGE, "the body has to be an object with a text \"code\"");
	code = json_str_at(root, "code");
	r = ask_find_mode(root, &mode, err);
	if (r == 0)
		r = ask_add_command(ret, root, mode, code, err);
	if (r == 0)
		r = ask_read_env(ret, root, err);
	if (r == 0)
		r = ask_read_timeout(ret, root, err);
	return r == 0 ? ask_check_sizes(ret, err) : r;
}

void ask_done(struct ask *a)
{
	a->argv = strv_free(a->argv);
	a->env = strv_free(a->env);
}

struct str ask_path(struct str target)
{
	return str_prefix(target, str_chr(target, '?'));
}

static bool ask_is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!str_is_alnum(s.p[i]) && !memchr("-_.~", s.p[i], 4))
			return false;
	return s.n > 0 && s.n <= ASK_NAME_MAX;
}

bool ask_session(struct str target, char ret[ASK_NAME_MAX + 1])
{
	struct str rest = str_from_index(target, str_chr(target, '?') + 1);

	ret[0] = '\0';
	while (rest.n) {
		struct str part = str_next(&rest, '&'), name = STR("session=");

		if (!str_starts(part, name))
			continue;
		part = str_from_index(part, name.n);
		/* Of two names one would be ignored. */
		if (ret[0] || !ask_is_name(part))
			return false;
		memcpy(ret, part.p, part.n);
		ret[part.n] = '\0';
	}
	return true;
}

/* --- answers --- */

static bool answer_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct str answer_trim(struct str s)
{
	while (s.n && answer_is_space(s.p[0]))
		s = str_from_index(s, 1);
	while (s.n && answer_is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* As JavaScript's toISOString(). */
static void answer_write_time(struct jsonout *o, uint64_t usec)
{
	char text[CLOCK_ISO_MAX], millis[CLOCK_ISO_MAX + 8];

	clock_format_utc(usec, text);
	text[strlen(text) - 1] = '\0';
	snprintf(millis, sizeof(millis), "%s.%03uZ", text, (unsigned)(usec / USEC_PER_MSEC % 1000));
	jsonout_text(o, "timestamp", millis);
}

static void answer_write_metadata(struct jsonout *o, const struct answer *a)
{
	jsonout_open(o, "metadata", '{');
	jsonout_number(o, "executionTime", a->took_usec / USEC_PER_MSEC);
	answer_write_time(o, a->at_usec);
	jsonout_text(o, "isolation", a->isolation);
	if (a->truncated)
		jsonout_bool(o, "truncated", true);
	jsonout_close(o, '}');
}

int answer_write(struct buf *out, const struct answer *a)
{
	struct jsonout o = {.b = out};
	char why[80];

	jsonout_open(&o, NULL, '{');
	jsonout_bool(&o, "success", a->code == 0 && !a->timeout_ms);
	if (a->timeout_ms) {
		snprintf(why, sizeof(why), "Execution timed out after %llums",
			(unsigned long long)a->timeout_ms);
		jsonout_text(&o, "error", why);
	}
	jsonout_str(&o, "stdout", answer_trim(a->out));
	jsonout_str(&o, "stderr", answer_trim(a->err));
	if (a->timeout_ms)
		jsonout_raw(&o, "exitCode", STR("-1"));
	else
		jsonout_number(&o, "exitCode", (uint64_t)a->code);
	answer_write_metadata(&o, a);
	jsonout_close(&o, '}');
	return o.error;
}

int answer_write_error(struct buf *out, const char *why)
{
	struct jsonout o = {.b = out};

	jsonout_open(&o, NULL, '{');
	jsonout_bool(&o, "success", false);
	jsonout_text(&o, "error", why);
	jsonout_close(&o, '}');
	return o.error;
}
