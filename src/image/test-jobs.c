/* SPDX-License-Identifier: Apache-2.0 */
/* One thread with one loop pulls and builds many images at once. Some jobs are cancelled, whatever
 * they are doing. The programs that get and build images are stand-ins on the PATH. */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "image/store.h"
#include "nowait.h"
#include "tap.h"

#include <cloche/image.h>
#include <cloche/image_build.h>
#include <cloche/job.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PULLS = 40, REGISTRIES = 8, BUILDS = 40, KINDS = 5 };

/* Writes one image in the form that a registry gives. */
static const char make_layout[] =
	"set -e\n"
	"case $(uname -m) in aarch64) arch=arm64;; *) arch=amd64;; esac\n"
	"mkdir -p \"$1/blobs/sha256\" \"$1/tree\"\n"
	"put() { d=$(sha256sum <\"$1\" | cut -c1-64); n=$(wc -c <\"$1\"); "
	"mv \"$1\" \"$dir/blobs/sha256/$d\"; }\n"
	"dir=$1\n"
	"cd \"$dir\"\n"
	"echo hello >tree/file\n"
	"tar -cf layer -C tree .\n"
	"rm -r tree\n"
	"put layer; layer=$d; size=$n\n"
	"printf '{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":{},\"rootfs\":{\"type\":"
	"\"layers\",\"diff_ids\":[\"sha256:%s\"]}}' $arch $layer >config\n"
	"put config\n"
	"printf '{\"schemaVersion\":2,\"mediaType\":"
	"\"application/vnd.oci.image.manifest.v1+json\",\"config\":{\"mediaType\":"
	"\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:%s\",\"size\":%d},"
	"\"layers\":[{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"digest\":"
	"\"sha256:%s\",\"size\":%d}]}' $d $n $layer $size >manifest\n"
	"put manifest\n"
	"printf '{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
	"\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\",\"size\":%d}]}'"
	" $d $n >index.json\n"
	"printf '{\"imageLayoutVersion\":\"1.0.0\"}' >oci-layout\n";

/* skopeo copy docker://NAME oci:DIRECTORY:x */
static const char skopeo[] =
	"#!/bin/sh\n"
	"trap 'exit 1' TERM\n"
	"to=${3#oci:}\n"
	"to=${to%:x}\n"
	"sleep 0.01\n"
	"mkdir -p \"$to/blobs/sha256\"\n"
	"cp \"$LAYOUT/index.json\" \"$LAYOUT/oci-layout\" \"$to\"\n"
	"for f in \"$LAYOUT\"/blobs/sha256/*; do\n"
	"	[ -e \"$to/blobs/sha256/${f##*/}\" ] || cp \"$f\" \"$to/blobs/sha256\"\n"
	"done\n";

/* Remembers what was built. An image that is there is from 2100, so it is not too old. */
static const char engine[] =
	"#!/bin/sh\n"
	"trap 'exit 1' TERM\n"
	"there=$BUILT/$(echo \"$5\" | tr : _)\n"
	"case \"$1 $4\" in\n"
	"'image {{.Created}}') [ -e \"$there\" ] && echo 2100-01-01T00:00:00Z;;\n"
	"image*) echo null;;\n"
	"build*) echo building; sleep 0.02; while [ \"$1\" != -t ]; do shift; done\n"
	"	echo >>\"$BUILT/$(echo \"$2\" | tr : _)\"; echo built;;\n"
	"esac\n";

static char dir[TAP_DIR_BYTES];
static const char *loop_stack; /* about where the loop has its stack */
static int told, elsewhere;    /* callbacks, and those of them on another stack */

static void count_call(void)
{
	char here;

	told++;
	elsewhere += llabs(&here - loop_stack) > 1 << 20;
}

static bool on_step(const char *step, uint64_t bytes, void *user)
{
	count_call();
	return true;
}

static bool on_stored(const cloche_image *image, void *user)
{
	count_call();
	++*(int *)user;
	return true;
}

static void on_line(const char *line, void *user)
{
	count_call();
}

/* --- many jobs, some of which are cancelled --- */

struct one {
	cloche_job *job; /* NULL: it has ended */
	bool victim, cancelled;
	int result, stored;
	char name[64];
	cloche_image_build *build;
	cloche_err err;
};

