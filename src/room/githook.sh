# Git runs this in a room, by the name of each hook that is listed in githooks.c. A file that is
# read-only there can be neither replaced nor removed. Of that git often only warns, and succeeds, so
# that the next commit takes back what should have come. Here such a command fails, and is undone: a
# checkout when it has ended, any other before its branch moves (reference-transaction). One that moves
# no branch is stopped when it has written the index (post-index-change).
hook=${0##*/}
own=$(readlink "${0%/*}/.cloche-own")/$hook

# The command of git that runs this hook, and its options, one in a line.
list_words() {
	tr '\n\0' ' \n' < "/proc/$PPID/cmdline" | {
		read -r name
		name=${name##*/}
		case $name in
		git-*) echo "${name#git-}" ;;
		esac
		while IFS= read -r word; do
			case $word in
			-C | -c | --git-dir | --work-tree | --namespace | --exec-path) read -r word ;;
			-*) ;;
			*) printf '%s\n' "$word" && cat ;;
			esac
		done
	}
}

# Whether that command writes files. For most others the first look, which starts no program, is
# enough.
writes_files() {
	IFS= read -r words < "/proc/$PPID/cmdline"
	case $words in
	*merge* | *rebase* | *reset* | *cherry-pick* | *revert* | *am*) ;;
	*) return 1 ;;
	esac
	words=$(list_words)
	case $words in
	merge* | rebase* | cherry-pick* | revert* | am*) ;;
	reset*--hard* | reset*--merge* | reset*--keep*) ;;
	*) false ;;
	esac
}

# What is mounted read-only below the top of the worktree, as patterns of git.
list_guards() {
	top=$(git rev-parse --show-toplevel) || return
	sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) ro[, ].*/\1/p' /proc/self/mountinfo |
		sed 's/\\\([0-7]\)/\\0\1/g' | while IFS= read -r path; do
		path=$(printf '%b.' "$path")
		path=${path%.}
		case $path in
		"$top"/.git | "$top"/.git/*) ;;
		"$top"/*) printf ':(top,literal)%s\0' "${path#"$top"/}" ;;
		esac
	done
}

# Run a command of git that lists names, with the guards as its patterns. Names of files with a
# newline are not found.
with_guards() {
	list_guards | xargs -0 -r git "$@" -- | tr '\0' '\n'
}

# The object that a file would be, or nothing.
hash_file() {
	if [ -L "$1" ]; then
		readlink -n "$1" | git hash-object --stdin
	elif [ -f "$1" ]; then
		git hash-object -- "$1"
	fi
}

# Of these files, those that are not what an object of git says. $1: the object, "COMMIT:" or ":".
# What is left out on purpose (sparse-checkout) is not there.
list_other() {
	while IFS= read -r file; do
		is=$(hash_file "$file")
		if [ ! -d "$file" ] && [ "$is" != "$(git rev-parse -q --verify "$1$file")" ]; then
			case $is$(git ls-files -t -- ":(top,literal)$file") in
			S*) ;;
			*) printf '%s\n' "$file" ;;
			esac
		fi
	done
}

list_stuck() {
	with_guards diff-tree -r -z --no-renames --name-only "$1" "$2" | list_other "$2:"
}

# What has to be opened for these files, as options: the guards that they are, or lie in.
list_openings() {
	top=$(git rev-parse --show-toplevel)
	list_guards | tr '\0' '\n' | while IFS= read -r guard; do
		guard=${guard#':(top,literal)'}
		printf '%s\n' "$files" | while IFS= read -r file; do
			case $file in
			"$guard" | "$guard"/*) printf '%s/%s\n' "$top" "$guard" && break ;;
			esac
		done
	done | sort -u | sed "s/'/'\\\\''/g; s/.*/ --allow-write '&'/" | tr -d '\n'
}

say() {
	echo 'cloche: read-only in this sandbox, and different in the other commit:' >&2
	printf '%s\n' "$files" >&2
	for line; do
		echo "cloche: $line" >&2
	done
	printf '%s\n' "cloche: to allow it, start the sandbox with$(list_openings)" >&2
	note_files
}

