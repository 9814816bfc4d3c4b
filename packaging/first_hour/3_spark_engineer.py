# An engineer who writes Spark jobs, and knows Delta.
from lance_sql.spark import local_session

spark = local_session()
frame = spark.range(1000).selectExpr("id", "id % 7 AS day", "concat('n', id) AS name", "id * 1.5 AS price")
frame.write.format("lance").save("sales.lance")
frame.write.format("lance").save("sales.lance")  # mistake
frame.write.format("lance").mode("append").save("sales.lance")
spark.read.format("lance").load("sales.lance").where("day = 3").count()
spark.read.format("lance").load("sale.lance").count()  # mistake
spark.read.format("lance").option("versionAsOf", 1).load("sales.lance").count()
spark.read.format("lance").option("verson", 1).load("sales.lance").count()  # mistake
spark.read.lance("sales.lance")  # mistake
spark.sql("SELECT day, count(*) FROM lance.`sales.lance` GROUP BY day ORDER BY day LIMIT 2").show()
spark.sql("SELECT * FROM lance.`sales.lance` WHERE dy = 1").show()  # mistake
spark.conf.set("spark.sql.catalog.lake", "lancesql.spark.LanceCatalog")
spark.sql("SHOW TABLES IN lake").show()  # mistake
spark.conf.set("spark.sql.catalog.lake.path", "lake")
spark.sql("CREATE TABLE lake.t (id BIGINT, name STRING) USING lance")
spark.sql("INSERT INTO lake.t VALUES (1, 'a'), (2, 'b')")
spark.sql("UPDATE lake.t SET name = 'c' WHERE id = 1").show()
spark.sql("DELETE FROM lake.t WHERE id = 2").show()
spark.sql("MERGE INTO lake.t USING (SELECT 1 AS id, 'z' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *").show()
spark.sql("SHOW TABLES IN lake").show()
spark.sql("DESCRIBE EXTENDED lake.t").show(50, False)
spark.sql("DESCRIBE HISTORY lake.t").show()
spark.sql("SELECT * FROM lake.t.versions").show()
spark.sql("SELECT * FROM lake.t VERSION AS OF 2").show()
spark.sql("OPTIMIZE lake.t").show()
spark.sql("SELECT * FROM lake.t WITH (version = 2)").show()  # mistake
spark.sql("CREATE TABLE lake.u LIKE lake.t").show()
spark.sql("ALTER TABLE lake.u ADD COLUMN n INT DEFAULT 5")
spark.sql("INSERT INTO lake.u (id) VALUES (3)")
spark.sql("USE lake")
spark.sql("SELECT * FROM u").show()
spark.sql("SELECT version, operation FROM u.versions").show()
frame.withColumn("extra", frame.id).write.format("lance").mode("append").save("sales.lance")  # mistake
frame.write.format("lance").partitionBy("day").save("parts.lance")  # mistake
frame.toPandas().head(2)
spark.stop()
