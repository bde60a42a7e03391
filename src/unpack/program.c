/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "image/unpack.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/seccomp.h"
#include "unpack/unpack.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_MAX (1ULL << 30)
/* A sanitizer maps terabytes. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* CHOWN, DAC_OVERRIDE, FOWNER, FSETID, MKNOD, SETFCAP: root needs these to restore files. */
#define CAPS_UNPACK (1ULL << 0 | 1ULL << 1 | 1ULL << 3 | 1ULL << 4 | 1ULL << 27 | 1ULL << 31)

/* Limit access to the directory and what is beneath it (INV-NARROW). */
static int narrow(struct cloche_err *err)
{
	int r;

	_Static_assert(UNPACK_FD_DIR == 4, "it is spelled out");
	r = caps_rlimit(RLIMIT_CORE, 0, err);
	if (r == 0 && !SANITIZED)
		r = caps_rlimit(RLIMIT_AS, MEMORY_MAX, err);
	if (r == 0)
		r = geteuid() == 0 ? caps_set(CAPS_UNPACK, err) : caps_drop(err);
	if (r == 0)
		r = caps_no_new_privs(err);
	if (r == 0)
		r = landlock_confine("/proc/self/fd/4", err);
	return r < 0 ? r : seccomp_install(SECCOMP_UNPACK, err);
}

static int do_layer(struct cloche_err *err)
{
	_cleanup_fd_ int tree = -1, owners = -1;
	struct unpack_counts n;
	char digest[SHA256_HEX_MAX];
	int r;

	if (mkdirat(UNPACK_FD_DIR, UNPACK_TREE, 0755) < 0)
		return err_set(err, E_SYSTEM, "make the directory of the layer");
	tree = openat(UNPACK_FD_DIR, UNPACK_TREE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	owners = openat(UNPACK_FD_DIR, UNPACK_OWNERS,
		O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (tree < 0 || owners < 0)
		return err_set(err, E_SYSTEM, "open the directory of the layer");
	r = unpack_layer(UNPACK_FD_IN, tree, owners, UNPACK_BYTES_MAX, digest, &n, err);
	if (r == 0)
		printf("layer %s %llu %llu %llu %llu\n", digest, (unsigned long long)n.entries,
			(unsigned long long)n.bytes, (unsigned long long)n.owners,
			(unsigned long long)n.skipped);
	return r;
}

int unpack_program(int argc, char **argv)
{
	static const int keep[] = {UNPACK_FD_IN, UNPACK_FD_DIR};
	struct cloche_err err = CLOCHE_ERR_INIT;
	const char *what = argc == 2 ? argv[1] : "";
	int r;

	/* No locale is set: libarchive then gives the names as the bytes that they are. In a locale
	 * with UTF-8 it composes their characters, so that two files could get one name. */
	umask(0);
	if (fd_sanitize_stdio() < 0 || fd_close_from(3, keep, ARRAY_SIZE(keep)) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 125;
	r = narrow(&err);
	if (r == 0 && strcmp(what, UNPACK_LAYER) == 0)
		r = do_layer(&err);
	else if (r == 0 && strcmp(what, UNPACK_FILES) == 0)
		r = unpack_files(UNPACK_FD_IN, UNPACK_FD_DIR, UNPACK_BYTES_MAX, &err);
	else if (r == 0 && strcmp(what, UNPACK_PACK) == 0)
		r = unpack_pack(STDOUT_FILENO, UNPACK_FD_DIR, UNPACK_FD_IN, &err);
	else if (r == 0)
		r = err_set(&err, E_USAGE, "cloche-unpack is started by cloche, not by hand");
	if (r < 0)
		fprintf(stderr, "%d %s\n%s\n", err.code, err.message, err.hint);
	return fflush(stdout) == 0 && r == 0 ? 0 : 125;
}
