# The planner for Spark: a jar of a few classes, compiled against the jars of an installed PySpark. Where a JDK from
# 17 on or PySpark is missing the package is built without it, and Spark then plans Python data sources as it does any other.
find_program(JAVAC javac)
find_program(JAR jar)
execute_process(COMMAND "${Python_EXECUTABLE}" -c "import pyspark, os; print(os.path.dirname(pyspark.__file__))"
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                OUTPUT_VARIABLE PYSPARK_FOLDER)
set(JAVAC_MAJOR 0)
if(JAVAC)
  execute_process(COMMAND "${JAVAC}" -version OUTPUT_VARIABLE JAVAC_SAYS ERROR_VARIABLE JAVAC_SAYS)
  if(JAVAC_SAYS MATCHES "javac ([0-9]+)")
    set(JAVAC_MAJOR ${CMAKE_MATCH_1})
  endif()
endif()
if(JAVAC_MAJOR GREATER_EQUAL 17 AND JAR AND PYSPARK_FOLDER)
  set(PLANNER_SOURCES ${CMAKE_CURRENT_LIST_DIR}/planner)
  set(PLANNER_JAR ${CMAKE_CURRENT_BINARY_DIR}/lance-sql-spark.jar)
  file(GLOB_RECURSE PLANNER_JAVA CONFIGURE_DEPENDS ${PLANNER_SOURCES}/*.java)
  # The same sources give the same bytes: entries in order of their names, all of one date.
  add_custom_command(
    OUTPUT ${PLANNER_JAR}
    COMMAND ${CMAKE_COMMAND} -E rm -rf planner-classes
    COMMAND ${JAVAC} --release 17 -Xlint:all,-path,-classfile,-processing,-serial -proc:none
            -cp "${PYSPARK_FOLDER}/jars/*" -d planner-classes ${PLANNER_JAVA}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${PLANNER_SOURCES}/META-INF planner-classes/META-INF
    COMMAND ${JAR} --create --no-manifest --date=2020-01-01T00:00:00Z --file ${PLANNER_JAR}
            -C planner-classes META-INF -C planner-classes lancesql
    DEPENDS ${PLANNER_JAVA} ${PLANNER_SOURCES}/META-INF/services/org.apache.spark.sql.sources.DataSourceRegister
    VERBATIM)
  add_custom_target(spark_planner ALL DEPENDS ${PLANNER_JAR})
  install(FILES ${PLANNER_JAR} DESTINATION lance_sql/spark)
else()
  message(STATUS "no JDK 17 or no PySpark: built without the planner for Spark")
endif()
