/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A room that uses the host's programs needs the files that these read in /etc. Files that packages
 * brought and that are unchanged are shown (shipped.h), as a layer of the room's /etc below the
 * room's own files. A few other files are named one by one: they are made on each machine or
 * changed by its users, but contain no secrets: the linker's cache, certificate authorities, the
 * targets of "alternatives", package sources. Everything else of the host's /etc stays out, in
 * particular accounts, keys, machine-id, and settings that may contain passwords and tokens (npmrc,
 * pip.conf, gitconfig, environment, apt's auth.conf and changed parts of apt.conf.d). Accounts,
 * host names and name resolution are the room's own. */
#include "base/fd.h"
#include "base/program.h"
#include "ipc/rundir.h"
#include "jail/sys.h"
#include "room/layers.h"
#include "room/mount.h"
#include "room/parts.h"
#include "room/shipped.h"
#include "room/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Mounted: directories, and files that are large or follow changes of the machine. These and the
 * following paths are relative to the root. */
static const char *const live[] = {"etc/alternatives", "etc/ssl/certs", "etc/pki/ca-trust",
	"etc/pki/tls/certs", "etc/crypto-policies", "etc/apt/sources.list.d",
	"etc/apt/trusted.gpg.d", "etc/apt/keyrings", "etc/ld.so.cache", "etc/apt/sources.list",
	NULL};
/* Part of the copy of what packages brought, changed or not; mounted if there is no copy. */
static const char *const named[] = {"etc/ld.so.conf.d", "etc/fonts", "etc/java-8-openjdk",
	"etc/java-11-openjdk", "etc/java-17-openjdk", "etc/java-21-openjdk", "etc/java-25-openjdk",
	"etc/maven", "etc/apt/preferences.d", "etc/ssl/openssl.cnf", "etc/mime.types",
	"etc/services", "etc/protocols", "etc/ld.so.conf", "etc/bash.bashrc", "etc/login.defs",
	NULL};
/* Links whose target is in /usr. */
static const char *const links[] = {"localtime", "os-release"};

/* Directories of a system that a package manager expects. */
static const char *const state_dirs[] = {"var", "var/lib", "var/lib/dpkg", "var/cache", "var/log",
	"var/spool", "home", "mnt", "opt", "srv", NULL};

/* Without a network, every
 * name is unknown at once: nsswitch.conf lists the hosts file alone, and programs that still ask a
 * server (musl does not know nsswitch.conf) do not wait for one. */
#define ETC_HOSTS(address)                                                                         \
	STR("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" address              \
	    " " ROOTFS_HOSTNAME "\n")
#define ETC_NSSWITCH(dns)                                                                          \
	STR("passwd: files\ngroup: files\nshadow: files\nhosts: files" dns                         \
	    "\nnetworks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n")
/* The same in every room without a network, so they are part of the copy of what packages brought.
 */
static const struct shipped_own own[] = {{"etc/hosts", ETC_HOSTS("127.0.0.1")},
	{"etc/hostname", STR(ROOTFS_HOSTNAME "\n")},
	{"etc/resolv.conf", STR("# no network\noptions timeout:0 attempts:1\n")},
	{"etc/nsswitch.conf", ETC_NSSWITCH("")},
	/* The same with a gateway. */
	{"etc/ssl", STR_NULL}, {"etc/pki", STR_NULL}, {"etc/pki/tls", STR_NULL},
	{"etc/apt", STR_NULL}, {"etc/apt/apt.conf.d", STR_NULL}, {"etc/pam.d", STR_NULL},
	/* apt would switch to a user, which is impossible with a single mapped id. */
	{"etc/apt/apt.conf.d/90cloche", STR("APT::Sandbox::User \"root\";\n")},
	{"etc/profile", STR("PATH=${PATH:-" SYSTEM_PATH "}\n"
			    "export PATH\n"
			    "[ -z \"$BASH_VERSION\" ] || [ ! -r /etc/bash.bashrc ] || . "
			    "/etc/bash.bashrc\n")},
	/* Modules that the files of su(1), runuser(1) and others include: root may do all of it,
	 * and nobody else has a password. The host's own versions are made by a script of Debian's
	 * package, not brought by it. */
	{"etc/pam.d/common-auth", STR("auth required pam_deny.so\n")},
	{"etc/pam.d/common-account", STR("account required pam_permit.so\n")},
	{"etc/pam.d/common-password", STR("password required pam_deny.so\n")},
	{"etc/pam.d/common-session", STR("session required pam_permit.so\n")},
	{"etc/pam.d/common-session-noninteractive", STR("session required pam_permit.so\n")},
	{NULL, STR_NULL}};
/* How many of them, from the first on, are names and addresses, and how many depend on the network.
 */
enum { OWN_NAMES = 3, OWN_BY_NETWORK = 4, OWN_ALL = ARRAY_SIZE(own) - 1 };
static const struct str with_gateway[OWN_BY_NETWORK] = {ETC_HOSTS("100.64.0.2"),
	STR(ROOTFS_HOSTNAME "\n"), STR("nameserver " ROOTFS_NAMESERVER "\n"), ETC_NSSWITCH(" dns")};

static struct str own_text(size_t i, bool gateway)
{
	return gateway && i < OWN_BY_NETWORK ? with_gateway[i] : own[i].text;
}

/* Make the files and directories `from` to before `end` of own; root has etc/. */
static int add_own(int root, size_t from, size_t end, bool gateway, struct cloche_err *err)
{
	int e = 0;

	for (size_t i = from; i < end && e == 0; i++)
		e = own[i].text.p ? parts_file(root, own[i].path, own_text(i, gateway), err)
				  : parts_mkdir(root, own[i].path, 0755, err);
	return e;
}

static int mount_name(const struct target_root *root, int files, int etc, const char *name,
	struct str text, struct cloche_err *err)
{
	_cleanup_fd_ int tree = -1, at = -1;
	char path[32];
	int e = parts_file(files, name, text, err);

	if (e < 0)
		return e;
	tree = mount_clone(files, name, 0, err);
	if (tree < 0)
		return tree;
	snprintf(path, sizeof(path), "/etc/%s", name);
	/* Remove a link that leads nowhere; it belongs to the overlay, not to the directory below.
	 */
	if (target_find(root, path, NULL) == -ENOENT)
		(void)unlinkat(etc, name, 0);
	at = target_open(root, path, false, err);
	return at < 0 ? at : mount_attach(tree, at, "", path, err);
}

/* In an overlay, /etc stays as it was except for the names, which are mounted over it: they are
 * this room's own, and the usual link to a resolver's file would lead nowhere. */
int rootfs_mount_names(
	bool gateway, const struct target_root *root, int files, struct cloche_err *err)
{
	_cleanup_fd_ int etc = target_open(root, "/etc", true, err);
	int e = MIN(etc, 0);

	for (size_t i = 0; i < OWN_NAMES && e == 0; i++)
		e = mount_name(
			root, files, etc, own[i].path + strlen("etc/"), own_text(i, gateway), err);
	return e;
}

int rootfs_open_shipped(void)
{
	_cleanup_fd_ int base = rundir_open_usual(NULL);

	return base < 0 ? -1 : MAX(shipped_open(base, own, named, live), -1);
}

int etc_clone_shipped(int shipped, bool apart)
{
	return MAX(
		mount_clone_opened(shipped, apart, MOUNT_ATTR_RDONLY | PARTS_QUIET, "", NULL), -1);
}

static int show_all(struct parts_view *v, const char *const *paths, struct cloche_err *err)
{
	uint64_t attrs = MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC;
	char source[64];
	struct stat st;
	int e = 0;

	for (; *paths && e == 0; paths++) {
		snprintf(source, sizeof(source), "/%s", *paths);
		if (stat(source, &st) == 0)
			e = parts_show(v, source, *paths, S_ISDIR(st.st_mode), attrs, err);
	}
	return e;
}

/* copy: as in make_own. */
static int add_links(int host, int root, int copy, struct cloche_err *err)
{
	char source[64], to[256];
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		snprintf(source, sizeof(source), "/etc/%s", links[i]);
		if (copy >= 0 && faccessat(copy, source + 1, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		n = readlinkat(host, host < 0 ? source : source + 1, to, sizeof(to) - 1);
		if (n <= 0)
			continue;
		to[n] = '\0';
		if (symlinkat(to, root, source + 1) < 0)
			return err_sys(err, errno, "make the link %s", source);
	}
	return 0;
}

/* Debian's script for chromium reads every file of this directory and fails if there is none. The
 * host's files may contain keys. */
static int add_chromium(int host, int root, struct cloche_err *err)
{
	int e = faccessat(host, host < 0 ? "/etc/chromium.d" : "etc/chromium.d", F_OK, 0) < 0
			? 1
			: parts_mkdir(root, "etc/chromium.d", 0755, err);

	return e ? MIN(e, 0) : parts_file(root, "etc/chromium.d/cloche", STR_NULL, err);
}

/* Make the files of /etc that are this room's own, without those of `own`; root is where etc/ lies.
 * host: the host's root; AT_FDCWD: it is our own root. user: the spec whose user gets an account;
 * NULL: nobody does. copy: what packages brought, which lies below; -1: nothing does. */
static int make_own(
	int host, int root, const struct room_spec *user, int copy, struct cloche_err *err)
{
	int e = parts_mkdir(root, "etc", 0755, err);

	if (e == 0)
		e = add_links(host, root, copy, err);
	if (e == 0)
		e = accounts_make(root, user, err);
	return e < 0 ? e : add_chromium(host, root, err);
}

/* Make /etc as an overlay: the room's own files over what packages brought. The layers of the
 * former lie in the directory that the overlay then covers, where no process inside can reach them.
 */
static int make_layered(
	struct parts_view *v, const struct rootfs *r, bool *ret_is_layered, struct cloche_err *err)
{
	bool gateway = r->spec->net == ROOM_NET_GATEWAY;
	size_t differ = gateway ? OWN_BY_NETWORK : 0; /* of own, from the copy */
	_cleanup_fd_ int base = -1, tree = -1;
	int e = parts_mkdir(v->root, "etc", 0755, err);

	if (e < 0)
		return e;
	base = openat(v->root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return err_sys(err, errno, "open /etc of the room");
	e = parts_mkdir(base, "work", 0700, err);
	if (e == 0)
		e = make_own(AT_FDCWD, base, r->spec, r->shipped, err);
	if (e == 0)
		e = add_own(base, 0, differ, gateway, err);
	if (e == 0)
		e = mount_attach(r->shipped_tree, AT_FDCWD, LAYERS_ASIDE, "/etc of packages", err);
	if (e < 0)
		return e;
	tree = layers_mount(base, LAYERS_ASIDE "/etc", "etc", "work", NULL);
	*ret_is_layered = tree >= 0;
	/* If the kernel makes no overlay for this user. */
	if (tree < 0 && (e = add_own(base, differ, OWN_ALL, gateway, err)) == 0)
		tree = mount_clone(base, "etc", 0, err);
	return e < 0 ? e : tree < 0 ? tree : mount_attach(tree, v->root, "etc", "/etc", err);
}

static int make_state(int root, struct cloche_err *err)
{
	int e = parts_mkdirs(root, state_dirs, 0755, err);

	if (e == 0)
		e = parts_mkdir(root, "var/tmp", 01777, err);
	if (e == 0 && symlinkat("/run", root, "var/run") < 0)
		e = err_sys(err, errno, "make the link /var/run");
	return e < 0 ? e : parts_file(root, "var/lib/dpkg/status", STR(""), err);
}

int etc_make(struct parts_view *v, const struct rootfs *r, struct cloche_err *err)
{
	bool is_layered = false, gateway = r->spec->net == ROOM_NET_GATEWAY;
	int e;

	/* A view that defers lies below an overlay itself: see rootfs.c. */
	if (r->shipped_tree >= 0 && !v->defer) {
		e = make_layered(v, r, &is_layered, err);
	} else {
		e = make_own(AT_FDCWD, v->root, r->spec, -1, err);
		if (e == 0)
			e = add_own(v->root, 0, OWN_ALL, gateway, err);
	}
	if (e == 0)
		e = make_state(v->root, err);
	if (e == 0)
		e = accounts_make_home(v->root, r->spec, err);
	if (e == 0)
		e = show_all(v, live, err);
	if (e == 0 && !is_layered)
		e = show_all(v, named, err);
	return e < 0 ? e : parts_mkdir(v->root, "root", 0700, err);
}

int etc_make_plain(int host, int root, bool gateway, struct cloche_err *err)
{
	/* Files that an engine puts into every root. */
	static const char *const made[] = {"etc/passwd", "etc/group", "etc/nsswitch.conf",
		"etc/profile", "etc/localtime", "etc/os-release"};
	int e;

	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		(void)unlinkat(root, made[i], 0);
	e = make_own(host, root, NULL, -1, err);
	if (e == 0)
		e = add_own(root, OWN_NAMES, OWN_ALL, gateway, err);
	return e < 0 ? e : make_state(root, err);
}

static void each_there(const char *const *paths, hostview_fn fn, void *user)
{
	char source[64];
	struct stat st;

	for (; *paths; paths++) {
		snprintf(source, sizeof(source), "/%s", *paths);
		if (stat(source, &st) == 0)
			fn(user, source, S_ISDIR(st.st_mode));
	}
}

void etc_each(hostview_fn fn, void *user)
{
	each_there(live, fn, user);
	each_there(named, fn, user);
}
