# Files as data inside a program. Run as a script by ddl_embed():
#   cmake -DOUTPUT=X.cpp -DHEADER=a/b.h -DFUNCTION=ddl::a::f -DFOLDER=DIR -DFILES=a|b -P DdlEmbed.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  set(rows "")
  string(REPLACE "|" ";" FILES "${FILES}")
  foreach(file IN LISTS FILES)
    file(READ "${FOLDER}/${file}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(APPEND rows "    {\"${file}\", {\"${bytes}\", ${size}}},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "// Made by cmake/DdlEmbed.cmake.
#include <iterator>

#include \"${HEADER}\"

namespace {
constexpr ddl::EmbeddedFile kEmbeddedFiles[] = {
${rows}};
}  // namespace
std::span<const ddl::EmbeddedFile> ${FUNCTION}() {
  return {std::begin(kEmbeddedFiles), std::end(kEmbeddedFiles)};
}
")
  return()
endif()

set(DDL_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
# Generates source, which defines the function, declared in header, again whenever one of the files (paths below the
# folder) changes.
function(ddl_embed source header function folder)
  string(REPLACE ";" "|" files "${ARGN}")
  list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT "${source}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${source}" "-DHEADER=${header}" "-DFUNCTION=${function}"
      "-DFOLDER=${folder}" "-DFILES=${files}" -P "${DDL_EMBED_SCRIPT}"
    DEPENDS ${paths} "${DDL_EMBED_SCRIPT}")
endfunction()
