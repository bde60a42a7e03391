/* SPDX-License-Identifier: Apache-2.0 */
/* Shows what the files of a project ask for, and whether the person has consented to it:
 * project [DIR]. */
#include <cloche/project.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_project *project = NULL;
	cloche_allowlist *rules = cloche_allowlist_new();
	const char *line;

	if (!rules || cloche_project_find(argc > 1 ? argv[1] : ".", &project, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	if (!project) {
		puts("there are no such files");
		return 0;
	}
	for (size_t i = 0; (line = project->asks[i]); i++)
		printf("  %s\n", line);
	if (cloche_project_rules(project, rules, &err) == 0)
		printf("rules: %zu\n", cloche_allowlist_count(rules));
	puts(project->is_trusted ? "obeyed" : "not obeyed without consent");
	cloche_allowlist_free(rules);
	cloche_project_free(project);
	return 0;
}
