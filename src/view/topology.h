/* The matrix of nvidia-smi topo -m: how near two cards are, by the kernel's PCI tree. */
#pragma once

#include "base/str.h"
#include "view/smi.h"

/* Reads sysfs below `root`. NVLinks are not in it. */
void topology_matrix(const struct smi *s, const char *root, struct str *out);
