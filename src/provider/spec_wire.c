/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/spec_wire.h"
#include "ipc/message.h"

enum { MAX_PATH = 4095 };

#define MOUNT_FIELDS(F)                                                                            \
	F(Z, source, .max = MAX_PATH)                                                              \
	F(Z, target, .max = MAX_PATH)                                                              \
	F(BOOL, ro)                                                                                \
	F(BOOL, optional)                                                                          \
	F(BOOL, no_link)                                                                           \
	F(BOOL, guard)

static MESSAGE_TABLE(room_mount, MOUNT_FIELDS, NULL);

static const struct message *room_limits_message(void)
{
	typedef struct room_limits self;
	static const struct field fields[] = {
#define OPTION(member, type, ...)
#define LIMIT(member, ...) MESSAGE_ROW_U64(member)
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
		MESSAGE_ROW_BOOL(best_effort) MESSAGE_ROW_BOOL(memory_optional)
			MESSAGE_ROW_BOOL(cpus_optional)};
	static const struct message table = {
		"room_limits", fields, ARRAY_SIZE(fields), sizeof(self), NULL};

	return &table;
}

#define SPEC_FIELDS(F)                                                                             \
	F(OPTIONAL, id, .max = ROOM_ID_MAX)                                                        \
	F(ENUM, root, room_root, ROOM_ROOT_END_)                                                   \
	F(OPTIONAL, root_dir, .max = MAX_PATH)                                                     \
	F(STRV, layers, .max = ROOM_LAYER_NAME, .max_n = ROOM_MAX_LAYERS)                          \
	F(OPTIONAL, image, .max = ROOM_LAYER_NAME)                                                 \
	F(STRV, places, .max = MAX_PATH, .max_n = ROOM_MAX_PLACES)                                 \
	F(BOOL, overlay)                                                                           \
	F(OPTIONAL, keep_dir, .max = MAX_PATH)                                                     \
	F(PARTS, mounts, room_mount, ROOM_MAX_MOUNTS)                                              \
	F(PART, limits, room_limits)                                                               \
	F(ENUM, net, room_net, ROOM_NET_END_)                                                      \
	F(BOOL, nested)                                                                            \
	F(BOOL, masked)                                                                            \
	F(OPTIONAL, init_path, .max = MAX_PATH)                                                    \
	F(OPTIONAL, host_home, .max = MAX_PATH)                                                    \
	F(STRV, opened, .max = MAX_PATH, .max_n = ROOM_MAX_OPENED)

static MESSAGE_TABLE(room_spec, SPEC_FIELDS, NULL);

void room_spec_put(struct wire_out *w, const struct room_spec *s)
{
	message_put(w, room_spec_message(), s);
}

bool room_spec_get(struct wire_in *r, struct room_spec *ret)
{
	bool ok = message_take(r, room_spec_message(), ret);

	ret->ca_fd = -1;
	return ok;
}
