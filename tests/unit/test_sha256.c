/* The published test vectors of SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 4231). */
#include "test.h"

#include <stdio.h>

#include "base/sha256.h"

static void digest_is(const char *bytes, size_t len, const char *hex)
{
	unsigned char digest[SHA256_SIZE];
	char text[HMAC_HEX_CAP];
	sha256(digest, bytes, len);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, hex);
}

static void test_sha256(void **state)
{
	(void)state;
	digest_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest_is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	digest_is(two, strlen(two),
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	char *million = malloc(1000000);
	memset(million, 'a', 1000000);
	digest_is(million, 1000000,
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}

static void hmac_is(const char *key, size_t key_len, const char *text, const char *hex)
{
	char dst[HMAC_HEX_CAP];
	const struct hmac_key k = { key, key_len };
	sha256_hmac_hex(dst, &k, text, strlen(text));
	assert_string_equal(dst, hex);
}

/* RFC 4231, cases 1 to 4, 6 and 7; 5 is about a truncated output. */
static void test_hmac(void **state)
{
	(void)state;
	char key[131], data[51];
	memset(key, 0x0b, 20);
	hmac_is(key, 20, "Hi There",
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_is("Jefe", 4, "what do ya want for nothing?",
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, 50);
	data[50] = '\0';
	hmac_is(key, 20, data,
		"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	char steps[25];
	for (int i = 0; i < 25; i++)
		steps[i] = (char)(i + 1);
	memset(data, 0xcd, 50);
	hmac_is(steps, 25, data,
		"82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
	hmac_is(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	hmac_is(key, 131,
		"This is a test using a larger than block-size key and a larger than "
		"block-size "
		"data. The key needs to be hashed before being used by the HMAC algorithm.",
		"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_hmac),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
