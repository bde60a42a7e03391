/* SPDX-License-Identifier: Apache-2.0 */
#include "client/test-job.h"
#include "job/job.h"

#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>

char marker[32], group_prefix[64], base[TAP_DIR_BYTES], runtime[160];

static int take(void *user, int stream, const char *p, size_t n)
{
	struct taken *t = user;

	if (t->refuse == stream)
		return -1;
	must(buf_add(&t->out[stream - 1], p, n) == 0);
	t->spoke = true;
	return 0;
}

void job_init(struct job *j, const char *script)
{
	char sh[] = "sh", c[] = "-c", *text = strdup(script);
	char *argv[] = {sh, c, text, marker, NULL};
	char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=/tmp";
	char *env[] = {path, home, NULL};

	must(text);
	*j = (struct job){.io = CLIENT_IO_INIT, .grace_usec = 5 * USEC_PER_SEC};
	room_spec_init(&j->room);
	exec_spec_init(&j->spec);
	must(exec_spec_set(&j->spec, argv, env, NULL, NULL) == 0);
	j->taken.out[0] = j->taken.out[1] = BUF_INIT(OUT_MAX);
	j->io.write = take;
	j->io.user = &j->taken;
	free(text);
}

void job_done(struct job *j)
{
	j->client = client_free(j->client);
	buf_done(&j->taken.out[0]);
	buf_done(&j->taken.out[1]);
	exec_spec_done(&j->spec);
	room_spec_done(&j->room);
}

void job_start(struct job *j)
{
	struct client_start start = {
		.m = {.one_shot = !j->long_lived, .grace_usec = j->grace_usec}, .room = &j->room};
	int config;

	if (client_new(&start, &j->client, &config, &j->err) < 0) {
		printf("Bail out! %s\n", j->err.message);
		exit(1);
	}
	check_int(config, -1);
}

static void on_began(void *user, const struct ctl_exec_started *m)
{
	struct job *j = user;

	j->began = true;
}

void job_exec(struct job *j)
{
	const struct client_exec what = {.spec = &j->spec, .started = on_began, .user = j};

	j->io.user = &j->taken;
	j->code = client_exec(j->client, &what, &j->io, &j->result, &j->err);
}

void job_run(struct job *j)
{
	job_start(j);
	job_exec(j);
	check_int(client_finish(j->client, &j->ended, NULL), 0);
}

bool ended_by(const struct job *j, int signo)
{
	return j->result.end.status == (j->result.end.signaled ? signo : 128 + signo);
}

