/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: this does from outside what init/tree.c does from inside. Outside, no
 * identity that a process of the room has taken on keeps us from ending it. What belongs to a
 * process is everything in its session, and everything whose line of living parents ends there. A
 * process is identified by its pid in the room: the second number of NSpid if the room has a pid
 * namespace, which lies directly below ours. Without one it is the process's own pid, and a kernel
 * that has no such lines ends everything but what began sessions of its own and lost its parent. */
#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/pids.h"
#include "base/program.h"
#include "jail/sys.h"
#include "room/proctree.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A process may be in 65,536 groups, which its status lists. */
enum { STATUS_MAX_BYTES = 1 << 20, ROUNDS = 50, ROUND_NSEC = 500000 };

struct search {
	pid_t root, leader; /* leader: its pid in the room; -1: everything below root is searched */
	bool namespaced;    /* root is process 1 of a pid namespace */
	bool stopping;      /* what is found is stopped */
	bool moving;        /* in this look, something has not stopped */
	struct pids members;
	uint64_t *begun; /* when each member began; 0: unknown, or not to be signalled */
	size_t begun_room;
};

struct names {
	int parent, pid, session; /* the parent as we see it; the others as the room sees them */
};

/* Read the number at that place (0 or 1) of a line. The name of a process comes first in the file;
 * a line break in it is written as two characters. */
static bool search_read_line(const char *text, const char *key, int place, int *ret)
{
	const char *at = strstr(text, key);
	int numbers[2];

	if (!at || sscanf(at + strlen(key), "%d %d", &numbers[0], &numbers[1]) <= place)
		return false;
	*ret = numbers[place];
	return true;
}

static bool search_read_names(const struct search *s, pid_t pid, int dir, struct names *ret)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(STATUS_MAX_BYTES);

	*ret = (struct names){.pid = pid};
	if (fd_read_file(dir, "status", &text, NULL) < 0 || !buf_cstr(&text) ||
		!search_read_line(buf_data(&text), "\nPPid:", 0, &ret->parent))
		return false;
	if (s->namespaced)
		return search_read_line(buf_data(&text), "\nNSpid:", 1, &ret->pid) &&
		       search_read_line(buf_data(&text), "\nNSsid:", 1, &ret->session);
	(void)search_read_line(buf_data(&text), "\nNSsid:", 0, &ret->session);
	return true;
}

/* Return whether a process, whose folder is dir, belongs to the search. */
static bool search_is_member(const struct search *s, pid_t pid, int dir)
{
	struct names names;

	return pid != s->root && search_read_names(s, pid, dir, &names) &&
	       (names.pid == s->leader || names.session == s->leader ||
		       pids_has(&s->members, names.parent));
}

/* Add a process that belongs to the search, and stop it if that is wanted. The process's descriptor
 * is opened before it is examined, so that a pid that is reused meanwhile never leads to another
 * process. Return false if there is no memory. */
static bool search_add(struct search *s, pid_t pid, int dir)
{
	_cleanup_fd_ int pidfd = sys_pidfd_open(pid);
	uint64_t *begun;

	if (pidfd < 0 || !search_is_member(s, pid, dir))
		return true;
	begun = array_room(s->begun, s->members.n, &s->begun_room, sizeof(*begun));
	if (!begun)
		return false;
	s->begun = begun;
	begun[s->members.n] = program_start_time(pid);
	return sys_pidfd_send_signal(pidfd, s->stopping ? SIGSTOP : 0) < 0 ||
	       pids_add(&s->members, pid);
}

/* Signal a member that was found, wherever it belongs by now: its parent may have ended since, and
 * what was stopped would stay for ever. */
static bool search_signal(const struct search *s, size_t i, int sig)
{
	_cleanup_fd_ int pidfd = s->begun[i] ? sys_pidfd_open(s->members.all[i]) : -1;

	return pidfd >= 0 && program_start_time(s->members.all[i]) == s->begun[i] &&
	       sys_pidfd_send_signal(pidfd, sig) == 0;
}

static bool search_has_stopped(int dir)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(STATUS_MAX_BYTES);
	const char *state = fd_read_file(dir, "status", &text, NULL) == 0 && buf_cstr(&text)
				    ? strstr(buf_data(&text), "\nState:\t")
				    : NULL;

	return !state || strchr("TtZX", state[strlen("\nState:\t")]);
}

static bool search_visit(void *user, pid_t pid, int dir)
{
	struct search *s = user;

	if (pids_has(&s->members, pid)) {
		s->moving |= s->stopping && pid != s->root && !search_has_stopped(dir);
		return true;
	}
	return search_add(s, pid, dir);
}

/* Find the members, signal them, and free them. Return whether there was one to signal. */
static bool search_end(struct search *s, int sig)
{
	const struct timespec moment = {.tv_nsec = ROUND_NSEC};
	bool sent = false, still = !s->stopping;
	size_t before;

	/* Before a kill all are stopped, so that none loses its parent or gets a child before all
	 * are found. The last look is one that begins when all have stopped (init/tree.c). */
	for (int i = 0; i < ROUNDS; i++) {
		before = s->members.n;
		s->moving = false;
		proctree_each(s->root, search_visit, s);
		if (s->members.n == before && still)
			break;
		still = !s->stopping || (s->members.n == before && !s->moving);
		if (!still)
			(void)nanosleep(&moment, NULL);
	}
	/* Children before their parents, for the same reason. */
	for (size_t i = s->members.n; i-- > 0;)
		sent |= search_signal(s, i, sig);
	pids_done(&s->members);
	free(s->begun);
	return sent;
}

bool proctree_kill(pid_t root, bool namespaced, pid_t leader)
{
	struct search s = {
		.root = root, .leader = leader, .namespaced = namespaced, .stopping = true};

	return search_end(&s, SIGKILL);
}

bool proctree_signal_below(pid_t root, int sig)
{
	struct search s = {.root = root, .leader = -1, .stopping = sig == SIGKILL};

	s.begun = array_room(NULL, 0, &s.begun_room, sizeof(*s.begun));
	if (!s.begun || !pids_add(&s.members, root)) {
		free(s.begun);
		return false;
	}
	s.begun[0] = 0;
	return search_end(&s, sig);
}

/* The descriptor is opened before the namespace is examined, so that a pid that is reused meanwhile
 * never leads to a process outside of the room. */
void proctree_signal_namespace(pid_t init, int sig)
{
	char path[64];
	struct stat room, st;
	struct dirent *e;
	DIR *proc;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", init);
	proc = stat(path, &room) == 0 ? opendir("/proc") : NULL;
	while (proc && (e = readdir(proc))) {
		_cleanup_fd_ int pidfd = -1;
		uint64_t pid;

		if (parse_u64(str_from(e->d_name), INT32_MAX, &pid) < 0)
			continue;
		pidfd = sys_pidfd_open((pid_t)pid);
		snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
		if (pidfd >= 0 && stat(path, &st) == 0 && st.st_dev == room.st_dev &&
			st.st_ino == room.st_ino)
			(void)sys_pidfd_send_signal(pidfd, sig);
	}
	if (proc)
		closedir(proc);
}
