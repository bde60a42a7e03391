/* SPDX-License-Identifier: Apache-2.0 */
/* Lists what a sandbox has changed.
 *
 * Theory of operation: a running sandbox hands out descriptors of its layers. If it has ended and
 * kept its layers, they are read from where they were kept. The comparison is made here, with the
 * rights of the caller. */
#include "api/instance/instance.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "job/job.h"
#include "provider/provider.h"
#include "sandbox/sandbox.h"
#include <cloche/diff.h>

#include <sys/stat.h>

#define END_PATIENCE (2 * USEC_PER_SEC)

struct diff {
	cloche_change_fn fn;
	void *user;
};

static enum cloche_file_type type_of(uint32_t mode)
{
	if (S_ISREG(mode))
		return CLOCHE_FILE_REGULAR;
	if (S_ISDIR(mode))
		return CLOCHE_FILE_DIRECTORY;
	return S_ISLNK(mode) ? CLOCHE_FILE_LINK : CLOCHE_FILE_OTHER;
}

JOB_ASK1(call_change_fn, cloche_change_fn, bool, false, const cloche_change *)

static int diff_hand_on(void *user, const struct room_change *c)
{
	struct diff *d = user;
	const cloche_change change = {.kind = (enum cloche_change_kind)c->kind,
		.type = type_of(c->mode),
		.path = c->path.p,
		.path_length = c->path.n,
		.mode = c->mode & 07777,
		.size = c->size};

	return call_change_fn(d->fn, &change, d->user) ? 0 : 1;
}

int cloche_diff_kept(const char *dir, cloche_change_fn fn, void *user, cloche_err *err)
{
	struct diff d = {fn, user};
	/* The directory does not tell which provider kept it, but only one provider does that. */
	const struct provider *p = provider_find(str_from(provider_name_at(0)), NULL);
	int r = provider_diff_kept(p, dir, diff_hand_on, &d, err);

	return r > 0 ? 0 : r;
}

/* Handle a sandbox that has ended, if its record says that it kept its changes. */
static int diff_ended(
	const cloche_instance *instance, cloche_change_fn fn, void *user, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *now = NULL;
	const char *dir;
	int r = instance_copy_fresh(instance, &now, err);

	if (r < 0)
		return r;
	dir = json_string_value(
		json_object_get(json_object_get(now->record, "config"), "keep_changes"));
	if (dir)
		return cloche_diff_kept(dir, fn, user, err);
	r = err_set(err, E_NOT_FOUND, "sandbox %s has ended, and its changes with it",
		cloche_instance_id(instance));
	err_hint(err, "make sandboxes with --keep-changes DIR to keep them");
	return r;
}

static int diff_layers(const struct client *client, int upper, int lower, cloche_change_fn fn,
	void *user, struct cloche_err *err)
{
	const struct provider *p = provider_find(str_from(client_provider(client)), NULL);
	struct diff d = {fn, user};
	int r;

	if (!p)
		return err_set(err, E_UNSUPPORTED, "this version does not know the provider \"%s\"",
			client_provider(client));
	r = provider_diff(p, upper, lower, diff_hand_on, &d, err);
	return r > 0 ? 0 : r;
}

int cloche_instance_diff(
	const cloche_instance *instance, cloche_change_fn fn, void *user, cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	_cleanup_fd_ int upper = -1, lower = -1;
	struct cloche_err own = CLOCHE_ERR_INIT;
	int r;

	err = err ? err : &own;
	r = instance_attach(instance, &client, err);
	if (r == 0)
		r = client_layers(client, &upper, &lower, err);
	if (r == 0)
		return diff_layers(client, upper, lower, fn, user, err);
	/* A supervisor that is about to end does not answer any more. */
	if (r == -E_UNSUPPORTED || !instance_wait_settled(instance, END_PATIENCE))
		return r;
	err_clear(err);
	return diff_ended(instance, fn, user, err);
}
