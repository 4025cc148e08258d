/* Finds the caller's name, and says what a user who may not read the store can do. */
#include "cmd/share/mine.h"

#include "proc/proc.h"
#include "proc/user.h"

static int name_of(char name[USER_CAP], uint32_t uid, struct err *e)
{
	struct user_names *names;
	if (user_names_new(&names, user_find_system, NULL, USER_DEADLINE_MS, e))
		return e->code;
	user_names_get(names, uid, 0, name, USER_CAP);
	user_names_free(names);
	return 0;
}

int mine_actor(char name[USER_CAP], struct err *e)
{
	int proc = -1;
	int64_t login = -1;
	if (getuid() == 0 && proc_open(&proc, "", NULL) == 0) {
		login = proc_read_login_uid(proc, (uint32_t)getpid());
		close(proc);
	}
	return name_of(name, login >= 0 ? (uint32_t)login : (uint32_t)getuid(), e);
}

int mine_expand(struct text_list *users, struct arena *texts, bool *found, struct err *e)
{
	char name[USER_CAP] = "", word[TEXT_LIST_WORD_CAP];
	for (size_t i = 0; i < users->n; i++) {
		struct str item = { 0 };
		bool me = false;
		for (const char *at = users->items[i]; options_list_word(&at, word);) {
			bool own = strcmp(word, "me") == 0;
			/* The name is that of the real uid; with sudo that is root's. */
			if (own && !*name && name_of(name, (uint32_t)getuid(), e)) {
				str_finish(&item);
				return e->code;
			}
			str_addf(&item, "%s%s", item.len ? "," : "", own ? name : word);
			me |= own;
		}
		if (me)
			users->items[i] =
				item.failed ? NULL : arena_text(texts, str_text(&item));
		str_finish(&item);
		*found |= me;
		if (!users->items[i])
			return err_memory(e);
	}
	return 0;
}

void mine_explain(const char *path, struct err *e)
{
	const struct err why = *e;
	if (access(path, R_OK) == 0 || errno != EACCES)
		return;
	err_set(e, why.code,
		"%s. Ask your administrator for the right to read it. Until then, 'gua who' "
		"shows what you hold now, and 'gua track -- COMMAND' measures a job of yours",
		why.text);
}
