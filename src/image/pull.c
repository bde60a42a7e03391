/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: skopeo handles registries, certificates and passwords, so a login with it
 * (or with podman) is used here too. It writes an OCI layout into a directory of the store, which
 * is loaded like any other. The stored blobs are linked into that directory first, and skopeo gets
 * only what is missing. Pulls from one registry take turns, so they get no blob twice, and a
 * registry that hangs holds up no other one. Without skopeo, or for an image that no registry has
 * ("localhost/..."), an engine that has the image saves it as an archive. */
#include "base/fd.h"
#include "base/program.h"
#include "fs/fs.h"
#include "image/load.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TROUBLE = 8192, ASK_MS = 200 };

static bool pull_tell(struct image_load *job, const char *step)
{
	return image_load_tell(job, step, 0);
}

/* Get the last line that is not empty. */
static void last_line(struct str text, char *ret, size_t size)
{
	snprintf(ret, size, "it failed without a message");
	while (text.n) {
		struct str line = str_next_line(&text);

		if (line.n)
			snprintf(ret, size, "%.*s", STR_FMT(line));
	}
}

/* Of a line of a log, time="..." level=fatal msg="...", as skopeo writes it, the message alone,
 * without what it was doing: that is known. */
static void pull_plain(char *line)
{
	static const char begin[] = "msg=\"", doing[] = "initializing source docker://";
	char *from = strstr(line, begin), *to = line;

	if (!from)
		return;
	from += strlen(begin);
	if (strncmp(from, doing, strlen(doing)) == 0 && strstr(from + strlen(doing), ": "))
		from = strstr(from + strlen(doing), ": ") + 2;
	for (; *from && *from != '"'; from++) {
		bool escaped = *from == '\\' && from[1];

		from += escaped;
		*to++ = escaped && strchr("nt", *from) ? ' ' : *from;
	}
	*to = '\0';
}

/* Wait for the end of a program. Takes trouble, from which its messages come. r: 0, or why it is to
 * be ended. */
static int pull_finish(pid_t pid, int trouble, int r, const char *path, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_TROUBLE);
	_cleanup_fd_ int messages = trouble;
	int status, waited;
	char why[512];

	if (r == 0)
		r = image_read_trouble(messages, &text);

	/* Do not leave it blocked on a pipe that is no longer read, nor run for nobody. */
	waited = image_wait_program(pid, r < 0, &status);
	if (r == -ECANCELED || waited < 0)
		return err_sys(err, waited < 0 ? -waited : -r, "wait for %s", path);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	last_line(buf_str(&text), why, sizeof(why));
	pull_plain(why);
	/* What skopeo writes to has no name but that of our descriptor. */
	if (strstr(why, "/proc/") && strstr(why, "no space left on device")) {
		err_set(err, E_NO_SPACE, "%s: No space left on device", path);
		image_hint_space(err);
		return -E_NO_SPACE;
	}
	return err_set(err, E_SYSTEM, "%s: %s", path, why);
}

static int pull_start(
	const char *const *argv, int out, pid_t *ret, int *ret_trouble, struct cloche_err *err)
{
	const struct program_spawn spawn = {
		.path = argv[0], .argv = argv, .env = environ, .stdio = {-1, out, -1}};

	return image_start_program(spawn, ret, ret_trouble, err);
}

/* Wait until it says something or ends. Meanwhile ask again and again whether to go on: a registry
 * may be silent for as long as it likes. */
static int pull_wait(struct image_load *job, const char *step, int trouble)
{
	int r;

	do
		r = pull_tell(job, step) ? job_wait_fd(trouble, POLLIN, ASK_MS) : -ECANCELED;
	while (r == 0);
	return r < 0 ? r : 0;
}

static int run_skopeo(
	char *path, const char *name, int dir, struct image_load *job, struct cloche_err *err)
{
	static const char step[] = "skopeo gets the image from its registry";
	_cleanup_(freep) char *from = NULL, *to = NULL;
	int trouble, r;
	pid_t pid;

	if (!pull_tell(job, step))
		return err_set(err, E_CANCELLED, "it was given up");
	if (asprintf(&from, "docker://%s", name) < 0 ||
		asprintf(&to, "oci:/proc/%d/fd/%d:x", (int)getpid(), dir) < 0)
		return err_nomem(err);
	r = pull_start(
		(const char *const[]){path, "copy", from, to, NULL}, -1, &pid, &trouble, err);
	if (r < 0)
		return r;
	r = pull_wait(job, step, trouble);
	return pull_finish(pid, trouble, r, path, err);
}

