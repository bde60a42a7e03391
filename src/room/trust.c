/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The files of trust.h are written into the room's own tmpfs: the gateway's certificate alone, for
 * run-times that add it to their built-in roots, and a bundle of the root's certificates and it,
 * for those that replace them. The bundle is also mounted over each of the usual paths that the
 * root has, so that programs that read no variable find it. A trust store for Java with the same
 * certificates is mounted over those of its run-times. If several paths are links to one file, the
 * mount is made once. Browsers read policies in /etc, which are links that were made earlier. */
#include "jail/trust.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "jail/sys.h"
#include "room/keystore.h"
#include "room/mount.h"
#include "room/parts.h"
#include "room/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MAX_ROOTS = 32 << 20, MAX_CA = 256 * 1024, MAX_JAVAS = 64 };
#define PATIENCE_USEC (10 * USEC_PER_SEC)

static const char *const bundle_paths[] = {"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
	"/usr/lib/ssl/cert.pem", "/usr/local/share/certs/ca-root-nss.crt", NULL};
static const char *const store_paths[] = {"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts",
	"/etc/pki/ca-trust/extracted/java/cacerts", "/etc/java/cacerts",
	"/opt/java/openjdk/lib/security/cacerts", "/usr/java/default/lib/security/cacerts", NULL};
/* Directories with a run-time in each entry, and the paths of its store in there. */
static const char *const java_homes[] = {"/usr/lib/jvm", "/usr/java", "/opt/jdk", NULL};
static const char *const java_stores[] = {"lib/security/cacerts", "jre/lib/security/cacerts", NULL};

/* Read the first bundle that the root has. A root without one is fine. */
static int read_roots(const struct target_root *root, struct buf *ret, struct cloche_err *err)
{
	const char *const *path;

	for (path = bundle_paths; *path; path++) {
		/* A fifo there must not block us. */
		_cleanup_fd_ int in =
			sys_openat2(root->fd, *path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		struct stat st;
		int r;

		if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_ROOTS)
			continue;
		r = fd_read_to_end(in, ret);
		/* The last line may lack a line break. */
		if (r == 0)
			r = buf_add_char(ret, '\n');
		return r < 0 ? err_sys(err, -r, "read %s", *path) : 0;
	}
	return 0;
}

int trust_read(int fd, struct buf *ret, struct cloche_err *err)
{
	uint64_t end = clock_mono_usec() + PATIENCE_USEC, now;
	char *at;
	ssize_t n;

	while ((now = clock_mono_usec()) < end) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, (int)((end - now) / USEC_PER_MSEC) + 1) <= 0)
			continue;
		if (buf_reserve(ret, 4096, &at) < 0)
			return err_set(err, E_NETWORK, "too many certificates of the gateway");
		n = read(fd, at, 4096);
		if (n > 0)
			buf_commit(ret, (size_t)n);
		else if (n == 0)
			break;
		else if (errno != EAGAIN && errno != EINTR)
			return err_sys(err, errno, "read the gateway's certificate");
	}
	if (now >= end)
		return err_set(err, E_NETWORK, "the gateway's certificate did not come");
	if (str_find(buf_str(ret), STR("-----BEGIN CERTIFICATE-----")) == buf_len(ret))
		return err_set(err, E_NETWORK, "the gateway ended without a certificate");
	return 0;
}

