/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the mark of what is told is the hash of the files' paths. So it is told
 * again if there is one more. */
#include "api/start/hidden.h"
#include "base/sha256.h"
#include "base/strv.h"
#include "workspace/told.h"

#include <string.h>

enum { HIDDEN_TEXT_MAX = 64 * 1024 };

int hidden_tell(struct client *client, const struct room_spec *room, cloche_warning_fn fn,
	void *user, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(HIDDEN_TEXT_MAX);
	_cleanup_(strv_freep) char **paths = NULL;
	char mark[SHA256_HEX_MAX];
	struct sha256 h;

	sha256_init(&h);
	for (size_t i = 0; fn && i < room->mounts_n; i++) {
		const struct room_mount *m = &room->mounts[i];

		if (!m->hidden)
			continue;
		sha256_add_framed(&h, str_from(m->source));
		if (strv_add(&paths, str_from(room_spec_guarded(room, m))) < 0)
			return err_nomem(err);
	}
	if (!paths)
		return 0;
	sha256_hex(&h, mark);
	if (buf_add_str(&text, STR("not shown inside: ")) < 0 ||
		told_quote_some(&text, paths, strv_count(paths)) < 0 ||
		buf_add_str(&text, STR(" (empty there); --hide '!NAME' shows a file, see "
				       "cloche-run(1)")) < 0 ||
		buf_add_char(&text, 0) < 0)
		return err_nomem(err);
	return client_tell_hidden(client, buf_data(&text), mark, fn, user, err);
}
