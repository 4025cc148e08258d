/* SHA-256 over a whole message, and HMAC over it. */
#include "base/sha256.h"

enum { BLOCK = 64 };

struct sha256_state {
	uint32_t words[8];
	unsigned char block[BLOCK];
	size_t n_block;
	uint64_t n_bytes;
};

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
	0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void compress(struct sha256_state *s)
{
	uint32_t w[64], v[8];
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
		       (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, s->words, sizeof(v));
	for (size_t i = 0; i < 64; i++) {
		uint32_t s1 = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
		uint32_t s0 = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + s0 + majority;
	}
	for (size_t i = 0; i < 8; i++)
		s->words[i] += v[i];
	s->n_block = 0;
}

static void start(struct sha256_state *s)
{
	*s = (struct sha256_state){ .words = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

static void add(struct sha256_state *s, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	s->n_bytes += len;
	while (len) {
		size_t n = len < BLOCK - s->n_block ? len : BLOCK - s->n_block;
		memcpy(s->block + s->n_block, at, n);
		s->n_block += n;
		at += n;
		len -= n;
		if (s->n_block == BLOCK)
			compress(s);
	}
}

static void finish(struct sha256_state *s, unsigned char digest[SHA256_SIZE])
{
	static const unsigned char one = 0x80, zero = 0;
	unsigned char length[8];
	for (unsigned i = 0; i < 8; i++)
		length[i] = (unsigned char)(s->n_bytes * 8 >> (56 - 8 * i));
	add(s, &one, 1);
	while (s->n_block != BLOCK - sizeof(length))
		add(s, &zero, 1);
	add(s, length, sizeof(length));
	for (unsigned i = 0; i < SHA256_SIZE; i++)
		digest[i] = (unsigned char)(s->words[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(unsigned char digest[SHA256_SIZE], const void *bytes, size_t len)
{
	struct sha256_state s;
	start(&s);
	if (len)
		add(&s, bytes, len);
	finish(&s, digest);
}

/* SHA-256 of the padded key XORed with `mask`, followed by a message. */
static void keyed(unsigned char digest[SHA256_SIZE], const unsigned char key[BLOCK],
	unsigned char mask, const void *bytes, size_t len)
{
	struct sha256_state s;
	unsigned char pad[BLOCK];
	for (size_t i = 0; i < BLOCK; i++)
		pad[i] = key[i] ^ mask;
	start(&s);
	add(&s, pad, sizeof(pad));
	if (len)
		add(&s, bytes, len);
	finish(&s, digest);
}

void sha256_hmac_hex(
	char dst[HMAC_HEX_CAP], const struct hmac_key *key, const void *bytes, size_t len)
{
	unsigned char padded[BLOCK] = { 0 }, inner[SHA256_SIZE], outer[SHA256_SIZE];
	if (key->len > BLOCK)
		sha256(padded, key->bytes, key->len);
	else if (key->len)
		memcpy(padded, key->bytes, key->len);
	keyed(inner, padded, 0x36, bytes, len);
	keyed(outer, padded, 0x5c, inner, sizeof(inner));
	for (size_t i = 0; i < SHA256_SIZE; i++)
		snprintf(dst + 2 * i, 3, "%02x", outer[i]);
}
