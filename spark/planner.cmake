# The planner for Spark: a jar of a few classes, compiled by a JDK from 17 on against the jars of an installed PySpark, or
# against the same of Maven Central. Where that is not possible the package is built without it, and Spark then plans as for
# any other Python data source, which the package says when Spark uses it; with LANCE_SPARK_PLANNER=ON the build fails instead.
set(LANCE_SPARK_PLANNER AUTO CACHE STRING "Build the planner for Spark: AUTO where that is possible, ON or fail, or OFF")
if(LANCE_SPARK_PLANNER STREQUAL "OFF")
  return()
endif()
find_program(JAVAC javac)
find_program(JAR jar)
find_program(MAVEN NAMES mvn mvn.cmd)
execute_process(COMMAND "${Python_EXECUTABLE}" -c "import pyspark, os; print(os.path.join(os.path.dirname(pyspark.__file__), 'jars'))"
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                OUTPUT_VARIABLE SPARK_JARS)
set(JAVAC_MAJOR 0)
if(JAVAC)
  execute_process(COMMAND "${JAVAC}" -version OUTPUT_VARIABLE JAVAC_SAYS ERROR_VARIABLE JAVAC_SAYS)
  if(JAVAC_SAYS MATCHES "javac ([0-9]+)")
    set(JAVAC_MAJOR ${CMAKE_MATCH_1})
  endif()
endif()
set(PLANNER_LACKS "")
if(JAVAC_MAJOR LESS 17 OR NOT JAR)
  set(PLANNER_LACKS "no JDK 17 or newer was found")
elseif(NOT IS_DIRECTORY "${SPARK_JARS}") # pyspark-client has none
  set(SPARK_JARS ${CMAKE_CURRENT_BINARY_DIR}/spark-jars)
  if(NOT MAVEN)
    set(PLANNER_LACKS "neither PySpark nor Maven was found")
  elseif(NOT EXISTS ${SPARK_JARS})
    message(STATUS "fetching the jars that the planner for Spark is compiled against")
    execute_process(COMMAND "${MAVEN}" --quiet --batch-mode --file ${CMAKE_CURRENT_LIST_DIR}/pom.xml dependency:copy-dependencies
                            -DoutputDirectory=${SPARK_JARS}.unfinished
                    RESULT_VARIABLE MAVEN_FAILED OUTPUT_VARIABLE MAVEN_SAYS ERROR_VARIABLE MAVEN_SAYS)
    if(MAVEN_FAILED)
      message(STATUS "${MAVEN_SAYS}")
      set(PLANNER_LACKS "Maven could not fetch the jars of Spark, and PySpark is not installed")
    else()
      file(RENAME ${SPARK_JARS}.unfinished ${SPARK_JARS})
    endif()
  endif()
endif()
if(NOT PLANNER_LACKS)
  set(PLANNER_SOURCES ${CMAKE_CURRENT_LIST_DIR}/planner)
  set(PLANNER_JAR ${CMAKE_CURRENT_BINARY_DIR}/lance-sql-spark.jar)
  file(GLOB_RECURSE PLANNER_JAVA CONFIGURE_DEPENDS ${PLANNER_SOURCES}/*.java)
  file(GLOB PLANNER_SERVICES CONFIGURE_DEPENDS ${PLANNER_SOURCES}/META-INF/services/*)
  # The same sources give the same bytes: entries in order of their names, all of one date.
  add_custom_command(
    OUTPUT ${PLANNER_JAR}
    COMMAND ${CMAKE_COMMAND} -E rm -rf planner-classes
    COMMAND ${JAVAC} --release 17 -Xlint:all,-path,-classfile,-processing,-serial -proc:none
            -cp "${SPARK_JARS}/*" -d planner-classes ${PLANNER_JAVA}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${PLANNER_SOURCES}/META-INF planner-classes/META-INF
    COMMAND ${JAR} --create --no-manifest --date=2020-01-01T00:00:00Z --file ${PLANNER_JAR}
            -C planner-classes META-INF -C planner-classes lancesql
    DEPENDS ${PLANNER_JAVA} ${PLANNER_SERVICES}
    VERBATIM)
  add_custom_target(spark_planner ALL DEPENDS ${PLANNER_JAR})
  install(FILES ${PLANNER_JAR} DESTINATION lance_sql/spark)
elseif(LANCE_SPARK_PLANNER STREQUAL "ON")
  message(FATAL_ERROR "The planner for Spark cannot be built: ${PLANNER_LACKS}")
else()
  message(WARNING "Built without the planner for Spark: ${PLANNER_LACKS}")
endif()
