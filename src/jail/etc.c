/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A room that uses the host's programs needs what these read in /etc to work at all: the linker's
 * cache, certificate authorities, the targets of "alternatives", where package sources are. Those
 * are named one by one below and shown read-only; everything else of the host's /etc stays out, in
 * particular accounts, keys, machine-id, profile.d, and settings in which people keep passwords and
 * tokens (npmrc, pip.conf, gitconfig, environment, apt's auth.conf and apt.conf.d). Accounts, host
 * names and name resolution are the room's own. */
#include "base/buf.h"
#include "base/fd.h"
#include "jail/mount.h"
#include "jail/parts.h"
#include "jail/sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* Mounted: directories, and files that are large. */
static const char *const shown_dirs[] = {"alternatives", "ssl/certs", "ld.so.conf.d",
	"pki/ca-trust", "pki/tls/certs", "crypto-policies", "fonts", "java-8-openjdk",
	"java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "maven",
	"apt/sources.list.d", "apt/trusted.gpg.d", "apt/keyrings", "apt/preferences.d"};
static const char *const shown_files[] = {"ld.so.cache", "ssl/openssl.cnf", "mime.types",
	"services", "protocols", "ld.so.conf", "bash.bashrc", "login.defs", "apt/sources.list"};
/* Links whose target is in /usr. */
static const char *const links[] = {"localtime", "os-release"};

/* Directories of a system that a package manager expects. */
static const char *const state_dirs[] = {"var", "var/lib", "var/lib/apt", "var/lib/apt/lists",
	"var/lib/apt/lists/partial", "var/lib/dpkg", "var/cache", "var/cache/apt",
	"var/cache/apt/archives", "var/cache/apt/archives/partial", "var/log", "var/spool", "home",
	"mnt", "opt", "srv"};

static const char passwd_root[] = "root:x:0:0:root:/root:%s\n"
				  "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
				  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group_text[] = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nstaff:x:50:\nusers:x:100:\n"
				 "nogroup:x:65534:\n";
static const char nsswitch_text[] = "passwd: files\ngroup: files\nshadow: files\n"
				    "hosts: files%s\nnetworks: files\nprotocols: files\n"
				    "services: files\nethers: files\nrpc: files\n";
static const char profile_text[] =
	"PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\n"
	"export PATH\n[ -z \"$BASH_VERSION\" ] || [ ! -r /etc/bash.bashrc ] || . "
	"/etc/bash.bashrc\n";
/* apt would drop to a user that a single mapped id cannot become. */
static const char apt_text[] = "APT::Sandbox::User \"root\";\n";

int etc_hosts(const struct rootfs *r, struct buf *ret)
{
	return buf_printf(ret,
		"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s\n",
		r->gateway ? "100.64.0.2" : "127.0.0.1", r->hostname);
}

/* Without a network every name is unknown, at once: what is asked for a name asks the file of hosts
 * alone, and who asks a server all the same (musl knows no nsswitch.conf) does not wait for one. */
int etc_resolv_conf(const struct rootfs *r, struct buf *ret)
{
	return buf_printf(ret, r->gateway ? "nameserver " ROOTFS_NAMESERVER "\n"
					  : "# no network\noptions timeout:0 attempts:1\n");
}

static int etc_nsswitch(const struct rootfs *r, struct buf *ret)
{
	return buf_printf(ret, nsswitch_text, r->gateway ? " dns" : "");
}

static int add_accounts(int root, const struct rootfs *r, struct cloche_err *err)
{
	const char *shell = access("/usr/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	_cleanup_(buf_donep) struct buf passwd = BUF_INIT(4096), group = BUF_INIT(4096);
	uint32_t uid = r->ids.uid, gid = r->ids.gid;
	int e = buf_printf(&passwd, passwd_root, shell);

	if (e == 0 && uid != 0)
		e = buf_printf(&passwd, "agent:x:%u:%u:agent:/home/agent:%s\n", uid, gid, shell);
	if (e == 0)
		e = buf_add(&group, group_text, sizeof(group_text) - 1);
	if (e == 0 && gid != 0)
		e = buf_printf(&group, "agent:x:%u:\n", gid);
	if (e < 0)
		return err_nomem(err);
	e = parts_file(root, "etc/passwd", buf_str(&passwd), err);
	return e < 0 ? e : parts_file(root, "etc/group", buf_str(&group), err);
}

static int add_names(int root, const struct rootfs *r, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf hosts = BUF_INIT(4096), resolv = BUF_INIT(4096);
	_cleanup_(buf_donep) struct buf name = BUF_INIT(4096), nsswitch = BUF_INIT(4096);
	int e;

	if (etc_hosts(r, &hosts) < 0 || etc_resolv_conf(r, &resolv) < 0 ||
		etc_nsswitch(r, &nsswitch) < 0 || buf_printf(&name, "%s\n", r->hostname) < 0)
		return err_nomem(err);
	e = parts_file(root, "etc/hosts", buf_str(&hosts), err);
	if (e == 0)
		e = parts_file(root, "etc/hostname", buf_str(&name), err);
	if (e == 0)
		e = parts_file(root, "etc/nsswitch.conf", buf_str(&nsswitch), err);
	return e < 0 ? e : parts_file(root, "etc/resolv.conf", buf_str(&resolv), err);
}

static int show_host_files(struct parts_view *v, struct cloche_err *err)
{
	uint64_t attrs = MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC;
	char source[64], to[256];
	ssize_t n;
	size_t i;
	int e = 0;

	for (i = 0; i < ARRAY_SIZE(shown_dirs) && e == 0; i++) {
		snprintf(source, sizeof(source), "/etc/%s", shown_dirs[i]);
		e = parts_show(v, source, source + 1, true, attrs, err);
	}
	for (i = 0; i < ARRAY_SIZE(shown_files) && e == 0; i++) {
		snprintf(source, sizeof(source), "/etc/%s", shown_files[i]);
		e = parts_show(v, source, source + 1, false, attrs, err);
	}
	for (i = 0; i < ARRAY_SIZE(links) && e == 0; i++) {
		snprintf(source, sizeof(source), "/etc/%s", links[i]);
		n = readlink(source, to, sizeof(to) - 1);
		if (n <= 0)
			continue;
		to[n] = '\0';
		if (symlinkat(to, v->root, source + 1) < 0)
			e = err_sys(err, errno, "make the link %s", source);
	}
	return e;
}

static int add_home(int root, const struct rootfs *r, struct cloche_err *err)
{
	int e = parts_mkdir(root, "root", 0700, err);

	if (e < 0 || r->ids.uid == 0)
		return e;
	e = parts_mkdir(root, "home/agent", 0700, err);
	/* A single id owns everything anyhow. */
	if (e == 0 && r->ids.range && fchownat(root, "home/agent", r->ids.uid, r->ids.gid, 0) < 0)
		e = err_sys(err, errno, "give /home/agent to its user");
	return e;
}

/* Debian's script for chromium reads every file of this directory and insists on there being one.
 * The host's may hold somebody's keys. */
static int add_chromium(int root, struct cloche_err *err)
{
	int e = access("/etc/chromium.d", F_OK) < 0
			? 1
			: parts_mkdir(root, "etc/chromium.d", 0755, err);

	return e ? MIN(e, 0) : parts_file(root, "etc/chromium.d/cloche", STR_NULL, err);
}

int etc_make(struct parts_view *v, const struct rootfs *r, struct cloche_err *err)
{
	const int root = v->root;
	static const char *const dirs[] = {
		"etc", "etc/ssl", "etc/pki", "etc/pki/tls", "etc/apt", "etc/apt/apt.conf.d"};
	size_t i;
	int e = 0;

	for (i = 0; i < ARRAY_SIZE(dirs) && e == 0; i++)
		e = parts_mkdir(root, dirs[i], 0755, err);
	for (i = 0; i < ARRAY_SIZE(state_dirs) && e == 0; i++)
		e = parts_mkdir(root, state_dirs[i], 0755, err);
	if (e == 0)
		e = parts_mkdir(root, "var/tmp", 01777, err);
	if (e == 0 && symlinkat("/run", root, "var/run") < 0)
		e = err_sys(err, errno, "make the link /var/run");
	if (e == 0)
		e = show_host_files(v, err);
	if (e == 0)
		e = add_accounts(root, r, err);
	if (e == 0)
		e = add_names(root, r, err);
	if (e == 0)
		e = parts_file(root, "etc/profile", str_from(profile_text), err);
	if (e == 0)
		e = parts_file(root, "etc/apt/apt.conf.d/90cloche", str_from(apt_text), err);
	if (e == 0)
		e = parts_file(root, "var/lib/dpkg/status", STR(""), err);
	if (e == 0)
		e = add_chromium(root, err);
	return e < 0 ? e : add_home(root, r, err);
}
