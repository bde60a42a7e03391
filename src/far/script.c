/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the program is copied to the other place once, and is named there by its
 * digest. So the script that starts it also asks for it, in the same round trip. Of several copies
 * that come at once the first stays, since it may run already. What the script needs there is a
 * shell, uname, mkdir, head, chmod, cut, ln, mv, rm and sha256sum. */
#include "far/script.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/sha256.h"
#include "far/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PROGRAM_MAX = 64 * 1024 * 1024, SCRIPT_MAX = 8192 };

#define SCRIPT_NAME_(machine) machine,
static const char *const script_machines[] = {SCRIPT_MACHINES(SCRIPT_NAME_)};

int script_open_program(const char *machine, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	struct utsname u;
	char name[64];
	size_t i = 0;
	int fd;

	/* The other machine has said it. */
	while (i < ARRAY_SIZE(script_machines) && strcmp(machine, script_machines[i]) != 0)
		i++;
	if (i == ARRAY_SIZE(script_machines))
		return err_set(
			err, E_PROTOCOL, "the other machine asks for a program that there is not");
	/* That of this machine has no other name. */
	if (uname(&u) == 0 && strcmp(machine, u.machine) == 0)
		snprintf(name, sizeof(name), "cloche-far");
	else
		snprintf(name, sizeof(name), "cloche-far-%s", machine);
	path = program_find(name, err);
	if (!path)
		return -E_NOT_FOUND;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "open %s", path) : fd;
}

/* Add "MACHINE) s=DIGEST; n=SIZE;; ". */
static int script_add_machine(struct buf *out, const char *machine)
{
	_cleanup_fd_ int fd = script_open_program(machine, NULL);
	_cleanup_(buf_donep) struct buf program = BUF_INIT(PROGRAM_MAX);
	char digest[SHA256_HEX_MAX];
	int e;

	if (fd < 0)
		return 0;
	e = fd_read_to_end(fd, &program);
	if (e < 0)
		return e;
	sha256_text(buf_str(&program), digest);
	return buf_printf(out, "%s) s=%s; n=%zu;; ", machine, digest, buf_len(&program));
}

static int script_add_all(struct buf *out, const char *verb, const char *id)
{
	int e = buf_printf(out, "umask 077; d=$HOME/.cache/cloche-far; case $(uname -m) in ");

	for (size_t i = 0; i < ARRAY_SIZE(script_machines) && e == 0; i++)
		e = script_add_machine(out, script_machines[i]);
	if (e == 0)
		e = buf_printf(
			out, "*) echo " SCRIPT_LACKS "$(uname -m); exit 1;; esac; f=$d/$s; ");
	/* Where the program is not, there is nothing to be removed. */
	if (e == 0 && strcmp(verb, "reap") == 0)
		return buf_printf(out, "[ ! -x \"$f\" ] || exec \"$f\" reap %s", id);
	if (e == 0)
		e = buf_printf(out,
			"if [ -x \"$f\" ]; then echo " SCRIPT_HAVE "; else mkdir -p \"$d\" && "
			"echo " SCRIPT_NEED "$(uname -m) && head -c $n >\"$f.$$\" && "
			"chmod 700 \"$f.$$\" && "
			"[ \"$(sha256sum <\"$f.$$\" | cut -c1-64)\" = $s ] && "
			"{ ln \"$f.$$\" \"$f\" 2>/dev/null || [ -x \"$f\" ] || "
			"mv \"$f.$$\" \"$f\"; } && rm -f \"$f.$$\" && "
			"echo " SCRIPT_HAVE " || "
			"{ echo \"cloche-far could not be copied to $d\" >&2; exit 97; }; fi; "
			"exec \"$f\" %s %s",
			verb, id);
	return e;
}

char *far_script(const char *verb, const char *id, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(SCRIPT_MAX);
	int e = script_add_all(&b, verb, id);
	char *text = e == 0 ? str_dup(buf_str(&b)) : NULL;

	if (!text)
		err_set(err, E_SYSTEM, "read the program for the other machine: %s",
			err_errno_text(e ? -e : ENOMEM));
	return text;
}
