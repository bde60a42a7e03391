/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of rooms in a Kubernetes cluster (docs/design/provider-protocol.md): one pod for
 * each sandbox, by the person's own kubectl. */
#include "asked/asked.h"
#include "kubectl.h"
#include "pod.h"
#include "podspec.h"
#include "rights.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int main_check(const struct request *q, bool needs_script, struct cloche_err *err)
{
	char name[PODSPEC_NAME_MAX + 1];

	if (!q->id)
		return err_set(err, E_PROTOCOL, "the request has no id");
	if (!q->script && needs_script)
		return err_set(err, E_PROTOCOL, "the request has no script for the other place");
	return podspec_name(q->id, name, err);
}

/* No room is made on this machine: say where one can be made. */
static int main_say_place(struct cloche_err *err)
{
	_cleanup_(kubectl_donep) struct kubectl k = {0};
	int r = kubectl_init(&k, NULL, err);

	if (r == 0)
		r = kubectl_settle(&k, err);
	if (r < 0)
		return r;
	printf("place %s/%s\n", k.context, k.space);
	return err_set(err, E_UNSUPPORTED, "it makes rooms in a cluster alone");
}

static int main_create(const struct request *q, struct cloche_err *err)
{
	_cleanup_(kubectl_donep) struct kubectl k = {0};
	int r = main_check(q, q->place != NULL, err);

	if (r < 0)
		return r;
	if (!q->place)
		return main_say_place(err);
	r = pod_make(&k, q, err);
	return r == 0 ? pod_become(&k, q, err) : r;
}

static int main_connect(const struct request *q, bool *ret_gone, struct cloche_err *err)
{
	_cleanup_(kubectl_donep) struct kubectl k = {0};
	int r = main_check(q, true, err);

	if (r == 0)
		r = kubectl_init(&k, q->place, err);
	if (r == 0)
		r = pod_look(&k, q, ret_gone, err);
	return r == 0 ? pod_become(&k, q, err) : r;
}

static int main_reap(const struct request *q, struct cloche_err *err)
{
	_cleanup_(kubectl_donep) struct kubectl k = {0};
	int r = main_check(q, false, err);

	/* Without a place, no pod was made. */
	if (r < 0 || !q->place)
		return r;
	r = kubectl_init(&k, q->place, err);
	return r == 0 ? pod_delete(&k, q, err) : r;
}

static int main_probe(const struct request *q, struct cloche_err *err)
{
	_cleanup_(kubectl_donep) struct kubectl k = {0};
	int r = kubectl_init(&k, q->place, err);

	if (r == 0 && q->place)
		return rights_check(&k, err);
	if (r == 0)
		puts("hint only kubectl was looked for; \"cloche doctor --provider kubernetes "
		     "--place CONTEXT\" asks the cluster");
	return r;
}

static int main_answer(const char *verb, struct asked_answer *ret)
{
	_cleanup_(request_donep) struct request q = {0};
	int r = request_read(&q, STDIN_FILENO, &ret->err);

	if (r < 0)
		return r;
	if (strcmp(verb, "probe") == 0)
		return main_probe(&q, &ret->err);
	if (strcmp(verb, "reap") == 0)
		return main_reap(&q, &ret->err);
	return strcmp(verb, "create") == 0 ? main_create(&q, &ret->err)
					   : main_connect(&q, &ret->gone, &ret->err);
}

int main(int argc, char **argv)
{
	return asked_main(argc, argv, main_answer);
}
