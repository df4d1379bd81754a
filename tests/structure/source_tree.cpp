#include "structure/source_tree.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace ddl::test {
namespace fs = std::filesystem;

std::string_view SourceFile::component() const {
  const std::size_t end = path.find('/');
  return end == std::string::npos ? std::string_view() : std::string_view(path).substr(0, end);
}

std::string_view SourceFile::extension() const {
  const std::size_t dot = path.find_last_of("./");
  return dot == std::string::npos || path[dot] == '/' ? std::string_view()
                                                      : std::string_view(path).substr(dot);
}

std::vector<SourceFile> project_files(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string path = it->path().lexically_relative(root).generic_string();
    // The folders of .gitignore, and hidden folders of tools; .ci belongs to the project.
    if (it->is_directory() && (path == "build" || (path.starts_with('.') && path != ".ci"))) {
      it.disable_recursion_pending();
      continue;
    }
    // In a worktree .git is a file.
    if (!it->is_regular_file() || path == "compile_commands.json" || path == ".git") continue;
    std::ifstream stream(it->path(), std::ios::binary);
    files.push_back({path, std::string(std::istreambuf_iterator<char>(stream), {})});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

bool is_header(const SourceFile& file) { return file.extension() == ".h" || file.extension() == ".hpp"; }

bool is_code(const SourceFile& file) {
  return is_header(file) || file.extension() == ".cpp" || file.extension() == ".c";
}

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  int number = 0;
  for (std::string_view line : split(file.text, '\n')) {
    ++number;
    line = trim(line);
    if (!line.starts_with('#')) continue;
    line = trim(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = trim(line.substr(std::string_view("include").size()));
    if (line.empty() || (line[0] != '"' && line[0] != '<')) continue;
    const std::size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
    if (end == std::string_view::npos) continue;
    includes.push_back({number, line.substr(1, end - 1), line[0] == '"'});
  }
  return includes;
}

}  // namespace ddl::test
