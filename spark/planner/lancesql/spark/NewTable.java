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
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What CREATE TABLE and REPLACE TABLE say about a table. Python checks the columns and properties. */
final class NewTable {
  enum Kind {
    CREATE,
    REPLACE,
    CREATE_OR_REPLACE
  }

  final Identifier table;
  final StructType columns;
  final Map<String, String> properties;
  final Kind kind;

  NewTable(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties, Kind kind) {
    if (partitions.length > 0) {
      throw new UnsupportedOperationException(
          "Lance tables have no partitions: leave out PARTITIONED BY and CLUSTER BY, and sort the rows instead, so"
              + " that zone maps rule them out");
    }
    StructType schema = new StructType();
    for (Column column : columns) {
      if (column.defaultValue() != null || column.generationExpression() != null) {
        throw new UnsupportedOperationException(
            "Column '" + column.name() + "': Lance tables know neither defaults nor generated columns");
      }
      schema = schema.add(field(column.name(), column.dataType(), column.nullable(), column.comment()));
    }
    this.table = table;
    this.columns = schema;
    this.properties = properties;
    this.kind = kind;
  }

  static StructField field(
      String name, org.apache.spark.sql.types.DataType type, boolean nullable, String comment) {
    StructField field = new StructField(name, type, nullable, Metadata.empty());
    return comment == null ? field : field.withComment(comment);
  }

  boolean replaces() {
    return kind != Kind.CREATE;
  }

  /** Asks whether the table can be created or replaced, and where. */
  ObjectNode check() {
    return command("create").put("only_check", true);
  }

  ObjectNode command(String what) {
    ObjectNode command = CatalogCalls.command(what, table);
    command.put("replaces", replaces()).put("must_exist", kind == Kind.REPLACE).put("only_check", false);
    command.setAll(declaration());
    return command;
  }

  /** The columns and properties, as in table_properties.py. */
  ObjectNode declaration() {
    ObjectNode declared = CatalogCalls.command("").put("schema", columns.json());
    declared.remove("do");
    ObjectNode given = declared.putObject("properties");
    properties.forEach(given::put);
    return declared;
  }

  JsonNode requireAbsent(JsonNode answer) throws TableAlreadyExistsException {
    if (answer.path("exists").asBoolean()) {
      throw new TableAlreadyExistsException(table);
    }
    return answer;
  }
}
