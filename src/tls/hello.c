/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/hello.h"

#include <stdint.h>
#include <string.h>

enum { LABEL_MAX = 63, HOST_NAME_TYPE = 0, HELLO_MAX = 16 * 1024 };

/* Takes an n-byte big-endian length and that many bytes off the front of *in. */
static bool take_vector(struct str *in, unsigned n, struct str *ret)
{
	size_t length = 0;

	if (in->n < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		length = length << 8 | (uint8_t)in->p[i];
	if (in->n - n < length)
		return false;
	*ret = str_make(in->p + n, length);
	*in = str_from_index(*in, n + length);
	return true;
}

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static bool is_name(struct str name)
{
	size_t label = 0;

	if (name.n == 0 || name.n > HELLO_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] == '.') {
			if (label == 0)
				return false;
			label = 0;
		} else if (!is_label_char(name.p[i]) || ++label > LABEL_MAX) {
			return false;
		}
	}
	return label > 0;
}

enum hello_sni hello_sni_parse(struct str body, struct str *ret_name)
{
	struct str list, name;

	/* ServerNameList: one vector that fills the extension, at least one entry. */
	if (!take_vector(&body, 2, &list) || body.n > 0 || list.n == 0)
		return HELLO_SNI_MALFORMED;
	if (list.p[0] != HOST_NAME_TYPE)
		return HELLO_SNI_MANY;
	list = str_from_index(list, 1);
	if (!take_vector(&list, 2, &name))
		return HELLO_SNI_MALFORMED;
	if (list.n > 0)
		return HELLO_SNI_MANY;
	if (name.n > 1 && name.p[name.n - 1] == '.')
		name.n--;
	if (!is_name(name))
		return HELLO_SNI_NAME;
	*ret_name = name;
	return HELLO_SNI_OK;
}

const char *hello_sni_text(enum hello_sni e)
{
	static const char *const texts[] = {
		[HELLO_SNI_OK] = "no error",
		[HELLO_SNI_MALFORMED] = "malformed server_name extension",
		[HELLO_SNI_MANY] = "server_name holds more than one host name",
		[HELLO_SNI_NAME] = "server_name is not a host name",
	};

	return texts[e];
}

struct str hello_alpn_list(struct str body)
{
	struct str list;

	return take_vector(&body, 2, &list) && body.n == 0 ? list : STR_NULL;
}

bool hello_alpn_has(struct str list, struct str protocol)
{
	struct str name;
	bool has = false;

	while (list.n > 0) {
		if (!take_vector(&list, 1, &name) || name.n == 0)
			return false;
		has = has || str_eq(name, protocol);
	}
	return has;
}

/* Whether the extensions are well-formed and none of them encrypts the ClientHello. */
static bool extensions_are_plain(struct str list)
{
	struct str body;

	while (list.n > 0) {
		struct str type = str_prefix(list, 2);

		list = str_from_index(list, 2);
		if (type.n < 2 || !take_vector(&list, 2, &body) || str_eq(type, STR("\xfe\x0d")) ||
			str_eq(type, STR("\xff\xce")))
			return false;
	}
	return true;
}

/* message is given without its type. */
static bool hello_is_plain(struct str message)
{
	enum { VERSION_AND_RANDOM = 2 + 32 };
	struct str hello, part;

	if (!take_vector(&message, 3, &hello) || hello.n < VERSION_AND_RANDOM)
		return false;
	hello = str_from_index(hello, VERSION_AND_RANDOM);
	return take_vector(&hello, 1, &part) && take_vector(&hello, 2, &part) &&
	       take_vector(&hello, 1, &part) && take_vector(&hello, 2, &part) && hello.n == 0 &&
	       extensions_are_plain(part);
}

static bool is_whole(struct str message)
{
	struct str rest = str_from_index(message, 1), body;

	return take_vector(&rest, 3, &body) && rest.n == 0;
}

/* What follows the ClientHello is for the server alone: early data. */
bool hello_hides_name(struct str records)
{
	enum { HANDSHAKE = 0x16, CLIENT_HELLO = 1 };
	char message[HELLO_MAX];
	size_t n = 0;

	while (!is_whole(str_make(message, n)) && records.n > 0) {
		struct str fragment;
		bool is_handshake = records.p[0] == HANDSHAKE;

		records = str_from_index(records, 3);
		if (!is_handshake || !take_vector(&records, 2, &fragment) ||
			fragment.n > sizeof(message) - n)
			return true;
		memcpy(message + n, fragment.p, fragment.n);
		n += fragment.n;
	}
	return !is_whole(str_make(message, n)) || message[0] != CLIENT_HELLO ||
	       !hello_is_plain(str_make(message + 1, n - 1));
}
