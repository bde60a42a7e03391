/* SPDX-License-Identifier: Apache-2.0 */
#include "farserve/options.h"
#include "base/clock.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

const char options_help[] =
	"usage: cloche-far serve --listen ADDR:PORT [OPTION...]\n"
	"\n"
	"Runs code for whoever asks over HTTP, each session in a room without a network.\n"
	"\n"
	"  GET /health    answers {\"status\":\"ok\",\"runtime\":\"cloche\"}\n"
	"  POST /execute  {\"code\": \"1 + 1\", \"mode\": \"shell|execute|evaluate\",\n"
	"                 \"runtime\": \"node|python|bash\", \"env\": {}, \"timeout\": 30000}\n"
	"                 answers {success, stdout, stderr, exitCode, metadata}\n"
	"  POST /execute?session=NAME\n"
	"                 keeps the room, and so its files, for the next call with this name;\n"
	"                 without a name each call has a room of its own\n"
	"  /far           is for \"cloche run --provider cloudflare --place http://ADDR:PORT\"\n"
	"\n"
	"  --listen ADDR:PORT  127.0.0.1:8080, [::1]:0 (0: any free port, which is told)\n"
	"  --token-file FILE   ask for \"Authorization: Bearer TOKEN\"; the file holds the token. "
	"It\n"
	"                      can also come in the variable CLOCHE_FAR_TOKEN. Without a token "
	"ADDR\n"
	"                      has to be loopback\n"
	"  --sleep TIME        forget a session after TIME without calls (30s, 5m, 1h; default "
	"5m)\n"
	"  --max N             at most N rooms at a time (1 to 1000; default 10)\n"
	"  --try-room          run code as this user, without a room, where none can be made;\n"
	"                      each answer then says \"isolation\": \"none\"\n"
	"  --no-room           run code so in any case\n"
	"\n"
	"example:\n"
	"  cloche-far serve --listen 127.0.0.1:8080 &\n"
	"  curl -d '{\"code\":\"1+1\",\"mode\":\"evaluate\",\"runtime\":\"node\"}' "
	"http://127.0.0.1:8080/execute\n";

static int options_refuse(struct cloche_err *err, const char *what, const char *value)
{
	err_set(err, E_USAGE, "%s: \"%s\"", what, value);
	err_hint(err, "see \"cloche-far serve --help\"");
	return -E_USAGE;
}

static bool options_read_ip(struct options *o, const char *host, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&o->addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&o->addr;

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		o->addr_n = sizeof(*v4);
		o->is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
		return true;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		o->addr_n = sizeof(*v6);
		o->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
		return true;
	}
	return false;
}

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080". */
static int options_read_listen(struct options *o, const char *value, struct cloche_err *err)
{
	const char *colon = strrchr(value, ':');
	size_t n = colon ? (size_t)(colon - value) : 0;
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;

	if (!n || n >= sizeof(host) || parse_u64(str_from(colon + 1), UINT16_MAX, &port) < 0)
		return options_refuse(err, "--listen needs ADDR:PORT", value);
	memcpy(host, value, n);
	host[n] = '\0';
	if (strcmp(host, "localhost") == 0)
		snprintf(host, sizeof(host), "127.0.0.1");
	if (host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		memmove(host, host + 1, n - 1);
	} else if (strchr(host, ':')) {
		return options_refuse(err, "an IPv6 address stands in brackets", value);
	}
	if (!options_read_ip(o, host, (uint16_t)port))
		return options_refuse(err, "--listen needs an IP address", value);
	return 0;
}

static int options_read_one(
	struct options *o, const char *name, const char *value, struct cloche_err *err)
{
	uint64_t n;

	if (strcmp(name, "--listen") == 0)
		return options_read_listen(o, value, err);
	if (strcmp(name, "--token-file") == 0) {
		o->token_file = value;
		return 0;
	}
	if (strcmp(name, "--sleep") == 0) {
		if (parse_duration(str_from(value), &o->sleep_usec) < 0)
			return options_refuse(err, "--sleep needs a time such as 5m", value);
		return 0;
	}
	if (strcmp(name, "--max") != 0)
		return options_refuse(err, "there is no such option", name);
	if (parse_u64(str_from(value), OPTIONS_SESSIONS_MAX, &n) < 0 || n == 0)
		return options_refuse(err, "--max needs a number from 1 to 1000", value);
	o->sessions_max = (unsigned)n;
	return 0;
}

int options_read(struct options *ret, int argc, char **argv, struct cloche_err *err)
{
	*ret = (struct options){.sleep_usec = 300 * USEC_PER_SEC, .sessions_max = 10};
	for (int i = 0; i < argc; i++) {
		int r;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return 1;
		if (strcmp(argv[i], "--no-room") == 0 || strcmp(argv[i], "--try-room") == 0) {
			*(argv[i][2] == 'n' ? &ret->no_room : &ret->try_room) = true;
			continue;
		}
		if (i + 1 == argc)
			return options_refuse(
				err, "this is no option, or its value is missing", argv[i]);
		r = options_read_one(ret, argv[i], argv[i + 1], err);
		if (r < 0)
			return r;
		i++;
	}
	if (!ret->addr_n) {
		err_set(err, E_USAGE, "cloche-far serve needs --listen ADDR:PORT");
		err_hint(err, "try --listen 127.0.0.1:8080; see \"cloche-far serve --help\"");
		return -E_USAGE;
	}
	return 0;
}
