/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths at bad moments: nothing is left, and nobody waits for ever. */
#include "client/test-job.h"
#include "seeded.h"
#include "tap.h"

/* --- violence --- */

static void kill_of_the_supervisor(void)
{
	struct job j;

	job_init(&j, "sleep 60 & sleep 60");
	j.long_lived = true;
	job_start(&j);
	check_int(client_wait_started(j.client, &j.err), 0);
	kill(j.client->pid, SIGKILL);
	job_exec(&j);
	check(j.code < 0);
	check(strstr(j.err.message, "supervisor"));
	job_done(&j);
	check(becomes_zero(count_marked));
}

/* The one child of a process, or 0. */
static pid_t child_of(pid_t pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (fd_read_file(AT_FDCWD, path, &b, NULL) < 0 || !buf_cstr(&b))
		return 0;
	return (pid_t)strtol(buf_data(&b), NULL, 10);
}

static void *kill_init_soon(void *arg)
{
	struct job *j = arg;
	pid_t init;

	wait_for_word(j);
	init = child_of(j->client->pid);
	must(init > 1);
	kill(init, SIGKILL);
	return NULL;
}

static void kill_of_init(void)
{
	struct job j;

	job_init(&j, "echo up; sleep 60");
	run_beside(&j, kill_init_soon);
	check_int(j.code, 0);
	check(j.result.end.signaled);
	check_int(j.result.end.status, SIGKILL);
	check_out(j, 1, "up\n");
	check_int(j.ended.reason, CTL_REASON_INIT_DIED);
	job_done(&j);
}

static void the_room_cannot_end_init(void)
{
	struct job j;

	job_init(&j, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -HUP 1; ls -l /proc/1/exe 2>&1 | "
		     "grep -c 'denied'; exit 8");
	job_run(&j);
	check_int(j.code, 0);
	check_int(j.result.end.status, 8);
	check_out(j, 1, "1\n");
	job_done(&j);
}

enum victim { VICTIM_CLIENT, VICTIM_SUPERVISOR, VICTIM_INIT, VICTIMS };

/* In a child of its own: a client whose supervisor, init or self is killed at some moment. */
static void _noreturn_ be_killed(enum victim victim, long after_usec)
{
	const struct timespec moment = {.tv_nsec = after_usec * 1000};
	char id[RUNDIR_ID_BYTES + 1];
	struct job j;
	pid_t target;

	job_init(&j, "(sleep 60 &) ; setsid sleep 60 & sleep 60");
	j.room.limits =
		(struct room_limits){.memory_bytes = 256 << 20, .pids = 100, .best_effort = true};
	/* An id whose control group can be told from everybody else's. */
	rundir_make_id(id);
	memcpy(id, group_prefix + strlen("cloche-"), strlen(group_prefix) - strlen("cloche-"));
	j.room.id = strdup(id);
	job_start(&j);
	target = victim == VICTIM_CLIENT ? getpid() : j.client->pid;
	if (fork() == 0) {
		nanosleep(&moment, NULL);
		if (victim == VICTIM_INIT)
			target = child_of(target);
		if (target > 1)
			kill(target, SIGKILL);
		_exit(0);
	}
	if (victim == VICTIM_INIT)
		j.spec.timeout_usec = 300 * USEC_PER_MSEC; /* the moment may come before init */
	job_exec(&j);
	_exit(0);
}

static int count_groups_below(const char *path, int depth)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir))) {
		_cleanup_(freep) char *sub = NULL;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		n += str_starts(str_from(e->d_name), str_from(group_prefix));
		sub = fs_join(path, e->d_name);
		if (sub && depth > 0)
			n += count_groups_below(sub, depth - 1);
	}
	if (dir)
		closedir(dir);
	return n;
}

static int count_groups(void)
{
	return count_groups_below("/sys/fs/cgroup", 4);
}

