/* Functions about the kinds of utilisation. */
#include "model/reading.h"

bool reading_util_is_known(enum util_kind kind)
{
	return kind != UTIL_NONE && kind != UTIL_UNKNOWN;
}
