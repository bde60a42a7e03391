/* SPDX-License-Identifier: Apache-2.0 */
/* A command of git over ssh, and a record of the process that has read it: what is taken has a path
 * that means one thing, also to a shell, and is the same when it is read again.
 * fuzz-deps: ipc base */
#include "ipc/sshleg.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(struct str path)
{
	if (path.n < 2 || path.p[0] != '/' || path.p[path.n - 1] == '/' ||
		memchr(path.p, 0, path.n))
		abort();
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] <= ' ' || path.p[i] > 'z' ||
			strchr("'\"\\$`;|&<>()*?#!%~", path.p[i]))
			abort();
	if (str_find(path, STR("//")) < path.n || str_find(path, STR("/../")) < path.n ||
		str_find(path, STR("/./")) < path.n || str_ends(path, STR("/..")) ||
		str_ends(path, STR("/.")) || str_find(path, STR("/-")) < path.n)
		abort();
}

static void check_command(struct str command)
{
	char path[SSHLEG_MAX_PATH + 1], again[SSHLEG_MAX_PATH + 1];
	_cleanup_(buf_donep) struct buf text = BUF_INIT(2 * SSHLEG_MAX_PATH);
	enum sshleg_method method, same;

	if (sshleg_parse_command(command, &method, path))
		return;
	check_path(str_from(path));
	if (buf_printf(&text, "git-%s-pack '%s'", method == SSHLEG_PUSH ? "receive" : "upload",
		    path) < 0 ||
		sshleg_parse_command(buf_str(&text), &same, again) || same != method ||
		strcmp(path, again) != 0)
		abort();
}

static void check_record(struct str in)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(SSHLEG_MAX_RECORD + 4);
	struct sshleg_request m;
	struct sshleg_answer a;
	ssize_t n = sshleg_take_request(in, &m);

	if (n > 0) {
		check_path(m.path);
		if ((size_t)n > in.n || sshleg_put_request(&text, &m) < 0 ||
			!str_eq(buf_str(&text), str_prefix(in, (size_t)n)))
			abort();
	}
	(void)sshleg_take_answer(in, &a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_command(str_make(data, size));
	check_record(str_make(data, size));
	return 0;
}
