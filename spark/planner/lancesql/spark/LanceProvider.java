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

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code format("lance")}: Python reads and writes, this class and its neighbours plan. */
public final class LanceProvider implements TableProvider, DataSourceRegister {
  private StructType inferred;

  @Override
  public String shortName() {
    return "lance";
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    inferred = PythonSource.create().inferSchema(options);
    return TableFacts.without(inferred);
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true; // a schema given by the user selects columns
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    boolean given = inferred == null || !TableFacts.without(inferred).equals(schema);
    return new LanceTable(schema, given ? TableFacts.NONE : TableFacts.of(inferred));
  }
}
