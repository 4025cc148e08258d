/* Loads the driver's library and looks up a table of symbols. Only the symbols that every audit
 * needs are required; the others may be missing in an older or newer driver. */
#include "driver/nvml/nvml_lib.h"

#include <dlfcn.h>
#include <link.h>

#include "driver/capture/capture_play.h"
#include "driver/nvml/nvml_host.h"

/* A symbol of struct nvml_api. */
struct symbol {
	size_t offset; /* of the pointer */
	const char *name;
	bool required;
	bool older; /* another name for the row before, with the same signature */
};

/* clang-format off */
static const struct symbol symbols[] = {
#define AT(member) offsetof(struct nvml_api, member)
#define CALL(member, parameters, required, symbol, ...) { AT(member), #symbol, required, false },
#define OBJECT(member, parameters, required, symbol) { AT(member), #symbol, required, false },
#define OLDER(member, symbol, ...) { AT(member), #symbol, false, true },
#define LIST(list, way, symbol) { AT(lists[list][way]), #symbol, false, false },
#define ASKED(...)
#include "driver/nvml/nvml_calls.def"
};
/* clang-format on */

/* Fills in the calls. Returns the name of a required symbol that is missing, or NULL. */
static const char *find_symbols(struct nvml_lib *lib)
{
	size_t n = sizeof(symbols) / sizeof(symbols[0]);
	for (size_t i = 0; i < n;) {
		const struct symbol *newest = &symbols[i];
		void *found = NULL;
		do
			found = found ? found : nvml_lib_find(lib, symbols[i].name);
		while (++i < n && symbols[i].older);
		if (!found && newest->required)
			return newest->name;
		memcpy((char *)&lib->api + newest->offset, &found, sizeof(found));
	}
	return NULL;
}

/* Where the library is when the system's loader does not find it: WSL2 mounts the driver of
 * Windows; NixOS and some Kubernetes hosts have directories of their own. */
static const char *const usual_places[] = {
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
};
enum { USUAL_PLACES = sizeof(usual_places) / sizeof(usual_places[0]) };

/* Makes the path of a usual place; false: no file is there. */
static bool find_usual(char path[PATH_MAX], const char *root, size_t place)
{
	return file_path(path, "%s%s", root, usual_places[place]) && access(path, F_OK) == 0;
}

bool nvml_lib_is_below(const char *root)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < USUAL_PLACES; i++)
		if (find_usual(path, root, i))
			return true;
	return false;
}

/* Loads the library that was named, else the one that the loader finds, else one in a usual
 * place. On failure `why` is the loader's reason for the first file that exists. */
static void *load(const struct nvml_lib_choice *choice, char *why, size_t cap)
{
	const char *first = choice->path ? choice->path : "libnvidia-ml.so.1";
	char path[PATH_MAX];
	void *dl = NULL;
	for (size_t i = 0; !choice->path && choice->root[0] && !dl && i < USUAL_PLACES; i++)
		if (find_usual(path, choice->root, i))
			dl = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!dl)
		dl = dlopen(first, RTLD_LAZY | RTLD_LOCAL);
	const char *reason = dl ? NULL : dlerror();
	str_copy(why, cap, reason ? reason : first);
	for (size_t i = 0; !choice->path && !dl && i < USUAL_PLACES; i++) {
		if (!find_usual(path, "", i))
			continue;
		dl = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		reason = dl ? NULL : dlerror();
		str_copy(why, cap, reason ? reason : path);
	}
	return dl;
}

int nvml_lib_open(struct nvml_lib *lib, const struct nvml_lib_choice *choice, struct err *e)
{
	char why[256];
	const char *asked = choice->path ? choice->path : "libnvidia-ml.so.1";
	*lib = (struct nvml_lib){ .play = choice->play };
	if (choice->play) {
		asked = choice->play->recorded->library;
		str_copy(why, sizeof(why), "the captured host had none");
	} else {
		lib->dl = load(choice, why, sizeof(why));
	}
	if (choice->play ? !asked[0] : !lib->dl) {
		err_set(e, ERR_WORLD,
			"cannot load the NVIDIA management library: %s; install it, ask for "
			"the container's 'utility' capability, or name it with %s",
			why, choice->option);
		return err_number(e, ERR_WORLD, NVML_NO_LIBRARY);
	}
	const char *missing = find_symbols(lib);
	if (missing) {
		nvml_lib_close(lib);
		return err_set(e, ERR_WORLD,
			"%s is not a usable NVIDIA management library: it has no %s", asked,
			missing);
	}
	struct link_map *map = NULL;
	const char *path = asked;
	if (lib->dl && dlinfo(lib->dl, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0])
		path = map->l_name;
	str_copy(lib->path, sizeof(lib->path), path);
	/* The library prints "CUDAMAJOR.DRIVERVERSION"; this keeps the part that can be
	 * compared with the module's version. */
	char text[VERSION_CAP] = "";
	if (NVML_CALL(lib->api.library_version, text, sizeof(text)) == NVML_OK) {
		text[sizeof(text) - 1] = '\0';
		const char *dot = strchr(text, '.');
		bool has_driver = dot && strchr(dot + 1, '.');
		const char *version = has_driver ? dot + 1 : text;
		str_escape(lib->version, sizeof(lib->version), version, strlen(version));
	}
	return 0;
}

