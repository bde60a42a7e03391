/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a pod has what the strictest profile of pod security asks for. Process 1 of
 * its only container waits; what makes the room comes later, by `kubectl exec`, and lies in
 * directories that the pod has for itself: its root cannot be written to.
 *
 * A template of the person's says where pods run and what their cluster wants of them. What it may
 * say is listed, and none of it is a wall: so what a later version of Kubernetes invents is refused
 * until somebody has looked at it. */
#include "podspec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	USER = 1000,
	MARGIN_SEC = 600,          /* the sandbox ends in time; this is for who has lost it */
	REQUEST_MEMORY = 64 << 20, /* if nobody asked for the limit */
	REQUEST_CPUS_MILLI = 100,
	LABEL_MAX = 63,
	ANNOTATION_MAX = 4096,
};

/* Process 1. Nothing runs beside it but a room and who holds that. Somebody who has many pods made
 * at once may need minutes to come. The holder ends if nobody comes back to it, and then the pod
 * ends too. The shell takes up whom nobody else waits for. */
static const char podspec_keep[] =
	"trap 'exit 0' TERM; sleep 300 & wait $!\n"
	"while set -- /proc/[0-9]*; [ $# -gt 1 ]; do sleep 5 & wait $!; done";

/* Where the container can be written to. */
static const struct {
	const char *name, *path;
} podspec_dirs[] = {
	{"home", "/cloche"}, /* cloche-far and rooms; no room may read it */
	{"workspace", "/workspace"},
	{"tmp", "/tmp"},
	/* Where `cloche agent` has its agent, and what that keeps. */
	{"agent", "/opt/claude"},
	{"root", "/root"},
};

int podspec_name(const char *id, char ret[PODSPEC_NAME_MAX + 1], struct cloche_err *err)
{
	int n = snprintf(ret, PODSPEC_NAME_MAX + 1, "agentgate-%s", id);

	if (n > PODSPEC_NAME_MAX || !str_is_all(str_from(id), STR_LOWER STR_DIGITS "-") || n < 1 ||
		ret[n - 1] == '-')
		return err_set(err, E_USAGE, "no pod can be called agentgate-%s", id);
	return 0;
}

/* --- the template --- */

/* A member that a template may have. inside: those of an object, or of each object of an array;
 * NULL: it is passed on as it is. */
struct podspec_may {
	const char *key;
	const struct podspec_may *inside;
};

static const struct podspec_may podspec_may_resources[] = {{"requests"}, {"limits"}, {NULL}};
static const struct podspec_may podspec_may_container[] = {
	{"name"}, {"image"}, {"imagePullPolicy"}, {"resources", podspec_may_resources}, {NULL}};
static const struct podspec_may podspec_may_spec[] = {{"nodeSelector"}, {"tolerations"},
	{"affinity"}, {"topologySpreadConstraints"}, {"imagePullSecrets"}, {"runtimeClassName"},
	{"priorityClassName"}, {"schedulerName"}, {"containers", podspec_may_container}, {NULL}};
static const struct podspec_may podspec_may_metadata[] = {{"name"}, {"labels"}, {NULL}};
static const struct podspec_may podspec_may_pod[] = {{"apiVersion"}, {"kind"},
	{"metadata", podspec_may_metadata}, {"spec", podspec_may_spec}, {NULL}};

static const struct podspec_may *podspec_find(const struct podspec_may *may, const char *key)
{
	for (; may->key; may++)
		if (strcmp(may->key, key) == 0)
			return may;
	return NULL;
}

static int podspec_check_members(const json_t *object, const struct podspec_may *may,
	const char *at, const char *file, struct cloche_err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return err_set(err, E_CONFIG, "the pod template %s: %s is no object", file,
			at[0] ? at : "it");
	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const struct podspec_may *one = podspec_find(may, key);
		const json_t *first = json_is_array(value) ? json_array_get(value, 0) : value;
		char path[256];

		snprintf(path, sizeof(path), "%s%s%s", at, at[0] ? "." : "", key);
		if (!one) {
			err_set(err, E_CONFIG,
				"the pod template %s says %s, which is not a template's to say",
				file, path);
			err_hint(err, "a template may say labels, nodeSelector, tolerations, "
				      "affinity, imagePullSecrets, runtimeClassName, and of its "
				      "container image, imagePullPolicy and resources");
			return -E_CONFIG;
		}
		if (json_array_size(value) > 1 && one->inside)
			return err_set(err, E_CONFIG,
				"the pod template %s: the pod has one container", file);
		if (one->inside && podspec_check_members(first, one->inside, path, file, err) < 0)
			return -E_CONFIG;
	}
	return 0;
}

