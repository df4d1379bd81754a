// The repository for the structure tests: files and their #include lines.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::test {

struct SourceFile {
  std::string path;  ///< relative to the repository root, with '/'
  std::string text;

  std::string_view component() const;  ///< the first folder, or "" at the top
  std::string_view extension() const;  ///< ".cpp"
};

struct Include {
  int line = 0;
  std::string_view name;  ///< between the delimiters
  bool quoted = false;
};

/// Every file of the project, without those of the build, of git and of editors. Sorted by path.
std::vector<SourceFile> project_files(const std::filesystem::path& root);
/// Whether it is a source or header of C or C++.
bool is_code(const SourceFile& file);
bool is_header(const SourceFile& file);
/// The #include lines, also those between #if and #endif.
std::vector<Include> includes_of(const SourceFile& file);

}  // namespace ddl::test
