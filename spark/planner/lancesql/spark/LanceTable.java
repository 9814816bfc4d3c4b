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

import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A dataset: Spark's table of a Python source, which writes, with scans of its own. Its options hold for all
 * reads and writes, which may add some.
 */
class LanceTable extends PythonTable implements SupportsMetadataColumns {
  /** The id of the fragment of a row, as lance-spark names it; Python takes it from the address. */
  static final String FRAGMENT = "_fragid";

  /** What lance-spark appends to the names of blob columns; a scan refuses such columns. */
  static final String BLOB_PLACE = "__blob_(pos|size)";

  /** Options that say what is loaded: a table that is loaded cannot obey them. */
  private static final Set<String> LOADED =
      Set.of("path", "version", "versionasof", "tag", "asof", "timestampasof", "branch", "columns", "rowid");

  private final StructType columns;
  private final CaseInsensitiveStringMap options;
  private final SharedReads reads = new SharedReads();
  private TableFacts facts;

  LanceTable(StructType columns, TableFacts facts, CaseInsensitiveStringMap options) {
    super(PythonSource.create(), PythonSource.NAME, columns);
    this.columns = columns;
    this.facts = facts;
    this.options = options;
  }

  @Override
  public String name() {
    return "lance";
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    Stream<String> places =
        facts.blobs().stream().flatMap(blob -> Stream.of(blob + "__blob_pos", blob + "__blob_size"));
    return Stream.concat(Stream.of("_rowid", "_rowaddr", FRAGMENT), places)
        .map(RowNumber::new)
        .toArray(MetadataColumn[]::new);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return newScanBuilder(options, facts);
  }

  /** A scan of the version that these facts describe. */
  ScanBuilder newScanBuilder(CaseInsensitiveStringMap given, TableFacts facts) {
    refuse(given, LOADED);
    CaseInsensitiveStringMap all = PythonSource.with(withOptions(given), PythonSource.given(given));
    boolean checked = options.keySet().containsAll(given.keySet()); // Python has seen these options
    return new LanceScanBuilder(columns, facts, all, reads, checked);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo given) {
    refuse(given.options(), Set.of("path"));
    Map<String, String> names = PythonSource.given(given.options());
    LogicalWriteInfo info = PythonSource.info(given, PythonSource.with(withOptions(given.options()), names));
    WriteBuilder builder = super.newWriteBuilder(info);
    changed();
    StructType rows = info.schema();
    if (rows.isEmpty() || !PackedColumn.holds(rows) || info.options().containsKey(RowChanges.VERSION)) {
      return new PackedWrite.Builder(builder, builder, null);
    }
    CaseInsensitiveStringMap packed = PythonSource.with(info.options(), Map.of(PythonSource.OURS + "packed", rows.json()));
    WriteBuilder python = super.newWriteBuilder(PythonSource.info(info, packed, PackedBatch.PACKED));
    return new PackedWrite.Builder(python, builder, rows);
  }

  private void refuse(CaseInsensitiveStringMap given, Set<String> names) {
    given.forEach(
        (name, value) -> {
          if (PythonSource.anyOf(name, names) && !value.equals(options.get(name)) && !chosenBySpark(name)) {
            throw new UnsupportedOperationException(
                "The option '" + name + "' would have no effect on a table that is loaded: name columns in SELECT, a"
                    + " version or tag in VERSION AS OF, a time in TIMESTAMP AS OF, and read a branch with"
                    + " spark.read.format(\"lance\").option(\"branch\", name).load(path)");
          }
        });
  }

  /** Whether Spark obeys an option itself, when it loads a table. */
  boolean chosenBySpark(String option) {
    return false;
  }

  final CaseInsensitiveStringMap withOptions(CaseInsensitiveStringMap given) {
    return PythonSource.with(options, given.asCaseSensitiveMap());
  }

  /** Facts of the previous version do not apply to scans after a change: they read the latest one. */
  final void changed() {
    facts = new TableFacts(-1, -1, facts.bytes(), facts.exact(), facts.blobs());
  }

  final TableFacts facts() {
    return facts;
  }

  private record RowNumber(String name) implements MetadataColumn {
    @Override
    public DataType dataType() {
      return DataTypes.LongType;
    }

    @Override
    public boolean isNullable() {
      return false;
    }
  }
}
