/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-scope start UNIT PID: have systemd make a transient, delegated scope around process PID.
 * cloche-scope stop UNIT PID: have systemd end the scope (PID is not used).
 *
 * Theory of operation: root asks the system's manager, other users ask their own, over the message
 * bus or, if there is none, over the manager's private socket. The program prints "ok", or one line
 * with the reason for a failure, to standard output. It ends within seconds, whatever the other
 * side does. A scope contains no processes of systemd itself; it exists as long as one of the
 * processes that it was made around, or a descendant, does. */
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define DESTINATION "org.freedesktop.systemd1"
#define PATH "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"
enum { CALL_USEC = 2000000, ALARM_SECONDS = 4 };

struct waiting {
	const char *job; /* its object path */
	char result[64]; /* "done", "failed", ...; empty until known */
};

static int say(const char *what, const char *why)
{
	printf("%s%s%s\n", what, why ? ": " : "", why ? why : "");
	return why ? 1 : 0;
}

static int on_removed(sd_bus_message *m, void *user, sd_bus_error *error)
{
	struct waiting *w = user;
	const char *job, *unit, *result;
	uint32_t id;

	if (sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0)
		return 0;
	if (w->job && strcmp(job, w->job) == 0)
		snprintf(w->result, sizeof(w->result), "%s", result);
	return 0;
}

static int open_address(const char *address, sd_bus **ret)
{
	sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		sd_bus_unref(bus);
	else
		*ret = bus;
	return r;
}

/* The manager's own socket, for a system without a message bus. */
static int open_private(sd_bus **ret)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char address[256];

	if (geteuid() == 0)
		return open_address("unix:path=/run/systemd/private", ret);
	if (!dir || strpbrk(dir, ",;%"))
		return -ENOENT;
	if (snprintf(address, sizeof(address), "unix:path=%s/systemd/private", dir) >=
		(int)sizeof(address))
		return -ENAMETOOLONG;
	return open_address(address, ret);
}

/* In a session from su or cron the variable is not set, but the user may have a manager. */
static void assume_runtime_dir(void)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/run/user/%u", geteuid());
	if (!getenv("XDG_RUNTIME_DIR") && !getenv("DBUS_SESSION_BUS_ADDRESS") &&
		access(dir, W_OK) == 0)
		setenv("XDG_RUNTIME_DIR", dir, 1);
}

static int open_bus(sd_bus **ret)
{
	int r;

	assume_runtime_dir();
	r = geteuid() == 0 ? sd_bus_open_system(ret) : sd_bus_open_user(ret);
	if (r < 0 && open_private(ret) >= 0)
		r = 0;
	if (r >= 0)
		r = sd_bus_set_method_call_timeout(*ret, CALL_USEC);
	return r;
}

/* Failed units are removed too, because nothing would ask systemd for them later. */
static int ask_start(
	sd_bus *bus, const char *unit, uint32_t pid, sd_bus_message **ret, sd_bus_error *error)
{
	return sd_bus_call_method(bus, DESTINATION, PATH, MANAGER, "StartTransientUnit", error, ret,
		"ssa(sv)a(sa(sv))", unit, "fail", 4, "Description", "s", "A sandbox of cloche",
		"PIDs", "au", 1, pid, "Delegate", "b", 1, "CollectMode", "s", "inactive-or-failed",
		0);
}

static int wait_for_job(sd_bus *bus, struct waiting *w)
{
	while (!w->result[0]) {
		int r = sd_bus_process(bus, NULL);

		if (r == 0)
			r = sd_bus_wait(bus, CALL_USEC);
		if (r < 0)
			return r;
	}
	return 0;
}

static int start(sd_bus *bus, const char *unit, uint32_t pid)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	struct waiting w = {0};
	sd_bus_message *reply = NULL;
	int r = sd_bus_match_signal(
		bus, NULL, DESTINATION, PATH, MANAGER, "JobRemoved", on_removed, &w);

	if (r >= 0)
		r = sd_bus_call_method(
			bus, DESTINATION, PATH, MANAGER, "Subscribe", &error, NULL, "");
	if (r >= 0)
		r = ask_start(bus, unit, pid, &reply, &error);
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &w.job);
	if (r >= 0)
		r = wait_for_job(bus, &w);
	if (r < 0)
		return say(
			"cannot have a scope made", error.message ? error.message : strerror(-r));
	if (strcmp(w.result, "done") != 0)
		return say("the scope was not made", w.result);
	return say("ok", NULL);
}

static int stop(sd_bus *bus, const char *unit)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = sd_bus_call_method(
		bus, DESTINATION, PATH, MANAGER, "StopUnit", &error, NULL, "ss", unit, "replace");

	if (r < 0 && !sd_bus_error_has_name(&error, DESTINATION ".NoSuchUnit"))
		return say("cannot have the scope ended",
			error.message ? error.message : strerror(-r));
	return say("ok", NULL);
}

int main(int argc, char **argv)
{
	sd_bus *bus = NULL;
	uint64_t pid;
	int r;

	alarm(ALARM_SECONDS);
	if (argc != 4 || parse_u64(str_from(argv[3]), INT32_MAX, &pid) < 0) {
		fprintf(stderr, "cloche-scope: is started by cloche, not by hand\n");
		return 125;
	}
	r = open_bus(&bus);
	if (r < 0)
		return say(geteuid() == 0 ? "the system's bus does not answer"
					  : "the user's bus does not answer",
			strerror(-r));
	return strcmp(argv[1], "stop") == 0 ? stop(bus, argv[2])
					    : start(bus, argv[2], (uint32_t)pid);
}
