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
import java.util.stream.Stream;
import org.apache.spark.SparkException;
import org.apache.spark.SparkThrowable;
import org.apache.spark.api.python.PythonException;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Errors of Python, as Python says them: without the stack that Spark puts before the message. */
final class PythonErrors {
  private static final String TRACEBACK = "Traceback (most recent call last):";
  /** An error, which may have more lines, after its stack and before that of another one that it led to. */
  private static final String ERROR =
      "([A-Z]\\w*): (.*?)(?=\\n\\n(?:During handling of the above|The above exception was)|\\z)";
  /** Our own errors; the stack of any other may help to find a mistake. */
  private static final Pattern OURS = Pattern.compile("(?ms)^lance_[\\w.]*\\." + ERROR);
  private static final Pattern ANY = Pattern.compile("(?ms)^(?:[A-Za-z_][\\w.]*\\.)?" + ERROR);
  /** What parts that run Python make, which runs Python too. */
  private static final List<Class<?>> MADE =
      List.of(
          DataWriter.class,
          DataWriterFactory.class,
          PartitionReader.class,
          PartitionReaderFactory.class,
          StreamingDataWriterFactory.class);

  private PythonErrors() {}

  static <T> T plain(Callable<T> call) {
    try {
      return call.call();
    } catch (Exception error) {
      throw thrown(shortened(error));
    }
  }

  /** A part of Spark that runs Python, with plain errors of its own and of what it makes, also in tasks. */
  @SuppressWarnings("unchecked")
  static <T> T plainFrom(T python) {
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
      if (method.getName().equals("equals")) {
        return proxy == arguments[0]; // streams are keys
      }
      try {
        Object made = method.invoke(python, arguments);
        return MADE.stream().anyMatch(kind -> kind.isInstance(made)) ? plainFrom(made) : made;
      } catch (InvocationTargetException error) {
        Throwable plain = shortened(error.getCause());
        boolean allowed =
            plain instanceof RuntimeException
                || plain instanceof Error
                || Stream.of(method.getExceptionTypes()).anyMatch(kind -> kind.isInstance(plain));
        throw allowed ? plain : new IllegalStateException(plain.getMessage(), plain); // a proxy would hide its text
      }
    }
  }

  private static Throwable shortened(Throwable error) {
    if (error instanceof AnalysisException || error.getClass() == SparkException.class) {
      SparkThrowable throwable = (SparkThrowable) error;
      Map<String, String> parameters = new HashMap<>(throwable.getMessageParameters());
      String ours = text(parameters.get("msg"), OURS);
      String plain = ours == null ? text(parameters.get("msg"), ANY) : ours;
      if (plain == null) {
        return error;
      }
      parameters.put("msg", plain);
      var texts = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters));
      return error instanceof AnalysisException
          ? new AnalysisException(throwable.getCondition(), texts, Option.empty())
          : new SparkException(throwable.getCondition(), texts, null);
    }
    String ours = error instanceof PythonException ? text(error.getMessage(), OURS) : null;
    return ours == null ? error : ofPython(error, ours);
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

  /** The last such error after a stack, without the stack; null without one. */
  private static String text(String message, Pattern kind) {
    int stack = message == null ? -1 : message.indexOf(TRACEBACK);
    String last = null;
    for (Matcher error = kind.matcher(stack < 0 ? "" : message.substring(stack)); error.find(); ) {
      last = error.group(1) + ": " + error.group(2).strip();
    }
    return last;
  }

  /** Throws an exception that Java checks and Scala does not. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException thrown(Throwable error) throws E {
    throw (E) error;
  }
}
