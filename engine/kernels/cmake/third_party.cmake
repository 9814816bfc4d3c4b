# zstd and LZ4 as static libraries. Their sources come inside two pinned source distributions of the Python package
# index, so that a build needs nothing but pip; no system headers are used, so every build links the same code.

set(THIRD_PARTY_DIR "${CMAKE_CURRENT_BINARY_DIR}/third_party")

# Downloads and unpacks NAME VERSION SHA256, any number of times.
function(fetch_sdists)
  set(rest ${ARGV})
  set(missing)
  while(rest)
    list(POP_FRONT rest name version sha256)
    if(NOT EXISTS "${THIRD_PARTY_DIR}/${name}-${version}")
      list(APPEND missing ${name}==${version})
      set(sha256_of_${name}==${version} ${sha256})
    endif()
  endwhile()
  if(NOT missing)
    return()
  endif()
  file(MAKE_DIRECTORY "${THIRD_PARTY_DIR}")
  execute_process(COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cmake/fetch_sdist.py" "${THIRD_PARTY_DIR}"
                          ${missing} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "could not download the source distributions ${missing} with pip")
  endif()
  foreach(package ${missing})
    string(REPLACE "==" "-" stem ${package})
    set(archive "${THIRD_PARTY_DIR}/${stem}.tar.gz")
    file(SHA256 "${archive}" actual)
    if(NOT actual STREQUAL sha256_of_${package})
      file(REMOVE "${archive}")
      message(FATAL_ERROR "${stem}.tar.gz has SHA-256 ${actual}, expected ${sha256_of_${package}}")
    endif()
    execute_process(COMMAND "${CMAKE_COMMAND}" -E tar xzf "${archive}" WORKING_DIRECTORY "${THIRD_PARTY_DIR}")
  endforeach()
endfunction()

fetch_sdists(
  zstandard 0.25.0 7713e1179d162cf5c7906da876ec2ccb9c3a9dcbdffef0cc7f70c3667a205f0b
  lz4 4.4.4 070fd0627ec4393011251a094e08ed9fdcc78cb4e7ab28f507638eee4e39abda)

add_library(codec_zstd STATIC "${THIRD_PARTY_DIR}/zstandard-0.25.0/zstd/zstd.c")
target_include_directories(codec_zstd SYSTEM PUBLIC "${THIRD_PARTY_DIR}/zstandard-0.25.0/zstd")
add_library(codec_lz4 STATIC "${THIRD_PARTY_DIR}/lz4-4.4.4/lz4libs/lz4.c")
target_include_directories(codec_lz4 SYSTEM PUBLIC "${THIRD_PARTY_DIR}/lz4-4.4.4/lz4libs")
foreach(codec codec_zstd codec_lz4)
  target_compile_options(${codec} PRIVATE -O3 -w -fvisibility=hidden)
endforeach()
