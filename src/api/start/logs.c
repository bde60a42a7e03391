/* SPDX-License-Identifier: Apache-2.0 */
#include "api/start/logs.h"
#include "base/fd.h"
#include "manager/sandboxes.h"
#include "record/cassette.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int logs_have_none(const char *sandbox, struct cloche_err *err)
{
	err_set(err, E_NOT_FOUND, "there is no log of \"%s\"", sandbox);
	err_hint(err, "\"cloche log\" lists all logs; a sandbox has one if it was "
		      "created with --record ops or full, or with --runtime node or python");
	return -E_NOT_FOUND;
}

struct beginning {
	const char *text;
	char *id;
	int n;
};

static int log_begins(int logs, const char *name, void *user, struct cloche_err *err)
{
	struct beginning *b = user;

	if (!rundir_is_id(str_from(name)) || !sandbox_id_begins(name, b->text))
		return 0;
	memcpy(b->id, name, RUNDIR_ID_BYTES + 1);
	b->n++;
	return 0;
}

/* Find the log of a sandbox that is gone by the beginning of its id. */
static int logs_find_beginning(
	const char *text, char ret_id[RUNDIR_ID_BYTES + 1], struct cloche_err *err)
{
	struct beginning b = {text, ret_id, 0};
	_cleanup_fd_ int logs = oplogs_open(err);
	int r = logs < 0 ? logs : oplogs_each(logs, log_begins, &b, err);

	if (r < 0)
		return r;
	if (b.n > 1)
		return err_set(err, E_USAGE, "%d logs are of a sandbox %.100s...", b.n, text);
	return b.n ? 0 : -E_NOT_FOUND;
}

int logs_find(const char *sandbox, char ret[OPLOG_NAME_MAX + 1], struct cloche_err *err)
{
	const char *behind = sandbox + strcspn(sandbox, "@");
	_cleanup_(freep) char *name = str_dup(str_make(sandbox, (size_t)(behind - sandbox)));
	_cleanup_fd_ int base = -1;
	char id[RUNDIR_ID_BYTES + 1];
	int r;

	if (!name)
		return err_nomem(err);
	if (oplog_is_name(str_from(sandbox))) {
		snprintf(ret, OPLOG_NAME_MAX + 1, "%s", sandbox);
		return 0;
	}
	if (!name[0] || (*behind && !oplog_is_snapshot_name(str_from(behind + 1))))
		return logs_have_none(sandbox, err);
	base = rundir_open(NULL);
	if (base < 0 || sandbox_resolve(base, name, id, NULL) < 0) {
		r = logs_find_beginning(name, id, err);
		if (r < 0)
			return r == -E_NOT_FOUND ? logs_have_none(sandbox, err) : r;
	}
	snprintf(ret, OPLOG_NAME_MAX + 1, "%s%s", id, behind);
	return 0;
}

int logs_find_cassette(const char *name, struct cloche_err *err)
{
	bool is_file = strchr(name, '/') || str_ends(str_from(name), STR(".json")) ||
		       str_ends(str_from(name), STR(".jsonl"));
	int fd;

	if (is_file) {
		fd = oplog_open_cassette(AT_FDCWD, name);
		if (fd < 0 && !str_ends(str_from(name), STR(CASSETTE_SUFFIX)) &&
			access(name, R_OK) < 0)
			return err_sys(err, errno, "open %s", name);
	} else {
		char id[OPLOG_NAME_MAX + 1], file[sizeof(id) + sizeof(OPLOG_SUFFIX)];
		_cleanup_fd_ int logs = -1;
		int r = logs_find(name, id, err);

		if (r == 0)
			r = logs = oplogs_open(err);
		if (r < 0)
			return r;
		snprintf(file, sizeof(file), "%s" OPLOG_SUFFIX, id);
		fd = oplog_open_cassette(logs, file);
		if (fd < 0 && faccessat(logs, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return logs_have_none(name, err);
	}
	if (fd >= 0)
		return fd;
	err_set(err, E_NOT_FOUND, "%s has no requests on record", name);
	err_hint(err, "a sandbox has them if it had a network and --record full");
	return -E_NOT_FOUND;
}
