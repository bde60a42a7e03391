/* SPDX-License-Identifier: Apache-2.0 */
#include "files/protocol.h"

#include <errno.h>

enum { NSEC_PER_SEC = 1000000000 };

static bool has_nul(struct str s)
{
	return str_chr(s, '\0') < s.n;
}

int files_send_request(struct chan *c, const struct files_request *m)
{
	struct frame_out f = frame_begin(c, FILES_REQUEST);

	wire_put_u8(&f.w, (uint8_t)m->op);
	wire_put_u32(&f.w, m->flags);
	wire_put_u32(&f.w, m->mode);
	wire_put_u64(&f.w, m->offset);
	wire_put_u64(&f.w, m->length);
	wire_put_str(&f.w, m->path);
	wire_put_str(&f.w, m->other);
	return frame_end(&f, NULL, 0);
}

bool files_get_request(struct str payload, struct files_request *ret)
{
	struct wire_in r = wire_in(payload);
	bool takes_other;

	*ret = (struct files_request){.op = wire_get_enum(&r, FILES_OP_END_)};
	ret->flags = wire_get_u32(&r);
	ret->mode = wire_get_u32(&r);
	ret->offset = wire_get_u64(&r);
	ret->length = wire_get_u64(&r);
	ret->path = wire_get_str(&r, FILES_MAX_PATH);
	ret->other = wire_get_str(&r, FILES_MAX_PATH);
	takes_other = ret->op == FILES_OP_RENAME || ret->op == FILES_OP_SYMLINK;
	return wire_ok(&r) && (ret->flags & ~(uint32_t)FILES_FLAGS_) == 0 &&
	       (ret->mode <= 07777 || ret->mode == FILES_KEEP_MODE) && ret->path.n > 0 &&
	       takes_other == (ret->other.n > 0) && !has_nul(ret->path) && !has_nul(ret->other);
}

int files_send_empty(struct chan *c, enum files_frame type)
{
	return chan_send(c, (uint16_t)type, STR_NULL, NULL, 0);
}

int files_send_ready(struct chan *c)
{
	struct frame_out f = frame_begin(c, FILES_READY);

	wire_put_u32(&f.w, FILES_VERSION);
	return frame_end(&f, NULL, 0);
}

bool files_get_ready(struct str payload, uint32_t *ret_version)
{
	struct wire_in r = wire_in(payload);

	*ret_version = wire_get_u32(&r);
	return wire_ok(&r);
}

int files_send_done(struct chan *c, const struct files_moved *m)
{
	struct frame_out f = frame_begin(c, FILES_DONE);

	wire_put_u64(&f.w, m->entries);
	wire_put_u64(&f.w, m->bytes);
	wire_put_u64(&f.w, m->left_out);
	return frame_end(&f, NULL, 0);
}

bool files_get_done(struct str payload, struct files_moved *ret)
{
	struct wire_in r = wire_in(payload);

	ret->entries = wire_get_u64(&r);
	ret->bytes = wire_get_u64(&r);
	ret->left_out = wire_get_u64(&r);
	return wire_ok(&r);
}

int files_send_error(struct chan *c, const struct files_error *e)
{
	struct frame_out f = frame_begin(c, FILES_ERROR);

	wire_put_u32(&f.w, (uint32_t)e->sys_errno);
	wire_put_z(&f.w, e->entry);
	wire_put_z(&f.w, e->why);
	return frame_end(&f, NULL, 0);
}

bool files_get_error(struct str payload, struct files_error *ret)
{
	struct wire_in r = wire_in(payload);
	uint32_t errnum = wire_get_u32(&r);
	struct str entry = wire_get_str(&r, FILES_ENTRY_MAX - 1);
	struct str why = wire_get_str(&r, FILES_WHY_MAX - 1);

	*ret = (struct files_error){.sys_errno = (int)errnum};
	if (!wire_ok(&r) || errnum == 0 || errnum > 4095 || has_nul(entry) || has_nul(why))
		return false;
	if (entry.n)
		memcpy(ret->entry, entry.p, entry.n);
	if (why.n)
		memcpy(ret->why, why.p, why.n);
	return true;
}

void files_put_stat(struct wire_out *w, const struct files_stat *m)
{
	wire_put_u32(w, m->mode);
	wire_put_u32(w, m->uid);
	wire_put_u32(w, m->gid);
	wire_put_u32(w, m->mtime_nsec);
	wire_put_u64(w, m->size);
	wire_put_u64(w, m->links);
	wire_put_u64(w, m->device);
	wire_put_u64(w, m->inode);
	wire_put_u64(w, (uint64_t)m->mtime_sec);
}

int files_send_stat(struct chan *c, const struct files_stat *m)
{
	struct frame_out f = frame_begin(c, FILES_STAT_IS);

	files_put_stat(&f.w, m);
	return frame_end(&f, NULL, 0);
}

bool files_get_stat(struct wire_in *r, struct files_stat *ret)
{
	ret->mode = wire_get_u32(r);
	ret->uid = wire_get_u32(r);
	ret->gid = wire_get_u32(r);
	ret->mtime_nsec = wire_get_u32(r);
	ret->size = wire_get_u64(r);
	ret->links = wire_get_u64(r);
	ret->device = wire_get_u64(r);
	ret->inode = wire_get_u64(r);
	ret->mtime_sec = (int64_t)wire_get_u64(r);
	if ((ret->mode & ~(uint32_t)(S_IFMT | 07777)) != 0 || ret->mtime_nsec >= NSEC_PER_SEC)
		r->bad = true;
	return !r->bad;
}

bool files_get_name(struct wire_in *r, struct str *ret)
{
	*ret = wire_get_str(r, FILES_MAX_NAME);
	if (ret->n == 0 || str_eq(*ret, STR(".")) || str_eq(*ret, STR("..")) || has_nul(*ret) ||
		str_chr(*ret, '/') < ret->n)
		r->bad = true;
	return !r->bad;
}

int files_send_target(struct chan *c, struct str target)
{
	struct frame_out f = frame_begin(c, FILES_TARGET);

	wire_put_str(&f.w, target);
	return frame_end(&f, NULL, 0);
}

bool files_get_target(struct str payload, struct str *ret)
{
	struct wire_in r = wire_in(payload);

	*ret = wire_get_str(&r, FILES_MAX_TARGET);
	return wire_ok(&r) && !has_nul(*ret);
}

void files_put_event(struct wire_out *w, const struct files_event *m)
{
	wire_put_u8(w, (uint8_t)m->change);
	wire_put_u8(w, m->is_directory);
	wire_put_u32(w, m->cookie);
	wire_put_str(w, m->path);
}

bool files_get_event(struct wire_in *r, struct files_event *ret)
{
	ret->change = wire_get_enum(r, FILES_CHANGE_END_);
	ret->is_directory = wire_get_bool(r);
	ret->cookie = wire_get_u32(r);
	ret->path = wire_get_str(r, FILES_MAX_PATH);
	if (has_nul(ret->path))
		r->bad = true;
	return !r->bad;
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
