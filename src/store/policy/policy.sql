-- policy.db: what gua enforce remembers and did. One SQLite file beside the store, which only
-- gua enforce writes: the recorder's store stays the recorder's alone. gua-policy(7) has the words.
-- Times named *_ms are unix milliseconds.

PRAGMA application_id = 0x47554145; -- "GUAE"
PRAGMA user_version = 1;

-- How far each session has gone; a session without a stage has no row.
CREATE TABLE session (
	key           TEXT PRIMARY KEY,
	user          TEXT NOT NULL,
	rule          TEXT NOT NULL,
	level         INTEGER NOT NULL, -- 0 observe, 1 warn, 2 end: what the rule did at this stage
	stage         INTEGER NOT NULL, -- 1 warned, 2 warned again, 3 final notice, 4 being ended,
	                                -- 5 ended (or would have been), 6 could not be ended, 7 spared while
	                                -- its processes use the CPU
	idle_since_ms INTEGER NOT NULL,
	stage_ms      INTEGER NOT NULL, -- when it reached the stage
	delivered_ms  INTEGER,          -- when the notice of the stage arrived; NULL: not yet
	next_clock_ms INTEGER NOT NULL, -- idle time before which the next stage does not come
	round         INTEGER NOT NULL, -- how often it was spared when it was to be ended
	clock_ms      INTEGER NOT NULL, -- how long it was seen idle, at the last pass; unobserved time
	                                -- is not in it
	clock_at_ms   INTEGER,          -- the reading that clock_ms is of; NULL: unknown
	idle_below    INTEGER           -- the limit of use that clock_ms is by; NULL: unknown
) WITHOUT ROWID;

-- Every step, in order. Rows are only ever added.
CREATE TABLE action (
	id            INTEGER PRIMARY KEY AUTOINCREMENT,
	at_ms         INTEGER NOT NULL,
	step          TEXT NOT NULL,    -- warn, end, ended, spared, recovered, kept, exempt, armed ...
	stage         TEXT NOT NULL,    -- of the session after the step
	mode          TEXT NOT NULL,    -- observe: it would have happened; enforce: it did
	rule          TEXT NOT NULL,    -- '' where no rule is behind it
	session       TEXT NOT NULL,
	kind          TEXT NOT NULL,    -- job, container, notebook, session, process
	user          TEXT NOT NULL,
	uid           INTEGER,          -- NULL: unknown, like all that may be
	pids          TEXT NOT NULL,    -- with blanks between them
	cards         TEXT NOT NULL,    -- UUIDs, with blanks between them
	held_bytes    INTEGER,
	idle_since_ms INTEGER,
	idle_ms       INTEGER,          -- the idle clock
	evidence      TEXT NOT NULL,    -- a sentence
	result        TEXT NOT NULL,    -- a sentence; '' where the step is the result
	given_back_ms INTEGER,          -- of an end: GPU time that it gave back, an estimate
	config        TEXT NOT NULL,    -- which configuration: a hash of its files
	actor         TEXT NOT NULL,    -- gua-enforce, or the name of a person
	command       TEXT NOT NULL DEFAULT '', -- of the session's process
	gpus          TEXT NOT NULL DEFAULT ''  -- the cards by their index then: "0" or "0, 1"
);
CREATE INDEX action_at ON action (at_ms);

-- Notices to deliver, and those that were: once for each session, stage and channel.
CREATE TABLE notice (
	id            INTEGER PRIMARY KEY,
	session       TEXT NOT NULL,
	idle_since_ms INTEGER NOT NULL,
	round         INTEGER NOT NULL,
	stage         TEXT NOT NULL,
	channel       TEXT NOT NULL,
	user          TEXT NOT NULL,
	uid           INTEGER,
	body          TEXT NOT NULL,    -- JSON
	queued_ms     INTEGER NOT NULL,
	due_ms        INTEGER NOT NULL, -- next attempt
	tries         INTEGER NOT NULL,
	state         TEXT NOT NULL,    -- waiting, delivered, failed, digest: a part of one that waits
	counts        INTEGER NOT NULL, -- 1: it reaches the user, so it counts as a warning
	admitted      INTEGER NOT NULL, -- 1: it may be sent; 0: not before the limit of a day has room
	digest        INTEGER,          -- the notice that stands for this one; NULL: none
	result        TEXT NOT NULL,
	done_ms       INTEGER,
	UNIQUE (session, idle_since_ms, round, stage, channel)
);
CREATE INDEX notice_due ON notice (state, due_ms);
CREATE INDEX notice_digest ON notice (digest) WHERE digest IS NOT NULL;

-- Sessions that their users keep.
CREATE TABLE keep (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	session    TEXT NOT NULL,
	user       TEXT NOT NULL,       -- who asked
	uid        INTEGER NOT NULL,
	pid        INTEGER NOT NULL,    -- of the process that was named
	from_ms    INTEGER NOT NULL,
	until_ms   INTEGER NOT NULL,
	reason     TEXT NOT NULL,
	dropped_ms INTEGER              -- NULL: it was not taken back
);

-- When ending was allowed, and by whom.
CREATE TABLE arm (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	at_ms       INTEGER NOT NULL,
	until_ms    INTEGER NOT NULL,
	user        TEXT NOT NULL,
	disarmed_ms INTEGER             -- NULL: not before until_ms
);

-- When the breaker stopped everything, and who released it.
CREATE TABLE breaker (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	at_ms       INTEGER NOT NULL,
	why         TEXT NOT NULL,      -- a sentence
	released_ms INTEGER,            -- NULL: not yet
	user        TEXT                -- who released it
);

-- The last pass of gua enforce run.
CREATE TABLE pass (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	at_ms    INTEGER NOT NULL,
	sessions INTEGER NOT NULL,      -- that held a card
	idle     INTEGER NOT NULL,      -- of them
	note     TEXT NOT NULL          -- '' or why nothing was judged
);

-- The last result of gua enforce simulate, as JSON.
CREATE TABLE simulation (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	at_ms INTEGER NOT NULL,
	json  TEXT NOT NULL
);
