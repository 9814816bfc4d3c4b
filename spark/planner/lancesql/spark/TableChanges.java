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
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What ALTER TABLE changes, as JSON for Python. */
final class TableChanges {
  private TableChanges() {}

  static ObjectNode json(TableChange change) {
    ObjectNode node = JsonNodeFactory.instance.objectNode();
    if (change instanceof TableChange.AddColumn add) {
      if (add.fieldNames().length > 1 || add.position() != null || add.defaultValue() != null) {
        throw new UnsupportedOperationException(
            "Columns are added at the end, without a default: ALTER TABLE t ADD COLUMN name type");
      }
      if (!add.isNullable()) {
        throw new UnsupportedOperationException(
            "The new column would be null in the rows that exist: ALTER TABLE t ADD COLUMN name type, without NOT"
                + " NULL");
      }
      StructField field = NewTable.field(add.fieldNames()[0], add.dataType(), true, add.comment());
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
    throw new UnsupportedOperationException(
        "Lance tables cannot be altered so: " + change.getClass().getSimpleName());
  }

  private static ObjectNode named(ObjectNode node, TableChange.ColumnChange change) {
    var column = node.putArray("column");
    for (String part : change.fieldNames()) {
      column.add(part);
    }
    return node;
  }
}
