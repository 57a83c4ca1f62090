# The Python package with a library and a compiler that are built already.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

set(soname libllamac.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(libllamac SHARED IMPORTED)
set_target_properties(libllamac PROPERTIES
  IMPORTED_LOCATION ${LLAMAC_PREBUILT}/lib/libllamac.so.${PROJECT_VERSION}
  IMPORTED_SONAME ${soname}
  INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/include)
add_executable(llamac IMPORTED)
set_target_properties(llamac PROPERTIES IMPORTED_LOCATION ${LLAMAC_PREBUILT}/bin/llamac)
add_subdirectory(python)
