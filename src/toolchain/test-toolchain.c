/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "tap.h"
#include "toolchain/toolchain.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Homes as version managers leave them, made below a directory of our own; expectations are written
 * with "~" for the home and "@" for that directory. */
static char top[TAP_DIR_BYTES], path[4096], *env[8], home[512], cwd[512], opt_dir[512];
static struct cloche_err err;
static struct toolchain_query q;

static const char *place(const char *name)
{
	static char full[4][PATH_MAX];
	static unsigned turn;
	char *p = full[turn++ % 4];

	if (name[0] == '~')
		snprintf(p, PATH_MAX, "%s/home%s", top, name + 1);
	else if (name[0] == '@')
		snprintf(p, PATH_MAX, "%s%s", top, name + 1);
	else
		snprintf(p, PATH_MAX, "%s", name);
	return p;
}

static void dirs(const char *name)
{
	must(fs_mkdirs(place(name), 0755, &err) == 0);
}

static void put(const char *name, const char *text, unsigned mode)
{
	const char *full = place(name);
	char *dir = strdup(full);

	must(dir != NULL);
	*strrchr(dir, '/') = '\0';
	must(fs_mkdirs(dir, 0755, &err) == 0);
	free(dir);
	must(fs_write_atomic(AT_FDCWD, full, str_from(text), mode, false, &err) == 0);
}

/* A program that needs nothing: not even an ELF file. */
static void program(const char *name)
{
	put(name, "program", 0755);
}

static void script(const char *name, const char *line)
{
	char text[PATH_MAX + 16];

	snprintf(text, sizeof(text), "#!%s\n", place(line));
	put(name, text, 0755);
}

static void link_to(const char *name, const char *to)
{
	const char *full = place(name);
	char *dir = strdup(full);

	must(dir != NULL);
	*strrchr(dir, '/') = '\0';
	must(fs_mkdirs(dir, 0755, &err) == 0);
	free(dir);
	must(symlink(place(to), full) == 0);
}

/* PATH is these (with "~" and "@"), then the system's. */
static void fresh(const char *a, const char *b)
{
	if (top[0])
		fs_remove_tree(AT_FDCWD, top);
	tap_dir(top);
	dirs("~/project");
	snprintf(path, sizeof(path), "%s%s%s%srelative::/usr/bin:/bin", a ? place(a) : "",
		a ? ":" : "", b ? place(b) : "", b ? ":" : "");
	memset(env, 0, sizeof(env));
	snprintf(home, sizeof(home), "%s/home", top);
	snprintf(cwd, sizeof(cwd), "%s/home/project", top);
	snprintf(opt_dir, sizeof(opt_dir), "%s/opt", top);
	q = (struct toolchain_query){
		.path = path, .home = home, .cwd = cwd, .env = env, .opt = opt_dir};
}

static void add_home(struct buf *out, const char *text)
{
	size_t n, m = strlen(top);
	char base[512];

	snprintf(base, sizeof(base), "%s/home", top);
	n = strlen(base);
	while (*text) {
		if (strncmp(text, base, n) == 0) {
			must(buf_add_char(out, '~') == 0);
			text += n;
		} else if (strncmp(text, top, m) == 0) {
			must(buf_add_char(out, '@') == 0);
			text += m;
		} else {
			must(buf_add_char(out, *text++) == 0);
		}
	}
}

/* Mounts, directories and program as one line each. */
static void describe(const struct toolchain *t, struct buf *out)
{
	for (size_t i = 0; i < t->mounts_n; i++) {
		must(buf_add_str(out, STR("mount ")) == 0);
		add_home(out, t->mounts[i].source);
		if (strcmp(t->mounts[i].source, t->mounts[i].target) != 0) {
			must(buf_add_str(out, STR(" at ")) == 0);
			add_home(out, t->mounts[i].target);
		}
		must(buf_add_char(out, '\n') == 0);
	}
	for (char *const *d = t->dirs; d && *d; d++) {
		must(buf_add_str(out, STR("path ")) == 0);
		add_home(out, *d);
		must(buf_add_char(out, '\n') == 0);
	}
	for (char *const *v = t->vars; v && *v; v++) {
		must(buf_add_str(out, STR("var ")) == 0);
		add_home(out, *v);
		must(buf_add_char(out, '\n') == 0);
	}
	if (t->program) {
		must(buf_add_str(out, STR("run ")) == 0);
		add_home(out, t->program);
		must(buf_add_char(out, '\n') == 0);
	}
}

