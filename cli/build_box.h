// --check-build: boxes with reasons, as values and as text.
#pragma once

#include <string>
#include <vector>

namespace ddl::cli {

/// One line of --check-build.
struct BuildBox {
  std::string heading;  ///< "Frameworks"; boxes of one heading stand together
  std::string name;     ///< "PyTorch"
  bool available = false;
  std::string detail;  ///< what was found, or why the box is empty
};

/// horovodrun's look: "Available Frameworks:" and "[X]" lines, with the reasons beside them. Pure.
std::string check_build_text(const std::vector<BuildBox>& boxes);
/// One line of JSON, with its newline; docs/reference/ddlrun.md has the schema. Pure.
std::string check_build_json(const std::vector<BuildBox>& boxes);

}  // namespace ddl::cli
