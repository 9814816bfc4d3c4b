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

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** One column of packed rows, read in place; packed.py writes them and describes the form. */
final class PackedColumn extends ColumnVector {
  static final int PLACES_BYTES = 24;
  private static final Set<DataType> SIMPLE =
      Set.of(
          DataTypes.BooleanType,
          DataTypes.ByteType,
          DataTypes.ShortType,
          DataTypes.IntegerType,
          DataTypes.LongType,
          DataTypes.FloatType,
          DataTypes.DoubleType,
          DataTypes.StringType,
          DataTypes.BinaryType,
          DataTypes.DateType,
          DataTypes.TimestampType,
          DataTypes.TimestampNTZType);

  private final byte[] packed;
  private final int rows;
  private final long validity;
  private final long values;
  private final long bytes;

  /** The column whose offsets are at this position of the packed rows. */
  PackedColumn(DataType type, byte[] packed, int rows, long places) {
    super(type);
    this.packed = packed;
    this.rows = rows;
    long place = Platform.getLong(packed, places);
    validity = place == 0 ? 0 : Platform.BYTE_ARRAY_OFFSET + place;
    values = Platform.BYTE_ARRAY_OFFSET + Platform.getLong(packed, places + 8);
    bytes = Platform.BYTE_ARRAY_OFFSET + Platform.getLong(packed, places + 16);
  }

  static boolean holds(StructType schema) {
    return Stream.of(schema.fields())
        .allMatch(
            field ->
                SIMPLE.contains(field.dataType())
                    || field.dataType() instanceof DecimalType
                    || field.dataType() instanceof DayTimeIntervalType);
  }

  @Override
  public boolean isNullAt(int row) {
    return validity != 0 && (Platform.getByte(packed, validity + (row >> 3)) >> (row & 7) & 1) == 0;
  }

  @Override
  public boolean hasNull() {
    return validity != 0;
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    for (int row = 0; validity != 0 && row < rows; row++) {
      nulls += isNullAt(row) ? 1 : 0;
    }
    return nulls;
  }

  @Override
  public boolean getBoolean(int row) {
    return getByte(row) != 0;
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(packed, values + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(packed, values + 2L * row);
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(packed, values + 4L * row);
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(packed, values + 8L * row);
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(packed, values + 4L * row);
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(packed, values + 8L * row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    if (precision <= Decimal.MAX_LONG_DIGITS()) {
      return Decimal.createUnsafe(getLong(row), precision, scale);
    }
    byte[] bigEndian = new byte[16];
    for (int i = 0; i < 16; i++) {
      bigEndian[15 - i] = Platform.getByte(packed, values + 16L * row + i);
    }
    return Decimal.apply(new BigDecimal(new BigInteger(bigEndian), scale), precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = getInt(row);
    return UTF8String.fromAddress(packed, bytes + start, getInt(row + 1) - start);
  }

  @Override
  public byte[] getBinary(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = getInt(row);
    byte[] value = new byte[getInt(row + 1) - start];
    Platform.copyMemory(packed, bytes + start, value, Platform.BYTE_ARRAY_OFFSET, value.length);
    return value;
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw nested();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw nested();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw nested();
  }

  private static UnsupportedOperationException nested() {
    return new UnsupportedOperationException("Nested columns are not packed");
  }

  @Override
  public void close() {}
}