static void expect(const char *name, const char *lines)
{
	_cleanup_(toolchain_done) struct toolchain t = TOOLCHAIN_INIT;
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 16);
	int r;

	err_clear(&err);
	r = toolchain_add(&q, place(name), &t, &err);
	check_int(r, 0);
	if (r < 0)
		printf("# %s\n", err.message);
	describe(&t, &out);
	check_str(buf_str(&out), lines);
	check_int(strv_count(t.notes), t.mounts_n);
}

static void expect_error(const char *name, int code, const char *text)
{
	_cleanup_(toolchain_done) struct toolchain t = TOOLCHAIN_INIT;

	err_clear(&err);
	check_int(toolchain_add(&q, place(name), &t, &err), -code);
	check(strstr(err.message, text) != NULL);
	if (!strstr(err.message, text))
		printf("# %s\n", err.message);
	check(err.hint[0] || code == E_DENIED);
}

static void nothing_for_the_system(void)
{
	_cleanup_(toolchain_done) struct toolchain t = TOOLCHAIN_INIT;

	fresh(NULL, NULL);
	expect("sh", "");
	expect("/bin/sh", "");
	expect("/usr/bin/env", "");
	check_int(toolchain_add(&q, "no-such-program-anywhere", &t, &err), 1);
	check_int(toolchain_add(&q, "/no/such/program", &t, &err), 1);
	check_int(t.mounts_n, 0);
}

static void nvm(void)
{
	fresh("~/.nvm/versions/node/v20.1.0/bin", NULL);
	program("~/.nvm/versions/node/v20.1.0/bin/node");
	dirs("~/.nvm/versions/node/v20.1.0/include/node");
	script("~/.nvm/versions/node/v20.1.0/lib/node_modules/npm/bin/npm-cli.js",
		"/usr/bin/env node");
	link_to("~/.nvm/versions/node/v20.1.0/bin/npm",
		"~/.nvm/versions/node/v20.1.0/lib/node_modules/npm/bin/npm-cli.js");
	expect("node", "mount ~/.nvm/versions/node/v20.1.0\npath ~/.nvm/versions/node/v20.1.0/bin\n"
		       "run ~/.nvm/versions/node/v20.1.0/bin/node\n");
	expect("npm", "mount ~/.nvm/versions/node/v20.1.0\npath ~/.nvm/versions/node/v20.1.0/bin\n"
		      "run ~/.nvm/versions/node/v20.1.0/bin/npm\n");
}

static void fnm(void)
{
	fresh("~/.local/state/fnm_multishells/1_2/bin", NULL);
	program("~/.local/share/fnm/node-versions/v22.0.0/installation/bin/node");
	link_to("~/.local/state/fnm_multishells/1_2",
		"~/.local/share/fnm/node-versions/v22.0.0/installation");
	expect("node", "mount ~/.local/share/fnm/node-versions/v22.0.0\n"
		       "path ~/.local/share/fnm/node-versions/v22.0.0/installation/bin\n"
		       "run ~/.local/share/fnm/node-versions/v22.0.0/installation/bin/node\n");
}

static void npm_prefix(void)
{
	fresh("~/.npm-global/bin", "~/.nvm/versions/node/v20.1.0/bin");
	program("~/.nvm/versions/node/v20.1.0/bin/node");
	script("~/.npm-global/lib/node_modules/tool/cli.js", "/usr/bin/env -S node --no-warnings");
	link_to("~/.npm-global/bin/tool", "~/.npm-global/lib/node_modules/tool/cli.js");
	expect("tool", "mount ~/.npm-global/lib/node_modules\nmount ~/.npm-global/bin\n"
		       "mount ~/.nvm/versions/node/v20.1.0\n"
		       "path ~/.nvm/versions/node/v20.1.0/bin\npath ~/.npm-global/bin\n"
		       "run ~/.npm-global/bin/tool\n");
}

