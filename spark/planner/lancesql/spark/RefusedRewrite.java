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

import java.util.Locale;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A statement that would rewrite rows, and is refused with the remedy.
 *
 * <p>Spark plans every DELETE so, and takes {@link LanceCatalogTable#deleteWhere} instead where that can do
 * it: the refusal comes when the plan is executed.
 */
final class RefusedRewrite implements RowLevelOperation {
  private final LanceCatalogTable table;
  private final Command command;

  RefusedRewrite(LanceCatalogTable table, Command command) {
    this.table = table;
    this.command = command;
    if (command != Command.DELETE) {
      throw refusal();
    }
  }

  private UnsupportedOperationException refusal() {
    String function = command.name().toLowerCase(Locale.ROOT);
    return new UnsupportedOperationException(
        command + " of rows of " + table.name() + " in Spark SQL is not supported"
            + (command == Command.DELETE ? " with this condition" : "")
            + ": use lance_sql.spark." + function + "(spark, '" + table.path()
            + "', ...), which does it by tasks and in one commit");
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.newScanBuilder(options);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new WriteBuilder() {
      @Override
      public Write build() {
        return new Write() {
          @Override
          public BatchWrite toBatch() {
            throw refusal();
          }
        };
      }
    };
  }
}
