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

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * Statements about tables of a {@link LanceCatalog} that Spark does not know: each becomes a CALL of a procedure, or
 * another statement. They are those that lance-spark documents, and those of Delta Lake that mean the same.
 */
final class LanceStatements {
  private static final String NAME = "(?:`(?:[^`]|``)+`|\\w+)";
  private static final String QUALIFIED = NAME + "(?:\\s*\\.\\s*" + NAME + ")*";
  private static final String TEXT = "'(?:[^'\\\\]++|\\\\.|'')*+'|\"(?:[^\"\\\\]++|\\\\.)*+\"";
  private static final String OPTIONS = "(?:" + TEXT + "|[^()'\"]++)*+";
  /** What may end an expression, and what may hide that. */
  private static final Pattern AS = Pattern.compile("(?i)" + TEXT + "|`[^`]*`|[()]|\\bAS\\b");
  private static final Pattern OPTION =
      Pattern.compile("\\s*(" + TEXT + "|[\\w.-]+)\\s*=\\s*(" + TEXT + "|[\\w.+-]+)\\s*(?:,|$)");
  private static final Pattern PART = Pattern.compile(NAME);
  private static final Pattern COMMENT = Pattern.compile("(" + TEXT + "|`[^`]*`)|--[^\\n]*|(?s:/\\*.*?\\*/)");
  private static final Pattern FIRST_WORD =
      Pattern.compile("(?s)(?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*(?i:OPTIMIZE|VACUUM|RESTORE|SHOW|ALTER|CREATE|REPLACE|DESCRIBE|DESC)\\b.*");

  /** In place of a procedure: a query of the versions, the newest first; INSERT INTO ... REPLACE WHERE; a new table. */
  private static final String HISTORY = "(history)";
  private static final String REPLACED = "(replaced)";
  private static final String LIKE = "create_like";

  private static final String WITH = " [WITH ( {options} )]";
  private static final String AT = " [AS OF <[BRANCH {branch}] VERSION {version} | BRANCH {branch2} | TAG {of_tag}>]";

  /**
   * A word stands for itself, <code>{name}</code> for an argument, <code>[...]</code> for what may be left out, and
   * <code>&lt;... | ...></code> for alternatives.
   */
  private static final List<Statement> KNOWN =
      List.of(
          new Statement("OPTIMIZE {table}" + WITH, "optimize"),
          new Statement("VACUUM {table}" + WITH, "vacuum"),
          new Statement("VACUUM {table} [RETAIN {retain_hours} <HOURS | HOUR>] [{dry_run}]", "vacuum"),
          new Statement("VACUUM {table} RETAIN {retain_days} <DAYS | DAY> [{dry_run}]", "vacuum"),
          new Statement("RESTORE [TABLE] {table} TO [VERSION AS OF] {version}", "restore"),
          new Statement("CREATE TABLE [{if_not_exists}] {table} LIKE {source} [USING lance] [TBLPROPERTIES ( {options} )]", LIKE),
          new Statement("<DESCRIBE | DESC> HISTORY {table}", HISTORY),
          new Statement("ALTER TABLE {table} CREATE INDEX {name} USING {kind} ( {column} )" + WITH, "create_index", "replace => true"),
          new Statement("ALTER TABLE {table} DROP INDEX {name}", "drop_index"),
          new Statement("ALTER TABLE {table} <OPTIMIZE | REFRESH> INDEX {name}" + WITH, "optimize_index"),
          new Statement("SHOW <INDEXES | INDEX> <FROM | IN | ON> {table}", "show_indexes"),
          new Statement("ALTER TABLE {table} CREATE TAG [{if_not_exists}] {name}" + AT, "tag"),
          new Statement("ALTER TABLE {table} DROP TAG [{if_exists}] {name}", "untag"),
          new Statement("SHOW <TAGS | TAG> <FROM | IN> {table}", "show_tags"),
          new Statement("ALTER TABLE {table} CREATE BRANCH [{if_not_exists}] {name}" + AT, "create_branch"),
          new Statement("ALTER TABLE {table} DROP BRANCH [{if_exists}] {name}", "drop_branch"),
          new Statement("SHOW <BRANCHES | BRANCH> <FROM | IN> {table}", "show_branches"),
          new Statement("REPLACE {table} WHERE {rest}", REPLACED),
          new Statement("ALTER TABLE {table} SET UNENFORCED PRIMARY KEY ( {columns} )", "set_unenforced_primary_key"),
          new Statement("ALTER TABLE {table} ADD COLUMNS {columns} FROM {view}", ViewColumns.ADD),
          new Statement("ALTER TABLE {table} UPDATE COLUMNS {columns} FROM {view}", ViewColumns.UPDATE));

