/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands for existing sandboxes. */
#include "cli.h"

#include <cloche/files.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int each_instance(const struct command *command, const struct operands *ids,
	int (*fn)(cloche_instance *i, void *user), void *user, cloche_err *err)
{
	int status = 0;

	if (ids->n == 0)
		return wrong_usage(err, "\"cloche ps -a\" lists the sandboxes",
			"%s: which sandbox? Give its id or name", command->name);
	for (int k = 0; k < ids->n; k++) {
		cloche_instance *i = NULL;
		cloche_err why = CLOCHE_ERR_INIT;
		int r = cloche_instance_open(ids->v[k], &i, &why) < 0 ? complain(&why)
								      : fn(i, user);

		status = r ? r : status;
		cloche_instance_free(i);
	}
	return status;
}

bool read_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9' || digit > max || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return true;
}

static bool read_id(const char *text, size_t n, uint32_t *ret)
{
	char number[16];
	uint64_t id = 0;

	if (n >= sizeof(number))
		return false;
	memcpy(number, text, n);
	number[n] = '\0';
	if (strcmp(number, "root") != 0 && !read_number(number, UINT32_MAX - 1, &id))
		return false;
	*ret = (uint32_t)id;
	return true;
}

int find_user(const cloche_instance *i, const char *text, uint32_t *ret_uid, uint32_t *ret_gid,
	cloche_err *err)
{
	size_t n = strcspn(text, ":");
	const char *group = text[n] ? text + n + 1 : "root";
	cloche_files *files = NULL;
	int r;

	/* Of these no account has to be looked up. */
	if (read_id(text, n, ret_uid) && (text[n] || *ret_uid == 0) &&
		read_id(group, strlen(group), ret_gid))
		return 0;
	r = cloche_files_open(i, 0, 0, &files, err);
	if (r == 0)
		r = cloche_files_find_user(files, text, ret_uid, ret_gid, err);
	cloche_files_close(files);
	return r;
}

int set_exec(const struct option *o, void *at, const char *value, cloche_err *err)
{
	uint32_t *ret = at;
	uint64_t number;

	if (!read_number(value, UINT32_MAX, &number) || number == 0)
		return wrong_usage(err, "\"cloche inspect ID\" lists the commands",
			"--exec is the number of a command, not \"%s\"", value);
	*ret = (uint32_t)number;
	return 0;
}

int read_duration(const char *option, const char *value, uint64_t *ret_ms, cloche_err *err)
{
	if (cloche_parse_duration(value, ret_ms, NULL) == 0)
		return 0;
	return wrong_usage(
		err, NULL, "--%s: \"%s\" is not a time: use 500ms, 30s, 5m or 2h", option, value);
}

int set_duration(const struct option *o, void *at, const char *value, cloche_err *err)
{
	return read_duration(o->name, value, at, err);
}

void format_age(uint64_t since_usec, char *ret, size_t size)
{
	struct timespec now;
	uint64_t s = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	if ((uint64_t)now.tv_sec > since_usec / 1000000)
		s = (uint64_t)now.tv_sec - since_usec / 1000000;
	if (since_usec == 0)
		snprintf(ret, size, "-");
	else if (s < 120)
		snprintf(ret, size, "%llu s", (unsigned long long)s);
	else if (s < 7200)
		snprintf(ret, size, "%llu min", (unsigned long long)(s / 60));
	else if (s < 172800)
		snprintf(ret, size, "%llu h", (unsigned long long)(s / 3600));
	else
		snprintf(ret, size, "%llu d", (unsigned long long)(s / 86400));
}

void format_size(uint64_t bytes, char *ret, size_t size)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double n = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(ret, size, "%llu B", (unsigned long long)bytes);
		return;
	}
	for (; n >= 1024 && unit < 3; unit++)
		n /= 1024;
	snprintf(ret, size, n < 10 ? "%.1f %s" : "%.0f %s", n, units[unit]);
}
