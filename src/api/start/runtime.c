/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what was asked for is checked inside, where it will be used, by a line of
 * shell that exits with 0 if it is there. */
#include "api/start/room.h"
#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

enum { MOST_WORDS = 512 };
#define LINE_USEC (5 * 60 * USEC_PER_SEC)

/* activate is the last file that venv makes. A directory that was there before is not removed. */
#define MAKE_VENV                                                                                  \
	"test -x \"$VIRTUAL_ENV/bin/python3\" -a -e \"$VIRTUAL_ENV/bin/activate\" && exit 0; "     \
	"had=; test -e \"$VIRTUAL_ENV\" && had=1; "                                                \
	"python3 -m venv \"$VIRTUAL_ENV\" >&2 && exit 0; "                                         \
	"test \"$had\" || rm -rf \"$VIRTUAL_ENV\"; exit 1"

static const struct {
	const char *runtime, *test, *what;
} runtimes[] = {
	{"shell", "exit 0", "/bin/sh"},
	{"node", "command -v node >/dev/null", "node"},
	{"python", "command -v python3 >/dev/null || command -v python >/dev/null", "python3"},
};

/* --- tools --- */

/* Ignore a tool that is not found: runtime_prepare() reports it, and also finds one that was
 * mounted by hand. Another machine has its own. */
static int add_tool(cloche_sandbox *sb, const char *tool, struct cloche_err *err)
{
	bool here = sb->root == ROOM_ROOT_HOST && !sandbox_is_elsewhere(sb);
	int r = here ? sandbox_add_tool(sb, tool, err) : 0;

	if (r != -E_NOT_FOUND)
		return r;
	err_clear(err);
	return 0;
}

static bool is_runtime(const cloche_sandbox *sb, const char *name)
{
	return sb->runtime && strcmp(sb->runtime, name) == 0;
}

int runtime_add_tools(cloche_sandbox *sb, struct cloche_err *err)
{
	int r = 0;

	if (sb->venv && !is_runtime(sb, "python"))
		return err_set(err, E_USAGE, "--venv is for --runtime python");
	if (sb->package_manager && !is_runtime(sb, "node"))
		return err_set(err, E_USAGE, "--package-manager is for --runtime node");
	if (is_runtime(sb, "node"))
		r = add_tool(sb, "node", err);
	else if (is_runtime(sb, "python"))
		r = add_tool(sb, "python3", err);
	if (r == 0 && sb->package_manager)
		r = add_tool(sb, sb->package_manager, err);
	return r;
}

/* --- inside --- */

static int keep_words(void *user, int stream, const char *p, size_t n)
{
	struct buf *words = user;

	if (stream != 2)
		return 0;
	/* Keep the end, which says why. */
	if (n > words->max)
		p += n - words->max;
	n = MIN(n, words->max);
	if (n > buf_room(words))
		buf_consume(words, n - buf_room(words));
	return buf_add(words, p, n) < 0 ? -ENOMEM : 0;
}

/* Find out whether a line of shell exits with 0. words (may be NULL) gets what it prints on
 * standard error. */
static int try_line(struct client *c, const char *line, struct buf *words, bool *ret_good,
	struct cloche_err *err)
{
	_cleanup_(exec_spec_donep) struct exec_spec spec;
	_cleanup_(freep) char *text = strdup(line);
	char sh[] = "/bin/sh", flag[] = "-c", *argv[] = {sh, flag, text, NULL};
	const struct client_exec what = {
		.spec = &spec, .flags = CTL_EXEC_INHERIT | CTL_EXEC_WORKER, .kept = true};
	struct client_io io = CLIENT_IO_INIT;
	struct client_result result = {0};
	int r;

	io.write = words ? keep_words : NULL;
	io.user = words;
	exec_spec_init(&spec);
	r = text ? exec_spec_set(&spec, argv, NULL, "/", err) : err_nomem(err);
	spec.timeout_usec = LINE_USEC;
	if (r == 0)
		r = client_exec(c, &what, &io, &result, err);
	if (r < 0 && r != -E_COMMAND_NOT_FOUND && r != -E_CANNOT_EXEC)
		return r;
	*ret_good = r == 0 && !result.end.signaled && result.end.status == 0;
	if (r < 0)
		err_clear(err);
	return 0;
}

/* What helps if a program is not in the sandbox. */
static const char *remedy(const cloche_sandbox *sb)
{
	return sb->image                   ? "use an image that has it"
	       : sandbox_is_elsewhere(sb)  ? "install it there"
	       : sb->root == ROOM_ROOT_DIR ? "install it in the root"
					   : "install it on this machine";
}

static int check_runtime(struct client *c, const cloche_sandbox *sb, struct cloche_err *err)
{
	bool good;
	size_t i = 0;
	int r;

	while (i < ARRAY_SIZE(runtimes) - 1 && !is_runtime(sb, runtimes[i].runtime))
		i++;
	r = try_line(c, runtimes[i].test, NULL, &good, err);
	if (r < 0 || good)
		return r;
	err_set(err, E_UNSUPPORTED, "runtime %s: there is no %s in the sandbox", sb->runtime,
		runtimes[i].what);
	err_hint(err,
		"%s, or mount the directory it lies in (--mount) and name it in the PATH "
		"(--env PATH=...)",
		remedy(sb));
	return -E_UNSUPPORTED;
}

static int check_package_manager(struct client *c, const cloche_sandbox *sb, struct cloche_err *err)
{
	static const struct {
		const char *name, *how;
	} hints[] = {{"npm", "apt-get install npm"}, {"pnpm", "npm install -g pnpm"},
		{"yarn", "npm install -g yarn"}, {"bun", "npm install -g bun"}};
	char line[64];
	bool good;
	int r;

	snprintf(line, sizeof(line), "command -v %s >/dev/null", sb->package_manager);
	r = try_line(c, line, NULL, &good, err);
	if (r < 0 || good)
		return r;
	err_set(err, E_UNSUPPORTED, "there is no %s in the sandbox", sb->package_manager);
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (strcmp(hints[i].name, sb->package_manager) == 0)
			err_hint(err, sb->image ? "%s" : "%s (%s)", remedy(sb), hints[i].how);
	return -E_UNSUPPORTED;
}

static int make_venv(struct client *c, const cloche_sandbox *sb, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf words = BUF_INIT(MOST_WORDS);
	struct str why;
	bool good;
	int r = try_line(c, MAKE_VENV, &words, &good, err);

	if (r < 0 || good)
		return r;
	for (size_t i = 0; i < buf_len(&words); i++)
		if (buf_data(&words)[i] == '\n')
			buf_data(&words)[i] = ' ';
	why = str_trim(buf_str(&words));
	err_set(err, E_UNSUPPORTED, "no virtual environment can be made in %s: %.*s", sb->venv,
		STR_FMT(why));
	/* Debian's Python names this package if it is missing. */
	if (str_find(why, STR("python3-venv")) < why.n)
		err_hint(err, "apt-get install python3-venv");
	return -E_UNSUPPORTED;
}

int runtime_prepare(struct client *c, const cloche_sandbox *sb, struct cloche_err *err)
{
	int r = sb->runtime ? check_runtime(c, sb, err) : 0;

	if (r == 0 && sb->package_manager)
		r = check_package_manager(c, sb, err);
	if (r == 0 && sb->venv)
		r = make_venv(c, sb, err);
	return r;
}
