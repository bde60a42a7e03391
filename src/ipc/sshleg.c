/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what a room asks for is made of few characters, so that a path is judged,
 * logged and sent on in one spelling, and no shell on the other side can read it in another way. */
#include "ipc/sshleg.h"

MESSAGE_TABLE(sshleg_request, SSHLEG_REQUEST_FIELDS, NULL);
MESSAGE_TABLE(sshleg_answer, SSHLEG_ANSWER_FIELDS, NULL);

static int sshleg_put(struct buf *out, const struct message *t, const void *m)
{
	_cleanup_(buf_donep) struct buf record = BUF_INIT(SSHLEG_MAX_RECORD);
	struct wire_out w = wire_out(&record);

	message_put(&w, t, m);
	if (w.error < 0)
		return w.error;
	w = wire_out(out);
	wire_put_str(&w, buf_str(&record));
	return w.error;
}

int sshleg_put_request(struct buf *out, const struct sshleg_request *m)
{
	return sshleg_put(out, sshleg_request_message(), m);
}

int sshleg_put_answer(struct buf *out, const struct sshleg_answer *m)
{
	return sshleg_put(out, sshleg_answer_message(), m);
}

static ssize_t sshleg_take(struct str in, const struct message *t, void *ret)
{
	struct wire_in r = wire_in(in);
	uint32_t n;

	if (in.n < sizeof(n))
		return 0;
	n = wire_get_u32(&r);
	if (n > SSHLEG_MAX_RECORD)
		return -EPROTO;
	if (r.rest.n < n)
		return 0;
	if (!message_get(str_prefix(r.rest, n), t, ret))
		return -EPROTO;
	return (ssize_t)(sizeof(n) + n);
}

ssize_t sshleg_take_request(struct str in, struct sshleg_request *ret)
{
	ssize_t n = sshleg_take(in, sshleg_request_message(), ret);

	if (n > 0 && (!account_is_name(ret->user) || !sshleg_is_path(ret->path) ||
			     !sshleg_is_protocol(ret->protocol)))
		return -EPROTO;
	return n;
}

ssize_t sshleg_take_answer(struct str in, struct sshleg_answer *ret)
{
	return sshleg_take(in, sshleg_answer_message(), ret);
}

bool sshleg_is_protocol(struct str s)
{
	return s.n <= SSHLEG_MAX_PROTOCOL && str_is_all(s, STR_LOWER STR_DIGITS "=.:-");
}

static bool sshleg_is_segment(struct str s)
{
	return s.n > 0 && s.p[0] != '-' && !str_eq(s, STR(".")) && !str_eq(s, STR("..")) &&
	       str_is_all(s, STR_LOWER STR_UPPER STR_DIGITS "._+@-");
}

bool sshleg_is_path(struct str s)
{
	if (s.n < 2 || s.n > SSHLEG_MAX_PATH || s.p[0] != '/')
		return false;
	do {
		s = str_from_index(s, 1);
		if (!sshleg_is_segment(str_prefix(s, str_chr(s, '/'))))
			return false;
		s = str_from_index(s, str_chr(s, '/'));
	} while (s.n > 0);
	return true;
}

static const struct {
	const char *command, *word;
} sshleg_methods[SSHLEG_METHOD_END] = {
	[SSHLEG_FETCH] = {"git-upload-pack ", SSHLEG_WORD_FETCH},
	[SSHLEG_PUSH] = {"git-receive-pack ", SSHLEG_WORD_PUSH},
};

enum sshleg_method sshleg_method_of(struct str word)
{
	enum sshleg_method m = 0;

	while (m < SSHLEG_METHOD_END && !str_eq(word, str_from(sshleg_methods[m].word)))
		m++;
	return m;
}

struct str sshleg_method_word(enum sshleg_method method)
{
	return str_from(sshleg_methods[method].word);
}

const char *sshleg_parse_command(
	struct str command, enum sshleg_method *ret_method, char ret_path[SSHLEG_MAX_PATH + 1])
{
	enum sshleg_method m = 0;
	struct str path;

	while (m < SSHLEG_METHOD_END && !str_starts(command, str_from(sshleg_methods[m].command)))
		m++;
	if (m == SSHLEG_METHOD_END)
		return "only git fetch and git push are passed on (git-upload-pack, "
		       "git-receive-pack)";
	path = str_from_index(command, strlen(sshleg_methods[m].command));
	if (path.n >= 2 && path.p[0] == '\'' && path.p[path.n - 1] == '\'')
		path = str_make(path.p + 1, path.n - 2);
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (str_starts(path, STR("/")))
		path = str_from_index(path, 1);
	if (path.n >= SSHLEG_MAX_PATH)
		return "the path of the repository is too long";
	ret_path[0] = '/';
	memcpy(ret_path + 1, path.p, path.n);
	ret_path[path.n + 1] = '\0';
	if (!sshleg_is_path(str_make(ret_path, path.n + 1)))
		return "the path of the repository has other characters than letters, digits and "
		       "._+@-, or a segment that is empty, . or .., or begins with -";
	*ret_method = m;
	return NULL;
}
