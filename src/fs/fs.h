/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cloche's own files: complete reads, atomic writes, private directories; and the marks of the
 * overlays that it mounts (with userxattr). */

#include "base/buf.h"
#include "base/err.h"
#include <dirent.h>
#include <linux/limits.h>
#include <sys/stat.h>

/* The attribute of a directory in a layer that hides what the layers below have in it: "y". */
#define FS_OPAQUE "user.overlay.opaque"

/* The attribute of a program that gives capabilities when it is executed. */
#define FS_CAPABILITIES "security.capability"

/* Return whether a directory (opened for reading) of a layer has that mark. */
bool fs_is_opaque(int dir);
/* Return whether this entry of a layer is a mark that nothing has its name (whiteout). */
bool fs_is_whiteout(const struct stat *st);

/* Open path beneath dir, name by name and through no link, so that nothing that others do to the
 * names meanwhile leads anywhere else (INV-NAMED-ONCE). dir AT_FDCWD: path is absolute, and has no
 * link in it. "" is dir itself. flags are those of open(2) without O_CREAT; O_NOFOLLOW and
 * O_CLOEXEC are added, and O_NONBLOCK and O_NOCTTY unless O_PATH is among them. Return a descriptor
 * or -errno. */
int fs_open_beneath(int dir, const char *path, int flags);

/* Open (O_PATH) the file that fd was opened on once more, in the present mount namespace, by the
 * path that the kernel knows for it now. Return a descriptor or -errno: ENOENT if it was removed,
 * ESTALE if it is moved again and again. */
int fs_open_again(int fd);

/* Write a file completely or not at all: write a temporary file next to it, fsync if durable,
 * rename. */
_warn_unused_ int fs_write_atomic(int dirfd, const char *path, struct str data, unsigned mode,
	bool durable, struct cloche_err *err);

/* Rename within a directory, to a name that is not taken (-EEXIST). If a file system cannot refuse
 * a taken name, a link does; if it has no links, or for a directory, it is asked before, so
 * somebody else may take the name meanwhile. Return 0 or -errno. */
_warn_unused_ int fs_rename_new(int dirfd, const char *from, const char *to);

/* Make path and its missing parents with this mode. A directory that exists is fine. */
_warn_unused_ int fs_mkdirs(const char *path, unsigned mode, struct cloche_err *err);

/* Make (if missing) and open a directory that must belong to us and not be writable by others.
 * Return the descriptor. */
_warn_unused_ int fs_open_private_dir(const char *path, struct cloche_err *err);

/* Check that an open directory belongs to us and is not writable by others. path: for messages. */
_warn_unused_ int fs_check_private(int fd, const char *path, struct cloche_err *err);

struct fs_removal {
	bool force; /* open directories that are closed to their owner, and go on after failures */
	int (*beat)(void *user); /* called before each removal, if not NULL; a negative result is a
				  * failure */
	void *user;
	struct buf *where; /* gets the path, below the tree's name, of what cannot be removed; NULL
			    * for none, and with force */
};

/* Remove name in dirfd with everything below it, however deep. Links are removed, not followed;
 * what is mounted in it is kept (-EBUSY). Return 0 or -errno. */
_warn_unused_ int fs_remove(int dirfd, const char *name, const struct fs_removal *how);

/* The same with force. A missing tree is fine. */
int fs_remove_tree(int dirfd, const char *name);

/* Remove set-id bits and capabilities from a file; leave anything but a regular one alone. name "":
 * the file is dirfd itself. Return 0 or -errno. */
_warn_unused_ int fs_strip_rights(int dirfd, const char *name);

/* Open a directory to list its names; a link at the end of path is not followed. Return NULL with
 * errno on failure. */
DIR *fs_list(int dirfd, const char *path);
/* Return the next entry but "." and "..". NULL with errno: 0 after the last one. */
struct dirent *fs_list_next(DIR *list);
static inline void fs_list_closep(DIR **list)
{
	if (*list)
		closedir(*list);
}

/* Watch the directory dir (O_PATH suffices) for these changes (inotify(7), IN_...). Return a
 * descriptor that becomes readable with each one, or -errno: a user has a number of such
 * descriptors (EMFILE), and a change that another machine makes is not seen. */
_warn_unused_ int fs_notify(int dir, uint32_t changes);
/* Forget what a watch has reported; it becomes readable again with the next change. */
void fs_notify_clear(int watch);

/* Return the user's home directory: $HOME, or the account's if $HOME is unset, relative or "/".
 * Heap; NULL if there is none. Privileged programs ignore the variable. */
char *fs_home(void);

/* Store the path of what the user keeps for cloche by this name, below $XDG_CONFIG_HOME or
 * ~/.config, on the heap; NULL: there is no home. Return 0 or -ENOMEM. */
_warn_unused_ int fs_config_path(const char *name, char **ret);

/* Return the umask of this process, or 077 if it cannot be read. (Calling umask() would change it
 * for other threads for a moment.) */
unsigned fs_umask(void);

/* Return the absolute form of path: a relative path is put behind the working directory, "." and
 * doubled slashes are removed; ".." and symbolic links stay. Heap; NULL with errno. */
char *fs_absolute(const char *path);

/* Return the same without "..": each one is removed with the name before it, by the text alone. So
 * if that name is a link, the result is another place: use it for places in a room, not to find a
 * file. Heap; NULL with errno. */
char *fs_lexical(const char *path);

/* Resolve "." and ".." by the text alone in a path as it is seen from the directory dir of a tree;
 * an absolute one begins at the top. dir and the result are relative to the top, "" is the top
 * itself. Return false if it leads above the top, or is too long. */
_warn_unused_ bool fs_resolve(const char *dir, const char *path, char ret[PATH_MAX]);

/* Return the part of path below dir: "" if path is dir itself, NULL if it does not lie in dir. Only
 * the names are compared: slashes may be doubled or at an end, "." and ".." are names, and links
 * are not followed. An absolute path lies in "/", a relative one only in a relative directory. */
const char *fs_below(const char *path, const char *dir);

/* Return whether path is dir or lies in it, by the same rule. */
static inline bool fs_is_within(const char *path, const char *dir)
{
	return fs_below(path, dir) != NULL;
}

/* Return whether path lies in one of these directories (NULL or a strv), by the same rule. */
bool fs_is_within_any(const char *path, char *const *dirs);

/* Return "a/b"; an absolute b replaces a. Heap; NULL on lack of memory. */
char *fs_join(const char *a, const char *b);

/* Write "in/name" to ret; one of them alone if the other is "". Return 0 or -ENAMETOOLONG. */
int fs_join_in(char *ret, size_t size, const char *in, const char *name);
