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
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The locations of the tables of a catalog: in a directory, or as a namespace service returns them. */
final class CatalogPlace {
  /** Catalog options that apply to its tables; the others are properties of the service. */
  private static final Set<String> OF_TABLES = Set.of("storage_options", "storageoptions", "allow_external", "allowexternal");

  /** What {@code impl = dir} names its directory by. */
  private static final Set<String> OF_DIRECTORY = Set.of("impl", "root", "path");

  /** Before the names of single options for the object store, as services of namespaces name them. */
  private static final String STORAGE = "storage.";

  private CatalogPlace() {}

  /** The settings of the catalog, as options of the Python data source, which obeys or refuses each. */
  static CaseInsensitiveStringMap options(String catalog, CaseInsensitiveStringMap given) {
    String impl = given.get("impl");
    boolean service = impl != null && !impl.equals("dir");
    Map<String, String> kept = new HashMap<>();
    ObjectNode properties = JsonNodeFactory.instance.objectNode();
    ObjectNode storage = JsonNodeFactory.instance.objectNode();
    given
        .asCaseSensitiveMap()
        .forEach(
            (name, value) -> {
              String lower = name.toLowerCase(Locale.ROOT);
              if (lower.startsWith(STORAGE)) {
                storage.put(name.substring(STORAGE.length()), value);
              } else if (service && !OF_TABLES.contains(lower)) {
                properties.put(lower.equals("impl") ? lower : name, value);
              } else {
                kept.put(name, value);
              }
            });
    if (!storage.isEmpty()) {
      if (PythonSource.anyOf(given, Set.of("storageoptions"))) {
        throw new IllegalArgumentException(
            "The settings storage_options and storage.NAME of the catalog " + catalog + " cannot be combined: write all"
                + " of them in one form");
      }
      kept.put("storage_options", storage.toString());
    }
    if (service) {
      kept.put("path", given.getOrDefault("uri", given.getOrDefault("endpoint", impl)));
      kept.put(PythonSource.OURS + "namespace", properties.toString());
      return new CaseInsensitiveStringMap(kept);
    }
    String path = impl != null && given.containsKey("root") ? given.get("root") : given.get("path");
    if (path == null) {
      String setting = "spark.sql.catalog." + catalog + (impl == null ? ".path" : ".root");
      throw new IllegalArgumentException("The catalog has no directory: set " + setting);
    }
    kept.keySet().removeIf(name -> impl != null && OF_DIRECTORY.contains(name.toLowerCase(Locale.ROOT)));
    kept.put("path", path);
    return new CaseInsensitiveStringMap(kept);
  }
}
