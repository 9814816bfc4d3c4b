-- Writing datasets: COPY, and tables of an attached directory.
INSTALL lance FROM community;
LOAD lance;
COPY (SELECT 1::BIGINT AS id, 'a' AS s UNION ALL SELECT 2, 'b') TO 'out.lance' (FORMAT lance, MODE 'overwrite');
--> 2
SELECT count(*) FROM 'out.lance';
--> 2
COPY (SELECT 3::BIGINT AS id, 'c' AS s) TO 'out.lance' (FORMAT lance, MODE 'append');
--> 1
SELECT * FROM 'out.lance' ORDER BY id LIMIT 2;
--> 1|a
--> 2|b
COPY (SELECT 9::BIGINT AS id, 'z' AS s) TO 'out.lance' (FORMAT lance, mode 'create');
--> error: A dataset already exists
COPY (SELECT 9::BIGINT AS id, 'z' AS s) TO 'out.lance' (FORMAT lance, mode 'sideways');
--> error: Unknown mode sideways
COPY (SELECT 9::BIGINT AS id) TO 'out.lance' (FORMAT lance, colour 'red');
--> error: Unknown option colour
COPY (SELECT 9 AS nosuch) TO 'out.lance' (FORMAT lance, mode 'append');
--> error: Column 'nosuch' not found in the dataset
COPY (SELECT 7::BIGINT AS id, 'only' AS s) TO 'out.lance' (FORMAT lance, mode 'overwrite');
--> 1
SELECT * FROM 'out.lance';
--> 7|only
COPY (SELECT 1::BIGINT AS id, 'x' AS s LIMIT 0) TO 'empty.lance' (FORMAT lance, MODE 'overwrite', write_empty_file true);
--> 0
SELECT count(*) FROM 'empty.lance';
--> 0
COPY (SELECT 1 AS id LIMIT 0) TO 'none.lance' (FORMAT lance, MODE 'overwrite', write_empty_file false);
--> error: Unknown option write_empty_file
SELECT count(*) FROM 'none.lance';
--> error: No Lance dataset at this path
COPY (SELECT 1 AS id) TO 'old.lance' (FORMAT lance, data_storage_version '2.0');
--> 1
COPY (SELECT 2 AS id) TO 'old.lance' (FORMAT lance, MODE 'append');
--> 1
SELECT DISTINCT version FROM 'old.lance'.files;
--> 2.0
COPY (SELECT i AS id FROM range(10) r(i)) TO 'parts.lance' (FORMAT lance, max_rows_per_file 4);
--> 10
SELECT count(*) FROM 'parts.lance'.fragments;
--> 3
COPY (SELECT [i, i + 1]::FLOAT[2] AS v, {'a': i, 'b': [i]} AS s, i::DECIMAL(8, 2) AS d, DATE '2020-01-01' + i::INTEGER AS day FROM range(3) r(i)) TO 'typed.lance' (FORMAT lance);
--> 3
SELECT v[1], s.a, s.b, d, day FROM 'typed.lance' ORDER BY s.a;
--> 0|0|[0]|0|2020-01-01
--> 1|1|[1]|1|2020-01-02
--> 2|2|[2]|2|2020-01-03
DESCRIBE FROM 'typed.lance';
--> v|FLOAT[2]|YES|NULL|NULL|NULL
--> s|STRUCT(a BIGINT, b BIGINT[])|YES|NULL|NULL|NULL
--> d|DECIMAL(8,2)|YES|NULL|NULL|NULL
--> day|DATE|YES|NULL|NULL|NULL
SELECT count(*) FROM lance_scan('out.lance');
--> 1
SELECT s.id FROM 'out.lance' AS s JOIN 'parts.lance' AS p ON s.id = p.id;
--> 7
SELECT count(*) FROM 'nosuch.lance';
--> error: No Lance dataset at this path
ATTACH 'dir' AS ns (TYPE LANCE);
CREATE OR REPLACE TABLE ns.main.t (id BIGINT, s VARCHAR);
SHOW TABLES FROM ns.main;
--> t
INSERT INTO ns.main.t VALUES (1::BIGINT, 'a'::VARCHAR), (2, 'b');
--> 2
INSERT INTO ns.main.t SELECT 3::BIGINT AS id, 'c' AS s;
--> 1
INSERT INTO ns.main.t (s) VALUES ('no id');
--> 1
INSERT INTO ns.main.t (id, nosuch) VALUES (1, 2);
--> error: Column 'nosuch' not found
INSERT INTO ns.main.t VALUES ('x', 'y');
--> error: Conversion Error: Could not convert string 'x' to INT64
INSERT INTO ns.main.t VALUES (4, 'd') RETURNING id, s;
--> 4|d
SELECT * FROM ns.main.t ORDER BY id NULLS FIRST;
--> NULL|no id
--> 1|a
--> 2|b
--> 3|c
--> 4|d
SELECT * FROM 'dir/t.lance' ORDER BY id NULLS FIRST LIMIT 1;
--> NULL|no id
CREATE TABLE ns.main.t (id BIGINT);
--> error: A dataset already exists
CREATE TABLE IF NOT EXISTS ns.main.t (id BIGINT);
CREATE OR REPLACE TABLE ns.main.made AS SELECT id * 10 AS id, s FROM ns.main.t WHERE id IS NOT NULL;
--> 4
SELECT sum(id) FROM ns.main.made;
--> 100
CREATE OR REPLACE TABLE ns.main.made AS SELECT 1 AS one;
--> 1
SELECT * FROM ns.main.made;
--> 1
CREATE TABLE ns.main.older WITH (data_storage_version = '2.1') AS SELECT 1 AS a;
--> 1
SELECT DISTINCT version FROM ns.main.older.files;
--> 2.1
CREATE TABLE ns.main.vectors (id INTEGER, v FLOAT[3], tags VARCHAR[]);
INSERT INTO ns.main.vectors VALUES (1, [1, 2, 3], ['x']), (2, NULL, []);
--> 2
INSERT INTO ns.main.vectors VALUES (3, [1, 2], NULL);
--> error: Conversion Error: Cannot cast list with length 2 to array with length 3
SELECT id, v, tags FROM ns.main.vectors ORDER BY id;
--> 1|(1.0, 2.0, 3.0)|['x']
--> 2|NULL|[]
SHOW TABLES FROM ns.main;
--> made
--> older
--> t
--> vectors
SELECT table_name FROM information_schema.tables WHERE table_catalog = 'ns' ORDER BY 1;
--> made
--> older
--> t
--> vectors
SELECT column_name, data_type FROM information_schema.columns WHERE table_catalog = 'ns' AND table_name = 'vectors' ORDER BY ordinal_position;
--> id|INTEGER
--> v|FLOAT[3]
--> tags|VARCHAR[]
CREATE TABLE ns.main."../outside" (id INTEGER);
--> error: '../outside' is a path, not the name of a table
DROP TABLE ns.main.made;
DROP TABLE ns.main.made;
--> error: Table 'ns.main.made' not found
DROP TABLE IF EXISTS ns.main.made;
USE ns;
SELECT count(*) FROM t;
--> 5
USE lance;
DETACH ns;
SELECT count(*) FROM ns.main.t;
--> error: Table 'ns.main.t' not found
ATTACH 'dir' AS again (TYPE LANCE);
SELECT count(*) FROM again.main.t;
--> 5
CREATE SCHEMA again.deep;
CREATE TABLE again.deep.t AS SELECT 5 AS five;
--> 1
SELECT five FROM again.deep.t;
--> 5
DROP SCHEMA again.deep;
--> error: The schema again.deep has tables: t
