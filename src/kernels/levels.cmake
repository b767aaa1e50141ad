# Inner loops are optimised in every build type, and never contract a * b + c on their own: which
# operations are fused decides the bits, so the code says it.
set(level_sources ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_portable.cpp
                  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_avx2.cpp
                  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_avx512.cpp
                  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_amx.cpp
                  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_neon.cpp
                  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_neon_dot.cpp)
set_property(SOURCE ${level_sources} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=off -Wno-psabi
             $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # g++ 12 warns of its own intrinsics
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni)
  set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_avx2.cpp
               APPEND PROPERTY COMPILE_OPTIONS ${avx2})
  set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_avx512.cpp
               APPEND PROPERTY COMPILE_OPTIONS ${avx512})
  set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_amx.cpp
               APPEND PROPERTY COMPILE_OPTIONS ${avx512} -mamx-tile -mamx-int8 -mamx-bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/kernels/level_neon_dot.cpp
               APPEND PROPERTY COMPILE_OPTIONS -march=armv8.2-a+dotprod)
endif()
# Checks by calls: inlined into these loops they take minutes to compile.
if(TANDEM_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_property(SOURCE ${level_sources} APPEND PROPERTY COMPILE_OPTIONS --param asan-instrumentation-with-call-threshold=0)
endif()