/* A prefix in which much else lies: never the whole. */
static void npm_prefix_local(void)
{
	fresh("~/.local/bin", NULL);
	script("~/.local/lib/node_modules/tool/cli.js", "/bin/sh");
	link_to("~/.local/bin/tool", "~/.local/lib/node_modules/tool/cli.js");
	program("~/.local/bin/node");
	put("~/.local/share/keyrings/login.keyring", "secret", 0600);
	expect("tool", "mount ~/.local/lib/node_modules\nmount ~/.local/bin\npath ~/.local/bin\n"
		       "run ~/.local/bin/tool\n");
	expect("node", "mount ~/.local/bin/node\npath ~/.local/bin\nrun ~/.local/bin/node\n");
}

static void pyenv(void)
{
	fresh("~/.pyenv/shims", NULL);
	script("~/.pyenv/shims/python3", "/usr/bin/env bash");
	script("~/.pyenv/shims/python2", "/usr/bin/env bash");
	program("~/.pyenv/versions/3.11.4/bin/python3");
	program("~/.pyenv/versions/3.11.10/bin/python3");
	program("~/.pyenv/versions/3.12.1/bin/python3");
	put("~/.pyenv/version", "3.12.1\n", 0644);
	expect("python3", "mount ~/.pyenv/versions/3.12.1\npath ~/.pyenv/versions/3.12.1/bin\n"
			  "run ~/.pyenv/versions/3.12.1/bin/python3\n");
	/* The project's word, a prefix, means the latest of these. */
	put("~/project/.python-version", "3.11\n", 0644);
	expect("python3", "mount ~/.pyenv/versions/3.11.10\npath ~/.pyenv/versions/3.11.10/bin\n"
			  "run ~/.pyenv/versions/3.11.10/bin/python3\n");
	env[0] = strdup("PYENV_VERSION=2.7:3.11.4");
	expect("python3", "mount ~/.pyenv/versions/3.11.4\npath ~/.pyenv/versions/3.11.4/bin\n"
			  "run ~/.pyenv/versions/3.11.4/bin/python3\n");
	expect_error("python2", E_NOT_FOUND, "pyenv");
	/* The manager itself, with all that it looks at; and where its root is another one. */
	script("~/.pyenv/libexec/pyenv", "/usr/bin/env bash");
	link_to("~/.pyenv/bin/pyenv", "~/.pyenv/libexec/pyenv");
	expect("~/.pyenv/bin/pyenv", "mount ~/.pyenv\npath ~/.pyenv/bin\nvar PYENV_ROOT=~/.pyenv\n"
				     "run ~/.pyenv/bin/pyenv\n");
	script("@/rb/libexec/rbenv", "/usr/bin/env bash");
	program("@/rb/versions/3.3.0/bin/ruby");
	must(asprintf(&env[1], "RBENV_ROOT=%s", place("@/rb")) > 0);
	expect("@/rb/libexec/rbenv", "mount @/rb\npath @/rb/libexec\nvar RBENV_ROOT=@/rb\n"
				     "run @/rb/libexec/rbenv\n");
	expect("@/rb/versions/3.3.0/bin/ruby", "mount @/rb/versions/3.3.0\n"
					       "path @/rb/versions/3.3.0/bin\n"
					       "run @/rb/versions/3.3.0/bin/ruby\n");
	free(env[1]);
	env[1] = NULL;
	/* The person's wish for the system's. */
	free(env[0]);
	env[0] = strdup("PYENV_VERSION=system");
	expect("python3", "");
	free(env[0]);
	env[0] = NULL;
}

static void virtual_environment(void)
{
	fresh("~/.local/bin", NULL);
	program("~/.local/share/uv/python/cpython-3.12/bin/python3.12");
	link_to("~/.local/share/pipx/venvs/black/bin/python",
		"~/.local/share/uv/python/cpython-3.12/bin/python3.12");
	put("~/.local/share/pipx/venvs/black/pyvenv.cfg", "home = /x\n", 0644);
	script("~/.local/share/pipx/venvs/black/bin/black",
		"~/.local/share/pipx/venvs/black/bin/python");
	link_to("~/.local/bin/black", "~/.local/share/pipx/venvs/black/bin/black");
	expect("black", "mount ~/.local/share/pipx/venvs/black\n"
			"mount ~/.local/share/uv/python/cpython-3.12\n"
			"path ~/.local/share/pipx/venvs/black/bin\n"
			"run ~/.local/share/pipx/venvs/black/bin/black\n");
	/* Its Python has gone. */
	fs_remove_tree(AT_FDCWD, place("~/.local/share/uv"));
	expect_error("black", E_NOT_FOUND, "black");
}

