/* SQL about idle spells. */
#ifndef GUA_AUDIT_SPELLS_H
#define GUA_AUDIT_SPELLS_H

/* Which rows of "open_spell AS o" are spells: those that are long enough by the rule of their
 * host's newest run. When a recorder has stopped, a spell that went on is in the table spell
 * too. */
#define OPEN_IS_SPELL                                                                          \
	"idle_held_ms + squatting_ms >= (SELECT spell_ms FROM run WHERE run.host = "           \
	"(SELECT host FROM gpu WHERE gpu.id = o.gpu) AND source <> 'import' "                  \
	"ORDER BY id DESC LIMIT 1) AND NOT EXISTS (SELECT 1 FROM spell AS s "                  \
	"WHERE s.end_ms = o.end_ms AND s.gpu = o.gpu AND s.process = o.process)"

#endif
