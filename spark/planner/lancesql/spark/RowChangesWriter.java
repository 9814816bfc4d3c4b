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

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;

/**
 * The changes of one task. Spark pushes them one by one, and a Python writer pulls: they are kept until the
 * task may commit.
 */
final class RowChangesWriter implements DeltaWriter<InternalRow> {
  // As in row_changes.py.
  private static final int DELETE = 1;
  private static final int UPDATE = 2;
  private static final int INSERT = 3;

  private final DataWriter<InternalRow> python;
  private final UnsafeProjection pack;
  private final InternalRow nothing;
  private final SpooledRows rows;
  private final JoinedRow joined = new JoinedRow();

  RowChangesWriter(DataWriter<InternalRow> python, StructType changes) {
    this.python = python;
    this.pack = UnsafeProjection.create(changes);
    this.nothing = new GenericInternalRow(changes.length() - 2);
    this.rows = new SpooledRows(changes.length());
  }

  @Override
  public void delete(InternalRow metadata, InternalRow id) throws IOException {
    add(DELETE, id.getLong(0), nothing);
  }

  @Override
  public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
    add(UPDATE, id.getLong(0), row);
  }

  @Override
  public void insert(InternalRow row) throws IOException {
    add(INSERT, null, row);
  }

  private void add(int operation, Long address, InternalRow row) throws IOException {
    InternalRow change = new GenericInternalRow(new Object[] {operation, address});
    rows.add(pack.apply(joined.apply(change, row)));
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    if (rows.isEmpty()) {
      return null; // Python takes it as nothing written
    }
    python.writeAll(rows.iterator());
    return python.commit();
  }

  @Override
  public void abort() throws IOException {
    python.abort();
  }

  @Override
  public void close() throws IOException {
    try {
      rows.close();
    } finally {
      python.close();
    }
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return python.currentMetricsValues();
  }
}
