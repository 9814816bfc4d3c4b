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
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Errors of Python on the driver, as Python says them: without the stack that Spark puts before the message. */
final class PythonErrors {
  private static final String TRACEBACK = "Traceback (most recent call last):";
  /** The first line after the last stack; the message may have more lines. */
  private static final Pattern LAST = Pattern.compile("(?m)^(?:[A-Za-z_][\\w.]*\\.)?([A-Z]\\w*): ");

  private PythonErrors() {}

  static <T> T plain(Callable<T> call) {
    try {
      return call.call();
    } catch (Exception error) {
      throw thrown(error instanceof AnalysisException analysis ? shortened(analysis) : error);
    }
  }

  private static Exception shortened(AnalysisException error) {
    Map<String, String> parameters = new HashMap<>(error.getMessageParameters());
    String message = parameters.get("msg");
    int stack = message == null ? -1 : message.lastIndexOf(TRACEBACK);
    if (stack < 0) {
      return error;
    }
    Matcher last = LAST.matcher(message);
    if (!last.find(stack)) {
      return error;
    }
    parameters.put("msg", last.group(1) + ": " + message.substring(last.end()).strip());
    var texts = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters));
    return new AnalysisException(error.getCondition(), texts, Option.empty());
  }

  /** Throws an exception that Java checks and Scala does not. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> RuntimeException thrown(Exception error) throws E {
    throw (E) error;
  }
}
