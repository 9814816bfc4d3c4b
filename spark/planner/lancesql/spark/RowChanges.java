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
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * DELETE, UPDATE and MERGE: Spark finds the rows and computes new values, Python deletes rows by their
 * addresses, writes new ones and commits all of it as one version after the one that was read.
 */
final class RowChanges implements SupportsDelta {
  /** The option with the version whose rows are changed. */
  static final String VERSION = PythonSource.OURS + "changed_version";

  private static final String ADDRESS = "_rowaddr";

  private final LanceCatalogTable table;
  private final Command command;
  private final TableFacts facts; // the version that is read, and on which the commit is based

  RowChanges(LanceCatalogTable table, Command command) {
    this.table = table;
    this.command = command;
    this.facts = table.facts();
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(ADDRESS)};
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.newScanBuilder(options, facts);
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    StructType changes = changes(info.schema());
    Map<String, String> version = Map.of(VERSION, Long.toString(facts.version()));
    CaseInsensitiveStringMap options = PythonSource.with(info.options(), version);
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        BatchWrite python = table.changesByPython(PythonSource.info(info, options, changes));
        return new SortedWrite(new ChangesWrite(python, changes), facts.version());
      }
    };
  }

  /** The columns for Python: the operation, the address of the old row, and the new row. */
  private static StructType changes(StructType rows) {
    List<StructField> fields = new ArrayList<>();
    fields.add(DataTypes.createStructField("_operation", DataTypes.IntegerType, false));
    fields.add(DataTypes.createStructField(ADDRESS, DataTypes.LongType, true));
    Stream.of(rows.fields())
        .map(field -> new StructField(field.name(), field.dataType(), true, field.metadata()))
        .forEach(fields::add);
    return new StructType(fields.toArray(StructField[]::new));
  }

  /** Tasks get rows in the order of their addresses, new ones first. */
  private record SortedWrite(ChangesWrite write, long version) implements DeltaWrite, RequiresDistributionAndOrdering {
    @Override
    public DeltaBatchWrite toBatch() {
      return write;
    }

    @Override
    public Distribution requiredDistribution() {
      return Distributions.unspecified();
    }

    @Override
    public SortOrder[] requiredOrdering() {
      return new SortOrder[] {
        Expressions.sort(Expressions.column(ADDRESS), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
      };
    }

    @Override
    public String toString() {
      return "one version after " + version;
    }
  }

  private record ChangesWrite(BatchWrite python, StructType changes) implements DeltaBatchWrite {
    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new Factory(python.createBatchWriterFactory(info), changes);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      python.commit(messages);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      python.abort(messages);
    }
  }

  private record Factory(DataWriterFactory python, StructType changes) implements DeltaWriterFactory {
    @Override
    public DeltaWriter<InternalRow> createWriter(int partition, long task) {
      return new RowChangesWriter(python.createWriter(partition, task), changes);
    }
  }
}
