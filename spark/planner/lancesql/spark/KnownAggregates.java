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

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Rows, minima and maxima of a whole table: {@code count(*)} is in the manifest, and Python knows the others if
 * its zone maps are exact.
 *
 * @param columns the columns of the table
 * @param options those of the scan, with the version
 */
record KnownAggregates(StructType columns, TableFacts facts, CaseInsensitiveStringMap options) {
  /** The row of results; empty if rows have to be read for it. */
  Optional<KnownRows> row(Aggregation aggregation) {
    AggregateFunc[] functions = aggregation.aggregateExpressions();
    boolean whole = facts.rows() >= 0 && aggregation.groupByExpressions().length == 0 && functions.length > 0;
    if (!whole) {
      return Optional.empty();
    }
    Set<String> names = new TreeSet<>();
    for (AggregateFunc function : functions) {
      if (!(function instanceof CountStar)) {
        String name = column(function);
        if (name == null) {
          return Optional.empty();
        }
        names.add(name);
      }
    }
    Map<String, JsonNode> known = ask(names);
    if (known.size() < names.size()) {
      return Optional.empty();
    }
    StructType schema = new StructType();
    Object[] values = new Object[functions.length];
    for (int i = 0; i < functions.length; i++) {
      AggregateFunc function = functions[i];
      if (function instanceof CountStar || function instanceof Count) {
        schema = schema.add(function.toString(), DataTypes.LongType, false);
        JsonNode nulls = function instanceof Count ? known.get(column(function)).path("nulls") : null;
        if (nulls != null && !nulls.isNumber()) {
          return Optional.empty();
        }
        values[i] = facts.rows() - (nulls == null ? 0 : nulls.asLong());
      } else {
        DataType type = columns.apply(column(function)).dataType();
        schema = schema.add(function.toString(), type, true);
        JsonNode bound = known.get(column(function)).path(function instanceof Min ? "min" : "max");
        values[i] = bound.isTextual() ? value(bound.asText(), type) : null;
      }
    }
    String description = "lance version " + facts.version() + ", known without reading rows: "
        + String.join(", ", schema.fieldNames());
    return Optional.of(new KnownRows(schema, new InternalRow[] {new GenericInternalRow(values)}, description));
  }

  /** The column that a function summarizes; null if only its rows tell. */
  private String column(AggregateFunc function) {
    Expression argument;
    if (function instanceof Min min) {
      argument = min.column();
    } else if (function instanceof Max max) {
      argument = max.column();
    } else if (function instanceof Count count && !count.isDistinct()) {
      argument = count.column();
    } else {
      return null;
    }
    if (!(argument instanceof NamedReference reference) || reference.fieldNames().length != 1) {
      return null;
    }
    String name = reference.fieldNames()[0];
    boolean exact = facts.version() >= 0 && facts.exact().contains(name) && columns.getFieldIndex(name).isDefined();
    return exact && isValue(columns.apply(name).dataType()) ? name : null;
  }

  private Map<String, JsonNode> ask(Set<String> names) {
    Map<String, JsonNode> known = new HashMap<>();
    if (!names.isEmpty()) {
      ObjectNode command = CatalogCalls.command("summaries");
      ArrayNode asked = command.putArray("columns");
      names.forEach(asked::add);
      JsonNode answer = new CatalogCalls(options).ask(command);
      answer.properties().forEach(entry -> known.put(entry.getKey(), entry.getValue()));
    }
    return known;
  }

  private static boolean isValue(DataType type) {
    return type.equals(DataTypes.StringType)
        || type instanceof BooleanType
        || type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType
        || type instanceof DateType
        || type instanceof DecimalType;
  }

  /** A value as Spark's rows hold it. */
  private static Object value(String text, DataType type) {
    if (type instanceof BooleanType) {
      return Boolean.valueOf(text);
    }
    if (type instanceof ByteType) {
      return Byte.valueOf(text);
    }
    if (type instanceof ShortType) {
      return Short.valueOf(text);
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(text);
    }
    if (type instanceof LongType) {
      return Long.valueOf(text);
    }
    if (type instanceof DecimalType decimal) {
      return Decimal.apply(new scala.math.BigDecimal(new BigDecimal(text)), decimal.precision(), decimal.scale());
    }
    return UTF8String.fromString(text);
  }
}
