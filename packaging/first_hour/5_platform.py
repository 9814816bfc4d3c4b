# A platform engineer: S3 on this machine, secrets, logs, metrics.
import logging
import os
import boto3
from moto.server import ThreadedMotoServer
import lance_sql

server = ThreadedMotoServer(port=0)
server.start()
host, port = server.get_host_and_port()
os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "very-secret", "AWS_REGION": "us-east-1"}
endpoint = f"http://{host}:{port}"
boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="lake")
lance_sql.write({"id": [1, 2, 3]}, "s3://lake/x.lance")  # mistake
options = {"endpoint": endpoint, "allow_http": True}
ds = lance_sql.write({"id": [1, 2, 3]}, "s3://lake/x.lance", storage_options=options)
ds
logging.basicConfig(level=logging.INFO)
logging.getLogger("botocore").setLevel(logging.WARNING)
logging.getLogger("lance_sql").setLevel(logging.DEBUG)
lance_sql.open("s3://lake/x.lance", storage_options=options).count_rows()
con = lance_sql.connect("s3://lake", storage_options=options)
con.tables()
con.sql("SELECT * FROM x WHERE id > 1")
con.sql("INSERT INTO x VALUES (4)")
con.sql(f"CREATE SECRET s (TYPE S3, KEY_ID 'key', SECRET 'very-secret', ENDPOINT '{host}:{port}', USE_SSL false, URL_STYLE 'path', REGION 'us-east-1')")
logging.getLogger().setLevel(logging.WARNING)
con.sql("FROM duckdb_secrets()")
lance_sql.open("s3://lake/none.lance", storage_options=options)  # mistake
lance_sql.open("s3://none/x.lance", storage_options=options)  # mistake
lance_sql.open("s3://lake/x.lance", storage_options=options | {"acces_key_id": "x"})  # mistake
import lance_sql.otel
lance_sql.otel.instrument()
con.sql("EXPLAIN ANALYZE SELECT * FROM x WHERE id > 1")
result = con.sql("SELECT * FROM x WHERE id > 1")
result.fetchall()
result.metrics
server.stop()