static bool has_marker(const char *pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	if (fd_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return false;
	return str_find(buf_str(&b), str_from(marker)) < buf_len(&b);
}

int count_marked(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int n = 0;

	must(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		     strtol(e->d_name, NULL, 10) != getpid() && has_marker(e->d_name);
	closedir(dir);
	return n;
}

int count_dirs(void)
{
	DIR *dir = opendir(runtime);
	struct dirent *e;
	int n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

bool becomes(int (*count)(void), int n)
{
	for (int i = 0; i < 2000; i++) {
		if (count() == n)
			return true;
		pause_ms(10);
	}
	return false;
}

bool becomes_zero(int (*count)(void))
{
	return becomes(count, 0);
}

void wait_for_word(const struct job *j)
{
	for (int i = 0; i < 6000 && !(j->taken.spoke && j->began); i++)
		pause_ms(10);
	check(j->taken.spoke);
	check(j->began);
}

void run_beside(struct job *j, void *(*other)(void *))
{
	pthread_t thread;

	job_start(j);
	must(pthread_create(&thread, NULL, other, j) == 0);
	job_exec(j);
	pthread_join(thread, NULL);
	check_int(client_finish(j->client, &j->ended, NULL), 0);
}

static void copy_program(const char *build, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(64 << 20);
	char from[512], to[256];

	snprintf(from, sizeof(from), "%s/bin/%s/%s", build, name, name);
	snprintf(to, sizeof(to), "%s/%s", base, name);
	/* Of this build, or else what is shipped. */
	if (access(from, X_OK) < 0)
		snprintf(from, sizeof(from), "%s/build/bin/%s", SOURCE_DIR, name);
	if (fd_read_file(AT_FDCWD, from, &b, NULL) < 0) {
		printf("1..0 # SKIP %s has not been built\n", from);
		exit(0);
	}
	must(fs_write_atomic(AT_FDCWD, to, buf_str(&b), 0755, false, NULL) == 0);
	must(chmod(to, 0755) == 0);
}

#ifdef CLOCHE_HAS_JOBS
static int test_job(void *user, cloche_err *err)
{
	void (*const *test)(void) = user;

	(*test)();
	return 0;
}

/* Run a test inside of a job, so that the functions under test give way where they wait. */
static void run_in_job(void (*test)(void))
{
	cloche_job *job = NULL;

	must(cloche_job_start(test_job, &test, &job, NULL) == 0);
	while (cloche_job_dispatch(job, NULL) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		must(poll(&p, 1, -1) == 1);
	}
	cloche_job_free(job);
}
#else
static void (*const run_in_job)(void (*test)(void)) = NULL;
#endif

void set_up(void)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	must(n > 0);
	self[n] = '\0';
	slash = strrchr(self, '/');
	*slash = '\0';
	if (getenv("CLOCHE_TEST_IN_JOB"))
		tap_around = run_in_job;
	tap_dir(base);
	must(chmod(base, 0755) == 0);
	copy_program(self, "cloche-supervisor");
	copy_program(self, "cloche-init");
	copy_program(self, "cloche-forward");
	copy_program(self, "cloche-gateway");
	copy_program(self, "cloche-broker");
	copy_program(self, "cloche-recorder");
	setenv("CLOCHE_LIBEXEC", base, 1);
}

void set_runtime(const char *who)
{
	snprintf(runtime, sizeof(runtime), "%s-run-%s", base, who);
	setenv("CLOCHE_RUNTIME_DIR", runtime, 1);
	rand_id(marker, 20);
	snprintf(group_prefix, sizeof(group_prefix), "cloche-sandbox-%.8s", marker);
}

static int run_all(void (*list)(void))
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (native_provider.probe(&native_provider, &(struct provider_about){0}, &err) < 0) {
		printf("1..0 # SKIP no rooms here: %s\n", err.message);
		return 0;
	}
	list();
	return 0;
}

static void (*whole_list)(void);

/* The same once more as somebody without privileges, in fewer rounds; its lines become comments of
 * one test. */
static void as_an_ordinary_user(void)
{
	char line[512], usual[TAP_DIR_BYTES];
	int fds[2], status;
	FILE *lines;
	pid_t pid;

	must(fd_pipe(fds) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		must(dup2(fds[1], 1) == 1);
		must(setgroups(0, NULL) == 0);
		must(setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) == 0);
		must(setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) == 0);
		/* Changing user made us undumpable, and our own /proc root's. */
		prctl(PR_SET_DUMPABLE, 1);
		tap_count = tap_failed = 0;
		set_runtime("user");
		must(setenv("CLOCHE_TEST_PART", "4", false) == 0);
		tap_dir(usual);
		must(setenv("XDG_RUNTIME_DIR", usual, 1) == 0 && setenv("HOME", usual, 1) == 0 &&
			unsetenv("XDG_STATE_HOME") == 0);
		run_all(whole_list);
		fs_remove_tree(AT_FDCWD, usual);
		exit(tap_done());
	}
	close(fds[1]);
	lines = fdopen(fds[0], "r");
	must(lines);
	while (fgets(line, sizeof(line), lines))
		printf("# user: %s", line);
	fclose(lines);
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	set_runtime("user");
	fs_remove_tree(AT_FDCWD, runtime);
}

int run_everything(void (*list)(void))
{
	whole_list = list;
	setvbuf(stdout, NULL, _IONBF, 0);
	set_up();
	set_runtime("self");
	run_all(list);
	fs_remove_tree(AT_FDCWD, runtime);
	/* A job gives way in the same places, whoever runs it. */
	if (geteuid() == 0 && !getenv("CLOCHE_TEST_IN_JOB"))
		run_test(as_an_ordinary_user);
	fs_remove_tree(AT_FDCWD, base);
	return tap_done();
}
