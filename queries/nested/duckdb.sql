-- project a field
SELECT max(device.model) FROM events;
-- test a string field
SELECT count(*) FROM events WHERE device.os = 'ios';
-- test a number in a struct in a struct
SELECT count(*) FROM events WHERE device.screen.w > 1400;
-- rows with a rare value of a field
SELECT event_id, time FROM events WHERE device.model = 'model 777' ORDER BY event_id;
-- group by a field
SELECT device.os, count(*) FROM events GROUP BY device.os;
-- group by a field of a struct in a struct
SELECT device.screen.w, avg(device.screen.h), count(*) FROM events GROUP BY device.screen.w;
-- distinct whole structs
SELECT count(*) FROM (SELECT DISTINCT device FROM events);
-- nulls at each level
SELECT count(*) FILTER (location IS NULL), count(*) FILTER (location.city IS NULL), count(*) FILTER (location.point.lat IS NULL) FROM events;
-- events without a city
SELECT count(*) FROM events WHERE location.city IS NULL;
-- count distinct users by a nullable field
SELECT location.country, count(DISTINCT user_id) FROM events WHERE location.country IS NOT NULL GROUP BY location.country;
-- count distinct values of fields
SELECT count(DISTINCT device.model), count(DISTINCT location.city) FROM events;
-- points in a rectangle
SELECT count(*), avg(location.point.lat) FROM events WHERE location.point.lat BETWEEN 48 AND 49 AND location.point.lon BETWEEN 8 AND 9;
-- unnest strings and count them
SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM events) GROUP BY tag;
-- lists that contain a value
SELECT count(*) FROM events WHERE list_contains(tags, 'vip');
-- group by the length of a list
SELECT len(tags), count(*) FROM events GROUP BY len(tags);
-- first item of a list
SELECT avg(items[1].price), count(items[1].sku) FROM events;
-- sum of a list
SELECT kind, sum(list_sum(durations)) FROM events GROUP BY kind;
-- unnest structs and aggregate their fields
SELECT item.sku, sum(item.quantity * item.price) FROM (SELECT unnest(items) AS item FROM events) GROUP BY item.sku;
-- filter a list of structs
SELECT count(*) FROM events WHERE len(list_filter(items, lambda x: x.price > 90)) > 0;
-- sum over the items of each row
SELECT kind, sum(list_sum(list_transform(items, lambda x: x.quantity * x.price))) FROM events GROUP BY kind;
-- join unnested items with a table
SELECT category, sum(item.quantity) FROM (SELECT unnest(items) AS item FROM events) JOIN products ON products.sku = item.sku GROUP BY category;
-- group by the value of a key
SELECT attributes['plan'] AS plan, count(*) FROM events GROUP BY plan;
-- test the value of a key
SELECT count(*) FROM events WHERE attributes['campaign'] = 'campaign 7';
-- count the keys of maps
SELECT key, count(*) FROM (SELECT unnest(map_keys(attributes)) AS key FROM events) GROUP BY key;
-- group by the size of maps
SELECT cardinality(attributes) AS entries, count(*) FROM events GROUP BY entries;
-- group by a string of a JSON document
SELECT payload->>'$.user.plan' AS plan, count(*) FROM events GROUP BY plan;
-- sum a number of JSON documents
SELECT sum(CAST(payload->>'$.total' AS DOUBLE)) FROM events;
-- test a value of a JSON document
SELECT event_id FROM events WHERE json_extract_string(payload, '$.error.code') = '503' ORDER BY event_id;
-- search the text of JSON documents
SELECT count(*) FROM events WHERE payload LIKE '%refused%';
-- first of a JSON array
SELECT count(*) FROM events WHERE json_extract(payload, '$.labels[0]') IS NOT NULL;
-- newest whole rows
SELECT * FROM events ORDER BY time DESC, event_id LIMIT 10;
-- one whole row
SELECT * FROM events WHERE event_id = 12345;
-- whole lists of some rows
SELECT user_id, items FROM events WHERE kind = 'purchase' AND device.os = 'ios' ORDER BY event_id LIMIT 100;
