/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's file itself asks for: the line "#!" of a script, as the kernel and env(1) read
 * it, and the loader that an ELF file names (PT_INTERP). */
#include "base/fd.h"
#include "base/macro.h"
#include "base/program.h"
#include "fs/fs.h"
#include "toolchain/toolchain.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 4096, MAX_HEADERS = 64, MAX_LOADER = 1024 };

bool tool_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

char *tool_cut_below(const char *path, const char *dir, unsigned levels)
{
	const char *at = fs_below(path, dir);

	if (!at || !*at)
		return NULL;
	for (; levels > 0; levels--) {
		at += strcspn(at, "/");
		/* The program itself is no directory. */
		if (!*at)
			return NULL;
		at += strspn(at, "/");
	}
	return at - path > 1 ? str_dup(str_make(path, (size_t)(at - path) - 1)) : NULL;
}

bool tool_is_on_path(struct str path)
{
	struct str rest = STR(SYSTEM_PATH);
	size_t n = path.n;

	while (n && path.p[n - 1] != '/')
		n--;
	while (n && rest.n)
		if (str_eq(str_next(&rest, ':'), str_make(path.p, n - 1)))
			return true;
	return false;
}

char *tool_path_outside(const struct toolchain_query *q, const char *path)
{
	const char *below = q->workspace ? fs_below(path, q->workspace_inside) : NULL;

	return below && *below ? fs_join(q->workspace, below) : strdup(path);
}

static struct str next_word(struct str *s)
{
	size_t n = 0;
	struct str word;

	*s = str_trim(*s);
	while (n < s->n && s->p[n] != ' ' && s->p[n] != '\t')
		n++;
	word = str_prefix(*s, n);
	*s = str_from_index(*s, n);
	return word;
}

/* The program that "env ARGUMENTS" starts. */
static struct str script_env_program(struct str rest)
{
	struct str word;

	while ((word = next_word(&rest)).n) {
		/* -S splits the rest, which we do anyway; -u takes a name. */
		if (str_eq(word, STR("-u")) || str_eq(word, STR("--unset")) ||
			str_eq(word, STR("-C")) || str_eq(word, STR("--chdir"))) {
			next_word(&rest);
			continue;
		}
		if (str_starts(word, STR("-S")) && word.n > 2)
			return str_from_index(word, 2);
		if (word.p[0] != '-' && str_chr(word, '=') == word.n)
			return word;
	}
	return STR_NULL;
}

static int read_script(struct str head, struct tool_needs *ret)
{
	struct str line = str_prefix(head, str_chr(head, '\n')), program, found;
	size_t slash;

	line = str_from_index(line, 2);
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--; /* the kernel would not find it; report the name without it */
	program = next_word(&line);
	ret->script = true;
	if (program.n == 0 || memchr(program.p, '\0', program.n))
		return -ENOEXEC;
	for (slash = program.n; slash > 0 && program.p[slash - 1] != '/'; slash--)
		;
	found = program;
	if (str_eq(str_from_index(program, slash), STR("env"))) {
		found = script_env_program(line);
		ret->by_name = found.n > 0 && found.p[0] != '/';
		if (found.n == 0)
			found = program;
	}
	ret->interpreter = str_dup(found);
	return ret->interpreter ? 0 : -ENOMEM;
}

/* Only 64 bits, in our own byte order: other programs run without a loader of ours anyway. */
static int read_elf(int fd, const char *head, size_t n, struct tool_needs *ret)
{
	char loader[MAX_LOADER + 1];
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (n < sizeof(h) || head[EI_CLASS] != ELFCLASS64)
		return 0;
	memcpy(&h, head, sizeof(h));
	if (h.e_phentsize != sizeof(p))
		return 0;
	for (unsigned i = 0; i < h.e_phnum && i < MAX_HEADERS; i++) {
		if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + i * sizeof(p))) !=
			(ssize_t)sizeof(p))
			return 0;
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz == 0 || p.p_filesz > MAX_LOADER ||
			pread(fd, loader, p.p_filesz, (off_t)p.p_offset) != (ssize_t)p.p_filesz)
			return 0;
		loader[p.p_filesz] = '\0';
		ret->interpreter = strdup(loader);
		return ret->interpreter ? 0 : -ENOMEM;
	}
	return 0;
}

int tool_read_needs(const char *file, struct tool_needs *ret)
{
	_cleanup_fd_ int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char head[HEAD];
	ssize_t n;

	*ret = (struct tool_needs){0};
	if (fd < 0)
		return -errno;
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	if (n >= 2 && head[0] == '#' && head[1] == '!')
		return read_script(str_make(head, (size_t)n), ret);
	if (n >= 4 && memcmp(head, ELFMAG, SELFMAG) == 0)
		return read_elf(fd, head, (size_t)n, ret);
	return 0;
}
