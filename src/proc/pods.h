/* The names of Kubernetes pods and containers, by the ids that cgroups have. They are in the
 * names of files below /var/log, where the kubelet keeps logs, and in the table that `gua lease
 * watch kubelet` writes where users may not read that. Only what root writes is believed, and
 * only names as Kubernetes allows them, so that none needs to be escaped. */
#pragma once

#include "model/process.h"

/* The table, below the directory of leases: a line for each file that would be in /var/log/pods
 * or /var/log/containers. */
#define PODS_TABLE "pod/.names"
enum { PODS_MAX = 16384, PODS_PLACES = 3, PODS_TABLE_MAX = 4 << 20 };

struct pods {
	int proc;      /* the open /proc beside which the files are; borrowed */
	bool recorded; /* a recorded tree: files may also be this user's */
	struct pod_name {
		char id[40]; /* a pod's uid, or 12 digits of a container's id */
		char name[LABEL_CAP];
	} * names; /* by id */
	size_t n, cap;
	struct pods_seen {
		bool there, racy;
		dev_t device;
		ino_t inode;
		int64_t changed_ns;
	} seen[PODS_PLACES];
};

void pods_init(struct pods *p, int proc, bool recorded);
void pods_finish(struct pods *p);

/* Adds a pod by the name of its directory, NAMESPACE_POD_UID, or a container by that of its
 * file, POD_NAMESPACE_CONTAINER-ID.log. Others are left out. pods_sort() comes after the last.
 */
void pods_add(struct pods *p, const char *name, size_t len);
void pods_sort(struct pods *p);

/* Replaces the uid of the pod by "namespace/pod", or a longer name by its beginning, '~' and
 * the beginning of the uid; adds "/NAME" to the id of the container. What is not known stays.
 * Reads the files again when they have changed and do not have the id. */
void pods_describe(struct pods *p, struct process_id *id);
