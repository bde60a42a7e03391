/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * Two files are written into the room's own tmpfs: the gateway's certificate alone, for run-times
 * that add to their built-in roots, and a bundle of the root's certificates and it, for those that
 * replace them. The bundle is also mounted over each of the usual paths that the root has, so that
 * programs which look at no variable find it. Where several paths are links to one file the mount
 * is made once. */
#include "jail/trust.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "jail/mount.h"
#include "jail/parts.h"
#include "jail/sys.h"
#include "jail/target.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { MAX_ROOTS = 32 << 20 };
#define PATIENCE_USEC (10 * USEC_PER_SEC)

static const char *const bundle_paths[] = {"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
	"/usr/lib/ssl/cert.pem", "/usr/local/share/certs/ca-root-nss.crt", NULL};

static const struct trust_env env_table[] = {
	/* These add to what they have. */
	{"NODE_EXTRA_CA_CERTS", TRUST_CA_PATH},
	{"DENO_CERT", TRUST_CA_PATH},
	/* These replace it. */
	{"SSL_CERT_FILE", TRUST_BUNDLE_PATH},
	{"CURL_CA_BUNDLE", TRUST_BUNDLE_PATH},
	{"REQUESTS_CA_BUNDLE", TRUST_BUNDLE_PATH},
	{"GIT_SSL_CAINFO", TRUST_BUNDLE_PATH},
	{"AWS_CA_BUNDLE", TRUST_BUNDLE_PATH},
	{"PIP_CERT", TRUST_BUNDLE_PATH},
	{"CARGO_HTTP_CAINFO", TRUST_BUNDLE_PATH},
	{"NIX_SSL_CERT_FILE", TRUST_BUNDLE_PATH},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", TRUST_BUNDLE_PATH},
	{"BUNDLE_SSL_CA_CERT", TRUST_BUNDLE_PATH},
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", TRUST_BUNDLE_PATH},
	{"HEX_CACERTS_PATH", TRUST_BUNDLE_PATH},
	{"npm_config_cafile", TRUST_BUNDLE_PATH},
};

const struct trust_env *trust_env_table(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(env_table);
	return env_table;
}

const char *const *trust_bundle_paths(void)
{
	return bundle_paths;
}

/* Appends the first bundle that the root has to `out`. A root without one is fine. */
static int copy_roots(const struct target_root *root, int out, struct cloche_err *err)
{
	const char *const *path;

	for (path = bundle_paths; *path; path++) {
		/* A fifo there must not hold us up. */
		_cleanup_fd_ int in =
			sys_openat2(root->fd, *path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		struct stat st;
		ssize_t n;

		if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_ROOTS)
			continue;
		do
			n = sendfile(out, in, NULL, (size_t)st.st_size);
		while (n > 0 && (st.st_size -= n) > 0);
		if (n < 0)
			return err_sys(err, errno, "copy %s", *path);
		/* The last line may lack its end. */
		return fd_write_all(out, "\n", 1) < 0 ? err_sys(err, EIO, "copy %s", *path) : 0;
	}
	return 0;
}

/* path: TRUST_DIR "/" name. */
static int write_new(
	const struct target_root *root, const char *path, int *ret_fd, struct cloche_err *err)
{
	_cleanup_fd_ int dir = target_find(root, TRUST_DIR, err);
	int fd;

	if (dir < 0)
		return dir == -ENOENT ? err_sys(err, ENOENT, "write %s", path) : dir;
	fd = openat(dir, path + sizeof(TRUST_DIR), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return err_sys(err, errno, "write %s", path);
	*ret_fd = fd;
	return 0;
}

/* Mounts the bundle over `path` if something is there that is not the bundle yet. */
static int cover(const struct target_root *root, int bundle, const char *path,
	const struct stat *own, struct cloche_err *err)
{
	_cleanup_fd_ int at = target_find(root, path, err), tree = -1;
	struct stat st;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	if (fstat(at, &st) < 0)
		return err_sys(err, errno, "look at %s", path);
	if (!S_ISREG(st.st_mode) || (st.st_dev == own->st_dev && st.st_ino == own->st_ino))
		return 0;
	tree = mount_clone(bundle, "", MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	if (tree < 0)
		return tree;
	return mount_attach(tree, at, "", path, err);
}

/* Whoever makes the certificates started together with the room. */
static int read_certificates(int fd, struct buf *ret, struct cloche_err *err)
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

int trust_install(const struct target_root *root, int ca_fd, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf pem = BUF_INIT(256 * 1024);
	_cleanup_fd_ int alone = -1, bundle = -1;
	const char *const *path;
	struct stat own;
	int r;

	r = write_new(root, TRUST_CA_PATH, &alone, err);
	if (r == 0)
		r = write_new(root, TRUST_BUNDLE_PATH, &bundle, err);
	if (r == 0)
		r = copy_roots(root, bundle, err);
	if (r == 0)
		r = read_certificates(ca_fd, &pem, err);
	if (r < 0)
		return r;
	r = fd_write_all(alone, buf_data(&pem), buf_len(&pem));
	if (r == 0)
		r = fd_write_all(bundle, buf_data(&pem), buf_len(&pem));
	if (r < 0 || fstat(bundle, &own) < 0)
		return err_sys(err, r < 0 ? -r : errno, "write the certificates");
	r = 0;
	for (path = bundle_paths; *path && r == 0; path++)
		r = cover(root, bundle, *path, &own, err);
	return r;
}
