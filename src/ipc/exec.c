/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/exec.h"
#include "base/strv.h"

#include <errno.h>
#include <string.h>

enum { MAX_UMASK = 0777 };

void exec_spec_init(struct exec_spec *s)
{
	*s = (struct exec_spec){.umask = 022, .rows = 24, .cols = 80};
}

void exec_spec_done(struct exec_spec *s)
{
	message_done(exec_spec_message(), s);
}

int exec_spec_set(struct exec_spec *s, char *const *argv, char *const *env, const char *cwd,
	struct cloche_err *err)
{
	_cleanup_(strv_freep) char **new_argv = NULL, **new_env = NULL;
	_cleanup_(freep) char *new_cwd = cwd ? strdup(cwd) : NULL;

	if (strv_copy(argv, &new_argv) < 0 || strv_copy(env, &new_env) < 0 || (cwd && !new_cwd))
		return err_nomem(err);
	exec_spec_done(s);
	s->argv = TAKE_PTR(new_argv);
	s->env = TAKE_PTR(new_env);
	s->cwd = TAKE_PTR(new_cwd);
	return 0;
}

/* What every sandbox has that names no language gives way. */
#define EXEC_LANG "C.UTF-8"

static bool exec_is_locale(const char *z)
{
	return (strncmp(z, "LANG", 4) == 0 && strcmp(z, "LANG=" EXEC_LANG) != 0) ||
	       strncmp(z, "LC_", 3) == 0;
}

int exec_env_default(char ***env, char *const *defaults)
{
	bool has_locale = false;
	int r = 0;

	for (char **v = *env; v && *v; v++)
		has_locale |= exec_is_locale(*v);
	for (; defaults && *defaults && r == 0; defaults++) {
		_cleanup_(freep) char *name = strdup(*defaults);
		char *equals = name ? strchr(name, '=') : NULL;
		const char *there;

		if (!name)
			return -ENOMEM;
		if (!equals || (has_locale && exec_is_locale(name)))
			continue;
		*equals = '\0';
		there = strv_env_get(*env, name);
		if (!there || (strcmp(name, "LANG") == 0 && strcmp(there, EXEC_LANG) == 0))
			r = strv_env_set(env, name, equals + 1);
	}
	return r;
}

/* Add the bytes that the kernel counts for one string (with its NUL and its pointer). */
static int add_bytes(const char *z, size_t *total, struct cloche_err *err)
{
	size_t n = strlen(z);

	if (n >= EXEC_MAX_ARG)
		return err_set(err, E_USAGE,
			"an argument or variable is longer than %d bytes: \"%.40s...\"",
			EXEC_MAX_ARG - 1, z);
	*total += n + 1 + sizeof(char *);
	if (*total > EXEC_MAX_BYTES)
		return err_set(
			err, E_USAGE, "arguments and environment exceed %d bytes", EXEC_MAX_BYTES);
	return 0;
}

static int check_strings(const struct exec_spec *s, struct cloche_err *err)
{
	char *const *const lists[] = {s->argv, s->env, s->unset};
	size_t total = 0, n = 0;

	for (size_t i = 0; s->env && s->env[i]; i++)
		if (!strchr(s->env[i], '=') || s->env[i][0] == '=')
			return err_set(err, E_USAGE, "\"%.40s\" is no NAME=VALUE", s->env[i]);
	for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
		for (char *const *z = lists[l]; z && *z; z++, n++) {
			int r = add_bytes(*z, &total, err);

			if (r < 0)
				return r;
		}
	if (n > EXEC_MAX_ARGS)
		return err_set(err, E_USAGE, "more than %d arguments and variables", EXEC_MAX_ARGS);
	return 0;
}

int exec_spec_check(const struct exec_spec *s, struct cloche_err *err)
{
	if (!s->argv || !s->argv[0] || !s->argv[0][0])
		return err_set(err, E_USAGE, "there is no command to run");
	if (s->cwd && (s->cwd[0] != '/' || strlen(s->cwd) > EXEC_MAX_PATH))
		return err_set(
			err, E_USAGE, "working directory \"%.100s\" is not absolute", s->cwd);
	if (s->umask > MAX_UMASK)
		return err_set(err, E_USAGE, "umask %o is out of range", s->umask);
	if (s->rows > EXEC_MAX_DIMENSION || s->cols > EXEC_MAX_DIMENSION)
		return err_set(
			err, E_USAGE, "a terminal of %u by %u is too large", s->rows, s->cols);
	/* The kernel takes -1 as "do not change". */
	if (s->uid == UINT32_MAX || s->gid == UINT32_MAX)
		return err_set(err, E_USAGE, "user or group is out of range");
	return check_strings(s, err);
}

static bool exec_spec_allows(const void *m)
{
	return exec_spec_check(m, NULL) == 0;
}

MESSAGE_TABLE(exec_spec, EXEC_SPEC_FIELDS, exec_spec_allows);
