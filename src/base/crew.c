/* Each thread takes the next item, works on it, and waits for its turn to give the result. */
#include "base/crew.h"

#include <pthread.h>
#include <sched.h>

struct shift {
	const struct crew *crew;
	pthread_mutex_t lock;
	pthread_cond_t turned;
	size_t next; /* the next item to work on */
	size_t turn; /* the next item whose result is taken */
	bool ended;  /* `take` has ended the work early */
};

size_t crew_size(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	size_t n = (size_t)CPU_COUNT(&set);
	return n > CREW_MAX ? CREW_MAX : n;
}

/* Returns the next item to work on; crew->n: there is none. */
static size_t next_item(struct shift *s)
{
	pthread_mutex_lock(&s->lock);
	size_t item = s->ended ? s->crew->n : s->next;
	s->next += item < s->crew->n;
	pthread_mutex_unlock(&s->lock);
	return item;
}

static void *work(void *shift)
{
	struct shift *s = shift;
	for (size_t item; (item = next_item(s)) < s->crew->n;) {
		s->crew->work(s->crew->context, item);
		/* All items before this one are taken first. Only the thread whose turn it is
		 * calls `take`, so it does not need the lock. */
		pthread_mutex_lock(&s->lock);
		while (s->turn != item)
			pthread_cond_wait(&s->turned, &s->lock);
		bool ended = s->ended;
		pthread_mutex_unlock(&s->lock);
		ended = !s->crew->take(s->crew->context, item) || ended;
		pthread_mutex_lock(&s->lock);
		s->ended = ended;
		s->turn++;
		pthread_cond_broadcast(&s->turned);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

void crew_run(const struct crew *c, size_t threads)
{
	struct shift s = {
		.crew = c, .lock = PTHREAD_MUTEX_INITIALIZER, .turned = PTHREAD_COND_INITIALIZER
	};
	pthread_t others[CREW_MAX];
	size_t n = 0;
	while (n < CREW_MAX && n + 1 < threads && n + 1 < c->n &&
		pthread_create(&others[n], NULL, work, &s) == 0)
		n++;
	work(&s);
	for (size_t i = 0; i < n; i++)
		pthread_join(others[i], NULL);
}
