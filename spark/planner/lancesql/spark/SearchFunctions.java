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
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Tuple3;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The functions of lance-spark that search. VECTOR_SEARCH, SEARCH and HYBRID_SEARCH are tables, for which Python searches:
 * see search_table.py. Those that are conditions are refused: a scan has no place for them.
 */
final class SearchFunctions {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private SearchFunctions() {}

  static void inject(SparkSessionExtensions extensions) {
    for (String name : List.of("vector_search", "search", "hybrid_search")) {
      extensions.injectTableFunction(
          new Tuple3<>(FunctionIdentifier.apply(name), info(name), given -> table(name, CollectionConverters.asJava(given))));
    }
    for (String name : List.of("lance_match", "lance_match_phrase", "lance_multi_match")) {
      extensions.injectFunction(
          new Tuple3<>(
              FunctionIdentifier.apply(name),
              info(name),
              given -> {
                throw new UnsupportedOperationException(
                    name + " cannot be a condition here: SELECT * FROM SEARCH(table => 'lance.db.t', query => 'words',"
                        + " search_columns => array('c'), k => 100) has the rows that match");
              }));
    }
  }

  private static ExpressionInfo info(String name) {
    return new ExpressionInfo(SearchFunctions.class.getName(), name);
  }

  private static LogicalPlan table(String function, List<Expression> given) {
    ObjectNode named = JSON.objectNode();
    ArrayNode positional = JSON.arrayNode();
    for (Expression argument : given) {
      if (argument instanceof NamedArgumentExpression one) {
        named.set(one.key().toLowerCase(Locale.ROOT), value(function, one.value()));
      } else {
        positional.add(value(function, argument));
      }
    }
    JsonNode table = named.has("table") ? named.remove("table") : positional.isEmpty() ? null : positional.remove(0);
    if (table == null || !table.isTextual()) {
      throw refused(function, "needs a table: " + function + "(table => 'lance.db.t', ...)");
    }
    SparkSession session = SparkSession.active();
    ParserInterface parser = session.sessionState().sqlParser();
    List<String> name =
        new ArrayList<>(
            PythonErrors.plain(() -> CollectionConverters.asJava(parser.parseMultipartIdentifier(table.asText()))));
    LanceCatalog catalog = LanceStatements.catalog(session, name);
    if (catalog == null) {
      throw LanceStatements.notOurs(table.asText(), function.toUpperCase(Locale.ROOT));
    }
    String[] namespace = name.subList(0, name.size() - 1).toArray(String[]::new);
    ObjectNode search = JSON.objectNode().put("function", function);
    search.set("positional", positional);
    search.set("named", named);
    return DataSourceV2Relation.create(
        catalog.search(Identifier.of(namespace, name.get(name.size() - 1)), search), Option.empty(), Option.empty());
  }

  private static JsonNode value(String function, Expression given) {
    if (!given.foldable()) {
      throw refused(function, "needs constants as arguments, not " + given.sql());
    }
    return json(function, given.eval(InternalRow.empty()), given.dataType());
  }

  private static JsonNode json(String function, Object value, DataType kind) {
    if (value == null) {
      return JSON.nullNode();
    }
    if (value instanceof ArrayData array && kind instanceof ArrayType of) {
      ArrayNode all = JSON.arrayNode();
      for (int i = 0; i < array.numElements(); i++) {
        all.add(json(function, array.isNullAt(i) ? null : array.get(i, of.elementType()), of.elementType()));
      }
      return all;
    }
    if (value instanceof UTF8String text) {
      return JSON.textNode(text.toString());
    }
    if (value instanceof Boolean flag) {
      return JSON.booleanNode(flag);
    }
    if (value instanceof Decimal || value instanceof Double || value instanceof Float) {
      return JSON.numberNode(Double.parseDouble(value.toString()));
    }
    if (value instanceof Number number) {
      return JSON.numberNode(number.longValue());
    }
    throw refused(function, "takes numbers, texts, true or false, and arrays of them, not " + kind.sql());
  }

  private static UnsupportedOperationException refused(String function, String what) {
    return new UnsupportedOperationException(function.toUpperCase(Locale.ROOT) + " " + what);
  }

  /** What a search finds: its rows have no other columns. */
  static final class Found extends LanceTable {
    Found(StructType answer, CaseInsensitiveStringMap options) {
      super(TableFacts.without(answer), TableFacts.NONE, options);
    }

    @Override
    public MetadataColumn[] metadataColumns() {
      return new MetadataColumn[0];
    }
  }
}
