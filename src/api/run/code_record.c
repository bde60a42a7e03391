/* SPDX-License-Identifier: Apache-2.0 */
/* What a full record says about code. The code is noted with its command. If it has a value, that
 * is recorded by us, with what was printed beside it, because the supervisor does not take the
 * output apart. Calls into a context are recorded one by one, because its interpreter is a single
 * command. */
#include "api/record/state.h"
#include "api/run/code.h"
#include "api/run/run.h"
#include "base/jsonout.h"

#include <errno.h>

enum { MAX_NOTED = 64 << 10 };

char *code_note(const struct code *code, const struct str *text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(CTL_MAX_NOTE);
	struct jsonout o = {.b = &b};

	jsonout_open(&o, "code", '{');
	jsonout_text(&o, "runtime", code->runtime->name);
	if (code->call)
		jsonout_text(&o, "context", code->call->name);
	if (text) {
		jsonout_bool(&o, "expression", code->kind == CLOCHE_CODE_EXPRESSION);
		jsonout_number(&o, "bytes", text->n);
	}
	if (text && text->n <= MAX_NOTED)
		jsonout_str(&o, "text", *text);
	jsonout_close(&o, '}');
	return o.error < 0 ? NULL : str_dup(buf_str(&b));
}

int code_keep_printed(struct code *code, int stream, const char *p, size_t n)
{
	struct buf *printed = &code->printed[stream - 1];
	size_t fits = MIN(n, buf_room(printed));

	code->printed_cut |= fits < n;
	return buf_add(printed, p, fits) < 0 ? -ENOMEM : 0;
}

static void describe_printed(const struct code *code, struct jsonout *o)
{
	static const char *const names[] = {"stdout", "stderr"};

	for (int i = 0; i < 2; i++)
		if (buf_len(&code->printed[i]) > 0)
			state_argument_write(o, names[i], buf_str(&code->printed[i]));
	if (code->printed_cut)
		jsonout_bool(o, "cut", true);
}

static int describe(const cloche_run *run, struct buf *b)
{
	const struct client_result *result = &run->result;
	const struct code_call *call = run->code->call;
	struct jsonout o = {.b = b};
	size_t n;
	const char *value = cloche_code_result(run, 0, "text", &n, NULL);

	jsonout_open(&o, NULL, '{');
	jsonout_number(&o, "exec", call ? call->number : result->number);
	jsonout_raw(&o, NULL, str_from(run->note));
	ctl_exit_write(&result->end, &o);
	if (value)
		jsonout_str(&o, "value", str_make(value, MIN(n, (size_t)MAX_NOTED)));
	describe_printed(run->code, &o);
	jsonout_close(&o, '}');
	return o.error;
}

static int find_home(const cloche_run *run, struct state_home *ret, struct cloche_err *err)
{
	int r;

	if (!run->in)
		return run->told.is_recorded
			       ? state_home_of_run(run->told.id, run->sb->record_sync, ret, err)
			       : 0;
	r = state_home_find(run->in, ret, err);
	/* A sandbox that keeps no state, or that is gone, has no record either. */
	if (r != -E_UNSUPPORTED && r != -E_NOT_FOUND)
		return r;
	err_clear(err);
	return 0;
}

int code_record_call(const cloche_run *run, struct cloche_err *err)
{
	_cleanup_(state_home_done) struct state_home home = STATE_HOME_INIT;
	_cleanup_(buf_donep) struct buf args = BUF_INIT(4 * CTL_MAX_NOTE);
	bool has_run = run->code->call || (!run->start_exit && !run->result.left);
	int r = code_has_value(run->code) && has_run ? find_home(run, &home, err) : 0;

	if (r < 0 || !home.full)
		return r;
	if (describe(run, &args) < 0)
		return err_nomem(err);
	return state_home_add_event(&home, STATE_CODE_CALL, buf_str(&args), err);
}
