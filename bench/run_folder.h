// A folder for the files of one run.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace ddl::bench {

/// Made empty, and removed with all that is in it.
class RunFolder {
 public:
  static Result<RunFolder> make_in(const std::string& parent);
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  RunFolder& operator=(RunFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace ddl::bench
