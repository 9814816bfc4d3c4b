-- The search functions and their parameters.
CREATE TABLE docs (id INTEGER, v FLOAT[2], text VARCHAR, tags VARCHAR[], label VARCHAR);
INSERT INTO docs VALUES (1, [0, 0], 'a small puppy', ['dog', 'pet'], 'a'), (2, [1, 0], 'a cat and a puppy', ['cat'], 'b'), (3, [0, 3], 'birds', ['bird', 'pet'], 'a'), (4, [5, 5], 'puppy puppy puppy', [], 'b'), (5, NULL, NULL, NULL, 'a');
--> 5
SELECT id, _distance FROM lance_vector_search('docs.lance', 'v', [0, 0]::FLOAT[2], k = 3) ORDER BY _distance;
--> 1|0
--> 2|1
--> 3|9
SELECT id FROM lance_vector_search('docs.lance', 'v', [0, 0]::DOUBLE[2], k = 2) ORDER BY _distance;
--> 1
--> 2
SELECT id FROM lance_vector_search('docs', 'v', [0.0, 0.0], k = 1);
--> 1
SELECT id, label FROM lance_vector_search('lance.main.docs', 'v', [5, 4]::FLOAT[2], k = 1, use_index = false);
--> 4|b
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 2, prefilter = true) WHERE label = 'b' ORDER BY _distance;
--> 2
--> 4
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 1, prefilter = false) WHERE label = 'b';
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2]) WHERE text LIKE '%puppy' ORDER BY _distance;
--> 1
--> 2
--> 4
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], prefilter = true) WHERE starts_with(text, 'a') ORDER BY _distance;
--> 1
--> 2
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 2, prefilter = true) WHERE array_has_any(tags, ['pet', 'cat']) ORDER BY _distance;
--> 1
--> 2
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 2, prefilter = true) WHERE array_has_all(tags, ['pet']) ORDER BY _distance;
--> 1
--> 3
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 9, prefilter = true) WHERE label IN ('a', 'c') AND tags IS NOT NULL ORDER BY _distance;
--> 1
--> 3
SELECT count(*) FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2]);
--> 4
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 0);
--> error: k must be a positive integer, not 0
SELECT id FROM lance_vector_search('docs', 'v', [0, 0, 0]::FLOAT[3]);
--> error: The query has 3 dimensions, but the vectors have 2
SELECT id FROM lance_vector_search('docs', 'label', [0, 0]::FLOAT[2]);
--> error: The column has type string, expected vectors
SELECT id FROM lance_vector_search('docs', 'nosuch', [0, 0]::FLOAT[2]);
--> error: Column 'nosuch' not found
SELECT id FROM lance_vector_search('nosuch.lance', 'v', [0, 0]::FLOAT[2]);
--> error: No Lance dataset at this path
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], colour = 1);
--> error: lance_vector_search has no argument 'colour'
SELECT d.id, o.label FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 2) d JOIN docs o USING (id) ORDER BY d._distance;
--> 1|a
--> 2|b
SELECT label, min(_distance) FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 4) GROUP BY label ORDER BY label;
--> a|0
--> b|1
CREATE INDEX vec_idx ON docs (v) USING IVF_FLAT WITH (num_partitions = 1, metric_type = 'l2');
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 3, nprobs = 1) ORDER BY _distance;
--> 1
--> 2
--> 3
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 3, nprobs = 1, refine_factor = 2, use_index = true) ORDER BY _distance;
--> 1
--> 2
--> 3
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 3, refine_factor = 0);
--> error: refine_factor must be a positive integer, not 0
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], nprobs = 0);
--> error: nprobes must be a positive integer, not 0
SELECT id FROM lance_vector_search('docs', 'v', [0, 0]::FLOAT[2], k = 1, explain_verbose = true);
--> 1
SELECT id FROM lance_fts('docs', 'text', 'puppy', k = 10) ORDER BY _score DESC;
--> 4
--> 1
--> 2
SELECT id FROM lance_fts('docs.lance', 'text', 'cat');
--> 2
CREATE INDEX text_idx ON docs (text) USING INVERTED;
SELECT id FROM lance_fts('docs', 'text', 'puppy', k = 10) ORDER BY _score DESC;
--> 4
--> 1
--> 2
SELECT id FROM lance_fts('docs', 'text', 'puppy', k = 1) ORDER BY _score DESC;
--> 4
SELECT id FROM lance_fts('docs', 'text', 'puppy', k = 10, prefilter = true) WHERE label = 'b' ORDER BY id;
--> 2
--> 4
SELECT id FROM lance_fts('docs', 'text', 'cat birds') ORDER BY id;
--> 2
--> 3
SELECT id FROM lance_fts('docs', 'text', 'dragon');
SELECT id FROM lance_fts('docs', 'label', 'a');
--> 1
--> 3
--> 5
SELECT id FROM lance_fts('docs', 'text', 'puppy', k = -1);
--> error: k must be a positive integer, not -1
SELECT id, _hybrid_score > 0, _distance, _score > 0 FROM lance_hybrid_search('docs', 'v', [1, 0]::FLOAT[2], 'text', 'cat', k = 1, prefilter = false, alpha = 0.5, oversample_factor = 4);
--> 2|true|0|true
SELECT id FROM lance_hybrid_search('docs', 'v', [0, 0]::FLOAT[2], 'text', 'birds', k = 2, alpha = 1.0) ORDER BY _hybrid_score DESC;
--> 1
--> 2
SELECT id FROM lance_hybrid_search('docs', 'v', [0, 0]::FLOAT[2], 'text', 'birds', k = 1, alpha = 0.0);
--> 3
SELECT id FROM lance_hybrid_search('docs', 'v', [0, 0]::FLOAT[2], 'text', 'puppy', k = 5, prefilter = true, nprobs = 1, refine_factor = 1, use_index = false) WHERE label = 'a' ORDER BY _hybrid_score DESC;
--> 1
--> 3
SELECT id FROM lance_hybrid_search('docs', 'v', [0, 0]::FLOAT[2], 'text', 'puppy', alpha = 2.0);
--> error: alpha must be between 0 and 1, not 2.0
SELECT id FROM lance_hybrid_search('docs', 'v', [0, 0]::FLOAT[2], 'text', 'puppy', oversample_factor = 0);
--> error: oversample must be a positive integer, not 0
CREATE INDEX tags_idx ON docs (tags) USING LABEL_LIST;
SELECT id FROM docs WHERE array_has_any(tags, ['pet', 'cat']) ORDER BY id;
--> 1
--> 2
--> 3
SELECT id FROM docs WHERE array_has_all(tags, ['pet', 'bird']) ORDER BY id;
--> 3
SELECT id FROM docs WHERE array_has(tags, 'dog') OR tags IS NULL ORDER BY id;
--> 1
--> 5
SELECT id FROM docs WHERE tags && ['cat', 'bird'] ORDER BY id;
--> 2
--> 3
SELECT id FROM docs WHERE array_has_any(tags, []) ORDER BY id;
SELECT id FROM docs WHERE regexp_matches(text, 'pup+y$') ORDER BY id;
--> 1
--> 2
--> 4
SELECT id FROM docs ORDER BY array_distance(v, [0, 0]::FLOAT[2]) LIMIT 2;
--> 1
--> 2
