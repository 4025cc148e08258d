/* Reads the parents of processes from /proc. */
#include "top/top_family.h"

#include <stdlib.h>

#include "base/array.h"
#include "proc/proc.h"

enum { CHAIN_MAX = 32 };

void top_family_finish(struct top_family *f)
{
	free(f->parents);
	free(f->ancestors);
	*f = (struct top_family){ 0 };
}

/* The parent of a process, 0 when it is not known or is init. */
static uint32_t read_parent(const struct top_family *f, uint32_t pid)
{
	struct proc_stat stat;
	if (proc_read_stat(reader_proc(f->reader), pid, &stat) != 0 || stat.ppid <= 1)
		return 0;
	return (uint32_t)stat.ppid;
}

static bool is_known(const struct top_family *f, const struct top_now *now, uint32_t pid)
{
	for (size_t i = 0; i < now->all->n_processes; i++)
		if (now->all->processes[i].id.pid == pid)
			return true;
	for (size_t i = 0; i < f->n; i++)
		if (f->ancestors[i].id.pid == pid)
			return true;
	return false;
}

/* Adds a process and returns its parent; 0: the chain ends. */
static uint32_t add_ancestor(struct top_family *f, uint32_t pid)
{
	if (!array_reserve(&f->ancestors, &f->cap, f->n + 1))
		return 0;
	struct top_ancestor *a = &f->ancestors[f->n];
	bool brief;
	if (!reader_describe(f->reader, pid, &a->id, &brief))
		return 0;
	a->parent = read_parent(f, pid);
	f->n++;
	return a->parent;
}

void top_family_read(struct top_family *f, struct reader *reader, struct top_now *now)
{
	f->reader = reader;
	now->parents = NULL;
	now->n_family = f->n = 0;
	if (now->all->n_processes == 0)
		return;
	if (!array_reserve(&f->parents, &f->cap_parents, now->all->n_processes))
		return;
	for (size_t i = 0; i < now->all->n_processes; i++) {
		const struct process_id *id = &now->all->processes[i].id;
		f->parents[i] = id->start_ticks ? read_parent(f, id->pid) : 0;
		uint32_t pid = f->parents[i];
		for (int k = 0; k < CHAIN_MAX && pid && !is_known(f, now, pid); k++)
			pid = add_ancestor(f, pid);
	}
	now->parents = f->parents;
	now->family = f->ancestors;
	now->n_family = f->n;
}
