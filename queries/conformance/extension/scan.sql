-- What scans push down, and secrets for object stores.
CREATE TABLE goods AS SELECT i AS id, CASE WHEN i % 5 = 0 THEN NULL ELSE 'item ' || i END AS name, (i * 1.25)::DECIMAL(8, 2) AS price, DATE '2026-01-01' + i::INTEGER AS day, TIMESTAMP '2026-01-01 00:00:00' + to_hours(i::INTEGER) AS moment, {'a': i % 4, 'b': 'x' || (i % 3)} AS s, [i % 2, i % 3] AS l, i % 2 = 0 AS even FROM range(40) r(i);
--> 40
SELECT count(*) FROM goods WHERE id > 30;
--> 9
SELECT count(*) FROM goods WHERE id BETWEEN 3 AND 7;
--> 5
SELECT id FROM goods WHERE id IN (1, 39, 77) ORDER BY id;
--> 1
--> 39
SELECT id FROM goods WHERE name IN ('item 1', 'item 2') ORDER BY id;
--> 1
--> 2
SELECT count(*) FROM goods WHERE name IS NULL;
--> 8
SELECT count(*) FROM goods WHERE name IS NOT NULL AND NOT even;
--> 16
SELECT count(*) FROM goods WHERE name IS DISTINCT FROM 'item 1';
--> 39
SELECT count(*) FROM goods WHERE name IS NOT DISTINCT FROM NULL;
--> 8
SELECT id FROM goods WHERE name LIKE 'item 1_' ORDER BY id LIMIT 3;
--> 11
--> 12
--> 13
SELECT id FROM goods WHERE name ILIKE 'ITEM 3%' ORDER BY id LIMIT 2;
--> 3
--> 31
SELECT count(*) FROM goods WHERE starts_with(name, 'item 2');
--> 9
SELECT count(*) FROM goods WHERE ends_with(name, '9');
--> 4
SELECT count(*) FROM goods WHERE contains(name, 'm 3');
--> 9
SELECT count(*) FROM goods WHERE regexp_matches(name, '^item [12]$');
--> 2
SELECT id FROM goods WHERE price = 2.50;
--> 2
SELECT count(*) FROM goods WHERE price >= 10.00 AND price < 20;
--> 8
SELECT id FROM goods WHERE day = DATE '2026-01-05';
--> 4
SELECT count(*) FROM goods WHERE moment < TIMESTAMP '2026-01-01 06:00:00';
--> 6
SELECT count(*) FROM goods WHERE moment >= '2026-01-02';
--> 16
SELECT id FROM goods WHERE s.a = 3 AND s.b = 'x0' ORDER BY id;
--> 3
--> 15
--> 27
--> 39
SELECT count(*) FROM goods WHERE s.a IS NULL;
--> 0
SELECT count(*) FROM goods WHERE even;
--> 20
SELECT count(*) FROM goods WHERE array_has_any(l, [2, 7]);
--> 13
SELECT count(*) FROM goods WHERE array_has_all(l, [1, 2]);
--> 6
SELECT count(*) FROM goods WHERE list_contains(l, 2);
--> 13
SELECT count(*) FROM goods WHERE l @> [1];
--> 26
SELECT count(*) FROM goods WHERE array_contains(l, NULL);
--> 0
SELECT id FROM goods ORDER BY id LIMIT 2 OFFSET 5;
--> 5
--> 6
SELECT count(*) <= 40 FROM goods TABLESAMPLE SYSTEM (50%);
--> true
SELECT count(*) FROM (SELECT * FROM goods USING SAMPLE 7 ROWS);
--> 7
SELECT s.b, count(*), sum(price), min(day), max(id) FROM goods GROUP BY s.b ORDER BY s.b;
--> x0|14|341.25|2026-01-01|39
--> x1|13|308.75|2026-01-02|37
--> x2|13|325|2026-01-03|38
SELECT count(*), sum(id), avg(price) FROM goods;
--> 40|780|24.375
SELECT even, count(DISTINCT s.a) FROM goods GROUP BY even ORDER BY even;
--> false|2
--> true|2
SELECT id FROM goods WHERE _rowid IN (SELECT _rowid FROM goods WHERE id = 7);
--> 7
SELECT id FROM goods WHERE rowid = 3;
--> error: Referenced column "rowid" not found
SELECT count(*) FROM lance_scan('goods.lance') WHERE id < 3;
--> 3
SELECT count(*) FROM goods g JOIN goods h ON g.id = h.id + 38;
--> 2
SELECT count(*) FROM goods WHERE id IN (SELECT s.a FROM goods);
--> 4
EXPLAIN (FORMAT JSON) SELECT id FROM goods WHERE id > 30;
--> physical_plan|*
EXPLAIN SELECT id FROM goods WHERE id > 30;
--> physical_plan|*
--> lance_scan|*
EXPLAIN ANALYZE SELECT count(*) FROM goods WHERE price > 1;
--> analyzed_plan|*
--> lance_scan|*
--> lance_read|*
PREPARE by_id AS SELECT name FROM goods WHERE id = $1;
EXECUTE by_id(8);
--> item 8
PREPARE change AS UPDATE goods SET name = $2 WHERE id = $1;
EXECUTE change(8, 'eight');
--> 1
SELECT name FROM goods WHERE id = 8;
--> eight
CREATE INDEX id_zones ON goods (id) USING ZONEMAP;
CREATE INDEX name_bloom ON goods (name) USING BLOOMFILTER;
CREATE INDEX name_parts ON goods (name) USING NGRAM;
SELECT count(*) FROM goods WHERE contains(name, 'ght');
--> 1
SELECT count(*) FROM goods WHERE name = 'eight';
--> 1
SELECT index_name, index_type FROM lance_indexes('goods') ORDER BY 1;
--> id_zones|ZoneMap
--> name_bloom|BloomFilter
--> name_parts|NGram
CREATE SECRET near (TYPE LANCE, PROVIDER config, SCOPE 's3://near/', ACCESS_KEY_ID 'k', SECRET_ACCESS_KEY 's', SESSION_TOKEN 't', REGION 'us-east-1', ENDPOINT 'http://127.0.0.1:9000', ALLOW_HTTP true, VIRTUAL_HOSTED_STYLE_REQUEST false);
CREATE SECRET near (TYPE LANCE, PROVIDER config, SCOPE 's3://near/', REGION 'us-east-1');
--> error: The secret near already exists
CREATE OR REPLACE SECRET near (TYPE LANCE, PROVIDER config, SCOPE 's3://near/', REGION 'eu-west-1', SKIP_SIGNATURE true);
CREATE SECRET IF NOT EXISTS near (TYPE LANCE, PROVIDER config, SCOPE 's3://near/', REGION 'us-west-1');
CREATE SECRET slow (TYPE LANCE, PROVIDER config, SCOPE 's3://slow/', CONNECT_TIMEOUT '5s', REQUEST_TIMEOUT '30s', CLIENT_MAX_RETRIES '3', REGION 'us-east-1');
CREATE SECRET proxied (TYPE LANCE, PROVIDER config, SCOPE 's3://proxied/', PROXY_URL 'http://127.0.0.1:3128', USER_AGENT 'me', REGION 'us-east-1');
CREATE SECRET oss (TYPE LANCE, PROVIDER config, SCOPE 'oss://bucket/', OSS_ENDPOINT 'https://oss.example.com', OSS_ACCESS_KEY_ID 'k', OSS_SECRET_ACCESS_KEY 's');
CREATE SECRET hub (TYPE LANCE, PROVIDER config, SCOPE 'hf://datasets/acme/set/', HF_TOKEN 't', HF_REVISION 'main');
CREATE SECRET gcs (TYPE LANCE, PROVIDER config, SCOPE 'gs://keyed/', SERVICE_ACCOUNT_KEY '{}');
CREATE SECRET sas (TYPE LANCE, PROVIDER config, SCOPE 'az://sas/', ACCOUNT_NAME 'me', SAS_TOKEN 'sv=1');
CREATE SECRET mapped (TYPE LANCE, PROVIDER config, SCOPE 's3://mapped/', STORAGE_OPTIONS map(['region'], ['eu-west-1']));
--> error: Each option of CREATE SECRET needs a name and a value
DROP SECRET IF EXISTS nothing;
DROP SECRET near;
DROP SECRET near;
--> error: Invalid Input Error: Failed to remove non-existent secret with name
