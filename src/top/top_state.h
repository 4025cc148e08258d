/* The state of `gua top`. Keys change it, drawing shows it. */
#pragma once

#include "top/top_frame.h"
#include "top/top_history.h"
#include "top/top_model.h"
#include "top/top_screen.h"

/* What is below the cards. */
enum top_page {
	TOP_TABLE,
	TOP_HELP,
	TOP_SORT_MENU,
	TOP_USER_MENU,
	TOP_SIGNAL, /* asks before it sends a signal */
	TOP_DETAILS,
	TOP_CARD, /* one card */
};

/* What the loop does after a key. */
enum top_action {
	TOP_NOTHING, /* only draw again */
	TOP_QUIT,
	TOP_REFRESH,
	TOP_ARRANGE, /* the order or the choice of rows has changed */
	TOP_SEND,    /* send the signal */
	TOP_MOUSE,   /* `mouse` has changed */
};

/* Keys that are not characters. */
enum top_key_code {
	TOP_KEY_F0 = 0x200000, /* + 1 .. 12 */
	TOP_KEY_UP = 0x200100,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
	TOP_KEY_RESIZE,
	TOP_KEY_CLICK, /* with a place on the screen */
	TOP_KEY_WHEEL_UP,
	TOP_KEY_WHEEL_DOWN,
	TOP_KEY_HANGUP, /* the terminal was closed */
};

/* Positions on the screen. Drawing fills it in; keys and the mouse use it. */
struct top_layout {
	size_t rows, columns;	     /* of the screen */
	size_t cards_at, cards_rows; /* first line of the cards, and how many */
	size_t cards_a_line;	     /* more than 1: compact */
	size_t table_at, table_rows; /* first line of processes, and how many */
};

enum { TOP_DETAIL_MINUTES = 60, TOP_USERS_MAX = 256 };

/* The signals that can be sent. */
extern const struct top_signal {
	const char *name;
	int number;
} top_signals[];
extern const size_t n_top_signals;

struct top_state {
	struct top_now now; /* now.now_ms is the time of the driver's answer */
	int64_t clock_ms;   /* the current time; now.now_ms is earlier */
	struct top_model model;
	struct top_history history;
	struct top_layout layout;
	enum top_page page;
	bool typing;	      /* the user is typing a filter into model.filter */
	bool mouse;	      /* it is used; else the terminal selects text with it */
	size_t menu, n_users; /* the selected line of a menu; the number of users */
	char users[TOP_USERS_MAX][USER_CAP]; /* the menu's users, from when it was opened */
	bool on_cards;			     /* the selection is on a card, not on a process */
	size_t card_row;		     /* which of the shown cards that is */
	size_t first_cards_row, shift;	 /* how far the cards and the commands are scrolled */
	size_t widest_user, widest_what; /* in columns, of the texts shown so far */
	struct process_id target;	 /* the process to signal, or to show details of */
	size_t target_card;		 /* its card, or the card to show */
	struct str arguments;		 /* the target's, each NUL-terminated */
	double use[TOP_DETAIL_MINUTES];	 /* the target's, by minute, from the store */
	bool use_known;
	struct top_history seen;	   /* use of the target, while its details are shown */
	size_t signal;			   /* index into top_signals */
	const char *no_signals;		   /* why none can be sent; NULL: they can */
	const char *host, *driver;	   /* for the title */
	char message[256];		   /* until the next key */
	char fault[512];		   /* of the driver; "": none */
	int64_t fault_since_ms, silent_ms; /* for how long it has not answered; 0: it does */
	char note[256];			   /* an explanation to show; "": none */
	struct top_frame frame;
};

/* Handles a key. `at` is where the mouse was. */
enum top_action top_keys_press(struct top_state *s, int key, struct top_spot at);
/* Sends a signal through a pidfd, after a check of the start time: by the time a key is
 * pressed, the pid may belong to another process. ERR_WORLD: it was not sent; `e` says why. */
int top_keys_send_signal(const struct process_id *id, int number, struct err *e);
/* Draws everything into s->frame; rows 0: as many lines as needed. */
void top_draw(struct top_state *s, size_t rows, size_t columns);
/* The process that a page shows: the same process on the same card; NULL: it is gone. */
const struct present_process *top_pages_target(const struct top_state *s);

/* The index of the n-th card that is shown; SIZE_MAX: there are fewer. */
size_t top_draw_card_at(const struct top_state *s, size_t n);
/* What a click on this column of the titles sorts by; NULL: nothing. */
const struct holder_column *top_draw_title_at(const struct top_state *s, size_t column);
/* Draws help, a menu, a question or details instead of the table, with as many lines as
 * needed. */
void top_pages_draw(struct top_state *s);

/* The columns that the menu of orders lists; returns how many. */
size_t top_pages_orders(const struct holder_column *orders[HOLDER_COLUMNS_MAX]);
/* The first line of a menu that is on the screen. */
size_t top_pages_menu_first(const struct top_state *s);
/* Fills the menu of users with those that have processes, sorted. The list does not change
 * while the menu is open, so that a key chooses the user that was shown. */
void top_pages_list_users(struct top_state *s);
