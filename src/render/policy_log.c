/* Writes the log of gua enforce as one document. */
#include "render/policy_log.h"

#include "render/rows.h"

void policy_log_json(struct str *out, const struct table *log)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-enforce-log-1");
	json_table(&j, "actions", log);
	json_close(&j, '}');
}
