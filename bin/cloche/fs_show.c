/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: names come from inside the sandbox. They are escaped on a terminal. Into a
 * pipe they are written unchanged, one per line, or with -0 each followed by a NUL, which is the
 * only unambiguous form. JSON also has the bytes in hexadecimal if they are not UTF-8. */
#include "cli.h"
#include "fs.h"
#include "json_out.h"
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ENTRIES = 1 << 20 };

struct entry {
	char *name;
	cloche_file_stat st;
};

struct listing {
	struct entry *v;
	size_t n, cap;
	bool full;
};

static bool fs_listing_add(const char *name, const cloche_file_stat *st, void *user)
{
	struct listing *l = user;

	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct entry *v = cap > MAX_ENTRIES ? NULL : realloc(l->v, cap * sizeof(*v));

		if (!v)
			goto full;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct entry){.name = strdup(name), .st = *st};
	if (!l->v[l->n].name)
		goto full;
	l->n++;
	return true;
full:
	l->full = true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void format_time(const cloche_file_stat *st, char *ret, size_t size)
{
	time_t t = (time_t)st->mtime_sec;
	struct tm tm;
	size_t n = gmtime_r(&t, &tm) ? strftime(ret, size, "%Y-%m-%dT%H:%M:%S", &tm) : 0;

	if (n)
		snprintf(ret + n, size - n, ".%09uZ", st->mtime_nsec);
	else
		snprintf(ret, size, "@%lld", (long long)st->mtime_sec);
}

static json_t *stat_json(const cloche_file_stat *st)
{
	char mode[8], time[64];

	snprintf(mode, sizeof(mode), "%04o", st->mode);
	format_time(st, time, sizeof(time));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s}", "type", st->type_name, "mode",
		mode, "size", (json_int_t)st->size, "uid", (json_int_t)st->uid, "gid",
		(json_int_t)st->gid, "links", (json_int_t)st->links, "inode", (json_int_t)st->inode,
		"mtime", time);
}

static void print_name(const char *name, bool escaped)
{
	if (escaped)
		name_print(name, strlen(name));
	else
		fputs(name, stdout);
}

static void print_mode(const cloche_file_stat *st)
{
	static const char types[] = "-dlpscb", bits[] = "rwxrwxrwx";
	char text[11] = {types[st->type]};

	for (int i = 0; i < 9; i++)
		text[1 + i] = st->mode & (0400U >> i) ? bits[i] : '-';
	if (st->mode & 04000)
		text[3] = text[3] == 'x' ? 's' : 'S';
	if (st->mode & 02000)
		text[6] = text[6] == 'x' ? 's' : 'S';
	if (st->mode & 01000)
		text[9] = text[9] == 'x' ? 't' : 'T';
	fputs(text, stdout);
}

/* Return the target of a link in the directory; the caller frees it. NULL if it cannot be read. */
static char *target_of(cloche_files *f, const char *dir, const char *name)
{
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path = malloc(n), *target = NULL;

	if (path) {
		snprintf(path, n, "%s/%s", dir, name);
		if (cloche_files_readlink(f, path, &target, NULL) < 0)
			target = NULL;
	}
	free(path);
	return target;
}

static void print_long(const struct entry *e, const char *target, bool escaped)
{
	char time[64];

	format_time(&e->st, time, sizeof(time));
	print_mode(&e->st);
	printf(" %3llu %5u %5u %12llu %.19s ", (unsigned long long)e->st.links, e->st.uid,
		e->st.gid, (unsigned long long)e->st.size, time);
	print_name(e->name, escaped);
	if (target) {
		fputs(" -> ", stdout);
		print_name(target, escaped);
	}
}

