# zstd and LZ4 as static libraries. Their sources come inside two pinned source distributions of the Python package
# index, so that a build needs nothing but pip; no system headers are used, so every build links the same code.

set(THIRD_PARTY_DIR "${CMAKE_CURRENT_BINARY_DIR}/third_party")

function(fetch_sdist name version sha256)
  set(archive "${THIRD_PARTY_DIR}/${name}-${version}.tar.gz")
  if(NOT EXISTS "${THIRD_PARTY_DIR}/${name}-${version}")
    file(MAKE_DIRECTORY "${THIRD_PARTY_DIR}")
    execute_process(COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cmake/fetch_sdist.py" ${name} ${version}
                            "${THIRD_PARTY_DIR}" RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "could not download the source distribution of ${name} ${version} with pip")
    endif()
    file(SHA256 "${archive}" actual)
    if(NOT actual STREQUAL sha256)
      file(REMOVE "${archive}")
      message(FATAL_ERROR "${name}-${version}.tar.gz has SHA-256 ${actual}, expected ${sha256}")
    endif()
    execute_process(COMMAND "${CMAKE_COMMAND}" -E tar xzf "${archive}" WORKING_DIRECTORY "${THIRD_PARTY_DIR}")
  endif()
endfunction()

fetch_sdist(zstandard 0.25.0 7713e1179d162cf5c7906da876ec2ccb9c3a9dcbdffef0cc7f70c3667a205f0b)
fetch_sdist(lz4 4.4.4 070fd0627ec4393011251a094e08ed9fdcc78cb4e7ab28f507638eee4e39abda)

add_library(codec_zstd STATIC "${THIRD_PARTY_DIR}/zstandard-0.25.0/zstd/zstd.c")
target_include_directories(codec_zstd SYSTEM PUBLIC "${THIRD_PARTY_DIR}/zstandard-0.25.0/zstd")
add_library(codec_lz4 STATIC "${THIRD_PARTY_DIR}/lz4-4.4.4/lz4libs/lz4.c")
target_include_directories(codec_lz4 SYSTEM PUBLIC "${THIRD_PARTY_DIR}/lz4-4.4.4/lz4libs")
foreach(codec codec_zstd codec_lz4)
  target_compile_options(${codec} PRIVATE -O3 -w -fvisibility=hidden)
endforeach()
