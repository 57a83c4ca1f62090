# This file says what `cmake --install` puts where, and defines the packages
# that CPack makes of it (docs/installing.md). Every file is in one component:
#
#   runtime    llamac-run and what helps to use it     package llamac-runtime
#   library    libllamac.so and what programs need     package llamac-runtime
#              to be built with it
#   compiler   llamac and the documents                package llamac
#
# Nothing that is installed names the build folder. Files that name the prefix are
# written when it is known, at installation.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(tools llamac-run)
if(LLAMAC_BUILD_COMPILER)
  list(APPEND tools llamac)
endif()

# The tools, with their manual pages and completions, which they print themselves.
set(pages "")
foreach(tool ${tools})
  set(component runtime)
  if(tool STREQUAL llamac)
    set(component compiler)
  endif()
  install(TARGETS ${tool} RUNTIME COMPONENT ${component})

  set(made ${CMAKE_BINARY_DIR}/share/${tool})
  add_custom_command(
    OUTPUT ${made}.1 ${made}.bash ${made}.zsh ${made}.fish
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/share
    COMMAND ${tool} manual > ${made}.1
    COMMAND ${tool} completion bash > ${made}.bash
    COMMAND ${tool} completion zsh > ${made}.zsh
    COMMAND ${tool} completion fish > ${made}.fish
    DEPENDS ${tool}
    VERBATIM)
  list(APPEND pages ${made}.1)
  install(FILES ${made}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
  install(FILES ${made}.bash RENAME ${tool} COMPONENT ${component}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${made}.fish COMPONENT ${component}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  # Debian's zsh looks elsewhere for what packages bring.
  install(CODE "
    set(folder site-functions)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
      set(folder vendor-completions)
    endif()
    file(INSTALL \"${made}.zsh\" RENAME _${tool}
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")"
          COMPONENT ${component})
endforeach()
add_custom_target(llamac_pages ALL DEPENDS ${pages})

# The library, as its soname, its header, pkg-config and CMake name it.
install(TARGETS libllamac EXPORT llamac LIBRARY COMPONENT library NAMELINK_COMPONENT library)
install(FILES include/llamac/llamac.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/llamac COMPONENT library)
file(RELATIVE_PATH LLAMAC_PREFIX_OF_PKGCONFIG
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(packaging/llamac.pc.in ${CMAKE_BINARY_DIR}/packaging/llamac.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/llamac.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
install(EXPORT llamac NAMESPACE llamac:: FILE llamac-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/llamac COMPONENT library)
write_basic_package_version_file(
  ${CMAKE_BINARY_DIR}/packaging/llamac-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/packaging/llamac-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/llamac COMPONENT library)

# The service, which names the tool by its path.
install(CODE "
  configure_file(\"${CMAKE_SOURCE_DIR}/packaging/llamac@.service.in\"
                 \"${CMAKE_BINARY_DIR}/packaging/llamac@.service\" @ONLY)
  file(INSTALL \"${CMAKE_BINARY_DIR}/packaging/llamac@.service\"
       DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")"
        COMPONENT runtime)

# Documents: a folder for each package. The licenses are those of all that the tools
# contain, as Debian words them where it comes from Debian.
set(texts LICENSE packaging/licenses.txt)
foreach(package libcli11-dev llvm-19-dev nlohmann-json3-dev)
  list(APPEND texts /usr/share/doc/${package}/copyright)
endforeach()
set(copyright ${CMAKE_BINARY_DIR}/packaging/copyright)
file(WRITE ${copyright} "")
foreach(text ${texts})
  if(EXISTS ${text})
    file(READ ${text} licenses)
    file(APPEND ${copyright} "${licenses}\n")
  endif()
endforeach()
install(FILES ${copyright} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/llamac-runtime COMPONENT runtime)
install(FILES ${copyright} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/llamac COMPONENT compiler)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/llamac COMPONENT compiler)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/llamac COMPONENT compiler
        PATTERN CMakeLists.txt EXCLUDE)

# The packages.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME llamac)
set(CPACK_PACKAGE_VENDOR llamac)
set(CPACK_PACKAGE_CONTACT "The llamac project <llamac@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime library)
if(LLAMAC_BUILD_COMPILER)
  list(APPEND CPACK_COMPONENTS_ALL compiler)
endif()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENT_RUNTIME_GROUP runtime)
set(CPACK_COMPONENT_LIBRARY_GROUP runtime)
set(CPACK_COMPONENT_COMPILER_GROUP compiler)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME llamac-runtime)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
    "Runs Llama models that llamac compiled\n llamac-run and libllamac.so, without the compiler.")
# Opened at run time, where there is a GPU.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS libcuda1)
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME llamac)
set(CPACK_DEBIAN_COMPILER_DESCRIPTION
    "Compiles Llama models into plans and runs them\n A compiler on MLIR and Clang, and the runtime of its plans.")
set(CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS "llamac-runtime (= ${PROJECT_VERSION})")
# Trusted by `llamac pull`.
set(CPACK_DEBIAN_COMPILER_PACKAGE_RECOMMENDS ca-certificates)
# The .rpm, which scripts/package.sh makes, carries all libraries but these.
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 WITH LLVM-exception")
set(CPACK_RPM_PACKAGE_SUMMARY "Compiles Llama models into plans and runs them")
set(CPACK_RPM_PACKAGE_AUTOREQPROV OFF)
set(CPACK_RPM_PACKAGE_REQUIRES "glibc >= 2.36, libstdc++ >= 12, zlib")
include(CPack)
