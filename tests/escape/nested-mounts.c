/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use a user and a mount namespace of one's own to lay open what the room covers and to
 *    write where it is read-only
 * Wall: seccomp: no such namespace
 * Behind it: user namespace: mounts that came from above are locked together, with their flags */
#include "attempt.h"

#include <sched.h>
#include <sys/mount.h>

static const char *const mounts[][2] = {{"sysfs", "x"}, {"devtmpfs", "x"}, {"debugfs", "x"},
	{"tracefs", "x"}, {"securityfs", "x"}, {"ext4", "/dev/vda"}, {"bpf", "x"},
	{"configfs", "x"}, {"pstore", "x"}, {"efivarfs", "x"}, {"cgroup", "x"}, {"hugetlbfs", "x"},
	{"nfs", "127.0.0.1:/"}, {"9p", "x"}, {"squashfs", "/ro/file"}, {"iso9660", "/ro/file"},
	{"binfmt_misc", "x"}};

int main(void)
{
	static const char *const read_only[] = {
		"/usr", "/ro", "/run/cloche/init", "/dev/null", "/etc/ssl/certs"};
	int i;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		printf("no namespace of its own: %s\n", strerror(errno));
	for (i = 0; i < (int)(sizeof(mounts) / sizeof(mounts[0])); i++)
		/* Of cgroup and bpf an empty one may be had that is the room's own. */
		if (mount(mounts[i][1], "/mnt", mounts[i][0], 0, NULL) == 0) {
			if (strcmp(mounts[i][0], "bpf") && strcmp(mounts[i][0], "hugetlbfs") &&
				strcmp(mounts[i][0], "binfmt_misc"))
				escaped(mounts[i][0]);
			unwritable("/mnt/register");
			unwritable("/mnt/release_agent");
			umount2("/mnt", MNT_DETACH);
		}
	for (i = 0; i < (int)(sizeof(read_only) / sizeof(read_only[0])); i++) {
		refused(read_only[i], mount(NULL, read_only[i], NULL, MS_REMOUNT | MS_BIND, NULL));
		refused(read_only[i], umount2(read_only[i], MNT_DETACH));
		if (mount(read_only[i], "/mnt", NULL, MS_BIND | MS_REC, NULL) == 0) {
			refused(read_only[i],
				mount(NULL, "/mnt", NULL, MS_REMOUNT | MS_BIND, NULL));
			umount2("/mnt", MNT_DETACH);
		}
	}
	REFUSED(open("/usr/escaped", O_WRONLY | O_CREAT, 0644));
	REFUSED(open("/ro/escaped", O_WRONLY | O_CREAT, 0644));
	unreadable(canary("CANARY_SECRET"));
	(void)umount2("/", MNT_DETACH);
	unreadable(canary("CANARY_SECRET"));
	return verdict();
}
