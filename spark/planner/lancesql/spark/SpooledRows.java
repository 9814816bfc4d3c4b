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

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** Rows in the order in which they were added: some in memory, many in a file among Spark's local ones. */
final class SpooledRows implements Closeable {
  private static final long MEMORY_BYTES = 16L << 20;

  private final int fields;
  private final List<UnsafeRow> held = new ArrayList<>();
  private long heldBytes;
  private long count;
  private File file;
  private DataOutputStream out;
  private DataInputStream in;

  SpooledRows(int fields) {
    this.fields = fields;
  }

  boolean isEmpty() {
    return count == 0;
  }

  void add(UnsafeRow row) throws IOException {
    count++;
    if (out != null) {
      write(row);
      return;
    }
    held.add(row.copy());
    heldBytes += row.getSizeInBytes();
    if (heldBytes > MEMORY_BYTES) {
      file = SparkEnv.get().blockManager().diskBlockManager().createTempLocalBlock()._2();
      out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file), 1 << 16));
      for (UnsafeRow earlier : held) {
        write(earlier);
      }
      held.clear();
    }
  }

  private void write(UnsafeRow row) throws IOException {
    byte[] bytes = row.getBytes();
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  Iterator<InternalRow> iterator() throws IOException {
    if (out == null) {
      return List.<InternalRow>copyOf(held).iterator();
    }
    out.close();
    in = new DataInputStream(new BufferedInputStream(new FileInputStream(file), 1 << 16));
    return new Iterator<>() {
      private long left = count;

      @Override
      public boolean hasNext() {
        return left > 0;
      }

      @Override
      public InternalRow next() {
        if (left-- <= 0) {
          throw new NoSuchElementException();
        }
        try {
          byte[] bytes = new byte[in.readInt()];
          in.readFully(bytes);
          UnsafeRow row = new UnsafeRow(fields);
          row.pointTo(bytes, bytes.length);
          return row;
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
      }
    };
  }

  @Override
  public void close() throws IOException {
    if (out != null) {
      out.close();
    }
    if (in != null) {
      in.close();
    }
    if (file != null) {
      Files.deleteIfExists(file.toPath());
    }
  }
}
