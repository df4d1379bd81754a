// NCCL or RCCL, which is loaded at run time. Both have the same functions.
#pragma once

#include <string>

#include "base/error.h"
#include "runtime/src/backend/nccl/nccl_abi.h"

namespace ddl::runtime {

/// "2.28.9".
std::string nccl_version_text(int version);

/// Functions may be called from any thread.
class NcclLibrary {
 public:
  /// file: "libnccl.so.2". The result lives as long as the process. kUnavailable: it cannot be loaded, or is too old, and
  /// why.
  static Result<const NcclLibrary*> load(const char* file);

  NcclLibrary(std::string file, const nccl::Functions& functions, int version)
      : file_(std::move(file)), functions_(functions), version_(version) {}

  const nccl::Functions& functions() const { return functions_; }
  const std::string& file() const { return file_; }
  /// 22809. Of RCCL: the version of NCCL whose functions it has. It must be the same on all ranks of a communicator.
  int version() const { return version_; }

  /// Ok, or the error of a function, with the library's own sentence. comm: null before there is one.
  Status check(const char* function, nccl::Result result, nccl::Comm comm) const;

 private:
  std::string file_;
  nccl::Functions functions_;
  int version_;
};

}  // namespace ddl::runtime
