/*
 * Copyright The lance-sql Authors
 *
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in
 * compliance with the License. You may obtain a copy of the License at
 *
 *     http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is
 * distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or
 * implied. See the License for the specific language governing permissions and limitations under the
 * License.
 */
package lancesql.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Columns of a table whose values a view has, by the addresses of the rows: tasks write these columns, a fragment at a
 * time, and Python commits them as one version; see column_writer.py.
 */
final class ViewColumns {
  static final String ADD = "add_columns_from";
  static final String UPDATE = "update_columns_from";

  private static final String ADDRESS = "_rowaddr";

  private ViewColumns() {}

  /** Does what the answer to one of these procedures asks for; other answers ask for nothing. */
  static void change(JsonNode answer, CatalogCalls calls) {
    JsonNode asked = answer.path("from_view");
    if (asked.isMissingNode()) {
      return;
    }
    Map<String, String> options = new HashMap<>(calls.options(asked.path("options")));
    Column[] selected = new Column[asked.path("columns").size() + 1];
    selected[0] = functions.col(ADDRESS);
    for (int i = 1; i < selected.length; i++) {
      selected[i] = functions.col(LanceStatements.quoted(asked.path("columns").get(i - 1).asText()));
    }
    DataFrameWriter<Row> writer =
        SparkSession.active()
            .table(asked.path("view").asText())
            .where(selected[0].isNotNull())
            .select(selected)
            .repartition(functions.shiftright(selected[0], 32))
            .sortWithinPartitions(selected[0])
            .write();
    PythonErrors.plain(
        () -> {
          writer.format(PythonSource.NAME).mode(SaveMode.Append).options(options).save();
          return null;
        });
  }
}
