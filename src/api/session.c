/* SPDX-License-Identifier: Apache-2.0 */
#include "session/store.h"
#include <cloche/session.h>

enum { INDENT = 2 };

struct cloche_session {
	struct session *store;
	struct buf json;
};

int cloche_session_load(const char *dir, cloche_session **ret, cloche_err *err)
{
	cloche_session *session = calloc(1, sizeof(*session));
	int r;

	if (!session)
		return err_nomem(err);
	session->json = BUF_INIT(SESSION_FILE_MAX);
	r = session_load(dir, &session->store, err);
	if (r < 0) {
		cloche_session_free(session);
		return r;
	}
	*ret = session;
	return 0;
}

void cloche_session_free(cloche_session *session)
{
	if (!session)
		return;
	session_free(session->store);
	buf_done(&session->json);
	free(session);
}

const char *cloche_session_context_id(const cloche_session *session)
{
	return session_context_id(session->store);
}

const char *cloche_session_model(const cloche_session *session)
{
	return session_model(session->store);
}

const char *cloche_session_id_for_resume(const cloche_session *session)
{
	return session_id_for_resume(session->store);
}

const char *cloche_session_last_successful_response(const cloche_session *session)
{
	return session_last_successful_response(session->store);
}

size_t cloche_session_reply_count(const cloche_session *session)
{
	return session_replies(session->store);
}

const char *cloche_session_json(cloche_session *session)
{
	buf_clear(&session->json);
	if (json_text_write(&session->json, session_document(session->store), INDENT) < 0)
		return NULL;
	return buf_cstr(&session->json);
}
