// A file that cmake/DdlEmbed.cmake has put into the program.
#pragma once

#include <string_view>

namespace ddl {

/// It lives as long as the program.
struct EmbeddedFile {
  std::string_view path;  ///< below the folder that it was taken from: "sites/lumi.yaml"
  std::string_view text;
};

}  // namespace ddl
