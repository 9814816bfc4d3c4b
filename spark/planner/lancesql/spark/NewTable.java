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
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What CREATE TABLE and REPLACE TABLE say about a table. Python checks the columns and properties. */
final class NewTable {
  enum Kind {
    CREATE,
    REPLACE,
    CREATE_OR_REPLACE
  }

  static final String DEFAULT = "CURRENT_DEFAULT"; // as Spark has it

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
      if (column.generationExpression() != null || column.identityColumnSpec() != null) {
        throw new UnsupportedOperationException(
            "Lance tables have neither generated nor identity columns, such as '" + column.name() + "': compute its"
                + " values in INSERT, or declare a DEFAULT, which is a constant");
      }
      StructField field = field(column.name(), column.dataType(), column.nullable(), column.comment());
      schema = schema.add(withDefault(field, column.defaultValue()));
    }
    this.table = table;
    this.columns = schema;
    this.properties = properties;
    this.kind = kind;
  }

  /** Spark 4.0, which lacks the class, has no constraints. */
  static void refuseConstraints(TableInfo created) {
    if (created.constraints().length > 0) {
      throw new UnsupportedOperationException(TableChanges.CONSTRAINTS);
    }
  }

  static StructField field(
      String name, org.apache.spark.sql.types.DataType type, boolean nullable, String comment) {
    StructField field = new StructField(name, type, nullable, Metadata.empty());
    return comment == null ? field : field.withComment(comment);
  }

  /** The field with a default for Python, as in table_properties.py. */
  static StructField withDefault(StructField field, ColumnDefaultValue value) {
    if (value == null) {
      return field;
    }
    if (value.getSql() == null) {
      throw new UnsupportedOperationException("The default of the column '" + field.name() + "' needs a text in SQL");
    }
    Metadata metadata = new MetadataBuilder().withMetadata(field.metadata()).putString(DEFAULT, value.getSql()).build();
    return new StructField(field.name(), field.dataType(), field.nullable(), metadata);
  }

  boolean replaces() {
    return kind != Kind.CREATE;
  }

  /** Asks whether the table can be created or replaced, and where; defaults are checked when it is created. */
  ObjectNode check() {
    ObjectNode command = command("create").put("only_check", true);
    command.setAll(ofQuery());
    return command;
  }

  ObjectNode command(String what) {
    ObjectNode command = CatalogCalls.command(what, table);
    command.put("replaces", replaces()).put("must_exist", kind == Kind.REPLACE).put("only_check", false);
    command.setAll(declaration(columns));
    return command;
  }

  /** What AS SELECT declares: its columns are those of a query, from whose tables Spark takes defaults, too. */
  ObjectNode ofQuery() {
    StructType plain = new StructType();
    for (StructField field : columns.fields()) {
      Metadata metadata = new MetadataBuilder().withMetadata(field.metadata()).remove(DEFAULT).build();
      plain = plain.add(new StructField(field.name(), field.dataType(), field.nullable(), metadata));
    }
    return declaration(plain);
  }

  /** The columns and properties, as in table_properties.py. */
  private ObjectNode declaration(StructType columns) {
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
