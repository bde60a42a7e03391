/* SPDX-License-Identifier: Apache-2.0 */
#include "files/protocol.h"

static bool request_allows(const void *m)
{
	const struct files_request *q = m;
	bool takes_other = q->op == FILES_OP_RENAME || q->op == FILES_OP_SYMLINK;

	return (q->mode <= 07777 || q->mode == FILES_KEEP_MODE) && takes_other == (q->other.n > 0);
}

static bool small_allows(const void *m)
{
	const struct files_small *s = m;

	return s->mode <= 07777 || s->mode == FILES_KEEP_MODE;
}

static bool entry_allows(const void *m)
{
	const struct files_entry *e = m;

	return !str_eq(e->name, STR(".")) && !str_eq(e->name, STR("..")) &&
	       str_chr(e->name, '/') == e->name.n;
}

/* The struct is declared in files/error.h. */
#define FILES_ERROR_FIELDS(F)                                                                      \
	F(I32, sys_errno, .min = 1, .max = 4095)                                                   \
	F(TEXT, entry, FILES_ENTRY_MAX)                                                            \
	F(TEXT, why, FILES_WHY_MAX)

MESSAGE_TABLE(files_error, FILES_ERROR_FIELDS, NULL);
MESSAGE_TABLE(files_request, FILES_REQUEST_FIELDS, request_allows);
MESSAGE_TABLE(files_small, FILES_SMALL_FIELDS, small_allows);
MESSAGE_TABLE(files_ready, FILES_READY_FIELDS, NULL);
MESSAGE_TABLE(files_moved, FILES_MOVED_FIELDS, NULL);
MESSAGE_TABLE(files_stat, FILES_STAT_FIELDS, NULL);
MESSAGE_TABLE(files_entry, FILES_ENTRY_FIELDS, entry_allows);
MESSAGE_TABLE(files_target, FILES_TARGET_FIELDS, NULL);
MESSAGE_TABLE(files_event, FILES_EVENT_FIELDS, NULL);

int files_send_empty(struct chan *c, enum files_frame type)
{
	return chan_send(c, (uint16_t)type, STR_NULL, NULL, 0);
}

int files_send_error(struct chan *c, const struct files_error *e)
{
	return message_send(c, FILES_ERROR, files_error_message(), e, NULL, 0);
}

bool files_get_error(struct str payload, struct files_error *ret)
{
	return message_get(payload, files_error_message(), ret);
}

void files_stat_from(struct files_stat *ret, const struct stat *st)
{
	*ret = (struct files_stat){.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
		.size = (uint64_t)st->st_size,
		.links = st->st_nlink,
		.device = st->st_dev,
		.inode = st->st_ino,
		.mtime_sec = st->st_mtim.tv_sec};
}
