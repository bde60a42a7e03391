/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a double of systemd's manager, for tests, on a real message bus. It does by
 * hand what systemd does for a transient scope: makes a group, gives it to who asked, marks it as
 * delegated, moves the processes there, reports the job, and removes the group when its last
 * process is gone. Its one argument says how it behaves:
 *   works    as above
 *   refuses  answers with an error
 *   silent   makes everything and never reports the job
 *   lies     reports the job and makes nothing
 *   keeps    makes everything, but does not give the group away
 * Runs as root; the groups are below SLICE. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define SLICE "/sys/fs/cgroup/double.slice"
enum { TICK_USEC = 20000 };

static const char *behaviour;

static bool behaves(const char *word)
{
	return strcmp(behaviour, word) == 0;
}

static int write_to(const char *dir, const char *file, const char *text)
{
	char path[1024];
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	r = fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static void give_away(const char *dir, uid_t uid)
{
	static const char *const files[] = {
		".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"};
	char path[1024];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		if (chown(path, uid, (gid_t)-1) < 0)
			perror(path);
	}
	if (setxattr(dir, "user.delegate", "1", 1, 0) < 0)
		perror("user.delegate");
}

/* The properties that it minds: PIDs and Delegate. */
static int read_properties(sd_bus_message *m, uint32_t *ret_pid, bool *ret_delegate)
{
	const char *name, *types;
	int r = sd_bus_message_enter_container(m, 'a', "(sv)");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0)
			r = sd_bus_message_peek_type(m, NULL, &types);
		if (r >= 0 && strcmp(name, "PIDs") == 0)
			r = sd_bus_message_read(m, "v", "au", 1, ret_pid);
		else if (r >= 0 && strcmp(name, "Delegate") == 0) {
			int yes = 0;

			r = sd_bus_message_read(m, "v", "b", &yes);
			*ret_delegate = yes;
		} else if (r >= 0)
			r = sd_bus_message_skip(m, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int make_scope(sd_bus_message *m, const char *unit)
{
	sd_bus_creds *creds = NULL;
	bool delegate = false;
	uint32_t pid = 0;
	char dir[512], text[32];
	uid_t uid = 0;
	int r = read_properties(m, &pid, &delegate);

	if (r >= 0)
		r = sd_bus_query_sender_creds(m, SD_BUS_CREDS_EUID, &creds);
	if (r >= 0)
		r = sd_bus_creds_get_euid(creds, &uid);
	sd_bus_creds_unref(creds);
	if (r < 0)
		return r;
	snprintf(dir, sizeof(dir), SLICE "/%s", unit);
	snprintf(text, sizeof(text), "%u", pid);
	if (mkdir(dir, 0755) < 0)
		return -1;
	if (delegate && !behaves("keeps"))
		give_away(dir, uid);
	return write_to(dir, "cgroup.procs", text);
}

static int on_start(sd_bus_message *m, void *user, sd_bus_error *error)
{
	const char *unit, *mode, *job = "/org/freedesktop/systemd1/job/1";
	int r = sd_bus_message_read(m, "ss", &unit, &mode);

	if (r < 0)
		return r;
	if (behaves("refuses"))
		return sd_bus_error_set(
			error, "org.freedesktop.DBus.Error.AccessDenied", "this double refuses");
	if (!behaves("lies") && make_scope(m, unit) < 0)
		return sd_bus_error_set(
			error, "org.freedesktop.DBus.Error.Failed", "cannot make the scope");
	r = sd_bus_reply_method_return(m, "o", job);
	if (r < 0 || behaves("silent"))
		return r;
	return sd_bus_emit_signal(sd_bus_message_get_bus(m), "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", 1, job, unit, "done");
}

static int on_stop(sd_bus_message *m, void *user, sd_bus_error *error)
{
	const char *unit, *mode;
	char dir[512];
	int r = sd_bus_message_read(m, "ss", &unit, &mode);

	if (r < 0)
		return r;
	snprintf(dir, sizeof(dir), SLICE "/%s", unit);
	if (access(dir, F_OK) < 0)
		return sd_bus_error_set(
			error, "org.freedesktop.systemd1.NoSuchUnit", "no such unit");
	write_to(dir, "cgroup.kill", "1");
	return sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/2");
}

static int on_subscribe(sd_bus_message *m, void *user, sd_bus_error *error)
{
	return sd_bus_reply_method_return(m, "");
}

static const sd_bus_vtable methods[] = {SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Subscribe", "", "", on_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", on_start,
		SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("StopUnit", "ss", "o", on_stop, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_SIGNAL("JobRemoved", "uoss", 0), SD_BUS_VTABLE_END};

static bool is_empty(const char *dir)
{
	char path[1024], text[256] = "";
	int fd;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/cgroup.events", dir) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	return n > 0 && strstr(text, "populated 0");
}

/* Groups hold only files of the kernel's and groups. */
static void remove_group(const char *dir)
{
	DIR *list = opendir(dir);
	struct dirent *e;
	char path[1024];

	while (list && (e = readdir(list)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
			remove_group(path);
	if (list)
		closedir(list);
	rmdir(dir);
}

static void remove_empty_scopes(void)
{
	DIR *list = opendir(SLICE);
	struct dirent *e;
	char path[1024];

	while (list && (e = readdir(list)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
			snprintf(path, sizeof(path), SLICE "/%s", e->d_name) < (int)sizeof(path) &&
			is_empty(path))
			remove_group(path);
	if (list)
		closedir(list);
}

int main(int argc, char **argv)
{
	sd_bus *bus = NULL;
	int r;

	behaviour = argc == 2 ? argv[1] : "works";
	if (mkdir(SLICE, 0755) == 0)
		write_to(SLICE, "cgroup.subtree_control", "+memory +pids +cpu +io");
	r = sd_bus_open_user(&bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
			"org.freedesktop.systemd1.Manager", methods, NULL);
	if (r >= 0)
		r = sd_bus_request_name(bus, "org.freedesktop.systemd1", 0);
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, TICK_USEC);
		remove_empty_scopes();
	}
	fprintf(stderr, "systemd-double: %s\n", strerror(-r));
	return 1;
}
