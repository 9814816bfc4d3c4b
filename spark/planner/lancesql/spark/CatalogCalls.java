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

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Runs metadata commands in Python. A command is the option {@code catalog_command} of the Python
 * data source; the answer comes as metadata of the schema that it infers.
 */
final class CatalogCalls {
  private final CaseInsensitiveStringMap options;

  CatalogCalls(CaseInsensitiveStringMap options) {
    this.options = options;
  }

  static ObjectNode command(String what, Identifier table) {
    ObjectNode command = command(what, table.namespace());
    return command.put("table", table.name());
  }

  private static ObjectNode command(String what, String[] namespace) {
    ObjectNode command = command(what);
    ArrayNode parts = command.putArray("namespace");
    for (String part : namespace) {
      parts.add(part);
    }
    return command;
  }

  static ObjectNode command(String what) {
    return JsonNodeFactory.instance.objectNode().put("do", what);
  }

  JsonNode ask(String what, String[] namespace) {
    return ask(command(what, namespace));
  }

  JsonNode ask(ObjectNode command) {
    return answer(schema(command));
  }

  /** The schema of a table with its facts; null if the table does not exist. */
  StructType load(Identifier table, ObjectNode which) {
    ObjectNode command = command("load", table);
    command.setAll(which);
    StructType schema = schema(command);
    return answer(schema).path("missing").asBoolean() ? null : schema;
  }

  private StructType schema(ObjectNode command) {
    return PythonSource.schema(PythonSource.with(options, Map.of(PythonSource.OURS + "catalog_command", command.toString())));
  }

  static JsonNode answer(StructType schema) {
    try {
      return new ObjectMapper().readTree(schema.apply(0).metadata().getString(TableFacts.KEY));
    } catch (JsonProcessingException error) {
      throw new IllegalStateException("The Python data source of lance-sql sent an answer that is not JSON", error);
    }
  }

  /** The options of a table: those of the catalog, overridden by others. */
  Map<String, String> options(JsonNode more) {
    return PythonSource.with(options, texts(more)).asCaseSensitiveMap();
  }

  static Map<String, String> texts(JsonNode object) {
    Map<String, String> texts = new HashMap<>();
    object.properties().forEach(entry -> texts.put(entry.getKey(), entry.getValue().asText()));
    return texts;
  }
}
