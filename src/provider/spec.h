/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The specification of a room: plain data, filled by the caller that wants a room and read by every
 * provider. Every pointer is heap memory that the spec owns; room_spec_done frees it. Nothing in
 * here is secret. */

#include "base/err.h"
#include "ipc/wire.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
	ROOM_MAX_MOUNTS = 512,
	ROOM_MAX_OPENED = 64,
	ROOM_MAX_LAYERS = 128,
	ROOM_LAYER_NAME = 64,
	ROOM_MAX_PLACES = 256,
	ROOM_USER_MAX = 32, /* as useradd(8) */
	ROOM_ID_MAX = 64,   /* bytes of an id: [A-Za-z0-9_-], first not '-' */
	ROOM_PLACE_MAX = 512,
	ROOM_SYNC_MAX = 16,
};

enum room_root {
	ROOM_ROOT_HOST,  /* read-only view of the host's system directories, synthesized /etc */
	ROOM_ROOT_DIR,   /* a directory under a throw-away overlay */
	ROOM_ROOT_IMAGE, /* layers of the image store, likewise */
	ROOM_ROOT_END_,
};

enum room_net {
	ROOM_NET_NONE,    /* a loopback device and nothing else */
	ROOM_NET_GATEWAY, /* every address is captured; its listeners are handed over by
			     room_listeners() */
	ROOM_NET_HOST,    /* the machine's own network, without isolation */
	ROOM_NET_END_,
};

/* A directory or regular file of the host. It was opened once, when it was granted, and from then
 * on that descriptor counts: source is for words and for judging what the user has named. A guard
 * is a part of another mount and is mounted over itself there, which keeps it in its place, or
 * read-only. It is found below that mount's descriptor, and must be the file that was found before
 * (INV-NAMED-ONCE). */
struct room_mount {
	char *source;   /* path on the host, absolute */
	char *target;   /* path in the room, absolute */
	char *also;     /* a second path of it, likewise, with all that is mounted in it; or NULL */
	int fd;         /* O_PATH, owned; -errno: it could not be opened. A guard has none */
	uint32_t guard; /* number (from 1) of an earlier mount that it guards a part of; 0: it is
			 * no guard */
	uint64_t device, inode; /* of a guard: what was found */
	bool ro;
	bool file;     /* it is a file, not a directory */
	bool found;    /* nobody has named it */
	bool closed;   /* a file. If the directory around it has to be made for it, the directory is
			* read-only. If that is not possible, the mount is left out */
	bool unobeyed; /* nothing on the host obeys what is in it: it is neither guarded nor
			* searched when the room has ended */
	bool hooks;    /* of a guard: it is a directory in which git looks for hooks */
	bool config;   /* of a guard: it is a configuration of a repository of git */
	bool hidden; /* of a guard: it is a file that the room does not get; an empty one lies over
		      * it. found: by its name alone, nobody has asked for it */
	/* Of a configuration, not part of messages: the text of the copy that commands may change,
	 * and the hooks directory that it would name; NULL: none */
	char *text, *own_hooks;
};

/* In a room, by the number of the guard (from 0): what lies over directories of hooks, or in place
 * of those that a configuration names (view), and a directory with the copy of a configuration. */
#define ROOM_GIT_HOOKS "/run/cloche/hooks"
#define ROOM_GIT_VIEW ROOM_GIT_HOOKS "/%zu/view"
#define ROOM_GIT_CONFIG "/run/cloche/config"
/* What lies over hidden files. */
#define ROOM_HIDDEN "/run/cloche/hidden"

/* Every limit of options.def, which says what each means; 0: no limit (or the provider's default if
 * there is one). */
struct room_limits {
#define OPTION(member, type, ...)
#define LIMIT(member, word, ...) uint64_t member;
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
	bool best_effort; /* go on if a limit cannot be enforced; struct room says which */
	bool memory_optional, cpus_optional; /* the same for one limit, which nobody asked for */
};

