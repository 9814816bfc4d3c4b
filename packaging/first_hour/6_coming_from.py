# Somebody who knows pylance, DuckDB's Lance extension and LanceDB.
import duckdb
import lance_sql as lance
import pyarrow as pa

table = pa.table({"id": range(100), "name": [f"n{n}" for n in range(100)], "vec": pa.array([[n / 100, 1.0] for n in range(100)], pa.list_(pa.float32(), 2))})
lance.write_dataset(table, "x.lance")  # mistake
ds = lance.write(table, "data/x.lance")
lance.dataset("data/x.lance")  # mistake
ds = lance.open("data/x.lance", version=1)
ds.to_table(columns=["id"], filter="id < 3", limit=2)
ds.to_table(columns=["id"], filter="id < 3")
ds.scanner(columns=["id"], filter="id < 3").to_table().num_rows
ds.to_table(nearest={"column": "vec", "q": [0.5, 1.0], "k": 2})  # mistake
ds.versions()  # mistake
ds.list_indices()  # mistake
ds.get_fragments()  # mistake
ds.create_scalar_index("id", index_type="BTREE")  # mistake
ds.merge_insert("id")  # mistake
ds.checkout_version(1)  # mistake
ds.optimize.compact_files()  # mistake
ds.compact_files()
ds.cleanup_old_versions()  # mistake
ds.insert(table)  # mistake
ds.stats  # mistake
ds.validate()
ds.lance_schema
ds.tags.create("prod", 1)
ds.tags.list()
lance.open("data/x.lance", version="prod")  # mistake
lance.open("data/x.lance", tag="prod").version

# LanceDB
db = lance.connect("data")
db.table_names()
db.open_table("x")  # mistake
db.create_table("y", table)  # mistake
db["x"]  # mistake
ds.search([0.5, 1.0])  # mistake
ds.add(table)  # mistake
ds.to_arrow().num_rows

# The extension
con = duckdb.connect()
con.execute("INSTALL lance FROM community")  # mistake
session = lance.connect(duckdb=con)
session.sql("INSTALL lance FROM community; LOAD lance")
session.sql("ATTACH 'data' AS ns (TYPE LANCE)")
session.sql("SHOW ALL TABLES")
session.sql("SELECT count(*) FROM ns.main.x")
session.sql("FROM lance_vector_search('data/x.lance', 'vec', [0.5, 1.0]::FLOAT[2], k = 2)")
session.sql("FROM lance_vector_search('data/x.lance', 'vec', [0.5, 1.0]::FLOAT[2], kk = 2)")  # mistake
session.sql("INSERT INTO ns.main.x SELECT 100, 'new', [1.0, 1.0]")
session.sql("SELECT count(*) FROM 'data/x.lance'").df()
con.sql("FROM 'data/x.lance' LIMIT 1")  # a session on it finds paths, too
