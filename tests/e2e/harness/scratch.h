// A temporary directory for one test.
#pragma once

#include <string>
#include <vector>

namespace ddl::e2e {

/// Made below parent with a short path, because it contains sockets; removed with its contents. Throws if it cannot
/// be made.
class Scratch {
 public:
  explicit Scratch(const std::string& parent = "/tmp");
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text, bool executable = false) const;
  /// Makes a directory and returns its path.
  std::string make_directory(const std::string& name) const;
  /// Makes a FIFO and returns its path.
  std::string make_fifo(const std::string& name) const;

 private:
  std::string path_;
};

/// The names in a directory, sorted; empty if there is no such directory.
std::vector<std::string> names_in(const std::string& directory);
/// The bytes of a file. Throws if it cannot be read.
std::string bytes_of(const std::string& path);

}  // namespace ddl::e2e