int podspec_check_template(const json_t *template, const char *file, struct cloche_err *err)
{
	struct str kind = json_str_at(template, "kind");

	if (kind.n && !str_eq(kind, STR("Pod")))
		return err_set(err, E_CONFIG, "the pod template %s is not of kind Pod", file);
	return podspec_check_members(template, podspec_may_pod, "", file, err);
}

static json_t *podspec_template_container(const json_t *template)
{
	return json_array_get(json_object_get(json_object_get(template, "spec"), "containers"), 0);
}

/* Drop our words on a resource that nobody has asked for, where the template has some. */
static void podspec_give_way(json_t *ours, const json_t *theirs, const char *name)
{
	bool limit = json_object_get(json_object_get(theirs, "limits"), name) != NULL;

	if (limit)
		(void)!json_object_del(json_object_get(ours, "limits"), name);
	if (limit || json_object_get(json_object_get(theirs, "requests"), name))
		(void)!json_object_del(json_object_get(ours, "requests"), name);
}

/* Add what a template says to what has none of it. */
static int podspec_add_template(
	json_t *pod, json_t *container, const struct request *q, const json_t *template)
{
	json_t *ours = json_object_get(container, "resources");
	json_t *theirs = podspec_template_container(template);
	const json_t *resources = json_object_get(theirs, "resources");
	static const char *const kinds[] = {"requests", "limits"};
	int r = json_add_missing(json_object_get(pod, "spec"), json_object_get(template, "spec"));

	if (q->memory_optional)
		podspec_give_way(ours, resources, "memory");
	if (q->cpus_optional)
		podspec_give_way(ours, resources, "cpu");
	if (r == 0)
		r = json_add_missing(json_object_get(json_object_get(pod, "metadata"), "labels"),
			json_object_get(json_object_get(template, "metadata"), "labels"));
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && r == 0; i++)
		r = json_add_missing(
			json_object_get(ours, kinds[i]), json_object_get(resources, kinds[i]));
	return r == 0 ? json_add_missing(container, theirs) : r;
}

/* --- ours --- */

/* A label's value, or key without a prefix: letters, digits and "-_." inside. */
static bool podspec_is_label(struct str s, bool may_be_empty)
{
	if (s.n == 0)
		return may_be_empty;
	return s.n <= LABEL_MAX && str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "-_.") &&
	       str_is_alnum(s.p[0]) && str_is_alnum(s.p[s.n - 1]);
}

/* What no label can be is an annotation. Keys with a prefix mean something to others: a sandbox
 * does not say them. */
static int podspec_add_labels(json_t *metadata, char *const *all)
{
	json_t *labels = json_object(), *annotations = json_object();
	int r = json_put(metadata, "labels", labels);

	if (json_put(metadata, "annotations", annotations) < 0)
		r = -ENOMEM;
	for (size_t i = 0; all && all[i] && r == 0; i++) {
		struct str value = str_from(all[i]), key = str_next(&value, '=');
		_cleanup_(freep) char *name = str_dup(key);

		if (!name)
			return -ENOMEM;
		if (!podspec_is_label(key, false) || value.n > ANNOTATION_MAX)
			continue;
		r = json_put(podspec_is_label(value, true) ? labels : annotations, name,
			json_utf8(value));
	}
	return r;
}

static json_t *podspec_quantity(uint64_t n, const char *unit)
{
	return json_sprintf("%llu%s", (unsigned long long)n, unit);
}

/* A limit is a request too if somebody asked for it: then it is there. */
static int podspec_add_limit(
	json_t *resources, const char *name, uint64_t limit, uint64_t request, const char *unit)
{
	int r;

	if (!limit)
		return 0;
	r = json_put(json_object_get(resources, "limits"), name, podspec_quantity(limit, unit));
	return r == 0 ? json_put(json_object_get(resources, "requests"), name,
				podspec_quantity(MIN(request, limit), unit))
		      : r;
}

static json_t *podspec_resources(const struct request *q)
{
	_cleanup_json_ json_t *all = json_pack("{s:{}, s:{}}", "requests", "limits");

	if (!all ||
		podspec_add_limit(all, "memory", q->memory_bytes,
			q->memory_optional ? (uint64_t)REQUEST_MEMORY : q->memory_bytes, "") < 0 ||
		podspec_add_limit(all, "cpu", q->cpus_milli,
			q->cpus_optional ? (uint64_t)REQUEST_CPUS_MILLI : q->cpus_milli, "m") < 0)
		return NULL;
	return TAKE_PTR(all);
}

