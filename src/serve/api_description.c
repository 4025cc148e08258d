/* Answers with the description of the API, which is in the program. */
#include "openapi.h"
#include "serve/api.h"

void api_description(const struct request *q, struct answer *a)
{
	(void)q;
	str_add(&a->body, openapi);
}
