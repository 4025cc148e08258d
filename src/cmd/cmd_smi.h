/* gua smi under the name nvidia-smi. */
#ifndef GUA_CMD_CMD_SMI_H
#define GUA_CMD_CMD_SMI_H

/* The program was called `called`, "nvidia-smi" or "gua-nvidia-smi": runs gua smi with its
 * arguments. Returns the exit status. */
int cmd_smi_main(const char *called, int argc, char **argv);

#endif
