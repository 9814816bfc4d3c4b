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
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringContains;
import org.apache.spark.sql.sources.StringEndsWith;
import org.apache.spark.sql.sources.StringStartsWith;

/** Spark's filters as JSON for Python: {@code {"kind": "LessThan", "column": ["a"], "value": [...]}}. */
final class PushedFilter {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z_][A-Za-z_0-9]*");

  private PushedFilter() {}

  /** A filter that is true where all of these are true. */
  static String text(List<Filter> filters) {
    ArrayNode all = JSON.arrayNode();
    filters.forEach(filter -> all.add(tree(filter).orElseThrow()));
    return all.toString();
  }

  /** Whether Python keeps exactly the rows that Spark's filter keeps. */
  static boolean isExact(Filter filter, Set<String> exact) {
    for (String reference : filter.references()) {
      String[] parts = parts(reference);
      if (parts.length != 1 || !exact.contains(parts[0])) {
        return false;
      }
    }
    return true;
  }

  /** The names of the top-level columns that filters test. */
  static Set<String> columns(List<Filter> filters) {
    return filters.stream()
        .flatMap(filter -> Stream.of(filter.references()))
        .map(reference -> parts(reference)[0])
        .collect(Collectors.toSet());
  }

  /** The filter for Python; empty if part of it is unsupported. */
  static Optional<ObjectNode> tree(Filter filter) {
    if (filter instanceof And and) {
      return pair("And", and.left(), and.right());
    }
    if (filter instanceof Or or) {
      return pair("Or", or.left(), or.right()).map(PushedFilter::ordered);
    }
    if (filter instanceof Not not) {
      return tree(not.child()).map(child -> JSON.objectNode().put("kind", "Not").set("child", child));
    }
    if (filter instanceof IsNull test) {
      return leaf("IsNull", test.attribute(), JSON.arrayNode());
    }
    if (filter instanceof IsNotNull test) {
      return leaf("IsNotNull", test.attribute(), JSON.arrayNode());
    }
    if (filter instanceof EqualTo test) {
      return leaf("EqualTo", test.attribute(), value(test.value()));
    }
    if (filter instanceof EqualNullSafe test) {
      return leaf("EqualNullSafe", test.attribute(), value(test.value()));
    }
    if (filter instanceof LessThan test) {
      return leaf("LessThan", test.attribute(), value(test.value()));
    }
    if (filter instanceof LessThanOrEqual test) {
      return leaf("LessThanOrEqual", test.attribute(), value(test.value()));
    }
    if (filter instanceof GreaterThan test) {
      return leaf("GreaterThan", test.attribute(), value(test.value()));
    }
    if (filter instanceof GreaterThanOrEqual test) {
      return leaf("GreaterThanOrEqual", test.attribute(), value(test.value()));
    }
    if (filter instanceof StringStartsWith test) {
      return leaf("StringStartsWith", test.attribute(), value(test.value()));
    }
    if (filter instanceof StringEndsWith test) {
      return leaf("StringEndsWith", test.attribute(), value(test.value()));
    }
    if (filter instanceof StringContains test) {
      return leaf("StringContains", test.attribute(), value(test.value()));
    }
    if (filter instanceof In test) {
      ArrayNode values = JSON.arrayNode();
      for (Object item : test.values()) {
        ArrayNode converted = value(item);
        if (converted == null) {
          return Optional.empty();
        }
        values.add(converted);
      }
      return leaf("In", test.attribute(), values);
    }
    return Optional.empty();
  }

  private static Optional<ObjectNode> pair(String kind, Filter left, Filter right) {
    Optional<ObjectNode> first = tree(left);
    Optional<ObjectNode> second = tree(right);
    if (first.isEmpty() || second.isEmpty()) {
      return Optional.empty();
    }
    ObjectNode node = JSON.objectNode().put("kind", kind);
    node.set("left", first.get());
    node.set("right", second.get());
    return Optional.of(node);
  }

  /** Sides in one order whichever way round they were written: scans of equal filters are equal to Spark. */
  private static ObjectNode ordered(ObjectNode pair) {
    JsonNode left = pair.get("left");
    JsonNode right = pair.get("right");
    if (left.toString().compareTo(right.toString()) > 0) {
      pair.set("left", right);
      pair.set("right", left);
    }
    return pair;
  }

  private static Optional<ObjectNode> leaf(String kind, String attribute, ArrayNode value) {
    if (value == null) {
      return Optional.empty();
    }
    ObjectNode node = JSON.objectNode().put("kind", kind);
    ArrayNode column = node.putArray("column");
    for (String part : parts(attribute)) {
      column.add(part);
    }
    node.set("value", value);
    return Optional.of(node);
  }

  /** The type and the text of a value; null if it cannot be written. */
  private static ArrayNode value(Object value) {
    if (value == null) {
      return typed("null", "");
    }
    if (value instanceof Boolean) {
      return typed("boolean", value.toString());
    }
    if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long) {
      return typed("integer", value.toString());
    }
    if (value instanceof Float || value instanceof Double) {
      return typed("float", Double.toString(((Number) value).doubleValue()));
    }
    if (value instanceof BigDecimal decimal) {
      return typed("decimal", decimal.toPlainString());
    }
    if (value instanceof String text) {
      return typed("string", text);
    }
    if (value instanceof byte[] bytes) {
      return typed("binary", Base64.getEncoder().encodeToString(bytes));
    }
    if (value instanceof java.sql.Date date) {
      return typed("date", Long.toString(date.toLocalDate().toEpochDay()));
    }
    if (value instanceof LocalDate date) {
      return typed("date", Long.toString(date.toEpochDay()));
    }
    if (value instanceof Timestamp moment) {
      return typed("timestamp", microseconds(moment.toInstant()));
    }
    if (value instanceof Instant moment) {
      return typed("timestamp", microseconds(moment));
    }
    if (value instanceof LocalDateTime moment) {
      return typed("timestamp_ntz", microseconds(moment.toInstant(ZoneOffset.UTC)));
    }
    return null;
  }

  private static String microseconds(Instant moment) {
    return Long.toString(ChronoUnit.MICROS.between(Instant.EPOCH, moment));
  }

  private static ArrayNode typed(String type, String text) {
    return JSON.arrayNode().add(type).add(text);
  }

  /** Names of nested fields, quoted with backticks if they contain dots. */
  private static String[] parts(String attribute) {
    if (PLAIN.matcher(attribute).matches()) {
      return new String[] {attribute}; // Spark's parser takes long
    }
    try {
      NamedReference reference = org.apache.spark.sql.connector.expressions.Expressions.column(attribute);
      return reference.fieldNames();
    } catch (RuntimeException error) {
      return new String[] {attribute};
    }
  }
}
