/* Copies results into structs of the size that the caller has set. */
#include <string.h>

#include "lib/lib.h"

void hand_struct(void *to, size_t to_size, const void *from, size_t from_size)
{
	size_t head = sizeof(size_t), n = to_size < from_size ? to_size : from_size;
	memcpy((char *)to + head, (const char *)from + head, n - head);
	if (to_size > from_size)
		memset((char *)to + from_size, 0, to_size - from_size);
}
