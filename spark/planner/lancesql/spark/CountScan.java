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

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** {@code count(*)}, answered from the manifest: no task runs. */
final class CountScan implements LocalScan {
  private final TableFacts facts;
  private final int functions;

  CountScan(TableFacts facts, int functions) {
    this.facts = facts;
    this.functions = functions;
  }

  @Override
  public StructType readSchema() {
    StructType schema = new StructType();
    for (int i = 0; i < functions; i++) {
      schema = schema.add("count(*)", DataTypes.LongType, false);
    }
    return schema;
  }

  @Override
  public InternalRow[] rows() {
    Object[] values = new Object[functions];
    java.util.Arrays.fill(values, facts.rows());
    return new InternalRow[] {new GenericInternalRow(values)};
  }

  @Override
  public String description() {
    return "lance version " + facts.version() + ", rows counted by the manifest";
  }
}
