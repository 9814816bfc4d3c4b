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
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;

/**
 * Reads by Python whose rows come many at a time, packed as one binary value, and are read as columns in place.
 * Spark's own hand-over makes rows of Arrow batches twice, and an object of every decimal.
 *
 * @param scan what is read: equal scans are one, whose results Spark uses again
 */
record PackedBatch(Object scan, Batch python, StructType schema) implements Batch {
  /** The schema of the rows from Python. */
  static final StructType PACKED = new StructType().add("packed", DataTypes.BinaryType, false);

  @Override
  public boolean equals(Object other) {
    return other instanceof PackedBatch batch && scan.equals(batch.scan);
  }

  @Override
  public int hashCode() {
    return scan.hashCode();
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return python.planInputPartitions();
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Factory(python.createReaderFactory(), schema);
  }

  private record Factory(PartitionReaderFactory python, StructType schema) implements PartitionReaderFactory {
    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new Reader(python.createReader(partition), schema);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("Packed rows are read as columns");
    }
  }

  private record Reader(PartitionReader<InternalRow> python, StructType schema)
      implements PartitionReader<ColumnarBatch> {
    @Override
    public boolean next() throws IOException {
      return python.next();
    }

    @Override
    public ColumnarBatch get() {
      byte[] packed = python.get().getBinary(0);
      int rows = Math.toIntExact(Platform.getLong(packed, Platform.BYTE_ARRAY_OFFSET));
      ColumnVector[] columns = new ColumnVector[schema.length()];
      for (int i = 0; i < columns.length; i++) {
        long places = Platform.BYTE_ARRAY_OFFSET + 8L + (long) PackedColumn.PLACES_BYTES * i;
        columns[i] = new PackedColumn(schema.apply(i).dataType(), packed, rows, places);
      }
      return new ColumnarBatch(columns, rows);
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return python.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      python.close();
    }
  }
}
