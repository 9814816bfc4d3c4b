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
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The datasets below a directory as tables: {@code spark.sql.catalog.lance = lancesql.spark.LanceCatalog}
 * and {@code spark.sql.catalog.lance.path = /data}. Folders are namespaces, {@code NAME.lance} is the
 * table NAME. Instead of a directory, {@link CatalogPlace} may name a service that knows the tables. What a
 * statement does to a table, Python does.
 */
public final class LanceCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  private static final String PROCEDURES = "system";

  private String name;
  private CatalogCalls calls;

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
    calls = new CatalogCalls(CatalogPlace.options(catalogName, options));
  }

  @Override
  public String name() {
    return name;
  }

  /** Everything, so that {@link NewTable} refuses what Lance lacks, in one sentence with the remedy. */
  @Override
  public Set<TableCatalogCapability> capabilities() {
    return EnumSet.allOf(TableCatalogCapability.class);
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    requireNamespace(namespace);
    List<Identifier> tables = new ArrayList<>();
    calls.ask("tables", namespace).path("names").forEach(t -> tables.add(Identifier.of(namespace, t.asText())));
    return tables.toArray(Identifier[]::new);
  }

  @Override
  public Table loadTable(Identifier table) throws NoSuchTableException {
    return load(table, JsonNodeFactory.instance.objectNode());
  }

  @Override
  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    return load(table, JsonNodeFactory.instance.objectNode().put("version", version));
  }

  @Override
  public Table loadTable(Identifier table, long microseconds) throws NoSuchTableException {
    Instant moment = Instant.EPOCH.plus(microseconds, ChronoUnit.MICROS);
    return load(table, JsonNodeFactory.instance.objectNode().put("as_of", moment.toString()));
  }

  private Table load(Identifier table, ObjectNode which) throws NoSuchTableException {
    ArrayNode current = which.putArray("current");
    Stream.of(currentNamespace()).forEach(current::add);
    StructType schema = calls.load(table, which);
    if (schema == null) {
      throw new NoSuchTableException(table);
    }
    JsonNode answer = CatalogCalls.answer(schema);
    Map<String, String> options = calls.options(answer.path("options"));
    Map<String, String> properties = CatalogCalls.texts(answer.path("properties"));
    return new LanceCatalogTable(table.toString(), schema, options, properties, calls);
  }

  /** The namespace of USE, which Spark adds to the name of a table, but not to that of a metadata table. */
  private String[] currentNamespace() {
    Catalogs catalogs = new Catalogs(SparkSession.active());
    return catalogs.current() == this ? catalogs.currentNamespace() : new String[0];
  }

  /** The rows of a table that a search finds; see {@link SearchFunctions}. */
  Table search(Identifier table, ObjectNode search) {
    StructType answer = calls.load(table, JsonNodeFactory.instance.objectNode().set("search", search));
    if (answer == null) {
      throw new IllegalArgumentException("The table " + table + " does not exist in the catalog " + name);
    }
    Map<String, String> options = calls.options(CatalogCalls.answer(answer).path("options"));
    return new SearchFunctions.Found(answer, new CaseInsensitiveStringMap(options));
  }

  @Override
  public boolean tableExists(Identifier table) {
    return calls.load(table, JsonNodeFactory.instance.objectNode()) != null;
  }

  @Override
  @SuppressWarnings("deprecation") // its replacement is missing in Spark 4.0
  public Table createTable(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    NewTable created = new NewTable(table, columns, partitions, properties, NewTable.Kind.CREATE);
    requireNamespace(table.namespace());
    created.requireAbsent(calls.ask(created.command("create")));
    try {
      return loadTable(table);
    } catch (NoSuchTableException error) {
      throw new IllegalStateException("The table that was just created is gone", error);
    }
  }

  @Override
  public Table createTable(Identifier table, TableInfo created)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    NewTable.refuseConstraints(created);
    return StagingTableCatalog.super.createTable(table, created);
  }

  @Override
  public StagedTable stageReplace(Identifier table, TableInfo created)
      throws NoSuchTableException, NoSuchNamespaceException {
    NewTable.refuseConstraints(created);
    return StagingTableCatalog.super.stageReplace(table, created);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier table, TableInfo created) throws NoSuchNamespaceException {
    NewTable.refuseConstraints(created);
    return StagingTableCatalog.super.stageCreateOrReplace(table, created);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StagedTable stageCreate(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    NewTable created = new NewTable(table, columns, partitions, properties, NewTable.Kind.CREATE);
    requireNamespace(table.namespace());
    return new StagedLanceTable(created, created.requireAbsent(calls.ask(created.check())), calls);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StagedTable stageReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchTableException, NoSuchNamespaceException {
    NewTable replaced = new NewTable(table, columns, partitions, properties, NewTable.Kind.REPLACE);
    JsonNode answer = calls.ask(replaced.check());
    if (answer.path("missing").asBoolean()) {
      throw new NoSuchTableException(table);
    }
    return new StagedLanceTable(replaced, answer, calls);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StagedTable stageCreateOrReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    NewTable replaced = new NewTable(table, columns, partitions, properties, NewTable.Kind.CREATE_OR_REPLACE);
    requireNamespace(table.namespace());
    return new StagedLanceTable(replaced, calls.ask(replaced.check()), calls);
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) throws NoSuchTableException {
    ObjectNode command = CatalogCalls.command("alter", table);
    ArrayNode list = command.putArray("changes");
    TableChanges.refuseNewColumns(changes);
    for (TableChange change : changes) {
      list.add(TableChanges.json(change));
    }
    if (calls.ask(command).path("missing").asBoolean()) {
      throw new NoSuchTableException(table);
    }
    return loadTable(table);
  }

  @Override
  public boolean dropTable(Identifier table) {
    return !calls.ask(CatalogCalls.command("drop", table)).path("missing").asBoolean();
  }

  /** Lance tables have no trash: every DROP TABLE removes the files. */
  @Override
  public boolean purgeTable(Identifier table) {
    return dropTable(table);
  }

  @Override
  public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    ObjectNode command = CatalogCalls.command("rename", from);
    command.set("to", CatalogCalls.command("", to));
    JsonNode answer = calls.ask(command);
    if (answer.path("missing").asBoolean()) {
      throw new NoSuchTableException(from);
    }
    if (answer.path("exists").asBoolean()) {
      throw new TableAlreadyExistsException(to);
    }
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier which) {
    boolean ours = which.namespace().length == 1 && which.namespace()[0].equalsIgnoreCase(PROCEDURES);
    UnboundProcedure found = ours ? LanceProcedure.find(which.name().toLowerCase(Locale.ROOT), name, calls) : null;
    if (found == null && !ours) { // Spark searches for names without a namespace in several places
      throw new UnsupportedOperationException("There is no procedure " + which);
    }
    return found == null ? LanceProcedure.unknown(which.name(), name) : found;
  }

  // Spark 4.0 does not check.
  @SuppressWarnings("override")
  public Identifier[] listProcedures(String[] namespace) {
    boolean ours = namespace.length == 0 || namespace.length == 1 && namespace[0].equalsIgnoreCase(PROCEDURES);
    Stream<String> names = ours ? LanceProcedure.names().stream() : Stream.empty();
    return names.map(procedure -> Identifier.of(new String[] {PROCEDURES}, procedure)).toArray(Identifier[]::new);
  }

  @Override
  public String[][] listNamespaces() {
    return children(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    requireNamespace(namespace);
    return children(namespace);
  }

  private String[][] children(String[] namespace) {
    List<String[]> found = new ArrayList<>();
    for (JsonNode child : calls.ask("namespaces", namespace).path("names")) {
      String[] path = java.util.Arrays.copyOf(namespace, namespace.length + 1);
      path[namespace.length] = child.asText();
      found.add(path);
    }
    return found.toArray(String[][]::new);
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return !calls.ask("namespaces", namespace).path("missing").asBoolean();
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    requireNamespace(namespace);
    return Map.of();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata)
      throws NamespaceAlreadyExistsException {
    if (calls.ask("create_namespace", namespace).path("exists").asBoolean()) {
      throw new NamespaceAlreadyExistsException(namespace);
    }
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new UnsupportedOperationException("Namespaces of Lance tables are folders and have no properties");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    requireNamespace(namespace);
    if (cascade) {
      for (Identifier table : listTables(namespace)) {
        dropTable(table);
      }
      for (String[] child : children(namespace)) {
        dropNamespace(child, true);
      }
    }
    if (calls.ask("drop_namespace", namespace).path("filled").asBoolean()) {
      throw new NonEmptyNamespaceException(namespace);
    }
    return true;
  }

  private void requireNamespace(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length > 0 && !namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
  }
}
