"""The questions of a report, asked of a file in the Python tool's layout with that tool's means: SQL
over its rows by its keys, one query a section. Prints the seconds of CPU that the queries took; the
start of the interpreter and waiting for the disk are not counted.

usage: pyreport.py FILE SINCE_ISO"""
import sqlite3
import sys
import time

# A card's sample with what its processes hold together, and its state by the tool's rule.
SAMPLES = """
    SELECT g.ts AS ts, g.gpu_uuid AS gpu_uuid, g.util_pct AS util_pct,
        coalesce(r.interval_seconds, 30) AS seconds,
        CASE WHEN g.util_pct >= 10 THEN 'active'
             WHEN coalesce(sum(p.mem_used_mb), 0) > 100 THEN 'idle-held'
             ELSE 'truly-idle' END AS state
    FROM gpu_sample g
    LEFT JOIN proc_sample p ON p.gpu_uuid = g.gpu_uuid AND p.ts = g.ts AND p.run_id IS g.run_id
    LEFT JOIN daemon_run r ON r.id = g.run_id
    WHERE g.ts >= ?
    GROUP BY g.gpu_uuid, g.ts, g.run_id"""
QUERIES = {
    "headline and waste": f"SELECT state, count(*), sum(seconds) FROM ({SAMPLES}) GROUP BY state",
    "per GPU": f"SELECT gpu_uuid, state, count(*) FROM ({SAMPLES}) GROUP BY gpu_uuid, state",
    "identities": """
        SELECT user, count(*), sum(seconds), sum(CASE WHEN util_pct < 10 AND mem > 100 THEN seconds ELSE 0 END)
        FROM (SELECT coalesce(p.loginuid_user, 'unknown') AS user, g.util_pct AS util_pct,
                  sum(p.mem_used_mb) AS mem, coalesce(r.interval_seconds, 30) AS seconds
              FROM proc_sample p
              JOIN gpu_sample g ON g.gpu_uuid = p.gpu_uuid AND g.ts = p.ts AND g.run_id IS p.run_id
              LEFT JOIN daemon_run r ON r.id = g.run_id
              WHERE +p.ts >= ?
              GROUP BY p.gpu_uuid, p.ts, p.run_id, user)
        GROUP BY user ORDER BY 3 DESC LIMIT 10""",
    "heatmap": """
        SELECT strftime('%w', ts), strftime('%H', ts), avg(util_pct >= 10) FROM gpu_sample
        WHERE ts >= ? GROUP BY 1, 2""",
}


def main(path, since):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    start = time.process_time()
    for sql in QUERIES.values():
        db.execute(sql, (since,)).fetchall()
    print(time.process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
