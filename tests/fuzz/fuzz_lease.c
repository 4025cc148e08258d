/* The file of a lease, the names of its cards, and the driver's information about a card. */
#include "fuzz.h"

#include <math.h>

#include "lease/lease_file.h"
#include "proc/proc_cards.h"

/* What was read is written and read again: it must be the same. */
static void check_again(const struct lease_file *f, const struct lease *lease)
{
	struct str text = { 0 };
	struct lease_file again;
	struct err e = { 0 };
	char name[LEASE_FILE_NAME_CAP];
	lease_file_add(&text, f);
	CHECK(!text.failed);
	if (text.len < LEASE_FILE_MAX) {
		CHECK(lease_file_parse(text.data, text.len, &again, &e) == 0);
		struct lease l = lease_file_lease(&again, LEASE_POD, 5);
		CHECK(strcmp(l.id, lease->id) == 0 && strcmp(l.owner, lease->owner) == 0);
		CHECK(l.since_ms == lease->since_ms && l.until_ms == lease->until_ms);
		CHECK(l.share == lease->share && l.uid == lease->uid);
	}
	CHECK(lease_file_name(name, f->id) && name[0] != '.' && !strchr(name, '/'));
	str_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size < LEASE_FILE_MAX ? size : LEASE_FILE_MAX - 1);
	struct lease_file f;
	struct proc_card card;
	struct err e = { 0 };
	if (proc_cards_parse(text, &card)) {
		CHECK(card.minor >= -1);
		check_safe(card.uuid);
	}
	if (lease_file_parse(text, strlen(text), &f, &e) == 0) {
		struct lease lease = lease_file_lease(&f, LEASE_POD, 5);
		char uuid[UUID_CAP];
		const char *list = f.cards;
		check_safe(lease.id);
		check_safe(lease.owner);
		check_safe(lease.job_name);
		check_safe(lease.account);
		while (lease_file_card(&list, uuid)) {
			CHECK(*uuid && !strchr(uuid, ',') && !strstr(uuid, "::"));
			check_safe(uuid);
		}
		check_again(&f, &lease);
	}
	free(text);
	return 0;
}
