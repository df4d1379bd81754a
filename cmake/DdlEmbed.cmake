# Files as data inside a program. Run as a script by ddl_embed():
#   cmake -DOUTPUT=X.cpp -DFOLDER=DIR -DFILES=a|b -P DdlEmbed.cmake
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

#include \"templates/shipped_files.h\"

namespace ddl::templates {
namespace {
constexpr ShippedFile kFiles[] = {
${rows}};
}  // namespace
std::span<const ShippedFile> shipped_files() { return {std::begin(kFiles), std::end(kFiles)}; }
}  // namespace ddl::templates
")
  return()
endif()

set(DDL_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
# Generates source, which defines shipped_files(), again whenever one of the files (paths below the current folder)
# changes.
function(ddl_embed source)
  string(REPLACE ";" "|" files "${ARGN}")
  add_custom_command(OUTPUT "${source}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${source}" "-DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}" "-DFILES=${files}"
      -P "${DDL_EMBED_SCRIPT}"
    DEPENDS ${ARGN} "${DDL_EMBED_SCRIPT}")
endfunction()