static void nothing_is_left_after_violence(void)
{
	struct job j;

	for (unsigned i = tap_rounds(50); i > 0; i--) {
		pid_t pid = fork();

		if (pid == 0)
			be_killed((enum victim)(i % VICTIMS), (long)rand_below(15000));
		must(pid > 0);
		must(waitpid(pid, NULL, 0) == pid);
	}
	check(becomes_zero(count_marked));
	/* Whoever starts next cleans up what crashes left. */
	job_init(&j, "true");
	job_run(&j);
	check_int(j.code, 0);
	job_done(&j);
	check(becomes_zero(count_dirs));
	check(becomes_zero(count_groups));
}

static void a_living_sandbox_is_left_alone(void)
{
	struct job a, b;

	job_init(&a, "echo still here");
	a.long_lived = true;
	job_start(&a);
	check_int(client_wait_started(a.client, &a.err), 0);
	for (int i = 0; i < 3; i++) {
		job_init(&b, "true");
		job_run(&b);
		job_done(&b);
	}
	check(becomes(count_dirs, 1));
	job_exec(&a);
	check_out(a, 1, "still here\n");
	check_int(client_stop(a.client, 0), 0);
	check_int(client_finish(a.client, &a.ended, NULL), 0);
	job_done(&a);
	check(becomes_zero(count_dirs));
}

static void closed_standard_descriptors(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct job j;
		bool ok;

		close(0);
		close(1);
		close(2);
		job_init(&j, "cat; echo out; echo err >&2; exit 3");
		j.io.input = CLIENT_INPUT_BYTES;
		j.io.bytes = STR("in ");
		job_run(&j);
		ok = j.code == 0 && j.result.end.status == 3 &&
		     str_eq(buf_str(&j.taken.out[0]), STR("in out\n")) &&
		     str_eq(buf_str(&j.taken.out[1]), STR("err\n"));
		_exit(ok ? 0 : 1);
	}
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	must(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void nothing_leaks_here(void)
{
	int before = count_fds();

	for (int i = 0; i < 20; i++) {
		struct job j;

		job_init(&j, i % 2 ? "exit 0" : "cat");
		j.spec.tty = i % 4 == 0;
		job_run(&j);
		job_done(&j);
	}
	check_int(count_fds(), before);
}

/* --- gateway and broker --- */

/* The child of a process with that name, or 0. */
static pid_t child_named(pid_t pid, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[64], *at, *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (fd_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return 0;
	for (at = buf_cstr(&b); at; at = end) {
		_cleanup_(buf_donep) struct buf comm = BUF_INIT(64);
		long child = strtol(at, &end, 10);

		if (end == at)
			return 0;
		snprintf(path, sizeof(path), "/proc/%ld/comm", child);
		if (fd_read_file(AT_FDCWD, path, &comm, NULL) == 0 &&
			str_starts(buf_str(&comm), str_from(name)))
			return (pid_t)child;
	}
	return 0;
}

/* Dead, or a zombie that nobody has waited for yet. */
static bool is_gone(pid_t pid)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	char path[64], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_file(AT_FDCWD, path, &b, NULL) < 0)
		return true;
	at = buf_cstr(&b) ? strrchr(buf_data(&b), ')') : NULL;
	return at && at[1] == ' ' && at[2] == 'Z';
}

static bool goes_away(pid_t pid)
{
	for (int i = 0; i < 2000; i++) {
		if (is_gone(pid))
			return true;
		pause_ms(10);
	}
	return false;
}

struct network {
	struct job job;
	struct chan config;
	pid_t broker, gateway;
};