/* Write one of the room's files from two parts: path is TRUST_DIR "/" name. ret_fd may be NULL. */
static int write_new(int dir, const char *path, struct str one, struct str two, int *ret_fd,
	struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(
		dir, path + sizeof(TRUST_DIR), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "write %s", path);
	r = one.n ? fd_write_all(fd, one.p, one.n) : 0;
	if (r == 0 && two.n)
		r = fd_write_all(fd, two.p, two.n);
	if (r < 0)
		return err_sys(err, -r, "write %s", path);
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

/* {"CACertificates": ["base64", ...]}: the text between the PEM marks, without line breaks. */
static int make_chromium_policy(struct str pem, struct buf *ret)
{
	int r = buf_add_str(ret, STR("{\"CACertificates\": ["));
	struct str text;

	for (bool first = true; r == 0 && keystore_next_pem(&pem, &text); first = false) {
		r = buf_add_str(ret, first ? STR("\"") : STR(", \""));
		for (size_t i = 0; i < text.n && r == 0; i++)
			if (text.p[i] > ' ' && text.p[i] != '"' && text.p[i] != '\\')
				r = buf_add_char(ret, text.p[i]);
		if (r == 0)
			r = buf_add_char(ret, '"');
	}
	return r < 0 ? r : buf_add_str(ret, STR("]}\n"));
}

static int write_policies(int dir, struct str pem, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf policy = BUF_INIT(2 * MAX_CA);
	int r;

	if (make_chromium_policy(pem, &policy) < 0)
		return err_nomem(err);
	r = write_new(dir, TRUST_CHROMIUM_PATH, buf_str(&policy), STR_NULL, NULL, err);
	return r < 0 ? r
		     : write_new(dir, TRUST_FIREFOX_PATH,
			       STR("{\"policies\": {\"Certificates\": {\"Install\": "
				   "[\"" TRUST_CA_PATH "\"]}}}\n"),
			       STR_NULL, NULL, err);
}

int trust_link_policies(int root, struct cloche_err *err)
{
	/* Parents before children: the policies of chromium and its relatives, then those of
	 * Firefox. */
	static const char *const dirs[] = {"etc", "etc/opt", "etc/chromium",
		"etc/chromium/policies", "etc/chromium/policies/managed", "etc/opt/chrome",
		"etc/opt/chrome/policies", "etc/opt/chrome/policies/managed",
		"etc/opt/chrome_for_testing", "etc/opt/chrome_for_testing/policies",
		"etc/opt/chrome_for_testing/policies/managed", "etc/opt/edge",
		"etc/opt/edge/policies", "etc/opt/edge/policies/managed", "etc/firefox",
		"etc/firefox/policies", NULL};
	static const struct {
		const char *path, *to;
	} links[] = {{"etc/chromium/policies/managed/cloche.json", TRUST_CHROMIUM_PATH},
		{"etc/opt/chrome/policies/managed/cloche.json", TRUST_CHROMIUM_PATH},
		{"etc/opt/chrome_for_testing/policies/managed/cloche.json", TRUST_CHROMIUM_PATH},
		{"etc/opt/edge/policies/managed/cloche.json", TRUST_CHROMIUM_PATH},
		{"etc/firefox/policies/policies.json", TRUST_FIREFOX_PATH}};
	int r = parts_mkdirs(root, dirs, 0755, err);

	for (size_t i = 0; i < ARRAY_SIZE(links) && r == 0; i++)
		/* A kept layer has them already. */
		if (symlinkat(links[i].to, root, links[i].path) < 0 && errno != EEXIST)
			r = err_sys(err, errno, "make the link /%s", links[i].path);
	return r;
}

/* Mount the file over `path` if another file is there. */
static int trust_cover(
	const struct target_root *root, int file, const char *path, struct cloche_err *err)
{
	_cleanup_fd_ int at = target_find(root, path, err), tree = -1;
	struct stat st, own;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	if (fstat(at, &st) < 0 || fstat(file, &own) < 0)
		return err_sys(err, errno, "look at %s", path);
	if (!S_ISREG(st.st_mode) || (st.st_dev == own.st_dev && st.st_ino == own.st_ino))
		return 0;
	tree = mount_clone(file, "", MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	return tree < 0 ? tree : mount_attach(tree, at, "", path, err);
}

static int cover_all(
	const struct target_root *root, int file, const char *const *paths, struct cloche_err *err)
{
	int r = 0;

	for (; *paths && r == 0; paths++)
		r = trust_cover(root, file, *paths, err);
	return r;
}

/* Cover the stores of the run-times in one directory, up to a limit. */
static int cover_javas(
	const struct target_root *root, int store, const char *homes, struct cloche_err *err)
{
	int fd = sys_openat2(root->fd, homes, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char path[512];
	int r = 0;

	if (!dir) {
		fd_close(fd);
		return 0; /* no Java */
	}
	for (int n = 0; r == 0 && n < MAX_JAVAS && (entry = readdir(dir)); n++)
		for (const char *const *s = java_stores; *s && r == 0; s++) {
			snprintf(path, sizeof(path), "%s/%s/%s", homes, entry->d_name, *s);
			if (entry->d_name[0] != '.')
				r = trust_cover(root, store, path, err);
		}
	closedir(dir);
	return r;
}

static int write_store(int dir, const struct buf *bags, int *ret_fd, struct cloche_err *err)
{
	char head[KEYSTORE_HEAD_MAX];
	size_t n = keystore_head(buf_len(bags), head);

	return write_new(dir, TRUST_STORE_PATH, str_make(head, n), buf_str(bags), ret_fd, err);
}

static int write_bundle(
	int dir, struct str roots, struct str pem, int *ret_fd, struct cloche_err *err)
{
	int r = write_new(dir, TRUST_CA_PATH, pem, STR_NULL, NULL, err);

	if (r == 0)
		r = write_new(dir, TRUST_BUNDLE_PATH, roots, pem, ret_fd, err);
	if (r < 0)
		return r;
	if (mkdirat(dir, "certs", 0755) < 0 ||
		symlinkat("../ca-bundle.crt", dir, "certs/ca-bundle.crt") < 0)
		return err_sys(err, errno, "make %s", TRUST_CERTS_PATH);
	return 0;
}

/* Write the files to a directory: the certificates of the root, and those from ca_fd. */
static int trust_write(const struct target_root *root, int dir, int ca_fd, int *ret_bundle,
	int *ret_store, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf pem = BUF_INIT(MAX_CA), roots = BUF_INIT(MAX_ROOTS + 1);
	_cleanup_(buf_donep) struct buf bags = BUF_INIT(2 * MAX_ROOTS);
	/* Work that does not need the certificates comes first, while the broker starts. */
	int r = read_roots(root, &roots, err);

	if (r == 0 && keystore_add_pem(&bags, buf_str(&roots)) < 0)
		r = err_nomem(err);
	if (r == 0)
		r = trust_read(ca_fd, &pem, err);
	if (r == 0 && keystore_add_pem(&bags, buf_str(&pem)) < 0)
		r = err_nomem(err);
	if (r == 0)
		r = write_bundle(dir, buf_str(&roots), buf_str(&pem), ret_bundle, err);
	if (r == 0)
		r = write_store(dir, &bags, ret_store, err);
	return r == 0 ? write_policies(dir, buf_str(&pem), err) : r;
}

int trust_write_here(int dir, int ca_fd, struct cloche_err *err)
{
	_cleanup_fd_ int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), bundle = -1, store = -1;
	const struct target_root root = {.fd = top};

	if (top < 0)
		return err_sys(err, errno, "open /");
	return trust_write(&root, dir, ca_fd, &bundle, &store, err);
}

int trust_install(const struct target_root *root, int ca_fd, struct cloche_err *err)
{
	_cleanup_fd_ int dir = target_find(root, TRUST_DIR, err), bundle = -1, store = -1;
	int r;

	if (dir < 0)
		return dir == -ENOENT ? err_sys(err, ENOENT, "find %s", TRUST_DIR) : dir;
	r = trust_write(root, dir, ca_fd, &bundle, &store, err);
	if (r == 0)
		r = cover_all(root, bundle, bundle_paths, err);
	if (r == 0)
		r = cover_all(root, store, store_paths, err);
	for (const char *const *homes = java_homes; r == 0 && *homes; homes++)
		r = cover_javas(root, store, *homes, err);
	return r;
}
