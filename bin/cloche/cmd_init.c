/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche init`: writes a project's configuration. Theory of operation: the project is a stranger's
 * or a room's, so what lies there only decides which presets are named; its texts are not read. The
 * files are written beside their names and then given them, below a descriptor and through no
 * link. */
#include "cli.h"
#include "project.h"

#include <cloche/network_log.h>
#include <cloche/run.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct init_options {
	const char *from;
	bool force, print, learn, yes;
};

/* What a project of a language has at its top, and the preset for it; rows of one preset lie
 * together. */
static const struct init_sign {
	const char *file, *preset;
} signs[] = {{"package.json", "npm"}, {"pyproject.toml", "pip"}, {"requirements.txt", "pip"},
	{"setup.py", "pip"}, {"setup.cfg", "pip"}, {"Pipfile", "pip"}, {"Cargo.toml", "cargo"},
	{"go.mod", "go"}, {"pom.xml", "maven"}, {"build.gradle", "maven"},
	{"build.gradle.kts", "maven"}};

#define INIT_HEAD                                                                                  \
	"# What a sandbox of this project gets; cloche-config(5) has the keys, \"cloche "          \
	"config\"\n"                                                                               \
	"# shows what holds. It counts once you have consented to it: cloche trust.\n"
#define INIT_MORE                                                                                  \
	"#allow: [api.example.com]       # hosts\n"                                                \
	"#tools: [node]                  # programs of yours that are not the system's\n"          \
	"#mounts: [\"~/models:/models:ro\"]\n"                                                     \
	"#ports: [\"8080:8080\"]\n"                                                                \
	"#limits: {memory: 4g, cpus: 2}\n"

static bool init_is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0 && S_ISREG(st.st_mode);
}

/* Write what the languages need. */
static void init_put_presets(FILE *out)
{
	const char *last = NULL;

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (!init_is_there(signs[i].file) || (last && strcmp(last, signs[i].preset) == 0))
			continue;
		fprintf(out, "%s- %s  # %s\n", last ? "" : "presets:\n", signs[i].preset,
			signs[i].file);
		last = signs[i].preset;
	}
	if (!last)
		fputs("#presets: [npm]                # \"cloche preset\" lists them\n", out);
}

/* Return the text of sandbox.yaml, which the caller frees. */
static char *init_text(bool from_log)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	fputs(INIT_HEAD, out);
	if (from_log)
		fputs("# The hosts are in network-allowlist.yaml beside it.\n", out);
	else
		init_put_presets(out);
	fputs(INIT_MORE, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int init_fail(cloche_err *err, const char *what, const char *name)
{
	const char *why = strerror(errno);

	return wrong_usage(err, "\"cloche init --print\" shows it instead", "init: %s %s: %s", what,
		name, why);
}

/* Give the file `made` its name. */
static int init_name(int dir, const char *made, const char *name, bool force, cloche_err *err)
{
	if (force ? renameat(dir, made, dir, name) == 0 : linkat(dir, made, dir, name, 0) == 0) {
		if (!force)
			(void)unlinkat(dir, made, 0);
		return 0;
	}
	if (!force && errno == EEXIST)
		wrong_usage(err, "--force replaces it, --print shows what it would be",
			"init: .cloche/%s is there already", name);
	else
		init_fail(err, "write .cloche/", name);
	(void)unlinkat(dir, made, 0);
	return -err->code;
}

static int init_write(int dir, const char *name, const char *text, bool force, cloche_err *err)
{
	char made[64];
	int fd;

	snprintf(made, sizeof(made), ".%s.%ld", name, (long)getpid());
	fd = openat(dir, made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return init_fail(err, "make .cloche/", made);
	if (!put(fd, text, strlen(text)) || fsync(fd) < 0) {
		init_fail(err, "write .cloche/", made);
		close(fd);
		(void)unlinkat(dir, made, 0);
		return -err->code;
	}
	close(fd);
	return init_name(dir, made, name, force, err);
}

static int init_open_folder(int *ret, cloche_err *err)
{
	if (mkdirat(AT_FDCWD, ".cloche", 0755) < 0 && errno != EEXIST)
		return init_fail(err, "make", ".cloche");
	*ret = openat(AT_FDCWD, ".cloche", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? init_fail(err, "open", ".cloche") : 0;
}

/* Fail if a file is there that would be replaced. */
static int init_check_free(const struct init_options *o, bool rules, cloche_err *err)
{
	static const char *const names[] = {
		".cloche/sandbox.yaml", ".cloche/network-allowlist.yaml"};
	struct stat st;

	for (size_t i = 0; !o->force && !o->print && i < (rules ? 2 : 1); i++)
		if (lstat(names[i], &st) == 0)
			return wrong_usage(err,
				"--force replaces it, --print shows what it would be",
				"init: %s is there already", names[i]);
	return 0;
}

static int init_write_all(
	const struct init_options *o, const char *text, const char *rules, cloche_err *err)
{
	int dir = -1, r = init_open_folder(&dir, err);

	if (r < 0)
		return r;
	if (rules)
		r = init_write(dir, "network-allowlist.yaml", rules, o->force, err);
	if (r == 0)
		r = init_write(dir, "sandbox.yaml", text, o->force, err);
	close(dir);
	return r;
}

static int init_read_log(const char *id, cloche_network_suggestion **ret, cloche_err *err)
{
	char *path = NULL;
	int r = cloche_network_log_find(id, &path, err);

	if (r == 0)
		r = cloche_network_log_suggest(path, false, ret, err);
	free(path);
	return r;
}

/* What was written is read as a run does it. */
static int init_check(cloche_err *err)
{
	cloche_project *p = NULL;
	int r = cloche_project_open(".", &p, err);

	if (r == 0 && p && !p->is_trusted)
		say("read it, then consent to it: cloche trust");
	cloche_project_free(p);
	return r;
}

static int init_put(
	const struct init_options *o, const char *text, const char *rules, cloche_err *err)
{
	int r;

	if (o->print)
		return put(STDOUT_FILENO, text, strlen(text)) &&
				       (!rules || put(STDOUT_FILENO, rules, strlen(rules)))
			       ? 0
			       : EXIT_CLOCHE;
	r = init_write_all(o, text, rules, err);
	if (r < 0)
		return r;
	say("wrote .cloche/sandbox.yaml%s", rules ? " and .cloche/network-allowlist.yaml" : "");
	return init_check(err);
}

/* Write what the log of a sandbox says, or, with id NULL, what the directory shows. */
static int init_make(const struct init_options *o, const char *id, cloche_err *err)
{
	cloche_network_suggestion *log = NULL;
	int r = id ? init_read_log(id, &log, err) : 0;
	const char *rules = log ? log->yaml : NULL;
	char *text;

	if (r < 0)
		return r;
	text = init_text(log != NULL);
	r = text ? init_put(o, text, rules, err) : wrong_usage(err, NULL, "out of memory");
	free(text);
	cloche_network_suggestion_free(log);
	return r;
}

static int init_ask(const struct init_options *o, cloche_err *err)
{
	if (o->yes)
		return 0;
	if (!project_can_ask())
		return wrong_usage(err, "--yes goes on without asking",
			"init: there is no terminal to ask on");
	return project_ask("may the command reach every public host, this once?")
		       ? 0
		       : wrong_usage(err, "\"cloche init\" alone starts nothing",
				 "init: nothing was run");
}

/* Run the command, and write what it asked of the network. Return its exit status. */
static int init_learn(const struct init_options *o, char **argv, cloche_err *err)
{
	struct sandbox_options sandbox = {.quiet = true};
	cloche_run *run = NULL;
	int r = init_ask(o, err), status = 0;

	if (r == 0)
		r = sandbox_options_give(&sandbox, "allow", "*", err);
	if (r == 0)
		r = sandbox_options_finish(&sandbox, argv, err);
	if (r == 0)
		r = cloche_run_new(sandbox.sb, (const char *const *)argv, &run, err);
	if (r == 0)
		status = run_run_attached(&sandbox, run);
	if (r == 0 && cloche_run_result(run)->id[0])
		r = init_make(o, cloche_run_result(run)->id, err);
	cloche_run_free(run);
	sandbox_options_done(&sandbox);
	return r == 0 ? status : r;
}

static int main_init(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct init_options *o = ctx;
	int r;

	if (o->learn == (operands->n == 0) || (o->learn && o->from) || (o->yes && !o->learn))
		return wrong_usage(err, "for example: cloche init --learn -- npm test",
			"init: a command and --yes belong to --learn, and --from does not");
	r = init_check_free(o, o->learn || o->from, err);
	if (r < 0)
		return r;
	return o->learn ? init_learn(o, operands->v, err) : init_make(o, o->from, err);
}

static const struct option init_options[] = {
	{"from", 0, "ID", "allow what the sandbox ID (or its name) asked of the network",
		.at = offsetof(struct init_options, from)},
	{"learn", 0, NULL,
		"run COMMAND, which may reach every public host this once, and allow what it\n"
		"asked for",
		.at = offsetof(struct init_options, learn)},
	{"yes", 0, NULL, "with --learn: do not ask", .at = offsetof(struct init_options, yes)},
	{"force", 0, NULL, "replace files that are there",
		.at = offsetof(struct init_options, force)},
	{"print", 0, NULL, "print it, and write nothing",
		.at = offsetof(struct init_options, print)},
	{0},
};

const struct command command_init = {
	.name = "init",
	.summary = "write a configuration for the project in this directory",
	.synopsis = "[--force] [--print] [--from ID]\n"
		    "       cloche init --learn [--yes] -- COMMAND [ARG...]",
	.text = "Writes .cloche/sandbox.yaml, with the presets of the languages that this\n"
		"directory shows (package.json, pyproject.toml, Cargo.toml, go.mod, pom.xml, ...)\n"
		"or, with --from, what a sandbox asked of the network: the smallest allowlist, as\n"
		"\"cloche net suggest\" proposes it. Read it before you consent to it.\n"
		"\n"
		"  cloche init\n"
		"  cloche init --from dev\n"
		"  cloche init --learn -- npm test",
	.tables = {&(const struct option_table){"Options", init_options}},
	.command_line = true,
	.ctx = &(struct init_options){0},
	.run = main_init,
};
