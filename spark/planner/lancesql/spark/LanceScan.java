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

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A scan by the Python reader, with statistics and with pushed-down operations in its description. */
final class LanceScan implements Scan, SupportsReportStatistics {
  /** The request to Python: options of all queries and of this one; tasks are 0 if Python plans them. */
  record Asked(
      CaseInsensitiveStringMap options, Map<String, String> query, SharedReads reads, int tasks) {}

  private final StructType columns;
  private final StructType required;
  private final TableFacts facts;
  private final CaseInsensitiveStringMap given;
  private final CaseInsensitiveStringMap options;
  private final Asked asked;
  private final boolean packed;
  private final Scan reader;
  private final List<Filter> pushed;
  private final int limit;

  LanceScan(
      StructType columns,
      StructType required,
      TableFacts facts,
      CaseInsensitiveStringMap given,
      Asked asked,
      List<Filter> pushed,
      int limit) {
    this.columns = columns;
    this.required = required;
    this.facts = facts;
    this.given = given;
    this.asked = asked;
    this.options = PythonSource.with(asked.options(), asked.query());
    this.packed = !required.isEmpty() && PackedColumn.holds(required);
    this.reader =
        packed
            ? PythonSource.scan(
                PackedBatch.PACKED, PythonSource.with(options, Map.of(PythonSource.OURS + "packed", required.json())))
            : PythonSource.scan(required, options);
    this.pushed = List.copyOf(pushed);
    this.limit = limit;
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  @Override
  public String description() {
    String filters = pushed.stream().map(Filter::toString).collect(Collectors.joining(", "));
    return "lance " + given.getOrDefault("path", "")
        + (facts.version() < 0 ? "" : " version " + facts.version())
        + ", ReadSchema: " + required.catalogString()
        + ", PushedFilters: [" + filters + "]"
        + (limit < 0 ? "" : ", PushedLimit: " + limit);
  }

  @Override
  public Batch toBatch() {
    return PythonErrors.plain(this::batch);
  }

  private Batch batch() {
    Batch python =
        packed && asked.tasks() > 0
            ? asked.reads().batch(asked.options(), required, asked.query(), asked.tasks())
            : reader.toBatch();
    Batch plain = new PlainBatch(python);
    return packed ? new PackedBatch(List.of(options, required), plain, required) : plain;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    // A stream follows the versions to come, whichever is current now.
    return PythonErrors.plainFrom(
        PythonErrors.plain(() -> PythonSource.scan(columns, given).toMicroBatchStream(checkpointLocation)));
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return reader.supportedCustomMetrics();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return reader.reportDriverMetrics();
  }

  /** Rows of the table, and the share of its bytes that the columns read have by the widths of their types. */
  @Override
  public Statistics estimateStatistics() {
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        if (facts.bytes() < 0) {
          return OptionalLong.empty();
        }
        double share = (required.defaultSize() + 8.0) / (columns.defaultSize() + 8.0);
        return OptionalLong.of(Math.max(1, (long) (facts.bytes() * Math.min(1.0, share))));
      }

      @Override
      public OptionalLong numRows() {
        return facts.rows() < 0 ? OptionalLong.empty() : OptionalLong.of(facts.rows());
      }
    };
  }
}
