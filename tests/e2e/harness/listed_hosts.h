// What a discovery script prints, which a test changes while the job runs.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "e2e/harness/scratch.h"

namespace ddl::e2e {

class ListedHosts {
 public:
  /// text: as of set(). The script is in scratch.
  ListedHosts(const Scratch& scratch, const std::string& text)
      : file_(scratch.write("hosts", text)),
        script_(scratch.write("discover", "#!/bin/sh\ncat " + file_ + "\n", true)) {}

  /// For --host-discovery-script.
  const std::string& script() const { return script_; }
  /// "localhost:2\n127.0.0.1:2\n". The script never sees a part of it.
  void set(const std::string& text) const {
    std::ofstream(file_ + ".new") << text;
    std::filesystem::rename(file_ + ".new", file_);
  }
  /// The script fails until set().
  void fail() const { std::filesystem::remove(file_); }

 private:
  std::string file_;
  std::string script_;
};

}  // namespace ddl::e2e
