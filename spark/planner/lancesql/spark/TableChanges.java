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

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What ALTER TABLE changes, as JSON for Python. */
final class TableChanges {
  static final String CONSTRAINTS =
      "Spark does not declare keys and conditions of Lance tables, but obeys them: declare them in a session of"
          + " lance_sql.connect, or with Dataset.add_key and add_check";
  private static final String POSITION =
      "New columns come last, and columns keep their order: name them in the order that you want in SELECT, or write"
          + " CREATE OR REPLACE TABLE t AS SELECT ...";
  /** What Spark can ask for, by the classes of the changes, some of which older versions lack. */
  private static final Map<String, String> REFUSED =
      Map.of(
          "UpdateColumnPosition", POSITION,
          "ClusterBy", "Lance tables have no clusters: write the rows sorted, as in INSERT OVERWRITE t SELECT * FROM t ORDER BY ...",
          "AddConstraint", CONSTRAINTS,
          "DropConstraint", CONSTRAINTS);

  private TableChanges() {}

  static ObjectNode json(TableChange change) {
    ObjectNode node = JsonNodeFactory.instance.objectNode();
    if (change instanceof TableChange.AddColumn add) {
      if (add.fieldNames().length > 1) {
        throw new UnsupportedOperationException(
            "Only whole columns are added in Spark: add a field of a struct in a session, or a column with the struct");
      }
      if (add.position() != null) {
        throw new UnsupportedOperationException(POSITION);
      }
      if (!add.isNullable()) {
        throw new UnsupportedOperationException(
            "The new column would be null in the rows that exist: ALTER TABLE t ADD COLUMN name type, without NOT"
                + " NULL");
      }
      StructField column = NewTable.field(add.fieldNames()[0], add.dataType(), true, add.comment());
      StructField field = NewTable.withDefault(column, add.defaultValue());
      return node.put("do", "add").put("schema", new StructType(new StructField[] {field}).json());
    }
    if (change instanceof TableChange.DeleteColumn delete) {
      return named(node.put("do", "drop").put("if_exists", delete.ifExists()), delete);
    }
    if (change instanceof TableChange.RenameColumn rename) {
      return named(node.put("do", "rename").put("name", rename.newName()), rename);
    }
    if (change instanceof TableChange.UpdateColumnType update) {
      StructField field =
          new StructField("type", update.newDataType(), true, Metadata.empty());
      return named(node.put("do", "type").put("schema", new StructType(new StructField[] {field}).json()), update);
    }
    if (change instanceof TableChange.UpdateColumnNullability update) {
      return named(node.put("do", "nullable").put("nullable", update.nullable()), update);
    }
    if (change instanceof TableChange.UpdateColumnComment update) {
      return named(node.put("do", "comment").put("comment", update.newComment()), update);
    }
    if (change instanceof TableChange.SetProperty property) {
      return node.put("do", "property").put("key", property.property()).put("value", property.value());
    }
    if (change instanceof TableChange.RemoveProperty property) {
      return node.put("do", "property").put("key", property.property()).putNull("value");
    }
    if (change instanceof TableChange.UpdateColumnDefaultValue update) {
      // The text is empty in DROP DEFAULT.
      return named(node.put("do", "default").put("default", update.newDefaultValue()), update);
    }
    String kind = change.getClass().getSimpleName();
    throw new UnsupportedOperationException(
        REFUSED.getOrDefault(kind, "ALTER TABLE cannot change this of a Lance table: " + kind));
  }

  /** REPLACE COLUMNS drops all columns and adds others, which would have no values. */
  static void refuseNewColumns(TableChange[] changes) {
    boolean drops = Stream.of(changes).anyMatch(change -> change instanceof TableChange.DeleteColumn);
    if (drops && Stream.of(changes).anyMatch(change -> change instanceof TableChange.AddColumn)) {
      throw new UnsupportedOperationException(
          "REPLACE COLUMNS would lose the values of all columns: DROP, ADD, RENAME or ALTER single ones, or write"
              + " CREATE OR REPLACE TABLE t AS SELECT ...");
    }
  }

  private static ObjectNode named(ObjectNode node, TableChange.ColumnChange change) {
    var column = node.putArray("column");
    for (String part : change.fieldNames()) {
      column.add(part);
    }
    return node;
  }
}
