/* SPDX-License-Identifier: Apache-2.0 */
#include "eval_show.h"
#include "cli.h"
#include "json_out.h"
#include "terminal_filter.h"

#include <cloche/host_file.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static json_t *json_context(const cloche_run *run, const char *name)
{
	const cloche_context_use *use = cloche_run_context(run);
	json_t *lost = json_null();

	if (use->lost)
		lost = json_pack("{s:i, s:o}", "exit_code", use->lost_exit_code, "signal",
			json_signal(use->lost_signal));
	return json_pack("{s:s, s:b, s:o, s:b}", "name", name, "began", use->began, "lost", lost,
		"ended", use->ended);
}

static bool eval_add(json_t *doc, const char *key, json_t *value)
{
	return json_object_set_new(doc, key, value) == 0;
}

/* Value and results are already JSON. Parsing the value with jansson could lose digits. */
bool eval_print_json(const cloche_run *run, enum cloche_code_kind kind, const char *context)
{
	size_t n, repr_n;
	const char *value = cloche_code_result(run, 0, "json", &n, NULL);
	const char *results = cloche_code_results_json(run);
	const struct json_member members[] = {
		{"value", value ? value : "null"}, {"results", results}};
	json_t *doc = json_shell_result(run);
	const char *text, *repr;

	if (!doc || (context && !eval_add(doc, "context", json_context(run, context))))
		return false;
	if (kind == CLOCHE_CODE_PROGRAM)
		return json_print(doc);
	text = cloche_code_result(run, 0, "text", &n, NULL);
	repr = cloche_code_result(run, 0, "repr", &repr_n, NULL);
	if (!results || !eval_add(doc, "text", text ? json_bytes(text, n) : json_null()) ||
		!eval_add(doc, "repr", repr ? json_bytes(repr, repr_n) : json_null()) ||
		!eval_add(doc, "hasJson", json_boolean(value != NULL)))
		return false;
	return json_print_with(doc, members, 2);
}

bool eval_print_values(const cloche_run *run, enum cloche_code_kind kind)
{
	struct terminal_filter f;
	bool ok = true;

	if (cloche_code_results(run) == 0 && kind == CLOCHE_CODE_EXPRESSION &&
		cloche_run_result(run)->exit_code == 0)
		say("the expression ended without a value");
	terminal_filter_open(&f, STDOUT_FILENO, false);
	for (size_t i = 0; i < cloche_code_results(run) && ok; i++) {
		size_t n;
		bool cut;
		const char *text = cloche_code_result(run, i, "text", &n, &cut);

		if (i == 0 && cut)
			say("the value was cut: it is longer than 16 MiB");
		ok = terminal_filter_write(&f, STDOUT_FILENO, text, n) &&
		     terminal_filter_write(&f, STDOUT_FILENO, "\n", 1);
	}
	return terminal_filter_close(&f, STDOUT_FILENO) && ok;
}

void eval_tell_context(const cloche_run *run, const char *context)
{
	const cloche_context_use *use = cloche_run_context(run);

	if (use->lost && use->lost_signal)
		say("context %s had been ended by signal %d, and was begun anew", context,
			use->lost_signal);
	else if (use->lost)
		say("context %s had ended with exit code %d, and was begun anew", context,
			use->lost_exit_code);
	if (cloche_run_result(run)->timed_out && !use->ended)
		say("timed out: the code was interrupted; context %s lives on", context);
	else if (cloche_run_result(run)->timed_out)
		say("timed out, and an interrupt did not help: context %s was ended", context);
	else if (use->ended)
		say("context %s has ended: the next call begins it anew", context);
}

/* --- a file --- */

const char *eval_type_of(const char *path)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {{".png", "png"}, {".jpg", "jpeg"}, {".jpeg", "jpeg"}, {".svg", "svg"},
		{".html", "html"}, {".htm", "html"}, {".md", "markdown"}, {".tex", "latex"},
		{".json", "json"}, {".txt", "text"}};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(dot, types[i].suffix) == 0)
			return types[i].type;
	return NULL;
}

static bool write_whole(const char *path, const void *p, size_t n)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_host_file *f;
	int fd;

	if (cloche_host_file_begin(path, 0666, &f, &fd, &err) < 0) {
		complain(&err);
		return false;
	}
	if (!put(fd, p, n)) {
		say("cannot write %s: %s", path, strerror(errno));
		cloche_host_file_abort(f);
		return false;
	}
	if (cloche_host_file_commit(f, true, &err) < 0) {
		complain(&err);
		return false;
	}
	return true;
}

bool eval_write_file(const cloche_run *run, const char *path)
{
	const char *type = eval_type_of(path);

	for (size_t i = 0; i < cloche_code_results(run); i++) {
		size_t n;
		bool cut;
		const void *p = cloche_code_result(run, i, type, &n, &cut);

		if (p)
			return write_whole(path, p, n);
		if (cut) {
			say("the result of type %s was left out: it was too large", type);
			return false;
		}
	}
	say("no result of the code has the type %s: %s was not written", type, path);
	return false;
}
