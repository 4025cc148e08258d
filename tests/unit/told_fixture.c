/* Tells and hears a word through a file, since the two processes share no memory. */
#include "told_fixture.h"

#include <stdio.h>
#include <unistd.h>

static char path[64];

void told_start(void)
{
	snprintf(path, sizeof(path), "/tmp/gua-test-told-%d", (int)getpid());
}

void told_finish(void)
{
	unlink(path);
}

void tell(const char *word)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(word, f);
	fclose(f);
}

bool is_told(const char *word)
{
	char line[32] = "";
	FILE *f = fopen(path, "r");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return strcmp(line, word) == 0;
}