static void environment_of_a_project(void)
{
	fresh("~/project/.venv/bin", NULL);
	link_to("~/project/.venv/bin/python", "/bin/sh");
	put("~/project/.venv/pyvenv.cfg", "home = /usr/bin\n", 0644);
	script("~/project/.venv/bin/pytest", "~/project/.venv/bin/python");
	expect("pytest", "mount ~/project/.venv\npath ~/project/.venv/bin\n"
			 "run ~/project/.venv/bin/pytest\n");
	/* The link to the system's Python is what makes it this environment's. */
	expect("python", "mount ~/project/.venv\npath ~/project/.venv/bin\n"
			 "run ~/project/.venv/bin/python\n");
	link_to("~/bin/own", "/usr/bin/env");
	script("~/project/.venv/bin/x", "~/bin/own");
	expect("x", "mount ~/project/.venv\nmount /usr/bin/env at ~/bin/own\n"
		    "path ~/project/.venv/bin\nrun ~/project/.venv/bin/x\n");
}

/* What a room shows at its own path anyway is still run as it was found. */
static void environment_that_is_shown(void)
{
	char *shown[] = {cwd, NULL};

	fresh("~/project/.venv/bin", NULL);
	q.writable = q.shown = shown;
	link_to("~/project/.venv/bin/python", "/bin/sh");
	put("~/project/.venv/pyvenv.cfg", "home = /usr/bin\n", 0644);
	script("~/project/.venv/bin/sh", "~/project/.venv/bin/python");
	expect("python", "path ~/project/.venv/bin\nrun ~/project/.venv/bin/python\n");
	expect("sh", "path ~/project/.venv/bin\nrun ~/project/.venv/bin/sh\n");
	script("~/project/.venv/bin/x", "~/bin/own");
	link_to("~/bin/own", "/usr/bin/env");
	expect_error("x", E_DENIED, "/usr/bin/env");
}

static void asdf_and_mise(void)
{
	fresh("~/.asdf/shims", "~/.local/share/mise/shims");
	script("~/.asdf/shims/node", "/usr/bin/env bash");
	program("~/.asdf/installs/nodejs/18.0.0/bin/node");
	program("~/.asdf/installs/nodejs/20.0.0/bin/node");
	program("~/.asdf/installs/python/3.12/bin/python");
	put("~/.tool-versions", "python 3.12\nnodejs 20.0.0\n", 0644);
	expect("node",
		"mount ~/.asdf/installs/nodejs/20.0.0\npath ~/.asdf/installs/nodejs/20.0.0/bin\n"
		"run ~/.asdf/installs/nodejs/20.0.0/bin/node\n");
	put("~/project/.tool-versions", "nodejs 18.0.0", 0644);
	expect("node",
		"mount ~/.asdf/installs/nodejs/18.0.0\npath ~/.asdf/installs/nodejs/18.0.0/bin\n"
		"run ~/.asdf/installs/nodejs/18.0.0/bin/node\n");
	program("~/.local/bin/mise");
	link_to("~/.local/share/mise/shims/deno", "~/.local/bin/mise");
	program("~/.local/share/mise/installs/deno/2.1.4/bin/deno");
	program("~/.local/share/mise/installs/deno/2.1.10/bin/deno");
	expect("deno", "mount ~/.local/share/mise/installs/deno/2.1.10\n"
		       "path ~/.local/share/mise/installs/deno/2.1.10/bin\n"
		       "run ~/.local/share/mise/installs/deno/2.1.10/bin/deno\n");
	put("~/project/mise.toml", "[tools]\ndeno = \"2.1.4\"\n", 0644);
	expect("deno", "mount ~/.local/share/mise/installs/deno/2.1.4\n"
		       "path ~/.local/share/mise/installs/deno/2.1.4/bin\n"
		       "run ~/.local/share/mise/installs/deno/2.1.4/bin/deno\n");
}

