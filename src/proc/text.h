/* The sizes of the texts that describe a process; longer texts are cut. */
#ifndef GUA_PROC_TEXT_H
#define GUA_PROC_TEXT_H

enum { USER_CAP = 64, COMMAND_CAP = 256, LABEL_CAP = 128, BOOT_ID_CAP = 40 };

#endif
