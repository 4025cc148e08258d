/* The notation in which a file lists the columns of a table: key and title, what is in the
 * column, then how text shows it. What is in it is a member of the row's struct: an array of
 * char (SOME_CHARS: "" is none), a char *, a double, an int64_t where -1 is unknown, a size_t,
 * a uint32_t, or a bool. Each file defines OF(member), its offset. */
#pragma once

#include "model/table.h"

#define COLUMN(...)                                                                            \
	{                                                                                      \
		__VA_ARGS__                                                                    \
	}
#define TEXT(getter, which) .kind = COLUMN_TEXT, .get = getter, .of = which
#define VALUE(unit, getter, which) .kind = COLUMN_##unit, .get = getter, .of = which
#define CHARS(member) TEXT(table_get_chars, OF(member))
#define SOME_CHARS(member) TEXT(table_get_some_chars, OF(member))
#define STRING(member) TEXT(table_get_string, OF(member))
#define NUMBER(unit, member) VALUE(unit, table_get_double, OF(member))
#define KNOWN(unit, member) VALUE(unit, table_get_known, OF(member))
#define SIZE(member) VALUE(COUNT, table_get_size, OF(member))
#define UINT(member) VALUE(COUNT, table_get_uint, OF(member))
#define FLAG(member) VALUE(BOOL, table_get_flag, OF(member))
#define TABLE_OF(array) COLUMN(.columns = array, .n_columns = sizeof(array) / sizeof(array[0]))
