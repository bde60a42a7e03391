/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/spec_wire.h"
#include "base/strv.h"

enum { MAX_PATH = 4095 };

static void put_mounts(struct wire_out *w, const struct room_spec *s)
{
	wire_put_u32(w, (uint32_t)s->mounts_n);
	for (size_t i = 0; i < s->mounts_n; i++) {
		const struct room_mount *m = &s->mounts[i];

		wire_put_z(w, m->source);
		wire_put_z(w, m->target);
		wire_put_u8(w, m->ro);
		wire_put_u8(w, m->optional);
		wire_put_u8(w, m->no_link);
	}
}

static void put_limits(struct wire_out *w, const struct room_limits *l)
{
#define OPTION(member, type, ...)
#define LIMIT(member, ...) wire_put_u64(w, l->member);
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
	wire_put_u8(w, l->best_effort);
}

void room_spec_put(struct wire_out *w, const struct room_spec *s)
{
	wire_put_z(w, s->id);
	wire_put_u8(w, (uint8_t)s->root);
	wire_put_z(w, s->root_dir);
	wire_put_u8(w, s->overlay);
	wire_put_z(w, s->keep_dir);
	put_mounts(w, s);
	put_limits(w, &s->limits);
	wire_put_u8(w, (uint8_t)s->net);
	wire_put_u8(w, s->nested);
	wire_put_z(w, s->init_path);
	wire_put_z(w, s->host_home);
	wire_put_strv(w, s->opened);
}

/* An empty text stands for NULL. */
static char *get_optional(struct wire_in *r, size_t max)
{
	char *z = wire_get_z(r, max);

	if (z && !z[0]) {
		free(z);
		return NULL;
	}
	return z;
}

static void get_mounts(struct wire_in *r, struct room_spec *ret)
{
	uint32_t n = wire_get_u32(r);

	if (r->bad || n > ROOM_MAX_MOUNTS) {
		r->bad = true;
		return;
	}
	ret->mounts = n ? calloc(n, sizeof(*ret->mounts)) : NULL;
	if (n && !ret->mounts) {
		r->bad = true;
		return;
	}
	for (; ret->mounts_n < n && !r->bad; ret->mounts_n++) {
		struct room_mount *m = &ret->mounts[ret->mounts_n];

		m->source = wire_get_z(r, MAX_PATH);
		m->target = wire_get_z(r, MAX_PATH);
		m->ro = wire_get_bool(r);
		m->optional = wire_get_bool(r);
		m->no_link = wire_get_bool(r);
	}
}

static void get_limits(struct wire_in *r, struct room_limits *ret)
{
#define OPTION(member, type, ...)
#define LIMIT(member, ...) ret->member = wire_get_u64(r);
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
	ret->best_effort = wire_get_bool(r);
}

bool room_spec_get(struct wire_in *r, struct room_spec *ret)
{
	room_spec_init(ret);
	ret->id = get_optional(r, ROOM_ID_MAX);
	ret->root = wire_get_enum(r, ROOM_ROOT_END_);
	ret->root_dir = get_optional(r, MAX_PATH);
	ret->overlay = wire_get_bool(r);
	ret->keep_dir = get_optional(r, MAX_PATH);
	get_mounts(r, ret);
	get_limits(r, &ret->limits);
	ret->net = wire_get_enum(r, ROOM_NET_END_);
	ret->nested = wire_get_bool(r);
	ret->init_path = get_optional(r, MAX_PATH);
	ret->host_home = get_optional(r, MAX_PATH);
	ret->opened = wire_get_strv(r, ROOM_MAX_OPENED, MAX_PATH);
	return !r->bad;
}