static void print_entry(
	cloche_files *f, const struct fs_options *o, const char *dir, const struct entry *e)
{
	bool escaped = !o->null_ends && isatty(STDOUT_FILENO);
	bool link = e->st.type == CLOCHE_NODE_SYMLINK && (o->long_form || o->json);
	char *target = link ? target_of(f, dir, e->name) : NULL;

	if (o->json) {
		json_t *line = stat_json(&e->st);

		name_to_json(line, "name", e->name, strlen(e->name));
		if (target)
			name_to_json(line, "target", target, strlen(target));
		(void)json_print_line(line);
	} else {
		if (o->long_form)
			print_long(e, target, escaped);
		else
			print_name(e->name, escaped);
		putchar(o->null_ends ? '\0' : '\n');
	}
	free(target);
}

int fs_show_list(const struct fs_request *q)
{
	const char *path = q->v[0] ? q->v[0] : ".";
	struct listing l = {0};
	int r = cloche_files_list(q->f, path, fs_listing_add, &l, q->err);

	if (r == 0 && l.full) {
		q->err->code = CLOCHE_E_LIMIT;
		snprintf(q->err->message, sizeof(q->err->message), "list: too many entries");
		r = -q->err->code;
	}
	if (r == 0 && l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_name);
	for (size_t i = 0; i < l.n; i++) {
		if (r == 0)
			print_entry(q->f, q->o, path, &l.v[i]);
		free(l.v[i].name);
	}
	free(l.v);
	return r;
}

int fs_stat(const struct fs_request *q)
{
	const char *path = q->v[0];
	cloche_file_stat st;
	char *target = NULL, time[64];
	int r = cloche_files_stat(q->f, path, !q->o->no_follow, &st, q->err);

	if (r < 0)
		return r;
	if (st.type == CLOCHE_NODE_SYMLINK)
		(void)cloche_files_readlink(q->f, path, &target, NULL);
	if (q->o->json) {
		json_t *line = stat_json(&st);

		name_to_json(line, "path", path, strlen(path));
		if (target)
			name_to_json(line, "target", target, strlen(target));
		json_print(line);
	} else {
		format_time(&st, time, sizeof(time));
		printf("type: %s\nmode: %04o\nsize: %llu\nuid: %u\ngid: %u\nlinks: %llu\n"
		       "mtime: %s\n",
			st.type_name, st.mode, (unsigned long long)st.size, st.uid, st.gid,
			(unsigned long long)st.links, time);
		if (target) {
			fputs("target: ", stdout);
			print_name(target, isatty(STDOUT_FILENO));
			putchar('\n');
		}
	}
	free(target);
	return 0;
}

struct watching {
	const struct fs_options *o;
	const char *path;
	uint64_t seen;
};

static void fs_watch_ready(void *user)
{
	const struct watching *w = user;
	json_t *line;

	if (!w->o->json) {
		say("watching %s", w->path);
		return;
	}
	line = json_object();
	json_object_set_new(line, "event", json_string("ready"));
	(void)json_print_line(line);
	(void)flush_output();
}

static bool fs_show_on_event(const cloche_files_event *event, void *user)
{
	struct watching *w = user;
	const char *change = event->change_name;

	if (w->o->json) {
		json_t *line = json_object();

		json_object_set_new(line, "event", json_string(change));
		name_to_json(line, "path", event->path, strlen(event->path));
		json_object_set_new(line, "directory", json_boolean(event->is_directory));
		if (event->cookie)
			json_object_set_new(line, "cookie", json_integer(event->cookie));
		(void)json_print_line(line);
	} else {
		printf("%s ", change);
		print_name(event->path, !w->o->null_ends && isatty(STDOUT_FILENO));
		putchar(w->o->null_ends ? '\0' : '\n');
	}
	if (!flush_output())
		return false;
	return ++w->seen != w->o->count;
}

int fs_watch(const struct fs_request *q)
{
	struct watching w = {.o = q->o, .path = q->v[0]};

	return cloche_files_watch(
		q->f, w.path, q->o->recursive, fs_watch_ready, fs_show_on_event, &w, q->err);
}
