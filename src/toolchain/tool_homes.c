/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * Version managers put small programs on the PATH that find out which version of the real program
 * is wanted, and start it. They need the manager, its settings and a home, which a room does not
 * have. So the version is chosen here, from the same files, and the room gets that version itself.
 * A manager is recognised by where its stand-ins lie. Only plain statements of a version are read:
 * a variable, the file of the project or of one of the directories above it, the user's default. */
#include "base/fd.h"
#include "base/json.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "toolchain/toolchain.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MAX_FILE = 256 * 1024 };

/* A variable of the user; NULL if it is not set or empty. */
static const char *tool_env(const struct toolchain_query *q, const char *name)
{
	size_t n = strlen(name);

	for (char *const *e = q->env; e && *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=' && (*e)[n + 1])
			return *e + n + 1;
	return NULL;
}

char *tool_home_dir(const struct toolchain_query *q, const char *variable, const char *below)
{
	const char *dir = variable ? tool_env(q, variable) : NULL;
	char *real;

	if (dir && dir[0] == '/') {
		real = realpath(dir, NULL);
		return real ? real : strdup(dir);
	}
	return q->home ? fs_join(q->home, below) : NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The text of a file; heap, NULL if it cannot be read. */
static char *read_text(const char *path)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_FILE);

	if (fd_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return NULL;
	return str_dup(buf_str(&text));
}

/* Calls fn with the text of each file of that name in cwd and above; fn returns true to stop. */
static bool each_above(const struct toolchain_query *q, const char *name,
	bool (*fn)(const char *text, void *user), void *user)
{
	_cleanup_(freep) char *dir = q->cwd ? strdup(q->cwd) : NULL;

	while (dir && dir[0] == '/') {
		_cleanup_(freep) char *file = fs_join(dir[1] ? dir : "/", name);
		_cleanup_(freep) char *text = file ? read_text(file) : NULL;
		char *slash = strrchr(dir, '/');

		if (text && fn(text, user))
			return true;
		if (slash == dir && !dir[1])
			break;
		slash[slash == dir] = '\0';
	}
	return false;
}

/* --- one version file per tool: pyenv and those made after it --- */

struct env_manager {
	const char *variable, *below, *version_variable, *version_file;
};

static const struct env_manager env_managers[] = {
	{"PYENV_ROOT", ".pyenv", "PYENV_VERSION", ".python-version"},
	{"NODENV_ROOT", ".nodenv", "NODENV_VERSION", ".node-version"},
	{"RBENV_ROOT", ".rbenv", "RBENV_VERSION", ".ruby-version"},
	{"GOENV_ROOT", ".goenv", "GOENV_VERSION", ".go-version"},
};

int tool_home_add_variable(const struct toolchain_query *q, const char *root, char ***vars)
{
	for (size_t i = 0; i < ARRAY_SIZE(env_managers); i++) {
		const struct env_manager *m = &env_managers[i];
		_cleanup_(freep) char *dir = tool_home_dir(q, m->variable, m->below);

		if (dir && strcmp(dir, root) == 0)
			return strv_env_set(vars, m->variable, root);
	}
	return 0;
}

/* versions/WANTED, or the highest that begins with "WANTED.", or, for the null view, the highest of
 * all; heap. */
static char *pick_version(const char *versions, struct str wanted)
{
	_cleanup_(freep) char *best = NULL;
	struct dirent *e;
	DIR *dir;

	if (wanted.p && (wanted.n == 0 || memchr(wanted.p, '/', wanted.n) || wanted.p[0] == '.'))
		return NULL;
	dir = opendir(versions);
	while (dir && (e = readdir(dir))) {
		struct str name = str_from(e->d_name);
		bool exact = str_eq(name, wanted);

		if (wanted.p ? !exact && !(str_starts(name, wanted) && name.n > wanted.n &&
						 strchr(".-", name.p[wanted.n]))
			     : name.p[0] == '.')
			continue;
		if (best && !exact && strverscmp(e->d_name, best) < 0)
			continue;
		free(best);
		best = strdup(e->d_name);
		if (exact)
			break;
	}
	if (dir)
		closedir(dir);
	return best ? fs_join(versions, best) : NULL;
}

static bool take_text(const char *text, void *user)
{
	*(char **)user = strdup(text);
	return *(char **)user != NULL;
}

/* The text with the wanted versions, from the first place that has one. Heap. */
static char *wanted_by(
	const struct toolchain_query *q, const struct env_manager *m, const char *root)
{
	const char *variable = tool_env(q, m->version_variable);
	_cleanup_(freep) char *global = NULL;
	char *text = NULL;

	if (variable) {
		/* The variable separates versions by colons, files by white space. */
		text = strdup(variable);
		for (char *c = text; c && *c; c++)
			if (*c == ':')
				*c = '\n';
		return text;
	}
	if (each_above(q, m->version_file, take_text, &text))
		return text;
	global = fs_join(root, "version");
	return global ? read_text(global) : NULL;
}

/* DIR/bin/NAME, if it is a program; heap. dir may be NULL. */
static char *program_in(const char *dir, const char *name)
{
	char *program;

	if (!dir || asprintf(&program, "%s/bin/%s", dir, name) < 0)
		return NULL;
	if (tool_is_program(program))
		return program;
	free(program);
	return NULL;
}

/* The program of the first wanted version that has it. */
static char *homes_env_program(const struct toolchain_query *q, const struct env_manager *m,
	const char *root, const char *shims, const char *name)
{
	_cleanup_(freep) char *text = wanted_by(q, m, root), *versions = fs_join(root, "versions");
	char *save = NULL, *word = text ? strtok_r(text, " \t\r\n", &save) : NULL;
	bool system = !word;

	for (; word && versions; word = strtok_r(NULL, " \t\r\n", &save)) {
		_cleanup_(freep) char *dir = pick_version(versions, str_from(word));
		char *program = program_in(dir, name);

		if (program)
			return program;
		system |= strcmp(word, "system") == 0;
	}
	return system ? toolchain_find(q, name, shims) : NULL;
}

/* --- .tool-versions: asdf, mise --- */

struct wish {
	const char *plugin;
	char version[128];
};

/* "plugin version..." on a line, or "plugin = "version"" of mise.toml. */
static bool take_wish(const char *text, void *user)
{
	struct wish *w = user;
	size_t n = strlen(w->plugin);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;

		line += *line == '\n';
		at = line + strspn(line, " \t\"");
		if (strncmp(at, w->plugin, n) != 0 || !strchr(" \t=\"", at[n]) || !at[n])
			continue;
		at += n;
		at += strspn(at, " \t=\"'[");
		snprintf(w->version, sizeof(w->version), "%.*s",
			(int)MIN(strcspn(at, " \t\r\n\"'],#"), sizeof(w->version) - 1), at);
		return w->version[0] != '\0';
	}
	return false;
}