  private final SparkSession session;

  LanceStatements(SparkSession session) {
    this.session = session;
  }

  /** The text for Spark's parser: what a statement of this class becomes, or the text itself. */
  String forSpark(String text) {
    Given given = given(text);
    if (given == null) {
      return text;
    }
    List<String> table = parts(given.matcher.group("table"));
    LanceCatalog catalog = catalog(session, table);
    if (catalog != null && given.statement.procedure.equals(LIKE)) {
      return like(catalog, table, given.matcher);
    }
    return catalog == null ? text : given.statement.forSpark(catalog.name(), table, given.matcher);
  }

  /** A table of the same catalog has more than Spark knows of; of another table or a view, the columns. */
  private String like(LanceCatalog catalog, List<String> table, Matcher given) {
    List<String> source = parts(given.group("source"));
    String properties = given.group("options");
    boolean absent = given.group("ifnotexists") != null;
    boolean named = catalog(session, source) == catalog;
    String[] namespace = source.subList(0, source.size() - 1).toArray(String[]::new);
    if (named && catalog.tableExists(Identifier.of(namespace, source.get(source.size() - 1)))) {
      return "CALL " + quoted(catalog.name()) + ".system." + LIKE + "(table => " + literal(qualified(source)) + ", name => "
          + literal(qualified(table)) + ", if_not_exists => " + absent
          + (properties == null ? ")" : ", properties => " + Statement.map(properties) + ")");
    }
    return "CREATE TABLE " + (absent ? "IF NOT EXISTS " : "") + given.group("table")
        + (properties == null ? "" : " TBLPROPERTIES (" + properties + ")")
        + " AS SELECT * FROM " + given.group("source") + " LIMIT 0";
  }

  /** Explains a statement of this class that Spark's parser does not know: its table is in another catalog. */
  void refuse(String text) {
    Given given = given(text);
    if (given != null) {
      throw notOurs(given.matcher.group("table"), "this statement");
    }
  }

  static UnsupportedOperationException notOurs(String table, String what) {
    return new UnsupportedOperationException(
        "The table " + table + " is not in a Lance catalog, which " + what + " needs: name a"
            + " catalog that spark.sql.catalog.NAME = " + LanceCatalog.class.getName() + " defines");
  }

  private record Given(Statement statement, Matcher matcher) {}

  private static Given given(String text) {
    if (!FIRST_WORD.matcher(text).matches()) {
      return null;
    }
    String plain =
        COMMENT.matcher(text).replaceAll(match -> match.group(1) == null ? " " : Matcher.quoteReplacement(match.group()));
    return KNOWN.stream()
        .map(statement -> new Given(statement, statement.pattern.matcher(plain)))
        .filter(given -> given.matcher.matches())
        .findFirst()
        .orElse(null);
  }

  /** The Lance catalog of a table, whose name becomes that in the catalog, as Spark completes it; null if another has it. */
  static LanceCatalog catalog(SparkSession session, List<String> table) {
    Catalogs catalogs = new Catalogs(session);
    boolean named = table.size() > 1 && catalogs.has(table.get(0));
    CatalogPlugin catalog = named ? catalogs.named(table.remove(0)) : catalogs.current();
    if (!named && table.size() == 1) {
      table.addAll(0, List.of(catalogs.currentNamespace()));
    }
    return catalog instanceof LanceCatalog ours ? ours : null;
  }

  /** The parts of a qualified name, or the names in a list, without their quotes. */
  static List<String> parts(String text) {
    return PART.matcher(text).results().map(match -> unquoted(match.group())).collect(Collectors.toCollection(ArrayList::new));
  }

  private static String unquoted(String name) {
    return name.startsWith("`") ? name.substring(1, name.length() - 1).replace("``", "`") : name;
  }

  static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  private static String qualified(List<String> parts) {
    return parts.stream().map(LanceStatements::quoted).collect(Collectors.joining("."));
  }

