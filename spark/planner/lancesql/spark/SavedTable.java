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

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A dataset whose schema Spark gave: that of rows that {@code save} is to write, of a table of the session's
 * own catalog, or of the user.
 *
 * <p>{@code save} knows all modes only for tables without batch writes of the second interface, so writes
 * go by the first one.
 */
final class SavedTable extends LanceTable {
  SavedTable(StructType columns, CaseInsensitiveStringMap options) {
    super(columns, TableFacts.NONE, options);
  }

  @Override
  public Set<TableCapability> capabilities() {
    Set<TableCapability> all = EnumSet.copyOf(super.capabilities());
    all.remove(TableCapability.BATCH_WRITE);
    all.add(TableCapability.V1_BATCH_WRITE);
    return all;
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Builder(info);
  }

  private WriteBuilder streams(LogicalWriteInfo info) {
    return super.newWriteBuilder(info);
  }

  private final class Builder implements SupportsTruncate {
    private final LogicalWriteInfo info;
    private SaveMode mode = SaveMode.Append;

    Builder(LogicalWriteInfo info) {
      this.info = info;
    }

    @Override
    public WriteBuilder truncate() {
      mode = SaveMode.Overwrite;
      return this;
    }

    @Override
    public Write build() {
      return new V1Write() {
        @Override
        public InsertableRelation toInsertableRelation() {
          return (rows, overwrite) -> {
            Saving.write(rows, mode, withOptions(info.options()).asCaseSensitiveMap());
            changed();
          };
        }

        @Override
        public StreamingWrite toStreaming() {
          return streams(info).build().toStreaming();
        }
      };
    }
  }
}