void *nvml_lib_find(const struct nvml_lib *lib, const char *name)
{
	return lib->play ? capture_play_find(lib->play, name) : dlsym(lib->dl, name);
}

int nvml_lib_start(struct nvml_lib *lib, const char *root, struct err *e)
{
	lib->code = lib->api.init();
	if (lib->code != NVML_OK)
		return nvml_lib_err(lib, root, lib->code, e);
	lib->ready = true;
	return 0;
}

void nvml_lib_stop(struct nvml_lib *lib)
{
	if (lib->ready)
		lib->api.shutdown();
	lib->ready = false;
}

void nvml_lib_close(struct nvml_lib *lib)
{
	nvml_lib_stop(lib);
	if (lib->dl)
		dlclose(lib->dl);
	lib->dl = NULL;
	lib->play = NULL;
}

static const struct code_meaning {
	int code;
	const char *text;
	const char *advice; /* for the driver as a whole; NULL: trying again is the advice */
} meanings[] = {
	{ NVML_OK, "success", NULL },
	{ NVML_UNINITIALISED, "the driver was not initialised, or went away", NULL },
	{ NVML_BAD_ARGUMENT, "invalid argument", NULL },
	{ NVML_NOT_SUPPORTED, "not supported", NULL },
	{ NVML_NO_PERMISSION, "no permission",
		"check who may open /dev/nvidiactl and /dev/nvidia*" },
	{ 5, "already initialised", NULL },
	{ NVML_NOT_FOUND, "not found", NULL },
	{ NVML_TOO_SMALL, "the list does not stop growing", NULL },
	{ 8, "a card lacks external power", "check the power cables" },
	{ NVML_NO_DRIVER, "the driver is not loaded", "load it with 'modprobe nvidia'" },
	{ NVML_TIMEOUT, "timeout", NULL },
	{ 11, "the kernel has an interrupt problem with a card", "see the kernel log" },
	{ 12, "a part of the driver's library was not found", "install the driver again" },
	{ NVML_NO_FUNCTION, "the library does not have the call", NULL },
	{ 14, "corrupted infoROM", NULL },
	{ NVML_LOST, "the GPU is lost", "see the kernel log; it may need a reboot" },
	{ NVML_RESET_REQUIRED, "the GPU requires a reset",
		"nvidia-smi --gpu-reset, or reboot" },
	{ NVML_BLOCKED, "the operating system blocks access to the GPU",
		"in a container, give it the GPU devices; or check the service's sandbox" },
	{ NVML_MISMATCH, "driver/library version mismatch", NULL },
	{ NVML_IN_USE, "in use by another client", NULL },
	{ NVML_NO_MEMORY, "not enough memory", NULL },
	{ NVML_NO_DATA, "no data", NULL },
	{ 23, "not enough resources", NULL },
	{ NVML_BAD_VERSION, "argument version mismatch", NULL },
	{ NVML_DEPRECATED, "deprecated", NULL },
	{ 27, "not ready", "try again" },
	{ NVML_NO_GPU, "no GPU was found", "see lspci and the kernel log" },
	{ 29, "invalid state", NULL },
	{ NVML_STUCK, "a call to it has not come back", NULL },
	{ NVML_UNKNOWN, "unknown error",
		"in a container, restart it (it may have lost its devices); else see the "
		"kernel log" },
};

static const struct code_meaning *find_meaning(int code)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].code == code)
			return &meanings[i];
	return &meanings[sizeof(meanings) / sizeof(meanings[0]) - 1];
}

const char *nvml_lib_code_text(int code)
{
	return find_meaning(code)->text;
}

int nvml_lib_err(const struct nvml_lib *lib, const char *root, int code, struct err *e)
{
	const struct code_meaning *meaning = find_meaning(code);
	if (code == NVML_MISMATCH) {
		char module[VERSION_CAP] = "";
		if (lib->play)
			str_copy(module, sizeof(module),
				lib->play->recorded->site.module_version);
		else
			nvml_host_module_version(root, module, sizeof(module));
		err_set(e, ERR_WORLD,
			"the NVIDIA kernel module (version %s) and the library (version %s) do "
			"not match (code 18): reload the module or reboot",
			module[0] ? module : "unknown",
			lib->version[0] ? lib->version : "unknown");
		return err_number(e, ERR_WORLD, code);
	}
	err_set(e, ERR_WORLD, "the NVIDIA driver does not answer: %s (code %d)%s%s",
		meaning->text, code, meaning->advice ? "; " : "",
		meaning->advice ? meaning->advice : "");
	return err_number(e, ERR_WORLD, code);
}
