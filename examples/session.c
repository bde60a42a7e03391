/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into an execution context: session DIR. */
#include <cloche/session.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	cloche_session *session = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	const char *resume;

	if (argc != 2) {
		fprintf(stderr, "usage: session DIR\n");
		return 2;
	}
	if (cloche_session_load(argv[1], &session, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	resume = cloche_session_id_for_resume(session);
	printf("%s: %zu replies, resume with %s\n", cloche_session_context_id(session),
		cloche_session_reply_count(session), resume ? resume : "(nothing)");
	cloche_session_free(session);
	return 0;
}
