// A file that appears at its path when it is complete.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "timeline/gzip_file.h"

namespace ddl::timeline {

/// Writes to a file beside the path, and puts that in its place at the end; so the path has the whole file or what was
/// there before. The destructor removes what is not finished. Errors name the path.
class DraftFile {
 public:
  /// Checks that the file can be written, and leaves nothing behind. If path is a link, what it points to is replaced.
  /// A name that ends with ".gz" is compressed by zlib, which is loaded now.
  static Result<std::unique_ptr<DraftFile>> plan(const std::string& path,
                                                 const std::string& zlib = Zlib::kLibrary);
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  ~DraftFile();

  /// Makes the draft. Once.
  Status open();
  /// After open(). An error ends the file: every later call returns one.
  Status write(std::string_view text);
  /// Writes what is left, and puts the file at its path.
  Status finish();

  const std::string& path() const { return path_; }

 private:
  explicit DraftFile(std::string path) : path_(std::move(path)) {}
  Status set_target();
  Status load_zlib(const std::string& name);
  Status make_draft();
  Status write_compressed(std::string_view text);
  Status put_in_place();
  /// With what was being done; what was written is given up.
  Status give_up(Error error);

  std::string path_;
  std::string target_;        // path_ without links
  std::optional<Zlib> zlib_;  // none: not compressed
  std::string draft_;         // "": there is none
  UniqueFd fd_;               // of the draft, until zlib has it
  void* compressed_ = nullptr;
};

}  // namespace ddl::timeline
