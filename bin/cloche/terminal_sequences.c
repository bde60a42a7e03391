/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-TERMINAL)
 *
 * Only listed sequences pass; everything else is dropped, whatever terminal it is meant for.
 *
 * A command without a terminal of its own may use colours, movement, erasing and the visibility of
 * the cursor, but not erase the scrollback, which belongs to the user.
 *
 * A program with a terminal of its own (-t) is an editor, a pager, a multiplexer or an agent. It
 * may set modes, query the type, size, colours and state of the terminal, set the window's title
 * and show links to the web. The answers to these queries consist of digits and fixed words. If one
 * arrives after the program has ended, the shell reads rubbish, but not a command. The following do
 * not pass, because nothing that people use in a room needs them:
 *   - the clipboard (OSC 52 and similar): reading exposes secrets, writing prepares a paste;
 *   - answers with text that the room chose: the window's title, the answerback, fonts;
 *   - checksums of the screen, which reveal what the user sees;
 *   - strings that terminals act upon by themselves: images (also by file name), files, key
 *     definitions, status lines, passthrough to an outer terminal (tmux, screen), notifications,
 *     the directory and the commands of the shell, links to anything but the web;
 *   - printing, resizing, moving; locking the keyboard; modes with another syntax (VT52, Tektronix,
 *     8-bit controls, other encodings);
 *   - whatever lasts and cannot be undone, because terminals differ in its usual state or because
 * we do not know it: modes that are not in the table, tab stops, further character sets. When the
 * program ends, what it left on is switched off. */
#include "terminal_sequences.h"

#include <stdio.h>
#include <string.h>

struct span {
	const char *p;
	size_t n;
};

/* A control sequence, split into its parts. */
struct csi {
	char prefix; /* one of <=>? or 0 */
	struct span params;
	char inter; /* the intermediate byte, or 0 */
	char final;
};

enum { DIGITS_MAX = 5, PARAMS_MAX = 64 };

/* The modes that pass. `usual` is the state that a shell expects. */
static const struct {
	unsigned short number;
	bool dec, usual;
} modes[] = {
	/* Alternate screens come first: the other modes apply to the screen that the user returns
	 * to. */
	{1049, true, false}, {1047, true, false}, {47, true, false}, {1, true, false},
	{5, true, false}, {6, true, false}, {7, true, true}, {9, true, false}, {25, true, true},
	{66, true, false}, {67, true, false}, {69, true, false}, {1000, true, false},
	{1001, true, false}, {1002, true, false}, {1003, true, false}, {1004, true, false},
	{1005, true, false}, {1006, true, false}, {1015, true, false}, {1016, true, false},
	{2004, true, false}, {2026, true, false}, {2031, true, false}, {2048, true, false},
	{4, false, false}, {20, false, false}};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };
_Static_assert(MODES < 40, "the bits above are those below");

/* Other lasting effects, and the sequences that undo them. */
enum lasting {
	REGION,
	KEYPAD,
	CURSOR,
	KEYBOARD,
	MODIFIERS,
	PALETTE,
	COLOURS,
	LINK,
	PROGRESS,
	CHARSET,
	LASTING_END
};
static const char *const undo[LASTING_END] = {
	[REGION] = "\0337\033[r\0338", /* this moves the cursor, so save and restore it */
	[KEYPAD] = "\033>",
	[CURSOR] = "\033[0 q",
	[KEYBOARD] = "\033[<32u\033[=0u",
	[MODIFIERS] = "\033[>4m",
	[PALETTE] = "\033]104\033\\\033]105\033\\",
	[COLOURS] = "\033]110\033\\\033]111\033\\\033]112\033\\\033]113\033\\\033]114\033\\"
		    "\033]115\033\\\033]116\033\\\033]117\033\\\033]118\033\\\033]119\033\\",
	[LINK] = "\033]8;;\033\\",
	[PROGRESS] = "\033]9;4;0\033\\",
	[CHARSET] = "\033(B\033)B\017",
};

static uint64_t lasting(enum lasting what)
{
	return 1ULL << (40 + what);
}

