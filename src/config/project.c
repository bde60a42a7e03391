/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-CONSENT): the files are read once (config/found.h). What they ask for is
 * found from their bytes (config_ask.c, asks.c). Their hash is compared with the consent that is
 * kept for the directory (config/consent.h), and if it matches, they are obeyed. No file is opened
 * again. */
#include "workspace/project.h"
#include "base/fd.h"
#include "config/always.h"
#include "config/asks.h"
#include "config/config.h"
#include "config/consent.h"
#include "config/found.h"
#include "fs/fs.h"
#include "job/job.h"
#include "sandbox/allowlist.h"
#include <cloche/project.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct project_read {
	cloche_project told; /* must be first */
	struct found found;
	char *config_name, *allowlist_name; /* for messages; the second may be NULL */
	const char *files[3];               /* the same */
	cloche_allowlist *allow;
	struct asks asks, changes;
	char *since;
	bool trusted;
};

static void project_free(struct project_read *p)
{
	if (!p)
		return;
	found_done(&p->found);
	free(p->config_name);
	free(p->allowlist_name);
	cloche_allowlist_free(p->allow);
	asks_done(&p->asks);
	asks_done(&p->changes);
	free(p->since);
	free(p);
}

static void project_freep(struct project_read **p)
{
	project_free(*p);
}

void cloche_project_free(cloche_project *project)
{
	project_free(project ? container_of(project, struct project_read, told) : NULL);
}

static void project_tell(struct project_read *p)
{
	static const char *const none[] = {NULL};

	p->files[0] = p->config_name;
	p->files[1] = p->allowlist_name;
	p->told = (cloche_project){.size = sizeof(p->told),
		.dir = p->found.dir,
		.files = p->files,
		.hash = p->found.hash,
		.asks = p->asks.lines ? (const char *const *)p->asks.lines : none,
		.is_trusted = p->trusted,
		.changes = p->changes.lines ? (const char *const *)p->changes.lines : none,
		.since = p->since};
}

static int read_asks(struct project_read *p, struct cloche_err *err)
{
	int r;

	p->config_name = fs_join(p->found.place, p->found.name);
	p->allow = cloche_allowlist_new();
	if (!p->config_name || !p->allow)
		return err_nomem(err);
	r = config_ask(p->config_name, buf_str(&p->found.config), &p->asks, p->allow, err);
	if (r < 0)
		return r;
	if (!p->found.has_allowlist)
		return asks_add_rules(&p->asks, p->allow->rules, err);
	p->allowlist_name = fs_join(p->found.place, FOUND_ALLOWLIST);
	if (!p->allowlist_name)
		return err_nomem(err);
	r = cloche_allowlist_add_text(p->allow, p->allowlist_name,
		buf_len(&p->found.allowlist) ? buf_data(&p->found.allowlist) : "",
		buf_len(&p->found.allowlist), err);
	return r < 0 ? r : asks_add_rules(&p->asks, p->allow->rules, err);
}

/* Order and repetition do not matter. */
static bool has_line(const json_t *lines, const char *line)
{
	const json_t *one;
	size_t i;

	json_array_foreach (lines, i, one)
		if (str_eq(json_str(one), str_from(line)))
			return true;
	return false;
}

static bool is_asked(const struct project_read *p, struct str line)
{
	for (size_t i = 0; i < p->asks.n; i++)
		if (str_eq(str_from(p->asks.lines[i]), line))
			return true;
	return false;
}

static int add_change(
	struct project_read *p, const char *sign, const char *line, struct cloche_err *err)
{
	_cleanup_(ask_line_donep) struct ask_line text = ASK_LINE_INIT;

	ask_line_add(&text, sign);
	ask_line_add(&text, line);
	return asks_add(&p->changes, &text, err);
}

