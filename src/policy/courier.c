/* Starts one helper process for each delivery. */
#include "policy/courier.h"

#include "base/helper.h"

/* A delivery has its own time limit; its process is killed this long after it. */
#define GRACE_MS 1000

struct errand {
	struct helper *helper; /* NULL: free */
	int64_t ticket;
	enum channel channel;
	int64_t until_us; /* monotonic */
};

struct courier {
	const struct config_notices *config;
	const struct post_program *post;
	struct errand errands[COURIER_MOST];
};

/* The arguments of the helper, which has its own copy of all memory. */
struct order {
	const struct courier *courier;
	enum channel channel;
	const struct notice *notice;
};

/* Runs in the helper. The reply is the outcome as one character, then the text. */
static void serve(void *context, const struct str *request, struct str *reply)
{
	const struct order *order = context;
	struct notice_text text;
	struct err e = { 0 };
	char why[CHANNEL_WHY_CAP] = "";
	(void)request;
	const struct config_notices *config = order->courier->config;
	if (notice_write(&text, order->notice, config->templates, &e) != 0)
		log_warning("%s; the built-in text is used", e.text);
	const struct channel_job job = { order->notice, &text, config, order->courier->post };
	enum delivery how = channel_kinds[order->channel].deliver(&job, why);
	str_addf(reply, "%c%s", '0' + (int)how, why);
	notice_text_finish(&text);
}

int courier_new(struct courier **out, const struct config_notices *config,
	const struct post_program *post, struct err *e)
{
	struct courier *c = calloc(1, sizeof(*c));
	if (!c)
		return err_memory(e);
	c->config = config;
	c->post = post;
	*out = c;
	return 0;
}

static void end_errand(struct errand *a)
{
	int left = helper_free(a->helper, 0);
	if (left >= 0)
		helper_is_gone(left);
	a->helper = NULL;
}

void courier_free(struct courier *c)
{
	for (size_t i = 0; c && i < COURIER_MOST; i++)
		if (c->errands[i].helper)
			end_errand(&c->errands[i]);
	free(c);
}

int courier_send(struct courier *c, int64_t ticket, enum channel channel,
	const struct notice *n, struct err *e)
{
	struct errand *a = c->errands;
	while (a < c->errands + COURIER_MOST && a->helper)
		a++;
	if (a == c->errands + COURIER_MOST)
		return err_set(e, ERR_BUSY, "too many notices are being delivered");
	struct order order = { c, channel, n };
	const struct helper_work work = {
		.name = "gua-notice", .serve = serve, .context = &order
	};
	if (helper_new(&a->helper, &work, e))
		return e->code;
	a->ticket = ticket;
	a->channel = channel;
	a->until_us = clock_monotonic_us() + (c->config->timeout_ms + GRACE_MS) * 1000;
	int rc = helper_send(a->helper, "", 0, e);
	if (rc)
		end_errand(a);
	return rc;
}

/* Fills the result if the delivery is over. */
static bool is_over(struct errand *a, struct courier_result *r)
{
	const struct str *reply = NULL;
	struct err e = { 0 };
	int rc = helper_receive(a->helper, 0, &reply, &e);
	if (rc == ERR_BUSY && clock_monotonic_us() < a->until_us)
		return false;
	*r = (struct courier_result){
		.ticket = a->ticket, .channel = a->channel, .delivery = DELIVERY_FAILED
	};
	if (rc == ERR_BUSY)
		str_copy(r->text, sizeof(r->text), "the delivery did not end in time");
	else if (rc)
		str_copy(r->text, sizeof(r->text), e.text);
	if (rc)
		return true;
	const char *text = str_text(reply);
	if (*text >= '0' && *text <= '0' + DELIVERY_FAILED)
		r->delivery = (enum delivery)(*text - '0');
	if (*text)
		str_copy(r->text, sizeof(r->text), text + 1);
	return true;
}

bool courier_next(struct courier *c, struct courier_result *r)
{
	for (size_t i = 0; i < COURIER_MOST; i++) {
		if (!c->errands[i].helper || !is_over(&c->errands[i], r))
			continue;
		end_errand(&c->errands[i]);
		return true;
	}
	return false;
}

size_t courier_fds(const struct courier *c, struct pollfd *fds)
{
	size_t n = 0;
	for (size_t i = 0; i < COURIER_MOST; i++)
		if (c->errands[i].helper)
			fds[n++] = (struct pollfd){ .fd = helper_fd(c->errands[i].helper),
				.events = POLLIN };
	return n;
}

int64_t courier_wait_ms(const struct courier *c)
{
	int64_t least_us = -1, now_us = clock_monotonic_us();
	for (size_t i = 0; i < COURIER_MOST; i++) {
		const struct errand *a = &c->errands[i];
		if (!a->helper)
			continue;
		int64_t left_us = a->until_us > now_us ? a->until_us - now_us : 0;
		least_us = least_us < 0 || left_us < least_us ? left_us : least_us;
	}
	return least_us < 0 ? -1 : least_us / 1000 + 1;
}