static void network_start(struct network *n, const char *script)
{
	struct client_start start = {.m = {.one_shot = true, .grace_usec = USEC_PER_SEC}};
	struct chan_frame f;
	int config;

	job_init(&n->job, script);
	n->job.room.net = ROOM_NET_GATEWAY;
	start.room = &n->job.room;
	must(client_new(&start, &n->job.client, &config, &n->job.err) == 0);
	must(chan_init(&n->config, config, NETCONF_MAX_PAYLOAD, NETCONF_MAX_PAYLOAD) == 0);
	must(chan_send(&n->config, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(client_wait_started(n->job.client, &n->job.err) == 0);
	must(chan_recv_wait(&n->config, &f, 30000) == 1);
	check_int(f.type, NETCONF_OK);
	n->broker = child_named(n->job.client->pid, "cloche-broker");
	n->gateway = 0;
	/* The start does not wait for it. */
	for (int i = 0; i < 2000 && n->gateway <= 0; i++) {
		pause_ms(i ? 10 : 0);
		n->gateway = child_named(n->job.client->pid, "cloche-gateway");
	}
	must(n->broker > 0 && n->gateway > 0);
}

static void network_done(struct network *n)
{
	chan_done(&n->config);
	job_done(&n->job);
	check(goes_away(n->broker));
	check(goes_away(n->gateway));
}

static void a_network_comes_and_goes(void)
{
	struct network n;

	/* Nothing is allowed: the gateway itself answers. */
	network_start(&n,
		"grep -c BEGIN /run/cloche/ca.crt; "
		"exec 3<>/dev/tcp/192.0.2.1/80; printf 'GET / HTTP/1.1\\r\\nHost: a.test\\r\\n"
		"Connection: close\\r\\n\\r\\n' >&3; head -n 1 <&3");
	free(n.job.spec.argv[0]);
	n.job.spec.argv[0] = strdup("bash");
	job_exec(&n.job);
	check_int(n.job.code, 0);
	check_int(n.job.result.end.status, 0);
	check_out(n.job, 1, "1\nHTTP/1.1 403 Forbidden\r\n");
	check_out(n.job, 2, "");
	check_int(client_finish(n.job.client, &n.job.ended, NULL), 0);
	check_int(n.job.ended.reason, CTL_REASON_EXITED);
	network_done(&n);
}

static void *kill_soon(void *arg)
{
	pause_ms(200);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

/* No room with half a network. */
static void the_room_ends_with_its_network(void)
{
	for (int i = 0; i < 2; i++) {
		uint64_t start = clock_mono_usec();
		struct network n;
		pthread_t thread;

		network_start(&n, "sleep 60");
		must(pthread_create(&thread, NULL, kill_soon, i ? &n.broker : &n.gateway) == 0);
		job_exec(&n.job);
		pthread_join(thread, NULL);
		check_int(n.job.code, -E_NETWORK);
		check_int(client_finish(n.job.client, &n.job.ended, NULL), 0);
		check_int(n.job.ended.reason, CTL_REASON_FAILED);
		check(clock_mono_usec() - start < 40 * USEC_PER_SEC); /* before sleep ends */
		network_done(&n);
		check(becomes_zero(count_marked));
	}
}

static void the_network_ends_with_the_supervisor(void)
{
	struct network n;

	network_start(&n, "sleep 60");
	kill(n.job.client->pid, SIGKILL);
	job_exec(&n.job);
	check(n.job.code < 0);
	network_done(&n);
	check(becomes_zero(count_marked));
}

static void a_refused_configuration(void)
{
	struct client_start start = {.m = {.one_shot = true, .grace_usec = USEC_PER_SEC}};
	struct chan config;
	struct job j;
	int fd;

	job_init(&j, "sleep 60");
	j.room.net = ROOM_NET_GATEWAY;
	start.room = &j.room;
	must(client_new(&start, &j.client, &fd, &j.err) == 0);
	must(chan_init(&config, fd, NETCONF_MAX_PAYLOAD, NETCONF_MAX_PAYLOAD) == 0);
	must(netconf_send_allowlist(
		     &config, &(struct netconf_allowlist){STR("label"), STR("domains: [")}) == 0);
	must(chan_send(&config, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(chan_flush(&config) == 0);
	job_exec(&j);
	check(j.code < 0);
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_FAILED);
	chan_done(&config);
	job_done(&j);
	check(becomes_zero(count_marked));
}

static void run_list(void)
{
	run_test(kill_of_the_supervisor);
	run_test(kill_of_init);
	run_test(the_room_cannot_end_init);
	run_test(a_network_comes_and_goes);
	run_test(the_room_ends_with_its_network);
	run_test(the_network_ends_with_the_supervisor);
	run_test(a_refused_configuration);
	run_test(a_living_sandbox_is_left_alone);
	run_test(nothing_is_left_after_violence);
	run_test(closed_standard_descriptors);
	run_test(nothing_leaks_here);
}

int main(void)
{
	seeded_begin();
	return run_everything(run_list);
}
