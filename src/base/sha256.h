/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for the signature of a webhook. */
#pragma once

#include "base/base.h"

enum { SHA256_SIZE = 32, HMAC_HEX_CAP = 2 * SHA256_SIZE + 1 };

void sha256(unsigned char digest[SHA256_SIZE], const void *bytes, size_t len);

struct hmac_key {
	const void *bytes;
	size_t len;
};
/* Writes HMAC-SHA256 as lower-case hexadecimal digits. */
void sha256_hmac_hex(
	char dst[HMAC_HEX_CAP], const struct hmac_key *key, const void *bytes, size_t len);