struct room_spec {
	char *id;
	enum room_root root;
	char *root_dir; /* for ROOM_ROOT_DIR; for ROOM_ROOT_IMAGE the directory of the layers */
	int root_fd;    /* for ROOM_ROOT_DIR: that directory, O_PATH, owned; else -1 */
	char **layers;  /* of an image, the lowest first: their names in that directory, 64 digits
			 * each (strv) */
	char *image;    /* of an image: its id in the store, 64 digits */
	char **places;  /* of an image: directories that have to exist, absolute (strv) */
	bool overlay;   /* changes to the root, including /usr of the host's view, go to a layer of
			 * their own that can be examined (room_layers()) */
	char *keep_dir; /* where that layer is kept (room/keep.h), absolute; NULL: it
			 * vanishes with the room. Implies overlay */
	struct room_mount *mounts;
	size_t mounts_n;
	struct room_limits limits;
	enum room_net net;
	bool nested; /* processes inside may make namespaces of their own, including user namespaces
		      */
	bool masked; /* it has masked secrets, which are of use only behind a gateway */
	/* An agent has its home in it, which stays on this machine. */
	bool keeps_home;
	/* Borrowed, -1: none. A pipe from which certificates to trust besides the root's own (PEM)
	 * are read until its end. It is read as late as possible while the room is made, since
	 * their maker starts at the same time. An end without any certificate, or no end within ten
	 * seconds, is an E_NETWORK error. */
	int ca_fd;
	char *init_path;   /* host path of the program that becomes process 1 */
	char *place;       /* where the room is made, in the provider's words; NULL: here */
	char *place_image; /* the image that the place itself starts the room in, in the provider's
			    * words (root is ROOM_ROOT_HOST: that image's system); NULL: none */
	char *sync;        /* which files of its mounts a room elsewhere gets; NULL: all */
	uint64_t far_usec; /* how long a room elsewhere lives without a connection; 0: a default */
	char *host_home;   /* the user's home directory, whose credentials are kept out */
	char **opened;     /* paths of the host that stay writable although the host obeys them,
			    * because the user asked for it (strv) */

	/* Who its processes are, inside. A provider whose rooms have one user maps the caller's own
	 * ids to these. user: the account's name, NULL if it has none. own_user: nobody asked for
	 * it: it is the caller's own, and a provider whose rooms have root may ignore it. */
	uint32_t uid, gid;
	char *user;
	bool own_user;

	/* KEY=VALUE, for providers whose rooms have labels (strv, borrowed); NULL: none. Not part
	 * of messages. */
	char *const *labels;
	uint64_t lifetime_usec; /* the room is ended then, by who has it made; 0: never. Not part of
				 * messages */
	/* Called while the room is made, as soon as process 1 exists, for work to be done at the
	 * same time and before the room is ready. NULL: nothing. Not part of messages. */
	void (*born)(void *user, pid_t init);
	void *born_user;
	/* Called if no room was made because the provider, which was asked for none at another
	 * place, makes them at this place alone. NULL: nothing. user: born_user. */
	void (*elsewhere)(void *user, const char *place);
	/* Return whether the caller no longer waits for the room; asked by providers that take
	 * seconds to make one. NULL: never. user: born_user. */
	bool (*given_up)(void *user);
};

/* Return the effective tmpfs_bytes of these limits; 0: leave it to the kernel. */
uint64_t room_limits_tmpfs(const struct room_limits *l);

/* Set everything to empty and -1: a room without mounts, network or limits on the host's root. */
void room_spec_init(struct room_spec *s);
void room_spec_done(struct room_spec *s);

/* Add a mount with copies of source and target. Both have to be absolute (E_USAGE), and the target
 * must not contain "." or "..". Mounts are made in the order in which they were added, so a later
 * one may lie inside an earlier one. The source is opened now, following links; if that fails,
 * making the room says so. */
_warn_unused_ int room_spec_add_mount(struct room_spec *s, const char *source, const char *target,
	bool ro, struct cloche_err *err);
/* The same with a source that is open already (borrowed). */
_warn_unused_ int room_spec_add_opened(struct room_spec *s, int fd, const char *source,
	const char *target, bool ro, struct cloche_err *err);
/* Add a guard: path is relative to mount number `mount` (from 0), and st says what was found. */
_warn_unused_ int room_spec_add_guard(struct room_spec *s, size_t mount, const char *path,
	const struct stat *st, bool ro, struct cloche_err *err);
/* Return where a guard lies, relative to its mount. */
const char *room_spec_guarded(const struct room_spec *s, const struct room_mount *guard);
/* Close the sources. */
void room_spec_close(struct room_spec *s);

/* Return the path by which what lies at `path` of the room is recorded: the first one of a mount
 * that has two. Heap; NULL on lack of memory. */
char *room_spec_recorded(const struct room_spec *s, const char *path);
/* Return whether this may be the name of a user or group: it becomes a field of /etc/passwd and a
 * part of a path. */
bool room_user_is_name(struct str s);
/* Return whether a place may be called so: any text without control characters. */
bool room_place_is_name(struct str s);

/* Check what does not depend on the machine: id, paths, ranges. Every provider calls this first, as
 * the spec may come over a socket. */
_warn_unused_ int room_spec_check(const struct room_spec *s, struct cloche_err *err);

/* Append the whole spec to a message. */
void room_spec_put(struct wire_out *w, const struct room_spec *s);
/* Read a spec. ret is always initialised: free it with room_spec_done. Return false if it is
 * malformed. room_spec_check checks what the values mean. */
bool room_spec_get(struct wire_in *r, struct room_spec *ret);

static inline void room_spec_donep(struct room_spec *s)
{
	room_spec_done(s);
}