static void note(struct terminal_filter *f, uint64_t bit, bool on)
{
	f->modes = on ? f->modes | bit : f->modes & ~bit;
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Remove the next parameter from params. Return false at the end. An empty one gives
 * `otherwise`. */
static bool next_param(struct span *params, unsigned otherwise, unsigned *ret)
{
	unsigned value = 0;
	size_t i = 0;

	if (!params->p)
		return false;
	while (i < params->n && params->p[i] >= '0' && params->p[i] <= '9')
		value = value * 10 + (unsigned)(params->p[i++] - '0');
	*ret = i ? value : otherwise;
	if (i < params->n)
		*params = (struct span){params->p + i + 1, params->n - i - 1};
	else
		params->p = NULL;
	return true;
}

/* Return the parameter with this index; 0 if there is none. */
static unsigned param(const struct csi *s, unsigned index)
{
	struct span params = s->params;
	unsigned value = 0;

	for (unsigned i = 0; i <= index; i++)
		if (!next_param(&params, 0, &value))
			return 0;
	return value;
}

/* Split a sequence. Return false if its parts are not in this order, if there are too many
 * parameters, if a number is so large that terminals could mishandle it, or if there is a colon in
 * anything but a colour. */
static bool split(const unsigned char *held, size_t held_n, struct csi *ret)
{
	const char *p = (const char *)held + 2;
	size_t n = held_n - 2, i = 0, digits = 0, params = 1;

	*ret = (struct csi){.final = p[n - 1]};
	n--;
	if (n > 0 && is_one_of(p[0], "<=>?")) {
		ret->prefix = p[0];
		p++;
		n--;
	}
	for (; i < n && p[i] >= '0' && p[i] <= ';'; i++) {
		bool digit = p[i] <= '9';

		digits = digit ? digits + 1 : 0;
		params += !digit;
		if (digits > DIGITS_MAX || params > PARAMS_MAX ||
			(p[i] == ':' && ret->final != 'm'))
			return false;
	}
	ret->params = (struct span){p, i};
	if (i < n)
		ret->inter = p[i++];
	return i == n && (!ret->inter || (ret->inter >= 0x20 && ret->inter <= 0x2f));
}

static void note_style(struct terminal_filter *f, const struct csi *s)
{
	f->styled = !(s->params.n == 0 || (s->params.n == 1 && s->params.p[0] == '0'));
}

static bool movement_passes(struct terminal_filter *f, const struct csi *s)
{
	if (s->final == 'm')
		note_style(f, s);
	/* 3 erases the scrollback. */
	if (s->final == 'J')
		return param(s, 0) < 3;
	/* With five parameters T starts mouse tracking. With parameters s sets the margins. */
	if (s->final == 'T')
		return !memchr(s->params.p, ';', s->params.n);
	if (s->final == 's' || s->final == 'u')
		return s->params.n == 0;
	return is_one_of(s->final, "@ABCDEFGHIKLMPSXZ`adefm");
}

static bool text_passes(struct terminal_filter *f, const struct csi *s)
{
	if (s->inter)
		return false;
	if (s->prefix == '?' && is_one_of(s->final, "hl") && s->params.n == 2 &&
		memcmp(s->params.p, "25", 2) == 0) {
		for (size_t i = 0; i < MODES; i++)
			if (modes[i].number == 25)
				note(f, 1ULL << i, s->final == 'l');
		return true;
	}
	return !s->prefix && movement_passes(f, s);
}

/* Return whether a sequence may set, reset or restore this mode. What is restored may have been
 * saved in any state. */
static bool mode_passes(struct terminal_filter *f, unsigned number, bool dec, char final)
{
	if (dec && number == 1048) /* the cursor, as by ESC 7 and ESC 8 */
		return true;
	if (dec && number == 12) { /* it blinks: undone with its shape */
		note(f, lasting(CURSOR), true);
		return true;
	}
	for (size_t i = 0; i < MODES; i++)
		if (modes[i].number == number && modes[i].dec == dec) {
			note(f, 1ULL << i, final == 'r' || (final == 'h') != modes[i].usual);
			return true;
		}
	return false;
}

static bool modes_pass(struct terminal_filter *f, const struct csi *s)
{
	struct span params = s->params;
	uint64_t before = f->modes;
	unsigned number;

	while (next_param(&params, 0, &number))
		if (!mode_passes(f, number, s->prefix == '?', s->final)) {
			f->modes = before;
			return false;
		}
	return true;
}

/* With an intermediate byte: query a mode, soft reset, cursor shape, scroll sideways. */
static bool inter_passes(struct terminal_filter *f, const struct csi *s)
{
	if (s->inter == ' ' && s->final == 'q')
		note(f, lasting(CURSOR), param(s, 0) != 0);
	if (s->inter == '$')
		return s->final == 'p' && (!s->prefix || s->prefix == '?');
	if (s->prefix)
		return false;
	return (s->inter == '!' && s->final == 'p') ||
	       (s->inter == ' ' && is_one_of(s->final, "q@A"));
}

/* Window and screen sizes and the title stack pass. Resizing, moving and reporting the title do
 * not. */
static bool window_passes(const struct csi *s)
{
	static const unsigned char fine[] = {11, 13, 14, 15, 16, 18, 19, 22, 23};
	unsigned what = param(s, 0);

	return what < 32 && memchr(fine, (int)what, sizeof(fine));
}

static bool plain_passes(struct terminal_filter *f, const struct csi *s)
{
	switch (s->final) {
	case 'h':
	case 'l':
		return modes_pass(f, s);
	case 't':
		return window_passes(s);
	case 'r':
		note(f, lasting(REGION), s->params.n > 0);
		return true;
	case 'J':
	case 's':
		return true;
	default:
		return movement_passes(f, s) || is_one_of(s->final, "bcn");
	}
}

/* How keys with modifiers are sent: of the kinds, what full-screen programs use. */
static bool modifiers_pass(struct terminal_filter *f, const struct csi *s)
{
	if (s->params.n == 0 && s->final == 'm') /* back to what is usual */
		return true;
	if (param(s, 0) != 4)
		return false;
	note(f, lasting(MODIFIERS), s->final == 'n' || param(s, 1) > 0);
	return true;
}

static bool program_passes(struct terminal_filter *f, const struct csi *s)
{
	if (s->inter)
		return inter_passes(f, s);
	switch (s->prefix) {
	case 0:
		return plain_passes(f, s);
	case '?':
		if (is_one_of(s->final, "hlr"))
			return modes_pass(f, s);
		if (s->final == 'S') /* read a limit of images, or the most it can be */
			return param(s, 1) == 1 || param(s, 1) == 4;
		return is_one_of(s->final, "JKWmnsu");
	case '>':
		if (s->final == 'u')
			note(f, lasting(KEYBOARD), true);
		if (is_one_of(s->final, "mn"))
			return modifiers_pass(f, s);
		return is_one_of(s->final, "cqu");
	case '<':
		return s->final == 'u';
	default:
		if (s->final == 'u')
			note(f, lasting(KEYBOARD), true);
		return is_one_of(s->final, "cu");
	}
}

/* Sequences of ESC and a byte, or of ESC, an intermediate byte and a byte. */
static bool escape_passes(struct terminal_filter *f)
{
	char a = (char)f->held[1], b = f->held_n == 3 ? (char)f->held[2] : 0;

	if (f->held_n > 3)
		return false;
	if (b && f->kind == TERMINAL_TEXT)
		return a == '(' && b == 'B';
	if (b) {
		if (is_one_of(a, "()"))
			terminal_note_charset(f);
		/* The two character sets that SO and SI choose from; line sizes and the test
		 * pattern; UTF-8. */
		return is_one_of(a, "()") || (a == '#' && is_one_of(b, "34568")) ||
		       (a == '%' && b == 'G');
	}
	if (is_one_of(a, "78DEM"))
		return true;
	if (f->kind == TERMINAL_TEXT)
		return false;
	if (is_one_of(a, "=>"))
		note(f, lasting(KEYPAD), a == '=');
	return is_one_of(a, "=>c");
}

/* The contents of a string, without the two bytes before and the one or two bytes after it. */
static struct span string_of(const struct terminal_filter *f)
{
	size_t tail = f->held[f->held_n - 1] == '\\' && f->held[f->held_n - 2] == 0x1b ? 2 : 1;

	return (struct span){(const char *)f->held + 2, f->held_n - 2 - tail};
}

static bool begins(struct span s, const char *with)
{
	size_t n = strlen(with);

	return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* Return whether s is UTF-8 without control characters. */
static bool is_text(struct span s)
{
	struct terminal_filter check;
	unsigned char shown[TERMINAL_FILTER_OUT(TERMINAL_FILTER_HELD)];

	terminal_filter_init(&check, TERMINAL_TEXT);
	return terminal_filter_feed(&check, (const unsigned char *)s.p, s.n, shown) == s.n &&
	       check.held_n == 0 && memcmp(shown, s.p, s.n) == 0;
}

/* "8;params;URI": links to the web pass, and an empty URI, which ends a link. */
static bool link_passes(struct terminal_filter *f, struct span s)
{
	const char *semicolon = memchr(s.p, ';', s.n);
	struct span uri;

	if (!semicolon)
		return false;
	uri = (struct span){semicolon + 1, s.n - (size_t)(semicolon + 1 - s.p)};
	if (uri.n > 0 && !begins(uri, "https://") && !begins(uri, "http://"))
		return false;
	note(f, lasting(LINK), uri.n > 0);
	return true;
}

/* Anything but numbers and question marks sets a colour. */
static bool sets(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_one_of(s.p[i], "0123456789;?"))
			return true;
	return false;
}

/* A progress bar, not a notification. */
static bool progress_passes(struct terminal_filter *f, struct span s)
{
	if (!begins(s, "4;"))
		return false;
	note(f, lasting(PROGRESS), s.n != 3 || s.p[2] != '0');
	return true;
}

/* Titles, links, progress, colours. */
static bool command_is_known(struct terminal_filter *f, unsigned number, struct span rest)
{
	if (number == 8)
		return link_passes(f, rest);
	if (number == 9)
		return progress_passes(f, rest);
	return number <= 2 || number == 4 || number == 5 || (number >= 10 && number <= 19) ||
	       number == 104 || number == 105 || (number >= 110 && number <= 119);
}

static bool command_passes(struct terminal_filter *f, struct span s)
{
	unsigned number = 0;
	size_t i = 0;

	while (i < s.n && i < 4 && s.p[i] >= '0' && s.p[i] <= '9')
		number = number * 10 + (unsigned)(s.p[i++] - '0');
	if (i == 0 || (i < s.n && s.p[i] != ';') || !is_text(s))
		return false;
	if (i < s.n)
		i++;
	s = (struct span){s.p + i, s.n - i};
	if (!command_is_known(f, number, s))
		return false;
	f->asked = f->asked || (number > 2 && number != 8 && memchr(s.p, '?', s.n));
	if ((number == 4 || number == 5) && sets(s))
		note(f, lasting(PALETTE), true);
	if (number >= 10 && number <= 19 && sets(s))
		note(f, lasting(COLOURS), true);
	return true;
}

/* Device control strings: query a setting, query capabilities (names in hexadecimal), delay
 * drawing. */
static bool device_passes(struct span s)
{
	if (s.n == 3 && begins(s, "=") && is_one_of(s.p[1], "12") && s.p[2] == 's')
		return true;
	if (begins(s, "$q"))
		return s.n <= 4 && (s.n < 3 || (s.p[2] >= 0x20 && s.p[2] < 0x7f)) &&
		       (s.n < 4 || (s.p[3] >= 0x20 && s.p[3] < 0x7f));
	if (!begins(s, "+q"))
		return false;
	for (size_t i = 2; i < s.n; i++)
		if (!is_one_of(s.p[i], "0123456789abcdefABCDEF;"))
			return false;
	return true;
}

/* Of the sequences that pass: return whether a terminal answers it. */
static bool is_question(const struct csi *s)
{
	if (s->inter)
		return s->inter == '$';
	switch (s->prefix) {
	case '?':
		return is_one_of(s->final, "Smnu");
	case '>':
		return is_one_of(s->final, "cq");
	default:
		return is_one_of(s->final, "cnt");
	}
}

static bool control_passes(struct terminal_filter *f)
{
	struct csi s;

	if (!split(f->held, f->held_n, &s))
		return false;
	if (f->kind == TERMINAL_TEXT)
		return text_passes(f, &s);
	if (!program_passes(f, &s))
		return false;
	f->asked = f->asked || is_question(&s);
	return true;
}

/* It is never taken back: the set that is chosen, and what it is, are two things. */
void terminal_note_charset(struct terminal_filter *f)
{
	note(f, lasting(CHARSET), true);
}

bool terminal_sequence_passes(struct terminal_filter *f)
{
	switch (f->held[1]) {
	case '[':
		return control_passes(f);
	case ']':
		return f->kind == TERMINAL_PROGRAM && command_passes(f, string_of(f));
	case 'P':
		if (f->kind != TERMINAL_PROGRAM || !device_passes(string_of(f)))
			return false;
		f->asked = true;
		return true;
	case 'X':
	case '^':
	case '_':
	case 'k':
		return false;
	default:
		return escape_passes(f);
	}
}

static size_t append(char *out, size_t n, const char *text)
{
	size_t text_n = strlen(text);

	memcpy(out + n, text, text_n + 1);
	return n + text_n;
}

size_t terminal_reset(const struct terminal_filter *f, char *out)
{
	char mode[16];
	size_t n = 0;

	/* An alternate screen has its own. */
	if (f->modes & lasting(KEYBOARD))
		n = append(out, n, undo[KEYBOARD]);
	for (size_t i = 0; i < MODES; i++) {
		if (!(f->modes & 1ULL << i))
			continue;
		snprintf(mode, sizeof(mode), "\033[%s%u%c", modes[i].dec ? "?" : "",
			(unsigned)modes[i].number, modes[i].usual ? 'h' : 'l');
		n = append(out, n, mode);
	}
	for (unsigned i = 0; i < LASTING_END; i++)
		if (f->modes & lasting((enum lasting)i))
			n = append(out, n, undo[i]);
	return f->styled ? append(out, n, "\033[0m") : n;
}
