/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/asked.h"
#include "base/fd.h"
#include "base/parse.h"
#include "podspec.h"
#include "tap.h"

static struct cloche_err err;

static const char asked[] = "cloche-provider 1\nid sandbox-1a\nplace c\nfar true\nhostname box\n"
			    "label team x\nlabel odd a\\0040b\nlabel k8s.io/x y\n"
			    "label cloche.sandbox sandbox-1a\nlabel cloche.owner 7\n"
			    "root image reg/x:1\nmemory 268435456\ncpus-milli 500\npids 80\n"
			    "optional cpus-milli\nlifetime 60\nend\n";

static void read_request(const char *text, struct request *ret)
{
	int pair[2];

	*ret = (struct request){0};
	must(fd_pipe(pair) == 0);
	must(fd_write_all(pair[1], text, strlen(text)) == 0);
	fd_close(pair[1]);
	check_int(request_read(ret, pair[0], &err), 0);
	fd_close(pair[0]);
}

static json_t *parse(const char *text)
{
	json_t *value = NULL;

	must(json_text_read(str_from(text), 0, &value, NULL) == 0);
	return value;
}

/* Return what is at a path of names and numbers. */
static const json_t *at(const json_t *value, const char *path)
{
	struct str rest = str_from(path);

	while (rest.n) {
		struct str name = str_next(&rest, '/');
		_cleanup_(freep) char *z = str_dup(name);
		uint64_t i;

		value = parse_u64(name, 9, &i) == 0 ? json_array_get(value, (size_t)i)
						    : json_object_get(value, z);
	}
	return value;
}

static void check_at(const json_t *value, const char *path, const char *want)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(64 * 1024);
	const json_t *found = at(value, path);

	if (found)
		must(json_text_write(&b, found, JSON_TEXT_COMPACT) == 0);
	check_str(buf_str(&b), want);
}

static void a_pod_is_made_of_a_request(void)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{"kind", "\"Pod\""},
		{"metadata/name", "\"agentgate-sandbox-1a\""},
		{"metadata/labels", "{\"team\":\"x\",\"cloche.sandbox\":\"sandbox-1a\",\"cloche."
				    "owner\":\"7\"}"},
		{"metadata/annotations", "{\"odd\":\"a b\"}"},
		{"spec/restartPolicy", "\"Never\""},
		{"spec/automountServiceAccountToken", "false"},
		{"spec/enableServiceLinks", "false"},
		{"spec/hostNetwork", "false"},
		{"spec/hostPID", "false"},
		{"spec/hostIPC", "false"},
		{"spec/hostname", "\"box\""},
		{"spec/activeDeadlineSeconds", "660"},
		{"spec/securityContext",
			"{\"runAsNonRoot\":true,\"runAsUser\":1000,\"runAsGroup\":1000,"
			"\"fsGroup\":1000,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"},
		{"spec/containers/0/image", "\"reg/x:1\""},
		{"spec/containers/0/securityContext",
			"{\"privileged\":false,\"allowPrivilegeEscalation\":false,"
			"\"readOnlyRootFilesystem\":true,\"runAsNonRoot\":true,\"capabilities\":{"
			"\"drop\":[\"ALL\"]}}"},
		{"spec/containers/0/resources",
			"{\"requests\":{\"memory\":\"268435456\",\"cpu\":\"100m\"},"
			"\"limits\":{\"memory\":\"268435456\",\"cpu\":\"500m\"}}"},
		{"spec/containers/0/env", "[{\"name\":\"HOME\",\"value\":\"/cloche\"}]"},
		{"spec/volumes/1", "{\"name\":\"workspace\",\"emptyDir\":{}}"},
		{"spec/containers/0/volumeMounts/1",
			"{\"name\":\"workspace\",\"mountPath\":\"/workspace\"}"},
	};
	_cleanup_(request_donep) struct request q;
	_cleanup_json_ json_t *pod = NULL, *policy = NULL;

	read_request(asked, &q);
	pod = podspec_make(&q, NULL, &err);
	must(pod != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_at(pod, rows[i].path, rows[i].want);
	policy = podspec_make_policy(&q, STR("u-1"), &err);
	must(policy != NULL);
	check_at(policy, "spec",
		"{\"podSelector\":{\"matchLabels\":{\"cloche.sandbox\":\"sandbox-1a\"}},"
		"\"policyTypes\":[\"Ingress\",\"Egress\"]}");
	check_at(policy, "metadata/ownerReferences",
		"[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"agentgate-sandbox-1a\","
		"\"uid\":\"u-1\"}]");
}

static void what_nobody_asked_for_is_not_there(void)
{
	_cleanup_(request_donep) struct request q;
	_cleanup_json_ json_t *pod = NULL;

	read_request("cloche-provider 1\nid sandbox-1\nend\n", &q);
	pod = podspec_make(&q, NULL, &err);
	must(pod != NULL);
	check_at(pod, "spec/activeDeadlineSeconds", "");
	check_at(pod, "spec/containers/0/resources", "{\"requests\":{},\"limits\":{}}");
	check_at(pod, "spec/containers/0/image", "\"" PODSPEC_IMAGE "\"");
}