static json_t *podspec_container(const struct request *q, const json_t *template)
{
	struct str theirs = json_str_at(podspec_template_container(template), "image");
	json_t *mounts = json_array();

	for (size_t i = 0; mounts && i < ARRAY_SIZE(podspec_dirs); i++)
		if (json_array_append_new(
			    mounts, json_pack("{s:s, s:s}", "name", podspec_dirs[i].name,
					    "mountPath", podspec_dirs[i].path)) < 0) {
			json_decref(mounts);
			mounts = NULL;
		}
	return json_pack("{s:s, s:s, s:[sss], s:s, s:[{s:s, s:s}], s:o, s:o,"
			 " s:{s:b, s:b, s:b, s:b, s:{s:[s]}}}",
		"name", PODSPEC_CONTAINER, "image",
		q->image   ? q->image
		: theirs.n ? theirs.p
			   : PODSPEC_IMAGE,
		"command", "/bin/sh", "-c", podspec_keep, "workingDir", "/", "env", "name", "HOME",
		"value", podspec_dirs[0].path, "resources", podspec_resources(q), "volumeMounts",
		mounts, "securityContext", "privileged", 0, "allowPrivilegeEscalation", 0,
		"readOnlyRootFilesystem", 1, "runAsNonRoot", 1, "capabilities", "drop", "ALL");
}

/* What of a pod is no container. */
static json_t *podspec_spec(const struct request *q)
{
	json_t *volumes = json_array();

	for (size_t i = 0; volumes && i < ARRAY_SIZE(podspec_dirs); i++)
		if (json_array_append_new(volumes, json_pack("{s:s, s:{}}", "name",
							   podspec_dirs[i].name, "emptyDir")) < 0) {
			json_decref(volumes);
			volumes = NULL;
		}
	/* Names are asked of the room's own keeper, whatever address is here. */
	return json_pack("{s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:s?, s:s, s:{s:[s]}, s:o,"
			 " s:{s:b, s:i, s:i, s:i, s:{s:s}}}",
		"restartPolicy", "Never", "automountServiceAccountToken", 0, "enableServiceLinks",
		0, "hostNetwork", 0, "hostPID", 0, "hostIPC", 0, "terminationGracePeriodSeconds", 1,
		"hostname", q->hostname ? q->hostname : "sandbox", "dnsPolicy", "None", "dnsConfig",
		"nameservers", "127.0.0.1", "volumes", volumes, "securityContext", "runAsNonRoot",
		1, "runAsUser", USER, "runAsGroup", USER, "fsGroup", USER, "seccompProfile", "type",
		"RuntimeDefault");
}

static int podspec_fill(
	json_t *pod, json_t *container, const struct request *q, const json_t *template)
{
	json_t *spec = podspec_spec(q), *list = json_array();
	int r = json_put(pod, "spec", spec);

	if (r == 0 && q->lifetime_sec)
		r = json_put(spec, "activeDeadlineSeconds",
			json_integer((json_int_t)(q->lifetime_sec + MARGIN_SEC)));
	if (json_put(spec, "containers", list) < 0)
		r = -ENOMEM;
	if (r == 0 && json_array_append(list, container) < 0)
		r = -ENOMEM;
	if (r == 0)
		r = podspec_add_labels(json_object_get(pod, "metadata"), q->labels);
	return r == 0 ? podspec_add_template(pod, container, q, template) : r;
}

json_t *podspec_make(const struct request *q, const json_t *template, struct cloche_err *err)
{
	char name[PODSPEC_NAME_MAX + 1];
	_cleanup_json_ json_t *pod = NULL, *container = NULL;

	if (podspec_name(q->id, name, err) < 0)
		return NULL;
	pod = json_pack(
		"{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Pod", "metadata", "name", name);
	container = podspec_container(q, template);
	if (!pod || !container || podspec_fill(pod, container, q, template) < 0) {
		err_set(err, E_USAGE,
			"the description of the pod is no JSON: a name in it is not "
			"UTF-8");
		return NULL;
	}
	return TAKE_PTR(pod);
}

json_t *podspec_make_policy(const struct request *q, struct str uid, struct cloche_err *err)
{
	char name[PODSPEC_NAME_MAX + 1];
	json_t *policy;

	if (podspec_name(q->id, name, err) < 0)
		return NULL;
	policy = json_pack("{s:s, s:s,"
			   " s:{s:s, s:{s:s}, s:[{s:s, s:s, s:s, s:s%}]},"
			   " s:{s:{s:{s:s}}, s:[ss]}}",
		"apiVersion", "networking.k8s.io/v1", "kind", "NetworkPolicy", "metadata", "name",
		name, "labels", PODSPEC_LABEL_SANDBOX, q->id, "ownerReferences", "apiVersion", "v1",
		"kind", "Pod", "name", name, "uid", uid.p, uid.n, "spec", "podSelector",
		"matchLabels", PODSPEC_LABEL_SANDBOX, q->id, "policyTypes", "Ingress", "Egress");
	if (!policy)
		err_nomem(err);
	return policy;
}
