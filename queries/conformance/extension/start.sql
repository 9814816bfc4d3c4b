-- What the extension's first page shows, and its namespaces, with lists of numbers as vectors.
INSTALL lance;
LOAD lance;
COPY (SELECT * FROM (VALUES ('owl', 'hoots', [0.9, 0.7, 0.1]::FLOAT[]), ('cow', 'moos', [0.3, 0.1, 0.5]::FLOAT[]), ('lion', 'roars', [0.5, 0.2, 0.7]::FLOAT[])) AS t(animal, noise, vector)) TO './farm.lance' (FORMAT lance, mode 'overwrite');
--> 3
SELECT animal, noise, vector[3] < 0.6 FROM './farm.lance' ORDER BY animal LIMIT 5;
--> cow|moos|true
--> lion|roars|false
--> owl|hoots|true
SELECT animal, _distance < 0.1 FROM lance_vector_search('./farm.lance', 'vector', [0.8, 0.7, 0.2]::FLOAT[], k = 1, prefilter = true) ORDER BY _distance ASC;
--> error: The column has type list<item: float>, expected vectors
SELECT animal FROM lance_vector_search('./farm.lance', 'vector', [0.8, 0.7, 0.2]::DOUBLE[], k = 2) ORDER BY _distance ASC;
--> error: The column has type list<item: float>, expected vectors
SELECT animal, _score > 0 FROM lance_fts('./farm.lance', 'animal', 'the brave lion met the lion', k = 1, prefilter = true) ORDER BY _score DESC;
--> lion|true
SELECT animal, _hybrid_score > 0 FROM lance_hybrid_search('./farm.lance', 'vector', [0.8, 0.7, 0.2]::FLOAT[], 'animal', 'the owl saw the lion', k = 2, prefilter = false, alpha = 0.5, oversample_factor = 4) ORDER BY _hybrid_score DESC;
--> error: The column has type list<item: float>, expected vectors
ALTER TABLE './farm.lance' ALTER COLUMN vector TYPE FLOAT[3];
SELECT animal, _distance < 0.1 FROM lance_vector_search('./farm.lance', 'vector', [0.8, 0.7, 0.2]::FLOAT[], k = 1) ORDER BY _distance ASC;
--> owl|true
SELECT animal, _hybrid_score > 0 FROM lance_hybrid_search('./farm.lance', 'vector', [0.8, 0.7, 0.2]::FLOAT[], 'animal', 'the owl saw the lion', k = 2, alpha = 0.5, oversample_factor = 4) ORDER BY _hybrid_score DESC;
--> owl|true
--> lion|true
CREATE INDEX farm_idx ON './farm.lance' (vector) USING IVF_FLAT WITH (num_partitions = 1);
ATTACH './zoo' AS zoo (TYPE LANCE);
CREATE TABLE zoo.main.animals AS SELECT * FROM (VALUES ('owl', [0.9, 0.7]::FLOAT[2]), ('cow', [0.3, 0.1]::FLOAT[2])) AS t(animal, vector);
--> 2
SELECT count(*) FROM zoo.main.animals;
--> 2
SELECT animal FROM lance_vector_search('zoo.main.animals', 'vector', [1, 1]::FLOAT[2], k = 1);
--> owl
SELECT animal FROM lance_vector_search('zoo.main.animals', 'vector', [1, 1]::FLOAT[2], k = 2, filter = 'animal = ''cow''');
--> cow
SELECT animal FROM lance_vector_search('zoo.main.animals', 'vector', [1, 1]::FLOAT[2], k = 2, filter = 'animal <> ''x''', prefilter = true) WHERE animal = 'owl';
--> owl
SELECT animal FROM lance_vector_search('zoo.main.animals', 'vector', []::FLOAT[], k = 1);
--> error: The query has 0 dimensions, but the vectors have 2
SELECT animal FROM lance_vector_search('zoo.main.animals', 'vector', [1, 1]::FLOAT[2], nprobs = 0);
--> error: nprobes must be a positive integer, not 0
SELECT animal FROM lance_vector_search('zoo.main.animals', 'vector', [1, 1]::FLOAT[2], refine_factor = 0);
--> error: refine_factor must be a positive integer, not 0
CREATE INDEX animals_idx ON zoo.main.animals (vector) USING IVF_PQ WITH (num_partitions = 1, num_sub_vectors = 1, metric_type = 'l2');
CREATE INDEX animals_sq ON zoo.main.animals (vector) USING IVF_SQ WITH (num_partitions = 1, metric_type = 'cosine');
CREATE INDEX animals_hnsw ON zoo.main.animals (vector) USING IVF_HNSW_SQ WITH (num_partitions = 1, metric_type = 'dot');
SHOW INDEXES ON zoo.main.animals;
--> animals_idx|IVF_PQ|vector|2|*
--> animals_sq|IVF_SQ|vector|2|*
--> animals_hnsw|IVF_HNSW_SQ|vector|2|*
SHOW TABLES FROM zoo.main;
--> animals
USE zoo.main;
SELECT animal FROM animals ORDER BY animal;
--> cow
--> owl
INSERT INTO animals VALUES ('ant', [0, 0]);
--> 1
USE lance;
SELECT count(*) FROM './zoo/animals.lance';
--> 3
CREATE SCHEMA zoo.wild;
CREATE TABLE zoo.wild.birds (name VARCHAR, wings INTEGER);
INSERT INTO zoo.wild.birds (wings, name) VALUES (2, 'owl');
--> 1
SELECT name, wings FROM zoo.wild.birds;
--> owl|2
SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'zoo' ORDER BY 1;
--> main
--> wild
DROP TABLE zoo.wild.birds;
DROP SCHEMA zoo.wild;
CREATE OR REPLACE TABLE zoo.main.animals (id BIGINT, s VARCHAR);
SELECT count(*) FROM zoo.main.animals;
--> 0
DROP TABLE zoo.main.animals;
SHOW TABLES FROM zoo.main;
CREATE TABLE zoo.main.animals (other INTEGER);
SELECT count(*) FROM zoo.main.animals;
--> 0
ATTACH './zoo' AS zoo (TYPE LANCE);
--> error: 'zoo' is already attached
ATTACH IF NOT EXISTS './zoo' AS zoo (TYPE LANCE);
ATTACH './zoo' AS closed (TYPE LANCE, READ_ONLY);
--> error: Unknown option READ_ONLY of a directory
DETACH zoo;
DETACH DATABASE IF EXISTS zoo;
