/* Names of session kinds, levels, stages and steps, as in tables, JSON and files. */
#include "model/policy.h"

const char *const session_kind_names[SESSION_KINDS] = {
	[SESSION_JOB] = "job",
	[SESSION_POD] = "pod",
	[SESSION_CONTAINER] = "container",
	[SESSION_NOTEBOOK] = "notebook",
	[SESSION_POSIX] = "session",
	[SESSION_PROCESS] = "process",
	[SESSION_LEASE] = "lease",
};

const char *const session_use_names[SESSION_USES] = {
	[USE_INTERACTIVE] = "interactive",
	[USE_BATCH] = "batch",
	[USE_SERVICE] = "service",
};

const char *const policy_level_names[POLICY_LEVELS] = {
	[LEVEL_OBSERVE] = "observe",
	[LEVEL_WARN] = "warn",
	[LEVEL_END] = "end",
};

const char *const policy_stage_names[POLICY_STAGES] = {
	[STAGE_NONE] = "none",
	[STAGE_WARN] = "warning",
	[STAGE_AGAIN] = "second warning",
	[STAGE_FINAL] = "final notice",
	[STAGE_ENDING] = "ending",
	[STAGE_ENDED] = "ended",
	[STAGE_FAILED] = "failed",
	[STAGE_COMPUTING] = "spared",
};

const char *const policy_step_names[POLICY_STEPS] = {
	[STEP_NONE] = "none",
	[STEP_WARN] = "warn",
	[STEP_END] = "end",
	[STEP_RECOVERED] = "recovered",
	[STEP_KEPT] = "kept",
	[STEP_EXEMPT] = "exempt",
	[STEP_RELEASED] = "released",
	[STEP_BREAKER] = "breaker",
	[STEP_SIGNAL] = "signal",
	[STEP_ENDED] = "ended",
	[STEP_SPARED] = "spared",
	[STEP_FAILED] = "failed",
	[STEP_ARMED] = "armed",
	[STEP_DISARMED] = "disarmed",
	[STEP_RESUMED] = "resumed",
};
