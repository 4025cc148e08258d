/* The fake library's calls without a handle: init, versions, counting, finding cards. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#include "exports.h"

/* Copies a text out as NVML does. */
static int give_text(char *dst, unsigned length, const char *text)
{
	if (!dst)
		return INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return INSUFFICIENT_SIZE;
	strcpy(dst, text);
	return SUCCESS;
}

static int initialise(const char *call, unsigned flags)
{
	int code = fake_enter(DOOR_FREE, call, NULL, NULL, "flags=%u", flags);
	if (code)
		return code;
	struct fake *f = fake_state();
	if (f->initialised++ > 0)
		return fake_leave(SUCCESS);
	f->n_visible = 0;
	for (size_t i = 0; i < f->scenario->n_physical; i++)
		if (!play_quirks(f->play, i)->vanished)
			f->visible[f->n_visible++] = (int)i;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlInit_v2(void)
{
	return initialise(__func__, 0);
}

EXPORT int nvmlInitWithFlags(unsigned flags)
{
	return initialise(__func__, flags);
}

EXPORT int nvmlShutdown(void)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	if (code)
		return code;
	if (--fake_state()->initialised == 0) {
		fake_finish_gpm();
		fake_forget_handles();
	}
	return fake_leave(SUCCESS);
}

EXPORT const char *nvmlErrorString(int code)
{
	static const char *const texts[] = { "Success", "Uninitialized", "Invalid Argument",
		"Not Supported", "Insufficient Permissions", "Already Initialized", "Not Found",
		"Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
		"Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
		"Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
		"GPU access blocked by the operating system", "Driver/library version mismatch",
		"In use by another client", "Insufficient Memory", "No data",
		"vGPU ECC not supported", "Insufficient Resources", "Invalid Frequency",
		"Argument version mismatch", "Requested functionality has been deprecated",
		"System is not in ready state" };
	bool known = code >= 0 && code < (int)(sizeof(texts) / sizeof(texts[0]));
	return known ? texts[code] : "Unknown Error";
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	return code ? code
		    : fake_leave(give_text(version, length, fake_state()->scenario->driver));
}

EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	int code = fake_enter(DOOR_FREE, __func__, NULL, NULL, "%s", "");
	return code ? code
		    : fake_leave(give_text(version, length, fake_state()->scenario->nvml));
}

static int cuda_version(const char *call, int *version)
{
	int code = fake_enter(DOOR_SYSTEM, call, NULL, NULL, "%s", "");
	if (code)
		return code;
	if (version)
		*version = fake_state()->scenario->cuda;
	return fake_leave(version ? SUCCESS : INVALID_ARGUMENT);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version)
{
	return cuda_version(__func__, version);
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	return cuda_version(__func__, version);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	if (code)
		return code;
	if (count)
		*count = fake_state()->n_visible;
	return fake_leave(count ? SUCCESS : INVALID_ARGUMENT);
}

/* A handle, unless the card is lost or a fault of `call` is on for this very card. */
static int give_handle(const char *call, size_t unit, void **device)
{
	struct fake *f = fake_state();
	const struct scenario_fault *fault = play_fault(f->play, FAULT_FAIL, call, (int)unit);
	int code = fault ? fault->code : fake_lost(unit);
	if (code == SUCCESS)
		*device = fake_handle(unit);
	return code;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "index=%u", index);
	if (code)
		return code;
	struct fake *f = fake_state();
	if (!device || index >= f->n_visible)
		return fake_leave(INVALID_ARGUMENT);
	return fake_leave(give_handle(__func__, (size_t)f->visible[index], device));
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "uuid=%s", uuid ? uuid : "");
	if (code)
		return code;
	struct fake *f = fake_state();
	if (!device || !uuid)
		return fake_leave(INVALID_ARGUMENT);
	for (size_t i = 0; i < f->scenario->n_cards; i++)
		if (strcmp(f->scenario->cards[i].id.uuid, uuid) == 0)
			return fake_leave(give_handle(__func__, i, device));
	return fake_leave(NOT_FOUND);
}

/* ---- identity of a card ---- */

EXPORT int nvmlDeviceGetIndex(void *device, unsigned *index)
{
	ENTER_DEVICE(device, "%s", "");
	unsigned found = (unsigned)card->id.mig_index;
	for (unsigned i = 0; card->parent < 0 && i < f->n_visible; i++)
		if (f->visible[i] == (int)unit)
			found = i;
	*index = found;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
	ENTER_DEVICE(device, "%s", "");
	return fake_leave(give_text(uuid, length, card->id.uuid));
}

EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
	ENTER_DEVICE(device, "%s", "");
	return fake_leave(give_text(name, length, card->id.name));
}

EXPORT int nvmlDeviceGetSerial(void *device, char *serial, unsigned length)
{
	ENTER_DEVICE(device, "%s", "");
	char text[30];
	snprintf(text, sizeof(text), "15%011u", (unsigned)unit + 1);
	return fake_leave(card->parent >= 0 ? NOT_SUPPORTED : give_text(serial, length, text));
}

EXPORT int nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
	ENTER_DEVICE(device, "%s", "");
	*minor = (unsigned)card->id.index;
	return fake_leave(card->parent >= 0 ? NOT_SUPPORTED : SUCCESS);
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct abi_pci *pci)
{
	ENTER_DEVICE(device, "%s", "");
	unsigned domain = 0, bus = 0, slot = 0, function = 0;
	if (sscanf(card->id.pci, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
		fake_abort("the PCI address %s of card %zu is none", card->id.pci, unit);
	memset(pci, 0, sizeof(*pci));
	snprintf(pci->legacy, sizeof(pci->legacy), "%04X:%02X:%02X.0", domain & 0xffff,
		bus & 0xff, slot & 0xff);
	snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", domain, bus & 0xff,
		slot & 0xff);
	pci->domain = domain;
	pci->bus = bus;
	pci->device = slot;
	pci->device_id = 0x20b210de;
	pci->subsystem_id = 0x146310de;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	ENTER_DEVICE(device, "%s", "");
	*major = strstr(card->id.name, "H100") ? 9 : 8;
	*minor = 0;
	return fake_leave(SUCCESS);
}

/* NVIDIA's own nvidia-smi refuses a library without this call. The functions behind it are not
 * documented: each says that it is not supported. */
static int not_supported(void)
{
	return 3;
}

EXPORT int nvmlInternalGetExportTable(const void **table, const unsigned char *id)
{
	enum { FUNCTIONS = 512 };
	static union {
		size_t bytes; /* of the whole table, in its first place */
		int (*function)(void);
	} all[FUNCTIONS];
	(void)id;
	for (size_t i = 1; i < FUNCTIONS; i++)
		all[i].function = not_supported;
	all[0].bytes = sizeof(all);
	*table = all;
	return 0;
}
