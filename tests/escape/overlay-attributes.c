/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: lead the overlay elsewhere by its own extended attributes (redirect, opaque, metacopy)
 * Wall: overlayfs keeps its attributes to itself; trusted ones need a capability
 * Roots: host directory overlay */
#include "attempt.h"

#include <sys/xattr.h>

int main(void)
{
	static const char *const dirs[] = {
		"/tmp/lead", "/workspace/lead", "/srv/lead", "/opt/lead"};
	static const char *const names[] = {"user.overlay.redirect", "trusted.overlay.redirect",
		"user.overlay.opaque", "user.overlay.metacopy", "user.overlay.origin"};
	char path[8192];

	for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++) {
		if (mkdir(dirs[d], 0755) < 0 && errno != EEXIST)
			continue;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (setxattr(dirs[d], names[i], canary("CANARY_DIR"),
				    strlen(canary("CANARY_DIR")), 0) < 0)
				printf("held: %s on %s: %s\n", names[i], dirs[d], strerror(errno));
		snprintf(path, sizeof(path), "%s/secret", dirs[d]);
		unreadable(path);
	}
	REFUSED(setxattr("/tmp/lead", "trusted.overlay.redirect", "/", 1, 0));
	return verdict();
}
