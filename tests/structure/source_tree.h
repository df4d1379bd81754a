// The repository as the structure tests see it: files and their #include lines.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::test {

struct SourceFile {
  std::string path;  ///< relative to the repository root, with '/'
  std::string text;

  std::string_view room() const;       ///< the first folder, or "" at the top
  std::string_view extension() const;  ///< ".cpp"
};

struct Include {
  int line = 0;
  std::string_view name;  ///< between the delimiters
  bool quoted = false;
};

/// Every file that belongs to the project: all but what the build, git and editors keep beside it. Sorted by path.
std::vector<SourceFile> project_files(const std::filesystem::path& root);
/// Files of C and C++ among them.
bool is_code(const SourceFile& file);
bool is_header(const SourceFile& file);
/// The #include lines, also those between #if and #endif.
std::vector<Include> includes_of(const SourceFile& file);

}  // namespace ddl::test
