/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands for existing sandboxes. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* On failure print the error and return the exit status. */
static int open_instance(const char *id, cloche_instance **ret)
{
	cloche_err err = CLOCHE_ERR_INIT;

	return cloche_instance_open(id, ret, &err) < 0 ? complain(&err) : 0;
}

/* Continue after a failure. Return 0, or the exit status of the last failure. */
static int each_instance(
	const struct operands *ids, int (*fn)(const cloche_instance *i, void *user), void *user)
{
	int status = 0;

	for (int k = 0; k < ids->n; k++) {
		cloche_instance *i = NULL;
		int r = open_instance(ids->v[k], &i);

		if (r == 0)
			r = fn(i, user);
		if (r != 0)
			status = r;
		cloche_instance_free(i);
	}
	return status;
}

int main_of_instances(const struct command *command, void *ctx, int argc, char **argv,
	int (*fn)(const cloche_instance *i, void *user))
{
	struct operands ids;
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(command, ctx, argc, argv, &ids, &err);

	if (r == 0 && !ids.help && ids.n == 0)
		r = wrong_usage(&err, "\"cloche ps -a\" lists the sandboxes",
			"%s: which sandbox? Give its id or name", command->name);
	if (r < 0)
		return complain(&err);
	return ids.help ? 0 : each_instance(&ids, fn, ctx);
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

int read_user(const char *value, uint32_t *ret_uid, uint32_t *ret_gid, cloche_err *err)
{
	size_t n = strcspn(value, ":");
	const char *group = value[n] ? value + n + 1 : value;
	uint32_t uid, gid;

	if (!read_id(value, n, &uid) || !read_id(group, value[n] ? strlen(group) : n, &gid))
		return wrong_usage(err, "\"cloche exec ID -- id -u NAME\" tells a user's number",
			"--user is UID[:GID] in numbers, or root, not \"%s\"", value);
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

int read_duration(const char *option, const char *value, uint64_t *ret_ms, cloche_err *err)
{
	if (cloche_parse_duration(value, ret_ms, NULL) == 0)
		return 0;
	return wrong_usage(
		err, NULL, "--%s: \"%s\" is not a time: use 500ms, 30s, 5m or 2h", option, value);
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