static int project_compare(struct project_read *p, const json_t *old, struct cloche_err *err)
{
	const json_t *line;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < p->asks.n; i++)
		if (!has_line(old, p->asks.lines[i]))
			r = add_change(p, "+ ", p->asks.lines[i], err);
	json_array_foreach (old, i, line)
		if (r == 0 && !is_asked(p, json_str(line)))
			r = add_change(p, "- ", json_string_value(line), err);
	return r;
}

static int project_judge(struct project_read *p, struct cloche_err *err)
{
	_cleanup_json_ json_t *record = NULL;
	int r;

	p->trusted = p->asks.n == 0;
	r = consent_load(p->found.dir, &record, err);
	/* Files that ask for nothing are fine even if the consents cannot be read. */
	if (r <= 0)
		return p->trusted ? 0 : r;
	p->trusted |= str_eq(json_str_at(record, "sha256"), str_from(p->found.hash));
	p->since = str_dup(json_str_at(record, "since"));
	if (!p->since)
		return err_nomem(err);
	return p->trusted ? 0 : project_compare(p, json_object_get(record, "asks"), err);
}

/* fd is the directory (borrowed). */
static int project_open_at(int fd, const char *dir, cloche_project **ret, struct cloche_err *err)
{
	_cleanup_(project_freep) struct project_read *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_nomem(err);
	p->found.fd = -1;
	r = found_open(fd, dir, &p->found, err);
	if (r == 0)
		*ret = NULL;
	if (r <= 0)
		return r;
	r = read_asks(p, err);
	if (r == 0)
		r = project_judge(p, err);
	if (r < 0)
		return r;
	project_tell(p);
	*ret = &TAKE_PTR(p)->told;
	return 0;
}

static int project_open_dir(const char *dir, int *ret, struct cloche_err *err)
{
	*ret = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_sys(err, errno, "open %s", dir) : 0;
}

int cloche_project_open(const char *dir, cloche_project **ret, cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	int r = project_open_dir(dir, &fd, err);

	return r < 0 ? r : project_open_at(fd, dir, ret, err);
}

