/* The driver's library: the calls that gua makes by their signatures; how it is opened, its
 * symbols looked up and initialised; and what its codes mean. */
#pragma once

#include "driver/nvml/nvml_abi.h"

enum nvml_list { NVML_COMPUTE, NVML_GRAPHICS, NVML_MPS, NVML_LISTS };

enum { NVML_LIST_WAYS = 3 }; /* symbols of one list: _v2, _v3, unsuffixed */

typedef int (*nvml_list_call)(void *handle, unsigned *count, void *entries);

/* The calls; NULL for one that the library does not have: see NVML_CALL. */
struct nvml_api {
	/* clang-format off */
#define CALL(member, parameters, ...) int (*member) parameters;
#define OBJECT(member, parameters, ...) int (*member) parameters;
#define OLDER(...)
#define LIST(...)
#define ASKED(...)
#include "driver/nvml/nvml_calls.def"
	/* clang-format on */
	nvml_list_call lists[NVML_LISTS][NVML_LIST_WAYS];
};

/* A missing symbol returns the code that the driver would return. */
#define NVML_CALL(function, ...) ((function) ? (function)(__VA_ARGS__) : NVML_NO_FUNCTION)

/* From here on: the library as it is opened and initialised. */

struct capture_play;

struct nvml_lib {
	void *dl; /* NULL: closed, or played */
	const struct capture_play *play;
	int code;   /* the code of the last initialisation */
	bool ready; /* initialised: handles are valid until nvml_lib_stop() */
	struct nvml_api api;
	char path[PATH_MAX];	   /* where it was found */
	char version[VERSION_CAP]; /* in the module's form: "535.261.03"; or "" */
};

/* Which library to open. */
struct nvml_lib_choice {
	const char *path; /* NULL: libnvidia-ml.so.1, where the system or NVIDIA installs it */
	const char *option;		 /* the option that names another one, for messages */
	const char *root;		 /* a recorded tree in which to look for it; "": none */
	const struct capture_play *play; /* a capture that answers instead; or NULL */
};

/* Opens the library and looks up its symbols; fails when it cannot be loaded or lacks a
 * required symbol. Calls only the function for the version. */
int nvml_lib_open(struct nvml_lib *lib, const struct nvml_lib_choice *choice, struct err *e);
/* Whether a recorded tree has the library in one of the usual places. */
bool nvml_lib_is_below(const char *root);
/* The address of a symbol; NULL: it does not have it. */
void *nvml_lib_find(const struct nvml_lib *lib, const char *name);
/* Initialises the library; `root` is where /proc is. On failure the sentence says what the code
 * means. */
int nvml_lib_start(struct nvml_lib *lib, const char *root, struct err *e);
/* Shuts the library down: every handle becomes invalid. */
void nvml_lib_stop(struct nvml_lib *lib);
/* Stops and unloads. */
void nvml_lib_close(struct nvml_lib *lib);

/* What a return code means, in a few words. */
const char *nvml_lib_code_text(int code);
/* Fills `e` with what a code means for the whole driver and what to do. Returns ERR_WORLD. */
int nvml_lib_err(const struct nvml_lib *lib, const char *root, int code, struct err *e);
