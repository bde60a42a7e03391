/* SPDX-License-Identifier: Apache-2.0 */
/* The options that make a sandbox, shared by every command that makes one. Those that the
 * configuration file can set too are applied after it. */
#include "cli.h"
#include "project.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(cloche_err *err, const char *fmt, const char *value)
{
	memset(err, 0, sizeof(*err));
	err->code = CLOCHE_E_USAGE;
	snprintf(err->message, sizeof(err->message), "%s \"%s\"", fmt, value);
	return -CLOCHE_E_USAGE;
}

static int set_provider(void *ctx, const char *value, cloche_err *err)
{
	struct sandbox_options *o = ctx;

	o->provider_given = true;
	return cloche_sandbox_set_provider(o->sb, value, err);
}

static int set_unsandboxed(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->allow_unsandboxed = true;
	return 0;
}

static int set_root(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_set_root(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_keep_changes(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_set_keep_changes(((struct sandbox_options *)ctx)->sb, value, err);
}

static int add_tool(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_add_tool(((struct sandbox_options *)ctx)->sb, value, err);
}

/* SRC[:DST[:ro]] */
static int add_mount(void *ctx, const char *value, cloche_err *err)
{
	struct sandbox_options *o = ctx;
	char *copy = strdup(value), *destination, *mode = NULL;
	bool ro = false;
	int r;

	if (!copy)
		return usage(err, "out of memory for", value);
	destination = strchr(copy, ':');
	if (destination) {
		*destination++ = '\0';
		mode = strchr(destination, ':');
	}
	if (mode)
		*mode++ = '\0';
	/* SRC:ro without a destination is a natural slip with one meaning. */
	if (destination && !mode &&
		(strcmp(destination, "ro") == 0 || strcmp(destination, "rw") == 0)) {
		mode = destination;
		destination = NULL;
	}
	if (mode && strcmp(mode, "ro") == 0)
		ro = true;
	else if (mode && strcmp(mode, "rw") != 0) {
		r = usage(err, "--mount: use SRC[:DST[:ro]], not", value);
		free(copy);
		return r;
	}
	r = cloche_sandbox_add_mount(o->sb, copy, destination, ro, err);
	free(copy);
	return r;
}

static int allow_write(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_allow_write(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_workdir(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_set_workdir(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_workspace(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->workspace = value;
	return 0;
}

static int set_no_workspace(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->no_workspace = true;
	return 0;
}

static int add_allow(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->allows = true;
	return cloche_allowlist_add_host(((struct sandbox_options *)ctx)->allow, value, err);
}

static int add_allowlist(void *ctx, const char *value, cloche_err *err)
{
	struct sandbox_options *o = ctx;

	o->allowlist_file = value;
	o->allows = true;
	return cloche_allowlist_add_file(o->allow, value, err);
}

static int add_secret(void *ctx, const char *value, cloche_err *err)
{
	return cloche_secrets_add_from_env(((struct sandbox_options *)ctx)->secrets, value, err);
}

static int add_secret_file(void *ctx, const char *value, cloche_err *err)
{
	return cloche_secrets_add_from_file(((struct sandbox_options *)ctx)->secrets, value, err);
}

static int add_aws_secret(void *ctx, const char *value, cloche_err *err)
{
	return cloche_secrets_add_aws_from_env(
		((struct sandbox_options *)ctx)->secrets, value, err);
}

static int set_net(void *ctx, const char *value, cloche_err *err)
{
	struct sandbox_options *o = ctx;

	if (strcmp(value, "none") == 0 && o->allows)
		say("warning: --net none leaves nothing of what --allow and --allowlist list");
	if (strcmp(value, "none") == 0)
		return cloche_sandbox_set_net(o->sb, CLOCHE_NET_NONE, err);
	if (strcmp(value, "gateway") == 0)
		return cloche_sandbox_set_net(o->sb, CLOCHE_NET_GATEWAY, err);
	return usage(err, "--net is none or gateway, not", value);
}

static int add_upstream_ca(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_add_upstream_ca(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_dns(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_set_upstream_dns(((struct sandbox_options *)ctx)->sb, value, err);
}

static int add_connect_to(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_add_connect_to(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_env(void *ctx, const char *value, cloche_err *err)
{
	const char *equals = strchr(value, '=');
	char *name;
	int r;

	if (!equals)
		return usage(err, "--env is NAME=VALUE (or --pass-env NAME), not", value);
	name = strndup(value, (size_t)(equals - value));
	if (!name)
		return usage(err, "out of memory for", value);
	r = cloche_sandbox_set_env(((struct sandbox_options *)ctx)->sb, name, equals + 1, err);
	free(name);
	return r;
}

static int pass_env(void *ctx, const char *value, cloche_err *err)
{
	const char *here = getenv(value);

	if (!here)
		return 0;
	return cloche_sandbox_set_env(((struct sandbox_options *)ctx)->sb, value, here, err);
}

#define LIMIT(fn, name)                                                                            \
	static int fn(void *ctx, const char *value, cloche_err *err)                               \
	{                                                                                          \
		return cloche_sandbox_set_limit(                                                   \
			((struct sandbox_options *)ctx)->sb, name, value, err);                    \
	}
LIMIT(set_memory, "memory")
LIMIT(set_cpus, "cpus")
LIMIT(set_pids, "pids")
LIMIT(set_timeout, "timeout")
LIMIT(set_output_limit, "output-limit")
LIMIT(set_nofile, "nofile")
LIMIT(set_file_size, "file-size")
LIMIT(set_tmpfs_size, "tmpfs-size")

static int set_ttl(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->ttl = value;
	return cloche_sandbox_set_limit(((struct sandbox_options *)ctx)->sb, "ttl", value, err);
}

static int add_label(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_add_label(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_limits(void *ctx, const char *value, cloche_err *err)
{
	bool best_effort = strcmp(value, "best-effort") == 0;

	if (!best_effort && strcmp(value, "strict") != 0)
		return usage(err, "--limits is strict or best-effort, not", value);
	cloche_sandbox_set_limits_best_effort(((struct sandbox_options *)ctx)->sb, best_effort);
	return 0;
}

static int set_nested(void *ctx, const char *value, cloche_err *err)
{
	cloche_sandbox_set_nested(((struct sandbox_options *)ctx)->sb, true);
	return 0;
}

static int set_network_log(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_set_network_log(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_network_log_live(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->network_log_live = true;
	return 0;
}

static int set_tty(void *ctx, const char *value, cloche_err *err)
{
	struct sandbox_options *o = ctx;

	o->tty = true;
	o->no_tty = false;
	return 0;
}

static int set_no_tty(void *ctx, const char *value, cloche_err *err)
{
	struct sandbox_options *o = ctx;

	o->no_tty = true;
	o->tty = false;
	return 0;
}

static int set_interactive(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->interactive = true;
	return 0;
}

static int set_config(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->config = value;
	return 0;
}

static int set_no_config(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->no_config = true;
	return 0;
}

static int set_name(void *ctx, const char *value, cloche_err *err)
{
	return cloche_sandbox_set_name(((struct sandbox_options *)ctx)->sb, value, err);
}

static int set_json(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->json = true;
	return 0;
}

static int set_verbose(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->verbose = true;
	return 0;
}

static int set_debug(void *ctx, const char *value, cloche_err *err)
{
	((struct sandbox_options *)ctx)->debug = true;
	return 0;
}

/* Remembers an option that the configuration file must not win over. */
static int later(void *ctx, const struct option *o, const char *value, cloche_err *err)
{
	struct sandbox_options *s = ctx;

	if (s->late_n == sizeof(s->late) / sizeof(s->late[0]))
		return usage(err, "too many options at", value);
	s->late[s->late_n] = o;
	s->late_values[s->late_n++] = value;
	return 0;
}

static const struct option late_options[] = {
	{"env", 0, NULL, NULL, set_env},
	{"pass-env", 0, NULL, NULL, pass_env},
	{"secret", 0, NULL, NULL, add_secret},
	{"secret-file", 0, NULL, NULL, add_secret_file},
	{"net", 0, NULL, NULL, set_net},
	{"memory", 0, NULL, NULL, set_memory},
	{"cpus", 0, NULL, NULL, set_cpus},
	{"pids", 0, NULL, NULL, set_pids},
	{"timeout", 0, NULL, NULL, set_timeout},
	{"tool", 0, NULL, NULL, add_tool},
	{"aws-secret", 0, NULL, NULL, add_aws_secret},
};

#define LATER(fn, index)                                                                           \
	static int fn(void *ctx, const char *value, cloche_err *err)                               \
	{                                                                                          \
		return later(ctx, &late_options[index], value, err);                               \
	}
LATER(late_env, 0)
LATER(late_pass_env, 1)
LATER(late_secret, 2)
LATER(late_secret_file, 3)
LATER(late_net, 4)
LATER(late_memory, 5)
LATER(late_cpus, 6)
LATER(late_pids, 7)
LATER(late_timeout, 8)
LATER(late_tool, 9)
LATER(late_aws_secret, 10)

/* Limits of single processes and of space, and what else the file has as well. */
static const struct option late_limits[] = {
	{"nofile", 0, NULL, NULL, set_nofile},
	{"file-size", 0, NULL, NULL, set_file_size},
	{"tmpfs-size", 0, NULL, NULL, set_tmpfs_size},
	{"dns", 0, NULL, NULL, set_dns},
};

#define LATE_LIMIT(fn, index)                                                                      \
	static int fn(void *ctx, const char *value, cloche_err *err)                               \
	{                                                                                          \
		return later(ctx, &late_limits[index], value, err);                                \
	}
LATE_LIMIT(late_nofile, 0)
LATE_LIMIT(late_file_size, 1)
LATE_LIMIT(late_tmpfs_size, 2)
LATE_LIMIT(late_dns, 3)

static const struct option options[] = {
	{"workspace", 0, "DIR", "mount DIR read-write at /workspace (default: this directory)",
		set_workspace},
	{"no-workspace", 0, NULL, "mount no workspace", set_no_workspace},
	{"mount", 'm', "SRC[:DST[:ro]]", "mount a file or directory; DST defaults to SRC",
		add_mount},
	{"allow-write", 0, "PATH",
		"leave PATH writable though this machine obeys it: .git/config, .vscode, ...",
		allow_write},
	{"workdir", 'w', "DIR", "working directory inside (default /workspace, else /)",
		set_workdir},
	{"root", 0, "host|DIR", "root filesystem: the host's system, read-only (default), or DIR",
		set_root},
	{"keep-changes", 0, "DIR",
		"keep what is changed in the root in DIR, and go on from what is there; see\n"
		"\"cloche diff DIR\"",
		set_keep_changes},
	{"tool", 0, "NAME|PATH",
		"show a program of yours (nvm, pyenv, ~/.local/bin, /opt, ...) and what it\n"
		"needs, read-only, and put it on the PATH; COMMAND itself needs no --tool",
		late_tool},
	{"env", 'e', "NAME=VALUE", "set a variable inside; nothing else of yours gets in",
		late_env},
	{"pass-env", 0, "NAME", "pass a variable of yours", late_pass_env},
	{"allow", 0, "HOST", "allow HOST, HOST:PORT or https://HOST/PATH through the gateway",
		add_allow},
	{"allowlist", 0, "FILE", "allow what the YAML file lists", add_allowlist},
	{"secret", 0, "SPEC",
		"masked secret NAME[=HOSTVAR]@HOST[,HOST...][:Header[,...]]: inside it is a\n"
		"surrogate, the real value of HOSTVAR goes only to HOST over TLS",
		late_secret},
	{"secret-file", 0, "SPEC", "the same, NAME=PATH@..., with the value from a file",
		late_secret_file},
	{"aws-secret", 0, "@HOST[,...]",
		"AWS credentials of your AWS_ variables: inside are surrogates, and what is\n"
		"signed with them is signed again for HOST",
		late_aws_secret},
	{"net", 0, "none|gateway", "default: gateway where anything is allowed, else none",
		late_net},
	{"upstream-ca", 0, "FILE", "also trust these PEM certificates upstream", add_upstream_ca},
	{"dns", 0, "ADDRESS[:PORT][,...]",
		"DNS servers for the addresses of allowed hosts (default: this machine's)",
		late_dns},
	{"connect-to", 0, "HOST:PORT:ADDR:PORT2",
		"where requests to HOST:PORT really go; may be private", add_connect_to},
	{"memory", 0, "SIZE", "limit memory (512m, 2g); swap is never used", late_memory},
	{"cpus", 0, "N", "limit cpu time (0.5, 2)", late_cpus},
	{"pids", 0, "N", "limit processes and threads", late_pids},
	{"timeout", 0, "TIME", "end it after TIME (500ms, 30s, 5m): TERM, KILL 5 s later",
		late_timeout},
	{"nofile", 0, "N", "limit the open files of each process", late_nofile},
	{"file-size", 0, "SIZE", "limit the size of each file that is written", late_file_size},
	{"tmpfs-size", 0, "SIZE",
		"limit what /tmp, /run, /home and /dev/shm hold together (default: half of the\n"
		"memory)",
		late_tmpfs_size},
	{"output-limit", 0, "SIZE", "keep at most SIZE of each output stream", set_output_limit},
	{"limits", 0, "strict|best-effort",
		"strict (default): refuse to run where a limit cannot be enforced", set_limits},
	{"nested", 0, NULL,
		"let it make namespaces and mounts of its own (bwrap, podman inside); a wall less",
		set_nested},
	{"network-log", 0, "FILE", "append the network log to FILE and, as JSON, to FILE.jsonl",
		set_network_log},
	{"network-log-live", 0, NULL, "show the network log on standard error, behind [net]",
		set_network_log_live},
	{"tty", 't', NULL,
		"give the command a terminal (default where standard input, output and error\n"
		"are one)",
		set_tty},
	{"no-tty", 'T', NULL, "give it none", set_no_tty},
	{"interactive", 'i', NULL, "pass standard input also where it is a terminal, without -t",
		set_interactive},
	{"provider", 0, "NAME", "auto (default) or native", set_provider},
	{"allow-unsandboxed", 0, NULL,
		"accepted for scripts; changes nothing: every room is isolated", set_unsandboxed},
	{"config", 0, "FILE",
		"obey FILE (default: .cloche/sandbox.yaml, else .airut/sandbox.yaml, if you\n"
		"consented to what it asks for: see \"cloche help trust\")",
		set_config},
	{"no-config", 0, NULL, "obey no configuration file that is found here", set_no_config},
	{"name", 0, "NAME", "a name for people", set_name},
	{"json", 0, NULL, "print the result as one JSON document", set_json},
	{"verbose", 0, NULL, "say more", set_verbose},
	{"debug", 0, NULL, "say what is done, and when", set_debug},
};

const struct option_table sandbox_option_table = {.options = options,
	.n = sizeof(options) / sizeof(options[0]),
	.title = "Options of the sandbox"};

static const struct option lasting_options[] = {
	{"ttl", 0, "TIME", "end the sandbox TIME after it was made (30m, 2h); default: never",
		set_ttl},
	{"label", 0, "KEY=VALUE", "a label, by which \"cloche ps\" can choose; may be repeated",
		add_label},
};

const struct option_table lasting_option_table = {.options = lasting_options,
	.n = sizeof(lasting_options) / sizeof(lasting_options[0]),
	.title = "Options of a sandbox that outlives this command"};

int sandbox_options_init(struct sandbox_options *o, cloche_err *err)
{
	const char *provider = getenv("CLOCHE_PROVIDER");

	memset(o, 0, sizeof(*o));
	o->sb = cloche_sandbox_new();
	o->allow = cloche_allowlist_new();
	o->secrets = cloche_secrets_new();
	if (!o->sb || !o->allow || !o->secrets)
		return usage(err, "out of memory", "");
	if (provider && provider[0])
		return cloche_sandbox_set_provider(o->sb, provider, err);
	return 0;
}

void sandbox_options_done(struct sandbox_options *o)
{
	cloche_sandbox_free(o->sb);
	cloche_allowlist_free(o->allow);
	cloche_secrets_free(o->secrets);
}

/* The file that was named, and the allowlist of projects that keep one beside it. */
static int load_named(struct sandbox_options *o, cloche_err *err)
{
	static char beside[PATH_MAX];
	const char *slash = strrchr(o->config, '/');
	int r = cloche_sandbox_load_config(o->sb, o->config, err);

	if (r < 0)
		return r;
	if (o->verbose)
		say("using %s", o->config);
	snprintf(beside, sizeof(beside), "%.*snetwork-allowlist.yaml",
		slash ? (int)(slash - o->config + 1) : 0, o->config);
	if (!o->allowlist_file && access(beside, F_OK) == 0)
		return cloche_allowlist_add_file(o->allow, beside, err);
	return 0;
}

/* What is found in the working directory is asked about. */
static int load_config(struct sandbox_options *o, cloche_err *err)
{
	if (o->config && o->no_config)
		return wrong_usage(err, "leave one of them out",
			"--config names a configuration file, --no-config wants none");
	if (o->no_config)
		return 0;
	return o->config ? load_named(o, err)
			 : project_load(o->sb, o->allowlist_file ? NULL : o->allow, err);
}

int sandbox_options_finish(struct sandbox_options *o, cloche_err *err)
{
	int r;

	debug_step(o, "the options were read");
	r = environment_read(o, err);
	if (r == 0)
		r = load_config(o, err);
	for (size_t i = 0; r == 0 && i < o->late_n; i++)
		r = o->late[i]->set(o, o->late_values[i], err);
	if (r == 0)
		r = workspace_choose(o, err);
	if (r == 0 && cloche_allowlist_count(o->allow) > 0)
		r = cloche_sandbox_set_allowlist(o->sb, o->allow, err);
	if (r == 0 && cloche_secrets_count(o->secrets) > 0)
		r = cloche_sandbox_add_secrets(o->sb, o->secrets, err);
	if (o->network_log_live)
		cloche_sandbox_set_network_log_fd(o->sb, STDERR_FILENO);
	if (r == 0)
		debug_step(o, "workspace %s; %zu rules of an allowlist, %zu secrets",
			o->workspace ? o->workspace : "none", cloche_allowlist_count(o->allow),
			cloche_secrets_count(o->secrets));
	return r;
}

static void say_tools(const struct sandbox_options *o)
{
	const char *note;

	for (size_t i = 0; (o->verbose || o->debug) && (note = cloche_sandbox_tool_note(o->sb, i));
		i++)
		say("%s", note);
}

int sandbox_options_command(struct sandbox_options *o, char **argv, cloche_err *err)
{
	const char *program = NULL;
	int r = argv ? cloche_sandbox_add_command(o->sb, argv[0], &program, err) : 0;

	if (r == 0 && program)
		argv[0] = (char *)(uintptr_t)program;
	if (r == 0)
		say_tools(o);
	if (r == 0 && argv)
		debug_step(o, "the command is %s", argv[0]);
	return r;
}
