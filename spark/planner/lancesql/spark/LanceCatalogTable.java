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
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.SupportsDelete;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.AlwaysTrue;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of {@link LanceCatalog}, which knows where it is, and from which rows are deleted by filters. */
final class LanceCatalogTable extends LanceTable implements SupportsRowLevelOperations, SupportsDelete {
  private static final Set<String> LOGICAL = Set.of("AND", "OR", "NOT");

  private final String name;
  private final Map<String, String> properties;
  private final CatalogCalls calls;

  LanceCatalogTable(
      String name,
      StructType answer,
      Map<String, String> options,
      Map<String, String> properties,
      CatalogCalls calls) {
    super(TableFacts.without(answer), TableFacts.of(answer), new CaseInsensitiveStringMap(options));
    this.name = name;
    this.properties = properties;
    this.calls = calls;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  /**
   * Claims support for overwriting partitions, so that our error with a remedy is raised. Without the last
   * capability, which Spark 4.0 does not have, MERGE WITH SCHEMA EVOLUTION drops the new columns silently.
   */
  @Override
  public Set<TableCapability> capabilities() {
    Set<TableCapability> all = EnumSet.copyOf(super.capabilities());
    all.add(TableCapability.OVERWRITE_BY_FILTER);
    all.add(TableCapability.OVERWRITE_DYNAMIC);
    Stream.of(TableCapability.values())
        .filter(capability -> capability.name().equals("AUTOMATIC_SCHEMA_EVOLUTION"))
        .forEach(all::add);
    return all;
  }

  /** Spark has asked the catalog for this version. */
  @Override
  boolean chosenBySpark(String option) {
    return PythonSource.anyOf(option, Set.of("versionasof", "timestampasof"));
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Writes(info, facts().version());
  }

  private WriteBuilder with(LogicalWriteInfo info, String option, String value) {
    Map<String, String> more = Map.of(PythonSource.OURS + option, value);
    return super.newWriteBuilder(PythonSource.info(info, PythonSource.with(info.options(), more)));
  }

  private final class Writes implements SupportsOverwrite, SupportsDynamicOverwrite {
    private final LogicalWriteInfo info;
    private final long version; // that the statement read
    private WriteBuilder python;

    Writes(LogicalWriteInfo info, long version) {
      this.info = info;
      this.version = version;
      this.python = with(info, "keeps_schema", "true");
    }

    @Override
    public WriteBuilder truncate() {
      return ((SupportsTruncate) python).truncate();
    }

    @Override
    public boolean canOverwrite(Predicate[] predicates) {
      if (!canDeleteWhere(predicates)) {
        throw new UnsupportedOperationException(
            "Rows are replaced by conditions that compare integers, texts, dates, decimals or booleans with constants:"
                + " write others in DELETE, then INSERT, or in MERGE INTO");
      }
      return true;
    }

    @Override
    public WriteBuilder overwrite(Filter[] filters) {
      ObjectNode rows = JsonNodeFactory.instance.objectNode().put("filters", PushedFilter.text(List.of(filters)));
      python = with(info, "replaced_rows", (version < 0 ? rows : rows.put("version", version)).toString());
      return this;
    }

    @Override
    public WriteBuilder overwriteDynamicPartitions() {
      throw new UnsupportedOperationException(
          "Lance tables have no partitions to overwrite: replace all rows with .overwrite(lit(True)), or change some"
              + " with MERGE INTO");
    }

    @Override
    public Write build() {
      return python.build();
    }
  }

  /** Rows that Python can select exactly by filters are deleted without reading them here. */
  @Override
  public boolean canDeleteWhere(Filter[] filters) {
    return List.of(filters).stream()
        .filter(LanceCatalogTable::isCondition)
        .allMatch(
            filter -> PushedFilter.tree(filter).isPresent() && PushedFilter.isExact(filter, facts().exact()));
  }

  /** Spark's conversion to filters drops sides of AND and OR that it has no filter for, silently. */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    return Stream.of(predicates).allMatch(LanceCatalogTable::hasFilters)
        && SupportsDelete.super.canDeleteWhere(predicates);
  }

  /** Spark gives DELETE without WHERE the condition TRUE. */
  private static boolean isCondition(Filter filter) {
    return !(filter instanceof AlwaysTrue);
  }

  private static boolean hasFilters(Expression predicate) {
    if (predicate instanceof Predicate node && LOGICAL.contains(node.name())) {
      return Stream.of(node.children()).allMatch(LanceCatalogTable::hasFilters);
    }
    return predicate instanceof Predicate
        && Stream.of(predicate.children())
            .allMatch(child -> child instanceof NamedReference || child instanceof Literal);
  }

  @Override
  public void deleteWhere(Filter[] filters) {
    var command = CatalogCalls.command("delete");
    CaseInsensitiveStringMap options = withOptions(CaseInsensitiveStringMap.empty());
    List<Filter> conditions = Stream.of(filters).filter(LanceCatalogTable::isCondition).toList();
    command.put("path", options.get("path")).put("filters", PushedFilter.text(conditions));
    command.put("storage_options", options.get("storage_options"));
    calls.ask(command);
    changed();
  }

  @Override
  public boolean truncateTable() {
    deleteWhere(new Filter[0]);
    return true;
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return () -> new RowChanges(this, info.command());
  }

  /** A write of changes of rows by Python. */
  BatchWrite changesByPython(LogicalWriteInfo info) {
    return newWriteBuilder(info).build().toBatch();
  }
}
