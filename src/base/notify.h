/* The service manager's protocol (sd_notify(3)), without libsystemd: a datagram to
 * $NOTIFY_SOCKET. */
#pragma once

/* Sends `state` ("READY=1", "WATCHDOG=1" ...) to the socket at `path`. A path of NULL, or a
 * socket that does not answer, is not an error. */
void notify_send(const char *path, const char *state);