static void drive(struct one *all, int n, cloche_job_fn fn)
{
	int set = epoll_create1(EPOLL_CLOEXEC), left = n, running = 0;
	struct epoll_event ev = {.events = EPOLLIN};

	told = elsewhere = 0;
	for (int i = 0; i < n; i++) {
		ev.data.ptr = &all[i];
		must(cloche_job_start(fn, &all[i], &all[i].job, NULL) == 0);
		must(epoll_ctl(set, EPOLL_CTL_ADD, cloche_job_fd(all[i].job), &ev) == 0);
	}
	while (left > 0) {
		struct one *o;

		for (int i = 0; i < n; i++)
			if (all[i].job && all[i].victim && !all[i].cancelled &&
				rand_u64() % 40 == 0) {
				cloche_job_cancel(all[i].job);
				all[i].cancelled = true;
			}
		must(epoll_wait(set, &ev, 1, -1) == 1);
		o = ev.data.ptr;
		o->result = cloche_job_dispatch(o->job, &o->err);
		if (o->result == 1)
			continue;
		if (o->result < 0 && (!o->cancelled || o->result != -CLOCHE_E_CANCELLED))
			tap_fail("%s: %d, %s", o->name, o->result, o->err.message);
		cloche_job_free(o->job);
		o->job = NULL;
		left--;
	}
	for (int i = 0; i < n; i++)
		running += all[i].cancelled && all[i].result < 0;
	printf("# %d of %d were given up, %d callbacks\n", running, n, told);
	check(told > 0);
	check_int(elsewhere, 0);
	check_int(nowait_waits, 0);
	check(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	fd_close(set);
}

static int count_in(const char *folder, bool (*is)(const char *name))
{
	_cleanup_(freep) char *path = fs_join(dir, folder);
	_cleanup_(fs_list_closep) DIR *list = path ? fs_list(AT_FDCWD, path) : NULL;
	const struct dirent *e;
	int n = 0;

	must(list != NULL);
	while ((e = fs_list_next(list)))
		n += is(e->d_name);
	return n;
}

static bool is_any(const char *name)
{
	return true;
}

static bool is_temporary(const char *name)
{
	return strncmp(name, "new-", 4) == 0 || strstr(name, ".tmp");
}

static bool is_no_lock(const char *name)
{
	return !strstr(name, ".lock");
}

static void check_free(const char *folder, const char *name)
{
	_cleanup_(freep) char *path = fs_join(dir, folder),
			      *file = path ? fs_join(path, name) : NULL;
	_cleanup_fd_ int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;

	check(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
}

static int pull(void *user, cloche_err *err)
{
	struct one *o = user;
	struct cloche_image_loading loading = {
		.size = sizeof(loading), .step = on_step, .stored = on_stored, .user = &o->stored};

	return cloche_image_pull(o->name, &loading, err);
}

static void test_pulls(void)
{
	static struct one all[PULLS];
	struct cloche_image_freed freed;
	cloche_image *image = NULL;

	/* Pulls from one registry take turns. */
	for (int i = 0; i < PULLS; i++) {
		all[i] = (struct one){.victim = i % 2};
		snprintf(all[i].name, sizeof(all[i].name), "registry-%d.test/image-%d:1",
			i % REGISTRIES, i);
	}
	drive(all, PULLS, pull);
	for (int i = 0; i < PULLS; i++) {
		bool is_there = cloche_image_find(all[i].name, &image, NULL) == 0;

		check_int(is_there, all[i].result == 0);
		check_int(all[i].stored, all[i].result == 0);
		if (is_there)
			cloche_image_free(image);
	}
	check_int(count_in("state/images", is_temporary), 0);
	check_int(count_in("state/images/layers", is_any), 1);
	check_int(count_in("state/images/blobs/sha256", is_any), 3);
	check_free("state/images", "lock");
	check_free("state/images", "loads");
	check_int(cloche_image_prune(true, &freed, NULL), 0);
	check_int(freed.busy, 0);
	check_int(count_in("state/images/layers", is_any), 0);
	check_int(count_in("state/images/blobs/sha256", is_any), 0);
}

/* All of one kind of image are given up: nothing of them may stay. */
static void test_nothing_of_a_cancelled_pull_stays(void)
{
	static struct one all[REGISTRIES];

	for (int i = 0; i < REGISTRIES; i++) {
		all[i] = (struct one){.victim = true};
		snprintf(all[i].name, sizeof(all[i].name), "registry-%d.test/never:1", i);
	}
	for (int rounds = 0; rounds < 5; rounds++) {
		struct cloche_image_freed freed;
		bool any = false;

		for (int i = 0; i < REGISTRIES; i++)
			all[i].cancelled = false;
		drive(all, REGISTRIES, pull);
		for (int i = 0; i < REGISTRIES; i++)
			any |= all[i].result == 0;
		check_int(count_in("state/images", is_temporary), 0);
		check_int(count_in("state/images/layers", is_temporary), 0);
		check_int(count_in("state/images/layers", is_any), any);
		if (any)
			must(cloche_image_prune(true, &freed, NULL) == 0);
	}
}

static int build(void *user, cloche_err *err)
{
	struct one *o = user;
	const char *tag;

	return cloche_image_build_ensure(o->build, &tag, err);
}

/* Those who want the same image wait for the one that builds it. */
static void test_builds(void)
{
	static struct one all[BUILDS];
	_cleanup_(freep) char *program = fs_join(dir, "bin/docker");
	bool wanted[KINDS] = {false};

	must(program != NULL);
	for (int i = 0; i < BUILDS; i++) {
		cloche_image_build_options options = CLOCHE_IMAGE_BUILD_INIT;
		char text[64];

		all[i] = (struct one){.victim = i % 2};
		snprintf(text, sizeof(text), "FROM scratch\nLABEL of=%d\n", i % KINDS);
		options.dockerfile = text;
		options.dockerfile_length = strlen(text);
		options.engine = program;
		options.line = on_line;
		must(cloche_image_build_new(&options, &all[i].build, &all[i].err) == 0);
		snprintf(all[i].name, sizeof(all[i].name), "build %d", i);
	}
	drive(all, BUILDS, build);
	for (int i = 0; i < BUILDS; i++) {
		wanted[i % KINDS] |= all[i].result == 0;
		cloche_image_build_free(all[i].build);
	}
	for (int k = 0; k < KINDS; k++)
		check(wanted[k]);
	check_int(count_in("state/builds", is_no_lock), 0);
	check_int(count_in("built", is_any), 2 * KINDS);
}

static void put_program(const char *name, const char *text)
{
	_cleanup_(freep) char *path = fs_join(dir, name);

	must(path && fs_write_atomic(AT_FDCWD, path, str_from(text), 0755, false, NULL) == 0 &&
		chmod(path, 0755) == 0);
}

static void set(const char *variable, const char *name)
{
	_cleanup_(freep) char *path = fs_join(dir, name);

	must(path && setenv(variable, path, 1) == 0 && fs_mkdirs(path, 0700, NULL) == 0);
}

static void run_maker(void)
{
	_cleanup_(freep) char *program = fs_join(dir, "make"), *layout = fs_join(dir, "layout");
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (program && layout)
			execl("/bin/sh", "sh", program, layout, NULL);
		_exit(1);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

struct temporary {
	cloche_job *job;
	struct image_store *store;
};

static int make_temporary(void *user, cloche_err *err)
{
	const struct temporary *t = user;
	char name[IMAGE_TEMP_NAME];
	int fd;

	cloche_job_cancel(t->job);
	fd = image_temp_make(t->store, name, err);
	if (fd >= 0)
		close(fd);
	return MIN(fd, 0);
}

static int count_entries(int at)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(at, ".");
	int n = 0;

	must(list);
	while (fs_list_next(list))
		n++;
	return n;
}

static void test_a_cancelled_job_makes_no_temporary_directory(void)
{
	_cleanup_(image_store_closep) struct image_store store = IMAGE_STORE_NULL;
	struct temporary t = {.store = &store};
	cloche_err err = CLOCHE_ERR_INIT;
	int before;

	must(image_store_open(&store, &err) == 0);
	before = count_entries(store.dir);
	must(cloche_job_start(make_temporary, &t, &t.job, &err) == 0);
	check_int(cloche_job_dispatch(t.job, &err), -E_CANCELLED);
	check_int(count_entries(store.dir), before);
	cloche_job_free(t.job);
}

int main(void)
{
	char command[512], path[256];
	char here;

	loop_stack = &here;
	fd_raise_limit();
	/* As shipped: a sanitized one would need more than its filter of system calls permits. */
	must(setenv("CLOCHE_LIBEXEC", SOURCE_DIR "/build/bin", 1) == 0);
	tap_dir(dir);
	set("CLOCHE_STATE_DIR", "state");
	set("LAYOUT", "layout");
	set("BUILT", "built");
	snprintf(path, sizeof(path), "%s/bin", dir);
	must(fs_mkdirs(path, 0700, NULL) == 0);
	put_program("bin/skopeo", skopeo);
	put_program("bin/docker", engine);
	put_program("make", make_layout);
	run_maker();
	snprintf(command, sizeof(command), "%s:%s", path, getenv("PATH"));
	must(setenv("PATH", command, 1) == 0);
	run_test(test_pulls);
	run_test(test_nothing_of_a_cancelled_pull_stays);
	run_test(test_a_cancelled_job_makes_no_temporary_directory);
	run_test(test_builds);
	(void)fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
