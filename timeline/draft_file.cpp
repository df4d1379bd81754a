#include "timeline/draft_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace ddl::timeline {
namespace {

Status failed_to_compress() {
  if (errno != 0) return fail_errno("write");
  return fail(ErrorCode::kSystem, "zlib failed");
}

}  // namespace

Result<std::unique_ptr<DraftFile>> DraftFile::plan(const std::string& path, const std::string& zlib) {
  std::unique_ptr<DraftFile> file(new DraftFile(path));
  auto possible = file->set_target();
  if (possible && path.ends_with(".gz")) possible = file->load_zlib(zlib);
  if (possible) possible = file->make_draft();
  if (!possible) return fail(std::move(possible.error()).during(path));
  // The job may take days, and be killed: its draft is not to lie there for so long.
  file->fd_.reset();
  ::unlink(std::exchange(file->draft_, "").c_str());
  return file;
}

DraftFile::~DraftFile() {
  if (compressed_ != nullptr) zlib_->gzclose(compressed_);
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

Status DraftFile::set_target() {
  target_ = path_;
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("stat");
  }
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file; choose another name");
  if (::access(path_.c_str(), W_OK) != 0) return fail_errno("open");
  char* const resolved = ::realpath(path_.c_str(), nullptr);
  if (resolved == nullptr) return fail_errno("realpath");
  target_ = resolved;
  std::free(resolved);
  return {};
}

Status DraftFile::load_zlib(const std::string& name) {
  auto zlib = Zlib::load(name);
  if (!zlib)
    return fail(ErrorCode::kUnavailable, "it cannot be compressed (" + zlib.error().message() +
                                             "); install zlib, or choose a name without .gz");
  zlib_ = *zlib;
  return {};
}

Status DraftFile::make_draft() {
  // Process numbers repeat, above all in containers, and a killed process may have left its draft.
  constexpr int kTries = 100;
  for (int i = 0;; ++i) {
    const std::string name =
        target_ + "." + std::to_string(::getpid()) + (i == 0 ? "" : "." + std::to_string(i)) + ".new";
    fd_.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd_) {
      draft_ = name;
      return {};
    }
    if (errno != EEXIST || i + 1 == kTries) return fail_errno("create a file beside it");
  }
}

Status DraftFile::open() {
  if (auto made = make_draft(); !made) return give_up(std::move(made.error()));
  if (!zlib_) return {};
  // Level 1 is several times as fast as the usual one, and text that repeats itself still becomes a tenth or less.
  compressed_ = zlib_->gzdopen(fd_.get(), "wb1");
  if (compressed_ == nullptr) return give_up(Error(ErrorCode::kSystem, "zlib cannot begin"));
  (void)fd_.release();  // gzclose() closes it
  return {};
}

Status DraftFile::write(std::string_view text) {
  if (draft_.empty()) return give_up(Error(ErrorCode::kSystem, "it was given up"));
  auto written =
      compressed_ != nullptr ? write_compressed(text) : write_all(fd_.get(), text.data(), text.size());
  if (!written) return give_up(std::move(written.error()));
  return {};
}

Status DraftFile::write_compressed(std::string_view text) {
  constexpr std::size_t kPiece = std::size_t{1} << 24;  // gzwrite() returns an int
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), kPiece);
    errno = 0;
    if (zlib_->gzwrite(compressed_, text.data(), static_cast<unsigned>(size)) <= 0)
      return failed_to_compress();
    text.remove_prefix(size);
  }
  return {};
}

Status DraftFile::finish() {
  if (draft_.empty()) return give_up(Error(ErrorCode::kSystem, "it was given up"));
  if (auto done = put_in_place(); !done) return give_up(std::move(done.error()));
  draft_.clear();
  return {};
}

Status DraftFile::put_in_place() {
  if (compressed_ != nullptr) {
    errno = 0;
    if (zlib_->gzclose(std::exchange(compressed_, nullptr)) != 0) return failed_to_compress();
  } else if (::close(fd_.release()) != 0) {
    return fail_errno("close");  // some network file systems report only here that they could not write
  }
  if (::rename(draft_.c_str(), target_.c_str()) != 0) return fail_errno("rename");
  return {};
}

Status DraftFile::give_up(Error error) {
  if (compressed_ != nullptr) zlib_->gzclose(std::exchange(compressed_, nullptr));
  fd_.reset();
  if (!draft_.empty()) ::unlink(std::exchange(draft_, "").c_str());
  return fail(std::move(error).during("writing " + path_));
}

}  // namespace ddl::timeline
