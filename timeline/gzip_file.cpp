#include "timeline/gzip_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>

#include "base/fd.h"
#include "base/shared_library.h"

namespace ddl::timeline {
namespace {

// Of zlib.h.
constexpr int kErrno = -1;
constexpr int kEndsTooEarly = -5;
constexpr unsigned kBuffer = 1U << 17;

}  // namespace

Result<Zlib> Zlib::load(const std::string& name) {
  const auto library = SharedLibrary::load(name);
  if (!library)
    return fail(ErrorCode::kUnavailable, "zlib cannot be loaded: " + library.error().message(),
                "install zlib, the library libz.so.1");
  Zlib zlib;
  bool is_complete = true;
  const auto find = [&](auto*& function, const char* symbol) {
    function = library->function<std::remove_reference_t<decltype(*function)>>(symbol);
    is_complete = is_complete && function != nullptr;
  };
  find(zlib.gzdopen, "gzdopen");
  find(zlib.gzbuffer, "gzbuffer");
  find(zlib.gzread, "gzread");
  find(zlib.gzwrite, "gzwrite");
  find(zlib.gzerror, "gzerror");
  find(zlib.gzclose, "gzclose");
  find(zlib.compress_bound, "compressBound");
  find(zlib.compress2, "compress2");
  if (!is_complete)
    return fail(ErrorCode::kUnavailable, library->path() + " is not zlib",
                "install zlib, the library libz.so.1");
  return zlib;
}

Result<std::unique_ptr<GzipFile>> GzipFile::open(const std::string& path, const std::string& zlib) {
  DDL_ASSIGN(loaded, Zlib::load(zlib));
  std::unique_ptr<GzipFile> file(new GzipFile(loaded));
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno("open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("stat");
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  file->file_ = loaded.gzdopen(fd.get(), "rb");
  if (file->file_ == nullptr) return fail(ErrorCode::kSystem, "zlib cannot begin");
  (void)fd.release();  // gzclose() closes it
  loaded.gzbuffer(file->file_, kBuffer);
  return file;
}

GzipFile::~GzipFile() {
  if (file_ != nullptr) zlib_.gzclose(file_);
}

Result<std::size_t> GzipFile::read(std::span<char> buffer) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // gzread() returns an int
  errno = 0;
  const int count = zlib_.gzread(file_, buffer.data(), static_cast<unsigned>(std::min(buffer.size(), kMost)));
  if (count > 0) return static_cast<std::size_t>(count);
  int number = 0;
  zlib_.gzerror(file_, &number);
  if (count == 0 && number != kEndsTooEarly) return std::size_t{0};
  if (number == kErrno && errno != 0) return fail_errno("read");
  return refuse(number == kEndsTooEarly ? "its compressed data end too early"
                                        : "its compressed data are damaged");
}

Result<std::string> deflated(std::string_view bytes, const std::string& zlib) {
  DDL_ASSIGN(loaded, Zlib::load(zlib));
  constexpr int kLevel = 6;
  std::string result(loaded.compress_bound(bytes.size()), '\0');
  unsigned long size = result.size();
  using Bytes = unsigned char;
  if (loaded.compress2(reinterpret_cast<Bytes*>(result.data()), &size,
                       reinterpret_cast<const Bytes*>(bytes.data()), bytes.size(), kLevel) != 0)
    return fail(ErrorCode::kSystem, "zlib failed to compress");
  result.resize(size);
  return result;
}

}  // namespace ddl::timeline
