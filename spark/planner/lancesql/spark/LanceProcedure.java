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
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** {@code CALL catalog.system.NAME(...)}: checks the arguments, and runs it in Python; see procedures.py. */
record LanceProcedure(String name, ProcedureParameter[] parameters, String catalog, CatalogCalls calls)
    implements UnboundProcedure, BoundProcedure {
  private static final ProcedureParameter TABLE = required("table", "The table, such as 'db.t'");
  private static final Map<String, ProcedureParameter[]> KNOWN = new LinkedHashMap<>();

  static {
    ProcedureParameter options =
        optional("options", DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType), "NULL");
    know("optimize", optional("target_rows", DataTypes.LongType, "NULL"), options);
    know(
        "vacuum",
        optional("retain_hours", DataTypes.LongType, "168"),
        optional("dry_run", DataTypes.BooleanType, "false"),
        optional("delete_unverified", DataTypes.BooleanType, "false"),
        options);
    know(
        "create_index",
        required("column", "The column, or the field of a struct as 'a.b'"),
        optional("kind", DataTypes.StringType, "'btree'"),
        optional("name", DataTypes.StringType, "NULL"),
        optional("replace", DataTypes.BooleanType, "false"),
        options);
    ProcedureParameter index = required("name", "The index");
    know("drop_index", index);
    know("optimize_index", index, options);
    know("show_indexes");
    ProcedureParameter version = optional("version", DataTypes.LongType, "NULL");
    ProcedureParameter branch = optional("branch", DataTypes.StringType, "NULL");
    ProcedureParameter tag = optional("of_tag", DataTypes.StringType, "NULL");
    ProcedureParameter ifExists = optional("if_exists", DataTypes.BooleanType, "false");
    ProcedureParameter ifNotExists = optional("if_not_exists", DataTypes.BooleanType, "false");
    ProcedureParameter replace = optional("replace", DataTypes.BooleanType, "false");
    know("tag", required("name", "The tag"), version, replace, branch, tag, ifNotExists);
    know("untag", required("name", "The tag"), ifExists);
    know("show_tags");
    know("create_branch", required("name", "The branch"), version, branch, tag, ifNotExists);
    know("drop_branch", required("name", "The branch"), ifExists);
    know("show_branches");
    ProcedureParameter columns = required("columns", "The columns, such as 'a, b'");
    know("set_unenforced_primary_key", columns);
    ProcedureParameter view = required("view", "A view with these columns and _rowaddr");
    know(ViewColumns.ADD, columns, view);
    know(ViewColumns.UPDATE, columns, view);
    know("restore", required("version", "A version or a tag"));
    ProcedureParameter properties = optional("properties", options.dataType(), "NULL");
    know("create_like", required("name", "The new table, such as 'db.t'"), ifNotExists, properties);
  }

  /** The procedure with this name, or null. */
  static LanceProcedure find(String name, String catalog, CatalogCalls calls) {
    ProcedureParameter[] parameters = KNOWN.get(name);
    return parameters == null ? null : new LanceProcedure(name, parameters, catalog, calls);
  }

  /** A procedure of another name: Spark would hide an error of the search for it, but not one of its use. */
  static UnboundProcedure unknown(String name, String catalog) {
    String message =
        "Unknown procedure '" + name + "': choose from " + String.join(", ", KNOWN.keySet()) + ", and write CALL "
            + catalog + ".system.NAME(...)";
    return new UnboundProcedure() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public String description() {
        return message;
      }

      @Override
      public BoundProcedure bind(StructType given) {
        throw new UnsupportedOperationException(message);
      }
    };
  }

  static List<String> names() {
    return List.copyOf(KNOWN.keySet());
  }

  @Override
  public BoundProcedure bind(StructType given) {
    return this;
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public String description() {
    return "CALL " + catalog + ".system." + name + Stream.of(parameters)
        .map(parameter -> parameter.name() + (parameter.defaultValue() == null ? "" : "?"))
        .collect(Collectors.joining(", ", "(", "); ? marks what may be left out"));
  }

  @Override
  public Iterator<Scan> call(InternalRow given) {
    ObjectNode command = CatalogCalls.command("call").put("procedure", name).put("catalog", catalog);
    ObjectNode arguments = command.putObject("arguments");
    for (int i = 0; i < parameters.length; i++) {
      if (!given.isNullAt(i)) {
        add(arguments, parameters[i], given, i);
      }
    }
    JsonNode answer = calls.ask(command);
    ViewColumns.change(answer, calls);
    StructType schema = new StructType();
    for (JsonNode column : answer.path("columns")) {
      DataType kind = DataType.fromDDL(column.path("type").asText());
      schema = schema.add(column.path("name").asText(), kind);
    }
    List<InternalRow> rows = new ArrayList<>();
    for (JsonNode row : answer.path("rows")) {
      rows.add(row(row, schema));
    }
    return List.<Scan>of(new KnownRows(schema, rows.toArray(InternalRow[]::new), name)).iterator();
  }

  private static void add(ObjectNode arguments, ProcedureParameter parameter, InternalRow given, int place) {
    DataType kind = parameter.dataType();
    String name = parameter.name();
    if (kind instanceof LongType) {
      arguments.put(name, given.getLong(place));
    } else if (kind instanceof BooleanType) {
      arguments.put(name, given.getBoolean(place));
    } else if (kind instanceof MapType map) {
      MapData pairs = given.getMap(place);
      ObjectNode object = arguments.putObject(name);
      for (int i = 0; i < pairs.numElements(); i++) {
        Object value = pairs.valueArray().get(i, map.valueType());
        object.put(pairs.keyArray().getUTF8String(i).toString(), value == null ? null : value.toString());
      }
    } else {
      arguments.put(name, given.getUTF8String(place).toString());
    }
  }

  private static InternalRow row(JsonNode values, StructType schema) {
    Object[] row = new Object[schema.length()];
    for (int i = 0; i < row.length; i++) {
      row[i] = value(values.get(i), schema.apply(i).dataType());
    }
    return new GenericInternalRow(row);
  }

  private static Object value(JsonNode value, DataType kind) {
    if (value.isNull()) {
      return null;
    }
    if (kind instanceof ArrayType array) {
      List<Object> elements = new ArrayList<>();
      value.forEach(element -> elements.add(value(element, array.elementType())));
      return new GenericArrayData(elements.toArray());
    }
    if (kind instanceof LongType) {
      return value.asLong();
    }
    return kind instanceof BooleanType ? (Object) value.asBoolean() : UTF8String.fromString(value.asText());
  }

  private static void know(String name, ProcedureParameter... after) {
    List<ProcedureParameter> all = new ArrayList<>(List.of(TABLE));
    all.addAll(List.of(after));
    KNOWN.put(name, all.toArray(ProcedureParameter[]::new));
  }

  private static ProcedureParameter required(String name, String comment) {
    return ProcedureParameter.in(name, DataTypes.StringType).comment(comment).build();
  }

  private static ProcedureParameter optional(String name, DataType kind, String value) {
    return ProcedureParameter.in(name, kind).defaultValue(value).build();
  }
}
