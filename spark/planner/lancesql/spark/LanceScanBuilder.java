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

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Passes what Spark pushes down to the Python reader, as options. */
final class LanceScanBuilder
    implements SupportsPushDownRequiredColumns,
        SupportsPushDownFilters,
        SupportsPushDownLimit,
        SupportsPushDownAggregates {
  private final StructType columns;
  private final TableFacts facts;
  private final CaseInsensitiveStringMap options;
  private final SharedReads reads;
  private final boolean checked;
  private final List<Filter> pushed = new ArrayList<>();
  private StructType required;
  private int limit = -1;
  private Aggregation asked;
  private KnownRows known;

  LanceScanBuilder(
      StructType columns, TableFacts facts, CaseInsensitiveStringMap options, SharedReads reads, boolean checked) {
    this.columns = columns;
    this.facts = facts;
    this.options = options;
    this.reads = reads;
    this.checked = checked;
    this.required = columns;
  }

  @Override
  public Filter[] pushFilters(Filter[] filters) {
    List<Filter> left = new ArrayList<>();
    for (Filter filter : filters) {
      boolean understood =
          PushedFilter.tree(filter).isPresent() && !PushedFilter.columns(List.of(filter)).contains(LanceTable.FRAGMENT);
      if (understood) {
        pushed.add(filter);
      }
      if (!understood || !PushedFilter.isExact(filter, facts.exact())) {
        left.add(filter);
      }
    }
    return left.toArray(Filter[]::new);
  }

  @Override
  public Filter[] pushedFilters() {
    return pushed.toArray(Filter[]::new);
  }

  @Override
  public void pruneColumns(StructType schema) {
    for (String name : schema.fieldNames()) {
      String blob = name.replaceFirst(LanceTable.BLOB_PLACE + "$", "");
      if (!blob.equals(name) && facts.blobs().contains(blob) && columns.getFieldIndex(name).isEmpty()) {
        throw new UnsupportedOperationException(
            "There is no column " + name + ": a blob column is its bytes, and octet_length(" + blob + ") their number");
      }
    }
    required = schema;
  }

  @Override
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true; // every task stops after so many rows, Spark after the first of them
  }

  @Override
  public boolean supportCompletePushDown(Aggregation aggregation) {
    return pushAggregation(aggregation);
  }

  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    if (checked && pushed.isEmpty() && !PythonSource.anyOf(options, Set.of("filter")) && !aggregation.equals(asked)) {
      asked = aggregation;
      known = new KnownAggregates(columns, facts, pinned()).row(aggregation).orElse(null);
    }
    return known != null;
  }

  /** The options, with the version that was current when the table was loaded. */
  private CaseInsensitiveStringMap pinned() {
    Map<String, String> more = new HashMap<>();
    if (facts.version() >= 0) {
      Stream.of("tag", "as_of", "versionAsOf", "timestampAsOf").forEach(name -> more.put(name, null));
      more.put("version", Long.toString(facts.version()));
    }
    return PythonSource.with(options, more);
  }

  @Override
  public Scan build() {
    if (known != null) {
      return known;
    }
    int parallelism = SparkContext.getOrCreate().defaultParallelism();
    CaseInsensitiveStringMap all =
        PythonSource.with(pinned(), Map.of(PythonSource.OURS + "parallelism", Integer.toString(parallelism)));
    Map<String, String> query = new HashMap<>();
    if (!pushed.isEmpty()) {
      query.put(PythonSource.OURS + "pushed_filters", PushedFilter.text(pushed));
    }
    if (limit >= 0) {
      query.put(PythonSource.OURS + "limit", Integer.toString(limit));
    }
    int tasks = SharedReads.tasks(facts, options, parallelism, testedWidth());
    return new LanceScan(
        columns,
        readable(),
        facts,
        options,
        new LanceScan.Asked(all, query, reads, tasks),
        pushed,
        limit);
  }

  /** The width of the columns that are returned or tested, 0 without filters. */
  private long testedWidth() {
    if (pushed.isEmpty()) {
      return 0;
    }
    Set<String> names = PushedFilter.columns(pushed);
    names.addAll(List.of(required.fieldNames()));
    return Stream.of(columns.fields())
        .filter(field -> names.contains(field.name()))
        .mapToLong(field -> field.dataType().defaultSize())
        .sum();
  }

  /** The required columns; the narrowest one if only the number of rows is needed. */
  private StructType readable() {
    if (!required.isEmpty()) {
      return required;
    }
    Comparator<StructField> byWidth = Comparator.comparingInt(field -> field.dataType().defaultSize());
    return Stream.of(columns.fields())
        .min(byWidth)
        .map(field -> new StructType(new StructField[] {field}))
        .orElse(required);
  }
}
