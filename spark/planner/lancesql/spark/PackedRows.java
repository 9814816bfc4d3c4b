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

import java.util.Arrays;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Rows on their way to Python, packed as packed.py describes; {@link PackedColumn} reads the same form. */
final class PackedRows {
  private static final int MAX_ROWS = 16_384;
  private static final int MAX_BYTES = 2 << 20;

  private final Column[] columns;
  private final int maxRows;
  private int rows;

  /** A block holds no more rows than a batch of Spark may, where that has a limit (above 0). */
  PackedRows(StructType schema, int batchRows) {
    maxRows = batchRows <= 0 ? MAX_ROWS : Math.min(batchRows, MAX_ROWS);
    columns = Stream.of(schema.fields()).map(field -> column(field.dataType())).toArray(Column[]::new);
  }

  boolean isEmpty() {
    return rows == 0;
  }

  boolean isFull() {
    if (rows >= maxRows) {
      return true;
    }
    long bytes = 0;
    for (Column column : columns) {
      bytes += column.values.length + column.bytes.length;
    }
    return bytes >= MAX_BYTES;
  }

  void add(UnsafeRow row) {
    for (int i = 0; i < columns.length; i++) {
      if (row.isNullAt(i)) {
        columns[i].addNull(rows);
      } else {
        columns[i].add(row, i);
      }
    }
    rows++;
  }

  /** Returns the packed rows, preceded by their size, and clears them. */
  byte[] take() {
    Output packed = new Output();
    packed.extend(16 + PackedColumn.PLACES_BYTES * columns.length);
    packed.putLong(8, rows);
    int places = 16;
    for (Column column : columns) {
      column.finish();
      packed.putLong(places, column.validity.length == 0 ? 0 : packed.place(column.validity));
      packed.putLong(places + 8, packed.place(column.values));
      packed.putLong(places + 16, packed.place(column.bytes));
      places += PackedColumn.PLACES_BYTES;
    }
    packed.putLong(0, packed.length - 8L);
    rows = 0;
    for (Column column : columns) {
      column.clear();
    }
    return Arrays.copyOf(packed.data, packed.length);
  }

  private static Column column(DataType type) {
    if (type instanceof DecimalType decimal) {
      return decimal.precision() <= Decimal.MAX_LONG_DIGITS()
          ? new Fixed(8)
          : new LargeDecimals(decimal);
    }
    if (type.equals(DataTypes.BooleanType) || type.equals(DataTypes.ByteType)) {
      return new Fixed(1);
    }
    if (type.equals(DataTypes.ShortType)) {
      return new Fixed(2);
    }
    if (type.equals(DataTypes.IntegerType)
        || type.equals(DataTypes.FloatType)
        || type.equals(DataTypes.DateType)) {
      return new Fixed(4);
    }
    if (type.equals(DataTypes.StringType) || type.equals(DataTypes.BinaryType)) {
      return new Texts();
    }
    if (type.equals(DataTypes.LongType)
        || type.equals(DataTypes.DoubleType)
        || type.equals(DataTypes.TimestampType)
        || type.equals(DataTypes.TimestampNTZType)
        || type instanceof DayTimeIntervalType) {
      return new Fixed(8);
    }
    throw new UnsupportedOperationException("Columns of " + type.simpleString() + " are not packed");
  }

  /** A growable byte buffer. */
  private static final class Output {
    private byte[] data = new byte[1024];
    private int length;

    /** Appends this many zero bytes and returns their offset. */
    int extend(int bytes) {
      int start = length;
      length = Math.addExact(length, bytes);
      if (length > data.length) {
        data = Arrays.copyOf(data, (int) Math.min(Integer.MAX_VALUE - 15L, Math.max(length, 2L * data.length)));
      }
      return start;
    }

    void putLong(int place, long value) {
      Platform.putLong(data, Platform.BYTE_ARRAY_OFFSET + place, value);
    }

    void copy(Object base, long offset, int bytes) {
      int start = extend(bytes);
      Platform.copyMemory(base, offset, data, Platform.BYTE_ARRAY_OFFSET + (long) start, bytes);
    }

    /** Append other bytes, aligned; where they begin, counted from after the length in front of all. */
    long place(Output other) {
      int start = extend(Math.addExact(other.length, -other.length & 7));
      System.arraycopy(other.data, 0, data, start, other.length);
      return start - 8L;
    }

    void clear() {
      Arrays.fill(data, 0, length, (byte) 0);
      length = 0;
    }
  }

  private abstract static class Column {
    final Output validity = new Output();
    final Output values = new Output();
    final Output bytes = new Output();

    abstract void add(UnsafeRow row, int i);

    abstract void addEmpty();

    final void addNull(int place) {
      if (validity.length == 0) {
        validity.extend(MAX_ROWS / 8);
        Arrays.fill(validity.data, 0, validity.length, (byte) 0xff);
      }
      validity.data[place >> 3] &= (byte) ~(1 << (place & 7));
      addEmpty();
    }

    void finish() {}

    void clear() {
      validity.clear();
      values.clear();
      bytes.clear();
    }

    final long room(int width) {
      return Platform.BYTE_ARRAY_OFFSET + (long) values.extend(width);
    }
  }

  /** Values as they are in rows: small decimals are numbers of 8 bytes there too. */
  private static final class Fixed extends Column {
    private final int width;

    Fixed(int width) {
      this.width = width;
    }

    @Override
    void add(UnsafeRow row, int i) {
      long at = room(width);
      switch (width) {
        case 1 -> Platform.putByte(values.data, at, row.getByte(i));
        case 2 -> Platform.putShort(values.data, at, row.getShort(i));
        case 4 -> Platform.putInt(values.data, at, row.getInt(i));
        default -> Platform.putLong(values.data, at, row.getLong(i));
      }
    }

    @Override
    void addEmpty() {
      room(width);
    }
  }

  /** Decimals of 16 bytes. */
  private static final class LargeDecimals extends Column {
    private final DecimalType type;

    LargeDecimals(DecimalType type) {
      this.type = type;
    }

    @Override
    void add(UnsafeRow row, int i) {
      Decimal decimal = row.getDecimal(i, type.precision(), type.scale());
      byte[] bigEndian = decimal.toJavaBigDecimal().setScale(type.scale()).unscaledValue().toByteArray();
      long at = room(16);
      byte sign = (byte) (bigEndian[0] < 0 ? -1 : 0);
      for (int digit = 0; digit < 16; digit++) {
        byte value = digit < bigEndian.length ? bigEndian[bigEndian.length - 1 - digit] : sign;
        Platform.putByte(values.data, at + digit, value);
      }
    }

    @Override
    void addEmpty() {
      room(16);
    }
  }

  /** Strings and binaries: the start of each, and the end of the last one. */
  private static final class Texts extends Column {
    @Override
    void add(UnsafeRow row, int i) {
      addEmpty();
      long place = row.getLong(i); // offset of the value in the row, and its size
      bytes.copy(row.getBaseObject(), row.getBaseOffset() + (place >>> 32), (int) place);
    }

    @Override
    void addEmpty() {
      long at = room(4);
      Platform.putInt(values.data, at, bytes.length);
    }

    @Override
    void finish() {
      addEmpty();
    }
  }
}
