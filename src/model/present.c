/* What readers of the present work out the same way. */
#include "model/present.h"

#include <stdio.h>

bool present_was_idle(const struct present_process *p)
{
	return p->was_idle_since_ms >= 0 && !p->active;
}

void present_suspect_text(char *dst, size_t cap, const struct present_card *card)
{
	char label[CARD_LABEL_CAP];
	card_label(label, sizeof(label), &card->id);
	snprintf(dst, cap,
		"card %s reports %.0f %% use with no process and no memory: not believed; "
		"opening and closing a CUDA context clears it",
		label, card->values[METRIC_UTILIZATION_GPU]);
}