static void volta(void)
{
	fresh("~/.volta/bin", NULL);
	program("~/.volta/bin/volta-shim");
	link_to("~/.volta/bin/node", "~/.volta/bin/volta-shim");
	link_to("~/.volta/bin/tsc", "~/.volta/bin/volta-shim");
	put("~/.volta/tools/user/platform.json", "{\"node\":{\"runtime\":\"20.5.0\"}}", 0644);
	put("~/.volta/tools/user/bins/tsc.json", "{\"name\":\"tsc\",\"package\":\"typescript\"}",
		0644);
	program("~/.volta/tools/image/node/20.5.0/bin/node");
	script("~/.volta/tools/image/packages/typescript/lib/node_modules/typescript/bin/tsc",
		"/usr/bin/env node");
	link_to("~/.volta/tools/image/packages/typescript/bin/tsc",
		"~/.volta/tools/image/packages/typescript/lib/node_modules/typescript/bin/tsc");
	expect("node", "mount ~/.volta/tools/image/node/20.5.0\n"
		       "path ~/.volta/tools/image/node/20.5.0/bin\n"
		       "run ~/.volta/tools/image/node/20.5.0/bin/node\n");
	expect("tsc", "mount ~/.volta/tools/image/packages/typescript\n"
		      "mount ~/.volta/tools/image/node/20.5.0\n"
		      "path ~/.volta/tools/image/node/20.5.0/bin\n"
		      "path ~/.volta/tools/image/packages/typescript/bin\n"
		      "run ~/.volta/tools/image/packages/typescript/bin/tsc\n");
}

static void rust(void)
{
	fresh("~/.cargo/bin", NULL);
	program("~/.cargo/bin/rustup");
	link_to("~/.cargo/bin/cargo", "~/.cargo/bin/rustup");
	program("~/.cargo/bin/rg");
	put("~/.cargo/credentials.toml", "token", 0600);
	put("~/.rustup/settings.toml", "default_toolchain = \"stable\"\n", 0644);
	program("~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo");
	program("~/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu/bin/cargo");
	expect("cargo", "mount ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu\n"
			"path ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin\n"
			"run ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo\n");
	put("~/project/rust-toolchain.toml", "[toolchain]\nchannel = \"1.80\"\n", 0644);
	expect("cargo", "mount ~/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu\n"
			"path ~/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu/bin\n"
			"run ~/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu/bin/cargo\n");
	expect("rg", "mount ~/.cargo/bin/rg\npath ~/.cargo/bin\nrun ~/.cargo/bin/rg\n");
}

static void go(void)
{
	fresh("~/go1.22/bin", "~/go/bin");
	program("~/go1.22/bin/go");
	put("~/go1.22/VERSION", "go1.22\n", 0644);
	dirs("~/go1.22/pkg/tool");
	program("~/go/bin/gopls");
	expect("go", "mount ~/go1.22\npath ~/go1.22/bin\nrun ~/go1.22/bin/go\n");
	expect("gopls", "mount ~/go/bin/gopls\npath ~/go/bin\nrun ~/go/bin/gopls\n");
}

static void single_files(void)
{
	fresh("~/.local/bin", "~/bin");
	program("~/.local/bin/alone");
	script("~/bin/odd", "~/interpreters/odd/sh -x");
	program("~/interpreters/odd/sh");
	/* As installers do that keep versions. */
	program("~/.local/share/agent/versions/1.2.3");
	link_to("~/.local/bin/agent", "~/.local/share/agent/versions/1.2.3");
	expect("alone", "mount ~/.local/bin/alone\npath ~/.local/bin\nrun ~/.local/bin/alone\n");
	expect("odd", "mount ~/bin/odd\nmount ~/interpreters/odd/sh\n"
		      "path ~/bin\nrun ~/bin/odd\n");
	expect("agent", "mount ~/.local/share/agent/versions/1.2.3\n"
			"mount ~/.local/share/agent/versions/1.2.3 at ~/.local/bin/agent\n"
			"path ~/.local/bin\nrun ~/.local/bin/agent\n");
}

static void opt(void)
{
	fresh("@/links", NULL);
	program("@/opt/tool/bin/tool");
	link_to("@/links/tool", "@/opt/tool/bin/tool");
	expect("@/opt/tool/bin/tool",
		"mount @/opt/tool\npath @/opt/tool/bin\nrun @/opt/tool/bin/tool\n");
	expect("tool", "mount @/opt/tool\npath @/opt/tool/bin\nrun @/opt/tool/bin/tool\n");
}

