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
	resume = cloche_session_info_of(session)->id_for_resume;
	printf("%s: %zu replies, resume with %s\n", cloche_session_info_of(session)->context_id,
		cloche_session_info_of(session)->reply_count, resume ? resume : "(nothing)");
	cloche_session_free(session);
	return 0;
}
