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

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Saves rows in every mode: as an append or overwrite by {@link WritingProvider}, one commit each. */
final class Saving {
  /** The columns of {@code partitionBy}, where Spark's first interface puts them. */
  private static final String PARTITIONS = "__partition_columns";

  private Saving() {}

  static void save(Dataset<Row> rows, SaveMode mode, Map<String, String> options) {
    refusePartitions(options.containsKey(PARTITIONS) ? 1 : 0);
    if (mode == SaveMode.Append || mode == SaveMode.Overwrite) {
      write(rows, mode, options);
      return;
    }
    if (mode == SaveMode.Ignore && exists(options)) {
      return;
    }
    Map<String, String> creating = new HashMap<>(options);
    creating.put("create", "true"); // Python fails if there is a dataset, before any task and at the commit
    try {
      write(rows, SaveMode.Append, creating);
    } catch (RuntimeException error) {
      // Another writer may have created the dataset meanwhile.
      if (mode != SaveMode.Ignore || !exists(options)) {
        throw error;
      }
    }
  }

  static void write(Dataset<Row> rows, SaveMode mode, Map<String, String> options) {
    rows.write().format(WritingProvider.class.getName()).options(options).mode(mode).save();
  }

  private static boolean exists(Map<String, String> options) {
    CatalogCalls calls = new CatalogCalls(new CaseInsensitiveStringMap(options));
    return calls.ask(CatalogCalls.command("exists")).path("exists").asBoolean();
  }

  static void refusePartitions(int columns) {
    if (columns > 0) {
      throw new UnsupportedOperationException(
          "Lance datasets have no partitions: leave out partitionBy (PARTITIONED BY). To make filters on a column"
              + " fast, sort by it before writing: df.repartitionByRange(column).sortWithinPartitions(column)");
    }
  }
}
