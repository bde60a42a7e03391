/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * An ordinary user may map one id, his own, and only after giving up setgroups(). The new process
 * does that itself, so no set-uid helper is involved (newuidmap and newgidmap would take a third of
 * the time in which a room starts, and files of other ids that are left in a directory of his he
 * could not remove). Which id that is inside is free to choose. Root could map itself, but then
 * root inside would be root outside as soon as anything leaks. So root maps a range of ids that no
 * account has; that takes a capability in the parent's namespace, so the parent does it. The ranges
 * are multiples of 65536, so that two rooms share either a whole range or nothing. Which ids a room
 * has outside matters little, as everything it can write to is either its own tmpfs or an idmapped
 * mount. */
#include "room/idmap.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "jail/caps.h"
#include "room/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The free ranges: 0x70000000 up to where systemd's foreign range (0x7FFE0000) begins. */
#define RANGE_FIRST 0x70000000u
#define RANGE_COUNT 4094u

static int write_text(const char *path, const char *text, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);

	/* The kernel takes a map only in one single write. */
	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		return err_sys(err, errno, "write %s", path);
	return 0;
}

/* Return whether all of [first, first + IDMAP_RANGE) exists in the namespace that we are in. */
static bool map_covers(const char *path, uint32_t first)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(65536);
	struct str rest;

	if (fd_read_file(AT_FDCWD, path, &text, NULL) < 0 || !buf_cstr(&text))
		return false;
	rest = buf_str(&text);
	while (rest.n) {
		struct str line = str_next_line(&rest);
		uint64_t inside, outside, count;

		if (sscanf(line.p, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
			inside <= first && inside + count >= (uint64_t)first + IDMAP_RANGE)
			return true;
	}
	return false;
}

/* Find the first range of at least IDMAP_RANGE ids that a subid file grants to root. */
static bool subid_of_root(const char *path, uint64_t *ret)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1024 * 1024);
	struct str rest;

	if (fd_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return false;
	rest = buf_str(&text);
	while (rest.n) {
		struct str line = str_next_line(&rest), field;
		uint64_t first, count;

		field = str_next(&line, ':');
		if (!str_eq(field, STR("root")) && !str_eq(field, STR("0")))
			continue;
		if (parse_u64(str_next(&line, ':'), UINT32_MAX - IDMAP_RANGE, &first) < 0)
			continue;
		if (parse_u64(str_trim(line), UINT32_MAX, &count) < 0 || count < IDMAP_RANGE ||
			first < IDMAP_RANGE)
			continue;
		*ret = first;
		return true;
	}
	return false;
}

static uint32_t pick_range(const char *room_id)
{
	uint64_t uid_first, gid_first;
	uint32_t h = 2166136261u;

	if (subid_of_root("/etc/subuid", &uid_first) && subid_of_root("/etc/subgid", &gid_first) &&
		uid_first == gid_first)
		return (uint32_t)uid_first;
	/* FNV-1a: the same room gets the same range again. */
	for (; *room_id; room_id++)
		h = (h ^ (unsigned char)*room_id) * 16777619u;
	return RANGE_FIRST + (h % RANGE_COUNT) * IDMAP_RANGE;
}

struct idmap idmap_choose(const char *room_id, uint32_t uid, uint32_t gid)
{
	struct idmap m = {.uid = uid, .gid = gid};

	if (geteuid() == 0) {
		m.base = pick_range(room_id);
		m.range = caps_have(CAPS_SYS_ADMIN) && map_covers("/proc/self/uid_map", m.base) &&
			  map_covers("/proc/self/gid_map", m.base);
	}
	if (m.range)
		m.uid = m.gid = 0;
	return m;
}

int idmap_write_self(
	const struct idmap *m, uid_t outer_uid, gid_t outer_gid, struct cloche_err *err)
{
	char text[64];
	int r;

	/* Those files belong to root of the host while we are not dumpable. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return err_sys(err, errno, "make the process dumpable");
	r = write_text("/proc/self/setgroups", "deny", err);
	if (r == 0) {
		snprintf(text, sizeof(text), "%u %u 1", m->uid, outer_uid);
		r = write_text("/proc/self/uid_map", text, err);
	}
	if (r < 0) {
		if (outer_uid == 0)
			err_hint(err, "root needs the capability SETFCAP for it, or be an ordinary "
				      "user");
		ns_explain_apparmor(outer_uid, err);
		return r;
	}
	snprintf(text, sizeof(text), "%u %u 1", m->gid, outer_gid);
	return write_text("/proc/self/gid_map", text, err);
}

int idmap_write_range(const struct idmap *m, pid_t pid, struct cloche_err *err)
{
	char text[64], path[64];
	int r;

	snprintf(text, sizeof(text), "0 %u %d", m->base, IDMAP_RANGE);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	r = write_text(path, text, err);
	if (r < 0) {
		err_hint(err, "root needs the capability SETUID for it");
		return r;
	}
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	r = write_text(path, text, err);
	if (r < 0)
		err_hint(err, "root needs the capability SETGID for it");
	return r;
}

int idmap_become_first(const struct idmap *m, struct cloche_err *err)
{
	/* With a single id the groups of the host user stay (the kernel allows nothing else); they
	 * are unmapped, so they show as the overflow group. */
	if (m->range && setgroups(0, NULL) < 0)
		return err_sys(err, errno, "drop the supplementary groups");
	if (setresgid(m->gid, m->gid, m->gid) < 0)
		return err_sys(err, errno, "become group %u in the room", m->gid);
	if (setresuid(m->uid, m->uid, m->uid) < 0)
		return err_sys(err, errno, "become user %u in the room", m->uid);
	return 0;
}

int idmap_open_ns(pid_t pid, int *ret_fd, struct cloche_err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "open the room's user namespace");
	*ret_fd = fd;
	return 0;
}
