/* SPDX-License-Identifier: Apache-2.0 */
/* What of cloche's own is never shown to a room, whatever is mounted. */
#include "jail/keep.h"
#include "jail/rootfs.h"

/* Whoever reaches the control sockets, or writes to what lies beside them, controls every sandbox
 * of the person, and through the supervisors the host. */
static int check_control(
	const struct rootfs *r, int source, const char *path, struct cloche_err *err)
{
	int e = r->own_dir < 0 ? 1 : keep_is_apart(r->own_dir, source);

	if (e < 0)
		return err_sys(err, -e, "look at %s", path);
	if (e == 1)
		return 0;
	err_set(err, E_DENIED, "%s would show the directory in which sandboxes are controlled",
		path);
	err_hint(err, "mount a directory further down, or name another place for that one: "
		      "XDG_RUNTIME_DIR or CLOCHE_RUNTIME_DIR");
	return -E_DENIED;
}

/* Whoever writes there consents in the person's name to what a project asks for (INV-CONSENT). */
static int check_consent(
	const struct rootfs *r, int source, const char *path, bool ro, struct cloche_err *err)
{
	int e = 0;

	if (r->consent_dir >= 0 && r->consent_is_there)
		e = keep_is_apart(r->consent_dir, source);
	else if (r->consent_dir >= 0 && !ro)
		e = keep_lies_in(r->consent_dir, source);
	else
		return 0;
	if (e < 0)
		return err_sys(err, -e, "look at %s", path);
	if (e == (r->consent_is_there ? 1 : 0))
		return 0;
	err_set(err, E_DENIED,
		"%s would show the directory in which consents are kept (cloche trust)", path);
	err_hint(err, "mount a directory further down, or name another place for that one: "
		      "XDG_STATE_HOME or CLOCHE_STATE_DIR");
	return -E_DENIED;
}

int rootfs_check_apart(
	const struct rootfs *r, int source, const char *path, bool ro, struct cloche_err *err)
{
	int e = check_control(r, source, path, err);

	return e < 0 ? e : check_consent(r, source, path, ro, err);
}
