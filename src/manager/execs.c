/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/execs.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"
#include "ipc/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_META = 4 * 1024 * 1024 };

static int execs_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int execs_list(int dir, uint32_t **ret, size_t *ret_n)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, RUNDIR_EXECS);
	_cleanup_(freep) uint32_t *numbers = NULL;
	size_t n = 0, cap = 0;
	const struct dirent *e;

	if (!list)
		return -errno;
	while ((e = fs_list_next(list))) {
		uint32_t *grown;
		uint64_t number;

		if (parse_u64(str_from(e->d_name), UINT32_MAX, &number) < 0)
			continue;
		grown = array_room(numbers, n, &cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		numbers = grown;
		numbers[n++] = (uint32_t)number;
	}
	if (n)
		qsort(numbers, n, sizeof(*numbers), execs_compare);
	*ret = TAKE_PTR(numbers);
	*ret_n = n;
	return 0;
}

int execs_open(int dir, uint32_t number, struct cloche_err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), RUNDIR_EXECS "/%u", number);
	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return err_sys(err, errno, "open the log of command %u", number);
	return err_set(err, E_NOT_FOUND, "there is no command %u", number);
}

int execs_read_meta(int exec_dir, json_t **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_META);
	int r = fd_read_file(exec_dir, RUNDIR_META, &text, err);

	if (r < 0)
		return r;
	r = json_text_read(buf_str(&text), 0, ret, NULL);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? err_set(err, E_CORRUPT, "the record of a command is damaged") : 0;
}

json_t *execs_meta(int exec_dir)
{
	json_t *meta = NULL;

	(void)!execs_read_meta(exec_dir, &meta, NULL);
	return meta;
}

static bool execs_meta_ended(const json_t *meta)
{
	return json_integer_value(json_object_get(meta, "ended_usec")) > 0;
}

bool execs_meta_closed(const json_t *meta)
{
	return json_is_true(json_object_get(meta, "log_closed"));
}

static bool execs_runs(int dir, uint32_t number)
{
	_cleanup_fd_ int exec_dir = execs_open(dir, number, NULL);
	_cleanup_json_ json_t *meta = exec_dir >= 0 ? execs_meta(exec_dir) : NULL;

	return meta && !execs_meta_ended(meta);
}

uint32_t execs_latest(int dir, bool running_first)
{
	_cleanup_(freep) uint32_t *numbers = NULL;
	size_t n = 0;

	if (execs_list(dir, &numbers, &n) < 0 || n == 0)
		return 0;
	for (size_t i = n; running_first && i > 0; i--)
		if (execs_runs(dir, numbers[i - 1]))
			return numbers[i - 1];
	return numbers[n - 1];
}
