#include "e2e/harness/scratch.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace ddl::e2e {
namespace {

[[noreturn]] void fail_with_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Scratch::Scratch(const std::string& parent) : path_(parent + "/ddl-e2e-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) fail_with_errno("mkdtemp " + path_);
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Scratch::write(const std::string& name, const std::string& text, bool executable) const {
  std::string file = path(name);
  std::ofstream(file, std::ios::binary) << text;
  ::chmod(file.c_str(), executable ? 0755 : 0644);
  return file;
}

std::string Scratch::make_directory(const std::string& name) const {
  std::filesystem::create_directory(path(name));
  return path(name);
}

std::string Scratch::make_fifo(const std::string& name) const {
  if (::mkfifo(path(name).c_str(), 0600) != 0) fail_with_errno("mkfifo " + path(name));
  return path(name);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_with_errno("open " + path);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace ddl::e2e
