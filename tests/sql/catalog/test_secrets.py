"""``duckdb_secrets()``: the secrets of a session, without their credentials."""

from __future__ import annotations

import lance_sql


def test_secrets_are_listed_without_credentials():
    with lance_sql.connect() as con:
        con.sql(
            "CREATE SECRET own (TYPE LANCE, access_key_id 'key-1', secret_access_key 'hidden-1', region 'eu')"
        )
        con.sql("CREATE SECRET (TYPE S3, KEY_ID 'key-2', SECRET 'hidden-2', REGION 'us', SCOPE 's3://lake')")
        rows = con.sql(
            "SELECT name, type, scope, secret_string FROM duckdb_secrets() ORDER BY name"
        ).fetchall()
        assert [row[:2] for row in rows] == [("__default_s3", "s3"), ("own", "lance")]
        assert rows[0][2] == ["s3://lake"]
        shown = " ".join(row[3] for row in rows)
        assert "hidden" not in shown
        assert "region=eu" in shown
        con.sql("DROP SECRET own")
        assert con.sql("SELECT count(*) FROM duckdb_secrets()").fetchall() == [(1,)]
