// Files that may be compressed by gzip, and compressed bytes in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "timeline/zlib.h"

namespace ddl::timeline {

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
