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
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * A write by Python whose rows go over packed, in pieces of one binary value each. Spark's own hand-over makes
 * Arrow batches value by value, and objects of every decimal.
 */
record PackedWrite(Write python, Write unpacked, StructType schema) implements Write {
  /** Builds both kinds of writes; Spark uses one of them. */
  record Builder(WriteBuilder python, WriteBuilder unpacked, StructType schema) implements SupportsTruncate {
    @Override
    public WriteBuilder truncate() {
      ((SupportsTruncate) python).truncate();
      ((SupportsTruncate) unpacked).truncate();
      return this;
    }

    @Override
    public Write build() {
      return new PackedWrite(python.build(), unpacked.build(), schema);
    }
  }

  @Override
  public BatchWrite toBatch() {
    return new Job(python.toBatch(), schema);
  }

  @Override
  public StreamingWrite toStreaming() {
    return PythonErrors.plainFrom(unpacked.toStreaming());
  }

  @Override
  public String description() {
    return unpacked.description();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return unpacked.supportedCustomMetrics();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return unpacked.reportDriverMetrics();
  }

  @Override
  public String toString() {
    return unpacked.toString();
  }

  private record Job(BatchWrite python, StructType schema) implements BatchWrite {
    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      DataWriterFactory made = PythonErrors.plainFrom(PythonErrors.plain(() -> python.createBatchWriterFactory(info)));
      return schema == null ? made : new Factory(made, schema);
    }

    @Override
    public boolean useCommitCoordinator() {
      return python.useCommitCoordinator();
    }

    @Override
    public void onDataWriterCommit(WriterCommitMessage message) {
      python.onDataWriterCommit(message);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      PythonErrors.plain(
          () -> {
            python.commit(messages);
            return null;
          });
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      python.abort(messages);
    }

    @Override
    public String toString() {
      return python.toString();
    }
  }

  private record Factory(DataWriterFactory python, StructType schema) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new Writer(python.createWriter(partition, task), schema);
    }
  }

  private record Writer(DataWriter<InternalRow> python, StructType schema) implements DataWriter<InternalRow> {
    @Override
    public void writeAll(Iterator<InternalRow> rows) throws IOException {
      python.writeAll(new Pieces(rows, schema));
    }

    @Override
    public void write(InternalRow row) throws IOException {
      writeAll(List.of(row).iterator());
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return python.commit();
    }

    @Override
    public void abort() throws IOException {
      python.abort();
    }

    @Override
    public void close() throws IOException {
      python.close();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return python.currentMetricsValues();
    }
  }

  /** The packed rows, cut so that as many pieces as Spark puts into one Arrow batch are some megabytes. */
  private static final class Pieces implements Iterator<InternalRow> {
    private static final int BATCH_BYTES = 8 << 20;

    private final Iterator<InternalRow> rows;
    private final UnsafeProjection projection;
    private final PackedRows packed;
    private final int pieceBytes;
    private byte[] taken = new byte[0];
    private int given;

    Pieces(Iterator<InternalRow> rows, StructType schema) {
      this.rows = rows;
      this.projection = UnsafeProjection.create(schema);
      int pieces = SQLConf.get().arrowMaxRecordsPerBatch();
      this.packed = new PackedRows(schema, pieces);
      this.pieceBytes = pieces <= 0 ? BATCH_BYTES : Math.max(BATCH_BYTES / pieces, 256) & -8;
    }

    @Override
    public boolean hasNext() {
      return given < taken.length || rows.hasNext();
    }

    @Override
    public InternalRow next() {
      if (given == taken.length) {
        if (!rows.hasNext()) {
          throw new NoSuchElementException();
        }
        while (rows.hasNext() && !packed.isFull()) {
          InternalRow row = rows.next();
          packed.add(row instanceof UnsafeRow unsafe ? unsafe : projection.apply(row));
        }
        taken = packed.take();
        given = 0;
      }
      int end = Math.min(taken.length, given + pieceBytes);
      byte[] piece = Arrays.copyOfRange(taken, given, end);
      given = end;
      return new GenericInternalRow(new Object[] {piece});
    }
  }
}
