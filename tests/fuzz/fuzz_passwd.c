/* A passwd file of a recorded tree. */
#include "fuzz.h"

#include "model/process.h"
#include "proc/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t uids[] = { 0, 1, 1000, 65534, UINT32_MAX };
	struct user_names *u = NULL;
	char *text = fuzz_text(data, size), name[USER_CAP];
	CHECK(user_names_new_file(&u, text, size, NULL) == 0);
	for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
		user_names_get(u, uids[i], 0, name, sizeof(name));
		CHECK(name[0]);
		check_safe(name);
	}
	user_names_free(u);
	return 0;
}
