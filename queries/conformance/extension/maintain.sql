-- Indices, and the upkeep of datasets: by path and by name.
COPY (SELECT i AS id, 'l' || (i % 3) AS label, 'word' || i AS text, [i, 1]::FLOAT[2] AS vec FROM range(20) r(i)) TO 't.lance' (FORMAT lance);
--> 20
ATTACH '.' AS ns (TYPE LANCE);
CREATE INDEX vec_idx ON 't.lance' (vec) USING IVF_FLAT WITH (num_partitions=1, metric_type='l2');
CREATE INDEX label_idx ON 't.lance' (label) USING BTREE;
CREATE INDEX text_idx ON 't.lance' (text) USING INVERTED;
CREATE INDEX id_idx ON ns.main.t (id) USING BITMAP;
CREATE INDEX id_idx ON ns.main.t (id) USING BITMAP;
--> error: Index 'id_idx' already exists
CREATE INDEX IF NOT EXISTS id_idx ON ns.main.t (id) USING BITMAP;
CREATE INDEX zone_idx ON ns.main.t USING ZONEMAP (id);
CREATE INDEX two ON ns.main.t (id, label) USING BTREE;
--> error: Indices must be on one column and cannot be UNIQUE
CREATE INDEX odd ON ns.main.t (id) USING NOSUCH;
--> error: Unknown index type 'nosuch'
CREATE INDEX odd ON ns.main.t (nosuch) USING BTREE;
--> error: Column 'nosuch' not found
CREATE INDEX odd ON 't.lance' (vec) USING IVF_FLAT WITH (metric_type='cubic');
--> error: Unknown metric 'cubic'
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('t.lance') ORDER BY 1;
--> id_idx|Bitmap|id|20
--> label_idx|BTree|label|20
--> text_idx|Inverted|text|20
--> vec_idx|IVF_FLAT|vec|20
--> zone_idx|ZoneMap|id|20
SELECT index_name FROM lance_indexes('ns.main.t') WHERE index_type = 'BTree';
--> label_idx
SELECT label, count(*) FROM 't.lance' WHERE label = 'l1' GROUP BY 1;
--> l1|7
INSERT INTO ns.main.t VALUES (20, 'l1', 'word20', [20, 1]);
--> 1
SELECT rows_indexed FROM lance_indexes('t.lance') WHERE index_name = 'label_idx';
--> 20
ALTER INDEX label_idx ON 't.lance' OPTIMIZE WITH (mode = 'append');
--> optimize_index|t.lance|*
ALTER INDEX vec_idx ON ns.main.t OPTIMIZE WITH (mode = 'merge', num_indices_to_merge = 4);
--> optimize_index|ns.main.t|*
ALTER INDEX text_idx ON 't.lance' OPTIMIZE WITH (mode = 'retrain');
--> optimize_index|t.lance|*
ALTER INDEX text_idx ON 't.lance' OPTIMIZE WITH (mode = 'sometimes');
--> error: Unknown mode 'sometimes'
ALTER INDEX nosuch ON 't.lance' OPTIMIZE;
--> error: Index 'nosuch' not found
SELECT index_name, rows_indexed FROM lance_indexes('t.lance') ORDER BY 1;
--> id_idx|20
--> label_idx|21
--> text_idx|21
--> vec_idx|21
--> zone_idx|20
SELECT id FROM 't.lance' WHERE label = 'l1' AND id > 15 ORDER BY id;
--> 16
--> 19
--> 20
DROP INDEX vec_idx ON 't.lance';
DROP INDEX id_idx ON ns.main.t;
DROP INDEX nosuch ON 't.lance';
--> error: Index 'nosuch' not found
DROP INDEX IF EXISTS nosuch ON 't.lance';
SELECT index_name FROM lance_indexes('t.lance') ORDER BY 1;
--> label_idx
--> text_idx
--> zone_idx
DELETE FROM ns.main.t WHERE id = 3;
--> 1
OPTIMIZE 't.lance' WITH (target_rows_per_fragment = 1048576, max_rows_per_group = 1024, max_bytes_per_file = 0, materialize_deletions = true, materialize_deletions_threshold = 0.01, num_threads = 0, batch_size = 0, defer_index_remap = false);
--> compact|t.lance|*
SELECT count(*) FROM 't.lance'.fragments;
--> 2
OPTIMIZE ns.main.t;
--> compact|ns.main.t|*
OPTIMIZE 'nosuch.lance';
--> error: No Lance dataset at this path
OPTIMIZE 't.lance' WITH (speed = 'high');
--> error: Unknown option speed of OPTIMIZE
VACUUM LANCE 't.lance' WITH (older_than_seconds = 1209600, delete_unverified = false, error_if_tagged_old_versions = true, retain_n_versions = 3);
--> cleanup|t.lance|*
SELECT count(*) > 3 FROM 't.lance'.versions;
--> true
VACUUM LANCE ns.main.t WITH (older_than_seconds = 0, retain_n_versions = 2);
--> cleanup|ns.main.t|*
SELECT count(*) FROM 't.lance'.versions;
--> 2
VACUUM LANCE 't.lance' WITH (older_than_seconds = -1);
--> error: Each option of VACUUM LANCE needs a name and a value
VACUUM LANCE 't.lance' WITH (sometimes = 1);
--> error: Unknown option sometimes of VACUUM LANCE
SHOW MAINTENANCE ON 't.lance';
--> enabled|false
ALTER TABLE 't.lance' SET AUTO_CLEANUP WITH (interval = 1, older_than = '1h', retain_versions = 3);
--> set_auto_cleanup|t.lance|{"enabled":true,"interval":1,"older_than":"1h","retain_versions":3}
SHOW MAINTENANCE ON 't.lance';
--> enabled|true
--> interval|1
--> older_than|1h
--> retain_versions|3
ALTER TABLE ns.main.t UNSET AUTO_CLEANUP;
--> unset_auto_cleanup|ns.main.t|{"enabled":false}
SHOW MAINTENANCE ON ns.main.t;
--> enabled|false
ALTER TABLE 't.lance' SET AUTO_CLEANUP WITH (interval = 'often');
--> error: AUTO_CLEANUP interval must be > 0, not 'often'
SELECT * FROM lance_set_config('ns.main.t', 'team', 'search');
--> 1
SELECT key, value FROM lance_config('t.lance') WHERE key = 'team';
--> team|search
SELECT * FROM lance_unset_config('ns.main.t', 'team');
--> 1
SELECT count(*) FROM lance_config('t.lance') WHERE key = 'team';
--> 0
SELECT * FROM lance_set_table_metadata('t.lance', 'owner', 'shop');
--> 1
SELECT value FROM lance_table_metadata('ns.main.t') WHERE key = 'owner';
--> shop
SELECT * FROM lance_set_schema_metadata('t.lance', 'origin', 'csv');
--> 1
SELECT value FROM lance_schema_metadata('t.lance') WHERE key = 'origin';
--> csv
SELECT * FROM lance_set_column_metadata('t.lance', 'id', 'unit', 'piece');
--> 1
SELECT value FROM lance_column_metadata('t.lance', 'id') WHERE key = 'unit';
--> piece
SELECT * FROM lance_unset_column_metadata('t.lance', 'id', 'unit');
--> 1
SELECT count(*) FROM lance_column_metadata('t.lance', 'id') WHERE key = 'unit';
--> 0
SELECT count(*) FROM lance_compact_files('t.lance');
--> 1
SELECT count(*) FROM lance_cleanup_old_versions('t.lance', 1209600, false);
--> 1
SELECT count(*) FROM lance_create_scalar_index('t.lance', 'id', 'made');
--> 1
SELECT index_type FROM lance_indices('t.lance') WHERE index_name = 'made';
--> BTree
CREATE SECRET (TYPE LANCE, PROVIDER config, SCOPE 's3://my-bucket/', ACCESS_KEY_ID 'a', SECRET_ACCESS_KEY 'b', REGION 'us-east-1');
CREATE SECRET minio (TYPE LANCE, PROVIDER config, SCOPE 's3://other/', ENDPOINT 'http://127.0.0.1:9000', VIRTUAL_HOSTED_STYLE_REQUEST false, ALLOW_HTTP true, ACCESS_KEY_ID 'a', SECRET_ACCESS_KEY 'b');
CREATE SECRET chain (TYPE LANCE, PROVIDER credential_chain, SCOPE 's3://third/', REGION 'us-east-1');
CREATE SECRET env (TYPE LANCE, PROVIDER env, SCOPE 's3://env/');
CREATE SECRET more (TYPE LANCE, PROVIDER config, SCOPE 's3://more/', STORAGE_OPTIONS MAP {'region': 'eu-west-1'});
--> error: Each option of CREATE SECRET needs a name and a value
CREATE SECRET az (TYPE LANCE, PROVIDER config, SCOPE 'az://container/', ACCOUNT_NAME 'me', ACCOUNT_KEY 'key');
CREATE SECRET gs (TYPE LANCE, PROVIDER config, SCOPE 'gs://bucket/', GOOGLE_STORAGE_TOKEN 'token');
CREATE SECRET wrong (TYPE LANCE, PROVIDER elsewhere, SCOPE 's3://x/');
--> error: Unknown provider of a secret
CREATE SECRET empty (TYPE LANCE, PROVIDER config, SCOPE 's3://x/');
--> error: The secret empty has no options
DROP SECRET minio;
DETACH ns;
