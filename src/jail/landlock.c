/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/landlock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's interface (linux/landlock.h), also if the installed header is older. */
#define ACCESS_EXECUTE (1ULL << 0)
#define ACCESS_WRITE_FILE (1ULL << 1)
#define ACCESS_READ_FILE (1ULL << 2)
#define ACCESS_READ_DIR (1ULL << 3)
#define ACCESS_REMOVE_DIR (1ULL << 4)
#define ACCESS_REMOVE_FILE (1ULL << 5)
#define ACCESS_MAKE_CHAR (1ULL << 6)
#define ACCESS_MAKE_SYM (1ULL << 12)
#define ACCESS_REFER (1ULL << 13)    /* ABI 2 */
#define ACCESS_TRUNCATE (1ULL << 14) /* ABI 3 */
#define ACCESS_BIND_TCP (1ULL << 0)  /* ABI 4 */
#define ACCESS_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)
#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

enum { LANDLOCK_PATHS_MAX = 64 };

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

/* Everything that changes a file system, as far as the kernel knows it. */
static uint64_t write_rights(int abi)
{
	uint64_t rights = ACCESS_WRITE_FILE | ACCESS_REMOVE_DIR | ACCESS_REMOVE_FILE, bit;

	for (bit = ACCESS_MAKE_CHAR; bit <= ACCESS_MAKE_SYM; bit <<= 1)
		rights |= bit;
	if (abi >= 2)
		rights |= ACCESS_REFER;
	if (abi >= 3)
		rights |= ACCESS_TRUNCATE;
	return rights;
}

static int allow_beneath(int ruleset, const char *path, uint64_t rights, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "Landlock: %s", path);
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0)
		return 0;
	/* A file can only be granted what makes sense for a file. */
	rule.allowed_access &=
		ACCESS_EXECUTE | ACCESS_WRITE_FILE | ACCESS_READ_FILE | ACCESS_TRUNCATE;
	if (errno != EINVAL ||
		syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_sys(err, errno, "Landlock: %s", path);
	return 0;
}

#define READ_RIGHTS (ACCESS_EXECUTE | ACCESS_READ_FILE | ACCESS_READ_DIR)

/* read: also restrict reading. */
static int restrict_to(
	const struct landlock_grant *grants, size_t n, bool read, bool tcp, struct cloche_err *err)
{
	struct ruleset_attr attr = {0};
	_cleanup_fd_ int ruleset = -1;
	int abi = landlock_abi(), r;
	size_t i;

	if (n && abi >= 1)
		attr.handled_access_fs = write_rights(abi) | (read ? READ_RIGHTS : 0);
	if (!tcp && abi >= 4)
		attr.handled_access_net = ACCESS_BIND_TCP | ACCESS_CONNECT_TCP;
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	if (!attr.handled_access_fs && !attr.handled_access_net && !attr.scoped)
		return 0;
	/* A kernel that does not know the last fields accepts a longer struct if they are zero. */
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return err_sys(err, errno, "make a Landlock rule set");
	for (i = 0; i < n && attr.handled_access_fs; i++) {
		r = allow_beneath(ruleset, grants[i].path,
			grants[i].write ? attr.handled_access_fs : READ_RIGHTS, err);
		if (r < 0)
			return r;
	}
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(err, errno, "enter the Landlock domain");
	return 0;
}

int landlock_restrict(const char *const *paths, size_t paths_n, struct cloche_err *err)
{
	struct landlock_grant grants[LANDLOCK_PATHS_MAX];

	if (paths_n > LANDLOCK_PATHS_MAX)
		return err_set(err, E_INTERNAL, "more than %d paths", LANDLOCK_PATHS_MAX);
	for (size_t i = 0; i < paths_n; i++)
		grants[i] = (struct landlock_grant){paths[i], true};
	return restrict_to(grants, paths_n, false, true, err);
}

int landlock_confine(const char *dir, struct cloche_err *err)
{
	const struct landlock_grant grant = {dir, true};

	return restrict_to(&grant, 1, true, true, err);
}

int landlock_grants(const struct landlock_grant *grants, size_t n, bool tcp, struct cloche_err *err)
{
	return restrict_to(grants, n, true, tcp, err);
}
