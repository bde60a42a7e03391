/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-TERMINAL)
 *
 * A state machine parses the stream as a terminal would (ECMA-48 with xterm's extensions): plain
 * bytes, UTF-8 characters, escape sequences, strings. A sequence is held until it is complete and
 * then passes unchanged or not at all. The terminal never sees part of a sequence, and only listed
 * sequences pass. So if a terminal parses something differently from us, that does not change what
 * the sequences do. Two streams that share a terminal cannot form a sequence or a character
 * together.
 *
 * C1 controls (bytes 0x80 to 0x9f, or U+0080 to U+009F in UTF-8) never pass, because a terminal
 * treats them like the escape sequences that they stand for. Other bytes that are not UTF-8 become
 * U+FFFD, which is what a terminal shows for them. We assume that the terminal uses UTF-8, and
 * sequences that would change this do not pass. In text, characters that are invisible or change
 * the direction of others do not pass, either.
 *
 * terminal_sequences.c decides which sequences pass, and says why. */
#include "terminal_filter.h"
#include "base/utf8.h"
#include "terminal_sequences.h"

#include <string.h>

enum state {
	GROUND,
	CHARACTER,  /* in a UTF-8 character */
	ESCAPE,     /* after ESC, and bytes from 0x20 to 0x2f */
	CONTROL,    /* after ESC [ */
	STRING,     /* after ESC ] P X ^ _ k, up to its end */
	STRING_ESC, /* after an ESC in a string */
};

enum {
	BEL = 0x07,
	SO = 0x0e,
	SI = 0x0f,
	CAN = 0x18,
	SUB = 0x1a,
	ESC = 0x1b,
	DEL = 0x7f,
	STRING_MAX = 1 << 20, /* bytes of an unterminated string to drop before we give up */
};

struct sink {
	unsigned char *p;
	size_t n;
};

static void emit(struct sink *s, const void *p, size_t n)
{
	memcpy(s->p + s->n, p, n);
	s->n += n;
}

void terminal_filter_init(struct terminal_filter *f, enum terminal_filter_kind kind)
{
	f->kind = kind;
	f->state = GROUND;
	f->utf8_left = 0;
	f->drop = false;
	f->styled = false;
	f->asked = false;
	f->asked_at = 0;
	f->modes = 0;
	f->string_n = 0;
	f->held_n = 0;
}

static void hold(struct terminal_filter *f, unsigned char c)
{
	if (f->held_n == sizeof(f->held))
		f->drop = true;
	else
		f->held[f->held_n++] = c;
}

static void begin(struct terminal_filter *f, enum state state, unsigned char c)
{
	f->state = (unsigned char)state;
	f->drop = false;
	f->string_n = 0;
	f->held_n = 0;
	hold(f, c);
}

static void forget(struct terminal_filter *f)
{
	f->state = GROUND;
	f->held_n = 0;
}

/* The sequence is complete. */
static void terminal_filter_finish(struct terminal_filter *f, struct sink *out)
{
	if (!f->drop && terminal_sequence_passes(f))
		emit(out, f->held, f->held_n);
	forget(f);
}

static void emit_bad(struct sink *out)
{
	emit(out, "\xef\xbf\xbd", 3);
}

static unsigned char utf8_length(unsigned char lead)
{
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

static void ground(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	if (c == ESC) {
		begin(f, ESCAPE, c);
	} else if (c >= 0x80) {
		unsigned char n = utf8_length(c);

		if (n == 0) {
			emit_bad(out);
			return;
		}
		begin(f, CHARACTER, c);
		f->utf8_left = (unsigned char)(n - 1);
	} else if ((c >= 0x20 && c != DEL) || (c >= BEL && c <= '\r') || c == SI ||
		   (c == SO && f->kind == TERMINAL_PROGRAM)) {
		/* BEL, BS, HT, LF, VT, FF, CR pass. ENQ does not, because terminals answer it. */
		if (c == SO)
			terminal_note_charset(f);
		emit(out, &c, 1);
	}
}

/* Return whether c may follow the held bytes; RFC 3629, section 4. */
static bool continues(const struct terminal_filter *f, unsigned char c)
{
	unsigned char low = 0x80, high = 0xbf;

	if (f->held_n == 1) {
		if (f->held[0] == 0xe0)
			low = 0xa0;
		else if (f->held[0] == 0xed)
			high = 0x9f;
		else if (f->held[0] == 0xf0)
			low = 0x90;
		else if (f->held[0] == 0xf4)
			high = 0x8f;
	}
	return c >= low && c <= high;
}

/* Judge the character in f->held. A program has the whole screen, so what it hides there is its
 * own affair, but text is shown as it is. */
static bool is_hidden(const struct terminal_filter *f)
{
	uint32_t c = 0;

	(void)utf8_decode((struct str){(const char *)f->held, f->held_n}, &c);
	return c < 0xa0 || (f->kind == TERMINAL_TEXT && utf8_is_hidden_in_text(c));
}

/* Return false if c does not belong to the character and must be processed again. */
static bool character(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	if (!continues(f, c)) {
		forget(f);
		emit_bad(out);
		return false;
	}
	hold(f, c);
	if (--f->utf8_left > 0)
		return true;
	if (!is_hidden(f))
		emit(out, f->held, f->held_n);
	forget(f);
	return true;
}

static void escape(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	hold(f, c);
	if (c < 0x30) /* more bytes follow */
		return;
	if (f->held_n == 2 && c == '[')
		f->state = CONTROL;
	else if (f->held_n == 2 && strchr("]PX^_k", c))
		f->state = STRING;
	else
		terminal_filter_finish(f, out);
}

static void control(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	hold(f, c);
	if (c >= 0x40)
		terminal_filter_finish(f, out);
}

static bool string(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	bool command = f->held[1] == ']' || f->held[1] == 'k';

	if (c == ESC) {
		f->state = STRING_ESC;
		return true;
	}
	if (c == BEL && command) {
		hold(f, c);
		terminal_filter_finish(f, out);
		return true;
	}
	if (c == CAN || c == SUB || ++f->string_n > STRING_MAX) {
		forget(f);
		return c == CAN || c == SUB;
	}
	/* The text of a command has no line breaks, so this was not a command. Images can have
	 * them. */
	if (c < 0x20 && command) {
		forget(f);
		return false;
	}
	if (c < 0x20)
		f->drop = true;
	else if (f->kind == TERMINAL_PROGRAM)
		hold(f, c);
	return true;
}

static bool string_esc(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	if (c == '\\') {
		hold(f, ESC);
		hold(f, c);
		terminal_filter_finish(f, out);
		return true;
	}
	begin(f, ESCAPE, ESC);
	return false;
}

static bool step(struct terminal_filter *f, unsigned char c, struct sink *out)
{
	/* A control in a sequence: the sequence is dropped, and the control is processed on its
	 * own. */
	if ((f->state == ESCAPE || f->state == CONTROL) && (c < 0x20 || c >= DEL)) {
		forget(f);
		return c == CAN || c == SUB;
	}
	switch ((enum state)f->state) {
	case GROUND:
		ground(f, c, out);
		return true;
	case CHARACTER:
		return character(f, c, out);
	case ESCAPE:
		escape(f, c, out);
		return true;
	case CONTROL:
		control(f, c, out);
		return true;
	case STRING:
		return string(f, c, out);
	case STRING_ESC:
		return string_esc(f, c, out);
	}
	return true;
}

/* Return the number of plain bytes at p, in the ground state. */
static size_t plain(const unsigned char *p, size_t n)
{
	size_t i = 0;

	while (i < n && ((p[i] >= 0x20 && p[i] < DEL) || p[i] == '\n' || p[i] == '\t'))
		i++;
	return i;
}

size_t terminal_filter_feed(
	struct terminal_filter *f, const unsigned char *in, size_t n, unsigned char *out)
{
	struct sink sink = {.p = out};
	size_t i = 0;

	if (f->kind == TERMINAL_UNTOUCHED) {
		emit(&sink, in, n);
		return sink.n;
	}
	while (i < n) {
		size_t run = f->state == GROUND ? plain(in + i, n - i) : 0;

		emit(&sink, in + i, run);
		i += run;
		if (i < n && step(f, in[i], &sink))
			i++;
	}
	return sink.n;
}

size_t terminal_filter_end(struct terminal_filter *f, unsigned char out[TERMINAL_FILTER_END])
{
	size_t n = f->kind == TERMINAL_UNTOUCHED ? 0 : terminal_reset(f, (char *)out);

	terminal_filter_init(f, f->kind);
	return n;
}
