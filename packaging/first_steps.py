"""What a wheel must do in an empty environment: write, query with both engines, filter and take."""

import pyarrow as pa

import lance_sql

sales = pa.table(
    {"id": range(1_000), "price": [row % 97 + 0.5 for row in range(1_000)], "name": ["pen", "ink"] * 500}
)
lance_sql.write(sales, "sales.lance")
dataset = lance_sql.open("sales.lance")
assert dataset.scan(columns=["name"], filter="id = 7").to_table().to_pydict() == {"name": ["ink"]}
assert dataset.take([3, 1]).column("id").to_pylist() == [3, 1]
query = "SELECT name, count(*) AS n FROM 'sales.lance' WHERE price > 50 GROUP BY name ORDER BY name"
answers = []
for engine in ("duckdb", "datafusion"):
    with lance_sql.connect(engine=engine) as session:
        answers.append(session.sql(query).arrow().to_pydict())
assert answers[0] == answers[1], answers
print(lance_sql.__version__, answers[0])
