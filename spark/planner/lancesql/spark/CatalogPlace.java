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
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The locations of the tables of a catalog: in a directory, or as a namespace service returns them. */
final class CatalogPlace {
  /** Catalog options that apply to its tables; the others are properties of the service. */
  private static final Set<String> OF_TABLES = Set.of("storage_options", "storageoptions", "allow_external", "allowexternal");

  private CatalogPlace() {}

  /** The settings of the catalog, as options of the Python data source. */
  static CaseInsensitiveStringMap options(String catalog, CaseInsensitiveStringMap given) {
    String impl = given.get("impl");
    String prefix = "spark.sql.catalog." + catalog;
    if (impl == null) {
      if (!given.containsKey("path")) {
        throw new IllegalArgumentException("The catalog has no directory: set " + prefix + ".path");
      }
      return given;
    }
    Map<String, String> kept = new HashMap<>();
    ObjectNode service = JsonNodeFactory.instance.objectNode();
    given
        .asCaseSensitiveMap()
        .forEach(
            (name, value) -> {
              if (OF_TABLES.contains(name.toLowerCase(java.util.Locale.ROOT))) {
                kept.put(name, value);
              } else {
                service.put(name, value);
              }
            });
    if (impl.equals("dir")) {
      String root = given.containsKey("root") ? given.get("root") : given.get("path");
      if (root == null) {
        throw new IllegalArgumentException("The catalog has no directory: set " + prefix + ".root");
      }
      kept.put("path", root);
      return new CaseInsensitiveStringMap(kept);
    }
    kept.put("path", given.getOrDefault("uri", given.getOrDefault("endpoint", impl)));
    kept.put("namespace", service.toString());
    return new CaseInsensitiveStringMap(kept);
  }
}
