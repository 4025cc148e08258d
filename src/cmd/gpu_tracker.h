/* gua under the name gpu-tracker: that tool's command line. */
#ifndef GUA_CMD_GPU_TRACKER_H
#define GUA_CMD_GPU_TRACKER_H

/* Returns the exit status. */
int gpu_tracker_main(int argc, char **argv);

#endif
