/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a place is asked by `probe` without a script, so nothing is brought there
 * and no stream is made: the program only says whether it reaches the place. It runs while others
 * are asked and heard. */
#include "provider/program/operations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUEST_MAX = 64 * 1024 };

struct provider_asked {
	struct process run;
	struct buf request;
};

static struct provider_asked *asked_free(struct provider_asked *asked)
{
	if (asked)
		buf_done(&asked->request);
	free(asked);
	return NULL;
}

DEFINE_CLEANUP(struct provider_asked, asked_free)

void program_tell_about(const struct words_answer *answer, struct provider_about *ret)
{
	snprintf(ret->version, sizeof(ret->version), "%s", answer->version);
	snprintf(ret->doubt, sizeof(ret->doubt), "%s", answer->hint);
}

int program_ask_place(const struct provider *p, const char *place, int patience_sec,
	struct provider_asked **ret, struct cloche_err *err)
{
	_cleanup_(asked_freep) struct provider_asked *asked = calloc(1, sizeof(*asked));
	int r;

	if (!asked)
		return err_nomem(err);
	asked->request = BUF_INIT(REQUEST_MAX);
	if (describe_id(&(struct describe_which){.place = place}, &asked->request) < 0)
		return err_nomem(err);
	r = process_begin(&asked->run, p,
		&(struct process_ask){.verb = "probe",
			.request = buf_str(&asked->request),
			.patience_sec = patience_sec},
		err);
	if (r == 0)
		*ret = TAKE_PTR(asked);
	return r;
}

int program_hear_place(
	struct provider_asked *asked, struct provider_about *ret, struct cloche_err *err)
{
	_cleanup_(asked_freep) struct provider_asked *mine = asked;
	struct words_answer answer;
	bool silent;
	int r;

	*ret = (struct provider_about){0};
	(void)process_wait(&mine->run, -1);
	silent = mine->run.trouble == -ETIMEDOUT;
	r = process_end(&mine->run, &answer, silent ? NULL : err);
	if (r == 0)
		program_tell_about(&answer, ret);
	return silent ? 1 : r;
}
