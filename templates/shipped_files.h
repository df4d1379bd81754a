// The profiles that ddlrun was built with.
#pragma once

#include <span>
#include <string_view>

namespace ddl::templates {

struct ShippedFile {
  std::string_view path;  ///< below templates/: "sites/lumi-g.yaml"
  std::string_view text;
};

/// By path. They live as long as the program.
std::span<const ShippedFile> shipped_files();

}  // namespace ddl::templates
