/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche image load` and `pull`: show progress on a terminal, and list the stored images. */
#include "cmd_image.h"
#include "interrupt.h"
#include "json_out.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct showing {
	struct image_progress progress;
	const struct image_options *o;
	json_t *documents;
	bool failed;
};

void image_progress_clear(struct image_progress *p)
{
	if (p->shown)
		(void)put(STDERR_FILENO, "\r\033[K", 4);
	p->shown = false;
}

bool image_progress_step(struct image_progress *p, const char *step, uint64_t bytes)
{
	uint64_t at = now_usec();
	char line[256], size[32];

	if (interrupt_signal() != 0)
		return false;
	if (!p->on_terminal || at - p->began < 1000000 || at - p->last < 100000)
		return true;
	p->last = at;
	format_size(bytes, size, sizeof(size));
	snprintf(line, sizeof(line), "\r\033[Kcloche: %s%s%s", step, bytes ? ": " : "",
		bytes ? size : "");
	(void)put(STDERR_FILENO, line, strlen(line));
	p->shown = true;
	return true;
}

static bool on_step(const char *step, uint64_t bytes, void *user)
{
	struct showing *s = user;

	return image_progress_step(&s->progress, step, bytes);
}

static bool on_stored(const cloche_image *image, void *user)
{
	struct showing *s = user;
	const char *name = image->names[0];
	char line[512];

	image_progress_clear(&s->progress);
	if (s->o->json) {
		(void)json_array_append_new(s->documents, json_loads(image->json, 0, NULL));
		return true;
	}
	snprintf(line, sizeof(line), "%.64s%s%s", image->id, name ? "  " : "", name ? name : "");
	s->failed |= !put_line(line);
	return true;
}

static void image_load_on_signal(void *user, int signal_number, unsigned count)
{
	(void)user;
	/* The first signal makes on_step() abort cleanly. */
	if (count > 1) {
		signal(signal_number, SIG_DFL);
		raise(signal_number);
	}
}

void image_progress_catch(void)
{
	interrupt_catch(image_load_on_signal, NULL);
}

void image_progress_forget(void)
{
	int came = interrupt_signal();

	interrupt_forget();
	if (came == 0)
		return;
	signal(came, SIG_DFL);
	raise(came);
}

static void say_left_out(const struct cloche_image_loading *loading)
{
	if (loading->owners_noted)
		say("%llu files have owners in the image that you cannot give them: inside they "
		    "belong to root",
			(unsigned long long)loading->owners_noted);
	if (loading->devices_left_out)
		say("%llu devices and sockets were left out: a sandbox has a /dev of its own",
			(unsigned long long)loading->devices_left_out);
}

/* If name is NULL, load from source (NULL: standard input); otherwise pull name. */
static int image_get(
	const struct image_options *o, const char *source, const char *name, cloche_err *err)
{
	struct showing s = {.o = o, .progress.began = now_usec(), .documents = json_array()};
	struct cloche_image_loading loading = {.size = sizeof(loading),
		.name = o->name,
		.step = on_step,
		.stored = on_stored,
		.user = &s};
	int r;

	s.progress.on_terminal = !o->quiet && isatty(STDERR_FILENO);
	image_progress_catch();
	if (name)
		r = cloche_image_pull(name, &loading, err);
	else
		r = cloche_image_load(source, STDIN_FILENO, &loading, err);
	image_progress_clear(&s.progress);
	if (r == 0 && o->json)
		s.failed = !json_print(json_incref(s.documents));
	json_decref(s.documents);
	if (r < 0 && interrupt_signal() != 0) {
		say("given up: nothing was stored");
		return 128 + interrupt_signal();
	}
	if (r < 0)
		return r;
	say_left_out(&loading);
	return s.failed ? EXIT_CLOCHE : 0;
}

int image_load_archive(const struct image_options *o, char **operands, cloche_err *err)
{
	bool from_stdin = strcmp(operands[0], "-") == 0;

	if (from_stdin && isatty(STDIN_FILENO))
		return wrong_usage(err, "for example: podman save app | cloche image load -",
			"image load: an archive cannot be read from a terminal");
	return image_get(o, from_stdin ? NULL : operands[0], NULL, err);
}

int image_pull_name(const struct image_options *o, char **operands, cloche_err *err)
{
	return image_get(o, NULL, operands[0], err);
}
