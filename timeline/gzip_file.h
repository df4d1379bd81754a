// Compression by zlib: its functions, files that may be compressed, and compressed bytes in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::timeline {

/// The functions of zlib, as zlib.h declares them in all its versions. A file is zlib's gzFile. The library is loaded when
/// something is compressed: neither ddlrun nor libddl is linked with it.
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

/// Reads a file from its beginning to its end.
class GzipFile {
 public:
  /// A regular file, whatever its name: zlib recognises what is compressed, and passes on all else unchanged. Errors,
  /// also of read(), do not name the path.
  static Result<std::unique_ptr<GzipFile>> open(const std::string& path,
                                                const std::string& zlib = Zlib::kLibrary);
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile();

  /// Returns how many bytes were read; 0: the file has ended. Error: the compressed bytes are damaged, or end too early.
  Result<std::size_t> read(std::span<char> buffer);

 private:
  explicit GzipFile(const Zlib& zlib) : zlib_(zlib) {}

  Zlib zlib_;
  void* file_ = nullptr;
};

/// The bytes in the format of RFC 1950, which browsers call "deflate". In memory: the result, and zlib's 300 KB.
Result<std::string> deflated(std::string_view bytes, const std::string& zlib = Zlib::kLibrary);

}  // namespace ddl::timeline
