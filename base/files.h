// The path of this program, and folders for temporary files.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace ddl {

/// The file of this program, links resolved; "" if /proc does not say.
std::string own_path();

/// TMPDIR if it is absolute, else /tmp.
std::string tmp_directory();

/// A folder of this process's own, removed with all that is in it by the destructor.
class TemporaryFolder {
 public:
  /// A new folder PARENT/NAME-XXXXXX, mode 0700. Error: it cannot be made.
  static Result<TemporaryFolder> make_in(const std::string& parent, const std::string& name);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // "": moved from
};

}  // namespace ddl
