/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the worker is an ordinary process of the sandbox, started over the control
 * socket, with one end of a socket pair as its standard input. The supervisor only starts it. The
 * worker outlives the connection that started it and ends when our end of the pair is closed. */
#include "api/instance/instance.h"
#include "api/record/state.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/parse.h"
#include "fileclient/session.h"
#include "fs/fs.h"
#include "ipc/roomctl.h"

#include <sys/socket.h>

/* Generous: a program inside that stops the worker before it starts can hold up its caller so long.
 */
#define START_USEC (30 * USEC_PER_SEC)

static void leave(void *user, const struct ctl_exec_started *m)
{
	client_leave(user);
}

/* Return the bytes on the heap, or NULL if text is not their hexadecimal form. */
static char *files_read_hex(struct str text)
{
	_cleanup_(freep) char *bytes = calloc(1, text.n / 2 + 1);

	for (size_t i = 0; bytes && i + 1 < text.n; i += 2) {
		int high = parse_hex_digit(text.p[i]), low = parse_hex_digit(text.p[i + 1]);

		if (high < 0 || low < 0)
			return NULL;
		bytes[i / 2] = (char)(high << 4 | low);
	}
	return TAKE_PTR(bytes);
}

/* Return the base of relative paths, the sandbox's working directory, on the heap. NULL if it is
 * not known. */
static char *find_base(const cloche_instance *instance)
{
	const json_t *config = json_object_get(instance->record, "config");
	struct str dir = json_str_at(config, "workdir");
	struct str bytes = json_str_at(config, "workdir_hex"); /* of a name that is not UTF-8 */

	if (bytes.n)
		return files_read_hex(bytes);
	return dir.n ? str_dup(dir) : NULL;
}

static int start(struct client *c, const char *base, uint32_t uid, uint32_t gid, int theirs,
	struct cloche_err *err)
{
	char path[] = ROOMCTL_INIT_PATH, files[] = "files";
	_cleanup_(freep) char *copy = base ? strdup(base) : NULL;
	char *argv[] = {path, files, copy, NULL};
	struct client_io io = CLIENT_IO_INIT;
	_cleanup_(exec_spec_donep) struct exec_spec spec;
	const struct client_exec what = {.spec = &spec,
		.flags = CTL_EXEC_WORKER,
		.kept = true,
		.start_usec = START_USEC,
		.started = leave,
		.user = c};
	struct client_result result;
	int r;

	exec_spec_init(&spec);
	/* 0 is whoever owns the sandbox's files: root, or its only user. */
	spec.has_user = uid || gid;
	spec.uid = uid;
	spec.gid = gid;
	spec.umask = (uint16_t)fs_umask();
	r = exec_spec_set(&spec, argv, NULL, NULL, err);
	if (r < 0)
		return r;
	io.input = CLIENT_INPUT_PASS;
	io.fd = theirs;
	return client_exec(c, &what, &io, &result, err);
}

int cloche_files_open(const cloche_instance *instance, uint32_t uid, uint32_t gid,
	cloche_files **ret, cloche_err *err)
{
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_(cloche_instance_freep) cloche_instance *own = NULL;
	_cleanup_(freep) char *base = NULL;
	_cleanup_fd_ int ours = -1, theirs = -1;
	struct files_observer *observer;
	int fds[2], r;

	r = instance_attach(instance, &c, err);
	if (r < 0)
		return r;
	if (!instance->record) {
		r = instance_copy_fresh(instance, &own, err);
		if (r < 0)
			return r;
		instance = own;
	}
	base = find_base(instance);
	r = fd_socketpair(SOCK_STREAM, fds);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	ours = fds[0];
	theirs = fds[1];
	r = start(c, base, uid, gid, theirs, err);
	if (r == -E_CANNOT_EXEC || r == -E_COMMAND_NOT_FOUND) {
		/* Do not tell the caller that this was a command. */
		r = -E_UNSUPPORTED;
		if (err)
			err->code = E_UNSUPPORTED;
	}
	if (r < 0)
		return err_wrap(err, r, "start the file worker");
	r = session_record_new(instance, base ? base : "/", &observer, err);
	if (r < 0)
		return r;
	r = files_session_new(TAKE_FD(ours), ret, err);
	if (r == 0)
		files_set_observer(*ret, observer);
	else if (observer)
		observer->free(observer);
	return r;
}
