/* SPDX-License-Identifier: Apache-2.0 */
#include "api/instance/test-conn.h"

#include <sys/un.h>

char id[RUNDIR_ID_BYTES + 1];
int sandboxes = -1;
bool for_one_command; /* begin() makes one that ends with its first process */

void send_all(struct conn *c)
{
	must(chan_flush_wait(&c->chan, PATIENCE_MS) == 0);
}

struct chan_frame next(struct conn *c, uint16_t type)
{
	struct chan_frame f = {0};
	int r = chan_recv_wait(&c->chan, &f, PATIENCE_MS);

	if (r != 1) {
		tap_fail("no frame %u came: %s", type, strerror(-r));
		return (struct chan_frame){0};
	}
	if (f.type == CTL_WARNING && type != CTL_WARNING) {
		chan_frame_done(&f);
		return next(c, type);
	}
	if (f.type != type) {
		struct cloche_err e = CLOCHE_ERR_INIT;

		if (f.type == CTL_ERROR)
			ctl_get_error(f.payload, &e);
		tap_fail("frame %u came, not %u %s", f.type, type, e.message);
	}
	return f;
}

void drop_conn(struct conn *c)
{
	chan_done(&c->chan);
}

static void start_program(int theirs)
{
	const char *const argv[] = {"cloche-supervisor", "--detached", NULL};
	char path[200];
	const struct program_fd fds[] = {{theirs, CTL_FD}};
	const struct program_spawn spawn = {
		.path = path, .argv = argv, .fds = fds, .fds_n = 1, .stdio = {-1, -1, 2}};
	pid_t pid;

	snprintf(path, sizeof(path), "%s/cloche-supervisor", base);
	must(program_start(&spawn, &pid, NULL, NULL) == 0);
	must(waitpid(pid, NULL, 0) == pid);
}

struct conn begin(const char *name, uint64_t log_bytes)
{
	_cleanup_(buf_donep) struct buf room = BUF_INIT(CTL_MAX_ROOM);
	struct wire_out w = wire_out(&room);
	struct room_spec spec;
	char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", mine[] = "OF=sandbox", cwd[] = "/tmp";
	char *env[] = {path, mine, NULL}, config[] = "{\"made\":\"by test\"}";
	char label[] = "k=v\"\\", *labels[] = {label, NULL};
	char *copy = name ? strdup(name) : NULL;
	struct ctl_start m = {.version = CTL_VERSION,
		.detached = true,
		.kept = true,
		.one_shot = for_one_command,
		.id = id,
		.name = copy,
		.labels = labels,
		.env = env,
		.cwd = cwd,
		.config = config,
		.grace_usec = 2 * USEC_PER_SEC,
		.log_bytes = log_bytes};
	struct conn c = {0};
	int pair[2];

	rundir_make_id(id);
	room_spec_init(&spec);
	room_spec_put(&w, &spec);
	room_spec_done(&spec);
	m.room = buf_str(&room);
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	start_program(pair[1]);
	close(pair[1]);
	must(chan_init(&c.chan, pair[0], CTL_MAX_PAYLOAD, 2 * CTL_MAX_PAYLOAD) == 0);
	must(ctl_send_start(&c.chan, &m, NULL) == 0);
	send_all(&c);
	free(copy);
	if (sandboxes < 0)
		sandboxes = rundir_open(NULL);
	must(sandboxes >= 0);
	return c;
}

struct conn create_with(const char *name, uint64_t log_bytes)
{
	struct conn c = begin(name, log_bytes);
	struct chan_frame f = next(&c, CTL_STARTED);

	chan_frame_done(&f);
	return c;
}

struct conn create(void)
{
	return create_with(NULL, 0);
}

int connect_to(const char *which)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s/" RUNDIR_SOCKET,
		sandboxes, which);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return fd;
}

struct conn attach_to(const char *which)
{
	struct conn c = {0};
	struct chan_frame f;
	char path[256], word[RUNDIR_WORD_BYTES + 1];
	int dir;

