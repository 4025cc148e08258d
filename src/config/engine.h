/* What gua.conf(5) says about metrics and the engine that has them: [metrics] and [fleet]. */
#ifndef GUA_CONFIG_ENGINE_H
#define GUA_CONFIG_ENGINE_H

#include <stdint.h>

#define IDENTITY_WORDS "user|group|hashed|off"

struct config_metrics {
	const char *identities; /* a word of IDENTITY_WORDS */
	const char *key_file;	/* NULL: none */
	int64_t identity_max;
};

/* How the engine of a fleet is reached; NULL: not given. */
struct config_fleet {
	const char *url, *match, *host_label, *expect;
	const char *bearer_file, *basic_file, *cert_file, *key_file, *ca_file;
	const char *header, *header_file, *param;
	int64_t timeout_ms, retries;
};

#endif
