# The Python package with a library and tools that are built already.
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
foreach(tool llamac llamac-run)
  add_executable(${tool} IMPORTED)
  set_target_properties(${tool} PROPERTIES IMPORTED_LOCATION ${LLAMAC_PREBUILT}/bin/${tool})
endforeach()
add_subdirectory(python)