	must(chan_init(&c.chan, connect_to(which), CTL_MAX_PAYLOAD, 2 * CTL_MAX_PAYLOAD) == 0);
	must(snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", sandboxes, which) > 0);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0 && rundir_word_read(dir, word) == 0);
	close(dir);
	must(ctl_send_attach(&c.chan, &(struct ctl_attach){CTL_VERSION, str_from(word)}) == 0);
	f = next(&c, CTL_STARTED);
	chan_frame_done(&f);
	return c;
}

void ask(struct conn *c, struct running *r, const char *script, unsigned pipes, uint8_t flags,
	bool tty, uint64_t timeout)
{
	char sh[] = "sh", minus_c[] = "-c", *text = strdup(script),
	     *argv[] = {sh, minus_c, text, marker, NULL};
	char mine[] = "OF=exec", *env[] = {mine, NULL};
	struct ctl_exec m = {.exec = ++c->last, .flags = (uint8_t)(flags | CTL_EXEC_INHERIT)};
	int fds[3] = {-1, -1, -1};

	exec_spec_init(&m.spec);
	must(exec_spec_set(&m.spec, argv, env, NULL, NULL) == 0);
	m.spec.tty = tty;
	m.spec.timeout_usec = timeout;
	*r = (struct running){.exec = c->last, .out = {-1, -1}, .fd = -1};
	for (int i = 1; i < 3; i++) {
		int pair[2];

		if (!(pipes & 1U << i))
			continue;
		must(fd_pipe(pair) == 0);
		m.stdio[i] = CTL_STDIO_FD;
		fds[i] = pair[1];
		r->out[i - 1] = pair[0];
	}
	must(ctl_send_exec(&c->chan, &m, fds) == 0);
	send_all(c);
	fd_close(fds[1]);
	fd_close(fds[2]);
	exec_spec_done(&m.spec);
	free(text);
}

void is_started(struct conn *c, struct running *r)
{
	struct chan_frame f = next(c, CTL_EXEC_STARTED);
	struct ctl_exec_started m = {0};

	check(ctl_get_exec_started(f.payload, &m));
	check_int(m.exec, r->exec);
	r->number = m.number;
	if (f.fds_n == 1)
		r->fd = TAKE_FD(f.fds[0]);
	chan_frame_done(&f);
}

struct ctl_exec_exited has_exited(struct conn *c, const struct running *r)
{
	struct chan_frame f = next(c, CTL_EXEC_EXITED);
	struct ctl_exec_exited m = {0};

	check(ctl_get_exec_exited(f.payload, &m));
	check_int(m.exec, r->exec);
	return m;
}

void run_done(struct running *r)
{
	r->out[0] = fd_close(r->out[0]);
	r->out[1] = fd_close(r->out[1]);
	r->fd = fd_close(r->fd);
}

struct ctl_exec_exited run(struct conn *c, const char *script)
{
	struct running r;
	struct ctl_exec_exited m;

	ask(c, &r, script, 0, 0, false, 0);
	is_started(c, &r);
	m = has_exited(c, &r);
	run_done(&r);
	return m;
}

struct ctl_exec_exited join(struct conn *c, uint32_t number)
{
	struct running r = {.exec = ++c->last, .fd = -1, .out = {-1, -1}};
	struct ctl_exec_exited m;

	must(ctl_send_join(&c->chan, &(struct ctl_join){r.exec, number}) == 0);
	is_started(c, &r);
	m = has_exited(c, &r);
	run_done(&r);
	return m;
}

void stop_it(struct conn *c)
{
	struct chan_frame f;
	int r;

	must(ctl_send_stop(&c->chan, &(struct ctl_stop){.grace_usec = USEC_PER_SEC}) == 0);
	for (;;) {
		r = chan_recv_wait(&c->chan, &f, PATIENCE_MS);
		if (r != 1) {
			tap_fail("no ENDED came: %s", strerror(-r));
			break;
		}
		chan_frame_done(&f);
		if (f.type == CTL_ENDED)
			break;
	}
	drop_conn(c);
}

void remove_it(struct conn *c)
{
	stop_it(c);
	check_int(sandbox_remove(sandboxes, id, NULL), 0);
}

int open_exec_dir(uint32_t number)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/exec/%u", id, number);
	return openat(sandboxes, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void read_log(uint32_t number, int stream, struct buf *ret)
{
	struct execlog_reader r;
	_cleanup_fd_ int dir = open_exec_dir(number);
	uint64_t offset = 0;
	char chunk[70000];
	int64_t n;
	int which;

	must(dir >= 0);
	must(execlog_reader_open(&r, dir, NULL) == 0);
	while ((n = execlog_read(&r, &offset, chunk, sizeof(chunk), &which)) > 0) {
		offset += (uint64_t)n;
		if (stream == 0 || which == stream)
			must(buf_add(ret, chunk, (size_t)n) == 0);
	}
	check_int(n, 0);
	execlog_reader_done(&r);
}

void wait_for_log(uint32_t number, int stream, size_t n)
{
	size_t found = 0;

	for (int i = 0; i < 3000 && found < n; i++) {
		struct buf log = BUF_INIT(64 << 20);

		read_log(number, stream, &log);
		found = buf_len(&log);
		buf_done(&log);
		if (found < n)
			pause_ms(10);
	}
	check(found >= n);
}

void check_end_of(int fd, const char *want)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(64 << 20);

	must(fd_read_to_end(fd, &b) == 0);
	check_str(buf_str(&b), want);
}

enum sandbox_life life_of(const char *which)
{
	struct sandbox_entry e;
	enum sandbox_life life;

	if (sandbox_open(sandboxes, which, &e, NULL) < 0)
		return (enum sandbox_life) - 1;
	life = e.life;
	sandbox_entry_done(&e);
	return life;
}

bool record_has(const char *what)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	struct sandbox_entry e;
	bool has = false;

	if (sandbox_open(sandboxes, id, &e, NULL) == 0 && sandbox_read_record(&e, &b, NULL) == 0)
		has = str_find(buf_str(&b), str_from(what)) < buf_len(&b);
	sandbox_entry_done(&e);
	return has;
}
