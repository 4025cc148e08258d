/* The pods that have cards, from the kubelet's answer to PodResourcesLister.List, a message of
 * protocol buffers. Only the fields that are needed are read; others are skipped. */
#pragma once

#include "base/base.h"
#include "lease/lease_file.h"

struct kubelet_pods {
	/* Called with each pod that has cards: id "namespace/pod", however long, its namespace
	 * as the user, and its cards. Its texts live until the call returns. */
	void (*take)(void *context, const struct lease_file *pod);
	void *context;
};

/* ERR_WORLD: it is not such an answer. */
int kubelet_pods_decode(
	const struct kubelet_pods *k, const char *bytes, size_t len, struct err *e);
