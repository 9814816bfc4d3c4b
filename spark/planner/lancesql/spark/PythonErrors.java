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

import java.io.Serializable;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;
import org.apache.spark.api.python.PythonException;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.write.DataWriter;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Errors of Python, as Python says them: without the stack that Spark puts before the message. */
final class PythonErrors {
  private static final String TRACEBACK = "Traceback (most recent call last):";
  /** The first line after the last stack; the message may have more lines. */
  private static final Pattern LAST = Pattern.compile("(?m)^([A-Za-z_][\\w.]*\\.)?([A-Z]\\w*): ");
  /** The modules of our own errors; the stack of any other may help to find a mistake. */
  private static final String OURS = "lance_";

  private PythonErrors() {}

  static <T> T plain(Callable<T> call) {
    try {
      return call.call();
    } catch (Exception error) {
      throw thrown(shortened(error));
    }
  }

  /** A factory that is sent to tasks, with plain errors of the reader or writer that it makes there. */
  @SuppressWarnings("unchecked")
  static <T> T inTasks(T python) {
    Set<Class<?>> kinds = new LinkedHashSet<>();
    for (Class<?> kind = python.getClass(); kind != null; kind = kind.getSuperclass()) {
      kinds.addAll(List.of(kind.getInterfaces()));
    }
    return (T)
        Proxy.newProxyInstance(PythonErrors.class.getClassLoader(), kinds.toArray(Class<?>[]::new), new Plain(python));
  }

  private record Plain(Object python) implements InvocationHandler, Serializable {
    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      try {
        Object made = method.invoke(python, arguments);
        return made instanceof DataWriter || made instanceof PartitionReader ? inTasks(made) : made;
      } catch (InvocationTargetException error) {
        throw shortened(error.getCause());
      }
    }
  }

  private static Throwable shortened(Throwable error) {
    if (error instanceof AnalysisException analysis) {
      Map<String, String> parameters = new HashMap<>(analysis.getMessageParameters());
      Matcher last = last(parameters.get("msg"));
      if (last == null) {
        return error;
      }
      parameters.put("msg", text(parameters.get("msg"), last));
      var texts = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters));
      return new AnalysisException(analysis.getCondition(), texts, Option.empty());
    }
    if (error instanceof PythonException) {
      Matcher last = last(error.getMessage());
      if (last != null && last.group(1) != null && last.group(1).startsWith(OURS)) {
        return ofPython(error, text(error.getMessage(), last));
      }
    }
    return error;
  }

  /** The error with another message; it stays as it is where this version of Spark makes such errors in another way. */
  private static Throwable ofPython(Throwable error, String message) {
    Map<String, String> parameters = new HashMap<>();
    if (error instanceof SparkThrowable throwable) {
      parameters.putAll(throwable.getMessageParameters());
      parameters.replaceAll((name, value) -> value.contains(TRACEBACK) ? message : value);
    }
    Object texts = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters));
    String condition = error instanceof SparkThrowable throwable ? throwable.getCondition() : null;
    try {
      for (Constructor<?> constructor : PythonException.class.getConstructors()) {
        Class<?>[] kinds = constructor.getParameterTypes();
        Throwable plain = null;
        if (condition != null && kinds.length == 5 && kinds[1].isInstance(texts)) {
          Object contexts = Array.newInstance(kinds[3].getComponentType(), 0);
          plain = (Throwable) constructor.newInstance(condition, texts, null, contexts, "");
        } else if (condition == null && kinds.length == 2) {
          plain = (Throwable) constructor.newInstance(message, null);
        }
        if (plain != null) {
          plain.setStackTrace(error.getStackTrace()); // PySpark looks for its own classes there
          return plain;
        }
      }
    } catch (ReflectiveOperationException | RuntimeException other) {
      return error;
    }
    return error;
  }

  private static Matcher last(String message) {
    int stack = message == null ? -1 : message.lastIndexOf(TRACEBACK);
    if (stack < 0) {
      return null;
    }
    Matcher last = LAST.matcher(message);
    return last.find(stack) ? last : null;
  }

  private static String text(String message, Matcher last) {
    return last.group(2) + ": " + message.substring(last.end()).strip();
  }

  /** Throws an exception that Java checks and Scala does not. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException thrown(Throwable error) throws E {
    throw (E) error;
  }
}
