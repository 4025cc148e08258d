/* Reads /proc/driver/nvidia: the name, the UUID and the minor number of each card. */
#include "proc/proc_cards.h"

/* The value of a line "Name: \t value", up to one of `ends`; "" if there is no such line. */
static size_t find_value(
	const char *bytes, const char *name, const char *ends, const char **value)
{
	const char *at = strstr(bytes, name);
	*value = at ? at + strlen(name) : "";
	*value += strspn(*value, " \t");
	return strcspn(*value, ends);
}

bool proc_cards_parse(const char *bytes, struct proc_card *card)
{
	static const char blanks[] = " \t\r\n";
	const char *value = NULL;
	size_t len = find_value(bytes, "GPU Excluded:", blanks, &value);
	if (len == 3 && memcmp(value, "Yes", 3) == 0)
		return false;
	len = find_value(bytes, "Model:", "\r\n", &value);
	str_escape(card->name, sizeof(card->name), value, len);
	len = find_value(bytes, "GPU UUID:", blanks, &value);
	card->uuid[0] = '\0';
	/* Until the card has been used, the driver shows question marks. */
	if (strncmp(value, "GPU-", 4) == 0 && !memchr(value, '?', len))
		str_escape(card->uuid, sizeof(card->uuid), value, len);
	len = find_value(bytes, "Device Minor:", blanks, &value);
	bool number = len > 0 && len < 10 && strspn(value, "0123456789") == len;
	card->minor = number ? strtoll(value, NULL, 10) : -1;
	return true;
}

/* An instance has a directory of its own below its card's. */
static bool has_instances(int proc, int64_t minor)
{
	char path[64];
	bool found = false;
	snprintf(
		path, sizeof(path), "driver/nvidia/capabilities/gpu%lld/mig", (long long)minor);
	DIR *dir = file_open_directory(proc, path);
	for (struct dirent *entry; dir && !found && (entry = readdir(dir)) != NULL;)
		found = strncmp(entry->d_name, "gi", 2) == 0;
	if (dir)
		closedir(dir);
	return found;
}

static int compare_pci(const void *a, const void *b)
{
	return strcmp(((const struct proc_card *)a)->pci, ((const struct proc_card *)b)->pci);
}

size_t proc_cards_read(int proc, struct proc_card cards[PROC_CARDS_MAX])
{
	size_t n = 0;
	DIR *dir = file_open_directory(proc, "driver/nvidia/gpus");
	if (!dir)
		return 0;
	for (struct dirent *entry; n < PROC_CARDS_MAX && (entry = readdir(dir)) != NULL;) {
		char name[PCI_CAP + 16], bytes[4096];
		struct proc_card *card = &cards[n];
		*card = (struct proc_card){ 0 };
		if (entry->d_name[0] == '.' ||
			!str_copy(card->pci, sizeof(card->pci), entry->d_name))
			continue;
		snprintf(name, sizeof(name), "%s/information", card->pci);
		if (file_read_at(dirfd(dir), name, bytes, sizeof(bytes)) < 0)
			bytes[0] = '\0'; /* only the address is known */
		if (!proc_cards_parse(bytes, card))
			continue;
		card->has_mig = has_instances(proc, card->minor);
		n++;
	}
	closedir(dir);
	qsort(cards, n, sizeof(*cards), compare_pci);
	return n;
}