static void missing_interpreters(void)
{
	char text[64];

	fresh("~/bin", NULL);
	script("~/bin/gone", "/no/such/interpreter");
	script("~/bin/by-name", "/usr/bin/env no-such-interpreter");
	script("~/bin/self", "~/bin/self");
	expect_error("gone", E_NOT_FOUND, "/no/such/interpreter");
	expect_error("by-name", E_NOT_FOUND, "no-such-interpreter");
	expect_error("self", E_NOT_FOUND, "without end");
	/* An empty line "#!" is the kernel's problem. */
	put("~/bin/empty", "#!\n", 0755);
	expect("empty", "mount ~/bin/empty\npath ~/bin\nrun ~/bin/empty\n");
	snprintf(text, sizeof(text), "#! /usr/bin/env\t-i  A=b sh\r\n");
	put("~/bin/dos", text, 0755);
	expect("dos", "mount ~/bin/dos\npath ~/bin\nrun ~/bin/dos\n");
}

static void loaders(void)
{
	unsigned char elf[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	struct str text = str_make(elf, sizeof(elf));

	fresh("~/bin", NULL);
	/* One program header of type PT_INTERP at 64, whose text is at 128. */
	elf[32] = 64;
	elf[54] = 56;
	elf[56] = 1;
	elf[64] = 3;
	elf[72] = 128;
	elf[96] = 20;
	memcpy(elf + 128, "/no/such/loader.so.1", 20);
	dirs("~/bin");
	must(fs_write_atomic(AT_FDCWD, place("~/bin/elf"), text, 0755, false, &err) == 0);
	expect_error("elf", E_NOT_FOUND, "/no/such/loader.so.1");
}

/* No whole home, nothing with credentials in it. */
static void too_wide(void)
{
	fresh("~/bin", "~/.ssh");
	/* A home that looks like a run-time. */
	program("~/bin/node");
	dirs("~/include/node");
	expect("node", "mount ~/bin/node\npath ~/bin\nrun ~/bin/node\n");
	program("~/.ssh/helper");
	expect_error("helper", E_DENIED, "credentials");
	link_to("~/bin/linked", "~/.ssh/helper");
	expect_error("linked", E_DENIED, "credentials");
	put("@/opt/home/tool/bin/x", "x", 0755);
	snprintf(home, sizeof(home), "%s/opt/home", top);
	dirs("@/opt/home/.ssh");
	expect_error("@/opt/home/tool/bin/x", E_DENIED, "/opt/home");
}

/* INV-HOST-HIDDEN: what a room wrote names files of the host, and gets none but run-times. */
static void files_of_a_room(void)
{
	char *writable[] = {cwd, NULL};

	fresh("~/project/bin", "~/bin");
	q.writable = writable;
	put("~/bin/deploy", "#!/bin/sh\nTOKEN=secret\n", 0755);
	dirs("~/other/node_modules/x");
	program("~/other/node_modules/x/cli");
	put("~/other/.venv/pyvenv.cfg", "home = /usr/bin\n", 0644);
	link_to("~/other/.venv/bin/python", "/usr/bin/env");
	program("~/.pyenv/versions/3.12.1/bin/python3");
	script("~/project/bin/by-path", "~/bin/deploy");
	script("~/project/bin/by-name", "/usr/bin/env deploy");
	link_to("~/project/bin/by-link", "~/bin/deploy");
	link_to("~/project/bin/modules", "~/other/node_modules/x/cli");
	script("~/project/bin/venv", "~/other/.venv/bin/python");
	script("~/project/bin/python", "~/.pyenv/versions/3.12.1/bin/python3");
	expect_error("by-path", E_DENIED, "/home/bin/deploy");
	expect_error("by-name", E_DENIED, "/home/bin/deploy");
	expect_error("by-link", E_DENIED, "/home/bin/deploy");
	expect_error("modules", E_DENIED, "/home/other/node_modules");
	expect_error("venv", E_DENIED, "/home/other/.venv");
	expect("python", "mount ~/project/bin/python\nmount ~/.pyenv/versions/3.12.1\n"
			 "path ~/project/bin\nrun ~/project/bin/python\n");
	/* A link on the way, whoever made the first. */
	link_to("~/project/linked", "~/other/node_modules");
	link_to("~/bin/chain", "~/project/linked/x/cli");
	link_to("~/project/bin/inner", "~/project/linked");
	expect_error("~/project/linked/x/cli", E_DENIED, "/home/other/node_modules");
	expect_error("~/project/bin/inner/x/cli", E_DENIED, "/home/other/node_modules");
	expect_error("chain", E_DENIED, "/home/other/node_modules");
	/* The person's own word is another matter. */
	expect("~/other/node_modules/x/cli",
		"mount ~/other/node_modules\npath ~/other/node_modules/x\n"
		"run ~/other/node_modules/x/cli\n");
	expect("deploy", "mount ~/bin/deploy\npath ~/bin\nrun ~/bin/deploy\n");
}

/* An environment that was made inside names itself by its path there. */
static void made_inside(void)
{
	_cleanup_(toolchain_done) struct toolchain t = TOOLCHAIN_INIT;
	char *shown[] = {NULL, NULL};

	fresh(NULL, NULL);
	q.writable = q.shown = shown;
	shown[0] = cwd;
	put("~/project/.venv/pyvenv.cfg", "home = /usr/bin\n", 0644);
	link_to("~/project/.venv/bin/python3", "/usr/bin/env");
	put("~/project/.venv/bin/pip", "#!/workspace/.venv/bin/python3\n", 0755);
	put("~/project/.venv/bin/gone", "#!/workspace/.venv/bin/python2\n", 0755);
	put("~/project/.venv/bin/up", "#!/workspace/../secret\n", 0755);
	program("~/secret");
	check_int(
		toolchain_add_needs(&q, place("~/project/.venv/bin/pip"), &t, &err), -E_NOT_FOUND);
	q.workspace = cwd;
	q.workspace_inside = "/workspace";
	check_int(toolchain_add_needs(&q, place("~/project/.venv/bin/pip"), &t, &err), 0);
	check_int(
		toolchain_add_needs(&q, place("~/project/.venv/bin/gone"), &t, &err), -E_NOT_FOUND);
	check_int(toolchain_add_needs(&q, place("~/project/.venv/bin/up"), &t, &err), -E_DENIED);
	check_int(t.mounts_n, 0);
}

static void mounts_are_not_made_twice(void)
{
	_cleanup_(toolchain_done) struct toolchain t = TOOLCHAIN_INIT;
	char *shown[] = {NULL, NULL};

	fresh("~/.nvm/versions/node/v20.1.0/bin", "~/bin");
	program("~/.nvm/versions/node/v20.1.0/bin/node");
	program("~/.nvm/versions/node/v20.1.0/bin/other");
	check_int(toolchain_add(&q, "node", &t, &err), 0);
	check_int(toolchain_add(&q, "other", &t, &err), 0);
	check_int(t.mounts_n, 1);
	check_int(strv_count(t.dirs), 1);
	/* What the person mounted already. */
	shown[0] = strdup(place("~/bin"));
	q.shown = shown;
	program("~/bin/mine");
	expect("mine", "path ~/bin\nrun ~/bin/mine\n");
	script("~/bin/mine.js", "/usr/bin/env node");
	expect("mine.js", "mount ~/.nvm/versions/node/v20.1.0\n"
			  "path ~/.nvm/versions/node/v20.1.0/bin\npath ~/bin\nrun ~/bin/mine.js\n");
	free(shown[0]);
}

int main(void)
{
	umask(022);
	run_test(nothing_for_the_system);
	run_test(nvm);
	run_test(fnm);
	run_test(npm_prefix);
	run_test(npm_prefix_local);
	run_test(pyenv);
	run_test(virtual_environment);
	run_test(environment_of_a_project);
	run_test(environment_that_is_shown);
	run_test(asdf_and_mise);
	run_test(volta);
	run_test(rust);
	run_test(go);
	run_test(single_files);
	run_test(opt);
	run_test(missing_interpreters);
	run_test(loaders);
	run_test(too_wide);
	run_test(files_of_a_room);
	run_test(made_inside);
	run_test(mounts_are_not_made_twice);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