static bool find_wish(const struct toolchain_query *q, struct wish *w)
{
	static const char *const project[] = {"mise.toml", ".mise.toml", ".tool-versions"};
	static const char *const personal[] = {".config/mise/config.toml", ".tool-versions"};

	for (size_t i = 0; i < ARRAY_SIZE(project); i++)
		if (each_above(q, project[i], take_wish, w))
			return true;
	for (size_t i = 0; q->home && i < ARRAY_SIZE(personal); i++) {
		_cleanup_(freep) char *file = fs_join(q->home, personal[i]);
		_cleanup_(freep) char *text = file ? read_text(file) : NULL;

		if (text && take_wish(text, w))
			return true;
	}
	return false;
}

/* installs/PLUGIN/VERSION/bin/NAME for the wanted version, or the latest. */
static char *program_of_plugin(
	const struct toolchain_query *q, const char *installs, const char *plugin, const char *name)
{
	_cleanup_(freep) char *versions = fs_join(installs, plugin), *dir = NULL;
	struct wish w = {.plugin = plugin};

	if (!versions)
		return NULL;
	dir = pick_version(versions, find_wish(q, &w) ? str_from(w.version) : STR_NULL);
	return program_in(dir, name);
}

/* The program of the first plugin that has it. */
static char *program_of_installs(
	const struct toolchain_query *q, const char *installs, const char *name)
{
	char *found = NULL;
	struct dirent *e;
	DIR *d = opendir(installs);

	while (d && !found && (e = readdir(d)))
		if (e->d_name[0] != '.')
			found = program_of_plugin(q, installs, e->d_name, name);
	if (d)
		closedir(d);
	return found;
}

/* --- volta --- */

static char *volta_program(const char *root, const char *name)
{
	_cleanup_(freep) char *file = NULL, *text = NULL;
	_cleanup_json_ json_t *doc = NULL;
	const char *version, *package;
	char *program = NULL;
	bool node =
		strcmp(name, "node") == 0 || strcmp(name, "npm") == 0 || strcmp(name, "npx") == 0;

	if (node ? asprintf(&file, "%s/tools/user/platform.json", root) < 0
		 : asprintf(&file, "%s/tools/user/bins/%s.json", root, name) < 0) {
		file = NULL;
		return NULL;
	}
	text = read_text(file);
	if (!text || json_text_read(str_from(text), 0, &doc, NULL) < 0)
		return NULL;
	version = json_string_value(json_object_get(json_object_get(doc, "node"), "runtime"));
	package = json_string_value(json_object_get(doc, "package"));
	if (node ? !version || strchr(version, '/') : !package || strstr(package, ".."))
		return NULL;
	if (node ? asprintf(&program, "%s/tools/image/node/%s/bin/%s", root, version, name) < 0
		 : asprintf(&program, "%s/tools/image/packages/%s/bin/%s", root, package, name) < 0)
		return NULL;
	return program;
}

