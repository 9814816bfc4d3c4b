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
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Facts that Python returns with the schema of a table, in the metadata of the first field, so that
 * planning costs no further call.
 *
 * @param version the current version at that time
 * @param rows its rows without deleted ones, -1 if not known
 * @param bytes the size of its data files, -1 if not known
 * @param exact the columns whose filters Python applies exactly as Spark does
 * @param blobs the columns of blobs
 */
record TableFacts(long version, long rows, long bytes, Set<String> exact, Set<String> blobs) {
  static final TableFacts NONE = new TableFacts(-1, -1, -1, Set.of(), Set.of());
  static final String KEY = "lance_sql";

  static TableFacts of(StructType schema) {
    if (schema.isEmpty() || !schema.apply(0).metadata().contains(KEY)) {
      return NONE;
    }
    try {
      JsonNode facts = new ObjectMapper().readTree(schema.apply(0).metadata().getString(KEY));
      return new TableFacts(
          facts.path("version").asLong(-1),
          facts.path("rows").asLong(-1),
          facts.path("bytes").asLong(-1),
          names(facts.path("exact")),
          names(facts.path("blobs")));
    } catch (JsonProcessingException error) {
      throw new IllegalStateException("The Python data source of lance-sql sent facts that are not JSON", error);
    }
  }

  private static Set<String> names(JsonNode list) {
    Set<String> names = new HashSet<>();
    list.forEach(name -> names.add(name.asText()));
    return names;
  }

  /** The schema as users see it. */
  static StructType without(StructType schema) {
    if (schema.isEmpty()) {
      return schema;
    }
    StructField[] fields = schema.fields().clone();
    StructField first = fields[0];
    Metadata metadata = new MetadataBuilder().withMetadata(first.metadata()).remove(KEY).build();
    fields[0] = new StructField(first.name(), first.dataType(), first.nullable(), metadata);
    return new StructType(fields);
  }
}
