#!/bin/sh
# Git runs this after a checkout in a room. A file that is read-only there cannot be replaced. Git
# only warns of that, and succeeds, so that the next commit takes back what should have been checked
# out. Here such a checkout fails, and is undone: the index gets these files as they still are, and
# then git can go back. (Arguments: the commits before and after, and 1 if a commit was checked out.)
own=${0%/*}/.cloche-own/post-checkout

is_stuck() {
	[ -f "$2" ] && ! (: >> "$2") 2>/dev/null &&
		[ "$(git hash-object -- "$2")" != "$(git rev-parse -q --verify "$1:$2")" ]
}

list_stuck() {
	git diff-tree -r -z --no-renames --name-only "$1" "$2" | tr '\0' '\n' |
		while IFS= read -r file; do
			if is_stuck "$2" "$file"; then
				printf '%s\n' "$file"
			fi
		done
}

undo() {
	printf '%s\n' "$2" | while IFS= read -r file; do
		git ls-tree -z "$1" -- ":(literal)$file" | git update-index -z --add --index-info
	done
	CLOCHE_UNDOES=1 git checkout -q -
}

if [ "$3" = 1 ] && [ -z "$CLOCHE_UNDOES" ] && git cat-file -e "$1" 2>/dev/null; then
	files=$(list_stuck "$1" "$2")
	if [ -n "$files" ]; then
		echo 'cloche: read-only in this sandbox, and different in the other commit:' >&2
		printf '%s\n' "$files" >&2
		if undo "$1" "$files"; then
			echo 'cloche: so the checkout was undone' >&2
		else
			echo 'cloche: the checkout could not be undone; do not commit these files' >&2
		fi
		echo 'cloche: to allow it, start the sandbox with --allow-write FILE for each' >&2
		exit 1
	fi
fi
[ -x "$own" ] || exit 0
exec "$own" "$@"
