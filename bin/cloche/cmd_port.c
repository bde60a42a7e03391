/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"

#include <stdio.h>
#include <string.h>

struct port_options {
	bool json;
};

static const struct option options[] = {
	{"json", 0, NULL, "print JSON", .at = offsetof(struct port_options, json)},
	{0},
};

static int port_list(cloche_instance *i, const struct port_options *o, cloche_err *err)
{
	json_t *record, *ports, *port;
	bool ok = true;
	size_t k;
	int r = cloche_instance_refresh(i, err);

	if (r < 0)
		return r;
	record = json_loads(cloche_instance_info_of(i)->json, 0, NULL);
	ports = json_object_get(record, "forwards");
	if (o->json)
		ok = json_print(ports ? json_incref(ports) : json_array());
	else
		json_array_foreach (ports, k, port) {
			char line[256];

			snprintf(line, sizeof(line), "%lld -> %.64s:%lld",
				(long long)json_integer_value(json_object_get(port, "guest_port")),
				json_string_value(json_object_get(port, "host_address")),
				(long long)json_integer_value(json_object_get(port, "host_port")));
			ok = put_line(line) && ok;
		}
	json_decref(record);
	return ok ? 0 : EXIT_CLOCHE;
}

/* GUEST_PORT[:HOST_PORT] */
static bool read_ports(const char *text, uint16_t *ret_guest, uint16_t *ret_host)
{
	const char *colon = strchr(text, ':');
	char guest_text[16];
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	uint64_t guest, host = 0;

	if (n >= sizeof(guest_text))
		return false;
	memcpy(guest_text, text, n);
	guest_text[n] = '\0';
	if (!read_number(guest_text, UINT16_MAX, &guest) || guest == 0)
		return false;
	if (colon && !read_number(colon + 1, UINT16_MAX, &host))
		return false;
	*ret_guest = (uint16_t)guest;
	*ret_host = (uint16_t)host;
	return true;
}

static int port_forward(
	cloche_instance *i, const char *text, const struct port_options *o, cloche_err *err)
{
	uint16_t guest, host;
	char line[64];
	int r;

	if (!read_ports(text, &guest, &host))
		return wrong_usage(err,
			"for example: cloche port ID 3000, cloche port ID 3000:8080",
			"port: \"%s\" is not GUEST_PORT[:HOST_PORT]", text);
	r = cloche_instance_forward(i, guest, host, &host, err);
	if (r < 0)
		return r;
	if (o->json)
		return json_print(json_pack("{s:s, s:i, s:i}", "host_address", "127.0.0.1",
			       "host_port", (int)host, "guest_port", (int)guest))
			       ? 0
			       : EXIT_CLOCHE;
	snprintf(line, sizeof(line), "127.0.0.1:%u", host);
	return put_line(line) ? 0 : EXIT_CLOCHE;
}

static int main_port(void *ctx, const struct operands *operands, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r;

	if (operands->n < 1 || operands->n > 2)
		return wrong_usage(err, "for example: cloche port ID 3000",
			"port: needs an id and a port, or an id alone to list");
	r = cloche_instance_open(operands->v[0], &i, err);
	if (r < 0)
		return r;
	return operands->n == 2 ? port_forward(i, operands->v[1], ctx, err)
				: port_list(i, ctx, err);
}

const struct command command_port = {
	.name = "port",
	.summary = "open a loopback port that leads into a sandbox",
	.synopsis = "ID [GUEST_PORT[:HOST_PORT]]",
	.text = "Opens a port of this machine's loopback that leads to GUEST_PORT inside, prints\n"
		"it and returns. The port stays open as long as the sandbox lives. Without\n"
		"HOST_PORT, a port that leads there already is used, else a free one. Without\n"
		"GUEST_PORT, the open ports are listed.\n"
		"\n"
		"  curl http://$(cloche port dev 3000)/",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct port_options){0},
	.run = main_port,
};
