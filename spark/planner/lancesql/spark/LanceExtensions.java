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
import java.lang.reflect.Proxy;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.BoxedUnit;

/**
 * The {@link LanceStatements} and {@link SearchFunctions} in every session with this jar on its class path, where Spark
 * finds this class among the services. What Spark's parser offers differs between its versions, so a proxy passes every
 * other call on.
 */
public final class LanceExtensions implements SparkSessionExtensionsProvider {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser((session, parser) -> withStatements((SparkSession) session, parser));
    SearchFunctions.inject(extensions);
    return BoxedUnit.UNIT;
  }

  private static ParserInterface withStatements(SparkSession session, ParserInterface parser) {
    LanceStatements statements = new LanceStatements(session);
    return (ParserInterface)
        Proxy.newProxyInstance(
            LanceExtensions.class.getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            (proxy, method, arguments) -> {
              boolean whole = method.getName().startsWith("parsePlan");
              String text = whole ? (String) arguments[0] : "";
              if (whole) {
                arguments[0] = statements.forSpark(text);
              }
              try {
                return method.invoke(parser, arguments);
              } catch (InvocationTargetException error) {
                if (error.getCause() instanceof ParseException) {
                  statements.refuse(text);
                }
                throw error.getCause();
              }
            });
  }
}
