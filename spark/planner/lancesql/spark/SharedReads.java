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
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Queries of one version of a small table, for which Python plans nothing: it makes one reader for all of them,
 * and each task is told what to read of which share of the rows.
 *
 * <p>Asking Python for a plan takes as long as reading some ten thousand rows. A large table is worth it, since
 * statistics of its files and indices may leave few tasks to do.
 */
final class SharedReads {
  private static final int MAX_TASKS = 4;
  private static final long MAX_BYTES = 128L << 20;
  private static final long ROWS_PER_TASK = 65_536; // as in partitions.py
  /** What a task tests at least, in bytes of decoded values: a task costs more time than reading so many. */
  private static final long TESTED_BYTES_PER_TASK = 8L << 20;
  /** Options that say which rows are read, or how they are divided. */
  private static final Set<String> PLANNED = Set.of("filter", "partitions", "partitionbytes", "part");

  private List<Object> readFor;
  private PartitionReaderFactory readers;

  /**
   * How many tasks read a version; 0 if Python has to plan them.
   *
   * @param tested the width of the columns that are read for each row to be tested; 0 if all rows are returned,
   *     which Spark may process for longer than reading them takes
   */
  static int tasks(TableFacts facts, CaseInsensitiveStringMap options, int parallelism, long tested) {
    boolean known = facts.version() >= 0 && facts.rows() > 0 && facts.bytes() >= 0;
    if (!known || facts.bytes() > MAX_BYTES || PythonSource.anyOf(options, PLANNED)) {
      return 0;
    }
    long enough = facts.rows() / ROWS_PER_TASK;
    if (tested > 0) {
      enough = Math.min(enough, facts.rows() * tested / TESTED_BYTES_PER_TASK);
    }
    long tasks = Math.max(1, Math.min(parallelism, enough));
    return tasks > MAX_TASKS ? 0 : (int) tasks;
  }

  /**
   * A read of packed rows.
   *
   * @param options what is true of all queries
   * @param query what this query pushed down, by the names of options
   */
  Batch batch(CaseInsensitiveStringMap options, StructType required, Map<String, String> query, int tasks) {
    PartitionReaderFactory factory = readers(options, required);
    return new Batch() {
      @Override
      public InputPartition[] planInputPartitions() {
        return IntStream.range(0, tasks)
            .mapToObj(task -> new PythonInputPartition(task, partition(required, query, task, tasks)))
            .toArray(InputPartition[]::new);
      }

      @Override
      public PartitionReaderFactory createReaderFactory() {
        return factory;
      }
    };
  }

  private synchronized PartitionReaderFactory readers(CaseInsensitiveStringMap options, StructType required) {
    // Spark's reader remembers whether its workers collect what they log.
    String logs = SQLConf.get().getConfString("spark.sql.pyspark.worker.logging.enabled", "false");
    List<Object> wanted = List.of(options, logs);
    if (!wanted.equals(readFor)) {
      CaseInsensitiveStringMap packed = PythonSource.with(options, Map.of(PythonSource.OURS + "packed", required.json()));
      readers = PythonSource.scan(PackedBatch.PACKED, packed).toBatch().createReaderFactory();
      readFor = wanted;
    }
    return readers;
  }

  /** A pickled {@code SharePartition} of reader.py, which has one text. */
  private static byte[] partition(StructType required, Map<String, String> query, int share, int shares) {
    ObjectNode told = JsonNodeFactory.instance.objectNode();
    told.put("columns", required.json()).put("share", share).put("shares", shares);
    ObjectNode pushed = told.putObject("query");
    query.forEach(pushed::put);
    byte[] text = told.toString().getBytes(StandardCharsets.UTF_8);
    ByteArrayOutputStream pickle = new ByteArrayOutputStream();
    pickle.writeBytes(new byte[] {(byte) 0x80, 2}); // the protocol
    pickle.writeBytes("clance_sql.spark.reader\nSharePartition\nX".getBytes(StandardCharsets.US_ASCII));
    pickle.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(text.length).array());
    pickle.writeBytes(text);
    pickle.writeBytes(new byte[] {(byte) 0x85, 'R', '.'}); // a tuple of one, with which the class is called
    return pickle.toByteArray();
  }
}
