-- UPDATE, DELETE, MERGE, TRUNCATE and ALTER TABLE of tables in an attached directory.
ATTACH 'dir' AS ns (TYPE LANCE);
CREATE TABLE ns.main.t AS SELECT i::BIGINT AS id, 's' || i AS s, (i * 1.5)::DOUBLE AS score, i::INTEGER AS age FROM range(1, 7) r(i);
--> 6
UPDATE ns.main.t SET s = 'bb' WHERE id = 2;
--> 1
UPDATE ns.main.t SET score = score + age, s = upper(s) WHERE id IN (1, 3);
--> 2
UPDATE ns.main.t SET s = DEFAULT WHERE id = 4;
--> 1
UPDATE ns.main.t SET id = id + (SELECT 100) WHERE id = 6 RETURNING id, s;
--> 106|s6
UPDATE ns.main.t SET s = n.v FROM (VALUES (5, 'five')) n(k, v) WHERE t.id = n.k;
--> 1
UPDATE ns.main.t SET score = 0 WHERE false;
--> 0
UPDATE ns.main.t SET nosuch = 1;
--> error: Column 'nosuch' not found
SELECT * FROM ns.main.t ORDER BY id;
--> 1|S1|2.5|1
--> 2|bb|3|2
--> 3|S3|7.5|3
--> 4|NULL|6|4
--> 5|five|7.5|5
--> 106|s6|9|6
UPDATE ns.main.t SET age = 20;
--> 6
SELECT DISTINCT age FROM ns.main.t;
--> 20
DELETE FROM ns.main.t WHERE id > 100;
--> 1
DELETE FROM ns.main.t WHERE s IS NULL RETURNING id;
--> 4
DELETE FROM ns.main.t USING (SELECT 5 AS k) d WHERE t.id = d.k;
--> 1
DELETE FROM ns.main.t WHERE id IN (SELECT 777);
--> 0
SELECT id FROM ns.main.t ORDER BY id;
--> 1
--> 2
--> 3
MERGE INTO ns.main.t AS t USING (SELECT 2::BIGINT AS id, 'two' AS s UNION ALL SELECT 8, 'eight') AS src ON t.id = src.id WHEN MATCHED THEN UPDATE SET s = src.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (src.id, src.s);
--> 2
MERGE INTO ns.main.t AS t USING (SELECT 8::BIGINT AS id) AS src ON t.id = src.id WHEN MATCHED THEN DELETE RETURNING merge_action, id, s;
--> DELETE|8|eight
MERGE INTO ns.main.t AS t USING (SELECT 1 AS id) AS src ON t.id = src.id WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED BY TARGET THEN DO NOTHING;
--> 0
MERGE INTO ns.main.t AS t USING (SELECT 1 AS id) AS src ON t.id = src.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET age = 99;
--> 2
MERGE INTO ns.main.t AS t USING (SELECT 1 AS id UNION ALL SELECT 3) AS src ON t.id = src.id WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> 1
MERGE INTO ns.main.t AS t USING (SELECT 1 AS id UNION ALL SELECT 1) AS src ON t.id = src.id WHEN MATCHED THEN UPDATE SET age = 1;
--> error: Several source rows match the same row of the dataset
MERGE INTO ns.main.t AS t USING (SELECT 11 AS id, 'n' AS s, 1.0 AS score, 2 AS age) AS src ON t.id = src.id WHEN MATCHED AND t.age > 5 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> 1
SELECT id, s, age FROM ns.main.t ORDER BY id;
--> 1|S1|20
--> 3|S3|99
--> 11|n|2
ALTER TABLE ns.main.t ADD COLUMN age_plus_one BIGINT DEFAULT (age + 1);
ALTER TABLE ns.main.t ADD COLUMN note VARCHAR;
ALTER TABLE ns.main.t ADD COLUMN note VARCHAR;
--> error: Column 'note' already exists, and names are not case sensitive
ALTER TABLE ns.main.t ADD COLUMN IF NOT EXISTS note VARCHAR;
ALTER TABLE ns.main.t RENAME COLUMN score TO score2;
ALTER TABLE ns.main.t RENAME COLUMN nosuch TO x;
--> error: Column 'nosuch' not found
ALTER TABLE ns.main.t ALTER COLUMN age TYPE BIGINT;
ALTER TABLE ns.main.t ALTER COLUMN s TYPE INTEGER;
--> error: Cannot compute the value CAST("s" AS INTEGER): Conversion Error: Could not convert string 'S1' to INT32 when casting from source column s
ALTER TABLE ns.main.t DROP COLUMN score2;
ALTER TABLE ns.main.t DROP COLUMN IF EXISTS score2;
ALTER TABLE ns.main.t DROP COLUMN score2;
--> error: Column 'score2' not found
ALTER TABLE ns.main.t ALTER COLUMN id SET NOT NULL;
ALTER TABLE ns.main.t ALTER COLUMN id DROP NOT NULL;
DESCRIBE ns.main.t;
--> id|BIGINT|YES|NULL|NULL|NULL
--> s|VARCHAR|YES|NULL|NULL|NULL
--> age|BIGINT|YES|NULL|NULL|NULL
--> age_plus_one|BIGINT|YES|NULL|NULL|NULL
--> note|VARCHAR|YES|NULL|NULL|NULL
SELECT * FROM ns.main.t ORDER BY id;
--> 1|S1|20|21|NULL
--> 3|S3|99|100|NULL
--> 11|n|2|3|NULL
CREATE TABLE ns.main.lists AS SELECT i AS id, [i, i]::FLOAT[] AS v FROM range(3) r(i);
--> 3
CREATE INDEX too_early ON ns.main.lists (v) USING IVF_FLAT WITH (num_partitions = 1);
--> error: The column has type list<item: float>, expected vectors
ALTER TABLE ns.main.lists ALTER COLUMN v TYPE FLOAT[2];
ALTER TABLE ns.main.lists ALTER COLUMN v TYPE FLOAT[5];
--> error: Cannot compute the value CAST("v" AS FLOAT[5]): Conversion Error: Cannot cast array of size 2 to array of size 5 when casting from source column v
SELECT typeof(v) FROM ns.main.lists LIMIT 1;
--> FLOAT[2]
CREATE INDEX vec_idx ON ns.main.lists (v) USING IVF_FLAT WITH (num_partitions = 1);
COMMENT ON TABLE ns.main.t IS 'table comment';
COMMENT ON COLUMN ns.main.t.note IS 'col comment';
SELECT value FROM lance_table_metadata('ns.main.t') WHERE key = 'comment';
--> table comment
SELECT value FROM lance_column_metadata('ns.main.t', 'note') WHERE key = 'comment';
--> col comment
COMMENT ON TABLE ns.main.t IS NULL;
SELECT count(*) FROM lance_table_metadata('ns.main.t') WHERE key = 'comment';
--> 0
BEGIN;
INSERT INTO ns.main.t (id) VALUES (50);
--> 1
DELETE FROM ns.main.t WHERE id = 1;
--> 1
ROLLBACK;
SELECT id FROM ns.main.t ORDER BY id;
--> 1
--> 3
--> 11
TRUNCATE TABLE ns.main.t;
--> 3
SELECT count(*) FROM ns.main.t;
--> 0
SELECT count(*) > 1 FROM ns.main.t AT (VERSION => 1);
--> true
INSERT INTO ns.main.t (id) VALUES (1);
--> 1
DELETE FROM ns.main.t;
--> 1
DROP TABLE ns.main.t;
SELECT * FROM ns.main.t;
--> error: Table 'ns.main.t' not found
DETACH ns;