static bool project_is_at(int one, int other)
{
	struct stat a, b;

	return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Opens the files of the nearest directory above fd (taken), up to `top`. The way goes by
 * descriptors, so that nobody who exchanges a name leads it elsewhere (INV-NAMED-ONCE). */
static int project_open_above(int fd, int top, cloche_project **ret, struct cloche_err *err)
{
	int r = 0;

	while (r == 0 && !*ret && !project_is_at(fd, top)) {
		int above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		bool end = above < 0 || project_is_at(above, fd);

		fd_close(fd);
		fd = above;
		if (end)
			break;
		r = project_open_at(fd, "a directory above", ret, err);
	}
	fd_close(fd);
	return r;
}

int cloche_project_find(const char *dir, cloche_project **ret, cloche_err *err)
{
	struct project around = PROJECT_NULL;
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int r = project_open_dir(dir, &fd, err);

	if (r == 0)
		r = project_open_at(fd, dir, ret, err);
	if (r < 0 || *ret)
		return r;
	r = fd_path(fd, path);
	if (r < 0)
		return err_sys(err, -r, "find %s", dir);
	project_find(fd, path, true, &around);
	r = around.top_fd < 0 ? 0 : project_open_above(TAKE_FD(fd), around.top_fd, ret, err);
	project_done(&around);
	return r;
}

int cloche_project_rules(const cloche_project *project, cloche_allowlist *allow, cloche_err *err)
{
	const cloche_allowlist *own = ((const struct project_read *)project)->allow;
	int r = 0;

	for (size_t i = 0; r == 0 && i < own->sources_n; i++)
		r = allowlist_add_source(allow, &own->sources[i], err);
	return r;
}

int cloche_project_trust(cloche_project *project, cloche_err *err)
{
	struct project_read *p = container_of(project, struct project_read, told);
	_cleanup_json_ json_t *record = NULL;
	int r = consent_save(p->found.dir, p->found.hash, p->asks.lines, err);

	p->trusted |= r == 0;
	if (r < 0)
		return r;
	free(TAKE_PTR(p->since));
	if (consent_load(p->found.dir, &record, NULL) > 0)
		p->since = str_dup(json_str_at(record, "since"));
	project_tell(p);
	return 0;
}

/* Writes the command that asks for consent, quoted for a shell. */
static int put_command(const struct project_read *p, struct buf *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._-+:@%,";
	const char *dir = p->found.dir;

	if (buf_add_str(out, STR("cloche trust ")) < 0)
		return -ENOMEM;
	if (strlen(dir) > 256)
		return buf_add_char(out, '.');
	if (dir[strspn(dir, plain)] == '\0')
		return buf_add_str(out, str_from(dir));
	if (buf_add_char(out, '\'') < 0)
		return -ENOMEM;
	for (; *dir; dir++)
		if ((*dir == '\'' ? buf_add_str(out, STR("'\\''")) : buf_add_char(out, *dir)) < 0)
			return -ENOMEM;
	return buf_add_char(out, '\'');
}

static int refuse_project(const struct project_read *p, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf command = BUF_INIT(4096);

	if (put_command(p, &command) < 0 || !buf_cstr(&command))
		return err_nomem(err);
	err_set(err, E_DENIED, "%s here asks for what needs your consent%s", p->config_name,
		p->since ? ", and is not what you consented to before" : "");
	err_hint(err,
		"see it and consent by: %s (or --config FILE obeys a file for once, --no-config "
		"goes on without it)",
		buf_cstr(&command));
	return -E_DENIED;
}

static int project_tell_allowlist(
	const struct project_read *p, const cloche_sandbox *sb, struct cloche_err *err)
{
	_cleanup_(freep) char *path = fs_join(p->found.dir, p->allowlist_name);

	if (!path)
		return err_nomem(err);
	sandbox_tell_setting(sb,
		&(cloche_setting){.key = "allowlist", .value = path, .file = path, .adds = true});
	return 0;
}

int cloche_project_apply(
	const cloche_project *project, cloche_sandbox *sb, cloche_allowlist *allow, cloche_err *err)
{
	const struct project_read *p = (const struct project_read *)project;
	int r;

	if (!p->trusted)
		return refuse_project(p, err);
	r = config_read(sb, &p->found, p->config_name, buf_str(&p->found.config), err);
	if (r < 0 || !allow || !p->found.has_allowlist)
		return r;
	r = cloche_allowlist_add_text(allow, p->allowlist_name,
		buf_len(&p->found.allowlist) ? buf_data(&p->found.allowlist) : "",
		buf_len(&p->found.allowlist), err);
	return r < 0 ? r : project_tell_allowlist(p, sb, err);
}

int cloche_project_revoke(const char *dir, cloche_err *err)
{
	_cleanup_(freep) char *path = realpath(dir, NULL);
	int r, also;

	if (!path)
		path = fs_absolute(dir);
	if (!path)
		return err_sys(err, errno, "find %s", dir);
	r = consent_remove(path, err);
	also = r < 0 ? r : always_remove(path, err);
	if (also < 0)
		return also;
	return r + also == 0 ? err_set(err, E_NOT_FOUND, "there is no consent for %s", path) : 0;
}

struct listing {
	cloche_consent_fn fn;
	void *user;
};

JOB_TELL1(call_consent, cloche_consent_fn, const cloche_consent *)

static void show_record(const json_t *record, void *user)
{
	const struct listing *l = user;
	const cloche_consent c = {.dir = json_string_value(json_object_get(record, "directory")),
		.hash = json_string_value(json_object_get(record, "sha256")),
		.since = json_string_value(json_object_get(record, "since"))};

	call_consent(l->fn, &c, l->user);
}

int cloche_project_list(cloche_consent_fn fn, void *user, cloche_err *err)
{
	struct listing l = {.fn = fn, .user = user};

	return consent_each(show_record, &l, err);
}
