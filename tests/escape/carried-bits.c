/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: leave a set-uid file by a mode that the kernel carries: that of a message queue, copied up
 *    from the file system of the queues by an overlay of one's own
 * Wall: seccomp: no call takes a mode with these bits where files stay, mq_open neither
 * Behind it: the same, for whoever can mount the queues and the overlay */
#include "attempt.h"

#include <linux/landlock.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	MAY_WRITE = LANDLOCK_ACCESS_FS_WRITE_FILE,
	TRUNCATE = 1 << 14 /* newer than some headers */
};

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void become_root_of_own(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char text[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC) < 0) {
		printf("no namespace of its own: %s\n", strerror(errno));
		return;
	}
	put("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", uid);
	put("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", gid);
	put("/proc/self/gid_map", text);
}

/* An open that may write but not truncate: the file is copied up, its data is left out, and nothing
 * is written that would take the bits away again. */
static void copy_up(const char *path)
{
	const struct landlock_ruleset_attr rules = {.handled_access_fs = TRUNCATE | MAY_WRITE};
	struct landlock_path_beneath_attr all = {.allowed_access = MAY_WRITE};
	pid_t pid = fork();

	if (pid == 0) {
		int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
		int fd;

		all.parent_fd = open("/", O_PATH | O_CLOEXEC);
		syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &all, 0);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		syscall(SYS_landlock_restrict_self, set, 0);
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		_exit(fd < 0 ? 0 : 1);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	static const unsigned modes[] = {06777, 04755, 02755, 0100000 | 04777};
	static const char *const dirs[] = {
		"/tmp/queues", "/tmp/merged", "/workspace/u", "/workspace/w"};
	char name[32], path[64];
	struct stat st;

	umask(0);
	become_root_of_own();
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		mkdir(dirs[i], 0777);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		snprintf(name, sizeof(name), "/queue-%zu", i);
		refused(name, mq_open(name, O_CREAT | O_RDWR, modes[i], NULL));
	}
	/* Landlock knows no queues; if it is off a plain one is had, and shows that the rest
	 * below works. */
	if (mq_open("/plain", O_CREAT | O_RDWR, 0600, NULL) < 0 && getenv("NESTED"))
		return BROKEN;
	if (mount("queues", dirs[0], "mqueue", 0, NULL) < 0 ||
		mount("merged", dirs[1], "overlay", 0,
			"lowerdir=/tmp/queues,upperdir=/workspace/u,workdir=/workspace/"
			"w,userxattr") < 0) {
		printf("no overlay: %s\n", strerror(errno));
		return verdict();
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		snprintf(path, sizeof(path), "/tmp/merged/queue-%zu", i);
		copy_up(path);
		snprintf(path, sizeof(path), "/workspace/u/queue-%zu", i);
		if (stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
			escaped(path);
	}
	copy_up("/tmp/merged/plain");
	if (stat("/workspace/u/plain", &st) < 0) {
		printf("the overlay copies nothing up\n");
		return BROKEN;
	}
	return verdict();
}
