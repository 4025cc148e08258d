/* Walks from a process to its parents. */
#include "proc/ancestry.h"

#include <string.h>

#include "base/str.h"
#include "proc/command.h"
#include "proc/proc.h"

enum {
	PARENTS_MAX = 32, /* how far the walk goes */
	NAMES_MAX = 8,	  /* how many of the nearest names are kept */
	COMM_TEXT_CAP = 64,
	ARGUMENTS_CAP = 1024, /* of a parent: its program and script are at the beginning */
};
#define SEPARATOR " > "
#define LEFT_OUT "... > "

/* Parents by their name, '*' as in piece_is_like(). */
static const struct starter {
	const char *name, *login;
} starters[] = {
	{ "tmux*", "tmux" },
	{ "screen", "screen" },
	{ "SCREEN", "screen" },
	{ "jupyter*", "jupyter" },
	{ "rsession*", "rstudio" },
	{ "code-server", "vscode" },
	{ "code-tunnel", "vscode" },
	{ "code", "vscode" },
	{ "mosh-server", "mosh" },
	{ "sshd*", "ssh" },
	{ "dropbear", "ssh" },
	{ "slurmstepd", "batch" },
	{ "pbs_mom", "batch" },
	{ "sge_shepherd", "batch" },
	{ "cron", "cron" },
	{ "CRON", "cron" },
	{ "crond", "cron" },
	{ "anacron", "cron" },
	{ "atd", "at" },
	{ "login", "tty" },
	{ "agetty", "tty" },
	{ "gnome-shell", "desktop" },
	{ "gnome-terminal*", "desktop" },
	{ "gdm-session-wor", "desktop" },
	{ "plasmashell", "desktop" },
	{ "konsole", "desktop" },
	{ "sddm-helper", "desktop" },
	{ "lightdm", "desktop" },
	{ "xrdp*", "desktop" },
	{ "Xvnc", "desktop" },
};

/* The servers of editors are run by node or a shell; the path of their program or script shows
 * what they are. */
static const struct editor {
	const char *path, *login;
} editors[] = {
	{ "/.vscode-server", "vscode" },
	{ "/.vscodium-server", "vscode" },
	{ "/.cursor-server", "cursor" },
	{ "/.windsurf-server", "windsurf" },
	{ "/JetBrains/", "jetbrains" },
};

static void recognise_name(struct ancestry *a, const struct proc_stat *parent)
{
	const struct piece name = { parent->comm, parent->comm_len };
	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]) && !*a->login; i++)
		if (piece_is_like(name, starters[i].name))
			text_copy(a->login, sizeof(a->login), starters[i].login);
}

static void recognise_path(struct ancestry *a, int proc, uint32_t pid)
{
	char bytes[ARGUMENTS_CAP];
	ssize_t n = proc_read_arguments(proc, pid, bytes, sizeof(bytes));
	struct proc_arguments arguments = { .bytes = bytes, .len = n < 0 ? 0 : (size_t)n };
	struct piece arg = { bytes, 0 };
	for (int k = 0; k < 2 && proc_next_argument(&arguments, &arg.at, &arg.len); k++)
		for (size_t i = 0; i < sizeof(editors) / sizeof(editors[0]) && !*a->login; i++)
			if (memmem(arg.at, arg.len, editors[i].path, strlen(editors[i].path)))
				text_copy(a->login, sizeof(a->login), editors[i].login);
	a->editor = *a->login != '\0';
}

/* The nearest names, nearest first. */
struct names {
	char texts[NAMES_MAX][COMM_TEXT_CAP];
	size_t n;
	bool more; /* there were others, further up */
};

/* "tmux: server" is "tmux". */
static void add_name(struct names *names, const struct proc_stat *parent)
{
	if (names->n == NAMES_MAX) {
		names->more = true;
		return;
	}
	char *text = names->texts[names->n];
	proc_name(text, COMM_TEXT_CAP, parent);
	size_t len = strlen(text);
	if (len > 1 && text[len - 1] == ':')
		text[len - 1] = '\0';
	if (*text)
		names->n++;
}

/* Names that do not fit are left out, outermost first. */
static void write_names(const struct names *names, char dst[LABEL_CAP])
{
	size_t used = 0, from = 0;
	size_t room = LABEL_CAP - strlen(LEFT_OUT) - 1;
	for (; from < names->n; from++) {
		size_t len = strlen(names->texts[from]) + (from ? strlen(SEPARATOR) : 0);
		if (used + len > room)
			break;
		used += len;
	}
	text_copy(dst, LABEL_CAP, names->more || from < names->n ? LEFT_OUT : "");
	while (from-- > 0) {
		size_t at = strlen(dst);
		text_copy(dst + at, LABEL_CAP - at, names->texts[from]);
		at = strlen(dst);
		text_copy(dst + at, LABEL_CAP - at, from ? SEPARATOR : "");
	}
}

void ancestry_read(
	struct ancestry *a, int proc, uint32_t pid, const struct proc_stat *stat, bool brief)
{
	struct names names = { .n = 0 };
	struct proc_stat parent;
	bool outside = (pid_t)pid == stat->session; /* of the session */
	uint64_t born = stat->start_ticks;
	pid_t next = stat->ppid;
	*a = (struct ancestry){ 0 };
	for (int i = 0; i < PARENTS_MAX && next > 1 && !(outside && *a->login); i++) {
		pid_t at = next;
		/* A pid that was used again is not the parent's any more. */
		if (proc_read_stat(proc, (uint32_t)at, &parent) != 0 ||
			parent.start_ticks > born)
			break;
		if (!outside)
			add_name(&names, &parent);
		outside |= at == stat->session;
		recognise_name(a, &parent);
		if (!*a->login && !brief)
			recognise_path(a, proc, (uint32_t)at);
		born = parent.start_ticks;
		next = parent.ppid;
	}
	write_names(&names, a->parents);
}
