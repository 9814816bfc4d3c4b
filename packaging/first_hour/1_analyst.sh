# An analyst who knows SQL and DuckDB's command line, with a file of sales.
python -c "import duckdb; duckdb.sql(\"COPY (SELECT DATE '2026-01-01' + (range % 60)::INT AS day, ['toys','books','games'][range % 3 + 1] AS category, range % 97 + 0.5 AS price, range AS id FROM range(10000)) TO 'sales.csv'\")"
lance-sql --version
lance-sql --help
lance-sql "SELECT 42"
lance-sql "SELECT * FROM 'sales.csv' LIMIT 3"
lance-sql convert sales.csv sales.lance
ls
lance-sql sales.lance
lance-sql "SELECT category, count(*), avg(price) FROM 'sales.lance' GROUP BY ALL ORDER BY ALL"
lance-sql -c "SELECT count(*) FROM 'sales.lance'"
lance-sql -csv "SELECT * FROM 'sales.lance' LIMIT 2"
lance-sql --format csv "SELECT * FROM 'sales.lance' LIMIT 2"
lance-sql sales.lance "SELECT count(*) FROM sales"
lance-sql -d . "SELECT count(*) FROM sales"
lance-sql "SELECT categry FROM 'sales.lance'"  # mistake
lance-sql "SELECT * FROM 'sale.lance'"  # mistake
lance-sql "SELEC 1"  # mistake
echo 'SELECT 1 AS one;' > more.sql
lance-sql head sales.lance
lance-sql schema sales.lance
lance-sql count sales.lance  # mistake
lance-sql "COPY (SELECT category, sum(price) AS total FROM 'sales.lance' GROUP BY ALL) TO 'totals.parquet'"
lance-sql "COPY (SELECT category, sum(price) AS total FROM 'sales.lance' GROUP BY ALL) TO 'totals.xlsx'"  # mistake
lance-sql "UPDATE 'sales.lance' SET price = 0 WHERE id = 1"
lance-sql "DELETE FROM 'sales.lance' WHERE price > 90"
lance-sql "SELECT count(*) FROM 'sales.lance' VERSION AS OF 1"  # mistake
lance-sql history sales.lance
lance-sql shell <<'END'
.help
.tables
.open .
.tables
.mode line
SELECT * FROM sales LIMIT 2;
.mode csv
SELECT * FROM sales LIMIT 2;
.mode box
SHOW TABLES;
DESCRIBE sales;
SUMMARIZE sales;
.schema sales
.timer on
select category, sum(price) from sales group by all;
.import sales.csv more
\x
SELECT * FROM more LIMIT 1;
\x
.once two.csv
SELECT * FROM more LIMIT 2;
.read more.sql
\d
\q
END
echo "SELECT count(*) FROM 'sales.lance'" | lance-sql
lance-sql inspect sales.lance --html report.html
lance-sql sql "SELECT 1"  # mistake
lance-sql export sales.lance sales.parquet  # mistake
