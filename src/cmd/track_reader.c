/* The functions of a reader as a tracker calls them. */
#include "cmd/track_reader.h"

static ssize_t arguments(void *context, const struct process_id *id, char *dst, size_t cap)
{
	return reader_arguments(context, id, dst, cap);
}

static int rollup(void *context, const struct process_id *id, struct proc_rollup *found)
{
	return reader_rollup(context, id, found);
}

static int io(void *context, const struct process_id *id, struct proc_io *found)
{
	return reader_io(context, id, found);
}

static double cpu_s(void *context)
{
	return reader_cpu_s(context);
}

static bool owns(void *context, pid_t pid)
{
	return reader_owns(context, pid);
}

struct track_files track_reader_files(struct reader *reader)
{
	return (struct track_files){ arguments, rollup, io, cpu_s, owns, reader };
}