/* Return the byte of the file of locks that stands for the registry of an image. */
static off_t registry_byte(struct str name)
{
	struct str host = str_prefix(name, str_chr(name, '/'));
	char hex[SHA256_HEX_MAX];

	if (host.n == name.n || (!str_eq(host, STR("localhost")) && str_chr(host, '.') == host.n &&
					str_chr(host, ':') == host.n))
		host = STR("docker.io");
	sha256_text(host, hex);
	hex[12] = '\0';
	return (off_t)strtoull(hex, NULL, 16);
}

/* Wait until no other pull from this registry runs; closing the returned descriptor lets the next
 * one go on. */
static int take_turn(
	struct image_store *s, struct str name, struct image_load *job, struct cloche_err *err)
{
	_cleanup_fd_ int fd =
		openat(s->dir, "pulls", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct flock lock = {.l_type = F_WRLCK, .l_start = registry_byte(name), .l_len = 1};
	int r;

	if (fd < 0)
		return err_sys(err, errno, "open the locks of pulls");
	while ((r = job_lock_bytes(fd, &lock, ASK_MS, -1)) == -EWOULDBLOCK)
		if (!pull_tell(job, "waiting for another pull from the same registry"))
			return err_set(err, E_CANCELLED, "it was given up");
	return r < 0 ? err_sys(err, -r, "wait for another pull") : TAKE_FD(fd);
}

static int pull_by_skopeo(struct image_store *s, char *path, const char *name,
	struct image_load *job, struct cloche_err *err)
{
	_cleanup_(image_source_donep) struct image_source source = IMAGE_SOURCE_NULL;
	_cleanup_fd_ int turn = take_turn(s, str_from(name), job, err);
	char temp[IMAGE_TEMP_NAME];
	int dir = turn < 0 ? turn : image_temp_make(s, temp, err), r;

	if (dir < 0)
		return dir;
	image_source_init_dir(&source, s, dir);
	image_blobs_link(s, dir);
	r = run_skopeo(path, name, dir, job, err);
	if (r == 0)
		r = image_load(s, &source, job, err);
	image_temp_remove(s, temp);
	return r;
}

static int pull_by_engine(struct image_store *s, char *path, const char *name,
	struct image_load *job, struct cloche_err *err)
{
	_cleanup_(image_source_donep) struct image_source source = IMAGE_SOURCE_NULL;
	const char *const argv[] = {path, "save", name, NULL};
	int out[2], trouble, read, r = fd_pipe(out);
	pid_t pid;

	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	r = pull_start(argv, out[1], &pid, &trouble, err);
	fd_close(out[1]);
	if (r == 0) {
		struct cloche_err own = CLOCHE_ERR_INIT;

		read = image_source_read_archive(&source, s, out[0], NULL, NULL, &own);
		out[0] = fd_close(out[0]);
		r = pull_finish(pid, trouble, 0, path, err);
		/* If the engine failed, its message explains the broken archive. */
		if (r == 0 && read < 0 && (r = read) < 0 && err)
			*err = own;
	}
	fd_close(out[0]);
	return r < 0 ? r : image_load(s, &source, job, err);
}

static int pull_by_engines(
	struct image_store *s, const char *name, struct image_load *job, struct cloche_err *err)
{
	static const char *const engines[] = {"podman", "docker"};
	bool any = false;
	int r = -E_NOT_FOUND;

	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		_cleanup_(freep) char *path = program_on_path(engines[i]);

		if (!path)
			continue;
		any = true;
		err_clear(err);
		r = pull_by_engine(s, path, name, job, err);
		if (r == 0 || r == -E_CANCELLED)
			return r;
	}
	if (any)
		return r;
	err_set(err, E_UNSUPPORTED, "there is no program here that gets images");
	err_hint(err,
		"install skopeo (or podman, or docker), or load an archive: cloche image load "
		"FILE");
	return -E_UNSUPPORTED;
}

int image_pull(
	struct image_store *s, const char *name, struct image_load *job, struct cloche_err *err)
{
	_cleanup_(freep) char *skopeo = program_on_path("skopeo");
	struct image_ref ref;
	char full[IMAGE_REF_MAX];
	int r = image_ref_parse(str_from(name), &ref, err);

	if (r < 0)
		return r;
	if (ref.name.n == 0)
		return err_set(err, E_USAGE, "pull %s: an id names no registry", name);
	image_ref_name(&ref, full);
	if (!job->name)
		job->name = full;
	/* A digest says all; skopeo takes no tag beside it. */
	if (ref.digest.n)
		name = full;
	if (skopeo && !str_starts(ref.name, STR("localhost/")))
		r = pull_by_skopeo(s, skopeo, name, job, err);
	else
		r = pull_by_engines(s, name, job, err);
	if (job->name == full)
		job->name = NULL;
	return r < 0 ? err_wrap(err, r, "pull %s", name) : 0;
}