/* --- rustup --- */

/* `channel = "1.80"` of rust-toolchain.toml, or the name alone of rust-toolchain. */
static bool take_channel(const char *text, void *user)
{
	struct wish w = {.plugin = "channel"};
	char *line = user;

	if (take_wish(text, &w))
		snprintf(line, 128, "%s", w.version);
	else if (text[0] != '[')
		snprintf(line, 128, "%.*s", (int)MIN(strcspn(text, " \t\r\n"), (size_t)127), text);
	return line[0] != '\0';
}

static char *rustup_program(const struct toolchain_query *q, const char *name)
{
	_cleanup_(freep) char *root = tool_home_dir(q, "RUSTUP_HOME", ".rustup");
	_cleanup_(freep) char *settings = root ? fs_join(root, "settings.toml") : NULL;
	_cleanup_(freep) char *toolchains = root ? fs_join(root, "toolchains") : NULL;
	_cleanup_(freep) char *text = settings ? read_text(settings) : NULL, *dir = NULL;
	const char *variable = tool_env(q, "RUSTUP_TOOLCHAIN");
	struct wish w = {.plugin = "default_toolchain"};
	char wanted[128] = "";

	if (!toolchains)
		return NULL;
	if (variable)
		snprintf(wanted, sizeof(wanted), "%s", variable);
	else if (!each_above(q, "rust-toolchain.toml", take_channel, wanted) &&
		 !each_above(q, "rust-toolchain", take_channel, wanted) && text &&
		 take_wish(text, &w))
		snprintf(wanted, sizeof(wanted), "%s", w.version);
	dir = pick_version(toolchains, str_from(wanted));
	return program_in(dir, name);
}

/* --- which is it --- */

static bool is_rustup_proxy(const struct toolchain_query *q, const char *path)
{
	_cleanup_(freep) char *cargo = tool_home_dir(q, "CARGO_HOME", ".cargo");
	_cleanup_(freep) char *rustup = cargo ? fs_join(cargo, "bin/rustup") : NULL;
	struct stat a, b;

	return rustup && fs_is_within(path, cargo) && strcmp(base_name(path), "rustup") != 0 &&
	       stat(path, &a) == 0 && stat(rustup, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int found_or_missing(
	char *program, const char *path, const char *manager, char **ret, struct cloche_err *err)
{
	if (program && tool_is_program(program)) {
		*ret = program;
		return 0;
	}
	free(program);
	err_set(err, E_NOT_FOUND,
		"%s belongs to %s, and the version that is wanted here is not installed", path,
		manager);
	err_hint(err, "install it (or choose another version) with %s", manager);
	return -E_NOT_FOUND;
}

static int resolve_tools(
	const struct toolchain_query *q, const char *path, char **ret, struct cloche_err *err)
{
	static const struct {
		const char *variable, *below, *name;
	} managers[] = {
		{"ASDF_DATA_DIR", ".asdf", "asdf"}, {"MISE_DATA_DIR", ".local/share/mise", "mise"}};
	const char *name = base_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(managers); i++) {
		_cleanup_(freep) char *root =
			tool_home_dir(q, managers[i].variable, managers[i].below);
		_cleanup_(freep) char *shims = root ? fs_join(root, "shims") : NULL;
		_cleanup_(freep) char *installs = root ? fs_join(root, "installs") : NULL;

		if (shims && installs && fs_is_within(path, shims))
			return found_or_missing(program_of_installs(q, installs, name), path,
				managers[i].name, ret, err);
	}
	return 1;
}

int tool_home_resolve(
	const struct toolchain_query *q, const char *path, char **ret, struct cloche_err *err)
{
	_cleanup_(freep) char *volta = tool_home_dir(q, "VOLTA_HOME", ".volta");
	_cleanup_(freep) char *volta_bin = volta ? fs_join(volta, "bin") : NULL;
	const char *name = base_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(env_managers); i++) {
		const struct env_manager *m = &env_managers[i];
		_cleanup_(freep) char *root = tool_home_dir(q, m->variable, m->below);
		_cleanup_(freep) char *shims = root ? fs_join(root, "shims") : NULL;

		if (shims && fs_is_within(path, shims))
			return found_or_missing(homes_env_program(q, m, root, shims, name), path,
				m->below + 1, ret, err);
	}
	if (volta_bin && fs_is_within(path, volta_bin) && strcmp(name, "volta") != 0 &&
		is_dir(volta))
		return found_or_missing(volta_program(volta, name), path, "volta", ret, err);
	if (is_rustup_proxy(q, path))
		return found_or_missing(rustup_program(q, name), path, "rustup", ret, err);
	return resolve_tools(q, path, ret, err);
}
