# Run by CPack before it makes Debian packages: what the policy wants below share/doc/PACKAGE, and compressed manual
# pages.
find_program(GZIP gzip REQUIRED)
foreach(package IN LISTS CPACK_DDL_PACKAGES)
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${package}${CPACK_PACKAGING_INSTALL_PREFIX}/share")
  file(MAKE_DIRECTORY "${root}/doc/${package}")
  file(COPY_FILE "${CPACK_DDL_LICENCE}" "${root}/doc/${package}/copyright")
  file(COPY_FILE "${CPACK_DDL_CHANGELOG}" "${root}/doc/${package}/changelog")
  set(compressed "${root}/doc/${package}/changelog")
  if(IS_DIRECTORY "${root}/man")
    list(APPEND compressed "${root}/man")
  endif()
  execute_process(COMMAND "${GZIP}" -9nr ${compressed} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
