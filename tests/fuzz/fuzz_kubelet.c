/* The kubelet's answer: what comes out is a lease that can be written. */
#include "fuzz.h"

#include "lease/kubelet_pods.h"

static void take(void *context, const struct lease_file *f)
{
	char card[UUID_CAP];
	const char *list = f->cards;
	CHECK(context == NULL && f->id && strchr(f->id, '/') && *f->user);
	CHECK(strspn(f->id, "abcdefghijklmnopqrstuvwxyz0123456789-./") == strlen(f->id));
	CHECK(lease_file_card(&list, card) && (f->share == 0 || f->share == 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kubelet_pods k = { take, NULL };
	struct err e = { 0 };
	int rc = kubelet_pods_decode(&k, (const char *)data, size, &e);
	CHECK(rc == 0 || *e.text);
	return 0;
}
