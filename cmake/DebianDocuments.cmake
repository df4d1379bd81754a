# Run by CPack before it makes Debian packages: what the policy wants below share/doc/PACKAGE, compressed manual pages,
# and no run paths, which pkg-config's pmix brings along.
find_program(GZIP gzip REQUIRED)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(package IN LISTS CPACK_DDL_PACKAGES)
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${package}${CPACK_PACKAGING_INSTALL_PREFIX}")
  set(documents "${root}/share/doc/${package}")
  file(MAKE_DIRECTORY "${documents}")
  file(COPY_FILE "${CPACK_DDL_COPYRIGHT}" "${documents}/copyright")
  file(WRITE "${documents}/changelog" "ddlrun (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * CHANGELOG.md in the package ddlrun has the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  set(compressed "${documents}/changelog")
  if(IS_DIRECTORY "${root}/share/man")
    list(APPEND compressed "${root}/share/man")
  endif()
  execute_process(COMMAND "${GZIP}" -9nr ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  foreach(file IN ITEMS bin/ddlrun "${CPACK_DDL_LIBDIR}/ddl/libddl_pmix.so")
    if(EXISTS "${root}/${file}")
      file(RPATH_REMOVE FILE "${root}/${file}")
    endif()
  endforeach()
endforeach()