# Leave the names where the supervisor looks for them in the end (workspace/stuck.h).
note_files() {
	copy=$(readlink "$(git rev-parse --git-common-dir)/config")
	top=$(git rev-parse --show-toplevel)
	case $copy in
	/run/cloche/config/*/config)
		printf '%s\n' "$files" | while IFS= read -r file; do
			printf '%s/%s\n' "$top" "$file"
		done >> "${copy%/config}/stuck"
		;;
	esac 2>/dev/null
}

# Give the index what these files still are, with which git can go back.
unstick() {
	printf '%s\n' "$2" | while IFS= read -r file; do
		git update-index --force-remove -- "$file"
		git ls-tree -z "$1" -- ":(top,literal)$file" | git update-index -z --add --index-info
	done
}

# What git had put away of the person's changes. $1: the file that says what.
put_back() {
	[ -f "$1" ] || return 0
	stash=$(cat "$1")
	{ git stash apply -q "$stash" || git stash store -m autostash "$stash"; } && rm "$1"
}

# A merge that is not finished would be finished by the next commit, with the tree of before.
end_merge() {
	state=$(git rev-parse --git-dir) || return
	put_back "$state/MERGE_AUTOSTASH" || return
	if [ -d "$state/rebase-merge" ] || [ -d "$state/rebase-apply" ]; then
		ends='git rebase --abort, or git am --abort, ends what was begun'
	elif [ -d "$state/sequencer" ]; then
		ends="git ${words%%[!a-z-]*} --abort ends what was begun"
	else
		rm -f "$state/CHERRY_PICK_HEAD" "$state/REVERT_HEAD"
	fi
	rm -f "$state/MERGE_HEAD" "$state/MERGE_MODE" "$state/MERGE_MSG"
}

# Undo a change that is about to be recorded: take files and index from the second commit to the
# first. Whatever else is different there stays as it is, as with every checkout.
refuse_move() {
	files=$(list_stuck "$1" "$2")
	[ -n "$files" ] || return 0
	unset GIT_INDEX_FILE
	ends=
	unstick "$1" "$files"
	git update-index -q --refresh
	if git read-tree -m -u "$2" "$1" && end_merge; then
		say 'so it was undone' ${ends:+"$ends"}
	else
		say 'it could not be undone; do not commit these files'
	fi
	exit 1
}

# What a command of git merges: its words that name a commit.
list_merged() {
	value=1
	printf '%s\n' "$words" | while IFS= read -r word; do
		[ -z "$value" ] || { value=; continue; }
		case $word in
		-m | -F | -s | -X | --file | --strategy | --strategy-option | --cleanup | --into-name)
			value=1 ;;
		-*) ;;
		*) git rev-parse -q --verify "$word^{commit}" ;;
		esac
	done
}

# A merge that brings a change that is not on the branch can be foreseen: git notes where it was
# (ORIG_HEAD) before it writes files.
refuse_merge() {
	case $(printf '%s' "$words" | tr '\n' ' ') in
	*' -s ours '* | *' -sours '* | *' --strategy=ours '* | *' --strategy ours '*) return 0 ;;
	esac
	files=$(list_merged | while IFS= read -r to; do
		base=$(git merge-base HEAD "$to") || continue
		list_stuck "$base" "$to" | while IFS= read -r file; do
			[ "$(git rev-parse -q --verify "$base:$file")" != \
				"$(git rev-parse -q --verify "HEAD:$file")" ] || printf '%s\n' "$file"
		done
	done | sort -u)
	[ -n "$files" ] || return 0
	say 'so nothing was merged'
	exit 1
}

on_transaction() {
	input=$(cat)
	case $words.$input in
	merge*' ORIG_HEAD') refuse_merge ;;
	esac
	moved=$(printf '%s\n' "$input" | sed -n 's/^\([0-9a-f]\{40,\} [0-9a-f]\{40,\}\) HEAD$/\1/p')
	case $moved in
	'' | 000000*) ;;
	*) refuse_move "${moved% *}" "${moved#* }" ;;
	esac
	[ -x "$own" ] || exit 0
	printf '%s\n' "$input" | "$own" "$@"
	exit
}

# Others run this hook, too, and do not ask how it ended.
on_checkout() {
	case $(list_words) in
	checkout* | switch*) ;;
	*) return 0 ;;
	esac
	git cat-file -e "$1" 2>/dev/null || return 0
	files=$(list_stuck "$1" "$2")
	[ -n "$files" ] || return 0
	if unstick "$1" "$files" && git checkout -q -; then
		say 'so the checkout was undone'
	else
		say 'the checkout could not be undone; do not commit these files'
	fi
	exit 1
}

# Before anything is moved.
on_rebase() {
	words=$(list_words)
	onto=$(printf '%s\n' "$words" | sed -n '/^--onto$/{n;p;q;};s/^--onto=//p')
	files=$(list_stuck "${2:-HEAD}" "${onto:-$1}")
	[ -n "$files" ] || return 0
	state=$(git rev-parse --git-path rebase-merge)
	put_back "$state/autostash" && rmdir "$state" 2>/dev/null
	say 'so nothing was rebased'
	exit 1
}

# Of these names, those at or below a guard.
list_guarded() {
	guards=$(list_guards | tr '\0' '\n' | sed 's/^:(top,literal)//')
	while IFS= read -r name; do
		printf '%s\n' "$guards" | while IFS= read -r guard; do
			case $name in
			"$guard" | "$guard"/*) printf '%s\n' "$name" ;;
			esac
		done
	done | sort -u
}

# Before a patch is applied: git removes all its files first, and fails at such a one.
on_patch() {
	patch=$(git rev-parse --git-path rebase-apply)/patch
	files=$({
		git apply --numstat -z "$patch" 2>/dev/null | tr '\0' '\n' |
			sed 's/^[0-9-]*\t[0-9-]*\t//'
		sed -n 's/^rename from //p' "$patch"
	} | list_guarded)
	[ -n "$files" ] || return 0
	say 'so the patch was not applied' \
		'git rebase --abort, or git am --abort, ends what was begun'
	exit 1
}

# Whether a word of the command matches a pattern of sed.
has_word() {
	[ -n "$(printf '%s\n' "$words" | sed -n "1d;/^$1\$/p")" ]
}

# Whether git's own scripts run this command. What they begin is undone as a whole.
is_part() {
	parent=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$PPID/status")
	IFS= read -r line < "/proc/$parent/cmdline"
	case $line in
	*git-merge-*) ;;
	*) false ;;
	esac
}

# Whether a command of git changes files, and moves no branch. $1: 1 if it says so; the last three
# do not.
moves_no_branch() {
	IFS= read -r words < "/proc/$PPID/cmdline"
	case $words in
	*stash* | *merge* | *pick* | *revert* | *read-tree* | *restore* | *apply* | *checkout*--*) ;;
	*) return 1 ;;
	esac
	words=$(list_words)
	case $1.$words in
	1.stash?pop* | 1.stash?apply* | 1.stash?branch*) ;;
	1.merge*) has_word '--squash' || has_word '--no-commit' ;;
	1.cherry-pick* | 1.revert*) has_word '-[a-z]*n[a-z]*' || has_word '--no-commit' ;;
	1.read-tree*) has_word '-[a-z]*u[a-z]*' && ! is_part ;;
	0.checkout*) has_word '--' ;;
	?.restore*) has_word '-[A-Za-z]*W[A-Za-z]*' || has_word '--worktree' || ! has_word '-[A-Za-z]*S[A-Za-z]*\|--staged' ;;
	?.apply*) ! has_word '--cached' ;;
	*) false ;;
	esac
}

# Such a command cannot be undone, as other changes may have been in the index.
on_index() {
	moves_no_branch "$1" || return 0
	files=$(with_guards diff-index -z --cached --no-renames --name-only HEAD | list_other :)
	[ -n "$files" ] || return 0
	unstick HEAD "$files"
	rest=
	case $words in
	stash*) rest=' the stash is kept, and' ;;
	esac
	say "so git is stopped;$rest the rest of it is in your files"
	kill "$PPID"
	exit 1
}

if [ -z "$CLOCHE_UNDOES" ]; then
	export CLOCHE_UNDOES=1
	case $hook.$1 in
	reference-transaction.prepared) writes_files && on_transaction "$@" ;;
	post-index-change.?) on_index "$1" ;;
	applypatch-msg.*) on_patch ;;
	post-checkout.*) [ "$3" != 1 ] || on_checkout "$1" "$2" ;;
	pre-rebase.*) on_rebase "$@" ;;
	esac
	unset CLOCHE_UNDOES
fi
[ -x "$own" ] || exit 0
exec "$own" "$@"
