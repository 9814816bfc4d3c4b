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
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table that a statement creates or replaces. Its rows are written as one version with its columns, so
 * that a statement that fails changes nothing.
 */
final class StagedLanceTable extends LanceTable implements StagedTable {
  private final NewTable declared;
  private final CatalogCalls calls;
  private boolean written;

  StagedLanceTable(NewTable declared, JsonNode place, CatalogCalls calls) {
    super(declared.columns, TableFacts.NONE, options(declared, place, calls));
    this.declared = declared;
    this.calls = calls;
  }

  private static CaseInsensitiveStringMap options(NewTable declared, JsonNode place, CatalogCalls calls) {
    Map<String, String> options = new HashMap<>(calls.options(place.path("options")));
    options.put(PythonSource.OURS + "declared", declared.ofQuery().toString());
    if (!declared.replaces()) {
      options.put("create", "true");
    }
    return new CaseInsensitiveStringMap(options);
  }

  @Override
  public String name() {
    return declared.table.toString();
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    written = true;
    WriteBuilder builder = super.newWriteBuilder(info);
    return declared.replaces() ? ((SupportsTruncate) builder).truncate() : builder;
  }

  @Override
  public void commitStagedChanges() {
    calls.ask(declared.command(written ? "configure" : "create"));
  }

  @Override
  public void abortStagedChanges() {
    // The write removed its files; nothing else exists.
  }
}
