/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program.h"
#include "base/fd.h"
#include "base/strv.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool program_is_elevated(void)
{
	return getauxval(AT_SECURE) != 0;
}

static bool is_program(const char *path)
{
	return path && access(path, X_OK) == 0;
}

/* Heap; NULL on lack of memory. */
static char *program_in(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static char *beside_executable(const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return program_in(self, name);
}

char *program_find(const char *name, struct cloche_err *err)
{
	/* The latter has the program that users call. */
	static const char *const installed[] = {CLOCHE_LIBEXECDIR, CLOCHE_BINDIR};
	const char *dir = secure_getenv("CLOCHE_LIBEXEC");
	_cleanup_(freep) char *path = NULL;

	/* If the directory is set explicitly, try nothing else, so that two builds are never
	 * mixed. */
	if (dir && dir[0] == '/') {
		path = program_in(dir, name);
		if (is_program(path))
			return TAKE_PTR(path);
		err_set(err, E_NOT_FOUND, "%s is not in %s", name, dir);
		err_hint(err, "CLOCHE_LIBEXEC names that directory; unset or correct it");
		return NULL;
	}
	/* A set-uid program may have been started by a link to it, beside which the caller's
	 * programs are. */
	path = program_is_elevated() ? NULL : beside_executable(name);
	for (size_t i = 0; i < ARRAY_SIZE(installed) && !is_program(path); i++) {
		free(path);
		path = program_in(installed[i], name);
	}
	if (is_program(path))
		return TAKE_PTR(path);
	err_set(err, E_NOT_FOUND, "the program %s is neither beside this one nor in %s", name,
		CLOCHE_LIBEXECDIR);
	err_hint(err,
		"install cloche, or set CLOCHE_LIBEXEC to the directory that has its programs");
	return NULL;
}

char *program_on_path(const char *name)
{
	struct str rest = str_from(secure_getenv("PATH"));

	while (rest.n) {
		struct str dir = str_prefix(rest, str_chr(rest, ':'));
		_cleanup_(freep) char *path = NULL;

		rest = str_from_index(rest, dir.n + 1);
		if (dir.n == 0 || dir.p[0] != '/' ||
			asprintf(&path, "%.*s/%s", STR_FMT(dir), name) < 0)
			continue;
		if (access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return NULL;
}

bool program_is_engine_setting(struct str name)
{
	/* These lead to a person's keys, and hold none: an engine may be asked by ssh, and kubectl
	 * may ask a cloud's own program who the person is. */
	static const struct str names[] = {STR("REGISTRY_AUTH_FILE"), STR("SSH_AUTH_SOCK"),
		STR("KUBECONFIG"), STR("E2B_API_KEY_FILE"), STR("CLOCHE_CLOUDFLARE_TOKEN_FILE"),
		STR("AWS_PROFILE"), STR("AWS_CONFIG_FILE"), STR("AWS_SHARED_CREDENTIALS_FILE"),
		STR("AZURE_CONFIG_DIR"), STR("CLOUDSDK_CONFIG"), STR("CLOUDSDK_ACTIVE_CONFIG_NAME"),
		STR("GOOGLE_APPLICATION_CREDENTIALS")};

	return str_starts(name, STR("DOCKER_")) || str_starts(name, STR("CONTAINER")) ||
	       str_is_one_of(name, names, ARRAY_SIZE(names));
}

/* What opens a service is for those alone who ask it. */
static bool program_is_service_key(struct str name)
{
	return str_eq(name, STR("E2B_API_KEY")) || str_eq(name, STR("CLOCHE_CLOUDFLARE_TOKEN"));
}

char **program_env(char *const *env)
{
	static const char *const names[] = {"HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR",
		"DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR"};
	static const char *const prefixes[] = {
		"CLOCHE_", "XDG_", "LC_", "ASAN_", "LSAN_", "UBSAN_", "LLVM_PROFILE_"};
	_cleanup_(strv_freep) char **kept = calloc(1, sizeof(char *));

	if (kept && program_is_elevated())
		return strv_add(&kept, STR("PATH=" SYSTEM_PATH)) < 0 ? NULL : TAKE_PTR(kept);
	for (size_t i = 0; kept && env && env[i]; i++) {
		struct str var = str_from(env[i]);
		struct str name = str_prefix(var, str_chr(var, '='));
		bool keep = program_is_engine_setting(name);

		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			keep |= str_eq(name, str_from(names[k]));
		for (size_t k = 0; k < ARRAY_SIZE(prefixes); k++)
			keep |= str_starts(name, str_from(prefixes[k]));
		if (keep && !program_is_service_key(name) && strv_add(&kept, var) < 0)
			return NULL;
	}
	return TAKE_PTR(kept);
}

int program_env_add_service(char ***to, char *const *env)
{
	static const struct str proxies[] = {STR("HTTPS_PROXY"), STR("https_proxy"),
		STR("ALL_PROXY"), STR("all_proxy"), STR("NO_PROXY"), STR("no_proxy")};

	for (size_t i = 0; env && env[i] && !program_is_elevated(); i++) {
		struct str var = str_from(env[i]);

		struct str name = str_prefix(var, str_chr(var, '='));

		if ((program_is_service_key(name) ||
			    str_is_one_of(name, proxies, ARRAY_SIZE(proxies))) &&
			strv_add(to, var) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Copy the descriptors above every target number, so that one dup2 never overwrites the source of
 * another. */
static int lift_fds(const struct program_spawn *p, int *lifted)
{
	int floor = 3;

	for (size_t i = 0; i < p->fds_n; i++)
		floor = MAX(floor, p->fds[i].to + 1);
	for (size_t i = 0; i < p->fds_n + 3; i++) {
		int from = i < 3 ? p->stdio[i] : p->fds[i - 3].from;

		if (from < 0)
			continue;
		lifted[i] = fcntl(from, F_DUPFD_CLOEXEC, floor);
		if (lifted[i] < 0)
			return -errno;
	}
	return floor;
}

static int add_actions(posix_spawn_file_actions_t *actions, const struct program_spawn *p,
	const int *lifted, int floor)
{
	int r = 0;

	for (int i = 0; i < 3 && r == 0; i++) {
		if (lifted[i] >= 0)
			r = posix_spawn_file_actions_adddup2(actions, lifted[i], i);
		else
			r = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
	}
	for (size_t i = 0; i < p->fds_n && r == 0; i++)
		r = posix_spawn_file_actions_adddup2(actions, lifted[i + 3], p->fds[i].to);
#if CLOCHE_SPAWN_CLOSEFROM
	/* Other threads of the host program may open descriptors without close-on-exec at any
	 * moment. Where the C library lacks this call, only single-threaded programs are linked
	 * with it, and they never do that. */
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(actions, floor);
#endif
	return -r;
}

static int spawn(const struct program_spawn *p, const int *lifted, int floor, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t all, none;
	int r;

	sigfillset(&all);
	sigemptyset(&none);
	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attr);
	if (r == 0) {
		posix_spawnattr_setsigdefault(&attr, &all);
		posix_spawnattr_setsigmask(&attr, &none);
		posix_spawnattr_setflags(
			&attr, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
				       (p->own_group ? POSIX_SPAWN_SETPGROUP : 0)));
		r = add_actions(&actions, p, lifted, floor);
		if (r == 0) /* which changes no argument, although it takes them as char * */
			r = -posix_spawn(ret, p->path, &actions, &attr,
				(char *const *)(uintptr_t)p->argv, p->env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int start(
	const struct program_spawn *p, pid_t *ret_pid, int *ret_pidfd, struct cloche_err *err)
{
	_cleanup_(freep) int *lifted = malloc((p->fds_n + 3) * sizeof(int));
	pid_t pid = -1;
	int floor, r;

	if (!lifted)
		return err_nomem(err);
	for (size_t i = 0; i < p->fds_n + 3; i++)
		lifted[i] = -1;
	floor = lift_fds(p, lifted);
	r = floor < 0 ? floor : spawn(p, lifted, floor, &pid);
	for (size_t i = 0; i < p->fds_n + 3; i++)
		fd_close(lifted[i]);
	if (r < 0)
		return err_sys(err, -r, "start %s", p->path);
	if (ret_pidfd) {
		int fd = (int)syscall(SYS_pidfd_open, pid, 0);

		if (fd < 0) {
			r = err_sys(err, errno, "watch %s", p->path);
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return r;
		}
		*ret_pidfd = fd;
	}
	*ret_pid = pid;
	return 0;
}

int program_start(
	const struct program_spawn *p, pid_t *ret_pid, int *ret_pidfd, struct cloche_err *err)
{
	_cleanup_(freep) char *path = p->path ? NULL : program_find(p->argv[0], err);
	_cleanup_(strv_freep) char **env = p->env ? NULL : program_env(environ);
	struct program_spawn whole = *p;

	if (!p->path && !path)
		return -E_NOT_FOUND;
	if (!p->env && (!env || (p->service && program_env_add_service(&env, environ) < 0)))
		return err_nomem(err);
	whole.path = p->path ? p->path : path;
	whole.env = p->env ? p->env : env;
	return start(&whole, ret_pid, ret_pidfd, err);
}

uint64_t program_start_time(pid_t pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	unsigned long long start = 0;
	char path[32], *text, *at, state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return 0;
	text = buf_cstr(&b);
	at = text ? strrchr(text, ')') : NULL;
	/* Field 22. */
	if (!at ||
		sscanf(at + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %llu",
			&state, &start) != 2 ||
		state == 'Z' || state == 'X')
		return 0;
	return start;
}

void program_boot_id(char ret[PROGRAM_BOOT_ID_MAX])
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	ret[0] = '\0';
	if (fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &b, NULL) == 0)
		snprintf(ret, PROGRAM_BOOT_ID_MAX, "%.*s",
			STR_FMT(str_prefix(buf_str(&b), str_chr(buf_str(&b), '\n'))));
}

int program_open(pid_t pid, uint64_t start_time, const char *boot_id)
{
	_cleanup_fd_ int fd = -1;
	char boot[PROGRAM_BOOT_ID_MAX];

	if (pid <= 1 || start_time == 0 || !boot_id)
		return -ESRCH;
	/* Open it first: then its number cannot become another process's. */
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	program_boot_id(boot);
	if (program_start_time(pid) != start_time || strcmp(boot, boot_id) != 0)
		return -ESRCH;
	return TAKE_FD(fd);
}

int program_end(pid_t pid, uint64_t start_time, const char *boot_id)
{
	int fd = program_open(pid, start_time, boot_id);

	if (fd < 0)
		return -1;
	(void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	return fd;
}
