/* Preloaded into a program (LD_PRELOAD): a name service that answers after SLOW_NAMES seconds.
 */
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getpwuid_r(
	uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **result)
{
	const char *seconds = getenv("SLOW_NAMES");
	(void)size;
	sleep(seconds ? (unsigned)atoi(seconds) : 0);
	strcpy(buffer, "slow");
	*entry = (struct passwd){ .pw_name = buffer, .pw_uid = uid };
	*result = entry;
	return 0;
}
