/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/trust.h"
#include "base/macro.h"

static const struct trust_env env_table[] = {
	/* These add to the built-in roots. */
	{"NODE_EXTRA_CA_CERTS", TRUST_CA_PATH},
	{"DENO_CERT", TRUST_CA_PATH},
	/* These replace them. */
	{"SSL_CERT_FILE", TRUST_BUNDLE_PATH},
	{"SSL_CERT_DIR", TRUST_CERTS_PATH},
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
	{"JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=" TRUST_STORE_PATH, true},
};

const struct trust_env *trust_env_table(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(env_table);
	return env_table;
}
