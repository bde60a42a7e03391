/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the doctor of this machine for a person elsewhere. It tries what a room
 * would do here, where rooms are made, and leaves nothing. */
#include "far/probe.h"
#include "base/fd.h"
#include "farside/fardir.h"
#include "farside/program.h"
#include "provider/native/native.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PATIENCE_SEC = 60 };

struct probe_found {
	struct provider_check checks[FAR_MAX_CHECKS];
	size_t n;
};

static void probe_keep(void *user, const struct provider_check *c)
{
	struct probe_found *found = user;

	if (found->n < FAR_MAX_CHECKS)
		found->checks[found->n++] = *c;
}

/* Here nobody has the options of a run, and what a room elsewhere lacks is another thing. */
static void probe_keep_native(void *user, const struct provider_check *c)
{
	static const struct {
		const char *name, *words, *remedy;
	} rows[] = {
		{"overlay", "--root DIR", "rooms of other places do not need it"},
		{"idmapped mounts", "--no-workspace",
			"~/.cache/cloche-far, where rooms are made, has to be on ext4, xfs, "
			"btrfs or tmpfs (in a container: on a volume); or use the account of an "
			"ordinary user"},
	};
	struct provider_check kept = *c;
	char *again = strstr(kept.remedy, "; then try cloche doctor");

	if (again)
		*again = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(c->name, rows[i].name) == 0 && strstr(c->remedy, rows[i].words))
			str_copy(kept.remedy, sizeof(kept.remedy), str_from(rows[i].remedy));
	probe_keep(user, &kept);
}

/* Where rooms are made; idmapped mounts are tried there. */
static void probe_directory(struct probe_found *found)
{
	struct provider_check c = {.name = "directory of rooms", .required = true};
	struct cloche_err err = CLOCHE_ERR_INIT;

	c.works = fardir_enter_rooms(&err) == 0;
	if (!c.works) {
		str_copy(c.detail, sizeof(c.detail), str_from(err.message));
		str_copy(c.remedy, sizeof(c.remedy),
			STR("~/.cache/cloche-far, where rooms are made, has to belong to the "
			    "account, and to be private"));
	} else if (!getcwd(c.detail, sizeof(c.detail))) {
		c.detail[0] = '\0';
	}
	probe_keep(found, &c);
}

/* What is missing for a native room is no hindrance where the container can be the room
 * (inplace.c). The directory of rooms, which is the first check, has to work for each. */
static void probe_in_place(struct probe_found *found)
{
	struct provider_check c = {
		.name = "room in the container", .works = true, .required = true};
	struct provider_about about = {0};

	if (native_provider.probe(&native_provider, &about, NULL) == 0 ||
		landlock_provider.probe(&landlock_provider, &about, NULL) < 0)
		return;
	for (size_t i = 1; i < found->n; i++)
		found->checks[i].required = false;
	str_copy(
		c.detail, sizeof(c.detail), STR("without namespaces, as with --provider landlock"));
	probe_keep(found, &c);
}

static struct far_check probe_put(const struct provider_check *c)
{
	return (struct far_check){.name = str_from(c->name),
		.works = c->works,
		.required = c->required,
		.detail = str_from(c->detail),
		.remedy = str_from(c->remedy)};
}

static struct str probe_word(const char *text)
{
	return str_prefix(str_from(text), FAR_MAX_NAME);
}

static int probe_report(void)
{
	static struct probe_found found;
	struct far_check checks[FAR_MAX_CHECKS];
	_cleanup_(buf_donep) struct buf b = BUF_INIT(PROBE_MAX_PAYLOAD), head = BUF_INIT(4);
	struct wire_out w = wire_out(&b), length = wire_out(&head);
	struct utsname u;

	if (uname(&u) < 0)
		return -errno;
	probe_directory(&found);
	native_provider.doctor(probe_keep_native, &found);
	probe_in_place(&found);
	for (size_t i = 0; i < found.n; i++)
		checks[i] = probe_put(&found.checks[i]);
	message_put(&w, far_probed_message(),
		&(struct far_probed){.machine = probe_word(u.machine),
			.kernel = probe_word(u.release),
			.checks = checks,
			.checks_n = found.n});
	if (w.error)
		return w.error;
	wire_put_u32(&length, (uint32_t)buf_len(&b));
	if (fd_write_all(STDOUT_FILENO, buf_data(&head), buf_len(&head)) < 0)
		return -EPIPE;
	return fd_write_all(STDOUT_FILENO, buf_data(&b), buf_len(&b));
}

/* Read a byte; return false if nobody says anything any more. */
static bool probe_hear(char *ret)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, PATIENCE_SEC * 1000) > 0 && read(STDIN_FILENO, ret, 1) == 1;
}

int farside_probe(void)
{
	char c;

	if (fd_sanitize_stdio() < 0)
		return 1;
	while (probe_hear(&c)) {
		if (c == PROBE_ASK)
			return probe_report() < 0;
		if (c != PROBE_ECHO || fd_write_all(STDOUT_FILENO, &c, 1) < 0)
			return 1;
	}
	return 1;
}
