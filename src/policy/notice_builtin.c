/* The built-in templates. A terminal shows the first six lines. */
#include "policy/notice_text.h"

#define RELEASE_AND_KEEP                                                                       \
	"Release it: {release}\n"                                                              \
	"Keep it:    {keep}\n"

#define MORE                                                                                   \
	"Held idle so far: {spent}\n"                                                          \
	"What it is: {what}\n"                                                                 \
	"Kept before: {kept}; 'gua keep' lists what you keep\n"                                \
	"Why: rule {rule}; 'gua enforce explain {pid}' shows the evidence\n"

static const char *const texts[NOTICE_KINDS] = {
	[NOTICE_WARNING] =
		"Subject: [gua] {host}: you have held card {cards} idle for {idle}\n\n"
		"Your {command} (pid {pid}) holds {memory} on card {cards} of {host}\n"
		"and has not used it since {since}.\n"
		"What comes: {next}\n" RELEASE_AND_KEEP MORE,
	[NOTICE_AGAIN] =
		"Subject: [gua] {host}: second notice, card {cards} held idle for {idle}\n\n"
		"Your {command} (pid {pid}) still holds {memory} on card {cards} of {host}\n"
		"and has not used it since {since}.\n"
		"What comes: {next}\n" RELEASE_AND_KEEP MORE,
	[NOTICE_FINAL] =
		"Subject: [gua] {host}: last notice, your {command} will be ended at {end}\n\n"
		"Your {command} (pid {pid}) will be ended at {end}. Save your work.\n"
		"It holds {memory} on card {cards} of {host}, unused since {since}.\n"
		"If it uses the card before then, or you keep it, it will not be "
		"ended.\n" RELEASE_AND_KEEP MORE,
	[NOTICE_ENDED] = "Subject: [gua] {host}: your {command} was ended\n\n"
			 "Your {command} (pid {pid}) on {host} was ended: it had held card "
			 "{cards}\n"
			 "without using it since {since}.\n"
			 "Result: {result}\n"
			 "Memory given back: {freed}\n"
			 "Held idle: {spent}\n"
			 "What it was: {what}\n"
			 "Why: rule {rule}; 'gua enforce log' shows every step\n",
	[NOTICE_NOT_ENDED] =
		"Subject: [gua] {host}: your {command} was not ended\n\n"
		"Your {command} (pid {pid}) on {host} was to be ended, and was not.\n"
		"Reason: {result}\n"
		"It has held card {cards} without using it since {since}.\n" RELEASE_AND_KEEP
		"What it is: {what}\n"
		"Why: rule {rule}; 'gua enforce log' shows every step\n",
	[NOTICE_DIGEST] = "Subject: [gua] {host}: {count} notices in one\n\n"
			  "This stands for {count} notices about your sessions on {host}:\n"
			  "{list}\n"
			  "Keep one: gua keep PID --for 4h --reason TEXT\n"
			  "Why: 'gua enforce explain PID' shows the rule and the evidence\n",
	[NOTICE_ALARM] =
		"Subject: [gua] {host}: enforcement has stopped\n\n"
		"gua enforce on {host} ended nothing, and an administrator must look.\n"
		"Reason: {result}\n"
		"'gua enforce status' and 'gua enforce log' say more.\n",
	[NOTICE_TEST] = "Subject: [gua] {host}: a test\n\n"
			"This is a test of the notices of gua on {host}, for {user}.\n"
			"Nothing is wrong, and nothing will be ended.\n",
};

const char *notice_builtin(enum notice_kind kind)
{
	return texts[kind];
}
