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

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * {@code format("lance")}: Python reads and writes, this class and its neighbours plan.
 *
 * <p>Spark saves only to sources of its first interface in every mode. So {@code save} comes here by {@link
 * CreatableRelationProvider}, and {@link Saving} continues by the second interface.
 */
public final class LanceProvider implements TableProvider, DataSourceRegister, CreatableRelationProvider {
  private static final Set<String> OF_SPARK =
      Set.of(
          TableCatalog.PROP_COMMENT,
          TableCatalog.PROP_EXTERNAL,
          TableCatalog.PROP_IS_MANAGED_LOCATION,
          TableCatalog.PROP_LOCATION,
          TableCatalog.PROP_OWNER,
          TableCatalog.PROP_PROVIDER);

  private StructType inferred;

  @Override
  public String shortName() {
    return "lance";
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    inferred = PythonSource.schema(withoutProperties(options));
    return TableFacts.without(inferred);
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true; // a schema given by the user selects columns
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    Saving.refusePartitions(partitioning.length);
    CaseInsensitiveStringMap options = withoutProperties(new CaseInsensitiveStringMap(properties));
    if (inferred == null || !TableFacts.without(inferred).equals(schema)) {
      return new SavedTable(schema, options);
    }
    return new LanceTable(schema, TableFacts.of(inferred), options);
  }

  /** Options without what Spark's own catalog adds to them: {@code owner}, {@code provider} and so on. */
  private static CaseInsensitiveStringMap withoutProperties(CaseInsensitiveStringMap options) {
    Map<String, String> kept = new HashMap<>(options.asCaseSensitiveMap());
    kept.keySet().removeIf(OF_SPARK::contains);
    return new CaseInsensitiveStringMap(kept);
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters,
      Dataset<Row> rows) {
    Saving.save(rows, mode, CollectionConverters.asJava(parameters));
    return new BaseRelation() {
      @Override
      public SQLContext sqlContext() {
        return context;
      }

      @Override
      public StructType schema() {
        return rows.schema();
      }
    };
  }

  @Override
  public boolean supportsDataType(DataType type) {
    return true; // Python refuses what cannot be stored, and names the column
  }
}