/* A limit that somebody asked for stays; of what is ours by default, the template knows better. */
static void a_template_says_what_nobody_asked_for(void)
{
	_cleanup_json_ json_t *less = parse(
				      "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"
				      "\"memory\":\"1Mi\",\"cpu\":\"10m\"}}}]}}"),
			      *limit = parse(
				      "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{"
				      "\"memory\":\"1Mi\",\"cpu\":\"50m\"}}}]}}"),
			      *one = NULL, *two = NULL;
	_cleanup_(request_donep) struct request q;

	read_request(asked, &q);
	one = podspec_make(&q, less, &err);
	two = podspec_make(&q, limit, &err);
	must(one && two);
	check_at(one, "spec/containers/0/resources",
		"{\"requests\":{\"memory\":\"268435456\",\"cpu\":\"10m\"},"
		"\"limits\":{\"memory\":\"268435456\",\"cpu\":\"500m\"}}");
	check_at(two, "spec/containers/0/resources",
		"{\"requests\":{\"memory\":\"268435456\"},"
		"\"limits\":{\"memory\":\"268435456\",\"cpu\":\"50m\"}}");
}

/* It says where the pod runs, and nothing that we say. */
static void a_template_lies_under_ours(void)
{
	static const char text[] =
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\",\"labels\":{\"team\":\"y\",\"a/"
		"b\":\"c\"}},\"spec\":{\"nodeSelector\":{\"disk\":\"ssd\"},\"tolerations\":[{"
		"\"operator\":\"Exists\"}],\"runtimeClassName\":\"gvisor\",\"containers\":[{"
		"\"name\":\"x\",\"image\":\"other\",\"imagePullPolicy\":\"Always\",\"resources\":{"
		"\"limits\":{\"memory\":\"1Gi\",\"ephemeral-storage\":\"1Gi\"}}}]}}";
	_cleanup_json_ json_t *template = parse(text), *pod = NULL;
	_cleanup_(request_donep) struct request q;

	read_request(asked, &q);
	check_int(podspec_check_template(template, "t", &err), 0);
	pod = podspec_make(&q, template, &err);
	must(pod != NULL);
	check_at(pod, "metadata/name", "\"agentgate-sandbox-1a\"");
	check_at(pod, "metadata/labels/team", "\"x\"");
	check_at(pod, "metadata/labels/a~b", "");
	check(json_object_get(at(pod, "metadata/labels"), "a/b") != NULL);
	check_at(pod, "spec/nodeSelector", "{\"disk\":\"ssd\"}");
	check_at(pod, "spec/tolerations", "[{\"operator\":\"Exists\"}]");
	check_at(pod, "spec/runtimeClassName", "\"gvisor\"");
	check_int((int)json_array_size(at(pod, "spec/containers")), 1);
	check_at(pod, "spec/containers/0/name", "\"room\"");
	check_at(pod, "spec/containers/0/image", "\"reg/x:1\"");
	check_at(pod, "spec/containers/0/imagePullPolicy", "\"Always\"");
	check_at(pod, "spec/containers/0/resources/limits",
		"{\"memory\":\"268435456\",\"cpu\":\"500m\",\"ephemeral-storage\":\"1Gi\"}");
}

static void what_loosens_walls_is_refused_by_name(void)
{
	static const struct {
		const char *text, *named;
	} rows[] = {
		{"{\"spec\":{\"hostNetwork\":true}}", "spec.hostNetwork"},
		{"{\"spec\":{\"volumes\":[]}}", "spec.volumes"},
		{"{\"spec\":{\"serviceAccountName\":\"x\"}}", "spec.serviceAccountName"},
		{"{\"spec\":{\"securityContext\":{}}}", "spec.securityContext"},
		{"{\"spec\":{\"initContainers\":[]}}", "spec.initContainers"},
		{"{\"spec\":{\"nodeName\":\"x\"}}", "spec.nodeName"},
		{"{\"metadata\":{\"annotations\":{}}}", "metadata.annotations"},
		{"{\"spec\":{\"containers\":[{\"securityContext\":{}}]}}",
			"spec.containers.securityContext"},
		{"{\"spec\":{\"containers\":[{\"env\":[]}]}}", "spec.containers.env"},
		{"{\"spec\":{\"containers\":[{},{}]}}", "one container"},
		{"{\"spec\":{\"containers\":[7]}}", "spec.containers is no object"},
		{"{\"spec\":7}", "spec is no object"},
		{"[]", "it is no object"},
		{"{\"kind\":\"Deployment\"}", "not of kind Pod"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_json_ json_t *template = parse(rows[i].text);

		check_int(podspec_check_template(template, "t", &err), -E_CONFIG);
		check(strstr(err.message, rows[i].named) != NULL);
		check(strstr(err.message, "the pod template t") != NULL);
	}
}

static void names_are_judged(void)
{
	static const char *const bad[] = {"Sandbox", "a_b", "a-", "a.b", "a/b", "",
		"0123456789012345678901234567890123456789012345678901234"};
	char name[PODSPEC_NAME_MAX + 1];

	check_int(podspec_name("sandbox-1", name, &err), 0);
	check_z(name, "agentgate-sandbox-1");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_int(podspec_name(bad[i], name, &err), -E_USAGE);
}

int main(void)
{
	run_test(a_pod_is_made_of_a_request);
	run_test(what_nobody_asked_for_is_not_there);
	run_test(a_template_says_what_nobody_asked_for);
	run_test(a_template_lies_under_ours);
	run_test(what_loosens_walls_is_refused_by_name);
	run_test(names_are_judged);
	return tap_done();
}
