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

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's own wrapper of the data source in Python, under the name that Python registered it with.
 *
 * <p>A wrapper remembers the first reader that it makes, so every scan gets its own wrapper.
 */
final class PythonSource {
  /** The name of the Python class; {@code lance} itself is {@link LanceProvider}. */
  static final String NAME = "lance_python";
  /** Before the names of options that only the planner sets, as in options.py: users cannot set them by mistake. */
  static final String OURS = "planner.";

  private PythonSource() {}

  static PythonDataSourceV2 create() {
    PythonDataSourceV2 source = new PythonDataSourceV2();
    source.setShortName(NAME);
    return source;
  }

  /** The schema of a table, or the answer to a command of the catalog. */
  static StructType schema(CaseInsensitiveStringMap options) {
    return PythonErrors.plain(() -> create().inferSchema(options));
  }

  /** A scan by the Python reader, whose constructor has one more parameter since Spark 4.1. */
  static Scan scan(StructType schema, CaseInsensitiveStringMap options) {
    Constructor<?> constructor = PythonScan.class.getConstructors()[0];
    Object[] values = {create(), NAME, schema, options, new Filter[0]};
    try {
      return (Scan) constructor.newInstance(Arrays.copyOf(values, constructor.getParameterCount()));
    } catch (ReflectiveOperationException | IllegalArgumentException error) {
      throw new UnsupportedOperationException(
          "The planner of lance-sql does not know the Python data sources of this Spark version: remove its"
              + " jar from the class path to read without it",
          error);
    }
  }

  /** The write, with other options. */
  static LogicalWriteInfo info(LogicalWriteInfo info, CaseInsensitiveStringMap options) {
    return info(info, options, info.schema());
  }

  /** The write, with other options and other columns. */
  static LogicalWriteInfo info(LogicalWriteInfo info, CaseInsensitiveStringMap options, StructType schema) {
    InvocationHandler handler =
        (proxy, method, arguments) ->
            switch (method.getName()) {
              case "options" -> options;
              case "schema" -> schema;
              default -> method.invoke(info, arguments);
            };
    return (LogicalWriteInfo)
        Proxy.newProxyInstance(
            LogicalWriteInfo.class.getClassLoader(), new Class<?>[] {LogicalWriteInfo.class}, handler);
  }

  /** Options with others changed, or removed where the value is null. */
  static CaseInsensitiveStringMap with(CaseInsensitiveStringMap options, Map<String, String> more) {
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    more.forEach(
        (name, value) -> {
          all.keySet().removeIf(known -> plain(known).equals(plain(name)));
          if (value != null) {
            all.put(name, value);
          }
        });
    return new CaseInsensitiveStringMap(all);
  }

  /** Options with the names of those that the user gave for this read or write, which Python checks. */
  static Map<String, String> given(CaseInsensitiveStringMap options) {
    return Map.of(OURS + "given", options.isEmpty() ? "path" : String.join(",", options.keySet()));
  }

  /** Whether one of these options is given; names are plain. */
  static boolean anyOf(CaseInsensitiveStringMap options, Set<String> names) {
    return options.keySet().stream().anyMatch(name -> anyOf(name, names));
  }

  static boolean anyOf(String name, Set<String> names) {
    return names.contains(plain(name));
  }

  /** Names of options may be written without underscores, in any case. */
  private static String plain(String name) {
    return name.replace("_", "").toLowerCase(Locale.ROOT);
  }
}