  private static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  private static final class Statement {
    private static final Pattern ELEMENT = Pattern.compile("\\{(\\w+)\\}|\\w+|\\S");

    final Pattern pattern;
    private final String procedure;
    private final List<String> constants;
    /** Groups of the pattern, and the arguments that they are. */
    private final Map<String, String> arguments = new LinkedHashMap<>();

    Statement(String form, String procedure, String... constants) {
      StringBuilder regex = new StringBuilder();
      ELEMENT.matcher(form).results().forEach(match -> regex.append(element(match.group(), match.group(1))));
      this.pattern = Pattern.compile(regex + "[\\s;]*", Pattern.UNICODE_CHARACTER_CLASS);
      this.procedure = procedure;
      this.constants = List.of(constants);
    }

    private String element(String text, String argument) {
      if (argument != null) {
        String group = argument.replace("_", ""); // Java does not allow underscores
        arguments.put(group, argument.replaceAll("\\d", ""));
        return "\\s*(?<" + group + ">" + kind(argument) + ")";
      }
      return switch (text) {
        case "[", "<" -> "(?:";
        case "]" -> ")?";
        case ">" -> ")";
        case "|" -> "|";
        default -> "\\s*" + (text.matches("\\w+") ? "\\b(?i:" + text + ")\\b" : Pattern.quote(text));
      };
    }

    private static String kind(String argument) {
      return switch (argument) {
        case "table", "source", "view" -> QUALIFIED;
        case "column", "columns" -> QUALIFIED + "(?:\\s*,\\s*" + QUALIFIED + ")*";
        case "options" -> OPTIONS;
        case "rest" -> "(?s:.+?)";
        case "version", "retain_hours", "retain_days" -> "\\d+";
        case "if_exists", "if_not_exists", "dry_run" -> "(?i:\\b" + argument.replace("_", "\\s+") + "\\b)";
        default -> NAME;
      };
    }

    String forSpark(String catalog, List<String> table, Matcher given) {
      if (procedure.equals(HISTORY)) {
        return "SELECT * FROM " + quoted(catalog) + "." + qualified(table) + ".versions ORDER BY version DESC";
      }
      if (procedure.equals(REPLACED)) {
        return "INSERT INTO " + given.group("table") + " REPLACE WHERE " + withoutAs(given.group("rest"));
      }
      List<String> all = new ArrayList<>(constants);
      arguments.forEach(
          (group, argument) -> {
            String text = given.group(group);
            if (text != null) {
              String name = argument.equals("retain_days") ? "retain_hours" : argument;
              all.add(name + " => " + value(argument, text, table));
            }
          });
      return "CALL " + quoted(catalog) + ".system." + procedure + "(" + String.join(", ", all) + ")";
    }

    /** A condition and a query without the AS between them, the first one outside of brackets. */
    private static String withoutAs(String text) {
      int brackets = 0;
      for (Matcher found = AS.matcher(text); found.find(); ) {
        String token = found.group();
        brackets += token.equals("(") ? 1 : token.equals(")") ? -1 : 0;
        if (brackets == 0 && token.equalsIgnoreCase("AS")) {
          return text.substring(0, found.start()) + text.substring(found.end());
        }
      }
      throw new IllegalArgumentException("REPLACE needs a query: REPLACE t WHERE condition AS SELECT ...");
    }

    private static String value(String argument, String text, List<String> table) {
      return switch (argument) {
        case "table" -> literal(qualified(table));
        case "version", "retain_hours" -> text;
        case "retain_days" -> text + " * 24";
        case "if_exists", "if_not_exists", "dry_run" -> "true";
        case "options" -> map(text);
        case "column", "columns", "view" -> literal(text);
        default -> literal(unquoted(text));
      };
    }

    private static String map(String text) {
      List<String> values = new ArrayList<>();
      Matcher option = OPTION.matcher(text);
      int end = 0;
      while (end < text.length() && option.find(end) && option.start() == end) {
        Stream.of(option.group(1), option.group(2)).forEach(side -> values.add(side.matches("(?s)['\"].*") ? side : literal(side)));
        end = option.end();
      }
      if (!text.substring(end).isBlank()) {
        throw new IllegalArgumentException("WITH needs options such as (name = value, other = 'text'), not (" + text.strip() + ")");
      }
      return "map(" + String.join(", ", values) + ")";
    }
  }
}
