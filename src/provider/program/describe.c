/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: makes the request of "create", one line for each thing that the program has
 * to do, as in docs/design/provider-protocol.md. Options that the protocol cannot express are
 * refused here, so no program has to know about them. */
#include "base/clock.h"
#include "base/macro.h"
#include "base/program.h"
#include "ipc/roomctl.h"
#include "jail/narrow.h"
#include "provider/program/operations.h"
#include "room/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE(...) (r = r == 0 ? words_add_line(out, __VA_ARGS__, NULL) : r)

static int refuse(const char *what, const char *advice, struct cloche_err *err)
{
	err_set(err, E_UNSUPPORTED, "%s needs the native provider", what);
	err_hint(err, "%s, or use --provider native", advice);
	return -E_UNSUPPORTED;
}

static int check(const struct room_spec *s, struct cloche_err *err)
{
	if (s->nested)
		return refuse("--nested", "leave it out", err);
	if (s->net == ROOM_NET_HOST)
		return err_set(err, E_UNSUPPORTED, "--net host needs --provider subprocess");
	if (s->keep_dir)
		return refuse("--keep-changes", "leave it out", err);
	if (s->root == ROOM_ROOT_IMAGE && !s->image)
		return err_set(err, E_USAGE, "the image has no id");
	if (s->root == ROOM_ROOT_DIR)
		return refuse("a directory as --root", "use an image (--root image:NAME)", err);
	return 0;
}

const struct limit_way program_limits[] = {
	{LIMIT_memory_bytes, LIMIT_BY_MAKER, .word = "memory"},
	{LIMIT_cpus_milli, LIMIT_BY_MAKER, .word = "cpus-milli"},
	{LIMIT_pids, LIMIT_BY_MAKER, .word = "pids"},
	{LIMIT_nofile, LIMIT_BY_RESOURCE, RLIMIT_NOFILE, .word = "nofile"},
	{LIMIT_file_bytes, LIMIT_BY_RESOURCE, RLIMIT_FSIZE},
	{LIMIT_tmpfs_bytes, LIMIT_BY_MOUNTS},
};
LIMITS_COMPLETE(program_limits);

static int add_limits(struct buf *out, const struct room_limits *l)
{
	char text[32];
	int r = 0;

	for (size_t i = 0; i < LIMITS_N; i++) {
		const struct limit_way *way = &program_limits[i];
		uint64_t n = limit_value(l, way->limit);

		if (!n || !way->word)
			continue;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
		LINE(way->word, text);
		if (!l->best_effort && limit_is_optional(l, way->limit))
			LINE("optional", way->word);
	}
	if (l->best_effort)
		LINE("best-effort");
	return r;
}

/* Each of these is a tmpfs: its contents vanish with the room and are limited in size. */
static int add_tmpfs(
	struct buf *out, const struct room_spec *s, const struct judged_source *sources)
{
	static const struct {
		const char *path, *mode;
		bool host_alone; /* an image may have files there */
	} rows[] = {{"/run", "0755", false}, {"/tmp", "1777", false}, {"/home", "0755", true},
		{"/root", "0700", true}, {"/etc", "0755", true}, {"/var", "0755", true}};
	uint64_t bytes = room_limits_tmpfs(&s->limits);
	char size[32] = "";
	int r = 0;

	if (bytes)
		snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++)
		if ((!rows[i].host_alone || s->root == ROOM_ROOT_HOST) &&
			!judged_hides(s, sources, rows[i].path))
			r = words_add_line(out, "tmpfs", rows[i].path, rows[i].mode,
				bytes ? size : NULL, NULL);
	return r == 0 && bytes ? words_add_line(out, "shm", size, NULL) : r;
}

struct shown {
	struct buf *out;
	int r;
};

static void add_shown(void *user, const char *path, bool is_dir)
{
	struct shown *s = user;

	if (s->r == 0)
		s->r = words_add_line(
			s->out, "mount", "ro", is_dir ? "directory" : "file", path, path, NULL);
}

static int add_root(struct buf *out, const struct room_spec *s)
{
	struct shown shown = {out, 0};
	int r = 0;

	if (s->root == ROOM_ROOT_IMAGE)
		return words_add_line(out, "root", "image", s->image, NULL);
	LINE("root", "empty");
	hostview_each(add_shown, &shown);
	return r == 0 ? shown.r : r;
}

static int add_mounts(
	struct buf *out, const struct room_spec *s, const struct judged_source *sources)
{
	char place[INSIDE_PLACE_MAX];
	int r = 0;

	for (size_t i = 0; i < s->mounts_n && r == 0; i++) {
		if (!sources[i].path)
			continue;
		inside_place(s, i, place);
		r = words_add_line(out, "mount", s->mounts[i].ro ? "ro" : "rw",
			sources[i].is_dir ? "directory" : "file", sources[i].path, place, NULL);
	}
	return r;
}

