/* SPDX-License-Identifier: Apache-2.0 */
/* What a full record says about code. A program or an expression is noted with its command. Calls
 * into a context are recorded one by one, because its interpreter is a single command. */
#include "api/code.h"
#include "api/run.h"
#include "api/state.h"
#include "base/jsonout.h"

#include <errno.h>

enum { MAX_NOTED = 64 << 10 };

int code_note(cloche_run *run, struct str text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(CTL_MAX_NOTE);
	struct jsonout o = {.b = &b};

	jsonout_open(&o, "code", '{');
	jsonout_text(&o, "runtime", code_runtime_name(run->code));
	if (run->code->call)
		jsonout_text(&o, "context", run->code->call->name);
	jsonout_bool(&o, "expression", run->code->kind == CLOCHE_CODE_EXPRESSION);
	jsonout_number(&o, "bytes", text.n);
	if (text.n <= MAX_NOTED)
		jsonout_str(&o, "text", text);
	jsonout_close(&o, '}');
	run->note = o.error < 0 ? NULL : str_dup(buf_str(&b));
	return run->note ? 0 : -ENOMEM;
}

char *code_context_note(const struct code *code)
{
	char *note;

	return asprintf(&note, "\"code\":{\"runtime\":\"%s\",\"context\":\"%s\"}",
		       code_runtime_name(code), code->call->name) < 0
		       ? NULL
		       : note;
}

static int describe(const cloche_run *run, struct buf *b)
{
	const struct client_result *result = &run->result;
	struct jsonout o = {.b = b};
	size_t n;
	const char *value = cloche_run_value_text(run, &n);

	jsonout_open(&o, NULL, '{');
	jsonout_number(&o, "exec", run->code->call->number);
	jsonout_raw(&o, NULL, str_from(run->note));
	jsonout_number(&o, "status", (uint64_t)result->status);
	jsonout_bool(&o, "signaled", result->signaled);
	jsonout_bool(&o, "timed_out", result->timed_out);
	jsonout_number(&o, "duration_usec", result->duration_usec);
	if (value)
		jsonout_str(&o, "value", str_make(value, MIN(n, (size_t)MAX_NOTED)));
	jsonout_close(&o, '}');
	return o.error;
}

int code_record_call(const cloche_run *run, struct cloche_err *err)
{
	_cleanup_(state_home_done) struct state_home home = STATE_HOME_INIT;
	_cleanup_(buf_donep) struct buf args = BUF_INIT(2 * CTL_MAX_NOTE);
	int r = state_home_find(run->in, &home, NULL);

	/* A sandbox that keeps no state has no record either. */
	if (r == -E_UNSUPPORTED || (r == 0 && !home.full))
		return 0;
	if (r == 0 && describe(run, &args) < 0)
		return err_nomem(err);
	return r < 0 ? r : state_home_add_event(&home, STATE_CODE_CALL, buf_str(&args), err);
}
