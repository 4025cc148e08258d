/* Lets a tracker read other processes through a reader. */
#ifndef GUA_CMD_TRACK_READER_H
#define GUA_CMD_TRACK_READER_H

#include "proc/reader.h"
#include "track/tree.h"

struct track_files track_reader_files(struct reader *reader);

#endif