/* Engines need not know the limits that are arguments of init. */
static int add_init(struct buf *out, const struct room_spec *s)
{
	const char *words[LIMITS_N + 5] = {"init", ROOMCTL_INIT_PATH, "room"};
	char limits[LIMITS_N][NARROW_WORD];
	size_t n = 3;

	for (size_t i = 0; i < s->mounts_n && n == 3; i++)
		if (!s->mounts[i].ro)
			words[n++] = "staying";
	for (size_t i = 0; i < LIMITS_N; i++) {
		const struct limit_way *way = &program_limits[i];
		uint64_t value = limit_value(&s->limits, way->limit);

		if (way->means != LIMIT_BY_RESOURCE || !value)
			continue;
		narrow_put_word(way->number, value, limits[i]);
		words[n++] = limits[i];
	}
	return words_add_all(out, words);
}

/* Add the labels of the sandbox, and those by which cloche and AgentGate recognise a container. */
static int add_labels(struct buf *out, const struct room_spec *s)
{
	char owner[32], now[CLOCK_ISO_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && s->labels && s->labels[i]; i++) {
		struct str label = str_from(s->labels[i]);
		size_t eq = str_chr(label, '=');
		_cleanup_(freep) char *key = str_dup(str_prefix(label, eq));
		const char *value = s->labels[i] + MIN(eq + 1, label.n);

		if (!key)
			return -ENOMEM;
		LINE("label", key, value);
		if (strcmp(key, "cloche.run-id") == 0)
			LINE("label", "agentgate.run-id", value);
	}
	snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	clock_format_utc(clock_real_usec(), now);
	LINE("label", "cloche.sandbox", s->id);
	LINE("label", "cloche.owner", owner);
	LINE("label", "agentgate.sandbox", "true");
	LINE("label", "agentgate.sandbox.id", s->id);
	LINE("label", "agentgate.sandbox.created", now);
	return r;
}

static int begin(const struct describe_which *which, struct buf *out)
{
	int r = 0;

	LINE("cloche-provider", PROGRAM_PROTOCOL);
	if (which->id)
		LINE("id", which->id);
	if (which->place)
		LINE("place", which->place);
	if (which->script)
		LINE("far", which->script);
	return r;
}

int describe_room(const struct room_spec *spec, const struct judged_source *sources,
	const char *dir, struct buf *out, struct cloche_err *err)
{
	_cleanup_(freep) char *cloche = program_find("cloche", NULL);
	char control[PATH_MAX];
	int r = check(spec, err);

	if (r < 0)
		return r;
	snprintf(control, sizeof(control), "%s/" ROOMCTL_CONTROL_NAME, dir);
	r = begin(&(struct describe_which){.id = spec->id}, out);
	LINE("hostname", ROOTFS_HOSTNAME);
	if (cloche)
		LINE("cloche", cloche);
	r = r == 0 ? add_labels(out, spec) : r;
	r = r == 0 ? add_root(out, spec) : r;
	r = r == 0 ? add_tmpfs(out, spec, sources) : r;
	LINE("mount", "ro", "file", spec->init_path, ROOMCTL_INIT_PATH);
	LINE("mount", "rw", "file", control, ROOMCTL_CONTROL_PATH);
	r = r == 0 ? add_mounts(out, spec, sources) : r;
	r = r == 0 ? add_limits(out, &spec->limits) : r;
	r = r == 0 ? add_init(out, spec) : r;
	LINE("end");
	return r < 0 ? err_set(err, E_LIMIT, "the description of the room is too long") : 0;
}

int describe_far(
	const struct room_spec *spec, const char *script, struct buf *out, struct cloche_err *err)
{
	char lifetime[32];
	int r;

	if (spec->keep_dir)
		return refuse("--keep-changes", "leave it out", err);
	r = begin(&(struct describe_which){spec->id, spec->place, script}, out);

	LINE("hostname", ROOTFS_HOSTNAME);
	r = r == 0 ? add_labels(out, spec) : r;
	if (spec->place_image)
		LINE("root", "image", spec->place_image);
	r = r == 0 ? add_limits(out, &spec->limits) : r;
	if (spec->lifetime_usec) {
		snprintf(lifetime, sizeof(lifetime), "%llu",
			(unsigned long long)(spec->lifetime_usec / USEC_PER_SEC + 1));
		LINE("lifetime", lifetime);
	}
	LINE("end");
	return r < 0 ? err_set(err, E_LIMIT, "the description of the room is too long") : 0;
}

int describe_id(const struct describe_which *which, struct buf *out)
{
	int r = begin(which, out);

	return LINE("end");
}
