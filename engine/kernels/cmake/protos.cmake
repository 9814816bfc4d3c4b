# Python modules for the messages in /protos, generated into lance_engine/format/pb.

set(PROTO_DIR "${CMAKE_CURRENT_SOURCE_DIR}/../../protos")
set(PB_PACKAGE lance_engine/format/pb)
set(PB_OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/generated")
file(GLOB PROTO_FILES CONFIGURE_DEPENDS RELATIVE "${PROTO_DIR}" "${PROTO_DIR}/*.proto")

set(virtual_names)
set(generated)
foreach(proto ${PROTO_FILES})
  string(REPLACE ".proto" "_pb2.py" module "${proto}")
  list(APPEND virtual_names "${PB_PACKAGE}/${proto}")
  list(APPEND generated "${PB_OUTPUT}/${PB_PACKAGE}/${module}")
endforeach()
list(TRANSFORM PROTO_FILES PREPEND "${PROTO_DIR}/" OUTPUT_VARIABLE proto_paths)

# The virtual path makes imports between generated modules absolute within the package.
add_custom_command(
  OUTPUT ${generated}
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${PB_OUTPUT}"
  COMMAND "${Python_EXECUTABLE}" -m grpc_tools.protoc "-I${PB_PACKAGE}=${PROTO_DIR}" "--python_out=${PB_OUTPUT}" "--pyi_out=${PB_OUTPUT}"
          ${virtual_names}
  DEPENDS ${proto_paths}
  COMMENT "Generating protobuf modules")
add_custom_target(protos ALL DEPENDS ${generated})
file(WRITE "${PB_OUTPUT}/${PB_PACKAGE}/__init__.py" "\"\"\"Generated from /protos at build time.\"\"\"\n")
# An editable install keeps them in the source tree, where type checkers look.
set(PB_DESTINATION ${PB_PACKAGE})
if("${SKBUILD_STATE}" STREQUAL "editable")
  set(PB_DESTINATION "${CMAKE_CURRENT_SOURCE_DIR}/../${PB_PACKAGE}")
endif()
install(DIRECTORY "${PB_OUTPUT}/${PB_PACKAGE}/" DESTINATION ${PB_DESTINATION} FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi")
