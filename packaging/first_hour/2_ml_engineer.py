# An ML engineer with embeddings: numpy, pandas, PyTorch.
import numpy as np
import pandas as pd
import pyarrow as pa
import lance_sql

rng = np.random.default_rng(0)
vectors = rng.normal(size=(1000, 16)).astype("float32")
frame = pd.DataFrame({"id": range(1000), "text": [f"a {'red' if n % 2 else 'blue'} shoe number {n}" for n in range(1000)], "label": rng.integers(0, 5, 1000), "vector": list(vectors)})
ds = lance_sql.write(frame, "items.lance")
ds
print(ds)
ds.schema
ds.head()
print(ds.head())
first = ds.head()
lance_sql.sql("FROM first")
ds.head(3).to_pandas()
ds.to_pandas(limit=3)
len(ds), ds.shape, ds.columns
ds["label"]  # mistake
ds.nearest("vector", vectors[0], k=3)  # mistake: a column of lists, as with pyarrow
lance_sql.sql("ALTER TABLE ds ALTER COLUMN vector TYPE FLOAT[16]")  # mistake
ds = ds.alter_column("vector", type=pa.list_(pa.float32(), 16))
ds.nearest("vector", vectors[0], k=3)
print(ds.nearest("vector", vectors[0], k=3, columns=["id", "text"]))
ds.nearest("vectr", vectors[0])  # mistake
ds.nearest("vector", vectors[0], limit=3)  # mistake
ds.nearest("vector", vectors[0][:8])  # mistake
ds = ds.create_index("vector", "IVF_PQ", num_partitions=4, num_sub_vectors=4)
ds = ds.create_index("vector", index_type="IVF_PQ")  # mistake
ds.inspect.indices()
print(ds.inspect.indices())
ds = ds.create_index("text", "INVERTED")
print(ds.search("red shoe", "text", k=2, columns=["id", "text"]))
ds.health()
print(ds.health())
print(ds.inspect.versions())
lance_sql.sql("SELECT label, count(*) FROM ds GROUP BY ALL ORDER BY ALL")
ds.take([1, 5], columns=["id"]).to_pydict()
ds[5]["id"]
ds.sample(3)  # mistake
ds = ds.add_columns({"long": "length(text)"})
ds = ds.update({"label": "9"}, where="id < 10")
ds = ds.delete("label = 9")
ds.count_rows()
ds = ds.merge_insert("id")  # mistake
ds.merge(frame.tail(5), on="id").when_matched_update_all().when_not_matched_insert_all().execute()
for batch in ds.to_batches(columns=["vector"], batch_size=400):
    print(batch.num_rows, batch["vector"].type)
import lance_sql.torch  # mistake where PyTorch is missing
