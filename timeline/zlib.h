// The functions of zlib, which is loaded when something is compressed: neither ddlrun nor libddl is linked with it.
#pragma once

#include <string>

#include "base/error.h"

namespace ddl::timeline {

/// They are as zlib.h declares them, in all its versions. A file is zlib's gzFile.
struct Zlib {
  static constexpr char kLibrary[] = "libz.so.1";

  /// Error kUnavailable: there is no such library, or it is another one.
  static Result<Zlib> load(const std::string& name = kLibrary);

  void* (*gzdopen)(int fd, const char* mode) = nullptr;
  int (*gzbuffer)(void* file, unsigned size) = nullptr;
  int (*gzread)(void* file, void* data, unsigned size) = nullptr;
  int (*gzwrite)(void* file, const void* data, unsigned size) = nullptr;
  const char* (*gzerror)(void* file, int* number) = nullptr;
  int (*gzclose)(void* file) = nullptr;
  unsigned long (*compress_bound)(unsigned long size) = nullptr;
  int (*compress2)(unsigned char* to, unsigned long* to_size, const unsigned char* from,
                   unsigned long from_size, int level) = nullptr;
};

}  // namespace ddl::timeline
