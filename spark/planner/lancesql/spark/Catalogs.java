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

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.stream.Stream;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/**
 * The catalogs of a session. Spark's manager of catalogs became an interface in 4.3: code that is compiled against one
 * form of it does not run with the other, so its methods are looked up.
 */
record Catalogs(SparkSession session) {
  boolean has(String name) {
    return (Boolean) call("isCatalogRegistered", name);
  }

  CatalogPlugin named(String name) {
    return (CatalogPlugin) call("catalog", name);
  }

  CatalogPlugin current() {
    return (CatalogPlugin) call("currentCatalog");
  }

  String[] currentNamespace() {
    return (String[]) call("currentNamespace");
  }

  private Object call(String method, Object... arguments) {
    Object manager = session.sessionState().catalogManager();
    return PythonErrors.plain(
        () -> {
          Class<?>[] kinds = Stream.of(arguments).map(Object::getClass).toArray(Class<?>[]::new);
          Method found = manager.getClass().getMethod(method, kinds);
          try {
            return found.invoke(manager, arguments);
          } catch (InvocationTargetException error) {
            throw error.getCause() instanceof Exception cause ? cause : error;
          }
        });
  }
}
